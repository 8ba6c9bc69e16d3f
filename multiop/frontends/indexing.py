"""Indexing: entries picked by their indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiop import config, errors
from multiop._call.boundary import boundary
from multiop._loading import registry
from multiop._loading.registry import active
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, DType, Shape, Tensor

from .conversion import on_device_of, op_cast, op_dtype, op_shape
from .creation import op_arange, op_copy, op_zeros, op_zeros_like
from .elementwise import op_abs, op_add, op_floor, op_maximum, op_minimum, op_mod, op_multiply
from .logical import op_equal, op_greater_equal, op_less, op_logical_and, op_logical_or, op_where
from .reduction import op_any
from .shapes import (
    op_broadcast_to,
    op_expand_dims,
    op_flip,
    op_moveaxis,
    op_repeat,
    op_reshape,
    op_size,
    op_squeeze,
    op_stack,
)


@boundary
def op_take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Pick entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        indices: Integer tensor of any shape; negative ones count from the end.
        axis: Dimension to pick from; by default `x` is flattened first.

    Returns:
        Tensor of the dtype of `x`, with the dimensions of `indices` in place of `axis`.

    Raises:
        ArgumentError: An index or `axis` is out of range. In compiled or mapped code, where a bad index cannot be
            raised, the entry is NaN, or 0 for integers and bool.
        DTypeError: `indices` are not integers.

    Gradient:
        Adds up where an entry is picked more than once.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_take([5, 6, 7], [2, 0, -1])).tolist()
        [7, 5, 7]
    """
    return active().op_take(x, indices, axis)


