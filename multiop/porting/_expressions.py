"""How one array is made from others: names, steps with an inverse, and joins, as one line of text.

`block.query.kernel | reshape 8x2x4 -> 8x8 | transpose 1 0` is an expression; `concat 0 (q.weight; k.weight)` is one
of two arrays. Each layout is written once, as equations, and `solve` turns them around.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from multiop import errors

Array: TypeAlias = np.ndarray[Any, Any]
Shape: TypeAlias = tuple[int, ...]

PLAIN = re.compile(r"[^\s|;()\"]+")
JOINS = ("concat", "sum", "equal")
STEPS = ("transpose", "reshape", "flip", "part", "blocks", "zero")


@dataclasses.dataclass(frozen=True)
class Name:
    """The array of this name."""

    name: str

    def __str__(self) -> str:
        return self.name if PLAIN.fullmatch(self.name) and self.name not in JOINS else json.dumps(self.name)


@dataclasses.dataclass(frozen=True)
class Piped:
    """One step applied to an expression."""

    inner: Expression
    step: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.inner} | {_step_text(self.step, self.args)}"


@dataclasses.dataclass(frozen=True)
class Joined:
    """Several expressions as one array: beside each other along `axis`, summed, or checked to be equal."""

    how: str
    axis: int
    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        head = f"concat {self.axis}" if self.how == "concat" else self.how
        return f"{head} ({'; '.join(map(str, self.parts))})"


Expression: TypeAlias = Name | Piped | Joined


def transpose(inner: Expression, *order: int) -> Expression:
    """Permute the axes; two permutations become one, and none if they cancel."""
    if isinstance(inner, Piped) and inner.step == "transpose":
        order = tuple(inner.args[axis] for axis in order)
        inner = inner.inner
    return inner if order == tuple(range(len(order))) else Piped(inner, "transpose", order)


def reshape(inner: Expression, before: Shape, after: Shape) -> Expression:
    """Give an array of shape `before` the shape `after`."""
    if isinstance(inner, Piped) and inner.step == "reshape":
        before, inner = inner.args[0], inner.inner
    return inner if before == after else Piped(inner, "reshape", (tuple(before), tuple(after)))


def flip(inner: Expression, *axes: int) -> Expression:
    """Reverse the order along some axes."""
    if isinstance(inner, Piped) and inner.step == "flip" and inner.args == axes:
        return inner.inner
    return Piped(inner, "flip", axes) if axes else inner


def part(inner: Expression, axis: int, start: int, stop: int, total: int) -> Expression:
    """Take the entries from `start` to `stop`, of `total`, along an axis."""
    return inner if (start, stop) == (0, total) else Piped(inner, "part", (axis, start, stop, total))


def blocks(inner: Expression, axis: int, *order: int) -> Expression:
    """Cut an axis into equal blocks and put them in another order: block `n` of the result is block `order[n]`."""
    if isinstance(inner, Piped) and inner.step == "blocks" and inner.args[0] == axis:
        order = tuple(inner.args[1:][n] for n in order)
        inner = inner.inner
    return inner if order == tuple(range(len(order))) else Piped(inner, "blocks", (axis, *order))


def zero(inner: Expression) -> Expression:
    """Make zeros of the same shape."""
    return Piped(inner, "zero")


def concat(axis: int, *parts: Expression) -> Expression:
    """Put arrays beside each other along an axis."""
    return parts[0] if len(parts) == 1 else Joined("concat", axis, parts)


def total(*parts: Expression) -> Expression:
    """Add arrays up."""
    return parts[0] if len(parts) == 1 else Joined("sum", 0, parts)


def equal(*parts: Expression) -> Expression:
    """Take any of some arrays, after a check that they are equal."""
    parts = tuple(dict.fromkeys(parts))
    return parts[0] if len(parts) == 1 else Joined("equal", 0, parts)


def apply_step(inner: Expression, step: str, args: tuple[Any, ...]) -> Expression:
    """Apply a step by its name."""
    builders: list[Callable[..., Expression]] = [transpose, reshape, flip, part, blocks, zero]  # in the order of STEPS
    return builders[STEPS.index(step)](inner, *args)


def names(expression: Expression) -> list[str]:
    """Return the names of the arrays in an expression, each once, in order."""
    if isinstance(expression, Name):
        return [expression.name]
    inner = (expression.inner,) if isinstance(expression, Piped) else expression.parts
    return list(dict.fromkeys(name for part in inner for name in names(part)))


def substitute(expression: Expression, by: Mapping[str, Expression]) -> Expression:
    """Put other expressions in the place of names."""
    if isinstance(expression, Name):
        return by[expression.name]
    if isinstance(expression, Piped):
        return apply_step(substitute(expression.inner, by), expression.step, expression.args)
    return Joined(expression.how, expression.axis, tuple(substitute(part, by) for part in expression.parts))


# values


def evaluate(expression: Expression, arrays: Mapping[str, Array], *, gradient: bool = False) -> Array:
    """Return the array that an expression stands for.

    Args:
        expression: The expression.
        arrays: The arrays, by name.
        gradient: The arrays are gradients. Those of the terms of a sum are equal and are that of the sum, and a term
            that stands at zero has a gradient all the same.
    """
    if isinstance(expression, Name):
        return arrays[expression.name]
    if isinstance(expression, Piped):
        x = evaluate(expression.inner, arrays, gradient=gradient)
        return x if gradient and expression.step == "zero" else _apply(expression, x)
    parts = [evaluate(part, arrays, gradient=gradient) for part in expression.parts]
    if expression.how == "concat":
        return np.concatenate(parts, axis=expression.axis)
    if len({x.shape for x in parts}) > 1:
        raise errors.ArgumentError(f"{expression}: shapes {', '.join(str(x.shape) for x in parts)} differ")
    if expression.how == "sum":
        if gradient:
            return parts[0]
        result = parts[0]
        for x in parts[1:]:
            result = result + x
        return result
    if gradient:  # the uses of an array that was copied add up; the gradient of a shared one has all of them already
        parts = list({id(part): part for part in parts}.values())
        return np.asarray(sum(parts[1:], start=parts[0]))
    if any(not np.array_equal(parts[0], x, equal_nan=x.dtype.kind in "fc") for x in parts[1:]):
        raise errors.ArgumentError(f"{expression}: the arrays differ, and only one can be taken")
    return parts[0]


def _apply(expression: Piped, x: Array) -> Array:
    args = expression.args
    try:
        match expression.step:
            case "transpose":
                return np.transpose(x, args)
            case "reshape":
                if x.shape != args[0]:
                    raise ValueError(f"the shape is {x.shape}")
                return x.reshape(args[1])
            case "flip":
                return np.flip(x, args)
            case "part":
                axis, start, stop, size = args
                if x.shape[axis] != size:
                    raise ValueError(f"the shape is {x.shape}")
                return np.take(x, range(start, stop), axis=axis)
            case "blocks":
                axis, *order = args
                pieces = np.split(x, len(order), axis=axis)
                return np.concatenate([pieces[n] for n in order], axis=axis)
            case _:
                return np.zeros_like(x)
    except (ValueError, IndexError) as error:
        raise errors.ArgumentError(f"{expression}: {error}") from None


def shape(expression: Expression, shapes: Mapping[str, Shape]) -> Shape:
    """Return the shape of what an expression stands for; raise `ArgumentError` if it stands for nothing."""
    arrays = {name: np.broadcast_to(np.int8(0), shapes[name]) for name in names(expression)}
    return evaluate(expression, arrays).shape


# turning equations around


def solve(
    equations: Iterable[tuple[Expression, Expression]], shapes: Mapping[str, Shape]
) -> tuple[dict[str, Expression], list[Expression]]:
    """Solve equations for the names on their left sides.

    Args:
        equations: Pairs of expressions that are equal.
        shapes: The shapes of the names on the left sides.

    Returns:
        An expression in the names of the right sides for each name that the equations determine, and the left sides
        that they leave undetermined. Of a sum, the first term is the whole, and the others are zero.
    """
    waiting = list(equations)
    solved: dict[str, list[Expression]] = {}
    partial: dict[tuple[Expression, int, int], dict[tuple[int, int], Expression]] = {}
    while waiting:
        left, right = waiting.pop(0)
        if isinstance(left, Name):
            solved.setdefault(left.name, []).append(right)
        elif isinstance(left, Joined):
            waiting += _pulled_apart(left, right, shapes)
        elif left.step == "part":
            axis, start, stop, size = left.args
            pieces = partial.setdefault((left.inner, axis, size), {})
            pieces[start, stop] = equal(pieces.get((start, stop), right), right)
            bounds = sorted(pieces)
            if [0, *(b for _, b in bounds)] == [*(a for a, _ in bounds), size]:
                waiting.append((left.inner, concat(axis, *(pieces[bound] for bound in bounds))))
                del partial[left.inner, axis, size]
        elif left.step != "zero":
            waiting.append((left.inner, _undo_step(left, right)))
    return {name: equal(*ways) for name, ways in solved.items()}, [inner for inner, _, _ in partial]


def _undo_step(left: Piped, right: Expression) -> Expression:
    args = left.args
    match left.step:
        case "transpose":
            return transpose(right, *(int(axis) for axis in np.argsort(args)))
        case "reshape":
            return reshape(right, args[1], args[0])
        case "flip":
            return flip(right, *args)
        case _:
            return blocks(right, args[0], *(int(n) for n in np.argsort(args[1:])))


def _pulled_apart(left: Joined, right: Expression, shapes: Mapping[str, Shape]) -> list[tuple[Expression, Expression]]:
    if left.how == "sum":
        return [(left.parts[0], right), *((piece, zero(right)) for piece in left.parts[1:])]
    if left.how == "equal":
        return [(piece, right) for piece in left.parts]
    sizes = [shape(piece, shapes)[left.axis] for piece in left.parts]
    starts = np.cumsum([0, *sizes]).tolist()
    return [
        (piece, part(right, left.axis, start, start + size, starts[-1]))
        for piece, start, size in zip(left.parts, starts, sizes, strict=False)
    ]


# text


def _step_text(step: str, args: tuple[Any, ...]) -> str:
    if step == "reshape":
        return f"reshape {shape_text(args[0])} -> {shape_text(args[1])}"
    if step == "part":
        return f"part {args[0]} {args[1]}:{args[2]}/{args[3]}"
    return " ".join([step, *map(str, args)])


def shape_text(shape: Shape) -> str:
    """Write a shape as `3x4`; that of a scalar is `scalar`."""
    return "x".join(map(str, shape)) or "scalar"


def _shape_from(text: str) -> Shape:
    return () if text == "scalar" else tuple(int(n) for n in text.split("x"))


def parse(text: str) -> Expression:
    """Read an expression."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[|;()]|[^\s|;()"]+', text)
    try:
        expression, rest = _parse(tokens)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise errors.ArgumentError(f"cannot read {text!r}: {error}") from None
    if rest:
        raise errors.ArgumentError(f"cannot read {text!r}: {' '.join(rest)!r} is left over")
    return expression


