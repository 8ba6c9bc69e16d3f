"""Elementwise arithmetic and functions."""

from __future__ import annotations

import numpy as np

from multiop import _dtypes, _host, errors

from ..conversion import (
    bool_to_int32,
    complex_of,
    convert,
    dtype_name,
    floating,
    in_float32,
    not_bool,
    promote,
    promote_all,
    promote_floating,
    reject_complex,
)


def op_add(x1, x2):
    return np.add(*promote(x1, x2))


def op_subtract(x1, x2):
    return np.subtract(*not_bool(*promote(x1, x2)))


def op_multiply(x1, x2):
    return np.multiply(*promote(x1, x2))


def op_divide(x1, x2):
    return np.divide(*promote_floating(x1, x2))


def op_floor_divide(x1, x2):
    return np.floor_divide(*divisible(x1, x2))


def op_mod(x1, x2):
    return np.remainder(*divisible(x1, x2))


def op_power(x1, x2):
    x1, x2 = bool_to_int32(*promote(x1, x2))
    if x2.dtype.kind == "i" and (x2 < 0).any():
        raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
    return np.power(x1, x2)


def op_negative(x):
    return np.negative(*not_bool(convert(x)))


def op_reciprocal(x):
    return np.reciprocal(floating(x))


def op_sign(x):
    return in_float32(np.sign, *not_bool(convert(x)))


def op_abs(x):
    return np.abs(convert(x))


def op_square(x):
    return np.square(*bool_to_int32(convert(x)))


def op_sqrt(x):
    return np.sqrt(floating(x))


def op_rsqrt(x):
    return in_float32(lambda x: np.reciprocal(np.sqrt(x)), floating(x))


def op_exp(x):
    return np.exp(floating(x))


def op_exp2(x):
    return np.exp2(floating(x))


def op_expm1(x):
    return np.expm1(floating(x))


def op_log(x):
    return np.log(floating(x))


def op_log2(x):
    return np.log2(floating(x))


def op_log10(x):
    return np.log10(floating(x))


def op_log1p(x):
    x = floating(x)
    return log1p(x) if x.dtype.kind == "c" else np.log1p(x)


def op_maximum(x1, x2):
    return np.maximum(*reject_complex(*promote(x1, x2)))


def op_minimum(x1, x2):
    return np.minimum(*reject_complex(*promote(x1, x2)))


def op_clip(x, x_min, x_max):
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = reject_complex(*promote_all(x, *bounds))
    x = x if x_min is None else np.where((x >= bounds[0]) | (x != x), x, bounds[0])
    return x if x_max is None else np.where((x <= bounds[-1]) | (x != x), x, bounds[-1])


def op_round(x, decimals):
    (x,) = bool_to_int32(convert(x))
    if x.dtype.kind == "c":
        return complex_of(op_round(x.real, decimals), op_round(x.imag, decimals))
    return rounded_integer(x, decimals) if x.dtype.kind in "iu" else in_float32(lambda x: rounded(x, decimals), x)


def op_floor(x):
    (x,) = reject_complex(convert(x))
    return x if x.dtype.kind in "biu" else np.floor(x)


def op_ceil(x):
    (x,) = reject_complex(convert(x))
    return x if x.dtype.kind in "biu" else np.ceil(x)


def op_trunc(x):
    (x,) = reject_complex(convert(x))
    return x if x.dtype.kind in "biu" else np.trunc(x)


def op_sin(x):
    return np.sin(floating(x))


def op_cos(x):
    return np.cos(floating(x))


def op_tan(x):
    return np.tan(floating(x))


def op_arcsin(x):
    return np.arcsin(floating(x))


def op_arccos(x):
    return np.arccos(floating(x))


def op_arctan(x):
    return np.arctan(floating(x))


def op_arctan2(x1, x2):
    return np.arctan2(*reject_complex(*promote_floating(x1, x2)))


def op_sinh(x):
    return np.sinh(floating(x))


def op_cosh(x):
    return np.cosh(floating(x))


def op_tanh(x):
    return np.tanh(floating(x))


def op_arcsinh(x):
    return np.arcsinh(floating(x))


def op_arccosh(x):
    return np.arccosh(floating(x))


def op_arctanh(x):
    return np.arctanh(floating(x))


