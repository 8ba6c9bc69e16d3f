"""Elementwise arithmetic and functions."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from multiop import errors
from multiop._rules.powers import differentiate_power
from multiop._values import host

from ..autodiff._held import custom_jvp, one_step, with_slope
from ..conversion import (
    FLOATING,
    alike,
    are_floats,
    beyond_float16,
    bool_to_int32,
    comparable,
    convert,
    floating,
    hashable,
    in_float32,
    is_float,
    jit_inline,
    not_bool,
    promote,
    promote_all,
    promote_floating,
    reject_complex,
    with_constants,
)
from ..devices import is_at_hand
from . import _complex
from ._complex import is_complex


def op_add(x1, x2):
    return _add(*alike(x1, x2))


def op_subtract(x1, x2):
    return _subtract(*not_bool(*alike(x1, x2)))


def op_multiply(x1, x2):
    return _multiply(*alike(x1, x2))


def op_divide(x1, x2):
    if are_floats(x1, x2):
        return _divide(x1, x2)
    return _divide(*promote_floating(x1, x2))


def op_floor_divide(x1, x2):
    return checked_divide(_floor_divide, x1, x2, _floor_divide_integers)


def op_mod(x1, x2):
    return checked_divide(_remainder, x1, x2, jnp.remainder)


def op_power(x1, x2):
    if type(x2) is int and isinstance(x1, jax.Array) and jnp.issubdtype(x1.dtype, np.inexact):
        return _reciprocal(x1) if x2 == -1 else jax.lax.integer_pow(x1, x2)
    if type(x2) is float and abs(x2) <= 16 and isinstance(x1, jax.Array) and x1.dtype in FLOATING:
        return power_of_number(x2)(x1)
    given, (x1, x2) = x2, bool_to_int32(*promote(x1, x2))
    if jnp.issubdtype(x1.dtype, np.floating):
        return _power(x1, x2)
    return _complex.power(x1, x2) if is_complex(x1) else integer_power(x1, x2, given)


def op_negative(x):
    return jnp.negative(*not_bool(convert(x)))


def op_reciprocal(x):
    return _reciprocal(floating(x))


def op_sign(x):
    (x,) = not_bool(convert(x))
    if not jnp.issubdtype(x.dtype, np.complexfloating):
        return _sign(x)
    return _complex_sign(x)  # jnp.sign has no gradient


def op_abs(x):
    return _abs(convert(x))


def op_square(x):
    return _square(convert(x))


def op_sqrt(x):
    return _sqrt(floating(x))


def op_rsqrt(x):
    return _rsqrt(floating(x))


def op_exp(x):
    return _exp(floating(x))


def op_exp2(x):
    return _exp2(floating(x))


def op_expm1(x):
    return _expm1(floating(x))


def op_log(x):
    return _log(floating(x))


def op_log2(x):
    return _log2(floating(x))


def op_log10(x):
    return _log10(floating(x))


def op_log1p(x):
    return _log1p(floating(x))


def op_maximum(x1, x2):
    return _maximum(*comparable(x1, x2))


def op_minimum(x1, x2):
    return _minimum(*comparable(x1, x2))


def op_clip(x, x_min, x_max):
    if type(x_min) is type(x_max) is float and isinstance(x, jax.Array) and x.dtype in FLOATING:
        return _clip_between(x, x_min, x_max)
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = reject_complex(*promote_all(x, *bounds))
    return _clip(x, None if x_min is None else bounds[0], None if x_max is None else bounds[-1])


def op_round(x, decimals):
    if not decimals and is_float(x):
        return _round(x)
    (x,) = bool_to_int32(convert(x))
    if is_complex(x):
        return jax.lax.complex(op_round(jnp.real(x), decimals), op_round(jnp.imag(x), decimals))
    if jnp.issubdtype(x.dtype, np.floating):
        return _round_decimals(x, hashable(decimals)) if decimals else jnp.round(x)
    if decimals >= 0:
        return x
    if 10**-decimals > jnp.iinfo(x.dtype).max:
        return jnp.zeros_like(x)
    return rounded_integer(x, jnp.asarray(10**-decimals, x.dtype))


def op_floor(x):
    (x,) = reject_complex(convert(x))
    return jnp.floor(x) if jnp.issubdtype(x.dtype, np.floating) else x


def op_ceil(x):
    (x,) = reject_complex(convert(x))
    return jnp.ceil(x) if jnp.issubdtype(x.dtype, np.floating) else x


def op_trunc(x):
    (x,) = reject_complex(convert(x))
    return jnp.trunc(x) if jnp.issubdtype(x.dtype, np.floating) else x


def op_sin(x):
    return (_complex.sin if is_complex(x := floating(x)) else jnp.sin)(x)


def op_cos(x):
    return (_complex.cos if is_complex(x := floating(x)) else jnp.cos)(x)


def op_tan(x):
    return (_complex.tan if is_complex(x := floating(x)) else jnp.tan)(x)


def op_arcsin(x):
    return _arcsin(floating(x))


def op_arccos(x):
    return _arccos(floating(x))


def op_arctan(x):
    return _arctan(floating(x))


def op_arctan2(x1, x2):
    return _arctan2(*reject_complex(*promote_floating(x1, x2)))


def op_sinh(x):
    return _sinh(floating(x))


def op_cosh(x):
    return _cosh(floating(x))


def op_tanh(x):
    return _tanh(floating(x))


def op_arcsinh(x):
    return _arcsinh(floating(x))


def op_arccosh(x):
    return _arccosh(floating(x))


def op_arctanh(x):
    return _arctanh(floating(x))


def op_hypot(x1, x2):
    return _hypot(*reject_complex(*promote_floating(x1, x2)))


def op_real(x):
    return jnp.real(convert(x))


def op_imag(x):
    x = convert(x)
    return jnp.imag(x) if jnp.iscomplexobj(x) else jnp.zeros_like(x)  # jnp.imag forgets the devices of x


def op_conj(x):
    x = convert(x)
    return jnp.conj(x) if jnp.issubdtype(x.dtype, np.complexfloating) else x


def op_divide_no_nan(x1, x2):
    return _divide_no_nan(*promote_floating(x1, x2))


def op_logaddexp(x1, x2):
    return _logaddexp(*reject_complex(*promote_floating(x1, x2)))


def op_logaddexp2(x1, x2):
    return _logaddexp2(*reject_complex(*promote_floating(x1, x2)))


def op_nan_to_num(x, nan, posinf, neginf):
    return _nan_to_num(convert(x), nan, posinf, neginf)


def op_cbrt(x):
    return _cbrt(*reject_complex(floating(x)))


def op_fmod(x1, x2):
    return checked_divide(_fmod, x1, x2, jnp.fmod)


def op_heaviside(x1, x2):
    return _heaviside(*reject_complex(*promote_floating(x1, x2)))


def op_ldexp(x1, x2):
    (x1,), x2 = reject_complex(floating(x1)), convert(x2)
    if jnp.issubdtype(x2.dtype, np.inexact):
        raise errors.DTypeError(f"x2: {x2.dtype} is not accepted: give integers")
    return _scale_in_steps(x1, x2)


def op_nextafter(x1, x2):
    return _nextafter(*reject_complex(*promote_floating(x1, x2)))


def op_polar(abs_, angle):
    return _polar(*reject_complex(*promote_floating(abs_, angle)))


@jit_inline
def _abs(x):
    if is_complex(x):  # the derivative of jnp.abs is 0 where the value overflows
        return hypot(jnp.real(x), jnp.imag(x))
    return absolute(x) if jnp.issubdtype(x.dtype, np.floating) else jnp.abs(x)


@jit_inline
def _complex_sign(z):
    safe = jnp.where(z == 0, 1, z)  # by parts: the derivative of a complex quotient squares the divisor
    re, im = jnp.real(safe), jnp.imag(safe)
    unit = jnp.where(jnp.maximum(jnp.abs(re), jnp.abs(im)) > 1, 0.25, 2.0**60).astype(re.dtype)
    re, im = re * unit, im * unit  # the length of `z` may leave the range
    size = hypot(re, im)
    return jnp.where(z == 0, 0, jax.lax.complex(divide(re, size), divide(im, size)))


def clip(x, x_min, x_max):
    # jnp.clip halves the gradient at the bounds
    if x_min is not None:
        x = jnp.where((x >= x_min) | (x != x), x, x_min)
    if x_max is not None:
        x = jnp.where((x <= x_max) | (x != x), x, x_max)
    return x


def _number_like(x, number):
    return number.astype(x.dtype) if isinstance(number, jax.core.Tracer) else x.dtype.type(number)


_clip = jit_inline(clip)
_clip_between = with_constants(lambda x, low, high: clip(x, _number_like(x, low), _number_like(x, high)))


@jit_inline
def _divide_no_nan(x1, x2):
    zero = x2 == 0
    return jnp.where(zero, 0, divide(x1, jnp.where(zero, 1, x2)))


@functools.partial(jit_inline, static_argnums=1)
def _round_decimals(x, decimals):
    dtype, scale = x.dtype, host.power_of_10(-decimals)
    x = jax.lax.stop_gradient(x.astype(jnp.promote_types(dtype, np.float32)))
    scale = math.inf if scale > float(jnp.finfo(x.dtype).max) else scale

    def unit_of(scale):
        """Return `scale`, but no constant: XLA would multiply by its reciprocal, which may underflow."""
        return jnp.where(jnp.isnan(x), 1, np.asarray(scale).astype(x.dtype))

    if decimals > 0:  # too large to have these decimals: unchanged
        scales, large, y = host.decimal_scales(decimals, x.dtype.itemsize), x, x
        for scale in scales:
            large = large * unit_of(scale)
        for k, scale in enumerate(scales):  # XLA would divide by the product of two
            y = y * unit_of(1 / scale) if k else jnp.round(large) / unit_of(scale)
        return jnp.where(jnp.isfinite(large), y, x).astype(dtype)
    unit = unit_of(scale)
    small = jnp.round(x / unit)
    return (small * scale if scale < math.inf else jnp.where(jnp.isfinite(x), small, x)).astype(dtype)


@jit_inline
def _scale_in_steps(x, n):
    """Return `x * 2**n` in three steps, because 2**n may overflow where the product does not."""
    dtype = x.dtype
    x = x.astype(jnp.promote_types(dtype, np.float32))
    wide, shift, bias = (np.int64, 52, 1023) if x.dtype == np.float64 else (np.int32, 23, 127)
    n = jnp.clip(n.astype(x.dtype), -3 * bias, 3 * bias).astype(wide)
    third = jax.lax.div(n, jnp.full_like(n, 3))
    # XLA would multiply constant factors first, which overflows: make them depend on x
    third = third - jnp.isnan(x).astype(wide)
    for part in (third, third, n - 2 * third):
        x = x * jax.lax.bitcast_convert_type(jnp.clip(part, 1 - bias, bias) + bias << shift, x.dtype)
    return x.astype(dtype)


@jit_inline
def _polar(abs_, angle):
    wide = jnp.promote_types(abs_.dtype, np.float32)
    abs_, angle = abs_.astype(wide), angle.astype(wide)
    return jax.lax.complex(abs_ * jnp.cos(angle), abs_ * jnp.sin(angle))


# operands


def with_sum_of(n, fn, x):
    """Return `fn(x)`, which adds up `n` numbers of at most 1: in float16, the sum may overflow."""
    return beyond_float16(fn, x) if n > 65504 else fn(x)


def of_reals(op):
    """Compile an op of one tensor of real floats, and options, as one program."""
    program = with_constants(op)

    @functools.wraps(op)
    def call(x, *options):
        return program(x if is_float(x) else reject_complex(floating(x))[0], *options)

    return call


def rounded_integer(x, unit):
    below = x // unit
    rest = x - below * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (below % 2 == 1))
    return (below + up.astype(x.dtype)) * unit


def checked_divide(divide, x1, x2, divide_integers=None):
    """Divide; an integer division by 0 raises, or returns 0 if only the compiled program knows the divisor."""
    if are_floats(x1, x2):
        return divide(x1, x2)
    given, (x1, x2) = x2, reject_complex(*bool_to_int32(*promote(x1, x2)))
    if x1.dtype in FLOATING:
        return divide(x1, x2)
    divide = divide_integers or divide
    is_known = is_at_hand(x2)
    if not np.asarray(x2).all() if is_known else _any_known(lambda n: n == 0, given):
        raise errors.ArgumentError("x2: an integer cannot be divided by 0")
    if is_known:
        return divide(x1, x2)
    zero = x2 == 0
    return jnp.where(zero, 0, divide(x1, jnp.where(zero, 1, x2)))


def _any_known(test, x):
    """Say whether an integer of `x` passes a test, if a program that is traced knows it."""
    return host.any_integer(test, np.asarray(x) if isinstance(x, jax.Array) and is_at_hand(x) else x)


def _quotient_by_zero_too(x1, x2):
    y = jnp.floor_divide(x1, x2)
    return jnp.where(x2 == 0, x1 / x2, y) if jnp.issubdtype(x1.dtype, np.floating) else y


# up to JAX 0.9, jnp.floor_divide by 0 is NaN
_floor_divide_integers = jnp.floor_divide if jax.__version_info__ >= (0, 10) else jit_inline(_quotient_by_zero_too)


@jit_inline
def _floor_divide(x1, x2):
    x2 = divisor(x1, x2)
    y = _floor_divide_integers(x1, x2)
    return jnp.where(y == 0, jax.lax.stop_gradient(x1 / x2) * 0, y)  # JAX's 0 has no sign


def integer_power(x1, x2, given):
    """Raise integers to a power; a negative power raises, or returns 0 if only the compiled program knows it."""
    negative = x2 < 0
    is_known = is_at_hand(negative)
    if np.asarray(negative).any() if is_known else _any_known(lambda n: n < 0, given):
        raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
    if is_known:
        if not (isinstance(x2, jax.Array) or np.ndim(x2)):  # a known number takes few products
            return _integer_pow(x1, int(x2))
        return _integer_power(x1, x2)
    return jnp.where(negative, 0, _integer_power(x1, jnp.where(negative, 0, x2)))


def with_changes(fn, *changes, of_result=False):
    """Return `fn` of several operands, whose tangent is the sum of `change(tangent, *operands)` for each.

    The changes are given the result before the operands if they are `of_result`: it is then kept for the way back.
    """
    fn = custom_jvp(fn)

    def jvp(primals, tangents):
        y = fn(*primals)
        given = (y, *primals) if of_result else primals
        known = [(change, t) for change, t in zip(changes, tangents, strict=True) if type(t) is not SymbolicZero]
        return y, total(y, [change(tangent, *given) for change, tangent in known])

    fn.defjvp(jvp, symbolic_zeros=True)
    return fn


def total(y, tangents):
    """Return the sum of the tangents of the operands of `y`, with its shape."""
    return jnp.broadcast_to(functools.reduce(jnp.add, tangents), y.shape) if tangents else jnp.zeros_like(y)


@one_step
def remainder(x1, x2):
    """Do the same as jnp.remainder, whose zero has the sign of the dividend, and in NumPy that of the divisor."""
    y = jnp.remainder(x1, x2)
    return jnp.where(y == 0, jnp.copysign(y, x2), y)


def change_of_remainder(tangent, *operands):
    """Multiply by minus the exact quotient: JAX rounds the quotient first."""
    y, x1, x2 = map(jax.lax.stop_gradient, operands)
    return -jnp.round(x1 / x2 - y / x2) * tangent


def with_extremum_gradient(pairwise, beats):
    """Return `pairwise`; JAX multiplies by the share of an operand, 0 by an infinite upstream gradient too."""

    def share(tangent, x1, x2):
        return jnp.where(x1 == x2, 0.5 * tangent, jnp.where(beats(x1, x2), tangent, 0))

    chosen = with_changes(pairwise, one_step(share), one_step(lambda tangent, x1, x2: share(tangent, x2, x1)))
    return jit_inline(lambda x1, x2: (chosen if jnp.issubdtype(x1.dtype, np.floating) else pairwise)(x1, x2))


@functools.cache
def power_of_order(n, m):
    """Return the derivative of the power, `n` times in its base and `m` times in its exponent."""

    def value(x1, x2):
        dtype = x1.dtype
        wide = [x.astype(jnp.promote_types(dtype, np.float32)) for x in jnp.broadcast_arrays(x1, x2)]
        return differentiate_power(jnp, *wide, n, m).astype(dtype)

    return with_changes(
        value if n or m else jnp.power,
        one_step(lambda tangent, x1, x2: power_of_order(n + 1, m)(x1, x2) * tangent),
        one_step(lambda tangent, x1, x2: power_of_order(n, m + 1)(x1, x2) * tangent),
    )


@functools.lru_cache(256)
def power_of_number(y, factor=1.0):
    """Return `factor * x ** y` as a function of `x`; XLA has short ways for many a number."""
    whole = round(y / 2)  # a product of two powers leaves the range no sooner than its result

    def slope(x):
        wide = x.astype(jnp.promote_types(x.dtype, np.float32))
        near = wide if y.is_integer() else jnp.abs(wide)  # of -0.0, an odd power would turn the sign
        return (jax.lax.integer_pow(near, whole) * factor * jnp.power(wide, y - whole)).astype(x.dtype)

    value = slope if factor != 1 else lambda x: jnp.power(x, np.asarray(y, x.dtype))
    change = one_step(lambda tangent, x: power_of_number(y - 1, factor * y)(x) * tangent if y else 0 * tangent)
    return jit_inline(with_changes(value, change))


def log_add_powers(fn, base):
    """Return `fn`, jnp.logaddexp or jnp.logaddexp2, whose second derivative at a tie is wrong in a scan."""

    def change(tangent, x1, x2):
        wide = jnp.promote_types(x1.dtype, np.float32)
        return jax.nn.sigmoid(base * (x1 - x2).astype(wide)).astype(x1.dtype) * tangent

    return with_changes(fn, one_step(change), one_step(lambda tangent, x1, x2: change(tangent, x2, x1)))


def divisor(x1, x2):
    """Return `x2` for each entry of `x1`: of one divisor for many, XLA takes the reciprocal, which may be 0."""
    part = jnp.real(x1)
    return jnp.where(jnp.isnan(part) & jnp.isinf(part), 1, x2)  # never 1


@one_step
def over(tangent, x2):
    """Return `tangent / x2`: JAX squares `x2` in the derivatives of a quotient, and XLA in a quotient of quotients."""
    if is_complex(x2):
        return tangent * reciprocal(x2)
    unit = jnp.where(jnp.abs(x2) > 1 / jnp.finfo(x2.dtype).tiny, 0.25, 1).astype(x2.dtype)
    return tangent * unit * reciprocal(x2 * unit)  # elsewhere the reciprocal is subnormal, and becomes 0


quotient = with_changes(
    jnp.true_divide,
    lambda tangent, y, x1, x2: over(tangent, x2),
    one_step(lambda tangent, y, x1, x2: -y * over(tangent, x2)),
    of_result=True,
)


def divide(x1, x2):
    return quotient(x1, divisor(x1, x2))


absolute = with_slope(jnp.abs, jnp.sign)  # JAX's gradient at 0 is 1
# with the tangent first: the square may vanish where the product does not
reciprocal = with_changes(jnp.reciprocal, one_step(lambda tangent, y, x: -tangent * y * y), of_result=True)


def logarithm(fn, base=math.e, start=0):
    """Return `fn`, a logarithm of `start + x`; in 16 bits, the square in JAX's second derivative would overflow."""
    fn = custom_jvp(fn)

    @fn.defjvp
    def jvp(primals, tangents):
        x, tangent = (x.astype(jnp.promote_types(x.dtype, np.float32)) for x in (*primals, *tangents))
        x = x + start if start else x
        if base == 10:  # 1 / x would overflow in its square before the result does
            x = x * math.log(base)
        slope = reciprocal(x)  # the derivative of a quotient squares the divisor
        change = slope * (tangent / math.log(base) if base == 2 else tangent)
        return fn(*primals), change.astype(primals[0].dtype)

    return fn


