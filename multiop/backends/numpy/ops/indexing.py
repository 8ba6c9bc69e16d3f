"""Indexing: entries selected by their indices."""

from __future__ import annotations

import math

import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import convert, in_float32, native, promote_all, reject_complex
from .reduction import flat_along


def op_take(x, indices, axis):
    x, axis = flat_along(convert(x), axis)
    return np.take(x, within(indices, x.shape[axis]), axis)


def op_take_along_axis(x, indices, axis):
    x, axis = flat_along(convert(x), axis)
    return np.take_along_axis(x, within(indices, x.shape[axis]), axis)


def op_get_item(x, key):
    x = convert(x)
    entries, arrays = args.normalize_key(key, x.shape)
    sizes = iter(x.shape)  # `None` takes none of them
    sizes = [entry if entry is None else next(sizes) for entry in entries]
    return x[tuple(within(entry, sizes[k]) if k in arrays else entry for k, entry in enumerate(entries))]


def op_slice(inputs, start_indices, shape):
    x = convert(inputs)
    return x[block(start_indices, x, shape)]


def op_slice_update(x, start_indices, updates):
    y = x.copy()
    y[block(start_indices, x, updates.shape)] = updates
    return y


def op_scatter_update(x, indices, updates, reduction):
    (x,) = reject_complex(x) if reduction in ("max", "min") else (x,)
    columns = np.moveaxis(convert(indices), -1, 0)
    cells = tuple(within(column, size) for column, size in zip(columns, x.shape, strict=False))
    return in_float32(lambda x, updates: update_cells(x, cells, updates, reduction), x, updates)


def op_select(condlist, choicelist, default):
    *choices, result = promote_all(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = np.where(convert(condition, "bool"), choice, result)
    return result


def op_unravel_index(indices, shape):
    indices = integers(indices)
    if ((indices < 0) | (indices >= math.prod(shape))).any():
        raise errors.ArgumentError(f"an index is out of range for shape {shape}")
    return tuple(index.astype(np.int32) for index in np.unravel_index(indices, shape))


def op_one_hot(x, num_classes, axis, dtype):
    x = integers(x)
    axis = args.single_axis(axis, x.ndim + 1)
    classes = np.arange(*args.countable([num_classes], "num_classes")).reshape(-1, *[1] * (x.ndim - axis))
    return (np.expand_dims(x, axis) == classes).astype(native(dtype))


def integers(x):
    x = convert(x)
    if x.dtype.kind not in "iu":
        raise errors.DTypeError("indices must be integers")
    return x


def within(indices, size):
    """Return indices into `size` entries, none of them negative; one that is out of range raises."""
    return args.host_indices(integers(indices), size)


def block(start_indices, x, shape):
    """Return the key of a block of `shape` in `x`."""
    starts = args.host_ints(start_indices)
    starts = integers(start_indices).reshape(-1).tolist() if starts is None else starts
    return tuple(slice(k, k + n) for k, n in zip(args.corner(starts, x.shape, shape), shape, strict=True))


def update_cells(x, cells, updates, reduction):
    y = x.copy()
    if reduction is None:
        y[cells] = updates
    else:
        combine = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}[reduction]
        combine.at(y, cells, updates)
    return y
