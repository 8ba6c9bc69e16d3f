"""Functions that are known at points: interpolation, slopes, phases."""

from __future__ import annotations

import math
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._values import args, dtypes as _dtypes, host
from multiop._values.types import ArrayLike, Axis, Tensor
from multiop.frontends.conversion import op_cast, op_convert_to_tensor, op_dtype, op_shape, operands, widen_halves
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_clip,
    op_divide,
    op_floor_divide,
    op_maximum,
    op_minimum,
    op_mod,
    op_multiply,
    op_negative,
    op_subtract,
)
from multiop.frontends.indexing import op_take
from multiop.frontends.logical import (
    op_equal,
    op_greater,
    op_isinf,
    op_isnan,
    op_less,
    op_not_equal,
    op_where,
)
from multiop.frontends.reduction import op_cumsum, op_diff
from multiop.frontends.shapes import op_concatenate, op_moveaxis
from multiop.frontends.sorting import op_argsort, op_searchsorted

# composites


@boundary
@composite
def op_interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Tensor:
    """Interpolate linearly between the values `fp` of a function at the points `xp`.

    Args:
        x: Tensor of any shape, not complex: where to interpolate.
        xp: Vector, not complex, that increases; with a `period`, in any order. It is not checked.
        fp: Vector of as many entries, the values there.
        left: Value for an `x` below the first point; by default the first value.
        right: Value for an `x` beyond the last point; by default the last value.
        period: Number that is not 0, if the function is periodic; `left` and `right` are not used then.

    Returns:
        Tensor of the shape of `x` and the promoted dtype, `floatx` for integers: NaN where `x` is NaN.

    Raises:
        ArgumentError: `xp` and `fp` are not vectors of one size that is not 0, or `period` is 0.
        DTypeError: `x` or `xp` is complex.

    Gradient:
        Goes to `x`, `xp`, `fp`, `left` and `right`. At a point it is, for `x`, the slope on the side of larger numbers,
        at the last point that on the side of smaller ones.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_interp([0.5, 2.0, 9.0], [0, 1, 3], [1, 2, 4])).tolist()
        [1.5, 3.0, 4.0]
    """
    x, xp, fp = operands(x, xp, fp)
    for name, points in (("x", x), ("xp", xp)):
        if op_dtype(points) in _dtypes.COMPLEX:
            raise errors.DTypeError(f"{name}: {op_dtype(points)} is not accepted: complex numbers have no order")
    n, dtype = _points(xp, fp), _dtypes.to_floating(_dtypes.result_type(*map(op_dtype, (x, xp, fp))))
    fp, real = widen_halves(op_cast(fp, dtype)), _dtypes.REAL_PART.get(dtype, dtype)
    x, xp = widen_halves(op_cast(x, real)), widen_halves(op_cast(xp, real))
    if period is not None:
        if not (period := abs(args.number(period, "period"))):
            raise errors.ArgumentError("period must not be 0")
        x, xp, left, right = op_mod(x, period), op_mod(xp, period), None, None
        order = op_argsort(xp)
        xp, fp = op_take(xp, order, 0), op_take(fp, order, 0)
        xp = op_concatenate([op_subtract(xp[-1:], period), xp, op_add(xp[:1], period)])
        fp, n = op_concatenate([fp[-1:], fp, fp[:1]]), n + 2
    y = op_cast(_interpolate(x, xp, fp, n), dtype)
    y = y if left is None else op_where(op_less(x, xp[0]), left, y)
    return y if right is None else op_where(op_greater(x, xp[-1]), right, y)


def _points(xp: Tensor, fp: Tensor) -> int:
    """Return how many points there are."""
    shape, values = op_shape(xp), op_shape(fp)
    if len(shape) != 1 or shape != values or shape[0] == 0:
        raise errors.ArgumentError(f"xp and fp must be vectors of one size that is not 0, not of {shape} and {values}")
    size: int = shape[0]
    return size


