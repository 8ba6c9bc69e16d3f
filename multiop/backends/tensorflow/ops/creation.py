"""Tensors made from shapes and numbers."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop._values import args, dtypes, host

from ..conversion import choose, convert, is_float, is_tensor, native, promote, rank, reject_complex


def op_zeros(shape, dtype):
    return tf.zeros(shape, native(dtype))


def op_ones(shape, dtype):
    return tf.ones(shape, native(dtype))


def op_full(shape, fill_value, dtype):
    return tf.broadcast_to(convert(fill_value, dtype), shape)


def op_zeros_like(x, dtype):
    if dtype is None and is_float(x) and tf.executing_eagerly():
        return tf.raw_ops.ZerosLike(x=x)
    return tf.zeros_like(convert(x), dtype and native(dtype))


def op_ones_like(x, dtype):
    x = convert(x)
    return tf.ones_like(x, native(dtype)) if dtype else tf.raw_ops.OnesLike(x=x)


def op_full_like(x, fill_value, dtype):
    x = convert(x)
    return tf.broadcast_to(convert(fill_value, dtype or x.dtype.name), tf.shape(x))


def op_arange(start, stop, step, dtype):
    ends = (start, stop, step)
    exact = (
        tf.float64 if any(isinstance(x, float) or (is_tensor(x) and x.dtype.is_floating) for x in ends) else tf.int64
    )
    start, stop, step = (tf.constant(x, exact) if host.is_scalar(x) else tf.cast(convert(x), exact) for x in ends)
    # tf.range raises for an empty range, and accumulates the rounding errors of the steps
    count = tf.maximum(tf.math.ceil((stop - start) / step), 0)
    return tf.cast(start + step * tf.cast(tf.range(tf.cast(count, tf.int64)), exact), native(dtype))


def op_eye(n, m, k, dtype):
    k = min(max(k, -(2**30)), 2**30) if isinstance(k, int) else k  # beyond every dimension, and within int32
    return tf.cast(tf.equal(tf.range(args.countable((n, m))[0])[:, None] + k, tf.range(m)), native(dtype))


def op_copy(x):
    return tf.identity(convert(x))


def op_linspace(start, stop, num, endpoint, dtype, axis):
    start, stop = promote(start, stop)
    given = dtypes.to_floating(start.dtype.name)
    if not (start.dtype.is_floating or start.dtype.is_complex):  # in float32, large integers would be rounded,
        start, stop = tf.cast(start, tf.float64), tf.cast(stop, tf.float64)  # and numbers near 0 with them
    if given in ("float16", "bfloat16"):
        start, stop = tf.cast(start, tf.float32), tf.cast(stop, tf.float32)
    one = tf.ones_like(start - stop)
    unit = choose(tf.math.is_finite(tf.abs(start - stop)), one, 4 * one)  # the distance of large numbers overflows
    delta, parts = stop / unit - start / unit, num - endpoint
    axis = args.single_axis(axis, rank(delta) + 1)
    index = tf.reshape(tf.cast(tf.range(num), delta.dtype), [num, *[1] * rank(delta)])
    divisor = tf.constant(max(parts, 1), delta.dtype)
    step = delta / divisor
    whole = dtype in dtypes.INTEGER
    # a rounded step may miss an integer
    samples = (start / unit + (index * delta / divisor if whole else index * step)) * unit
    if endpoint and num > 1:
        samples = choose(tf.equal(index, divisor), stop, samples)
    samples = convert(tf.floor(*reject_complex(samples)) if whole else samples, dtype or given)
    step = step * unit if parts > 0 else tf.fill(tf.shape(step), tf.constant(math.nan, step.dtype))
    return tf.transpose(samples, args.moved_order(0, axis, rank(samples))), convert(step, given)
