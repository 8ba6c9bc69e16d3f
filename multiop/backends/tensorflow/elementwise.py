"""Elementwise arithmetic and functions."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import _host, errors

from .conversion import choose, convert, floating, promote, promote_all, promote_floating


def op_add(x1, x2):
    x1, x2 = promote(x1, x2)
    return tf.logical_or(x1, x2) if x1.dtype is tf.bool else tf.add(x1, x2)


def op_subtract(x1, x2):
    return tf.subtract(*not_bool(*promote(x1, x2)))


def op_multiply(x1, x2):
    x1, x2 = promote(x1, x2)
    return tf.logical_and(x1, x2) if x1.dtype is tf.bool else tf.multiply(x1, x2)


def op_divide(x1, x2):
    return tf.truediv(*promote_floating(x1, x2))


def op_floor_divide(x1, x2):
    return divided(lambda x1, x2: connected(floored_quotient(x1, x2), x1, x2), tf.math.floordiv, x1, x2)


def op_mod(x1, x2):
    return divided(floored_rest, tf.math.floormod, x1, x2)


def op_power(x1, x2):
    if (
        type(x2) in (int, float)
        and abs(x2) <= 16
        and x2 == int(x2)
        and isinstance(x1, tf.Tensor)
        and x1.dtype.is_floating
    ):
        return repeated(x1, int(x2))
    constant = _host.is_scalar(x2)
    x1, x2 = numbers(*promote(x1, x2))
    if x1.dtype.is_integer:
        return integer_power(x1, x2)
    if constant or x1.dtype.is_complex:
        return tf.pow(x1, x2)
    # At 0 ** x2 the power is constant in x2; at 0 ** 0 and 0 ** 1, tf.pow's derivatives in x1 are NaN
    zero = tf.equal(x1, 0)
    itself = zero & tf.equal(x2, 1)
    level = tf.equal(x2, 0) & (zero | ~tf.math.is_finite(x1))
    one = tf.ones_like(x1)
    base = choose(itself | level, one, x1)
    # tf.pow's derivative in x2 is 0 where x1 is negative and NaN at 0 ** -1: there 0 is added, with the right slope
    steep = (base < 0) | zero & ~(x2 >= 0)
    flat = zero | steep
    constant_in_x2 = tf.pow(choose(flat, base, one), tf.stop_gradient(x2))
    power = choose(flat, constant_in_x2, tf.pow(choose(flat, one, base), x2))
    slope = choose(zero, -math.inf * tf.sign(power), tf.constant(math.nan, x1.dtype))
    change = choose(tf.math.is_inf(x2), tf.math.reciprocal(x2), x2 - tf.stop_gradient(x2))
    return choose(itself, x1, power) + choose(steep, tf.math.multiply_no_nan(slope, change), tf.zeros_like(x2))


def op_negative(x):
    (x,) = not_bool(convert(x))
    return tf.zeros_like(x) - x if x.dtype.is_unsigned else tf.negative(x)


def op_reciprocal(x):
    return tf.math.reciprocal(floating(x))


def op_sign(x):
    (x,) = not_bool(convert(x))
    if x.dtype.is_unsigned:
        return tf.cast(x != 0, x.dtype)
    if not x.dtype.is_complex:
        return tf.sign(x)
    zero = tf.equal(x, 0)  # tf.sign has no gradient
    return choose(zero, tf.zeros_like(x), x / tf.cast(tf.abs(choose(zero, tf.ones_like(x), x)), x.dtype))


def op_abs(x):
    x = convert(x)
    return x if x.dtype.is_unsigned or x.dtype is tf.bool else tf.abs(x)


def op_square(x):
    return tf.square(*numbers(convert(x)))


def op_sqrt(x):
    return tf.sqrt(floating(x))


def op_rsqrt(x):
    return tf.math.rsqrt(floating(x))


def op_exp(x):
    return tf.exp(floating(x))


def op_exp2(x):
    x = floating(x)
    return tf.pow(tf.constant(2, x.dtype), x)


def op_expm1(x):
    return tf.math.expm1(floating(x))


def op_log(x):
    return tf.math.log(floating(x))


def op_log2(x):
    x = floating(x)
    return tf.math.log(x) / tf.constant(math.log(2), x.dtype)


def op_log10(x):
    x = floating(x)
    return tf.math.log(x) / tf.constant(math.log(10), x.dtype)


def op_log1p(x):
    return tf.math.log1p(floating(x))


def op_maximum(x1, x2):
    x1, x2 = real(*promote(x1, x2))
    if x1.dtype is tf.bool:
        return tf.logical_or(x1, x2)
    return ranked(tf.greater, x1, x2) if x1.dtype.is_floating else tf.maximum(x1, x2)


def op_minimum(x1, x2):
    x1, x2 = real(*promote(x1, x2))
    if x1.dtype is tf.bool:
        return tf.logical_and(x1, x2)
    return ranked(tf.less, x1, x2) if x1.dtype.is_floating else tf.minimum(x1, x2)


def op_clip(x, x_min, x_max):
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = real(*promote_all(x, *bounds))
    if x.dtype is tf.bool:
        x = x if x_min is None else x | bounds[0]
        return x if x_max is None else x & bounds[-1]
    # tf.clip_by_value gives a NaN operand's gradient to the bound
    if x_min is not None:
        x = choose(tf.logical_or(tf.greater_equal(x, bounds[0]), tf.not_equal(x, x)), x, bounds[0])
    if x_max is not None:
        x = choose(tf.logical_or(tf.less_equal(x, bounds[-1]), tf.not_equal(x, x)), x, bounds[-1])
    return x


def op_round(x, decimals):
    (x,) = numbers(convert(x))
    if x.dtype.is_complex:
        return tf.complex(op_round(tf.math.real(x), decimals), op_round(tf.math.imag(x), decimals))
    if x.dtype.is_floating:
        if not decimals:
            return connected(tf.round(x), x)
        scale = tf.constant(10.0 ** abs(decimals), x.dtype)
        return connected(tf.round(x * scale) / scale if decimals > 0 else tf.round(x / scale) * scale, x)
    if decimals >= 0:
        return x
    return rounded_integer(x, tf.constant(10**-decimals, x.dtype)) if 10**-decimals <= x.dtype.max else tf.zeros_like(x)


def op_floor(x):
    (x,) = real(convert(x))
    return connected(tf.floor(x), x) if x.dtype.is_floating else x


def op_ceil(x):
    (x,) = real(convert(x))
    return connected(tf.math.ceil(x), x) if x.dtype.is_floating else x


def op_trunc(x):
    (x,) = real(convert(x))
    return connected(choose(x < 0, tf.math.ceil(x), tf.floor(x)), x) if x.dtype.is_floating else x


def op_sin(x):
    return tf.sin(floating(x))


def op_cos(x):
    return tf.cos(floating(x))


def op_tan(x):
    return tf.tan(floating(x))


def op_arcsin(x):
    return tf.asin(floating(x))


def op_arccos(x):
    return tf.acos(floating(x))


def op_arctan(x):
    return tf.atan(floating(x))


def op_arctan2(x1, x2):
    x1, x2 = real(*promote_floating(x1, x2))
    origin = tf.equal(x1, 0) & tf.equal(x2, 0)  # where tf.atan2's gradient is NaN
    angle = tf.atan2(choose(origin, tf.ones_like(x1), x1), x2)
    return choose(origin, tf.atan2(tf.stop_gradient(x1), tf.stop_gradient(x2)), angle)


def op_sinh(x):
    return tf.sinh(floating(x))


def op_cosh(x):
    return tf.cosh(floating(x))


def op_tanh(x):
    return tf.tanh(floating(x))


def op_arcsinh(x):
    return tf.asinh(floating(x))


def op_arccosh(x):
    return tf.acosh(floating(x))


def op_arctanh(x):
    return tf.atanh(floating(x))


def op_hypot(x1, x2):
    x1, x2 = real(*promote_floating(x1, x2))
    flat = tf.equal(x1, 0) & tf.equal(x2, 0) | tf.math.is_inf(x1) | tf.math.is_inf(x2)
    ends = choose(tf.math.is_inf(x1) | tf.math.is_inf(x2), tf.constant(math.inf, x1.dtype), tf.constant(0, x1.dtype))
    x1, x2 = choose(flat, tf.ones_like(x1), x1), choose(flat, tf.ones_like(x2), x2)
    scale = tf.stop_gradient(tf.maximum(tf.abs(x1), tf.abs(x2)))  # it cancels, so it has no gradient
    return choose(flat, ends, scale * tf.sqrt(tf.square(x1 / scale) + tf.square(x2 / scale)))


def op_real(x):
    x = convert(x)
    return tf.math.real(x) if x.dtype.is_complex else x


def op_imag(x):
    x = convert(x)
    return tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)


def op_conj(x):
    x = convert(x)
    return tf.math.conj(x) if x.dtype.is_complex else x


# operands


def numbers(*xs):
    """Return `xs` with bool as `int32`, for an op that needs numbers."""
    return [tf.cast(x, tf.int32) if x.dtype is tf.bool else x for x in xs]


def not_bool(*xs):
    if xs[0].dtype is tf.bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def real(*xs):
    if xs[0].dtype.is_complex:
        raise errors.DTypeError(f"{xs[0].dtype.name} is not accepted: complex numbers have no order")
    return xs


def rounded_integer(x, unit):
    below = tf.math.floordiv(x, unit)
    rest = x - below * unit
    up = (rest > unit - rest) | (tf.equal(rest, unit - rest) & tf.not_equal(below % tf.constant(2, x.dtype), 0))
    return (below + tf.cast(up, x.dtype)) * unit


def ranked(beats, x1, x2):
    """Return the entries that win, with ties split and the gradient at a NaN sent to the NaN operand.

    `tf.maximum` sends the gradient of a tie to `x1`, and that of a NaN to `x2`.
    """
    winner = choose(tf.logical_or(beats(x1, x2), tf.math.is_nan(x1)), x1, x2)
    half = tf.constant(0.5, x1.dtype)
    return choose(tf.equal(x1, x2), tf.add(tf.multiply(half, x1), tf.multiply(half, x2)), winner)


def divided(divide, divide_integers, x1, x2):
    """Divide; an integer divided by 0 raises, or is 0 where its value is known to a compiler alone."""
    x1, x2 = real(*numbers(*promote(x1, x2)))
    if x1.dtype.is_floating:
        return divide(x1, x2)
    zero = tf.equal(x2, 0)
    if is_known(zero):
        if bool(tf.reduce_any(zero)):
            raise errors.ArgumentError("x2: an integer cannot be divided by 0")
        return divide_integers(x1, x2)
    return choose(zero, tf.zeros_like(x1), divide_integers(x1, choose(zero, tf.ones_like(x2), x2)))


def integer_power(x1, x2):
    """Raise integers to a power; a negative one raises, or gives 0 where its value is known to a compiler alone."""
    if x1.dtype.is_unsigned:  # TensorFlow has no kernel; powers are right modulo 2**64
        return tf.cast(tf.pow(tf.cast(x1, tf.int64), tf.cast(x2, tf.int64)), x1.dtype)
    negative = x2 < 0
    if is_known(negative):
        if bool(tf.reduce_any(negative)):
            raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
        return tf.pow(x1, x2)
    return choose(negative, tf.zeros_like(x1), tf.pow(x1, choose(negative, tf.zeros_like(x2), x2)))


def is_known(x):
    """Say whether the values of `x` can be looked at: not where they are those of a compiled or mapped function."""
    return hasattr(x, "numpy")


def floored_quotient(x1, x2):
    """Return the floor of the exact quotient: tf.math.floordiv rounds the quotient first, so that 1 // 0.1 is 10."""
    dtype = x1.dtype
    if dtype in (tf.float16, tf.bfloat16):
        return tf.cast(floored_quotient(tf.cast(x1, tf.float32), tf.cast(x2, tf.float32)), dtype)
    x1, x2 = tf.stop_gradient(x1), tf.stop_gradient(x2)  # tf.truncatemod has no gradient at all
    rest = tf.truncatemod(x1, x2)
    quotient = (x1 - rest) / x2
    quotient = tf.round(choose(tf.not_equal(rest, 0) & ((x2 < 0) != (rest < 0)), quotient - 1, quotient))
    return choose(tf.equal(x2, 0), x1 / x2, quotient)


def floored_rest(x1, x2):
    """Return what the floor of the quotient leaves: to tf.math.floormod's gradient, that floor is 0 for -1 / inf."""
    beyond = tf.math.is_inf(x2) & ((x1 < 0) & (x2 > 0) | (x1 > 0) & (x2 < 0)) & tf.math.is_finite(x1)
    return choose(beyond, x1 + x2, tf.math.floormod(x1, choose(beyond, tf.ones_like(x2), x2)))


def repeated(x, n):
    """Return `x ** n` by multiplication: its derivatives of every order are right at 0, unlike those of tf.pow."""
    if n == 0:
        return connected(tf.ones_like(x), x)
    result, square = None, x if n > 0 else tf.math.reciprocal(x)
    left = abs(n)
    while left:
        if left % 2:
            result = square if result is None else result * square
        left //= 2
        square = square * square if left else square
    return result


def connected(y, *xs):
    """Return `y` with a gradient of zero for `xs`, where TensorFlow has none."""
    for x in xs:
        y = choose(tf.constant(False), x, y) if x.dtype.is_floating else y
    return y
