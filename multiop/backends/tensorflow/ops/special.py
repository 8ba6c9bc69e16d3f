"""Special functions."""

from __future__ import annotations

import math

import tensorflow as tf

from ..autodiff._programs import in_one_call
from ..conversion import choose, floating, in_float32, reject_complex


def op_erf(x):
    (x,) = reject_complex(floating(x))
    if x.dtype is not tf.float64:
        return tf.raw_ops.Erf(x=x)
    far = tf.abs(x) > 30  # there, TensorFlow's is NaN in float64
    return choose(far, tf.sign(x), tf.math.erf(choose(far, tf.zeros_like(x), x)))


def op_erfc(x):
    return tf.math.erfc(*reject_complex(floating(x)))


@in_one_call
def op_erfinv(x):
    (x,) = reject_complex(floating(x))  # in float32, TensorFlow's is off by tens of units in the last place
    return tf.cast(erfinv(tf.cast(x, tf.float64)), x.dtype)


@in_one_call
def op_i0(x):
    return in_float32(i0, *reject_complex(floating(x)))


def erfinv(x):
    """Return `tf.math.erfinv(x)`, and restore the digits that it loses by computing 1 + x."""
    side = choose(x > 0.5, -tf.ones_like(x), tf.ones_like(x))
    y = side * tf.math.erfinv(side * x)
    inside = tf.math.is_finite(y)
    half = tf.constant(0.5, x.dtype)
    x, root = choose(inside, x, half), choose(inside, y, half)
    near = tf.abs(x) < 0.5
    excess = choose(near, tf.math.erf(root) - x, tf.sign(x) * ((1 - tf.abs(x)) - tf.math.erfc(tf.abs(root))))
    return choose(inside, root - excess * tf.exp(root * root) * (math.sqrt(math.pi) / 2), y)


def i0(x):
    # TensorFlow's overflows before its result does: use the asymptotic series for large x
    one, size = tf.ones_like(x), tf.abs(x)
    far = size > 80
    start = choose(far, choose(size > 1000, 1000 * one, size), 80 * one)
    inverse, level = tf.math.reciprocal(start), start - 0.5 * tf.math.log(2 * math.pi * start)
    beyond, series = level > math.log(x.dtype.max), tf.zeros_like(x)
    for coefficient in I0:
        series = series * inverse + coefficient
    far_out = tf.exp(choose(beyond, tf.zeros_like(x), level)) * series
    ends = tf.equal(x, 0) | beyond
    near = tf.math.bessel_i0(choose(ends | far, one, x))
    # a square has the right derivatives at 0, where those of TensorFlow's are wrong, and goes to infinity
    quarter = choose(beyond, tf.constant(math.inf, x.dtype), tf.constant(0.25, x.dtype))
    return choose(ends, 1 + quarter * choose(ends, x * x, one), choose(far, far_out, near))


# the series of i0(x) exp(-x) (2 pi x) ** .5 in 1 / x, highest power first
I0 = [math.prod((2 * j - 1) ** 2 / (8 * j) for j in range(1, k + 1)) for k in range(11, -1, -1)]
