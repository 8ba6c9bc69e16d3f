"""Elementwise arithmetic and functions."""

from __future__ import annotations

import functools
import math

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._rules.powers import differentiate_power
from multiop._values import host

from ..autodiff._programs import in_one_call
from ..autodiff.custom_gradient import can_link, link_rule, run_unrecorded, with_rule
from ..conversion import (
    align,
    align_floating,
    are_floats,
    are_ints,
    are_words,
    bool_to_int32,
    broadcast_together,
    choose,
    convert,
    executing_eagerly,
    floating,
    in_float32,
    in_this_graph,
    is_exact_scalar,
    is_float,
    is_tracked,
    not_bool,
    promote_all,
    reject_complex,
    to_wide_float,
)
from ..devices import is_at_hand
from . import _complex


def op_add(x1, x2):
    if are_floats(x1, x2) or is_exact_scalar(x1, x2):
        return tf.raw_ops.AddV2(x=x1, y=x2)
    x1, x2 = align(x1, x2)
    return tf.logical_or(x1, x2) if x1.dtype is tf.bool else tf.raw_ops.AddV2(x=x1, y=x2)


def op_subtract(x1, x2):
    if are_floats(x1, x2) or is_exact_scalar(x1, x2):
        return tf.raw_ops.Sub(x=x1, y=x2)
    x1, x2 = not_bool(*align(x1, x2))
    # graphs turn 0 - x into a negation, which has no kernel for unsigned integers
    return tf.raw_ops.Sub(x=hidden(x1) if x1.dtype.is_unsigned else x1, y=x2)


def op_multiply(x1, x2):
    if are_floats(x1, x2) or is_exact_scalar(x1, x2):
        return tf.raw_ops.Mul(x=x1, y=x2)
    x1, x2 = align(x1, x2)
    return tf.logical_and(x1, x2) if x1.dtype is tf.bool else tf.raw_ops.Mul(x=x1, y=x2)


def op_divide(x1, x2):
    if not are_floats(x1, x2):
        x1, x2 = align_floating(x1, x2)
    return tf.raw_ops.RealDiv(x=x1, y=as_divisor(x2))


def op_floor_divide(x1, x2):
    return checked_divide(lambda x1, x2: connect(floored_quotient(x1, x2), x1, x2), tf.math.floordiv, x1, x2)


def op_mod(x1, x2):
    return checked_divide(remainder_of_divisor, tf.math.floormod, x1, x2)


def op_power(x1, x2):
    is_whole = type(x2) in (int, float) and abs(x2) <= 16 and x2 == int(x2)
    if is_whole and isinstance(x1, tf.Tensor) and (x1.dtype.is_floating or x1.dtype.is_complex):
        return power_by_multiplication(x1, int(x2))
    if are_words(x1, x2) and not is_tracked():
        return tf.raw_ops.Pow(x=x1, y=x2)
    constant = host.is_scalar(x2) and abs(x2) < 2**24
    x1, x2 = bool_to_int32(*align(x1, x2))
    if x1.dtype.is_integer:
        return integer_power(x1, x2)
    if x1.dtype.is_complex:
        return _complex.power(x1, x2)
    if constant:
        return tf.pow(x1, hidden(x2))
    return in_float32(power if is_tracked() else tf.pow, x1, x2)


def op_negative(x):
    if is_float(x):
        return tf.raw_ops.Neg(x=x)
    (x,) = not_bool(convert(x))
    return op_subtract(tf.zeros_like(x), x) if x.dtype.is_unsigned else tf.negative(x)


def op_reciprocal(x):
    return tf.raw_ops.Reciprocal(x=floating(x))


def op_sign(x):
    (x,) = not_bool(convert(x))
    if x.dtype.is_unsigned:
        return tf.cast(x != 0, x.dtype)
    if not x.dtype.is_complex:
        return tf.sign(x)
    zero = tf.equal(x, 0)  # tf.sign has no gradient
    safe = choose(zero, tf.ones_like(x), x)
    re, im = tf.math.real(safe), tf.math.imag(safe)
    is_large = tf.maximum(tf.abs(re), tf.abs(im)) > 1
    unit = choose(is_large, tf.constant(0.25, re.dtype), tf.constant(2.0**60, re.dtype))
    re, im = re * unit, im * unit  # the length of `x` may leave the range
    size = hypot(re, im)
    return choose(zero, tf.zeros_like(x), tf.complex(re / size, im / size))


