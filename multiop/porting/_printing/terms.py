"""What a function that is printed is made of, beside the terms of the graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from multiop.porting._graph import Body, Expression, Value, is_call


@dataclasses.dataclass(frozen=True)
class Branch:
    """A subtree of the parameters or of the state, or the `"name"` of a submodule."""

    kind: str
    path: str


@dataclasses.dataclass(frozen=True)
class Spread:
    """`**branch` among the arguments of a call."""

    branch: Branch
    suffix: str = ""  # of the leaves, in a recurrent network that has several layers


@dataclasses.dataclass(frozen=True)
class Attribute:
    """`value.name`."""

    value: Value
    name: str


@dataclasses.dataclass(eq=False)
class Loop(Body):
    """The body of `for`, in the call `for(loop, values that are carried at first, lists at first)`.

    Its parameters are the counter, and what a step takes of the one before it. Its outputs are two tuples: what is left
    behind the loop, which is first of all what is carried; and what each step adds to lists. The results of the
    statement are the one, and the lists.
    """

    numbers: tuple[Expression, Expression, Expression]  # the arguments of `range`


def is_for(expression: Expression) -> bool:
    """Say whether a statement is a loop with a body."""
    return is_call(expression, "for")


@dataclasses.dataclass(eq=False)
class Statement:
    """`outputs = expression`; as a loop, `expression` for each `i` of a range."""

    outputs: list[Value | None]
    expression: Expression
    pattern: Expression = None  # the tuples that the outputs stand in; `None` if it is the list of them
    update: str | None = None  # the branch of the state that the last target replaces, relative to the function
    loop: range | str | None = None  # what `i` is: numbers, or letters
    carry: tuple[Any, Any] | None = None  # in a loop: what the first step takes, what the last one returns
    grows: Value | None = None  # in a loop: the list that each step takes, and adds its result to
    size: str = ""  # the symbol that the statement gives a value

    @property
    def results(self) -> int:
        """How many results there are, without a new state."""
        return len(self.outputs) - (self.update is not None)