@boundary
def op_take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Pick entries of `x` along `axis`, with a separate index for each position in the other dimensions.

    Args:
        x: Tensor of any dtype and shape.
        indices: Integer tensor of as many dimensions as `x`, which broadcasts with it except along `axis`; negative
            ones count from the end.
        axis: Dimension to pick from; by default `x` is flattened first, and `indices` is a vector.

    Returns:
        Tensor of the dtype of `x` and the broadcast shape.

    Raises:
        ArgumentError: An index or `axis` is out of range. In compiled or mapped code, where a bad index cannot be
            raised, the entry is NaN, or 0 for integers and bool.
        DTypeError: `indices` are not integers.

    Gradient:
        Adds up where an entry is picked more than once.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_take_along_axis([[5, 6], [7, 8]], [[1], [0]], axis=1)).tolist()
        [[6], [7]]
    """
    return active().op_take_along_axis(x, indices, axis)


@boundary
def op_get_item(x: ArrayLike, key: Any) -> Tensor:
    """Return `x[key]`, as NumPy would.

    Args:
        x: Tensor of any dtype and shape.
        key: One of these, or a tuple of them: an int; a slice, with a step of either sign; `None` for a new dimension;
            `Ellipsis`; an integer tensor or a list of ints, negative ones counting from the end; a bool tensor of the
            shape of the dimensions that it picks from.

    Returns:
        Tensor of the dtype of `x`. Index tensors broadcast with each other; their dimensions stand in the place of
        those they index if these are side by side, else in front. With a bool tensor the shape depends on values,
        which `jit` on JAX, and `vmap` on it and PyTorch, refuse; a bool NumPy array is taken anywhere.

    Raises:
        ArgumentError: An index is out of range, or there are too many of them, or their shapes do not fit. In compiled
            or mapped code, which cannot raise an error, the entry is NaN, or 0 for integers and bool.
        ArgumentTypeError: An entry of `key` is none of these.
        DTypeError: An index tensor holds neither integers nor bool.

    Gradient:
        Adds up where an entry is picked more than once.

    Example:
        >>> import multiop
        >>> x = [[1, 2, 3], [4, 5, 6]]
        >>> multiop.op_convert_to_numpy(multiop.op_get_item(x, (slice(None, None, -1), [0, 2]))).tolist()
        [[4, 6], [1, 3]]
    """
    return active().op_get_item(x, key)


@boundary
def op_slice(inputs: ArrayLike, start_indices: ArrayLike, shape: Shape) -> Tensor:
    """Cut a block out of `inputs`, at a position that may be computed.

    Args:
        inputs: Tensor of any dtype and shape.
        start_indices: Vector of the block's first index in each dimension; negative ones count from the end.
        shape: The shape of the block.

    Returns:
        Tensor of `shape` and the dtype of `inputs`.

    Raises:
        ArgumentError: The block exceeds `inputs`, or has a different number of dimensions. In compiled or mapped
            code, which cannot raise an error, the whole block is NaN, or 0 for integers and bool.
        DTypeError: `start_indices` are not integers.

    Example:
        >>> import multiop
        >>> x = [[1, 2, 3], [4, 5, 6]]
        >>> multiop.op_convert_to_numpy(multiop.op_slice(x, (0, 1), (2, 2))).tolist()
        [[2, 3], [5, 6]]
    """
    return active().op_slice(inputs, start_indices, args.size(shape))


@boundary
def op_slice_update(inputs: ArrayLike, start_indices: ArrayLike, updates: ArrayLike) -> Tensor:
    """Return `inputs` with a block replaced, at a position that may be computed.

    Args:
        inputs: Tensor of any dtype and shape; it is not changed.
        start_indices: Vector of the block's first index in each dimension; negative ones count from the end.
        updates: The block: a tensor of as many dimensions as `inputs`, whose dtype must fit in that of `inputs`.

    Returns:
        Tensor of the shape and dtype of `inputs`.

    Raises:
        ArgumentError: The block exceeds `inputs`, or has a different number of dimensions. In compiled or mapped
            code, which cannot raise an error, the result is `inputs`.
        DTypeError: `start_indices` are not integers, or the dtype of `updates` does not fit.

    Gradient:
        Goes to `updates` within the block and to `inputs` elsewhere.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_slice_update([1, 2, 3, 4], [1], [7, 8])).tolist()
        [1, 7, 8, 4]
    """
    where = [start_indices] if active().is_tensor(start_indices) else []
    x, updates, *_ = _match_operands(active(), inputs, updates, *where)
    return active().op_slice_update(x, start_indices, updates)


@boundary
def op_scatter(indices: ArrayLike, values: ArrayLike, shape: Shape) -> Tensor:
    """Add `values` into a tensor of zeros.

    Args:
        indices: Integer tensor; each row along its last dimension is the index of an entry of the result or, if it is
            shorter than `shape`, of a part of it. Negative ones count from the end.
        values: Tensor that broadcasts to the shape of `indices` without the last dimension, followed by the shape of
            such a part.
        shape: The shape of the result.

    Returns:
        Tensor of `shape` and the dtype of `values`. Several values for one position are added, bools by `or`;
        `op_scatter_update` can keep the last one.

    Raises:
        ArgumentError: An index is out of range, or the shapes do not fit. In compiled or mapped code, where a bad index
            cannot be raised, its value is dropped.
        DTypeError: `indices` are not integers.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_scatter([[0, 1], [1, 0], [1, 0]], [5, 6, 7], (2, 2))).tolist()
        [[0, 5], [13, 0]]
    """
    values, indices = active().together(values, indices)
    values = active().convert(values)
    zeros = active().on_device_of(values, op_zeros(shape, op_dtype(values)))
    return op_scatter_update(zeros, indices, values, "max" if op_dtype(values) == "bool" else "add")


@boundary
def op_scatter_update(
    inputs: ArrayLike, indices: ArrayLike, updates: ArrayLike, reduction: str | None = None
) -> Tensor:
    """Return `inputs` with entries replaced by `updates`, or combined with them.

    Args:
        inputs: Tensor of any dtype and shape; it is not changed.
        indices: Integer tensor; each row along its last dimension is the index of an entry of `inputs` or, if it is
            shorter than the shape of `inputs`, of a part of it. Negative ones count from the end.
        updates: Tensor that broadcasts to the shape of `indices` without the last dimension, followed by the shape of
            such a part; its dtype must fit in that of `inputs`.
        reduction: `None` to replace the entry (of several updates for one position, the last one is kept); `"add"`,
            `"max"`, `"min"` or `"mul"` to combine the entry with all the updates for its position.

    Returns:
        Tensor of the shape and dtype of `inputs`.

    Raises:
        ArgumentError: An index is out of range, the shapes do not fit, or `reduction` is unknown. In compiled or
            mapped code, which cannot raise an error, its update is left out.
        DTypeError: `indices` are not integers, the dtype of `updates` does not fit, or complex numbers would have to be
            compared.

    Gradient:
        Goes to the values that were kept: of several replacing updates, only to the last one. `"max"` and `"min"` split
        it between two that tie, and so on pair by pair.

    Example:
        >>> import multiop
        >>> indices = [[0], [2], [0]]
        >>> multiop.op_convert_to_numpy(multiop.op_scatter_update([0, 0, 0], indices, [1, 2, 3])).tolist()
        [3, 0, 2]
        >>> multiop.op_convert_to_numpy(multiop.op_scatter_update([0, 0, 0], indices, [1, 2, 3], "add")).tolist()
        [4, 0, 2]
    """
    if reduction is not None:
        args.choice(reduction, (None, "add", "max", "min", "mul"), "reduction")
    backend = active() if registry.is_overridden else registry._backend
    x, updates, indices = _match_operands(backend, inputs, updates, indices)
    shape, sizes = x.shape, None
    if not (isinstance(shape, tuple) and isinstance(sizes := getattr(indices, "shape", None), tuple)):
        shape, sizes = backend.op_shape(x), backend.op_shape(indices)
    if not sizes or not isinstance(sizes[-1], int) or sizes[-1] > len(shape):
        raise errors.ArgumentError(f"indices {args.describe(indices)} do not name entries of {args.describe(x)}")
    return backend.op_scatter_update(x, indices, updates, reduction)


@boundary
def op_select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Tensor:
    """Choose each entry from the tensor of `choicelist` whose condition is the first to be true.

    Args:
        condlist: Sequence of tensors; entries other than 0 are true.
        choicelist: Sequence of equally many tensors.
        default: Tensor to take where no condition is true. All the shapes broadcast with each other.

    Returns:
        Tensor of the broadcast shape and the promoted dtype of `choicelist` and `default`.

    Raises:
        ArgumentError: The sequences are empty or of different lengths, or the shapes do not broadcast.
        ArgumentTypeError: `condlist` or `choicelist` is not a list or tuple.

    Gradient:
        1 for the operand that is chosen and 0 for the others, as in `op_where`.

    Example:
        >>> import multiop
        >>> conditions = [[True, True, False], [False, True, False]]
        >>> multiop.op_convert_to_numpy(multiop.op_select(conditions, [[1, 2, 3], [4, 5, 6]], 9)).tolist()
        [1, 2, 9]
    """
    for name, given in (("condlist", condlist), ("choicelist", choicelist)):
        if not isinstance(given, (list, tuple)):
            raise errors.ArgumentTypeError(f"{name} must be a list or tuple, got {args.describe(given)}")
    if not len(condlist) == len(choicelist) > 0:
        raise errors.ArgumentError(f"condlist has {len(condlist)} entries, and choicelist {len(choicelist)}")
    return active().op_select(condlist, choicelist, default)


@boundary
def op_unravel_index(indices: ArrayLike, shape: Shape) -> tuple[Tensor, ...]:
    """Convert flat indices into a tensor of `shape` to one index for each of its dimensions.

    Args:
        indices: Integer tensor of any shape that holds row-major indices, none of them negative.
        shape: The shape of the tensor that they point into.

    Returns:
        Tuple of one `int32` tensor per dimension of `shape`, each of the shape of `indices`.

    Raises:
        ArgumentError: An index is out of range. In compiled or mapped code, which cannot raise an error, the first of
            the tensors is out of range in its place. Or a dimension of `shape` has indices beyond `int32`.
        DTypeError: `indices` are not integers.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(i).tolist() for i in multiop.op_unravel_index([1, 5], (2, 3))]
        [[0, 1], [1, 2]]
    """
    sizes = args.size(shape)
    if any(isinstance(n, int) and n > 2**31 for n in sizes):
        raise errors.ArgumentError(f"shape {sizes} has indices beyond int32")
    return active().op_unravel_index(indices, sizes)


@boundary
def op_one_hot(x: ArrayLike, num_classes: int, axis: int = -1, dtype: DType = None, sparse: bool = False) -> Tensor:
    """Encode integers as vectors of zeros, with a one at the position that the integer gives.

    Args:
        x: Tensor of integers or floats, of any shape; a number that is not in `range(num_classes)` gives only zeros.
        num_classes: The length of the vectors.
        axis: The dimension of the result along which the vectors run.
        dtype: Dtype of the result; by default `floatx`.
        sparse: `False`: multiop has dense tensors only.

    Returns:
        Tensor of the shape of `x` with a dimension of `num_classes` entries added at `axis`.

    Raises:
        ArgumentError: `axis` is out of range, or `num_classes` negative.
        DTypeError: `x` is complex or bool.
        UnsupportedError: A sparse tensor was requested.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_one_hot([2, 0, -1], 3)).tolist()
        [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if sparse:
        raise errors.UnsupportedError("multiop has dense tensors only; leave sparse out")
    backend: Any = active() if registry.is_overridden else registry._backend
    x = backend.convert(x)
    if backend.dtype_name(x) in dtypes.FLOATING:
        x = classes(x)
    name = config.floatx() if dtype is None else dtypes.name(dtype)
    return backend.op_one_hot(x, args.count(num_classes, "num_classes"), axis, name)


# parts of other ops


def classes(x: ArrayLike) -> Tensor:
    """Return class labels as integers; floats, as data sets often have them, are -1 where they are no whole number."""
    backend = active()
    x = backend.convert(x)
    if backend.dtype_name(x) not in dtypes.FLOATING:
        return x
    named = op_logical_and(op_equal(op_floor(x), x), op_less(op_abs(x), 2.0**31))
    return op_cast(op_where(named, x, -1), "int32")


# composites


@boundary
def op_ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Shape) -> Tensor:
    """Convert one index for each dimension of a tensor to flat indices.

    Args:
        multi_index: An integer tensor for each dimension, of shapes that broadcast, without negative numbers.
        dims: The shape of the tensor that they point into.

    Returns:
        `int32` tensor of row-major indices.

    Raises:
        ArgumentError: There is not one index for each dimension, or one is out of range; in compiled or mapped code,
            which cannot raise an error, the result is then out of range in its place. Or `dims` has indices beyond
            `int32`.
        DTypeError: An index does not hold integers.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ravel_multi_index(([0, 1], [1, 2]), (2, 3))).tolist()
        [1, 5]
    """
    sizes = args.size(dims, "dims")
    if len(multi_index) != len(sizes) or not sizes:
        raise errors.ArgumentError(f"multi_index must have an entry for each of dims {sizes}, got {len(multi_index)}")
    if math.prod(sizes) >= 2**31:
        raise errors.ArgumentError(f"dims {sizes} has indices beyond int32")
    flat: Any = 0
    is_wrong: Any = False
    for index, size in zip(active().together(*multi_index), sizes, strict=True):
        if (name := op_dtype(index)) not in dtypes.INTEGER:
            raise errors.DTypeError(f"multi_index must hold integers, got {name}")
        is_wrong = op_logical_or(is_wrong, op_logical_or(op_less(index, 0), op_greater_equal(index, size)))
        flat = op_add(op_multiply(flat, size), op_cast(index, "int32"))
    flat = op_where(is_wrong, math.prod(sizes), flat)
    op_unravel_index(flat, sizes)  # raises for what is out of range
    return flat


