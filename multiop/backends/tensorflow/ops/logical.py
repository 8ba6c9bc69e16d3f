"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

import math

import tensorflow as tf

from ..conversion import (
    align,
    are_floats,
    broadcast,
    choose,
    comparable,
    convert,
    executing_eagerly,
    is_float_scalar,
    is_tracked,
    promote,
    reject_complex,
    truth,
)


def op_equal(x1, x2):
    return compare(tf.raw_ops.Equal, promote, x1, x2)


def op_not_equal(x1, x2):
    return compare(tf.raw_ops.NotEqual, promote, x1, x2)


def op_less(x1, x2):
    return compare(tf.raw_ops.Less, comparable, x1, x2)


def op_less_equal(x1, x2):
    return compare(tf.raw_ops.LessEqual, comparable, x1, x2)


def op_greater(x1, x2):
    return compare(tf.raw_ops.Greater, comparable, x1, x2)


def op_greater_equal(x1, x2):
    return compare(tf.raw_ops.GreaterEqual, comparable, x1, x2)


def op_isnan(x):
    return test_parts(tf.math.is_nan, tf.logical_or, convert(x), False)


def op_isinf(x):
    return test_parts(tf.math.is_inf, tf.logical_or, convert(x), False)


def op_isfinite(x):
    return test_parts(tf.math.is_finite, tf.logical_and, convert(x), True)


def op_logical_and(x1, x2):
    return tf.logical_and(truth(x1), truth(x2))


def op_logical_or(x1, x2):
    return tf.logical_or(truth(x1), truth(x2))


def op_logical_xor(x1, x2):
    return tf.not_equal(truth(x1), truth(x2))


def op_logical_not(x):
    return negation(truth(x))


def negation(x):
    """Return `not x`. In a graph, TensorFlow makes `x > y` of a native `not x <= y`, which differs for NaN."""
    return tf.logical_not(x) if executing_eagerly() else tf.equal(x, False)


def op_where(condition, x1, x2):
    condition, (x1, x2) = truth(condition), align(x1, x2)
    if x1.dtype.size == 2 and x1.dtype.is_floating and is_tracked():
        shape = tf.broadcast_dynamic_shape(tf.shape(condition), tf.broadcast_dynamic_shape(tf.shape(x1), tf.shape(x2)))
        x1, x2 = broadcast(x1, shape), broadcast(x2, shape)
    return choose(condition, x1, x2)


def op_nonzero(x):
    return tuple(tf.unstack(tf.cast(tf.where(truth(x)), tf.int32), axis=1))


def op_isposinf(x):
    return test_floats(lambda x: tf.equal(x, math.inf), x)


def op_isneginf(x):
    return test_floats(lambda x: tf.equal(x, -math.inf), x)


def op_isreal(x):
    x = convert(x)
    return tf.equal(tf.math.imag(x), 0) if x.dtype.is_complex else tf.fill(tf.shape(x), True)


def op_signbit(x):
    x = convert(x)
    if x.dtype.is_integer:
        return tf.less(x, tf.zeros_like(x))
    return test_floats(lambda x: tf.less(tf.bitcast(x, tf.as_dtype(f"int{8 * x.dtype.size}")), 0), x)


def op_isclose(x1, x2, rtol, atol, equal_nan):
    x1, x2 = promote(x1, x2)
    if not x1.dtype.is_complex and x1.dtype not in (tf.float32, tf.float64):
        wide = tf.float32 if x1.dtype.is_floating else tf.float64  # it holds integers exactly
        x1, x2 = tf.cast(x1, wide), tf.cast(x2, wide)
    within = tf.less_equal(tf.abs(x1 - x2), atol + rtol * tf.abs(x2))
    close = tf.equal(x1, x2) | op_isfinite(x2) & within
    return close | op_isnan(x1) & op_isnan(x2) if equal_nan else close


def compare(kernel, convert, x1, x2):
    if not (are_floats(x1, x2) or is_float_scalar(x1, x2)):
        x1, x2 = convert(x1, x2)
    return kernel(x=x1, y=x2)


def test_parts(test, join, x, otherwise):
    """Apply a test of floats to any dtype: both parts of a complex number are tested; integers give `otherwise`."""
    if x.dtype.is_floating:
        return test(x)
    if x.dtype.is_complex:
        return join(test(tf.math.real(x)), test(tf.math.imag(x)))
    return tf.fill(tf.shape(x), otherwise)


def test_floats(test, x):
    """Apply a test of real floats; integers and bools fail it."""
    return test_parts(test, tf.logical_or, *reject_complex(convert(x)), False)