def op_abs(x):
    if is_float(x):
        return tf.raw_ops.Abs(x=x)
    x = convert(x)
    if x.dtype.is_complex and is_tracked():  # the gradient of tf.abs is 0 where squares underflow
        return op_hypot(*_complex.parts(x))
    return x if x.dtype.is_unsigned or x.dtype is tf.bool else tf.abs(x)


def op_square(x):
    if is_float(x):
        return tf.raw_ops.Square(x=x)
    return tf.square(*bool_to_int32(convert(x)))


def op_sqrt(x):
    return either(tf.raw_ops.Sqrt, _complex.sqrt, x)


def op_rsqrt(x):
    return either(tf.raw_ops.Rsqrt, _complex.rsqrt, x)


def op_exp(x):
    return tf.raw_ops.Exp(x=floating(x))


def op_exp2(x):
    x = floating(x)
    return exp2(x) if is_tracked() else power_of_2(x)


def op_expm1(x):
    return either(tf.raw_ops.Expm1, _complex.expm1, x)


def op_log(x):
    return either(tf.raw_ops.Log, _complex.log, x)


def op_log2(x):
    return logarithm(floating(x), 2)


def op_log10(x):
    return logarithm(floating(x), 10)


def op_log1p(x):
    return either(tf.raw_ops.Log1p, _complex.log1p, x)


def op_maximum(x1, x2):
    if (are_floats(x1, x2) or is_exact_scalar(x1, x2)) and not is_tracked():
        return tf.raw_ops.Maximum(x=x1, y=x2)
    return pairwise_extremum(tf.raw_ops.Maximum, tf.greater_equal, tf.logical_or, x1, x2)


def op_minimum(x1, x2):
    if (are_floats(x1, x2) or is_exact_scalar(x1, x2)) and not is_tracked():
        return tf.raw_ops.Minimum(x=x1, y=x2)
    return pairwise_extremum(tf.raw_ops.Minimum, tf.less_equal, tf.logical_and, x1, x2)


def op_clip(x, x_min, x_max):
    if is_exact_scalar(x, x_min) and is_exact_scalar(x, x_max) and x_min <= x_max:
        return tf.raw_ops.Minimum(x=tf.raw_ops.Maximum(x=x, y=x_min), y=x_max)
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = reject_complex(*promote_all(x, *bounds))
    bounds = [align(x, bound)[1] for bound in bounds]
    larger, smaller = tf.logical_or, tf.logical_and
    if x.dtype is not tf.bool:
        larger, smaller = (functools.partial(larger_or_smaller, of) for of in (tf.raw_ops.Maximum, tf.raw_ops.Minimum))
    x = x if x_min is None else larger(x, bounds[0])
    return x if x_max is None else smaller(x, bounds[-1])


def op_round(x, decimals):
    if not decimals and is_float(x) and not is_tracked():
        return tf.raw_ops.Round(x=x)
    (x,) = bool_to_int32(convert(x))
    if x.dtype.is_complex:
        return tf.complex(op_round(tf.math.real(x), decimals), op_round(tf.math.imag(x), decimals))
    if x.dtype.is_floating:
        if not decimals:
            return connect(tf.round(x), x)
        return connect(in_float32(lambda x: round_decimals(x, decimals), x), x)
    if decimals >= 0:
        return x
    return rounded_integer(x, tf.constant(10**-decimals, x.dtype)) if 10**-decimals <= x.dtype.max else tf.zeros_like(x)


def op_floor(x):
    return round_constant(lambda x: tf.raw_ops.Floor(x=x), x)


def op_ceil(x):
    return round_constant(lambda x: tf.raw_ops.Ceil(x=x), x)


def op_trunc(x):
    return round_constant(lambda x: choose(x < 0, tf.math.ceil(x), tf.floor(x)), x)


def op_sin(x):
    return tf.raw_ops.Sin(x=floating(x))


def op_cos(x):
    return tf.raw_ops.Cos(x=floating(x))


def op_tan(x):
    return either(tf.raw_ops.Tan, _complex.tan, x)


