"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

import tensorflow as tf

from .conversion import choose, convert, promote
from .elementwise import real


def op_equal(x1, x2):
    return tf.equal(*promote(x1, x2))


def op_not_equal(x1, x2):
    return tf.not_equal(*promote(x1, x2))


def op_less(x1, x2):
    return tf.less(*comparable(x1, x2))


def op_less_equal(x1, x2):
    return tf.less_equal(*comparable(x1, x2))


def op_greater(x1, x2):
    return tf.greater(*comparable(x1, x2))


def op_greater_equal(x1, x2):
    return tf.greater_equal(*comparable(x1, x2))


def op_isnan(x):
    return of_parts(tf.math.is_nan, tf.logical_or, convert(x), False)


def op_isinf(x):
    return of_parts(tf.math.is_inf, tf.logical_or, convert(x), False)


def op_isfinite(x):
    return of_parts(tf.math.is_finite, tf.logical_and, convert(x), True)


def op_logical_and(x1, x2):
    return tf.logical_and(truth(x1), truth(x2))


def op_logical_or(x1, x2):
    return tf.logical_or(truth(x1), truth(x2))


def op_logical_xor(x1, x2):
    return tf.not_equal(truth(x1), truth(x2))


def op_logical_not(x):
    return tf.logical_not(truth(x))


def op_where(condition, x1, x2):
    return choose(truth(condition), *promote(x1, x2))


def op_nonzero(x):
    return tuple(tf.unstack(tf.cast(tf.where(truth(x)), tf.int32), axis=1))


def truth(x):
    return convert(x, "bool")


def comparable(x1, x2):
    x1, x2 = real(*promote(x1, x2))
    return (tf.cast(x1, tf.uint8), tf.cast(x2, tf.uint8)) if x1.dtype is tf.bool else (x1, x2)


def of_parts(test, join, x, otherwise):
    """Apply a test of floats to any dtype: to both parts of a complex number; `otherwise` for integers."""
    if x.dtype.is_floating:
        return test(x)
    if x.dtype.is_complex:
        return join(test(tf.math.real(x)), test(tf.math.imag(x)))
    return tf.fill(tf.shape(x), otherwise)
