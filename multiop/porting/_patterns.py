"""Patterns of steps that a person would write as one, and what their names stand for.

A pattern is the name of an operand, a number, `Number(name)` for any number, `Named(name, pattern)` for an operand that
fits, a list of patterns of which one fits, or a tuple of the kind of a step (or several, with `|` between them) and the
patterns of its operands. A name that stands twice is one operand, or one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol


class Number(NamedTuple):
    """A number, under a name."""

    name: str


class Named(NamedTuple):
    """An operand that fits a pattern, under a name."""

    name: str
    pattern: Any


class Reading(Protocol):
    """How a graph is read backwards."""

    def number(self, x: Any) -> Any:
        """Return the number that an operand is; `None` if it is none."""

    def is_close(self, number: Any, wanted: float, x: Any) -> bool:
        """Say whether the number that `x` is is a number of a pattern."""

    def orders(self, x: Any, kinds: str, count: int) -> Iterable[Sequence[Any]]:
        """Return the operands of the step that computed `x`, if it is of a kind, in each order that means the same."""


def close(a: Any, b: float, dtype: str) -> bool:
    """Say whether a number is what another one is in a dtype."""
    if isinstance(a, (bool, complex, str)):
        return False
    bits = {"float64": 2.0**-51, "float32": 2.0**-22, "float16": 2.0**-9, "bfloat16": 2.0**-6}.get(dtype, 0.0)
    return abs(a - b) <= bits * abs(b)


def matches(pattern: Any, x: Any, reading: Reading, known: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yield what the names of a pattern stand for."""
    known = known or {}
    if isinstance(pattern, str):
        if pattern not in known:
            yield {**known, pattern: x}
        elif known[pattern] is x:
            yield known
    elif isinstance(pattern, Named):
        for named in matches(pattern.name, x, reading, known):
            yield from matches(pattern.pattern, x, reading, named)
    elif isinstance(pattern, list):
        for one in pattern:
            yield from matches(one, x, reading, known)
    elif isinstance(pattern, (Number, int, float)):
        number = reading.number(x)
        if isinstance(pattern, Number) and number is not None and known.get(pattern.name, number) == number:
            yield {**known, pattern.name: number}
        elif not isinstance(pattern, Number) and number is not None and reading.is_close(number, pattern, x):
            yield known
    else:
        kinds, *inner = pattern
        for operands in reading.orders(x, kinds, len(inner)):
            yield from _all(inner, operands, reading, known)


def _all(
    patterns: Sequence[Any], operands: Sequence[Any], reading: Reading, known: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    if not patterns:
        yield known
        return
    for found in matches(patterns[0], operands[0], reading, known):
        yield from _all(patterns[1:], operands[1:], reading, found)