def cosine_value(x1, x2):
    dtype = x1.dtype
    x1, x2 = (x.astype(jnp.promote_types(dtype, np.float32)) for x in (x1, x2))
    unit = jnp.where(jnp.isinf(jnp.hypot(x1, x2)), 0.25, 1).astype(x1.dtype)  # in which the length does not overflow
    far = jnp.isinf(x1) | jnp.isinf(x2)  # there, what is finite counts as 0
    x1, x2 = (jnp.where(far, jnp.where(jnp.isinf(x), jnp.sign(x), x * 0), x * unit) for x in (x1, x2))
    return _divide_no_nan(x1, jnp.hypot(x1, x2)).astype(dtype)


def curvature(x1, x2):
    """Return the sine over the length: in this order, nothing overflows, and no difference loses digits."""
    return _divide_no_nan(cosine(x2, x1), hypot(x1, x2))


# jnp.hypot's gradient is not 0 at (0, 0), and its second derivative is wrong where x1 = x2 or x1 = -x2
cosine = with_changes(
    cosine_value,
    one_step(lambda tangent, x1, x2: cosine(x2, x1) * curvature(x1, x2) * tangent),
    one_step(lambda tangent, x1, x2: -cosine(x1, x2) * curvature(x1, x2) * tangent),
)
hypot = with_changes(
    jnp.hypot,
    one_step(lambda tangent, x1, x2: jnp.where((x1 == 0) & (x2 == 0), 0, cosine(x1, x2) * tangent)),
    one_step(lambda tangent, x1, x2: jnp.where((x1 == 0) & (x2 == 0), 0, cosine(x2, x1) * tangent)),
)