@boundary
def op_set_item(x: ArrayLike, key: Any, value: ArrayLike) -> Tensor:
    """Return a copy of `x` after NumPy's assignment `x[key] = value`: the counterpart of `op_get_item`.

    Args:
        x: Tensor of any dtype and shape; it is not changed.
        key: Any key that `op_get_item` takes. A bool tensor that `op_get_item` cannot take in compiled or mapped code
            is accepted there if `value` holds a single value for all the entries that it selects.
        value: Tensor that broadcasts to the shape of `x[key]`; its dtype must fit in that of `x`. (NumPy casts it, and
            silently loses digits.)

    Returns:
        Tensor of the shape and dtype of `x`. Of several values for one position, the last one is kept.

    Raises:
        ArgumentError: An index is out of range, there are too many of them, or the shapes do not fit. In compiled or
            mapped code, where a bad index cannot be raised, its value is dropped.
        ArgumentTypeError: An entry of `key` is of a kind that `op_get_item` does not take.
        DTypeError: An index tensor holds neither integers nor bool, or the dtype of `value` does not fit.

    Gradient:
        Goes to the values that were kept: of several values for one position, only to the last one.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_set_item([[1, 2], [3, 4]], (slice(None), -1), [7, 8])).tolist()
        [[1, 7], [3, 8]]
    """
    return _update_entries(x, key, value, None)