def op_arcsin(x):
    return either(tf.raw_ops.Asin, _complex.arcsin, x)


def op_arccos(x):
    return either(tf.raw_ops.Acos, _complex.arccos, x)


def op_arctan(x):
    x = floating(x)
    if x.dtype.is_complex:
        return _complex.arctan(x)
    return in_float32(tf.atan, x) if x.dtype is tf.float16 else tf.raw_ops.Atan(x=x)


def op_arctan2(x1, x2):
    if are_floats(x1, x2) and not is_tracked():
        return tf.raw_ops.Atan2(y=x1, x=x2)
    x1, x2 = reject_complex(*align_floating(x1, x2))
    if not is_tracked():
        return tf.atan2(x1, x2)
    return in_float32(arctan2, *map(in_this_graph, broadcast_together(x1, x2)))


def op_sinh(x):
    return tf.raw_ops.Sinh(x=floating(x))


def op_cosh(x):
    return tf.raw_ops.Cosh(x=floating(x))


def op_tanh(x):
    return either(tf.raw_ops.Tanh, _complex.tanh, x)


def op_arcsinh(x):
    return either(lambda x: inverse_hyperbolic(x, True) if is_tracked() else tf.asinh(x), _complex.arcsinh, x)


def op_arccosh(x):
    return either(lambda x: inverse_hyperbolic(x, False) if is_tracked() else tf.acosh(x), _complex.arccosh, x)


def op_arctanh(x):
    return either(tf.raw_ops.Atanh, _complex.arctanh, x)


def op_hypot(x1, x2):
    x1, x2 = broadcast_together(*reject_complex(*align_floating(x1, x2)))
    return in_float32(hypot, in_this_graph(x1), in_this_graph(x2)) if is_tracked() else in_float32(length, x1, x2)


def op_real(x):
    x = convert(x)
    return tf.math.real(x) if x.dtype.is_complex else x


def op_imag(x):
    x = convert(x)
    return tf.math.imag(x) if x.dtype.is_complex else tf.zeros_like(x)


def op_conj(x):
    x = convert(x)
    return tf.math.conj(x) if x.dtype.is_complex else x


def op_divide_no_nan(x1, x2):
    x1, x2 = align_floating(x1, x2)
    x2 = as_divisor(x2)
    # the gradient of tf.math.divide_no_nan at 0 is NaN where the upstream one is infinite; it treats complex numbers
    # whose square is 0 as 0
    if x1.dtype.is_floating and not is_tracked():
        return tf.raw_ops.DivNoNan(x=x1, y=x2)
    zero = tf.equal(x2, 0)
    return choose(zero, tf.zeros_like(x1), x1 / choose(zero, tf.ones_like(x2), x2))


def op_logaddexp(x1, x2):
    return log_add_powers(x1, x2, 1.0)


def op_logaddexp2(x1, x2):
    return log_add_powers(x1, x2, math.log(2))


@in_one_call
def op_nan_to_num(x, nan, posinf, neginf):
    x = convert(x)
    if x.dtype.is_complex:
        return tf.complex(*[op_nan_to_num(part, nan, posinf, neginf) for part in (tf.math.real(x), tf.math.imag(x))])
    if not x.dtype.is_floating:
        return x
    infinite = tf.math.is_inf(x)
    highest = tf.constant(x.dtype.max if posinf is None else posinf, x.dtype)
    lowest = tf.constant(x.dtype.min if neginf is None else neginf, x.dtype)
    x = choose(infinite, choose(x > 0, highest, lowest), x)
    return choose(tf.math.is_nan(x), tf.constant(nan, x.dtype), x)


@in_one_call
def op_cbrt(x):
    return in_float32(cbrt, *reject_complex(floating(x)))


def op_fmod(x1, x2):
    return checked_divide(truncated_remainder, truncated_integer_remainder, x1, x2)


def op_heaviside(x1, x2):
    x1, x2 = reject_complex(*align_floating(x1, x2))
    return choose(tf.equal(x1, 0), x2, (tf.sign(x1) + 1) / 2)