def _parse(tokens: list[str]) -> tuple[Expression, list[str]]:
    if not tokens or tokens[0] in "|;()":
        raise ValueError("a name is missing")
    expression: Expression
    if tokens[0] in JOINS and len(tokens) > 1 and "(" in tokens[1:3]:
        how, axis = tokens[0], int(tokens[1]) if tokens[0] == "concat" else 0
        tokens = tokens[tokens.index("(") :]
        parts = []
        while tokens[0] != ")":
            inner, tokens = _parse(tokens[1:])
            parts.append(inner)
            if not tokens:
                raise ValueError("a bracket is not closed")
        expression, tokens = Joined(how, axis, tuple(parts)), tokens[1:]
    else:
        name = tokens[0]
        expression, tokens = Name(json.loads(name) if name.startswith('"') else name), tokens[1:]
    while tokens and tokens[0] == "|":
        end = next((n for n, token in enumerate(tokens) if n and token in "|;()"), len(tokens))
        expression = apply_step(expression, *_step_from(tokens[1:end]))
        tokens = tokens[end:]
    if tokens and tokens[0] not in ";)":
        raise ValueError(f"{tokens[0]!r} is not expected here")
    return expression, tokens


def _step_from(words: list[str]) -> tuple[str, tuple[Any, ...]]:
    step, *args = words or [""]
    match step:
        case "reshape":
            before, arrow, after = args
            if arrow != "->" or math.prod(_shape_from(before)) != math.prod(_shape_from(after)):
                raise ValueError(f"{' '.join(words)!r} changes the number of entries")
            return step, (_shape_from(before), _shape_from(after))
        case "part":
            bounds, _, size = args[1].partition("/")
            start, _, stop = bounds.partition(":")
            return step, (int(args[0]), int(start), int(stop), int(size))
        case "transpose" | "flip" | "blocks" | "zero":
            return step, tuple(int(n) for n in args)
        case _:
            raise ValueError(f"there is no step {step!r}; there are {', '.join(STEPS)}")
