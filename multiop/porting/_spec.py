"""The form of a tensor whose values are not known, and what a framework hands over where it says nothing else."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple


class Spec(NamedTuple):
    """The shape and the dtype, by name, of a tensor; an unknown size is `None`."""

    shape: tuple[int | None, ...]
    dtype: str


def is_written(x: Any) -> bool:
    """Say whether somebody changed `x` in place, which cannot be done here."""
    return False


def closes_over(called: Any, specs: Any) -> bool:
    """Say whether a function depends on a parameter that it closes over and that asks for a gradient by itself."""
    return False


def recording() -> Any:
    """Record what `depends_on_more` looks at: the results say it by themselves."""
    return contextlib.nullcontext()


def depends_on_more(tape: Any, xs: Any, ys: Any) -> bool:
    """Say whether `ys` have a gradient in anything but `xs`."""
    return False


def functional(model: Any) -> Any:
    """Return a model as a function of its parameters and inputs, and its parameters; `None` for what is a function."""
    return None