def _interpolate(x: Tensor, xp: Tensor, fp: Tensor, n: int) -> Tensor:
    if n == 1:  # the same point twice
        xp, fp, n = op_concatenate([xp, xp]), op_concatenate([fp, fp]), 2
    after = op_minimum(op_maximum(op_searchsorted(xp, x, "right"), 1), n - 1)
    before = op_subtract(after, 1)
    (x1, f1), (x2, f2) = ((op_take(xp, at, 0), op_take(fp, at, 0)) for at in (before, after))
    inside = op_clip(x, xp[0], xp[-1])
    width, is_one = op_subtract(x2, x1), op_equal(x1, x2)
    unit = op_where(op_isinf(width), 0.5, 1.0)  # in which the distance of large points does not overflow
    x1, x2, at = op_multiply(x1, unit), op_multiply(x2, unit), op_multiply(inside, unit)
    step, rest, width = op_subtract(at, x1), op_subtract(at, x2), op_where(is_one, 1.0, op_subtract(x2, x1))
    # half of the rise, which does not overflow either; there is no slope at points that coincide, nor outside of all
    is_flat = is_one | op_not_equal(x, inside)
    rise = op_where(is_flat, 0.0, op_subtract(op_multiply(f2, 0.5), op_multiply(f1, 0.5)))
    first = op_add(f1, op_multiply(op_divide(op_multiply(step, 2.0), width), rise))
    second = op_add(f2, op_multiply(op_divide(op_multiply(rest, 2.0), width), rise))
    is_first = step < op_negative(rest)  # from the nearer point, whose value is exact there
    y, other = op_where(is_first, first, second), op_where(is_first, second, first)
    # beside an infinity
    other = op_where(op_equal(at, x2), f2, other)
    other = op_where(op_equal(at, x1) | op_equal(f1, f2), f1, other)
    return op_where(op_isnan(y) & ~op_isnan(x), other, y)


@boundary
@composite
def op_gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axis = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """Estimate slopes of a function from its values on a grid: by differences of two neighbours, or of three points.

    Args:
        f: Tensor of the values.
        *varargs: How far apart the points are: nothing for 1; a number for all axes; or for each axis a number, or a
            vector of the coordinates.
        axis: Axis or axes; by default all of them.
        edge_order: 1 for the difference of the two outermost values at each end, 2 for a parabola through three.

    Returns:
        Tensor of the shape of `f`, or a tuple of them if there are several axes; integers and bool become `floatx`.

    Raises:
        ArgumentError: `axis` is out of range or named twice, or has no more than `edge_order` entries; `edge_order` is
            neither 1 nor 2; or `varargs` are neither one nor as many as axes, or do not fit.

    Gradient:
        Flows to the distances and coordinates as well.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_gradient([1.0, 2.0, 4.0, 7.0])).tolist()
        [1.0, 1.5, 2.5, 3.0]

    Source: Fornberg, "Generation of Finite Difference Formulas on Arbitrarily Spaced Grids", 1988.
    """
    f, *steps = active().together(f, *varargs)
    f = op_convert_to_tensor(f)
    shape = op_shape(f)
    axes = args.axes(axis, len(shape))
    if type(edge_order) is not int or edge_order not in (1, 2):
        raise errors.ArgumentError(f"edge_order must be 1 or 2, got {edge_order!r}")
    if len(steps) not in (0, 1, len(axes)):
        raise errors.ArgumentError(f"varargs are {len(steps)} distances for {len(axes)} axes")
    if len(steps) == 1 and len(axes) > 1 and _shape_of(steps[0]):
        raise errors.ArgumentError(f"varargs: one vector of coordinates for {len(axes)} axes")
    steps = steps * len(axes) if len(steps) == 1 else steps or [1.0] * len(axes)
    dtypes = [_dtypes.of_scalar(h) if host.is_scalar(h) else op_dtype(h) for h in steps]
    dtype = _dtypes.to_floating(_dtypes.result_type(op_dtype(f), *dtypes))
    y = widen_halves(op_cast(f, dtype))
    slopes = []
    for dim, h in zip(axes, steps, strict=True):
        n = shape[dim]
        if not isinstance(n, int) or n <= edge_order:
            raise errors.ArgumentError(f"axis {dim} has {n} entries, edge_order {edge_order} needs {edge_order + 1}")
        if _shape_of(h) not in ((), (n,)):
            raise errors.ArgumentError(f"varargs: coordinates of shape {_shape_of(h)} for {n} entries of axis {dim}")
        h = h if host.is_scalar(h) else widen_halves(op_cast(h, dtype))
        h = op_diff(h) if _shape_of(h) else h
        slopes.append(op_cast(op_moveaxis(_slopes(op_moveaxis(y, dim, -1), h, edge_order), -1, dim), dtype))
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _shape_of(h: Any) -> tuple[Any, ...]:
    return () if host.is_scalar(h) else op_shape(h)


