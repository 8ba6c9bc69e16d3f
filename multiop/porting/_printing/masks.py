"""Masks that depend on positions alone, as a band around the diagonal, and what is looked up at all positions.

Whole numbers are followed that grow evenly along each axis, and what compares them, however a model computes them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from multiop.porting import _rows
from multiop.porting._graph import Call, DType, Expression, Infix, Item, Node, Value, call, is_call


class _Line(NamedTuple):
    """Whole numbers: the first one, and by how much they grow along each axis."""

    first: int
    steps: tuple[int, ...] = ()

    def plus(self, other: _Line, factor: int = 1) -> _Line:
        """Add a multiple of other numbers, which broadcast."""
        columns = itertools.zip_longest(self.steps[::-1], other.steps[::-1], fillvalue=0)
        return _Line(self.first + factor * other.first, tuple(a + factor * b for a, b in columns)[::-1])

    def within(self, shape: Sequence[Any]) -> _Line:
        """Return the numbers in a shape that they broadcast to: along a dimension of 1 nothing grows."""
        steps = (*[0] * (len(shape) - len(self.steps)), *self.steps)
        return self._replace(steps=tuple(0 if size == 1 else step for step, size in zip(steps, shape, strict=True)))


_Found: TypeAlias = _Line | list[_Line] | None  # a list is true where none of its numbers is negative
_WHOLE = ("int32", "int64")
_LARGE = 2**16  # beyond it, a number of 32 bits may pass its end and begin anew
_COMPARED = {"less": [(-1, -1)], "less_equal": [(-1, 0)], "greater": [(1, -1)], "greater_equal": [(1, 0)]}
_COMPARED["equal"] = [(-1, 0), (1, 0)]  # the sign of the difference, and what is added, so that it is not negative


def write_masks(nodes: Sequence[Node]) -> None:
    """Write masks that depend on positions alone in one call, and a look at all positions as an index."""
    known: dict[int, _Found] = {}
    for node in nodes:
        out = node.outputs[0] if len(node.outputs) == 1 and node.update is None else None
        if out is None:
            continue
        found = _followed(node.expression, known, out)
        if isinstance(found, _Line):
            line = found.within(out.shape)
            known[id(out)] = line if max(map(abs, (line.first, *line.steps))) < _LARGE else None
        elif found is not None and out.dtype == "bool":
            known[id(out)] = band = [line.within(out.shape) for line in found]
            node.expression = _written(band, out.shape) or node.expression
        else:
            node.expression = _at_all_positions(node.expression, known, out) or node.expression


def _followed(part: Expression, known: Mapping[int, _Found], out: Value | None = None) -> _Found:
    """Return the numbers that an expression is, or where it is true; `None` for what is not followed."""
    if type(part) is int:
        return _Line(part)
    if isinstance(part, Value):
        return known.get(id(part))
    if isinstance(part, Infix) and part.operator in ("+", "-"):
        part = call("ops.add" if part.operator == "+" else "ops.subtract", part.left, part.right)
    if isinstance(part, Item):
        return _in_each(_followed(part.x, known), lambda line: _item(line, part.key))
    if not isinstance(part, Call):
        return None
    name, options = part.function.removeprefix("ops."), dict(part.kwargs)
    if name == "arange" and out is not None and out.dtype in _WHOLE:
        start, _, step = ((0, *part.args, 1) if len(part.args) == 1 else (*part.args, 1))[:3]
        return _Line(start, (step,)) if type(start) is type(step) is int else None
    if name == "ones" and out is not None and out.dtype == "bool":
        return []
    if name == "concatenate" and type(part.args[0]) is list:
        return _joined(part.args[0], options.get("axis", 0), known)
    first, *others = [_followed(each, known) for each in part.args] or [None]
    if name == "get_item" and isinstance(part.args[1], tuple):
        return _looked_up(first, [_followed(each, known) for each in part.args[1]])
    if name in ("expand_dims", "reshape", "squeeze") and isinstance(part.args[0], Value) and out is not None:
        return _in_each(first, lambda line: _reshaped(line, part.args[0].shape, out.shape))
    if name == "broadcast_to":
        return first
    if name == "cast" and part.args[1].name in _WHOLE:
        return first if isinstance(first, _Line) else _number(first)
    if name == "cumsum" and isinstance(first, _Line) and first.steps and not any(first.steps):
        at = options["axis"] % len(first.steps)
        return first._replace(steps=tuple(first.first * (axis == at) for axis in range(len(first.steps))))
    if name == "diff" and isinstance(first, _Line) and options.get("n") == 1:
        return _Line(first.steps[options["axis"]], (0,) * len(first.steps))
    if len(others) != 1:
        return None
    return _of_two(name, first, others[0])


def _of_two(name: str, x: _Found, y: _Found) -> _Found:
    """Return what an op makes of numbers, or of conditions."""
    if isinstance(x, list) and isinstance(y, list) and name in ("bitwise_and", "logical_and"):
        return x + y
    if not isinstance(x, _Line) or not isinstance(y, _Line):
        return None
    if name in ("add", "subtract"):
        return x.plus(y, 1 if name == "add" else -1)
    difference = x.plus(y, -1)
    if name == "not_equal" and not any(difference.steps):
        return [_Line(0 if difference.first else -1)]
    conditions = [_Line(more).plus(difference, sign) for sign, more in _COMPARED.get(name, ())]
    return conditions or None


def _in_each(found: _Found, change: Any) -> Any:
    """Return what `change` makes of numbers, or of each of those that are not to be negative."""
    if not isinstance(found, list):
        return None if found is None else change(found)
    changed = [change(line) for line in found]
    return None if None in changed else changed


def _item(line: _Line, key: Sequence[Any]) -> _Line | None:
    first, steps, axis = line.first, [], 0
    for part in key:
        if part is None:
            steps.append(0)
            continue
        start, step = (part.start or 0, part.step) if isinstance(part, slice) else (part, None)
        if type(start) is not int or start < 0 or step not in (None, 1):
            return None
        first += start * line.steps[axis]
        steps += [line.steps[axis]] * isinstance(part, slice)
        axis += 1
    return _Line(first, (*steps, *line.steps[axis:]))


def _joined(parts: Sequence[Any], axis: int, known: Mapping[int, _Found]) -> _Line | None:
    """Return numbers that go on evenly behind the first one."""
    before, behind = (known.get(id(part)) for part in (parts if len(parts) == 2 else (None, None)))
    if not isinstance(before, _Line) or not isinstance(behind, _Line) or parts[0].shape[axis] != 1:
        return None
    steps = list(before.steps)
    steps[axis] = behind.first - before.first
    return before._replace(steps=behind.steps) if tuple(steps) == behind.steps else None


def _looked_up(x: _Found, key: Sequence[_Found]) -> _Line | None:
    """Return the numbers at places, none of which is counted from the end."""
    if not isinstance(x, _Line) or len(key) != len(x.steps):
        return None
    picked = _Line(x.first)
    for step, line in zip(x.steps, key, strict=True):
        if not isinstance(line, _Line) or line.first < 0 or min(line.steps, default=0) < 0:
            return None
        picked = picked.plus(line, step)
    return picked


def _reshaped(line: _Line, before: Sequence[Any], after: Sequence[Any]) -> _Line | None:
    """Return the numbers where dimensions of 1 come or go."""
    steps = iter([step for step, size in zip(line.steps, before, strict=True) if size != 1])
    is_same = [size for size in before if size != 1] == [size for size in after if size != 1]
    return line._replace(steps=tuple(0 if size == 1 else next(steps) for size in after)) if is_same else None


def _number(band: list[_Line] | None) -> _Line | None:
    """Return 1 for what is true everywhere, and 0 for what is true nowhere."""
    if band is None or any(any(line.steps) for line in band):
        return None
    ndim = max((len(line.steps) for line in band), default=0)
    return _Line(int(all(line.first >= 0 for line in band)), (0,) * ndim)


def _written(band: list[_Line], shape: Sequence[Any]) -> Expression | None:
    """Return the mask that is true between two diagonals; `None` for another form."""
    upper: list[int] = []
    lower: list[int] = []
    for first, steps in band:
        if not any(steps) and first >= 0:
            continue
        if any(steps[:-2]) or tuple(steps[-2:]) not in ((1, -1), (-1, 1)):
            return None
        (upper if steps[-1] < 0 else lower).append(first)
    mask = call("ops.ones", tuple(shape), dtype=DType("bool"))
    if upper:
        mask = call("ops.tril", mask, *filter(None, [min(upper)]))
    return call("ops.triu", mask, *filter(None, [-min(lower)])) if lower else mask


def _at_all_positions(expression: Expression, known: Mapping[int, _Found], out: Value) -> Expression | None:
    """Return an index for a look at each position along some axes."""
    is_look = is_call(expression, "ops.get_item")
    x, places = expression.args[:2] if is_look else (None, None)
    if not isinstance(x, Value) or not isinstance(places, tuple) or len(places) != x.ndim:
        return None
    key: list[Any] = [None] * out.ndim
    at = -1
    for place, size in zip(places, x.shape, strict=True):
        line = known.get(id(place))
        if not isinstance(line, _Line) or line.first or sorted(filter(None, line.steps)) != [1]:
            return None
        axis = line.steps.index(1) + out.ndim - len(line.steps)
        if axis <= at or out.shape[axis] != size:
            return None
        key[axis], at = slice(None), axis
    is_all = all(part is not None or size == 1 for part, size in zip(key, out.shape, strict=True))
    return _rows.part(x, key) if is_all else None