@boundary
def op_add_at(x: ArrayLike, key: Any, value: ArrayLike) -> Tensor:
    """Return `x` with `value` added at `x[key]`.

    It is NumPy's `add.at`, but returns a new tensor instead of changing `x`.

    Args:
        x: Tensor of any dtype and shape; it is not changed.
        key: Any key that `op_get_item` takes. A bool tensor that `op_get_item` cannot take in compiled or mapped code
            is accepted there if `value` holds a single value for all the entries that it selects.
        value: Tensor that broadcasts to the shape of `x[key]`; its dtype must fit in that of `x`. (NumPy casts it, and
            silently loses digits.)

    Returns:
        Tensor of the shape and dtype of `x`. All the values for one position are added.

    Raises:
        ArgumentError: An index is out of range, there are too many of them, or the shapes do not fit. In compiled or
            mapped code, where a bad index cannot be raised, its value is dropped.
        ArgumentTypeError: An entry of `key` is of a kind that `op_get_item` does not take.
        DTypeError: An index tensor holds neither integers nor bool, or the dtype of `value` does not fit.

    Gradient:
        1 for `x` and for every value.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_add_at([1, 2, 3], [0, 0, 2], [10, 20, 30])).tolist()
        [31, 2, 33]
    """
    return _update_entries(x, key, value, "add")