@functools.cache
def exp2_of_order(n):
    """Return a derivative of exp2, which has a larger range than exp2."""

    def value(x):
        half = jnp.exp2(x.astype(jnp.promote_types(x.dtype, np.float32)) * 0.5)
        return (half * math.log(2) ** n * half).astype(x.dtype)

    def slope(x):
        return exp2_of_order(n + 1)(x)

    return with_slope(value if n else functools.partial(in_float32, jnp.exp2), slope)


# JAX's form of the slope has a second derivative that loses its digits near 0
slope_of_tanh = with_slope(lambda y: (1 - y) * (1 + y), lambda y: -2 * y)
tanh = with_changes(jnp.tanh, one_step(lambda tangent, y, x: slope_of_tanh(y) * tangent), of_result=True)


def arctan2_slopes(x1, x2):
    dtype = x1.dtype
    x1, x2 = (x.astype(jnp.promote_types(dtype, np.float32)) for x in (x1, x2))
    scale = jax.lax.stop_gradient(jnp.maximum(jnp.abs(x1), jnp.abs(x2)))
    flat = (scale == 0) | jnp.isinf(scale)  # there, jnp.arctan2's is NaN
    scale = jnp.where(flat, 1, scale)
    y, x = (over(jnp.where(flat, 1, side), scale) for side in (x1, x2))  # squares of the operands would overflow
    return tuple(jnp.where(flat, 0, over(side * reciprocal(y * y + x * x), scale)).astype(dtype) for side in (x, -y))


