"""The graph that the readers fill and the printer reads: statements in the terms of multiop, each in its submodule.

An expression is a Python literal, a tuple or a list of expressions, or one of the classes below.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Expression: TypeAlias = Any


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size that is open: an expression of symbols, such as `16*batch`."""

    text: str
    symbols: tuple[str, ...]


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor: computed (`"local"`), an `"input"` of the model, or a leaf of its `"params"` or `"state"`."""

    shape: tuple[Any, ...]  # ints and Dims
    dtype: str
    kind: str = "local"
    name: str = ""  # the path of a leaf, the name of an input, a hint for the name of a variable

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclasses.dataclass(frozen=True)
class Name:
    """A name of the function that is being printed."""

    text: str


TRAINING = Name("training")
SEED = Name("seed")


@dataclasses.dataclass(frozen=True)
class DType:
    """A dtype; one that is the model's own is printed as the dtype of a tensor at hand, so that it stays open."""

    name: str


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a function of `ops` or `random`, or of a function of `multiop.porting._layers`."""

    function: str
    args: tuple[Expression, ...] = ()
    kwargs: tuple[tuple[str, Expression], ...] = ()


@dataclasses.dataclass(frozen=True)
class Infix:
    """An operator between two expressions."""

    operator: str
    left: Expression
    right: Expression


@dataclasses.dataclass(frozen=True)
class Item:
    """`x[key]`, where the key holds ints, slices of ints, `None` and `Ellipsis`."""

    x: Expression
    key: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Scope:
    """One call of a submodule."""

    key: str  # differs between two calls of one submodule
    path: str
    kind: str  # the name of its class
    is_container: bool


@dataclasses.dataclass(eq=False)
class Node:
    """A statement: the values that it computes, and the leaf or branch of the state that its last result replaces."""

    outputs: list[Value]
    expression: Expression
    scopes: tuple[Scope, ...] = ()
    update: str | None = None
    where: str = ""  # the user's file and line


@dataclasses.dataclass(eq=False)
class Graph:
    """A model: its inputs, its leaves, its statements in order, and the structure of what it returns."""

    kind: str
    inputs: list[Value]
    params: dict[str, np.ndarray[Any, Any]]
    state: dict[str, np.ndarray[Any, Any]]
    nodes: list[Node]
    outputs: Expression
    leaves: dict[str, Value]
    dtype: str  # the floating dtype that most of its leaves have
    framework: str


def call(function: str, *args: Expression, **kwargs: Expression) -> Call:
    """Return a call, with lists as tuples, so that it can be compared."""
    return Call(function, args, tuple(kwargs.items()))


def children(expression: Expression) -> Iterator[Expression]:
    """Yield the expressions that an expression is made of."""
    if isinstance(expression, Call):
        yield from expression.args
        yield from (value for _, value in expression.kwargs)
    elif isinstance(expression, Infix):
        yield expression.left
        yield expression.right
    elif isinstance(expression, Item):
        yield expression.x
        yield from expression.key
    elif isinstance(expression, (tuple, list)):
        yield from expression
    elif isinstance(expression, Mapping):
        yield from expression.values()
    elif isinstance(expression, slice):
        yield from (expression.start, expression.stop, expression.step)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything in it, in the order in which it is written."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def values(expression: Expression) -> list[Value]:
    """Return the tensors in an expression, in the order in which they are written."""
    return [one for one in walk(expression) if isinstance(one, Value)]


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return the expression with `change` applied to everything in it, from the inside out."""
    if isinstance(expression, Call):
        args = tuple(rebuild(one, change) for one in expression.args)
        kwargs = tuple((name, rebuild(one, change)) for name, one in expression.kwargs)
        return change(Call(expression.function, args, kwargs))
    if isinstance(expression, Infix):
        return change(Infix(expression.operator, rebuild(expression.left, change), rebuild(expression.right, change)))
    if isinstance(expression, Item):
        key = tuple(rebuild(one, change) for one in expression.key)
        return change(Item(rebuild(expression.x, change), key))
    if isinstance(expression, slice):
        parts = [rebuild(one, change) for one in (expression.start, expression.stop, expression.step)]
        return slice(*parts)
    if isinstance(expression, (tuple, list)):
        return change(type(expression)([rebuild(one, change) for one in expression]))
    if isinstance(expression, Mapping):
        return {name: rebuild(one, change) for name, one in expression.items()}
    return change(expression)


def is_literal(expression: Expression) -> bool:
    """Say whether an expression is made of Python literals alone."""
    if isinstance(expression, (tuple, list)):
        return all(is_literal(one) for one in expression)
    return expression is None or isinstance(expression, (bool, int, float, complex, str))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of what a model returns, dicts in the order of their names; `None` is none."""
    if isinstance(tree, Mapping):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, (tuple, list)):
        return [leaf for one in tree for leaf in leaves(one)]
    return [] if tree is None else [tree]


def without_dead(nodes: Sequence[Node], outputs: Expression) -> list[Node]:
    """Return the statements that an output or the new state depends on."""
    used = set(map(id, values(outputs)))
    kept = []
    for node in reversed(nodes):
        if node.update is not None or any(id(value) in used for value in node.outputs):
            used.update(map(id, values(node.expression)))
            kept.append(node)
    return kept[::-1]