@boundary
def op_multiply_at(x: ArrayLike, key: Any, value: ArrayLike) -> Tensor:
    """Return `x` with `x[key]` multiplied by `value`.

    It is NumPy's `multiply.at`, but returns a new tensor instead of changing `x`.

    Args:
        x: Tensor of any dtype and shape; it is not changed.
        key: Any key that `op_get_item` takes. A bool tensor that `op_get_item` cannot take in compiled or mapped code
            is accepted there if `value` holds a single value for all the entries that it selects.
        value: Tensor that broadcasts to the shape of `x[key]`; its dtype must fit in that of `x`. (NumPy casts it, and
            silently loses digits.)

    Returns:
        Tensor of the shape and dtype of `x`. An entry is multiplied by all the values for its position.

    Raises:
        ArgumentError: An index is out of range, there are too many of them, or the shapes do not fit. In compiled or
            mapped code, where a bad index cannot be raised, its value is dropped.
        ArgumentTypeError: An entry of `key` is of a kind that `op_get_item` does not take.
        DTypeError: An index tensor holds neither integers nor bool, or the dtype of `value` does not fit.

    Gradient:
        For each factor, the product of the other factors at its position.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_multiply_at([1, 2, 3], [0, 0, 2], [10, 20, 30])).tolist()
        [200, 2, 90]
    """
    return _update_entries(x, key, value, "mul")


@boundary
def op_maximum_at(x: ArrayLike, key: Any, value: ArrayLike) -> Tensor:
    """Return `x` with `x[key]` replaced by the larger of `x[key]` and `value`.

    It is NumPy's `maximum.at`, but returns a new tensor instead of changing `x`.

    Args:
        x: Tensor of any real dtype and shape; it is not changed.
        key: Any key that `op_get_item` takes. A bool tensor that `op_get_item` cannot take in compiled or mapped code
            is accepted there if `value` holds a single value for all the entries that it selects.
        value: Tensor that broadcasts to the shape of `x[key]`; its dtype must fit in that of `x`. (NumPy casts it, and
            silently loses digits.)

    Returns:
        Tensor of the shape and dtype of `x`. An entry is compared with all the values for its position; NaN propagates.

    Raises:
        ArgumentError: An index is out of range, there are too many of them, or the shapes do not fit. In compiled or
            mapped code, where a bad index cannot be raised, its value is dropped.
        ArgumentTypeError: An entry of `key` is of a kind that `op_get_item` does not take.
        DTypeError: An index tensor holds neither integers nor bool, the dtype of `value` does not fit, or complex
            numbers would have to be compared.

    Gradient:
        Goes to the value that is kept. Two that tie share it equally; more than two split it pair by pair.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_maximum_at([1, 20, 3], [0, 0, 1], [4, 2, 6])).tolist()
        [4, 20, 3]
    """
    return _update_entries(x, key, value, "max")


@boundary
def op_minimum_at(x: ArrayLike, key: Any, value: ArrayLike) -> Tensor:
    """Return `x` with `x[key]` replaced by the smaller of `x[key]` and `value`.

    It is NumPy's `minimum.at`, but returns a new tensor instead of changing `x`.

    Args:
        x: Tensor of any real dtype and shape; it is not changed.
        key: Any key that `op_get_item` takes. A bool tensor that `op_get_item` cannot take in compiled or mapped code
            is accepted there if `value` holds a single value for all the entries that it selects.
        value: Tensor that broadcasts to the shape of `x[key]`; its dtype must fit in that of `x`. (NumPy casts it, and
            silently loses digits.)

    Returns:
        Tensor of the shape and dtype of `x`. An entry is compared with all the values for its position; NaN propagates.

    Raises:
        ArgumentError: An index is out of range, there are too many of them, or the shapes do not fit. In compiled or
            mapped code, where a bad index cannot be raised, its value is dropped.
        ArgumentTypeError: An entry of `key` is of a kind that `op_get_item` does not take.
        DTypeError: An index tensor holds neither integers nor bool, the dtype of `value` does not fit, or complex
            numbers would have to be compared.

    Gradient:
        Goes to the value that is kept. Two that tie share it equally; more than two split it pair by pair.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_minimum_at([1, 20, 3], [0, 0, 1], [4, 2, 6])).tolist()
        [1, 6, 3]
    """
    return _update_entries(x, key, value, "min")


