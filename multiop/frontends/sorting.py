"""Sorting and searching."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading import registry
from multiop._loading.registry import active, composite
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Tensor

from .conversion import on_device_of, op_cast, op_convert_to_tensor, op_dtype, op_shape, operands
from .creation import op_arange, op_full_like, op_zeros_like
from .elementwise import op_add, op_divide, op_minimum, op_multiply, op_subtract
from .indexing import op_take, op_take_along_axis
from .logical import (
    op_equal,
    op_greater,
    op_greater_equal,
    op_isfinite,
    op_isnan,
    op_less,
    op_logical_and,
    op_logical_not,
    op_logical_or,
    op_not_equal,
    op_where,
)
from .reduction import op_cumsum, op_max, op_min, op_sum
from .shapes import (
    op_broadcast_to,
    op_concatenate,
    op_expand_dims,
    op_flip,
    op_moveaxis,
    op_pad,
    op_reshape,
    op_squeeze,
    op_stack,
    op_unstack,
)


@boundary
def op_sort(x: ArrayLike, axis: int | None = -1) -> Tensor:
    """Sort the entries of `x` along `axis`, smallest first.

    Args:
        x: Tensor, not complex.
        axis: Dimension to sort along; `None` sorts `x` as if it were flattened.

    Returns:
        Tensor of the shape and dtype of `x`; NaN comes last.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to where each entry came from.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sort([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    return active().op_sort(x, axis)


@boundary
def op_argsort(x: ArrayLike, axis: int | None = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort `x` along `axis`.

    Args:
        x: Tensor, not complex; a scalar counts as a vector of one entry, as in NumPy.
        axis: Dimension to sort along; `None` sorts `x` as if it were flat.
        descending: Whether the largest entry comes first.

    Returns:
        `int32` tensor of the shape of `x`. Equal entries keep their order; NaN counts as larger than anything else.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_argsort([3, 1, 2])).tolist()
        [1, 2, 0]
    """
    backend: Any = active() if registry.is_overridden else registry._backend
    axis = None if axis in (0, -1) and not (x.ndim if hasattr(x, "ndim") else len(backend.op_shape(x))) else axis
    if not descending:
        return backend.op_argsort(x, axis)
    x, axis = (op_reshape(x, -1), 0) if axis is None else (x, axis)
    backwards = backend.op_argsort(op_flip(x, axis), axis)  # after the flip, the last of equal entries comes first
    return op_flip(op_subtract(op_shape(x)[axis] - 1, backwards), axis)


@boundary
def op_searchsorted(sorted_sequence: ArrayLike, values: ArrayLike, side: str = "left") -> Tensor:
    """Return the insertion indices of `values` in a sorted vector, or of each row of `values` in its own sorted vector.

    Args:
        sorted_sequence: Vector sorted in ascending order, with NaN last; or tensor of shape `(..., n)` of such vectors.
        values: Tensor of any shape for a single vector, or of shape `(..., m)` for several; NaN counts as larger than
            anything else.
        side: `"left"`: before equal entries; `"right"`: after them.

    Returns:
        `int32` tensor of the shape of `values`.

    Raises:
        ArgumentError: `sorted_sequence` is a scalar, or the shapes do not fit, or `side` is unknown.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_searchsorted([1, 3, 5], [3, 4])).tolist()
        [1, 2]
    """
    return active().op_searchsorted(sorted_sequence, values, args.choice(side, ("left", "right"), "side"))


@boundary
def op_top_k(
    x: ArrayLike,
    k: int,
    sorted: bool = True,  # noqa: A002
    is_stable: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the `k` largest entries along the last axis, and their indices.

    Args:
        x: Tensor of at least one dimension, not complex.
        k: How many.
        sorted: Whether they must come largest first; they do either way.
        is_stable: Whether equal entries must keep their order; they do either way.

    Returns:
        Tuple of the values, of the dtype of `x`, and the `int32` indices, both with `k` entries in the last dimension.
        NaN counts as larger than anything else; of equal entries the one with the lower index comes first.

    Raises:
        ArgumentError: `k` is negative or larger than the last dimension, or `x` has no dimension.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to where each value came from.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(y).tolist() for y in multiop.op_top_k([5, 2, 9, 5], 3)]
        [[9, 5, 5], [2, 0, 3]]
    """
    return active().op_top_k(x, args.count(k, "k"), sorted)


@boundary
def op_digitize(x: ArrayLike, bins: ArrayLike) -> Tensor:
    """Return the number of the bin that each entry of `x` falls into.

    Args:
        x: Tensor of any shape, not complex.
        bins: Vector of the bins' bounds, smallest first.

    Returns:
        `int32` tensor of the shape of `x`: `i` where `bins[i - 1] <= x < bins[i]`, 0 below all bounds, and their
        number above them and for NaN.

    Raises:
        ArgumentError: `bins` is not a vector, or not sorted (in compiled or mapped code that is not checked).
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_digitize([0.5, 1.0, 7.0], [1.0, 2.0])).tolist()
        [0, 1, 2]
    """
    return active().op_digitize(x, bins)


@boundary
def op_bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """Count how often each integer occurs.

    Args:
        x: Vector of integers, none of them negative; or matrix, whose rows are counted separately.
        weights: Tensor of the shape of `x`, whose entries are added up instead of ones.
        minlength: The minimum length of the result.
        sparse: `False`: multiop has dense tensors only.

    Returns:
        Vector of length `max(minlength, max(x) + 1)`, or a matrix of such rows. The length depends on values, so `jit`
        and `vmap` raise. The dtype is `int32`, or that of `weights`; for integer weights, it has at least 32 bits.

    Raises:
        ArgumentError: `x` is neither a vector nor a matrix, or holds a negative number, or `weights` does not fit it.
        DTypeError: `x` does not hold integers.
        UnsupportedError: A sparse tensor was requested.

    Gradient:
        Flows to `weights`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bincount([1, 2, 2])).tolist()
        [0, 1, 2]
    """
    if sparse:
        raise errors.UnsupportedError("multiop has dense tensors only; leave sparse out")
    minlength = args.count(minlength, "minlength")
    if weights is None:
        x = active().convert(x)
    else:
        x, weights = operands(x, weights)
        weights = op_cast(weights, "int32") if op_dtype(weights) in _NARROW else weights
    shape = op_shape(x)
    if len(shape) not in (1, 2):
        raise errors.ArgumentError(f"x must be a vector or a matrix, got {args.describe(x)}")
    if weights is not None and op_shape(weights) not in (shape, shape if len(shape) == 1 else ()):
        raise errors.ArgumentError(f"weights {args.describe(weights)} do not fit {args.describe(x)}")
    if len(shape) == 1:
        return active().op_bincount(x, weights, minlength)
    args.integers(op_dtype(x), "x")
    weights = on_device_of(x, op_convert_to_tensor(1)) if weights is None else weights
    bins = op_shape(active().op_bincount(op_reshape(x, -1), None, minlength))[0]
    first = on_device_of(x, op_multiply(op_expand_dims(op_arange(shape[0]), 1), bins))
    flat = op_reshape(op_add(op_cast(x, "int32"), first), -1)  # each row gets its own bins
    counts = active().op_bincount(flat, op_reshape(op_broadcast_to(weights, shape), -1), shape[0] * bins)
    return op_reshape(counts, (shape[0], bins))


_NARROW = ("bool", "int8", "int16", "uint8", "uint16")


# composites


@boundary
def op_in_top_k(targets: ArrayLike, predictions: ArrayLike, k: int) -> Tensor:
    """Say for each row of `predictions` whether its target is among the `k` largest.

    Args:
        targets: Integer tensor of the shape of `predictions` without the last dimension.
        predictions: Tensor of at least one dimension, not complex.
        k: How many; if it exceeds the number of predictions, all of them.

    Returns:
        Bool tensor of the shape of `targets`: whether fewer than `k` predictions are larger than the target's. All
        that tie for the last place are therefore among the largest. NaN counts as larger than anything else, but a
        target whose own prediction is NaN, or that is out of range, is not among them.

    Raises:
        ArgumentError: The shapes do not fit, or `k` is negative.
        DTypeError: `targets` are not integers, or `predictions` are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_in_top_k([1, 0], [[0.1, 0.6, 0.3], [0.1, 0.6, 0.3]], 2)).tolist()
        [True, False]
    """
    k = args.count(k, "k")
    targets, predictions = operands(targets, predictions)
    *outer, classes = op_shape(predictions) or (0,)
    if tuple(outer) != op_shape(targets) or not op_shape(predictions):
        raise errors.ArgumentError(f"targets {args.describe(targets)} do not fit {args.describe(predictions)}")
    inside = op_logical_and(op_greater_equal(targets, 0), op_less(targets, classes))
    if classes == 0:
        return inside
    places = op_expand_dims(op_where(inside, targets, op_zeros_like(targets)), -1)
    own = op_take_along_axis(predictions, places, -1)
    above = op_sum(op_cast(op_logical_or(op_greater(predictions, own), op_isnan(predictions)), "int32"), -1)
    return op_logical_and(op_logical_and(inside, op_logical_not(op_isnan(op_squeeze(own, -1)))), op_less(above, k))


@boundary
def op_argpartition(x: ArrayLike, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Return indices that put the entry of rank `kth` along `axis` in its sorted place, after the smaller ones.

    Args:
        x: Tensor, not complex.
        kth: A rank, or a sequence of them; negative ones count from the end.
        axis: Dimension to partition along; `None` partitions `x` as if it were flattened.

    Returns:
        `int32` tensor of the shape of `x`: `op_argsort`, which partitions at every rank. NaN comes last.

    Raises:
        ArgumentError: `kth` or `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_argpartition([7, 1, 5], 1)).tolist()
        [1, 2, 0]
    """
    order = op_argsort(x, axis)
    shape = op_shape(order)
    args.axes(list(kth) if isinstance(kth, Sequence) else kth, shape[-1 if axis is None else axis], "kth")
    return order


@boundary
def op_unique(
    x: ArrayLike,
    sorted: bool = True,  # noqa: A002
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Return the different entries of `x`, smallest first.

    Args:
        x: Tensor, not complex. All NaN are one entry, but in slices along `axis` (of more than one dimension) each
            differs from every other.
        sorted: Whether they must be in order, smallest first; they are in any case.
        return_index: Whether to return where each occurs first.
        return_inverse: Whether to return, for each entry of `x`, its index among the different entries.
        return_counts: Whether to return how often each occurs.
        axis: Dimension whose slices are compared, in lexicographic order; by default the single entries of the
            flattened `x` are compared.
        size: How many to return: the first ones; if there are fewer, the result is padded. By default as many as there
            are, which depends on values, so `jit` and `vmap` raise an error.
        fill_value: The value to pad with, 0 by default. The indices and counts of the padding are 0.

    Returns:
        Tensor of the dtype of `x`; with any of the options, a tuple of it and the requested `int32` tensors, in
        the order of the options. The inverse has the shape of `x`, or that of `axis`. With `size`, an entry of it may
        be `size` or larger: its value is not among the first.

    Raises:
        ArgumentError: `axis` is out of range, or `size` negative.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the first of equal entries.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(y).tolist() for y in multiop.op_unique([3, 1, 3], return_counts=True)]
        [[1, 3], [1, 2]]
    """
    return _different(x, return_index, return_inverse, return_counts, axis, size, fill_value)


@boundary
def op_lexsort(keys: Sequence[ArrayLike] | Tensor, axis: int = -1) -> Tensor:
    """Return the order that sorts by several keys: by the last one, and where that is the same, by the one before it.

    Args:
        keys: Tensors of one shape, or one tensor whose first dimension counts them.
        axis: The axis of each key along which to sort.

    Returns:
        `int32` tensor of the shape of a key. What is the same in all keys stays in order.

    Raises:
        ArgumentError: There are no keys, their shapes differ, or `axis` is out of range.
        DTypeError: A key is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_lexsort([[2, 1, 3], [1, 1, 0]])).tolist()
        [2, 1, 0]
    """
    rows = list(op_unstack(keys) if active().is_tensor(keys) else keys)
    rows = [op_convert_to_tensor(key) for key in active().together(*rows)] if rows else []
    if not rows or any(op_shape(row) != op_shape(rows[0]) for row in rows):
        raise errors.ArgumentError(f"keys must be tensors of one shape, got {[op_shape(row) for row in rows]}")
    order = op_argsort(rows[0], axis)
    for row in rows[1:]:
        order = op_take_along_axis(order, op_argsort(op_take_along_axis(row, order, axis), axis), axis)
    return order


@boundary
@composite
def op_isin(x1: ArrayLike, x2: ArrayLike, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Say which entries of `x1` are among those of `x2`.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor of any shape, not complex.
        assume_unique: Whether both are free of duplicates; it has no effect.
        invert: Whether to say which entries are not among them instead.

    Returns:
        Bool tensor of the shape of `x1`. NaN is equal to nothing.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isin([0, 1, 2, 5], [0, 2])).tolist()
        [True, False, True, False]
    """
    x1, x2 = operands(x1, x2)
    entries = op_sort(x2, None)
    n = op_shape(entries)[0]
    if n == 0:
        return op_full_like(x1, invert, "bool")
    found = op_take(entries, op_minimum(op_searchsorted(entries, x1), n - 1), 0)
    return op_not_equal(x1, found) if invert else op_equal(x1, found)


@boundary
def op_histogram(
    x: ArrayLike,
    bins: int = 10,
    range: tuple[float, float] | None = None,  # noqa: A002
) -> tuple[Tensor, Tensor]:
    """Count the entries of `x` in bins of equal width.

    Args:
        x: Vector, not complex.
        bins: How many bins.
        range: The lower and the upper bound; by default the smallest and the largest entry. If they are equal, each is
            moved outwards by 0.5.

    Returns:
        Tuple of the `int32` counts and of the `bins + 1` bounds, floats of the dtype of `x` or `floatx`. A bin holds
        its lower bound, and the last one its upper bound too; entries out of `range`, and NaN, are not counted.
        Without a `range`, where `x` holds NaN or infinity, the bounds are NaN and nothing is counted.

    Raises:
        ArgumentError: `x` has more than one dimension, `bins` is not positive, or `range` is not two increasing
            numbers.
        DTypeError: `x` is complex; complex numbers have no order.

    Gradient:
        Flows through the bounds to the smallest and the largest entry.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(y).tolist() for y in multiop.op_histogram([1.0, 2.0, 2.0, 4.0], bins=3)]
        [[1, 2, 1], [1.0, 2.0, 3.0, 4.0]]
    """
    bins = args.count(bins, "bins", 1)
    x = op_convert_to_tensor(x)
    if len(op_shape(x)) > 1:
        raise errors.ArgumentError(f"x must be a vector, got {args.describe(x)}")
    dtype = dtypes.to_floating(op_dtype(x))
    x = op_cast(op_reshape(x, -1), dtype)
    if range is not None and not (len(range) == 2 and -math.inf < range[0] <= range[1] < math.inf):
        raise errors.ArgumentError(f"range must be two increasing numbers, got {range!r}")
    wide = op_cast(x, "float32") if dtype in ("float16", "bfloat16") else x
    if range is None and op_shape(x)[0] > 0:
        ends = op_stack([op_min(wide), op_max(wide)])
    else:
        ends = op_convert_to_tensor((0.0, 1.0) if range is None else [float(end) for end in range], op_dtype(wide))
        ends = on_device_of(x, ends)
    apart = op_where(op_equal(ends[:1], ends[1:]), [-0.5, 0.5], [0.0, 0.0])
    ends = op_add(ends, op_cast(apart, op_dtype(ends)))
    span = op_subtract(ends[1:], ends[:1])
    finite = op_isfinite(span)
    inner = op_divide(op_multiply(span, [float(n) for n in builtins.range(bins)]), float(bins))
    bounds = op_concatenate([op_add(ends[:1], inner), ends[1:]])
    bounds = op_cast(op_where(finite, bounds, math.nan), dtype)
    entries = op_sort(x)
    below = op_searchsorted(entries, bounds[:-1])
    upto = op_concatenate([below[1:], op_searchsorted(entries, bounds[-1:], "right")])
    return op_where(finite, op_subtract(upto, below), 0), bounds


@boundary
def op_setdiff1d(x1: ArrayLike, x2: ArrayLike, assume_unique: bool = False) -> Tensor:
    """Return the different entries of `x1` that are not among those of `x2`, smallest first.

    Args:
        x1: Tensor, not complex, that is flattened.
        x2: Tensor, not complex.
        assume_unique: Whether `x1` has no duplicates; its entries then stay in their order.

    Returns:
        Vector of the dtype of `x1`. Its size depends on values, so `jit` and `vmap` raise an error. NaN is equal to
        nothing in `x2`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the first of equal entries.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_setdiff1d([3, 1, 2, 3], [2, 5])).tolist()
        [1, 3]
    """
    x1, x2 = operands(x1, x2)
    x1 = op_reshape(x1, -1) if assume_unique else _different(x1)
    return _select(x1, op_isin(x1, x2, invert=True))


@boundary
def op_union1d(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Return the different entries of `x1` and `x2`, smallest first.

    Args:
        x1: Tensor, not complex, that is flattened.
        x2: Tensor, not complex, that is flattened.

    Returns:
        Vector of the promoted dtype. Its size depends on values, so `jit` and `vmap` raise an error. All NaN are one
        entry.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the first of equal entries.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_union1d([3, 1], [2, 3])).tolist()
        [1, 2, 3]
    """
    x1, x2 = operands(x1, x2)
    return _different(op_concatenate([op_reshape(x1, -1), op_reshape(x2, -1)]))


@boundary
def op_intersect1d(
    x1: ArrayLike, x2: ArrayLike, assume_unique: bool = False, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Return the different entries that `x1` and `x2` have in common, smallest first.

    Args:
        x1: Tensor, not complex, that is flattened.
        x2: Tensor, not complex, that is flattened.
        assume_unique: Whether both are free of duplicates; it has no effect.
        return_indices: Whether to return where each occurs first in the flattened `x1`, and in `x2`.

    Returns:
        Vector of the promoted dtype; with `return_indices` also two `int32` vectors. Their size depends on values, so
        `jit` and `vmap` raise an error. NaN is equal to nothing.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the first of equal entries of `x1`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_intersect1d([3, 1, 3], [2, 3, 1])).tolist()
        [1, 3]
    """
    xs = operands(x1, x2)
    dtype = dtypes.result_type(*map(op_dtype, xs))
    (x1, at1), (x2, at2) = (_different(op_cast(x, dtype), return_index=True) for x in xs)
    in1, in2 = op_isin(x1, x2), op_isin(x2, x1)
    values = _select(x1, in1)
    return (values, _select(at1, in1), _select(at2, in2)) if return_indices else values


def _select(x: Any, mask: Any) -> Any:
    """Return the entries of `x` where `mask` is, on the device of both: of a host array and a tensor, the tensor's."""
    return op_where(mask, x, x)[mask]


def _different(
    x: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    x = op_convert_to_tensor(x)
    shape = op_shape(x)
    rows = op_reshape(x, -1) if axis is None else op_moveaxis(x, args.single_axis(axis, len(shape)), 0)
    n = op_shape(rows)[0]
    keys = rows if axis is None else _ranks(op_reshape(rows, (n, math.prod(op_shape(rows)[1:]))))
    order = op_argsort(keys)
    keys = op_take(keys, order, 0)
    number = _number_distinct(keys, nan_is_one=len(shape) == 1 or axis is None)
    if size is None:
        size = int(op_max(number, initial=-1)) + 1
    (size,) = args.countable([args.count(size, "size")], "size")
    bounds = op_searchsorted(number, np.arange(size + 1, dtype="int32"))
    first = op_take(op_pad(order, [(0, 1)], constant_values=n), bounds[:-1], 0)  # the index of the padding is n
    padding = [(0, 1)] + [(0, 0)] * (len(op_shape(rows)) - 1)
    table = op_pad(rows, padding, constant_values=0 if fill_value is None else fill_value)
    values = op_take(table, first, 0)
    results = [values if axis is None else op_moveaxis(values, 0, axis)]
    if return_index:
        results.append(op_where(op_equal(first, n), 0, first))
    if return_inverse:
        inverse = op_take(number, op_argsort(order), 0)
        results.append(op_reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        results.append(bounds[1:] - bounds[:-1])
    return results[0] if len(results) == 1 else tuple(results)


def _number_distinct(*columns: Tensor, nan_is_one: bool = False) -> Tensor:
    """Return the index of each entry along the first axis among the different ones; equal entries are adjacent."""
    n = op_shape(columns[0])[0]
    changes = functools.reduce(op_logical_or, [op_not_equal(x[1:], x[:-1]) for x in columns])
    if nan_is_one:  # they are the last ones
        changes = op_logical_and(changes, op_logical_not(op_isnan(columns[0][:-1])))
    padding = [(1, 0)] + [(0, 0)] * (len(op_shape(changes)) - 1)
    return op_cumsum(op_pad(op_cast(changes, "int32"), padding), 0)[:n]


def _ranks(rows: Tensor) -> Tensor:
    """Return a vector that orders like the rows of a matrix: neighbouring columns are merged until one is left."""
    columns = op_shape(rows)[1]
    if columns == 0:
        return op_sum(op_zeros_like(rows, "int32"), 1)
    while columns > 1:
        left, right = rows[:, 0::2], rows[:, 1::2]
        if columns % 2:
            right = op_pad(right, [(0, 0), (0, 1)])
        order = op_argsort(right, 0)
        order = op_take_along_axis(order, op_argsort(op_take_along_axis(left, order, 0), 0), 0)
        number = _number_distinct(op_take_along_axis(left, order, 0), op_take_along_axis(right, order, 0))
        rows, columns = op_take_along_axis(number, op_argsort(order, 0), 0), (columns + 1) // 2
    return rows[:, 0]