@in_one_call
def op_ldexp(x1, x2):
    (x1,), x2 = reject_complex(floating(x1)), convert(x2)
    if x2.dtype.is_floating or x2.dtype.is_complex:
        raise errors.DTypeError(f"x2: {x2.dtype.name} is not accepted: give integers")
    return ldexp(x1, x2) if x1.dtype is tf.float64 else tf.cast(ldexp(tf.cast(x1, tf.float32), x2), x1.dtype)


def op_nextafter(x1, x2):
    if are_words(x1, x2):
        return tf.raw_ops.NextAfter(x1=x1, x2=x2)
    x1, x2 = reject_complex(*align_floating(x1, x2))
    return tf.raw_ops.NextAfter(x1=x1, x2=x2) if x1.dtype.size > 2 else next_16_bit(x1, x2)


def op_polar(abs_, angle):
    _, abs_, angle = to_wide_float(*align_floating(abs_, angle))
    return tf.complex(abs_ * tf.cos(angle), abs_ * tf.sin(angle))


# operands


def either(of_reals, of_complex, x):
    """Call a kernel for real floats, or a function of complex ones."""
    if is_float(x):
        return of_reals(x=x)
    x = floating(x)
    return of_complex(x) if x.dtype.is_complex else of_reals(x=x)


def logarithm(x, base):
    if x.dtype.is_complex:
        return tf.complex(*[part / math.log(base) for part in _complex.parts(_complex.log(x))])
    if x.dtype.size == 2 and is_tracked():  # the square of 1 / x overflows before it is divided
        return in_float32(lambda x: logarithm(x, base), x)
    return tf.math.log(x) / tf.constant(math.log(base), x.dtype)


def round_constant(fn, x):
    """Return whole numbers near `x`, which are constant: `fn(x)`."""
    (x,) = reject_complex(convert(x))
    if not x.dtype.is_floating:
        return x
    return connect(fn(x), x) if is_tracked() else fn(x)


def round_decimals(x, decimals):
    x, scale = tf.stop_gradient(x), host.power_of_10(-decimals)
    if decimals > 0:  # too large to have these decimals: unchanged
        scales, large, y = host.decimal_scales(decimals, x.dtype.size), x, x
        # XLA would multiply two constants first, and divide by the product of two
        one = choose(tf.math.is_nan(x), x, tf.ones_like(x)) if len(scales) > 1 else tf.constant(1, x.dtype)
        for scale in scales:
            large = large * (scale * one)
        for k, scale in enumerate(scales):
            if k:
                y = y * (1 / scale * one)
            else:
                y = tf.round(large) / (scale * one if len(scales) > 1 else as_divisor(tf.constant(scale, x.dtype)))
        return choose(tf.math.is_finite(large), y, x)
    scale = math.inf if scale > float(x.dtype.max) else scale
    unit = as_divisor(tf.constant(scale, x.dtype))
    small = tf.round(x / unit)
    return small * unit if scale < math.inf else choose(tf.math.is_finite(x), small, x)


def rounded_integer(x, unit):
    below = tf.math.floordiv(x, unit)
    rest = x - below * unit
    up = (rest > unit - rest) | (tf.equal(rest, unit - rest) & tf.not_equal(below % tf.constant(2, x.dtype), 0))
    return (below + tf.cast(up, x.dtype)) * unit


def larger_or_smaller(native, x1, x2):
    """Return an extremum of two, with the gradient of a tie for `x1`; XLA keeps a NaN of the first operand."""
    y = native(x=x1, y=x2)
    number = None if tf.executing_eagerly() else tf.get_static_value(x2)
    if number is not None and np.all(number == number):
        return y
    return with_nan(y, lambda: tf.math.is_nan(x2))


def with_nan(y, spoilt):
    """Return the extremum `y`, NaN where `spoilt()`: a graph may be compiled by XLA, which drops NaN on a CPU."""
    if tf.executing_eagerly() or not y.dtype.is_floating:
        return y
    return choose(spoilt(), tf.constant(math.nan, y.dtype), y)