def op_hypot(x1, x2):
    return np.hypot(*reject_complex(*promote_floating(x1, x2)))


def op_real(x):
    return np.real(convert(x))


def op_imag(x):
    return np.imag(convert(x))


def op_conj(x):
    x = convert(x)
    return np.conj(x) if x.dtype.kind == "c" else x


def op_divide_no_nan(x1, x2):
    x1, x2 = np.broadcast_arrays(*promote_floating(x1, x2))
    return np.divide(x1, x2, out=np.zeros_like(x1), where=x2 != 0)


def op_logaddexp(x1, x2):
    return np.logaddexp(*reject_complex(*promote_floating(x1, x2)))


def op_logaddexp2(x1, x2):
    return np.logaddexp2(*reject_complex(*promote_floating(x1, x2)))


def op_nan_to_num(x, nan, posinf, neginf):
    x = convert(x)
    if x.dtype.kind in "biu":
        return x
    if x.dtype.kind == "c":
        return complex_of(*(op_nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag)))
    least, largest = _dtypes.EXTREMES[dtype_name(x)]
    x = np.where(x != x, convert(nan, dtype_name(x)), x)
    x = np.where(x == np.inf, convert(largest if posinf is None else posinf, dtype_name(x)), x)
    return np.where(x == -np.inf, convert(least if neginf is None else neginf, dtype_name(x)), x)


def op_cbrt(x):
    return np.cbrt(*reject_complex(floating(x)))


def op_fmod(x1, x2):
    return np.fmod(*divisible(x1, x2))


def op_heaviside(x1, x2):
    return np.heaviside(*reject_complex(*promote_floating(x1, x2)))


def op_ldexp(x1, x2):
    x1, x2 = reject_complex(floating(x1))[0], convert(x2)
    if x2.dtype.kind not in "biu":
        raise errors.DTypeError(f"x2: {dtype_name(x2)} is not accepted: give integers")
    return in_float32(lambda x1: np.ldexp(x1, np.clip(x2, -5000, 5000).astype(np.int32)), x1)


def op_nextafter(x1, x2):
    x1, x2 = reject_complex(*promote_floating(x1, x2))
    y = np.nextafter(x1, x2)
    return np.where(y == 0, np.copysign(y, np.where(x1 == x2, x2, x1)), y)  # NumPy's zero of float16 has another sign


def op_polar(abs_, angle):
    abs_, angle = reject_complex(*promote_floating(abs_, angle))
    abs_, angle = (x.astype(np.result_type(x.dtype, np.float32)) for x in (abs_, angle))
    return complex_of(abs_ * np.cos(angle), abs_ * np.sin(angle))


# operands


def divisible(x1, x2):
    """Return the operands of a division; an integer that is divided by 0 raises."""
    x1, x2 = reject_complex(*bool_to_int32(*promote(x1, x2)))
    if x2.dtype.kind in "iu" and np.broadcast(x1, x2).size and not x2.all():
        raise errors.ArgumentError("x2: an integer cannot be divided by 0")
    return x1, x2


def log1p(z):
    """Return `log1p` of complex numbers; the real part of NumPy's has few digits near 0."""
    x, y, log = z.real, z.imag, np.log(complex_of(z.real + 1, z.imag))
    return complex_of(np.where(np.abs(z) < 0.5, np.log1p(x * (2 + x) + y * y) / 2, log.real), log.imag)


def rounded(x, decimals):
    """Round floats, ties to even; what is too large to have these decimals stays."""
    scale = _host.power_of_10(abs(decimals))
    large = x * scale if decimals > 0 else x / scale
    level = np.rint(large)
    y = level / scale if decimals > 0 else np.where(level == 0, level, level * scale)
    return np.where(np.isfinite(large), y, x)


def rounded_integer(x, decimals):
    """Round integers to a multiple of a power of 10, ties to even."""
    unit = 10 ** max(-decimals, 0)
    if unit > np.iinfo(x.dtype).max:
        return np.zeros_like(x)
    below, rest = np.divmod(x, x.dtype.type(unit))
    up = (rest > unit - rest) | ((rest == unit - rest) & (below % 2 == 1))
    return (below + up) * x.dtype.type(unit)
