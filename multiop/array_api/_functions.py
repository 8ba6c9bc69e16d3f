"""Functions of the standard whose parameters are not those of an op."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from multiop import errors
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.frontends.conversion import op_cast, op_dtype, op_shape, operands
from multiop.frontends.creation import op_copy, op_ones, op_zeros
from multiop.frontends.elementwise import (
    op_clip,
    op_conj,
    op_imag,
    op_multiply,
    op_real,
    op_subtract,
)
from multiop.frontends.indexing import op_get_item, op_take, op_take_along_axis
from multiop.frontends.logical import op_nonzero, op_not_equal
from multiop.frontends.reduction import op_cumprod, op_cumsum, op_diff, op_prod, op_std, op_sum, op_var
from multiop.frontends.shapes import (
    op_broadcast_arrays,
    op_concatenate,
    op_flip,
    op_meshgrid,
    op_reshape,
    op_stack,
    op_swapaxes,
    op_unstack,
)
from multiop.frontends.sorting import op_argsort, op_isin, op_lexsort, op_searchsorted, op_sort

from ._data_types import result_type


def clip(x: ArrayLike, /, min: Any = None, max: Any = None) -> Tensor:
    """Limit the entries of `x` from below and above."""
    return op_clip(x, min, max)


def positive(x: ArrayLike, /) -> Tensor:
    """Return `+x`."""
    return op_copy(x)


def take_along_axis(x: ArrayLike, indices: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """Return the entries at `indices` along an axis."""
    return op_take_along_axis(x, indices, axis)


def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """Swap the last two axes."""
    return op_swapaxes(x, -1, -2)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """Compute the inner products along an axis, of the complex conjugate of `x1`: it is of one size in both."""
    x1, x2 = operands(x1, x2)
    shapes = op_shape(x1), op_shape(x2)
    ndim = builtins.max(map(len, shapes))
    last = args.single_axis(axis, ndim) - ndim  # counted from the end, it is the same axis of both
    n1, n2 = (shape[last] if len(shape) >= -last else None for shape in shapes)
    if n1 is None or n1 != n2:
        raise errors.ArgumentError(f"vecdot: axis {axis} must be of one size in both, not in tensors of {shapes}")
    return op_sum(op_multiply(op_conj(x1), x2), axis, dtype=result_type(x1, x2))


def broadcast_arrays(*arrays: ArrayLike) -> tuple[Tensor, ...]:
    """Return the arrays in the shape that they have together."""
    return tuple(op_broadcast_arrays(*arrays))


def meshgrid(*arrays: ArrayLike, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of each point of the grid that the arrays span."""
    return tuple(op_meshgrid(*arrays, indexing=indexing))


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis."""
    return tuple(op_unstack(x, None, axis))


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis; `None` joins them flat."""
    if axis is None:
        return op_concatenate([op_reshape(x, (-1,)) for x in arrays], 0)
    return op_concatenate(arrays, axis)