def pairwise_extremum(native, reaches, of_bools, x1, x2):
    """Return the entries that win, with ties split: tf.maximum passes the gradient of a tie to `x1`."""
    x1, x2 = reject_complex(*align(x1, x2))
    if x1.dtype is tf.bool:
        return of_bools(x1, x2)
    if not x1.dtype.is_floating or not is_tracked():
        return native(x=x1, y=x2)
    if can_link(eagerly=True):
        rule = functools.partial(shares, reaches)
        return link_rule(native.__name__, functools.partial(larger_or_smaller, native), rule, x1, x2)
    half, tied = tf.constant(0.5, x1.dtype), tf.equal(x1, x2)
    return choose(tied, half * x1 + half * x2, larger_or_smaller(native, x1, x2))


def shares(reaches, x1, x2, upstream):
    share, zero = choose(tf.equal(x1, x2), tf.constant(0.5, x1.dtype) * upstream, upstream), tf.zeros([], x1.dtype)
    return [summed_to(x, choose(reaches(x, other), share, zero)) for x, other in ((x1, x2), (x2, x1))]


def summed_to(x, grad):
    """Return the gradient of `x` from that of `x` broadcast."""
    if x.shape.is_fully_defined() and x.shape == grad.shape:
        return grad
    shape = tf.shape(x)
    axes, _ = tf.raw_ops.BroadcastGradientArgs(s0=shape, s1=tf.shape(grad))
    return tf.reshape(tf.reduce_sum(grad, axes), shape)


def checked_divide(divide, divide_integers, x1, x2):
    """Divide; an integer division by 0 raises, or returns 0 if only the compiled program knows the divisor."""
    if not are_ints(x1, x2):
        x1, x2 = reject_complex(*bool_to_int32(*align(x1, x2)))
    if x1.dtype.is_floating:
        return divide(x1, as_divisor(x2))
    if is_at_hand(x2):
        divisors = np.asarray(x2)
        if divisors.min(initial=1) <= 0 and not divisors.all():  # NumPy finds the smallest much faster
            raise errors.ArgumentError("x2: an integer cannot be divided by 0")
        return divide_integers(x1, x2)
    if host.any_integer(lambda n: n == 0, tf.get_static_value(x2)):
        raise errors.ArgumentError("x2: an integer cannot be divided by 0")
    zero = tf.equal(x2, 0)
    return choose(zero, tf.zeros_like(x1), divide_integers(x1, choose(zero, tf.ones_like(x2), x2)))


def integer_power(x1, x2):
    """Raise integers to a power; a negative power raises, or returns 0 if only the compiled program knows it."""
    if x1.dtype.is_unsigned:  # TensorFlow has no kernel; powers hold modulo 2**64
        return tf.cast(tf.pow(tf.cast(x1, tf.int64), tf.cast(x2, tf.int64)), x1.dtype)
    negative = x2 < 0
    is_known = is_at_hand(negative)
    if bool(tf.reduce_any(negative)) if is_known else host.any_integer(lambda n: n < 0, tf.get_static_value(x2)):
        raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
    if is_known:
        return tf.pow(x1, x2)
    return choose(negative, tf.zeros_like(x1), tf.pow(x1, choose(negative, tf.zeros_like(x2), x2)))


def floored_quotient(x1, x2):
    """Return the floor of the exact quotient: tf.math.floordiv rounds the quotient first, so 1 // 0.1 is 10."""
    x1, x2 = tf.stop_gradient(x1), tf.stop_gradient(x2)
    undefined = tf.math.is_inf(x1) & tf.not_equal(x2, 0)
    return choose(undefined, tf.constant(math.nan, x1.dtype), floor_of_quotient(x1, x2))


def floor_of_quotient(x1, x2):
    """Return the floor of the exact quotient, which is infinite for an infinite `x1`."""
    if x1.dtype is not tf.float64:  # 64 bits hold enough of the quotient of 32-bit numbers not to round it up
        wide1, wide2 = tf.cast(x1, tf.float64), tf.cast(x2, tf.float64)
        # a number that none of 32 bits reaches, so that the floor of -1 / inf is -1
        beyond = choose(tf.math.is_inf(x2), tf.sign(wide2) * 1e40, wide2)
        return tf.cast(tf.math.floordiv(wide1, beyond), x1.dtype)
    rest = tf.truncatemod(x1, x2)
    quotient = (x1 - rest) / x2
    quotient = tf.round(choose(tf.not_equal(rest, 0) & ((x2 < 0) != (rest < 0)), quotient - 1, quotient))
    quotient = choose(tf.equal(quotient, 0), tf.round(x1 / x2 * 0.25), quotient)  # the zero has the quotient's sign
    return choose(tf.equal(x2, 0) | tf.math.is_nan(rest), tf.math.floordiv(x1, x2), quotient)


