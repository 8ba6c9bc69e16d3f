"""Shapes: the same entries in another arrangement."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._values import args, host

from ..autodiff._programs import in_one_call
from ..conversion import (
    broadcast,
    cached_ints,
    choose,
    convert,
    dense,
    dtype_name,
    is_tensor,
    known_shape,
    promote_all,
    rank,
    resolve_axis,
    where_differentiated,
)


def op_reshape(x, newshape):
    return tf.raw_ops.Reshape(tensor=convert(x), shape=cached_ints(newshape))


def op_transpose(x, axes):
    x = convert(x)
    order = tuple(range(rank(x)))[::-1] if axes is None else args.permutation(axes, rank(x))
    return tf.raw_ops.Transpose(x=x, perm=cached_ints(order))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    order = list(range(rank(x)))
    axis1, axis2 = args.single_axis(axis1, rank(x), "axis1"), args.single_axis(axis2, rank(x), "axis2")
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def op_moveaxis(x, source, destination):
    x = convert(x)
    order = tuple(args.moved_order(source, destination, rank(x)))
    return x if order == tuple(range(rank(x))) else tf.raw_ops.Transpose(x=x, perm=cached_ints(order))


def op_expand_dims(x, axis):
    x = convert(x)
    ndim = rank(x) + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    for dim in sorted(args.axes(axis, ndim)):
        x = tf.raw_ops.ExpandDims(input=x, axis=dim)
    return x


def op_squeeze(x, axis):
    x = convert(x)
    if axis is None:
        return tf.squeeze(x)
    dims = args.axes_to_squeeze(axis, known_shape(x))
    return tf.squeeze(x, dims) if dims else x  # tf.squeeze takes an empty list for all


def op_concatenate(xs, axis):
    xs = promote_all(*sequence(xs))
    axis = args.single_axis(axis, rank(xs[0]))
    return tf.raw_ops.ConcatV2(values=xs, axis=axis, name="concat") if len(xs) > 1 else tf.identity(xs[0])


def op_stack(x, axis):
    xs = promote_all(*sequence(x))
    return tf.raw_ops.Pack(values=xs, axis=args.single_axis(axis, rank(xs[0]) + 1), name="stack")


def op_split(x, indices_or_sections, axis):
    x = convert(x)
    axis = args.single_axis(axis, rank(x))
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or (x.shape[axis] or 0) % indices_or_sections:
            raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {indices_or_sections} equal parts")
        return tf.split(x, indices_or_sections, axis)
    whole = (slice(None),) * axis
    ends = [*indices_or_sections, None]
    return [x[(*whole, slice(start, end))] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def op_broadcast_to(x, shape):
    return broadcast(convert(x), cached_ints(shape))


def op_flip(x, axis):
    return tf.reverse(x := convert(x), args.axes(axis, rank(x)))


def op_tile(x, repeats):
    x = convert(x)
    missing = len(repeats) - rank(x)
    x = tf.reshape(x, tf.concat([[1] * missing, tf.shape(x)], 0)) if missing > 0 else x
    repeats = (*(1,) * -missing, *repeats)
    return repeat_entries(lambda x: tf.tile(x, repeats), x)


def op_repeat(x, repeats, axis):
    x, axis = resolve_axis(convert(x), axis)
    if len(repeats) != 1 and x.shape[axis] not in (None, len(repeats)):
        raise errors.ArgumentError(f"{len(repeats)} numbers of repeats do not fit {x.shape[axis]} entries")
    if len(repeats) == 1:
        return repeat_entries(lambda x: tf.repeat(x, repeats[0], axis), x)
    places = np.repeat(np.arange(len(repeats), dtype="int32"), repeats)  # a graph knows their number
    return repeat_entries(lambda x: tf.gather(dense(x), places, axis=axis), x)


def op_roll(x, shift, axis):
    x = convert(x)
    if axis is None:
        return tf.reshape(op_roll(tf.reshape(x, [-1]), shift, 0), tf.shape(x))
    dims = args.axes(axis, rank(x))
    shifts = args.narrow_shifts(args.shifts(shift, dims), [x.shape[dim] for dim in dims])
    if len(dims) == 1:  # TensorFlow takes twice as long to read lists
        return tf.raw_ops.Roll(input=x, shift=shifts[0], axis=dims[0])
    return tf.roll(x, shifts, dims) if dims else x


def op_pad(x, pad_width, mode, constant_values):
    x = convert(x)
    pairs = args.pairs(pad_width, rank(x))
    if mode == "constant":
        padded = tf.pad(x, pairs) if pairs else x
        if host.is_zero(constant_values):
            return padded
        # tf.vectorized_map silently drops the constant_values of tf.pad
        inside = tf.pad(tf.ones_like(x, tf.bool), pairs) if pairs else tf.ones_like(x, tf.bool)
        return choose(inside, padded, convert(constant_values, dtype_name(x)))
    return repeat_at_ends(x, tuple(map(tuple, pairs)), mode)


@in_one_call
def repeat_at_ends(x, pairs, mode):
    for dim, pair in enumerate(pairs):
        if any(pair):
            places = args.padding_indices(x.shape[dim], pair, mode)
            x = where_differentiated(lambda x, places=places, dim=dim: tf.gather(dense(x), places, axis=dim), x)
    return x


def op_unstack(x, num, axis):
    return tf.unstack(x := convert(x), num, args.axis_to_unstack(axis, num, known_shape(x)))


def op_diagonal(x, offset, axis1, axis2):
    x = convert(x)
    axis1, axis2 = args.two_axes(axis1, axis2, rank(x))
    if (axis1, axis2) != (rank(x) - 2, rank(x) - 1):
        x = tf.transpose(x, args.moved_order((axis1, axis2), (-2, -1), rank(x)))
    rows, columns = x.shape[-2], x.shape[-1]
    if None not in (rows, columns) and not -rows < offset < columns:
        return x[..., 0, :0]  # tf.linalg.diag_part rejects it
    return tf.linalg.diag_part(x, k=offset)


def repeat_entries(fn, x):
    """Return `fn(x)`, which repeats entries: TensorFlow has no kernel for uint16."""
    return tf.cast(fn(tf.cast(x, tf.int32)), x.dtype) if x.dtype is tf.uint16 else where_differentiated(fn, x)


def sequence(xs):
    return tf.unstack(xs) if is_tensor(xs) else args.sequence(xs)
