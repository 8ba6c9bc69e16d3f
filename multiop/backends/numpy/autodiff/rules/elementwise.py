"""Derivatives of elementwise arithmetic and functions."""

from __future__ import annotations

import math

import numpy as np

from multiop._rules.powers import differentiate_power, differentiate_usual_power

from ..._record import array_of, is_traced, ops, recorded
from ...conversion import complex_of, promote
from .formula import by_result, by_slope, conj, is_complex, passed, sloped, times

op_add = passed * 2
op_subtract = (*passed, lambda u, *_: -u)
op_multiply = (lambda u, _y, _x1, x2: u * conj(x2), lambda u, _y, x1, _x2: u * conj(x1))
op_divide = (lambda u, _y, _x1, x2: u / conj(x2), lambda u, y, _x1, x2: -u * conj(y) / conj(x2))  # y / x2 may vanish


op_mod = (*passed, lambda u, _y, x1, x2: -u * quotient(ops.mod, x1, x2))


def of_base(u, _y, x1, x2):
    if type(x2) in (int, float) and 1 <= x2 <= 64:
        return u * conj(x1 * 2 if x2 == 2 else ops.power(x1, x2 - 1) * x2)
    return u * np.conj(slope_of_complex_power(x1, x2)[0]) if is_complex(u) else u * power_of_order(x1, x2, 1, 0)


def of_exponent(u, _y, x1, x2):
    return u * np.conj(slope_of_complex_power(x1, x2)[1]) if is_complex(u) else u * power_of_order(x1, x2, 0, 1)


def power_of_order(x1, x2, n, m):
    """Return the derivative of the power, `n` times in its base and `m` times in its exponent."""

    def value(x1, x2):
        x1, x2 = np.broadcast_arrays(x1, x2)
        is_usual = n + m == 1 and x1.dtype.char in "fd" and x1.size
        slopes = differentiate_usual_power(np, x1, x2, np.power(x1, x2), (n, m)) if is_usual else None
        return np.asarray(differentiate_power(np, x1, x2, n, m) if slopes is None else slopes[m])

    rule = tuple([lambda u, _y, x1, x2, k=k: u * power_of_order(x1, x2, n + 1 - k, m + k) for k in range(2)])
    xs = promote(x1, x2)  # of a number alone, ops would give float32
    return recorded(value, rule, xs) if any(map(is_traced, xs)) else value(*xs)


def slope_of_complex_power(x1, x2):
    x1, x2 = promote(x1, x2)
    of_zero = ops.equal(x1, 0) & ops.greater_equal(ops.real(x2), 0)
    flat = ops.equal(x2, 0) & (of_zero | ~ops.isfinite(x1))
    exponent = ops.where(of_zero, ops.stop_gradient(x2), x2)
    below = exponent * ops.power(ops.where(flat, 1, x1), exponent - 1)
    base = ops.where(of_zero, 1, x1)
    half = ops.power(base, x2 * 0.5)  # its square overflows before the slope does
    return ops.where(flat, 0, below), ops.where(of_zero, 0, half * ops.log(base) * half)


op_power = (of_base, of_exponent)
op_negative = (lambda u, *_: -u,)


def op_sign(u, x):
    if not is_complex(x):
        return ops.zeros_like(u, None)
    y, size = ops.sign(x), abs(ops.where(ops.equal(x, 0), 1, x))
    return ops.where(ops.equal(x, 0), 0, (u - y * ops.real(np.conj(y) * u)) / size)


def of_size(u, _y, x):
    are_arrays = type(x) is type(u) is np.ndarray and is_complex(x)
    if are_arrays and (size := np.abs(x)).all() and size.max(initial=0) < np.inf:
        return u * complex_of(x.real / size, x.imag / size)  # NumPy's quotient of complex numbers takes 1 / size
    return complex_of(*op_hypot(u, ops.real(x), ops.imag(x))) if is_complex(x) else u * ops.sign(x)


op_maximum = (lambda u, _y, x1, x2: to_larger(u, x1, x2), lambda u, _y, x1, x2: to_larger(u, x2, x1))
op_minimum = (lambda u, _y, x1, x2: to_larger(u, x2, x1), lambda u, _y, x1, x2: to_larger(u, x1, x2))


