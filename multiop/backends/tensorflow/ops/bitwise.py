"""Integers: bits, shifts and divisors."""

from __future__ import annotations

import tensorflow as tf

from ..conversion import are_ints, bool_to_int32, broadcast_together, choose, convert, not_bool, promote, reject_floats
from .logical import negation


def op_bitwise_and(x, y):
    return of_bits(tf.raw_ops.BitwiseAnd, tf.logical_and, x, y)


def op_bitwise_or(x, y):
    return of_bits(tf.raw_ops.BitwiseOr, tf.logical_or, x, y)


def op_bitwise_xor(x, y):
    return of_bits(tf.raw_ops.BitwiseXor, tf.not_equal, x, y)


def op_bitwise_invert(x):
    (x,) = reject_floats(convert(x))
    return negation(x) if x.dtype is tf.bool else tf.bitwise.invert(x)


def op_left_shift(x, y):
    return shift_within_bits(tf.bitwise.left_shift, *shiftable(x, y))


def op_right_shift(x, y):
    return shift_within_bits(tf.bitwise.right_shift, *shiftable(x, y))


def op_gcd(x1, x2):
    x1, x2 = not_bool(*reject_floats(*promote(x1, x2)))
    return tf.cast(gcd(magnitude(x1), magnitude(x2)), x1.dtype)


def op_lcm(x1, x2):
    x1, x2 = not_bool(*reject_floats(*promote(x1, x2)))
    size1, size2 = magnitude(x1), magnitude(x2)
    common = gcd(size1, size2)
    share = tf.math.floordiv(size1, choose(tf.equal(common, 0), tf.ones_like(common), common))
    return tf.cast(share * size2, x1.dtype)


def of_bits(kernel, of_bools, x, y):
    x, y = (x, y) if are_ints(x, y) else reject_floats(*promote(x, y))
    return of_bools(x, y) if x.dtype is tf.bool else kernel(x=x, y=y)


def bits(x):
    return 8 * x.dtype.size


def shiftable(x, y):
    return (x, y) if are_ints(x, y) else reject_floats(*bool_to_int32(*promote(x, y)))


def shift_within_bits(shift, x, y):
    """Shift; beyond the number of bits, where TensorFlow's is undefined, until `x` is empty, or its sign alone."""
    within = (y >= 0) & (y < bits(x))
    beyond = shift(shift(x, tf.constant(bits(x) - 1, x.dtype)), tf.constant(1, x.dtype))
    return choose(within, shift(x, choose(within, y, tf.constant(0, y.dtype))), beyond)


def magnitude(x):
    """Return absolute values as unsigned integers, which can hold that of the most negative integer."""
    return x if x.dtype.is_unsigned else tf.cast(tf.abs(x), tf.as_dtype(f"uint{bits(x)}"))


def gcd(x1, x2):
    """Return the greatest common divisor of unsigned integers by Euclid's algorithm."""
    static = tf.broadcast_static_shape(x1.shape, x2.shape)
    x1, x2 = (tf.ensure_shape(x, static) for x in broadcast_together(x1, x2))

    def step(x1, x2):
        done = tf.equal(x2, tf.zeros_like(x2))
        rest = tf.math.floormod(x1, choose(done, tf.ones_like(x2), x2))
        return choose(done, x1, x2), choose(done, x2, rest)

    return tf.while_loop(lambda x1, x2: tf.reduce_any(tf.not_equal(x2, tf.zeros_like(x2))), step, (x1, x2))[0]
