"""Shapes: the same entries, arranged otherwise."""

from __future__ import annotations

import tensorflow as tf

from multiop import _args, errors

from .conversion import convert, is_tensor, promote_all, rank
from .reduction import axes


def op_reshape(x, newshape):
    return tf.reshape(convert(x), newshape)


def op_transpose(x, axes):
    x = convert(x)
    return tf.transpose(x, None if axes is None else _args.permutation(axes, rank(x)))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    order = list(range(rank(x)))
    axis1, axis2 = _args.single_axis(axis1, rank(x), "axis1"), _args.single_axis(axis2, rank(x), "axis2")
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def op_moveaxis(x, source, destination):
    x = convert(x)
    return tf.transpose(x, _args.moved(source, destination, rank(x)))


def op_expand_dims(x, axis):
    x = convert(x)
    ndim = rank(x) + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    for dim in sorted(_args.axes(axis, ndim)):
        x = tf.expand_dims(x, dim)
    return x


def op_squeeze(x, axis):
    x = convert(x)
    if axis is None:
        return tf.squeeze(x)
    dims = axes(axis, x)
    if not dims:  # which tf.squeeze takes for all
        return x
    if any(x.shape[dim] not in (1, None) for dim in dims):
        raise errors.ArgumentError(f"axis {axis} has more than one entry in shape {tuple(x.shape)}")
    return tf.squeeze(x, dims)


def op_concatenate(xs, axis):
    xs = promote_all(*sequence(xs))
    return tf.concat(xs, _args.single_axis(axis, rank(xs[0])))


def op_stack(x, axis):
    xs = promote_all(*sequence(x))
    return tf.stack(xs, _args.single_axis(axis, rank(xs[0]) + 1))


def op_split(x, indices_or_sections, axis):
    x = convert(x)
    axis = _args.single_axis(axis, rank(x))
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or (x.shape[axis] or 0) % indices_or_sections:
            raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {indices_or_sections} equal parts")
        return tf.split(x, indices_or_sections, axis)
    whole = (slice(None),) * axis
    ends = [*indices_or_sections, None]
    return [x[(*whole, slice(start, end))] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def op_broadcast_to(x, shape):
    return tf.broadcast_to(convert(x), shape)


def op_flip(x, axis):
    x = convert(x)
    return tf.reverse(x, _args.axes(axis, rank(x)))


def sequence(xs):
    return tf.unstack(xs) if is_tensor(xs) else _args.sequence(xs)