def to_larger(u, x1, x2):
    """Return `u` where `x1` is larger, and half of it where they are equal."""
    return ops.where(ops.equal(x1, x2), 0.5 * u, ops.where(ops.greater(x1, x2), u, 0))


def op_arctan2(u, x1, x2):
    scale = ops.stop_gradient(np.maximum(np.abs(x1), np.abs(x2)))  # squares of the operands overflow, or vanish
    flat = ops.equal(scale, 0) | ops.isinf(scale)
    y, x, scale = (ops.where(flat, 1, side) for side in (x1, x2, scale))
    slope = ops.where(flat, 0, u) / (ops.square(y / scale) + ops.square(x / scale))
    return slope * (x / scale) / scale, -slope * (y / scale) / scale


def op_hypot(u, x1, x2):
    u = ops.where(ops.equal(x1, 0) & ops.equal(x2, 0), 0, u)  # which may be infinite
    return u * cosine(x1, x2), u * cosine(x2, x1)


def cosine(x1, x2):
    """Return the slope of `op_hypot` in `x1`, with derivatives of which no difference loses digits."""

    def value(x1, x2):
        size = np.hypot(x1, x2)
        if (overflown := np.isinf(size)).any():
            far = np.isinf(x1) | np.isinf(x2)  # there, what is finite counts as 0
            x1, x2 = (
                np.where(overflown, np.where(far, np.where(np.isinf(x), np.sign(x), x * 0), x * 0.25), x)
                for x in (x1, x2)
            )
        return np.asarray(ops.divide_no_nan(x1, np.hypot(x1, x2) if overflown.any() else size))

    def rule(u, x1, x2):
        sine, change = cosine(x2, x1), u * ops.divide_no_nan(cosine(x2, x1), ops.hypot(x1, x2))
        return sine * change, -cosine(x1, x2) * change

    xs = promote(x1, x2)
    return recorded(value, rule, xs) if any(map(is_traced, xs)) else value(*xs)


op_real, op_nextafter, op_imag, op_conj = passed, passed, (lambda u, *_: u * 1j,), (lambda u, *_: np.conj(u),)


def shares(base):
    """Return the rule of what shares its gradient as `exp(base * x1)` and `exp(base * x2)` share their sum."""

    def share(x1, x2):
        distance = ops.subtract(x1, x2)
        return ops.sigmoid(distance if base == 1 else distance * base)

    return (lambda u, _y, x1, x2: u * share(x1, x2), lambda u, _y, x1, x2: u * share(x2, x1))


op_abs, op_logaddexp, op_logaddexp2 = (of_size,), shares(1), shares(math.log(2))


def op_nan_to_num(u, x, *replaced):
    if is_complex(x):
        return complex_of(*(op_nan_to_num(part(u), part(x)) for part in (ops.real, ops.imag)))
    return ops.where(ops.isfinite(x), u, 0)


op_fmod = (*passed, lambda u, _y, x1, x2: -u * quotient(ops.fmod, x1, x2))


def quotient(rest, x1, x2):
    """Return the whole number that a remainder left of `x1 / x2`, which may itself have been rounded to another one."""
    return ops.round(ops.divide(x1, x2) - ops.divide(rest(x1, x2), x2), 0)


op_ldexp = (lambda u, _y, _x1, x2: ops.ldexp(u, x2),)


def plus(z, number):
    """Return `z + number`; for complex numbers, NumPy's sum loses the sign of a zero, which tells the side of a cut."""
    return complex_of(ops.real(z) + number, ops.imag(z)) if is_complex(z) else z + number


def times_i(z):
    """Return `1j * z` with the signs of zeros."""
    return complex_of(-ops.imag(z), ops.real(z))


def arcsin_slope(x):
    return ops.rsqrt(plus(-x, 1)) * ops.rsqrt(plus(x, 1)) if is_complex(x) else ops.rsqrt(one_less_square(x))


def one_less_square(x):
    """Return `1 - x**2`, by a form that keeps the digits of its value, or of its derivative."""
    return ops.where(ops.less(abs(x), 0.5), 1 - np.square(x), (1 - x) * (1 + x))