def reshape(x: ArrayLike, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """Return the entries of `x` in another shape."""
    if copy is False:
        raise errors.ArgumentError("reshape: copy=False is not known to hold on every backend; leave it out")
    return op_copy(op_reshape(x, shape)) if copy else op_reshape(x, shape)


def count_nonzero(x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Count the entries that are not zero."""
    return op_sum(op_cast(x, "bool"), axis, keepdims, "int32")


def searchsorted(x1: ArrayLike, x2: ArrayLike, /, *, side: str = "left", sorter: ArrayLike | None = None) -> Tensor:
    """Return where the entries of `x2` belong in sorted `x1`, or in `x1` as `sorter` sorts it."""
    return op_searchsorted(x1 if sorter is None else op_take(x1, sorter, 0), x2, side)


def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Tensor:
    """Say which entries of `x1` are among those of `x2`, or which are not."""
    return op_isin(x1, x2, False, invert)


def argsort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort `x`; the order of equal entries is kept."""
    return op_argsort(x, axis, descending)


def sort(x: ArrayLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sort along an axis."""
    return op_flip(op_sort(x, axis), axis) if descending else op_sort(x, axis)


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: ArrayLike, /) -> UniqueAll:
    """Return the distinct values, the index of the first of each, where each entry is among them, and how many.

    Each NaN is distinct from any other, as the standard has it; `op_unique` takes all NaN for one value.
    """
    flat = op_reshape(x, (-1,))
    is_complex = op_dtype(flat) in dtypes.COMPLEX
    order = op_lexsort(op_stack([op_imag(flat), op_real(flat)])) if is_complex else op_argsort(flat)
    y = op_take(flat, order)
    is_new = op_not_equal(op_get_item(y, slice(1, None)), op_get_item(y, slice(-1)))
    is_new = op_concatenate([op_ones(builtins.min(1, op_shape(y)[0]), "bool"), is_new])
    (first,) = op_nonzero(is_new)
    place = op_subtract(op_cumsum(op_cast(is_new, "int32")), 1)
    counts = op_diff(op_concatenate([first, [op_shape(y)[0]]]))
    inverse = op_reshape(op_take(place, op_argsort(order)), op_shape(x))
    return UniqueAll(op_take(y, first), op_take(order, first), inverse, counts)


def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """Return the distinct values, and how many of each there are."""
    values, _, _, counts = unique_all(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """Return the distinct values, and where each entry is among them."""
    values, _, inverse_indices, _ = unique_all(x)
    return UniqueInverse(values, inverse_indices)


def unique_values(x: ArrayLike, /) -> Tensor:
    """Return the distinct values."""
    return unique_all(x).values


def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
) -> Tensor:
    """Return the sums of the first entries along an axis; `include_initial` begins with 0."""
    return _cumulate(op_cumsum, op_zeros, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DType = None, include_initial: bool = False
) -> Tensor:
    """Return the products of the first entries along an axis; `include_initial` begins with 1."""
    return _cumulate(op_cumprod, op_ones, x, axis, dtype, include_initial)


def _cumulate(op: Any, initial: Any, x: Any, axis: int | None, dtype: DType, include_initial: bool) -> Tensor:
    shape = op_shape(x)
    if axis is None and len(shape) > 1:
        raise errors.ArgumentError(f"axis is needed, since x has {len(shape)} dimensions")
    axis = args.single_axis(-1 if axis is None else axis, len(shape))
    y = op(x, axis, dtype)
    if not include_initial:
        return y
    first = initial((*shape[:axis], 1, *shape[axis + 1 :]), op_dtype(y))
    return op_concatenate([first, y], axis)


def sum(x: ArrayLike, /, *, axis: Any = None, dtype: DType = None, keepdims: bool = False) -> Tensor:
    """Sum over axes."""
    return op_sum(x, axis, keepdims, dtype)


def prod(x: ArrayLike, /, *, axis: Any = None, dtype: DType = None, keepdims: bool = False) -> Tensor:
    """Multiply over axes."""
    return op_prod(x, axis, keepdims, dtype)


def var(x: ArrayLike, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the mean squared distance from the mean, where `correction` is subtracted from the count."""
    y = op_var(x, axis, keepdims)
    return op_multiply(y, _correction(x, axis, correction)) if correction else y


def std(x: ArrayLike, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the square root of the variance."""
    y = op_std(x, axis, keepdims)
    return op_multiply(y, math.sqrt(_correction(x, axis, correction))) if correction else y


def _correction(x: ArrayLike, axis: Any, correction: float) -> float:
    shape = op_shape(x)
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = math.prod(shape[k] for k in axes)
    return count / (count - correction) if count > correction else math.inf


def diff(
    x: ArrayLike,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Tensor:
    """Return the `n`-th differences of neighbours along an axis, with what is put before and after `x`."""
    parts = [part for part in (prepend, x, append) if part is not None]
    return op_diff(op_concatenate(parts, axis) if len(parts) > 1 else x, n, axis)
