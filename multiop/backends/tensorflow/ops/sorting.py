"""Sorting and searching."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import errors
from multiop._values import args

from ..autodiff._programs import in_one_call
from ..conversion import (
    choose,
    convert,
    dense,
    in_float32,
    known_shape,
    promote,
    rank,
    reject_complex,
    resolve_axis,
    to_index_integers,
)
from ..devices import is_at_hand
from .shapes import op_moveaxis


@in_one_call
def op_sort(x, axis):
    x, axis = resolve_axis(*reject_complex(convert(x)), axis)
    x = op_moveaxis(dense(x) if rank(x) == 1 else x, axis, -1)
    return op_moveaxis(tf.gather(x, tf.argsort(to_sortable(x), stable=True), batch_dims=rank(x) - 1), -1, axis)


@in_one_call
def op_argsort(x, axis):
    x, axis = resolve_axis(*reject_complex(convert(x)), axis)
    return op_moveaxis(tf.argsort(to_sortable(op_moveaxis(x, axis, -1)), stable=True), -1, axis)


@in_one_call
def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = reject_complex(*promote(sorted_sequence, values))
    one = rank(sorted_sequence) == 1
    args.rows(known_shape(sorted_sequence), known_shape(values))
    wide = {tf.bool: tf.int32, tf.float16: tf.float32, tf.bfloat16: tf.float32}.get(values.dtype, values.dtype)
    sequence, flat = tf.cast(sorted_sequence, wide), tf.cast(values, wide)
    flat = tf.reshape(flat, [-1]) if one else flat
    if not values.dtype.is_floating:
        return tf.reshape(tf.searchsorted(sequence, flat, side), tf.shape(values))
    nan = tf.math.is_nan(sequence)  # at which TensorFlow takes a wrong turn
    below = tf.reduce_sum(tf.cast(tf.logical_not(nan), tf.int32), -1, keepdims=not one)
    found = tf.searchsorted(choose(nan, tf.constant(math.inf, wide), sequence), flat, side)
    found = tf.reshape(tf.minimum(found, below), tf.shape(values))
    return choose(tf.math.is_nan(values), below if side == "left" else tf.shape(sequence)[-1], found)


@in_one_call
def op_top_k(x, k, sorted):
    (x,) = reject_complex(convert(x))
    rank(x)
    args.within_last(k, x.shape)
    indices = tf.math.top_k(to_sortable(x), k).indices
    return tf.gather(dense(x), indices, batch_dims=rank(x) - 1), indices


def op_digitize(x, bins):
    bins = convert(bins)
    if rank(bins) != 1:
        raise errors.ArgumentError(f"bins must be a vector, got {args.describe(bins)}")
    known = bins.numpy() if is_at_hand(bins) else None
    if known is not None and (known[1:] < known[:-1]).any():
        raise errors.ArgumentError("bins must be sorted, smallest first")
    return op_searchsorted(bins, x, "right")


def op_bincount(x, weights, minlength):
    x = to_index_integers(x)
    if bool(tf.reduce_any(x < 0)):
        raise errors.ArgumentError("x must hold no negative number")
    length = max(minlength, int(tf.reduce_max(x)) + 1 if x.shape[0] else 0)
    if weights is None:
        return tf.raw_ops.Bincount(arr=tf.cast(x, tf.int32), size=length, weights=tf.zeros([0], tf.int32))
    return in_float32(lambda weights: tf.math.unsorted_segment_sum(weights, x, length), weights)


def to_sortable(x):
    """Return `x`, or integers in the same order with NaN on top: TensorFlow does not order NaN."""
    if not x.dtype.is_floating:
        return tf.cast(x, tf.uint8) if x.dtype is tf.bool else x
    x = tf.stop_gradient(x if x.dtype is tf.float64 else tf.cast(x, tf.float32))
    bits = tf.bitcast(choose(tf.equal(x, 0), tf.zeros_like(x), x), tf.int64 if x.dtype is tf.float64 else tf.int32)
    bits = choose(bits < 0, bits.dtype.min - bits - 1, bits)
    return choose(tf.math.is_nan(x), bits.dtype.max, bits)  # as an integer: XLA takes any NaN for that of a constant