def sech_squared(x):
    """Return the slope of tanh, of which 1 less the square of tanh would keep no digits far out."""

    def of_complex(z):
        far = 60 if z.dtype == np.complex64 else 400  # beyond, it is 0
        return np.square(np.reciprocal(np.cosh(complex_of(np.clip(z.real, -far, far), z.imag))))

    def value(x):
        e = np.array(np.abs(x), np.float64)  # in float32, NumPy's exp is off by 2 units in the last place
        np.exp(np.multiply(e, -2, out=e), out=e)
        y = np.asarray(1 + e)
        return np.divide(np.multiply(e, 4, out=e), np.square(y, out=y), out=e).astype(x.dtype, copy=False)

    return sloped(of_complex if is_complex(x) else value, lambda x: -2 * np.tanh(x) * sech_squared(x), x)


def exp2_slope(x, order=1):
    """Return a derivative of exp2, which has a larger range than exp2."""
    half = np.exp2(array_of(x) * 0.5)
    return sloped(lambda x: half * math.log(2) ** order * half, lambda x: exp2_slope(x, order + 1), x)


op_exp2 = by_slope(exp2_slope)


@by_slope
def op_arctanh(x):
    return np.reciprocal(1 - x) * np.reciprocal(1 + x) if is_complex(x) else np.reciprocal(one_less_square(x))


op_tanh = by_slope(sech_squared)


@by_slope
def op_arctan(x):
    if is_complex(x):
        return np.reciprocal(1 + 1j * x) * np.reciprocal(1 - 1j * x)
    return np.square(np.reciprocal(ops.hypot(x, 1.0)))


@by_slope
def op_arcsinh(x):
    return arcsin_slope(times_i(x)) if is_complex(x) else np.reciprocal(ops.hypot(x, 1.0))


op_tan = (lambda u, y, x: times(u, sech_squared(times_i(x)) if is_complex(x) else 1 + np.square(y), y),)


op_heaviside = (lambda u, *_: ops.zeros_like(u, None), lambda u, _y, x1, _x2: ops.where(ops.equal(x1, 0), u, 0))
op_round = op_floor = op_ceil = op_trunc = (lambda u, *_: ops.zeros_like(u, None),)
op_floor_divide = op_round * 2
op_reciprocal, op_square = (lambda u, y, _x: -u * conj(y) * conj(y),), by_slope(lambda x: 2 * x)
# halved in between: y / x may overflow
op_sqrt, op_rsqrt = by_result(lambda y: 0.5 * np.reciprocal(y)), (lambda u, y, x: -u * (0.5 * conj(y)) / conj(x),)
op_exp, op_expm1 = by_result(lambda y: y), by_slope(np.exp)
# the derivative of 1 / x has a square that overflows, or vanishes, before it meets `u`
op_log, op_log2 = (lambda u, _y, x: u / conj(x),), (lambda u, _y, x: u / math.log(2) / conj(x),)
op_log10, op_log1p = (lambda u, _y, x: u / (conj(x) * math.log(10)),), (lambda u, _y, x: u / (1 + conj(x)),)
op_sin, op_cos = by_slope(np.cos), by_slope(lambda x: -np.sin(x))
op_arcsin, op_arccos = by_slope(arcsin_slope), by_slope(lambda x: -arcsin_slope(x))
op_sinh, op_cosh = by_slope(np.cosh), by_slope(np.sinh)
op_arccosh = by_slope(lambda x: ops.rsqrt(plus(x, -1)) * ops.rsqrt(plus(x, 1)))


def of_cube_root(u, y, x):
    def value(_):
        root = array_of(y)
        found = root / array_of(x) / 3  # the square would double the error of the root
        return np.where(np.isnan(found), np.reciprocal(3 * np.square(root)), found)

    # its own derivative is a quotient by x: that of the result would be rounded five times
    rule = (lambda u, slope, x: u * slope * (-2 / 3) / x,)
    return u * recorded(value, rule, (x,)) if is_traced(x) else times(u, value(x), y)


op_cbrt = (of_cube_root,)