@boundary
def op_subset(x: ArrayLike, *indices: Any) -> Tensor:
    """Return `x[indices]`: `op_get_item` with the indices as separate arguments.

    Args:
        x: Tensor of any dtype and shape.
        *indices: One index per dimension, of any kind that `op_get_item` takes. They count from 0.

    Returns:
        Tensor of the dtype of `x`.

    Raises:
        ArgumentError: An index is out of range, or there are too many of them, or their shapes do not fit.
        ArgumentTypeError: An index is of a kind that `op_get_item` does not take.
        DTypeError: An index tensor holds neither integers nor bool.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_subset([[1, 2, 3], [4, 5, 6]], 1, [0, 2])).tolist()
        [4, 6]
    """
    return op_get_item(x, indices)


@boundary
def op_multi_hot(
    inputs: ArrayLike,
    num_classes: int | None = None,
    axis: int = -1,
    dtype: DType = None,
    sparse: bool = False,
    **kwargs: Any,
) -> Tensor:
    """Encode sets of integers as vectors of zeros, with ones at the positions that the integers give.

    Args:
        inputs: Integer tensor: a vector that is one set, or a tensor whose second dimension runs over the entries of
            a set. An integer that is not in `range(num_classes)` is ignored.
        num_classes: The length of the vectors.
        axis: The dimension of the result along which the vectors run.
        dtype: Dtype of the result; by default `floatx`.
        sparse: `False`: multiop has dense tensors only.
        **kwargs: `num_tokens`, an old name of `num_classes`.

    Returns:
        Tensor of the shape of `inputs` without the dimension of the sets, with one of size `num_classes` added.

    Raises:
        ArgumentError: `inputs` has no dimension, `axis` is out of range, or `num_classes` negative.
        ArgumentTypeError: `num_classes` is missing, or another argument unknown.
        DTypeError: `inputs` does not hold integers.
        UnsupportedError: A sparse tensor was requested.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_multi_hot([[0, 2], [1, 1]], 3)).tolist()
        [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    num_classes = kwargs.pop("num_tokens", None) if num_classes is None else num_classes
    if kwargs:
        raise errors.ArgumentTypeError(f"unknown argument {', '.join(kwargs)}")
    if num_classes is None:
        raise errors.ArgumentTypeError("num_classes is missing")
    ndim = len(op_shape(inputs))
    if ndim == 0:
        raise errors.ArgumentError("inputs must have a dimension")
    found = op_any(op_one_hot(inputs, num_classes, -1, "bool", sparse), min(1, ndim - 1))
    return op_cast(op_moveaxis(found, -1, axis), config.floatx() if dtype is None else dtype)


# internals of the updates by key

_COMBINE = {"add": op_add, "max": op_maximum, "min": op_minimum, "mul": op_multiply}
_ALL = slice(None)


def _update_entries(x: Any, key: Any, value: Any, reduction: str | None) -> Tensor:
    """Return `x` with the entries `x[key]` replaced by `value`, or combined with it by `reduction`."""
    given = list(key) if isinstance(key, tuple) else [key]
    places = [place for place, part in enumerate(given) if _is_index_array(part)]
    arrays = [given[place] for place in places]
    x, value, *arrays = _match_operands(active(), x, value, *arrays, names=("x", "value"))
    for place, array in zip(places, arrays, strict=True):
        given[place] = array
    parts = args.parts(tuple(given), _sizes(x))
    places = [place for place, one in enumerate(parts) if not args.is_basic(one)]
    if len(places) == 1 and args.is_mask(parts[places[0]]):
        masked = _where(x, parts, places[0], value, reduction)
        if masked is not None:
            return masked
    entries, arrays = args.expand_masks(parts)
    basic = [_ALL if place in arrays else one for place, one in enumerate(entries)]
    if arrays:
        return _place_value(x, basic, _scatter_value(op_get_item(x, tuple(basic)), arrays, entries, value, reduction))
    if reduction is None:
        return _place_value(x, basic, value)
    picked = op_get_item(x, tuple(basic))
    return _place_value(x, basic, _COMBINE[reduction](picked, _fitting(value, _sizes(picked))))


def _match_operands(
    backend: Any, x: Any, updates: Any, *indices: Any, names: tuple[str, str] = ("inputs", "updates")
) -> list[Any]:
    """Return `x` and `updates` as tensors of the dtype of `x`, and `indices`, on one device."""
    x, updates, *indices = backend.together(x, updates, *indices)
    x = backend.convert(x)
    found, updates = backend.promote(x, updates)
    if found is not x and found.dtype != x.dtype:
        raise errors.DTypeError(
            f"{names[1]} must fit in {names[0]} of dtype {args.describe(x)}; cast one of them first"
        )
    return [found, updates, *indices]


def _is_index_array(part: Any) -> bool:
    """Say whether a part of a key is a tensor or a host array of indices; a host mask stays on the host."""
    if isinstance(part, list):  # np.size cannot be traced by torch.compile
        return any(not isinstance(entry, list) or _is_index_array(entry) for entry in part)
    if isinstance(part, np.ndarray):
        return part.size > 0 and part.dtype != bool
    return active().is_tensor(part)


def _on_device_of(x: Tensor, part: Any) -> Tensor:
    """Return a part of a key as a tensor: what the host still holds goes to the device of `x`."""
    return on_device_of(x, active().convert(part)) if isinstance(part, (int, np.ndarray)) else part


def _sizes(x: Tensor) -> tuple[Any, ...]:
    """Return the shape of `x`, with `None` for a size that is known only at run time."""
    return tuple(n if isinstance(n, int) else None for n in op_shape(x))


def _fitting(value: Tensor, sizes: Sequence[Any]) -> Tensor:
    """Check that `value` broadcasts to `sizes`; return it without surplus leading dimensions of size 1."""
    shape = _sizes(value)
    more = max(len(shape) - len(sizes), 0)
    if any(n != 1 for n in shape[:more]) or any(
        n not in (1, size) for n, size in zip(shape[more:][::-1], sizes[::-1], strict=False) if None not in (n, size)
    ):
        raise errors.ArgumentError(f"value {args.describe(value)} does not broadcast to x[key], of shape {sizes}")
    return op_squeeze(value, tuple(range(more))) if more else value


def _spread(value: Tensor, ndim: int) -> Tensor:
    """Return `value` with leading dimensions of size 1 added, to `ndim` dimensions in total."""
    lacking = ndim - len(op_shape(value))
    return op_expand_dims(value, tuple(range(lacking))) if lacking else value


def _where(x: Tensor, parts: list[Any], place: int, value: Tensor, reduction: str | None) -> Tensor | None:
    """Update the entries that the mask `parts[place]` selects with a single value; return `None` if there are more."""
    mask, width = parts[place], len(parts[place].shape)
    together = [p for p, one in enumerate(parts) if args.is_advanced(one)]
    before, after = (sum(not isinstance(one, int) for one in some) for some in (parts[:place], parts[place + 1 :]))
    start = before if args.index_axis(together) else 0
    basic = [*parts[:place], *[_ALL] * width, *parts[place + 1 :]]
    there = op_get_item(x, tuple(basic))
    sizes = _sizes(there)
    rest = sizes[:before] + sizes[before + width :]
    value = _fitting(value, (*rest[:start], None, *rest[start:]))
    if len(op_shape(value)) > len(rest) - start:
        value = _spread(value, len(rest) + 1)
        if _sizes(value)[start] != 1:
            return None
        value = op_squeeze(value, start)
    if len(op_shape(value)) > after:
        value = _spread(value, len(rest))
        value = op_expand_dims(value, tuple(range(before, before + width)))
    mask = _on_device_of(x, mask)
    mask = op_reshape(mask, (*op_shape(mask), *[1] * after))
    if reduction is not None:  # a zero gradient must not be multiplied by an infinite factor
        value = _COMBINE[reduction](op_where(mask, there, on_device_of(x, op_cast(1, active().dtype_name(x)))), value)
    return _place_value(x, basic, op_where(mask, value, there))


def _scatter_value(x: Tensor, arrays: list[int], entries: list[Any], value: Tensor, reduction: str | None) -> Tensor:
    """Return `x` updated with `value` at the index tensors `entries[dim]` of the dimensions `dim` in `arrays`."""
    indices = _stack_indices([_on_device_of(x, entries[place]) for place in arrays])
    depth, start = len(op_shape(indices)) - 1, args.index_axis(arrays)
    front, sizes = tuple(range(len(arrays))), _sizes(x)
    rest = [n for dim, n in enumerate(sizes) if dim not in arrays]
    value = _fitting(value, (*rest[:start], *_sizes(indices)[:-1], *rest[start:]))
    if start and depth and len(op_shape(value)) > len(rest) - start:
        value = op_moveaxis(_spread(value, len(rest) + depth), tuple(range(start, start + depth)), tuple(range(depth)))
    x = op_scatter_update(op_moveaxis(x, arrays, front), indices, value, reduction)
    return op_moveaxis(x, front, arrays)


def _stack_indices(indices: list[Any]) -> Tensor:
    """Broadcast index tensors with each other, and stack them along a new last dimension."""
    if len(indices) == 1:
        return op_expand_dims(indices[0], -1)
    shapes = [_sizes(one) for one in indices]
    if all(None not in shape for shape in shapes):
        try:
            shape: Any = np.broadcast_shapes(*shapes)
        except ValueError:
            raise errors.ArgumentError(f"key: index tensors of shapes {shapes} do not broadcast") from None
    else:
        whole = op_zeros_like(indices[0], "int32")
        for one in indices[1:]:
            whole = op_add(whole, op_zeros_like(one, "int32"))
        shape = op_shape(whole)
    return op_stack([op_broadcast_to(_as_signed(one), shape) for one in indices], -1)


def _as_signed(indices: Tensor) -> Tensor:
    """Return indices in a dtype that promotes with other integers to integers."""
    signed = {"uint32": "int32", "uint64": "int64"}.get(active().dtype_name(indices))
    if signed is None:
        return indices
    indices = op_cast(indices, signed)
    return op_where(op_less(indices, 0), int(np.iinfo(signed).max), indices)  # a number that large is out of range


def _place_value(x: Tensor, key: list[Any], value: Tensor) -> Tensor:
    """Return `x` with `x[key]` replaced by `value`; `key` holds only ints, slices and `None`."""
    sizes = _sizes(x)
    if all(one == _ALL for one in key):
        return op_copy(op_broadcast_to(_fitting(value, sizes), op_shape(x)))
    if None in sizes:
        numbers = op_get_item(op_reshape(op_arange(op_size(x), dtype="int64"), op_shape(x)), tuple(key))
        value = op_broadcast_to(_fitting(value, _sizes(numbers)), op_shape(numbers))
        flat = op_scatter_update(op_reshape(x, -1), op_expand_dims(numbers, -1), value)
        return op_reshape(flat, op_shape(x))
    dims = iter(sizes)
    ranges = [None if one is None else _range(one, next(dims)) for one in key]
    kept = [one is None or isinstance(one, slice) for one in key]
    picked = [1 if run is None else len(run) for run, is_kept in zip(ranges, kept, strict=True) if is_kept]
    value = op_broadcast_to(_fitting(value, picked), picked)
    runs = [run for run in ranges if run is not None]
    value = op_reshape(value, [len(run) for run in runs])
    backwards = tuple(dim for dim, run in enumerate(runs) if run.step < 0 and len(run) > 1)
    if backwards:
        value = op_flip(value, backwards)
        runs = [run[::-1] if dim in backwards else run for dim, run in enumerate(runs)]
    starts = [run[0] if run else 0 for run in runs]
    gaps = [dim for dim, run in enumerate(runs) if run.step != 1 and len(run) > 1]
    if gaps:
        block = tuple(slice(start, run[-1] + 1 if run else 0) for start, run in zip(starts, runs, strict=True))
        there = op_get_item(x, block)
        hit: Any = True
        for dim in gaps:
            size, step = op_shape(there)[dim], runs[dim].step
            value = op_get_item(op_repeat(value, step, dim), (*[_ALL] * dim, slice(size)))
            here = op_equal(op_mod(op_arange(size), step), 0)
            hit = op_logical_and(hit, op_reshape(here, (size, *[1] * (len(runs) - dim - 1))))
        value = op_where(on_device_of(x, hit), value, there)
    return op_slice_update(x, starts, value)


def _range(one: Any, size: int) -> range:
    """Return the indices that an int or a slice selects, as a range."""
    return range(*one.indices(size)) if isinstance(one, slice) else range(one % size, one % size + 1)