def _slopes(y: Any, h: Any, edge_order: int) -> Any:
    """Return the slopes along the last axis, of points at distances `h`: a number, or a vector of them."""
    secants = op_divide(op_diff(y), h)
    first, last, left, right = secants[..., :1], secants[..., -1:], secants[..., :-1], secants[..., 1:]
    if _shape_of(h):
        both = op_add(h[:-1], h[1:])
        before, after = op_divide(h[:-1], both), op_divide(h[1:], both)
        inner = op_add(op_multiply(left, after), op_multiply(right, before))
        before, after = before[:1], after[-1:]
    else:
        before = after = 0.5
        inner = op_divide(op_multiply(op_subtract(y[..., 2:], y[..., :-2]), 0.5), h)
    if edge_order == 2:
        first = op_add(first, op_multiply(op_subtract(first, right[..., :1]), before))
        last = op_add(last, op_multiply(op_subtract(last, left[..., -1:]), after))
    return op_concatenate([first, inner, last], -1)


@boundary
@composite
def op_unwrap(x: ArrayLike, discont: float | None = None, axis: int = -1, period: float = 6.283185307179586) -> Tensor:
    """Add multiples of `period` to the entries of `x` along `axis`, so that neighbours are at most half of it apart.

    Args:
        x: Tensor, not complex: angles in radians, or another number that is known up to a period.
        discont: The least jump that is removed; by default, and at least, half of `period`.
        axis: Dimension along which the entries follow each other.
        period: Positive number, by default 2 pi.

    Returns:
        Tensor of the shape and dtype of `x`; integers become `floatx`, or at least `int32` if `period` is an int. What
        follows an infinity or NaN is NaN.

    Raises:
        ArgumentError: `axis` is out of range, or `period` is not positive.
        DTypeError: `x` is complex.

    Gradient:
        1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_unwrap([3, 4, 1, 2], period=4)).tolist()
        [3, 4, 5, 6]
    """
    x = op_convert_to_tensor(x)
    dtype = op_dtype(x)
    if dtype in _dtypes.COMPLEX:
        raise errors.DTypeError(f"{dtype} is not accepted: complex numbers have no order")
    if not 0 < args.number(period, "period") < math.inf:
        raise errors.ArgumentError(f"period must be positive, got {period}")
    if dtype not in _dtypes.FLOATING:
        whole = _dtypes.result_type(dtype, "int32")
        dtype = whole if isinstance(period, int) else _dtypes.to_floating(dtype)
    least = period / 2 if discont is None else args.number(discont, "discont")
    dim = args.single_axis(axis, len(op_shape(x)))
    x = widen_halves(op_cast(x, dtype))
    jump = op_diff(active().stop_gradient(x), 1, dim)
    twice = op_multiply(jump, 2)
    up = op_floor_divide(op_subtract(period, twice), 2 * period)  # a jump of half a period stays, whatever its sign
    turns = op_where(op_greater(jump, 0), up, op_negative(op_floor_divide(op_add(twice, period), 2 * period)))
    turns = op_where(op_less(op_abs(jump), least), op_multiply(turns, 0), turns)
    before = (slice(None),) * dim
    moved = op_add(x[(*before, slice(1, None))], op_multiply(op_cumsum(turns, dim), period))
    return op_cast(op_concatenate([x[(*before, slice(None, 1))], moved], dim), dtype)
