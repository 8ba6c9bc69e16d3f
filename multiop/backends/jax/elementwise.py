"""Elementwise arithmetic and functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors

from .conversion import convert, floating, promote, promote_all, promote_floating


def op_add(x1, x2):
    return jnp.add(*promote(x1, x2))


def op_subtract(x1, x2):
    return jnp.subtract(*not_bool(*promote(x1, x2)))


def op_multiply(x1, x2):
    return jnp.multiply(*promote(x1, x2))


def op_divide(x1, x2):
    return jnp.true_divide(*promote_floating(x1, x2))


def op_floor_divide(x1, x2):
    return divided(jnp.floor_divide, x1, x2)


def op_mod(x1, x2):
    return divided(jnp.remainder, x1, x2)


def op_power(x1, x2):
    x1, x2 = numbers(*promote(x1, x2))
    if not jnp.issubdtype(x1.dtype, np.inexact) and is_concrete(x2) and bool(jnp.any(x2 < 0)):
        raise errors.ArgumentError("x2: an integer to a negative power is no integer; cast one of them to a float first")
    return jnp.power(x1, x2)


def op_negative(x):
    return jnp.negative(*not_bool(convert(x)))


def op_reciprocal(x):
    return jnp.reciprocal(floating(x))


def op_sign(x):
    return jnp.sign(*not_bool(convert(x)))


def op_abs(x):
    x = convert(x)
    return x * jnp.sign(x) if jnp.issubdtype(x.dtype, np.floating) else jnp.abs(x)  # the gradient of jnp.abs at 0 is 1


def op_square(x):
    return jnp.square(*numbers(convert(x)))


def op_sqrt(x):
    return jnp.sqrt(floating(x))


def op_rsqrt(x):
    return jax.lax.rsqrt(floating(x))


def op_exp(x):
    return jnp.exp(floating(x))


def op_exp2(x):
    return jnp.exp2(floating(x))


def op_expm1(x):
    return jnp.expm1(floating(x))


def op_log(x):
    return jnp.log(floating(x))


def op_log2(x):
    return jnp.log2(floating(x))


def op_log10(x):
    return jnp.log10(floating(x))


def op_log1p(x):
    return jnp.log1p(floating(x))


def op_maximum(x1, x2):
    x1, x2 = jnp.broadcast_arrays(*real(*promote(x1, x2)))
    return _maximum(x1, x2) if jnp.issubdtype(x1.dtype, np.floating) else jnp.maximum(x1, x2)


def op_minimum(x1, x2):
    x1, x2 = jnp.broadcast_arrays(*real(*promote(x1, x2)))
    return _minimum(x1, x2) if jnp.issubdtype(x1.dtype, np.floating) else jnp.minimum(x1, x2)


def op_clip(x, x_min, x_max):
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = real(*promote_all(x, *bounds))
    # jnp.clip halves the gradient at the bounds
    if x_min is not None:
        x = jnp.where((x >= bounds[0]) | (x != x), x, bounds[0])
    if x_max is not None:
        x = jnp.where((x <= bounds[-1]) | (x != x), x, bounds[-1])
    return x


def op_round(x, decimals):
    return jnp.round(convert(x), decimals)


def op_floor(x):
    (x,) = real(convert(x))
    return jnp.floor(x) if jnp.issubdtype(x.dtype, np.floating) else x


def op_ceil(x):
    (x,) = real(convert(x))
    return jnp.ceil(x) if jnp.issubdtype(x.dtype, np.floating) else x


def op_trunc(x):
    (x,) = real(convert(x))
    return jnp.trunc(x) if jnp.issubdtype(x.dtype, np.floating) else x


def op_sin(x):
    return jnp.sin(floating(x))


def op_cos(x):
    return jnp.cos(floating(x))


def op_tan(x):
    return jnp.tan(floating(x))


def op_arcsin(x):
    return jnp.arcsin(floating(x))


def op_arccos(x):
    return jnp.arccos(floating(x))


def op_arctan(x):
    return jnp.arctan(floating(x))


def op_arctan2(x1, x2):
    return jnp.arctan2(*real(*promote_floating(x1, x2)))


def op_sinh(x):
    return jnp.sinh(floating(x))


def op_cosh(x):
    return jnp.cosh(floating(x))


def op_tanh(x):
    return jnp.tanh(floating(x))


def op_arcsinh(x):
    return jnp.arcsinh(floating(x))


def op_arccosh(x):
    return jnp.arccosh(floating(x))


def op_arctanh(x):
    return jnp.arctanh(floating(x))


def op_hypot(x1, x2):
    x1, x2 = real(*promote_floating(x1, x2))
    zero = (x1 == 0) & (x2 == 0)
    return jnp.where(zero, 0, jnp.hypot(jnp.where(zero, 1, x1), x2))  # jnp.hypot's gradient at (0, 0) is not 0


def op_real(x):
    return jnp.real(convert(x))


def op_imag(x):
    return jnp.imag(convert(x))


def op_conj(x):
    x = convert(x)
    return jnp.conj(x) if jnp.issubdtype(x.dtype, np.complexfloating) else x


# operands


def numbers(*xs):
    """Return `xs` with bool as `int32`, for an op that needs numbers."""
    return [x.astype(np.int32) if x.dtype == bool else x for x in xs]


def not_bool(*xs):
    if xs[0].dtype == bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def real(*xs):
    if jnp.issubdtype(xs[0].dtype, np.complexfloating):
        raise errors.DTypeError(f"{xs[0].dtype} is not accepted: complex numbers have no order")
    return xs


def is_concrete(x):
    return not isinstance(x, jax.core.Tracer)


def divided(divide, x1, x2):
    """Divide; an integer divided by 0 raises, or is 0 (NumPy's value) where its value is only known to a compiler."""
    x1, x2 = real(*numbers(*promote(x1, x2)))
    if jnp.issubdtype(x1.dtype, np.floating):
        return divide(x1, x2)
    if is_concrete(x2):
        if bool(jnp.any(x2 == 0)):
            raise errors.ArgumentError("x2: an integer cannot be divided by 0")
        return divide(x1, x2)
    return jnp.where(x2 == 0, 0, divide(x1, jnp.where(x2 == 0, 1, x2)))


def ranked(pairwise, beats):
    """Return `pairwise` with ties split and the gradient at a NaN sent to the NaN operand: jnp sends it to neither."""
    chosen = jax.custom_jvp(pairwise)

    @chosen.defjvp
    def chosen_jvp(primals, tangents):
        x1, x2 = primals
        tie = jnp.where(x1 == x2, 0.5, 0.0).astype(x1.dtype)
        weight1 = jnp.where(beats(x1, x2) | jnp.isnan(x1), 1, tie)
        weight2 = jnp.where(beats(x2, x1) | jnp.isnan(x2), 1, tie)
        return chosen(x1, x2), weight1 * tangents[0] + weight2 * tangents[1]

    return jax.jit(chosen, inline=True)


_maximum = ranked(jnp.maximum, jnp.greater)
_minimum = ranked(jnp.minimum, jnp.less)