def floored_remainder(x1, x2):
    """Return the remainder of floor division; the gradient of tf.math.floormod rounds before it takes the floor."""
    rest = tf.math.floormod(x1, x2)
    if not is_tracked():
        return rest
    off = tf.stop_gradient(tf.math.floordiv(x1, x2)) - floored_quotient(x1, x2)
    wrong = tf.math.is_finite(off) & tf.not_equal(off, 0) & tf.math.is_finite(x2)
    x2 = choose(wrong, x2, tf.ones_like(x2))
    return choose(wrong, rest + choose(wrong, off, tf.zeros_like(off)) * (x2 - tf.stop_gradient(x2)), rest)


@in_one_call
def remainder_of_divisor(x1, x2):
    """Return a remainder whose zero has the sign of the divisor, as in NumPy; TensorFlow's has that of the dividend."""
    rest = floored_remainder(x1, x2)
    zero = tf.stop_gradient(tf.abs(rest) * tf.sign(x2))
    zero = zero - (tf.stop_gradient(rest) - rest) if is_tracked() else zero  # less +0.0 it keeps its sign
    return choose(tf.equal(rest, 0), zero, rest)


def power_by_multiplication(x, n):
    """Return `x ** n` by multiplication: all its derivatives are right at 0, unlike those of tf.pow."""
    if n == 0:
        return connect(tf.ones_like(x), x)
    result, square, left = None, x if n > 0 else tf.math.reciprocal(x), abs(n)
    while left:
        if left % 2:
            result = square if result is None else tf.raw_ops.Mul(x=result, y=square)
        left //= 2
        square = tf.raw_ops.Mul(x=square, y=square) if left else square
    return result


def connect(y, *xs):
    """Return `y` with a gradient of zero for `xs`, where TensorFlow would have none."""
    for x in xs:
        y = choose(tf.constant(False), x, y) if x.dtype.is_floating or x.dtype.is_complex else y
    return y


class Powers:
    """What the derivatives of powers are made of."""

    isinf, log = staticmethod(tf.math.is_inf), staticmethod(tf.math.log)

    @staticmethod
    def where(condition, x1, x2):
        dtype = (x1 if isinstance(x1, tf.Tensor) else x2).dtype
        return choose(condition, *[tf.convert_to_tensor(x, dtype) for x in (x1, x2)])

    @staticmethod
    def power(x1, x2):
        return tf.pow(tf.convert_to_tensor(x1, x2.dtype), x2)


@in_one_call
def power(x1, x2, n=0, m=0):
    """Return `tf.pow(x1, x2)`, or a derivative; its own are NaN at 0, and infinite where only the value is."""

    def value(x1, x2):
        return differentiate_power(Powers, x1, x2, n, m) if n or m else tf.pow(x1, x2)

    def rule(x1, x2, upstream):
        return [upstream * power(x1, x2, n + 1, m), upstream * power(x1, x2, n, m + 1)]

    x1, x2 = map(in_this_graph, broadcast_together(x1, x2))
    return with_rule(f"op_power/{n},{m}", [run_unrecorded(value, x1, x2)], rule, x1, x2)[0]


def power_of_2(x):
    return tf.pow(tf.constant(2, x.dtype), x)


def exp2(x, order=0):
    """Return a derivative of `2 ** x`, which has a larger range than the function."""

    def value(x):
        if x.dtype.size == 2:
            return tf.cast(value(tf.cast(x, tf.float32)), x.dtype)
        half = power_of_2(x * tf.constant(0.5, x.dtype))
        return half * tf.constant(math.log(2) ** order, x.dtype) * half

    def rule(x, upstream):
        return [upstream * tf.math.conj(exp2(x, order + 1))]

    return with_rule(f"op_exp2/{order}", [run_unrecorded(value if order else power_of_2, x)], rule, x)[0]