arctan2 = with_changes(
    jnp.arctan2,
    one_step(lambda tangent, x1, x2: arctan2_slopes(x1, x2)[0] * tangent),
    one_step(lambda tangent, x1, x2: arctan2_slopes(x1, x2)[1] * tangent),
)


def cbrt_value(x):
    root = jnp.cbrt(x)
    if x.dtype.itemsize == 2:
        return root
    normal = (x != 0) & jnp.isfinite(x)  # jnp.cbrt is a power: one Newton step restores the digits that it loses
    safe = jnp.where(normal, root, 1)
    return jnp.where(normal, (2 * safe + jnp.where(normal, x, 1) / (safe * safe)) / 3, root)


def arctan_slope_value(x):
    wide = x.astype(jnp.promote_types(x.dtype, np.float32))  # the square of a large float16 overflows
    return (1 / (1 + wide * wide)).astype(x.dtype)


# in this order, here and below, nothing vanishes before the result does
arctan_slope = with_changes(
    arctan_slope_value, one_step(lambda tangent, y, x: -2 * (x * y) * (tangent * y)), of_result=True
)


def unit_for(x):
    """Return the unit in which to square `x`: 1, or a tiny power of two where 1 vanishes beside the square."""
    half = jnp.finfo(x.dtype).maxexp // 2
    return jnp.where(jnp.abs(x) > 2.0 ** (half - 2), 2.0 ** -(half + 2), 1).astype(x.dtype)


