"""Order: sorting and searching."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import _args, errors

from .conversion import along, choose, convert, promote, rank
from .elementwise import real


def op_sort(x, axis):
    x, axis = along(*real(convert(x)), axis)
    to_end, back = _args.moved(axis, -1, rank(x)), _args.moved(-1, axis, rank(x))
    x = tf.transpose(x, to_end)
    return tf.transpose(tf.gather(x, order(x), batch_dims=rank(x) - 1), back)


def op_argsort(x, axis):
    x, axis = along(*real(convert(x)), axis)
    to_end, back = _args.moved(axis, -1, rank(x)), _args.moved(-1, axis, rank(x))
    return tf.transpose(order(tf.transpose(x, to_end)), back)


def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = real(*promote(sorted_sequence, values))
    if rank(sorted_sequence) != 1:
        raise errors.ArgumentError(f"sorted_sequence must have one dimension, not {rank(sorted_sequence)}")
    wide = {tf.bool: tf.int32, tf.float16: tf.float32, tf.bfloat16: tf.float32}.get(values.dtype, values.dtype)
    sequence, flat = tf.cast(sorted_sequence, wide), tf.reshape(tf.cast(values, wide), [-1])
    found = tf.reshape(tf.searchsorted(sequence, flat, side), tf.shape(values))
    return choose(tf.math.is_nan(values), tf.size(sequence), found) if values.dtype.is_floating else found


def order(x):
    """Return the indices that sort `x` along its last axis, equal entries in their order, NaN last."""
    if not x.dtype.is_floating:
        return tf.argsort(tf.cast(x, tf.uint8) if x.dtype is tf.bool else x, stable=True)
    nan = tf.math.is_nan(x)  # which tf.argsort leaves anywhere
    first = tf.argsort(choose(nan, tf.constant(math.inf, x.dtype), x), stable=True)
    behind = tf.argsort(tf.cast(tf.gather(nan, first, batch_dims=rank(x) - 1), tf.int32), stable=True)
    return tf.gather(first, behind, batch_dims=rank(x) - 1)