def hidden(x):
    """Return a constant that graphs do not see: a power of 0.5 would become a root, of -inf and -0 too."""
    return x if executing_eagerly() else tf.raw_ops.PlaceholderWithDefault(input=x, shape=x.shape)


def as_divisor(x):
    """Return a divisor: of a constant that they see, graphs take the reciprocal, which may become 0."""
    return hidden(x) if tf.is_symbolic_tensor(x) and _is_of_constants(x) else x


def _is_of_constants(x):
    """Return whether a graph can compute `x` before it runs; of a tensor of many steps, it is assumed."""
    pending, seen = [x.op], set()
    while pending and len(seen) < 100:
        step = pending.pop()
        if not step.inputs and step.type != "Const":
            return False
        if step not in seen:
            seen.add(step)
            pending += [y.op for y in step.inputs]
    return True


@in_one_call
def arctan2(x1, x2):
    """Return angles; the gradient of tf.atan2 is NaN at the origin, and where squares overflow or underflow."""
    return with_rule("op_arctan2", [run_unrecorded(tf.atan2, x1, x2)], arctan2_rule, x1, x2)[0]


def arctan2_rule(x1, x2, upstream):
    largest = tf.stop_gradient(tf.maximum(tf.abs(x1), tf.abs(x2)))
    flat = tf.equal(largest, 0) | tf.math.is_inf(largest)
    scale = choose(flat, tf.ones_like(x1), largest)
    y, x = (choose(flat, tf.ones_like(side), side) / scale for side in (x1, x2))
    slope = choose(flat, tf.zeros_like(x1), upstream / (y * y + x * x))
    return [slope * x / scale, -slope * y / scale]


def length(x1, x2):
    infinite = tf.math.is_inf(x1) | tf.math.is_inf(x2)
    least = tf.constant(TINY[x1.dtype] ** 0.5, x1.dtype)
    scale = tf.maximum(tf.maximum(tf.abs(x1), tf.abs(x2)), least)
    y = scale * tf.sqrt(tf.square(x1 / scale) + tf.square(x2 / scale))
    return choose(infinite, tf.constant(math.inf, x1.dtype), y)


def hypot(x1, x2):
    """Return lengths; the parts of TensorFlow's derivative overflow or underflow before their product does."""
    return with_rule("op_hypot", [run_unrecorded(length, x1, x2)], hypot_gradients, x1, x2)[0]


def hypot_gradients(x1, x2, upstream):
    """Return gradients of which the derivatives keep their digits: of the smaller operand over the larger."""
    flat = tf.equal(x1, 0) & tf.equal(x2, 0)
    far = tf.math.is_inf(x1) | tf.math.is_inf(x2)  # there, what is finite counts as 0
    x1, x2 = (choose(far, choose(tf.math.is_inf(x), tf.sign(x), x * 0), x) for x in (x1, x2))
    x1, x2 = (choose(flat, tf.ones_like(x), x) for x in (x1, x2))
    first = tf.abs(x1) >= tf.abs(x2)
    large, small = choose(first, x1, x2), choose(first, x2, x1)
    tangent = small / large
    cosine = tf.sign(large) / tf.sqrt(1 + tangent * tangent)
    sides = cosine, tangent * cosine
    upstream = choose(flat, tf.zeros_like(upstream), upstream)  # which may be infinite
    return [upstream * choose(first, *pair) for pair in (sides, sides[::-1])]


@in_one_call
def inverse_hyperbolic(x, is_odd):
    """Return an inverse hyperbolic sine or cosine with a slope that keeps its digits for large `x`."""
    if x.dtype.size == 2:
        return in_float32(lambda x: inverse_hyperbolic(x, is_odd), x)
    fn, size, one = tf.asinh if is_odd else tf.acosh, tf.abs(x) if is_odd else x, tf.constant(1, x.dtype)
    far = size > 2 * EPS[x.dtype] ** -0.5
    line = tf.sign(x) * (tf.math.log(choose(far, size, one)) + math.log(2))
    return choose(far, line, fn(choose(far, one, x)))


TINY = {tf.float16: 2.0**-14, tf.bfloat16: 2.0**-126, tf.float32: 2.0**-126, tf.float64: 2.0**-1022}
EPS = {tf.float32: 2.0**-23, tf.float64: 2.0**-52}


