"""Special functions."""

from __future__ import annotations

import tensorflow as tf

from .conversion import choose, floating, is_float, is_tracked
from .elementwise import real


def op_erf(x):
    if is_float(x) and x.dtype is not tf.float64 and not is_tracked():
        return tf.raw_ops.Erf(x=x)
    (x,) = real(floating(x))
    infinite = tf.math.is_inf(x)  # where tf.math.erf is NaN in float64
    return choose(infinite, tf.sign(x), tf.math.erf(choose(infinite, tf.zeros_like(x), x)))


def op_erfc(x):
    return tf.math.erfc(*real(floating(x)))


def op_erfinv(x):
    (x,) = real(floating(x))  # in float32 TensorFlow's is off by tens of units in the last place
    return tf.cast(tf.math.erfinv(tf.cast(x, tf.float64)), x.dtype)


def op_i0(x):
    return in_single(i0, *real(floating(x)))


def in_single(fn, x):
    """Call `fn`, which has no kernel for 16 bits."""
    return fn(x) if x.dtype.size > 2 else tf.cast(fn(tf.cast(x, tf.float32)), x.dtype)


def i0(x):
    # at 0 the second derivative of TensorFlow's is 1, and at infinity it is NaN: the series stands for it
    ends = tf.equal(x, 0) | tf.math.is_inf(x)
    return choose(ends, 1 + x * x / 4, tf.math.bessel_i0(choose(ends, tf.ones_like(x), x)))
