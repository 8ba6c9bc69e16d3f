"""Elementwise arithmetic and functions."""

from __future__ import annotations

import functools
import operator

import numpy as np

from multiop import errors
from multiop._values import dtypes, host

from .._record import ops
from ..conversion import (
    bool_to_int32,
    complex_of,
    convert,
    dtype_name,
    floating,
    in_float32,
    not_bool,
    of_floats,
    of_reals,
    pipeline,
    promote,
    promote_all,
    promote_floating,
    reject_complex,
)


def divisible(x1, x2):
    """Return the operands of a division; an integer that is divided by 0 raises."""
    x1, x2 = reject_complex(*bool_to_int32(x1, x2))
    if x2.dtype.kind in "iu" and np.broadcast(x1, x2).size and not x2.all():
        raise errors.ArgumentError("x2: an integer cannot be divided by 0")
    return x1, x2


def complex_sign(z):
    unit = np.where(np.maximum(abs(z.real), abs(z.imag)) > 1, 0.25, 2.0**60).astype(z.real.dtype)
    return np.sign(complex_of(z.real * unit, z.imag * unit))  # the length of `z` may leave the range


def log1p(x):
    """Return NumPy's `log1p`, but the real part of complex numbers, which has few digits near 0."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    re, im, log = x.real, x.imag, np.log(complex_of(x.real + 1, x.imag))
    return complex_of(np.where(np.abs(x) < 0.5, np.log1p(re * (2 + re) + im * im) / 2, log.real), log.imag)


def of_fractions(fn):
    """Return `fn` for numbers that may have fractions; integers and bool stay."""
    return lambda x: x if x.dtype.kind in "biu" else fn(x)


op_add = pipeline(promote, np.add)
op_subtract = pipeline(promote, not_bool, np.subtract)
op_multiply = pipeline(promote, np.multiply)
op_divide = pipeline(promote_floating, np.divide)
op_floor_divide = pipeline(promote, divisible, np.floor_divide)
op_mod = pipeline(promote, divisible, np.remainder)


def op_power(x1, x2):
    x1, x2 = bool_to_int32(*promote(x1, x2))
    if x2.dtype.kind == "i" and (x2 < 0).any():
        raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
    if (x2 == 0.5).any():  # of one exponent for many numbers NumPy makes a root, which differs at -inf and -0.0
        shape = np.broadcast_shapes(x1.shape, x2.shape)
        return np.power(x1, np.broadcast_to(x2, shape or (1,)).copy()).reshape(shape)
    return np.power(x1, x2)


op_negative = pipeline(convert, not_bool, np.negative)
op_reciprocal = of_floats(np.reciprocal)
op_sign = pipeline(convert, not_bool, lambda x: complex_sign(x) if x.dtype.kind == "c" else in_float32(np.sign, x))
op_abs = pipeline(convert, np.abs)
op_square = pipeline(convert, bool_to_int32, np.square)
op_sqrt = of_floats(np.sqrt)
op_rsqrt = of_floats(lambda x: np.reciprocal(np.sqrt(x)))
op_exp = of_floats(np.exp)
op_exp2 = of_floats(np.exp2)
op_expm1 = of_floats(np.expm1)
op_log = of_floats(np.log)
op_log2 = of_floats(np.log2)
op_log10 = of_floats(np.log10)
op_log1p = of_floats(log1p)
op_maximum = pipeline(promote, reject_complex, np.maximum)
op_minimum = pipeline(promote, reject_complex, np.minimum)


def op_clip(x, x_min, x_max):
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = reject_complex(*promote_all(x, *bounds))
    x = x if x_min is None else ops.where((x >= bounds[0]) | (x != x), x, bounds[0])
    return x if x_max is None else ops.where((x <= bounds[-1]) | (x != x), x, bounds[-1])


def op_round(x, decimals):
    (x,) = bool_to_int32(convert(x))
    if x.dtype.kind == "c":
        return complex_of(op_round(x.real, decimals), op_round(x.imag, decimals))
    return (
        rounded_integer(x, decimals) if x.dtype.kind in "iu" else in_float32(lambda x: round_decimals(x, decimals), x)
    )


op_floor = pipeline(convert, reject_complex, of_fractions(np.floor))
op_ceil = pipeline(convert, reject_complex, of_fractions(np.ceil))
op_trunc = pipeline(convert, reject_complex, of_fractions(np.trunc))
op_sin = of_floats(np.sin)
op_cos = of_floats(np.cos)
op_tan = of_floats(np.tan)
op_arcsin = of_floats(np.arcsin)
op_arccos = of_floats(np.arccos)
op_arctan = of_floats(np.arctan)
op_arctan2 = pipeline(promote_floating, reject_complex, np.arctan2)
op_sinh = of_floats(np.sinh)
op_cosh = of_floats(np.cosh)
op_tanh = of_floats(np.tanh)
op_arcsinh = of_floats(np.arcsinh)
op_arccosh = of_floats(np.arccosh)
op_arctanh = of_floats(np.arctanh)
op_hypot = pipeline(promote_floating, reject_complex, np.hypot)
op_real = pipeline(convert, np.real)
op_imag = pipeline(convert, np.imag)


def op_conj(x):
    x = convert(x)
    return np.conj(x) if x.dtype.kind == "c" else x


def op_divide_no_nan(x1, x2):
    x1, x2 = promote_floating(x1, x2)
    is_zero = ops.equal(x2, 0)
    return ops.where(is_zero, 0, ops.divide(x1, ops.where(is_zero, 1, x2)))


op_logaddexp = pipeline(promote_floating, reject_complex, np.logaddexp)
op_logaddexp2 = pipeline(promote_floating, reject_complex, np.logaddexp2)


def op_nan_to_num(x, nan, posinf, neginf):
    x = convert(x)
    if x.dtype.kind in "biu":
        return x
    if x.dtype.kind == "c":
        return complex_of(*(op_nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag)))
    least, largest = dtypes.EXTREMES[dtype_name(x)]
    x = np.where(x != x, convert(nan, dtype_name(x)), x)
    x = np.where(x == np.inf, convert(largest if posinf is None else posinf, dtype_name(x)), x)
    return np.where(x == -np.inf, convert(least if neginf is None else neginf, dtype_name(x)), x)


op_cbrt = of_reals(np.cbrt)
op_fmod = pipeline(promote, divisible, np.fmod)
op_heaviside = pipeline(promote_floating, reject_complex, np.heaviside)


def op_ldexp(x1, x2):
    x1, x2 = reject_complex(floating(x1))[0], convert(x2)
    if x2.dtype.kind not in "biu":
        raise errors.DTypeError(f"x2: {dtype_name(x2)} is not accepted: give integers")
    return in_float32(lambda x1: np.ldexp(x1, np.clip(x2.astype(float), -5000, 5000).astype(np.int32)), x1)


def op_nextafter(x1, x2):
    x1, x2 = reject_complex(*promote_floating(x1, x2))
    y = np.nextafter(x1, x2)
    return np.where(y == 0, np.copysign(y, np.where(x1 == x2, x2, x1)), y)  # NumPy's zero of float16 has another sign


def op_polar(abs_, angle):
    abs_, angle = reject_complex(*promote_floating(abs_, angle))
    abs_, angle = (x.astype(np.result_type(x.dtype, np.float32)) for x in (abs_, angle))
    return complex_of(abs_ * np.cos(angle), abs_ * np.sin(angle))


# rounding


def round_decimals(x, decimals):
    """Round floats, ties to even; what is too large to have these decimals stays."""
    if decimals > 0:
        scales = host.decimal_scales(decimals, x.dtype.itemsize)
        large = functools.reduce(operator.mul, scales, x)
        y = functools.reduce(operator.truediv, scales, np.rint(large)) if scales else x
    else:
        scale = host.power_of_10(-decimals)
        large = x / scale
        level = np.rint(large)
        y = np.where(level == 0, level, level * scale)
    return np.where(np.isfinite(large), y, x)


def rounded_integer(x, decimals):
    """Round integers to a multiple of a power of 10, ties to even."""
    unit = 10 ** max(-decimals, 0)
    if unit > np.iinfo(x.dtype).max:
        return np.zeros_like(x)
    below, rest = np.divmod(x, x.dtype.type(unit))
    up = (rest > unit - rest) | ((rest == unit - rest) & (below % 2 == 1))
    return (below + up) * x.dtype.type(unit)