@in_one_call
def log_add_powers(x1, x2, base):
    """Return the logarithm of the sum of two powers; `base` is the natural logarithm of the base."""
    x1, x2 = reject_complex(*align_floating(x1, x2))
    first = tf.greater_equal(x1, x2)
    larger, smaller = choose(first, x1, x2), choose(first, x2, x1)
    apart = choose(tf.equal(x1, x2) & tf.math.is_inf(x1), tf.zeros_like(x1), smaller - larger)
    return larger + tf.math.log1p(tf.exp(base * apart)) / base


@in_one_call
def truncated_remainder(x1, x2):
    """Return the remainder of truncated division: tf.truncatemod has no gradient."""
    one = tf.ones_like(x1)
    sign = choose(x1 < 0, -one, one)
    return sign * floored_remainder(x1 * sign, tf.abs(x2))


def truncated_integer_remainder(x1, x2):
    rest = tf.math.floormod(x1, x2)
    return choose(tf.not_equal(rest, 0) & ((rest < 0) != (x1 < 0)), rest - x2, rest)


def cbrt(x):
    """Return cube roots: the derivatives of the steps overflow before their product does."""
    y = run_unrecorded(cube_root, in_this_graph(x))
    return with_rule("op_cbrt", [y], lambda x, upstream: [upstream * cbrt_slope(x)], in_this_graph(x))[0]


def cbrt_slope(x):
    def rule(x, upstream):
        return [upstream * cbrt_slope(x) / (-1.5 * x)]

    slope = run_unrecorded(lambda x: tf.math.reciprocal(3 * tf.square(cube_root(x))), x)
    return with_rule("op_cbrt's slope", [slope], rule, x)[0]


def cube_root(x):
    one = tf.ones_like(x)
    sign = choose(tf.bitcast(x, tf.int64 if x.dtype is tf.float64 else tf.int32) < 0, -one, one)
    root = sign * tf.pow(x * sign, tf.constant(1 / 3, x.dtype))
    normal = tf.not_equal(x, 0) & tf.math.is_finite(x)
    safe = choose(normal, root, one)
    # 1 / 3 is rounded: one Newton step restores the lost digits
    return choose(normal, (2 * safe + choose(normal, x, one) / (safe * safe)) / 3, root)


def ldexp(x, n):
    """Return `x * 2**n` in three steps, because 2**n may overflow where the product does not."""
    wide, shift, bias = (tf.int64, 52, 1023) if x.dtype is tf.float64 else (tf.int32, 23, 127)
    n = tf.cast(tf.clip_by_value(tf.cast(n, x.dtype), -3 * bias, 3 * bias), wide)
    # a compiler would multiply constant factors first, which overflows: make them depend on x
    third = tf.truncatediv(n, tf.constant(3, wide)) - tf.cast(tf.math.is_nan(x), wide)
    for part in (third, third, n - 2 * third):
        exponent = tf.clip_by_value(part, 1 - bias, bias) + tf.constant(bias, wide)
        x = x * tf.bitcast(tf.bitwise.left_shift(exponent, tf.constant(shift, wide)), x.dtype)
    return x


def next_16_bit(x1, x2):
    """Return the next 16-bit number by incrementing the bits: tf.math.nextafter has no kernel for these dtypes."""
    start, one = tf.stop_gradient(x1), tf.constant(1, tf.int16)
    bits = tf.bitcast(choose(tf.equal(start, 0) & tf.not_equal(x2, 0), tf.zeros_like(start), start), tf.int16)
    away = tf.equal(x2 > start, start > 0)
    sign = choose(x2 < 0, tf.constant(-(2**15), tf.int16), tf.zeros_like(bits))
    moved = choose(tf.equal(start, 0), sign + one, choose(away, bits + one, bits - one))
    moved = choose(tf.equal(start, x2), x2, tf.bitcast(moved, x1.dtype))
    missing = tf.math.is_nan(start) | tf.math.is_nan(x2)
    moved = choose(missing, tf.constant(math.nan, x1.dtype), moved)
    # what is added has the slope of x1, and is -0.0, which keeps the sign of any zero
    return tf.stop_gradient(moved) + choose(tf.math.is_finite(x1), -(start - x1), -tf.zeros_like(x1))
