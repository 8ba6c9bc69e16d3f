"""Elementwise arithmetic and functions."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

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
    if type(x2) is int and isinstance(x1, jax.Array) and jnp.issubdtype(x1.dtype, np.floating):
        return jax.lax.integer_pow(x1, x2)
    x1, x2 = numbers(*promote(x1, x2))
    if jnp.issubdtype(x1.dtype, np.floating):
        return _power(x1, x2)
    return jnp.power(x1, x2) if jnp.issubdtype(x1.dtype, np.complexfloating) else integer_power(x1, x2)


def op_negative(x):
    return jnp.negative(*not_bool(convert(x)))


def op_reciprocal(x):
    return jnp.reciprocal(floating(x))


def op_sign(x):
    (x,) = not_bool(convert(x))
    if not jnp.issubdtype(x.dtype, np.complexfloating):
        return jnp.sign(x)
    zero = x == 0  # jnp.sign has no gradient
    return jnp.where(zero, 0, x / jnp.abs(jnp.where(zero, 1, x)))


def op_abs(x):
    x = convert(x)
    return _abs(x) if jnp.issubdtype(x.dtype, np.floating) else jnp.abs(x)


def op_square(x):
    return jnp.square(*numbers(convert(x)))


def op_sqrt(x):
    return jnp.sqrt(floating(x))


def op_rsqrt(x):
    return _rsqrt(floating(x))


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
    x1, x2 = real(*promote(x1, x2))
    return _maximum(x1, x2) if jnp.issubdtype(x1.dtype, np.floating) else jnp.maximum(x1, x2)


def op_minimum(x1, x2):
    x1, x2 = real(*promote(x1, x2))
    return _minimum(x1, x2) if jnp.issubdtype(x1.dtype, np.floating) else jnp.minimum(x1, x2)


def op_clip(x, x_min, x_max):
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = real(*promote_all(x, *bounds))
    return _clip(x, None if x_min is None else bounds[0], None if x_max is None else bounds[-1])


def op_round(x, decimals):
    (x,) = numbers(convert(x))
    if jnp.issubdtype(x.dtype, np.inexact):
        return jnp.round(x, decimals)
    if decimals >= 0:
        return x
    if 10**-decimals > jnp.iinfo(x.dtype).max:
        return jnp.zeros_like(x)
    return rounded_integer(x, jnp.asarray(10**-decimals, x.dtype))


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
    return _arctan2(*real(*promote_floating(x1, x2)))


def op_sinh(x):
    return jnp.sinh(floating(x))


def op_cosh(x):
    return jnp.cosh(floating(x))


def op_tanh(x):
    return jnp.tanh(floating(x))


def op_arcsinh(x):
    return jnp.arcsinh(floating(x))


def op_arccosh(x):
    x = floating(x)
    # jnp.arccosh is NaN below 1, but its derivative is not
    return jnp.arccosh(x * jnp.where(x < 1, np.nan, 1).astype(x.dtype) if jnp.issubdtype(x.dtype, np.floating) else x)


def op_arctanh(x):
    x = floating(x)
    if not jnp.issubdtype(x.dtype, np.floating):
        return jnp.arctanh(x)
    return 0.5 * (jnp.log1p(x) - jnp.log1p(-x))  # the second derivative of jnp.arctanh at -1 and 1 is NaN


def op_hypot(x1, x2):
    return _hypot(*real(*promote_floating(x1, x2)))


def op_real(x):
    return jnp.real(convert(x))


def op_imag(x):
    return jnp.imag(convert(x))


def op_conj(x):
    x = convert(x)
    return jnp.conj(x) if jnp.issubdtype(x.dtype, np.complexfloating) else x


# compiled as a whole, these take a fraction of the time of the calls that they are made of

compiled = functools.partial(jax.jit, inline=True)


@compiled
def _abs(x):
    return x * jnp.sign(x)  # the gradient of jnp.abs at 0 is 1


@compiled
def _clip(x, x_min, x_max):
    # jnp.clip halves the gradient at the bounds
    if x_min is not None:
        x = jnp.where((x >= x_min) | (x != x), x, x_min)
    if x_max is not None:
        x = jnp.where((x <= x_max) | (x != x), x, x_max)
    return x


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


def rounded_integer(x, unit):
    below = x // unit
    rest = x - below * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (below % 2 == 1))
    return (below + up.astype(x.dtype)) * unit


def divided(divide, x1, x2):
    """Divide; an integer divided by 0 raises, or is 0 where its value is known to a compiler alone."""
    x1, x2 = real(*numbers(*promote(x1, x2)))
    if jnp.issubdtype(x1.dtype, np.floating):
        return divide(x1, x2)
    zero = x2 == 0
    if is_known(zero):
        if bool(jnp.any(zero)):
            raise errors.ArgumentError("x2: an integer cannot be divided by 0")
        return divide(x1, x2)
    return jnp.where(zero, 0, divide(x1, jnp.where(zero, 1, x2)))


def integer_power(x1, x2):
    """Raise integers to a power; a negative one raises, or gives 0 where its value is known to a compiler alone."""
    negative = x2 < 0
    if is_known(negative):
        if bool(jnp.any(negative)):
            raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
        return jnp.power(x1, x2)
    return jnp.where(negative, 0, jnp.power(x1, jnp.where(negative, 0, x2)))


def is_known(x):
    """Say whether the values of `x` can be looked at: not where they are those of a compiled or mapped function."""
    return not isinstance(x, jax.core.Tracer)


def ranked(pairwise, beats):
    """Return `pairwise` with ties split and the gradient at a NaN sent to the NaN operand: jnp sends it to neither."""
    chosen = jax.custom_jvp(pairwise)

    @chosen.defjvp
    def chosen_jvp(primals, tangents):
        x1, x2 = primals
        tie = jnp.where(x1 == x2, 0.5, 0.0).astype(x1.dtype)
        weight1 = jnp.where(beats(x1, x2) | jnp.isnan(x1), 1, tie)
        weight2 = jnp.where((beats(x2, x1) | jnp.isnan(x2)) & ~jnp.isnan(x1), 1, tie)
        return chosen(x1, x2), weight1 * tangents[0] + weight2 * tangents[1]

    return compiled(chosen)


@jax.custom_jvp
def power(x1, x2):
    return jnp.power(x1, x2)


def power_jvp(primals, tangents):
    # jnp.power's gradient is NaN at 0 ** 0, and its second derivative at 0 ** 1
    x1, x2 = primals
    y = power(x1, x2)
    constant = (x2 == 0) & ((x1 == 0) | ~jnp.isfinite(x1))
    of_zero = (x1 == 0) & (x2 >= 0)
    tangent = jnp.zeros_like(y)
    if type(tangents[0]) is not SymbolicZero:
        exponent = jnp.where(of_zero, jax.lax.stop_gradient(x2), x2)
        tangent += jnp.where(constant, 0, exponent * power(jnp.where(constant, 1, x1), exponent - 1)) * tangents[0]
    if type(tangents[1]) is not SymbolicZero:  # its slope is NaN for a negative x1
        constant |= of_zero
        tangent += jnp.where(constant, 0, y * jnp.log(jnp.where(constant, 1, x1))) * tangents[1]
    return y, tangent


power.defjvp(power_jvp, symbolic_zeros=True)


@jax.custom_jvp
def hypot(x1, x2):
    return jnp.hypot(x1, x2)


@hypot.defjvp
def hypot_jvp(primals, tangents):
    # jnp.hypot's gradient is not 0 at (0, 0), and its second derivative is wrong where x1 = x2 or x1 = -x2
    x1, x2 = primals
    y = hypot(x1, x2)
    flat = (y == 0) | jnp.isinf(y)
    length = jnp.where(flat, 1, y)
    return y, jnp.where(flat, 0, x1 / length) * tangents[0] + jnp.where(flat, 0, x2 / length) * tangents[1]


@jax.custom_jvp
def arctan2(x1, x2):
    return jnp.arctan2(x1, x2)


def arctan2_jvp(primals, tangents):
    x1, x2 = primals
    origin = (x1 == 0) & (x2 == 0)  # where jnp.arctan2's gradient is NaN
    x1, x2, squares = jnp.where(origin, 0, x1), jnp.where(origin, 0, x2), jnp.where(origin, 1, x1 * x1 + x2 * x2)
    tangent = jnp.zeros_like(x1)
    if type(tangents[0]) is not SymbolicZero:
        tangent += x2 / squares * tangents[0]
    if type(tangents[1]) is not SymbolicZero:
        tangent -= x1 / squares * tangents[1]
    return arctan2(*primals), tangent


arctan2.defjvp(arctan2_jvp, symbolic_zeros=True)


@jax.custom_jvp
def rsqrt(x):
    return jax.lax.rsqrt(x)


@rsqrt.defjvp
def rsqrt_jvp(primals, tangents):
    y = rsqrt(*primals)
    return y, -0.5 * y * y * y * tangents[0]  # JAX divides by x instead: at -0.0 its gradient has the wrong sign


_power, _hypot, _arctan2, _rsqrt = (compiled(fn) for fn in (power, hypot, arctan2, rsqrt))
_maximum = ranked(jnp.maximum, jnp.greater)
_minimum = ranked(jnp.minimum, jnp.less)
