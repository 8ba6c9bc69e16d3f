"""Indexing: entries selected by their indices."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._values import args

from .._internals import EagerTensor
from .._ranks import MOST_SLICED, slice_by_key
from ..autodiff import _linear
from ..autodiff._programs import in_one_call
from ..conversion import (
    broadcast_together,
    cached_index,
    choose,
    convert,
    dense,
    in_float32,
    is_tensor,
    is_tracked,
    known_shape,
    native,
    promote_all,
    rank,
    resolve_axis,
    to_index_integers,
    truth,
    where_differentiated,
)
from ..devices import is_at_hand
from .elementwise import op_add, op_maximum, op_minimum, op_multiply
from .shapes import op_moveaxis


def op_take(x, indices, axis):
    is_value = not isinstance(x, tf.Variable)  # a variable's optimizer wants tf.IndexedSlices
    x, axis = resolve_axis(convert(x), axis)
    size, is_inside = known_shape(x)[axis], False
    if type(indices) is int and size is not None:
        args.check_indices(indices, indices, size)
        indices, is_inside = cached_index(indices % size), True
    if is_value and (is_inside or are_known_inside(indices, size)):
        return gather(x, indices, axis) if is_tracked() else tf.raw_ops.GatherV2(params=x, indices=indices, axis=axis)
    x = dense(x) if axis == 0 and is_value else x
    return where_differentiated(lambda x: _take(x, indices, axis), x) if is_value else _take(x, indices, axis)


def _take(x, indices, axis):
    indices, outside = check_indices(indices, x, axis)
    picked = tf.raw_ops.GatherV2(params=x, indices=indices, axis=axis)
    return picked if outside is None else mask_outside(picked, outside[(..., *[None] * (rank(x) - axis - 1))])


def op_take_along_axis(x, indices, axis):
    x, axis = resolve_axis(convert(x), axis)
    return where_differentiated(lambda x: _take_along_axis(x, indices, axis), x)


def _take_along_axis(x, indices, axis):
    indices, outside = check_indices(indices, x, axis)
    if rank(indices) != rank(x):
        raise errors.ArgumentError(f"indices has {rank(indices)} dimensions, x has {rank(x)}")
    x, indices = op_moveaxis(x, axis, -1), op_moveaxis(indices, axis, -1)
    x, indices = broadcast_together(x, indices, 1)
    last = rank(x) - 1
    x = dense(x) if last == 0 else x  # with batch dimensions, the gradient is
    picked = op_moveaxis(tf.raw_ops.GatherV2(params=x, indices=indices, axis=last, batch_dims=last), -1, axis)
    return picked if outside is None else mask_outside(picked, outside)


def op_get_item(x, key):
    x = convert(x)
    if args.is_static(key):
        return slice_entries(x, key)
    sizes = known_shape(x)
    if args.selects_inside(key, sizes, are_known_inside):
        return gather_entries(x, key)
    entries, arrays = args.normalize_key(key, sizes)
    if args.selects_inside(tuple(entries), sizes, are_known_inside):
        return gather_entries(x, tuple(entries))
    return select_entries(x, entries, arrays, False)


@in_one_call
def gather(x, indices, axis):
    gather = lambda x: tf.raw_ops.GatherV2(params=x, indices=indices, axis=axis)  # noqa: E731
    return where_differentiated(gather, dense(x) if axis == 0 else x)


@in_one_call
def slice_entries(x, key):
    return _slice(x, tuple(args.normalize_key(key, known_shape(x))[0]))


def select_entries(x, entries, arrays, are_inside):
    if entries:
        x = _slice(x, tuple(slice(None) if place in arrays else entry for place, entry in enumerate(entries)))
    return where_differentiated(lambda x: _gather(x, entries, arrays, are_inside), x) if arrays else x


@in_one_call
def gather_entries(x, key):
    return select_entries(x, *args.normalize_key(key, known_shape(x)), True)


def _slice(x, key):
    return x[key] if x.shape.rank <= MOST_SLICED else slice_by_key(x, key)


def _gather(x, entries, arrays, are_inside):
    found = [(entries[dim], None) if are_inside else check_indices(entries[dim], x, dim) for dim in arrays]
    start = args.index_axis(arrays)
    if len(arrays) == 1:
        picked = tf.gather(dense(x) if start == 0 else x, found[0][0], axis=start)
    else:
        found = [(tf.cast(indices, tf.int64), outside) for indices, outside in found]
        indices = found[0][0]
        for other, _ in found[1:]:
            indices = indices + tf.zeros_like(other)
        indices = tf.stack([tf.broadcast_to(other, tf.shape(indices)) for other, _ in found], -1)
        picked = tf.gather_nd(tf.transpose(x, args.moved_order(arrays, tuple(range(len(arrays))), rank(x))), indices)
        new = range(rank(indices) - 1)  # the dimensions of the indices come first
        picked = tf.transpose(picked, args.moved_order(tuple(new), tuple(start + n for n in new), rank(picked)))
    behind = rank(x) - len(arrays) - start
    for _, outside in found:
        picked = picked if outside is None else mask_outside(picked, outside[(..., *[None] * behind)])
    return picked


def op_slice(inputs, start_indices, shape):
    x = convert(inputs)
    starts, outside = block_start(start_indices, x, shape)
    x = tf.slice(x, tf.convert_to_tensor(starts, tf.int64), tf.constant(list(shape), tf.int64))
    return x if outside is None else mask_outside(x, outside)


def op_slice_update(x, start_indices, updates):
    if rank(x) == rank(updates) == 0:
        return updates
    starts, outside = block_start(start_indices, x, updates.shape)
    starts = tf.convert_to_tensor(starts, tf.int64)
    updated = tf.raw_ops.TensorStridedSliceUpdate(
        input=x, begin=starts, end=starts + tf.shape(updates, tf.int64), strides=tf.ones_like(starts), value=updates
    )
    return updated if outside is None else choose(outside, x, updated)


def op_scatter_update(x, indices, updates, reduction):
    known = np.asarray(indices) if type(indices) is EagerTensor and "CPU:" in indices.device else None
    sizes = [None] if known is None else known_shape(x)[: known.shape[-1]]
    are_inside = None not in sizes and np.logical_and.reduce((known >= 0) & (known < sizes), axis=None)
    return (scatter if are_inside else update_cells)(x, indices, updates, reduction, bool(are_inside))


def update_cells(x, indices, updates, reduction, are_inside):
    cells, depth = flat_indices(indices, x, are_inside)
    inner = tf.shape(x)[depth:]
    updates = tf.broadcast_to(updates, tf.concat([tf.shape(cells), inner], 0))
    width = tf.reduce_prod(inner)
    updates = tf.reshape(updates, tf.stack([tf.size(cells), width]))
    rows = tf.reshape(x, tf.stack([tf.reduce_prod(tf.shape(x)[:depth]), width]))
    return tf.reshape(scatter_rows(rows, tf.reshape(cells, [-1]), updates, reduction), tf.shape(x))


scatter = in_one_call(update_cells)


def op_select(condlist, choicelist, default):
    *choices, result = promote_all(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = choose(truth(condition), choice, result)
    return result


def op_unravel_index(indices, shape):
    indices = to_index_integers(indices)
    outside = tf.logical_or(indices < 0, indices >= math.prod(shape))
    if is_at_hand(outside) and bool(tf.reduce_any(outside)):
        raise errors.ArgumentError(f"an index is out of range for shape {shape}")
    found = []
    for n in reversed(shape[1:]):
        found.append(tf.math.floormod(indices, max(n, 1)))
        indices = tf.math.floordiv(indices, max(n, 1))
    return tuple(tf.cast(index, tf.int32) for index in reversed([*found, indices][: len(shape)]))


def op_one_hot(x, num_classes, axis, dtype):
    x = x if are_indices(x) else to_index_integers(x)
    axis = args.single_axis(axis, rank(x) + 1)
    if dtype == "float32":
        return tf.raw_ops.OneHot(indices=x, depth=num_classes, on_value=1.0, off_value=0.0, axis=axis)
    mask = tf.raw_ops.OneHot(indices=x, depth=num_classes, on_value=True, off_value=False, axis=axis)
    return tf.cast(mask, native(dtype))


def are_known_inside(indices, size):
    """Say whether `indices` are a tensor of ints that are known to lie from 0 to `size`."""
    is_seen = size and type(indices) is EagerTensor and "CPU:" in indices.device
    unsigned = _UNSIGNED.get(indices.dtype) if is_seen else None
    return unsigned is not None and np.maximum.reduce(np.asarray(indices).view(unsigned), axis=None, initial=0) < size


_UNSIGNED = {tf.int32: np.uint32, tf.int64: np.uint64}  # in which negative numbers are the largest


def are_indices(x):
    """Say whether `x` are tensors of a dtype that TensorFlow takes for indices."""
    return isinstance(x, tf.Tensor) and x.dtype in _UNSIGNED


def check_indices(indices, x, axis):
    """Return non-negative indices, and a mask of those out of range; if the values are known, raise, and no mask."""
    indices = indices if isinstance(indices, np.ndarray) or are_indices(indices) else to_index_integers(indices)
    if x.shape[axis] is not None:
        known = args.host_indices(given := np.asarray(indices) if is_at_hand(indices) else indices, x.shape[axis])
        if known is not None:
            return convert(indices if known is given else known), None
    indices = to_index_integers(indices)
    size = tf.shape(x, tf.int64)[axis]
    outside = tf.logical_or(indices < -size, indices >= size)
    wrapped = choose(indices < 0, indices + size, indices)
    return choose(outside, tf.zeros_like(wrapped), wrapped), outside


def mask_outside(x, outside):
    fill = tf.cast(math.nan if x.dtype.is_floating or x.dtype.is_complex else 0, x.dtype)
    return tf.raw_ops.SelectV2(condition=outside, t=fill, e=x, name=_linear.FILL)


def block_start(start_indices, x, shape):
    """Return where a block of `shape` starts in `x` and, if the values are not known, whether it exceeds `x`."""
    sizes = known_shape(x)
    starts = args.host_ints(start_indices)
    if starts is None:
        starts = to_index_integers(start_indices)
        if is_at_hand(starts):
            starts = tf.reshape(starts, [-1]).numpy().tolist()
    if not is_tensor(starts) and None not in sizes:
        return args.corner(starts, sizes, shape), None
    starts = tf.convert_to_tensor(starts, tf.int64)
    args.block(starts, sizes, shape)
    sizes = tf.shape(x, tf.int64)
    starts = choose(starts < 0, starts + sizes, starts)
    most = sizes - tf.constant(list(shape), tf.int64)
    outside = tf.reduce_any(tf.logical_or(starts < 0, starts > most))
    return choose(outside, tf.zeros_like(starts), starts), outside


def flat_indices(indices, x, are_inside=False):
    """Return the flat index of each cell of `x` that `indices` select, and how many dimensions index the cells.

    Indices out of range that cannot raise become -1.
    """
    indices = to_index_integers(indices)
    depth = indices.shape[-1]
    cells, left_out = tf.zeros(tf.shape(indices)[:-1], tf.int64), []
    for dim in range(depth):
        column = indices[..., dim]
        column, outside = (column, None) if are_inside else check_indices(column, x, dim)
        cells = cells * tf.shape(x, tf.int64)[dim] + tf.cast(column, tf.int64)
        left_out += [] if outside is None else [outside]
    for outside in left_out:
        cells = choose(outside, tf.constant(-1, tf.int64), cells)
    return cells, depth


def scatter_rows(rows, cells, updates, reduction):
    """Return `rows` with `updates` of the rows `cells`, applied in order; `cells` may repeat, and -1 is ignored."""
    if reduction == "add" and rows.dtype is not tf.bool:
        add = lambda rows, updates: rows + tf.math.unsorted_segment_sum(updates, cells, tf.shape(rows)[0])  # noqa: E731
        return in_float32(add, rows, updates)
    last = tf.math.unsorted_segment_max(tf.range(tf.shape(cells)[0]), cells, tf.shape(rows)[0])
    hit = (last >= 0)[:, None]
    if reduction is None:
        updates = tf.gather(tf.concat([updates, tf.ones_like(rows[:1])], 0), tf.maximum(last, 0))
        return choose(hit, updates, rows)
    n, combine = tf.shape(rows, tf.int64)[0], _COMBINE[reduction]
    cells = choose(cells < 0, n, cells)
    order = tf.argsort(cells, stable=True)
    updates = combine_segments(combine, tf.gather(dense(updates), order), tf.gather(cells, order), n)
    one = tf.ones([], rows.dtype)  # a zero gradient must not be multiplied by infinity
    return choose(hit, combine(choose(hit, rows, one), updates), rows)


_COMBINE = {"add": op_add, "max": op_maximum, "min": op_minimum, "mul": op_multiply}


def by_doubling(fn, x):
    """Return `x` after `x = fn(step, x)` for the steps 1, 2, 4, ... below its length."""
    if x.shape[0] is None:
        start = tf.constant(1, tf.int64), x
        return tf.while_loop(
            lambda step, x: step < tf.shape(x, tf.int64)[0], lambda step, x: (2 * step, fn(step, x)), start
        )[1]
    step = 1
    while step < x.shape[0]:
        step, x = 2 * step, fn(step, x)
    return x


def combine_segments(combine, x, ids, n):
    """Return the rows of each segment combined pairwise, ones for an empty one; the ids are sorted, and `n` is none."""
    size = tf.shape(x, tf.int64)[0] if x.shape[0] is None else x.shape[0]
    rows, behind, one = tf.range(size, dtype=tf.int64), [1] * (rank(x) - 1), tf.ones([], x.dtype)
    first = tf.minimum(tf.math.unsorted_segment_min(rows, ids, n + 1), size)
    place = rows - tf.gather(first, ids)

    def joined_at(step, x):
        same = tf.logical_and(tf.equal(ids[:-step], ids[step:]), ids[:-step] < n)
        joins = tf.reshape(tf.logical_and(tf.equal(place[:-step] % (2 * step), 0), same), [-1, *behind])
        joined = combine(choose(joins, x[:-step], one), choose(joins, x[step:], one))
        return tf.concat([choose(joins, joined, x[:-step]), x[-step:]], 0)

    x = by_doubling(joined_at, x)
    x = tf.concat([x, tf.ones(tf.concat([[1], tf.shape(x)[1:]], 0), x.dtype)], 0)
    return tf.gather(dense(x), first[:n])