def arcsinh_slope_value(x):
    unit = unit_for(x)
    return jax.lax.rsqrt(jnp.square(x * unit) + jnp.floor(unit)) * unit


def arccosh_slope_value(x):
    unit = unit_for(x)
    return jnp.where(x < 1, jnp.nan, jax.lax.rsqrt(((x - 1) * unit) * ((x + 1) * unit)) * unit)


arcsinh_slope, arccosh_slope = (
    with_changes(value, one_step(lambda tangent, y, x: -(tangent * y * y) * (x * y)), of_result=True)
    for value in (arcsinh_slope_value, arccosh_slope_value)
)


def log1p(x):  # up to 129 units off from -0.414 to -0.29 on a CPU: https://github.com/jax-ml/jax/issues/39707
    return jnp.where(x < -0.29, jnp.log(1 + x), jnp.log1p(x)) if x.dtype == np.float64 else jnp.log1p(x)


# of a sum of two quotients, the derivative near 0 would be a difference
arctanh_slope = with_slope(
    lambda x: 0.5 * (jnp.reciprocal(1 + x) + jnp.reciprocal(1 - x)), lambda x: 2 * x * jnp.square(arctanh_slope(x))
)
cbrt_slope = with_changes(
    lambda x: jnp.reciprocal(3 * jnp.square(cbrt_value(x))),
    one_step(lambda tangent, y, x: -tangent * y * reciprocal(1.5 * x)),
    of_result=True,
)
cbrt = with_slope(cbrt_value, cbrt_slope)
# JAX divides by x: at -0.0 the sign is wrong; the half in the middle, as the transposed product begins at the end
rsqrt = with_changes(jax.lax.rsqrt, one_step(lambda tangent, y, x: -tangent * y * (0.5 * y) * y), of_result=True)
expm1 = with_slope(jnp.expm1, jnp.exp)  # JAX computes expm1(x) + 1, which loses digits


