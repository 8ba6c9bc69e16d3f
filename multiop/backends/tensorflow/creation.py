"""Tensors made from shapes and numbers."""

from __future__ import annotations

import tensorflow as tf

from multiop import _dtypes, _host, errors

from .conversion import convert, is_tensor, native


def op_zeros(shape, dtype):
    return tf.zeros(shape, native(dtype))


def op_ones(shape, dtype):
    return tf.ones(shape, native(dtype))


def op_full(shape, fill_value, dtype):
    return tf.broadcast_to(convert(fill_value, dtype), shape)


def op_zeros_like(x, dtype):
    return tf.zeros_like(convert(x), dtype and native(dtype))


def op_ones_like(x, dtype):
    return tf.ones_like(convert(x), dtype and native(dtype))


def op_full_like(x, fill_value, dtype):
    x = convert(x)
    return tf.broadcast_to(convert(fill_value, dtype or x.dtype.name), tf.shape(x))


def op_arange(start, stop, step, dtype):
    ends = (start, stop, step)
    dtype = native(
        dtype
        or _dtypes.result_type(*[_dtypes.of_scalar(x) if _host.is_scalar(x) else _dtypes.name(x.dtype) for x in ends])
    )
    if _host.is_scalar(step) and step == 0:
        raise errors.ArgumentError("step must not be 0")
    exact = (
        tf.float64 if any(isinstance(x, float) or (is_tensor(x) and x.dtype.is_floating) for x in ends) else tf.int64
    )
    start, stop, step = (tf.constant(x, exact) if _host.is_scalar(x) else tf.cast(convert(x), exact) for x in ends)
    # tf.range would raise for an empty range, and add up the steps and their errors
    count = tf.maximum(tf.math.ceil((stop - start) / step), 0)
    return tf.cast(start + step * tf.cast(tf.range(tf.cast(count, tf.int64)), exact), dtype)


def op_eye(n, m, k, dtype):
    return tf.cast(tf.equal(tf.range(n)[:, None] + k, tf.range(m)), native(dtype))


def op_copy(x):
    return tf.identity(convert(x))
