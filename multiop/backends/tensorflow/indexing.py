"""Entries picked out by their indices."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import _args, errors

from .conversion import along, choose, convert, rank
from .elementwise import is_known


def op_take(x, indices, axis):
    x, axis = along(convert(x), axis)
    indices, outside = within(indices, x, axis)
    picked = tf.gather(x, indices, axis=axis)
    return picked if outside is None else blank(picked, outside[(..., *[None] * (rank(x) - axis - 1))])


def op_take_along_axis(x, indices, axis):
    x, axis = along(convert(x), axis)
    indices, outside = within(indices, x, axis)
    if rank(indices) != rank(x):
        raise errors.ArgumentError(f"indices has {rank(indices)} dimensions, x has {rank(x)}")
    to_end, back = _args.moved(axis, -1, rank(x)), _args.moved(-1, axis, rank(x))
    x, indices = tf.transpose(x, to_end), tf.transpose(indices, to_end)
    batch = tf.broadcast_dynamic_shape(tf.shape(x)[:-1], tf.shape(indices)[:-1])
    x = tf.broadcast_to(x, tf.concat([batch, tf.shape(x)[-1:]], 0))
    indices = tf.broadcast_to(indices, tf.concat([batch, tf.shape(indices)[-1:]], 0))
    picked = tf.transpose(tf.gather(x, indices, batch_dims=rank(x) - 1), back)
    return picked if outside is None else blank(picked, outside)


def within(indices, x, axis):
    """Return indices into `axis` of `x`, and where they were out of range, unless that could be seen, and raised."""
    indices = convert(indices)
    if not indices.dtype.is_integer:
        raise errors.DTypeError("indices must be integers")
    indices, size = tf.cast(indices, tf.int64), tf.shape(x, tf.int64)[axis]
    outside = tf.logical_or(indices < -size, indices >= size)
    wrapped = choose(indices < 0, indices + size, indices)
    if is_known(outside):
        if bool(tf.reduce_any(outside)):
            raise errors.ArgumentError(f"an index is out of range for {int(size)} entries")
        return wrapped, None
    return choose(outside, tf.zeros_like(wrapped), wrapped), outside


def blank(x, outside):
    return choose(outside, tf.cast(math.nan if x.dtype.is_floating or x.dtype.is_complex else 0, x.dtype), x)