def either(of_reals, of_complex):
    """Compile a function of real numbers, and the one of complex numbers, as one."""
    return jit_inline(lambda x: of_complex(x) if is_complex(x) else of_reals(x))


_sqrt, _log1p = either(jnp.sqrt, _complex.sqrt), either(logarithm(log1p, start=1), _complex.log1p)
_log, _log2, _log10 = (
    either(logarithm(fn, base), functools.partial(_complex.keep_digits, fn))
    for fn, base in ((jnp.log, math.e), (jnp.log2, 2), (jnp.log10, 10))
)
_exp2, _tanh = jit_inline(exp2_of_order(0)), either(tanh, _complex.tanh)
_sinh, _cosh = either(jnp.sinh, _complex.sinh), either(jnp.cosh, _complex.cosh)
_arcsin, _arccos = either(jnp.arcsin, _complex.arcsin), either(jnp.arccos, _complex.arccos)
_arctan = either(with_slope(jnp.arctan, arctan_slope), _complex.arctan)
_arcsinh = either(with_slope(jnp.arcsinh, arcsinh_slope), _complex.arcsinh)
_arccosh = either(with_slope(jnp.arccosh, arccosh_slope), _complex.arccosh)
# the second derivative of jnp.arctanh at -1 and 1 is NaN
_arctanh = either(with_slope(lambda x: 0.5 * (log1p(x) - log1p(-x)), arctanh_slope), _complex.arctanh)
_exp, _integer_power = map(jit_inline, (jnp.exp, jnp.power))
_integer_pow = jit_inline(jax.lax.integer_pow, static_argnums=1)
_add, _subtract, _multiply, _divide = map(jit_inline, (jnp.add, jnp.subtract, jnp.multiply, divide))
_logaddexp = jit_inline(log_add_powers(jnp.logaddexp, 1.0))
_logaddexp2 = jit_inline(log_add_powers(jnp.logaddexp2, math.log(2)))
_power, _hypot, _arctan2, _cbrt = map(jit_inline, (power_of_order(0, 0), hypot, arctan2, cbrt))
_reciprocal, _rsqrt, _expm1 = map(jit_inline, (reciprocal, rsqrt, expm1))
_round = jit_inline(jnp.round)
_square = jit_inline(lambda x: jnp.square(*bool_to_int32(x)))
_sign = jit_inline(lambda x: jnp.where(x == 0, 0, jnp.sign(x)))  # JAX's sign of -0.0 is -0.0
_heaviside = jit_inline(lambda x1, x2: jnp.where(x1 == 0, x2, (jnp.sign(x1) + 1) / 2))
_nan_to_num = with_constants(lambda x, nan, posinf, neginf: jnp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf))
no_change = lambda tangent, *_: tangent  # noqa: E731
_nextafter = jit_inline(with_changes(jnp.nextafter, no_change, lambda tangent, *_: jnp.zeros_like(tangent)))
_remainder, _fmod = (
    jit_inline(with_changes(rest, no_change, change_of_remainder, of_result=True)) for rest in (remainder, jnp.fmod)
)
_maximum = with_extremum_gradient(jnp.maximum, jnp.greater)
_minimum = with_extremum_gradient(jnp.minimum, jnp.less)
