"""Elementwise arithmetic and functions."""

from __future__ import annotations

import functools
import math
import operator

import torch
from torch.compiler import is_dynamo_compiling
from torch.nn import functional

from multiop import errors
from multiop._rules.powers import differentiate_power
from multiop._values import host

from .._internals import VERSION, apply_directly, forward_mode_enabled, is_exporting, is_tracked, without_tangent
from .._slopes import with_slopes
from ..conversion import (
    FLOATING,
    bool_to_int32,
    choose,
    convert,
    directly,
    dtype_name,
    floating,
    in_comparable_dtype,
    in_float32,
    in_wider_dtype,
    is_exact_scalar,
    is_float,
    not_bool,
    promote,
    promote_all,
    promote_floating,
    reject_complex,
    reject_uint64,
    together,
)
from ..devices import is_at_hand
from . import _complex

_NUMBERS = (int, float)
CLAMPS_WITH_SLOPE = VERSION < (2, 14)  # whether the gradient of torch.clamp is 1 at its bounds, as that of op_clip

# PyTorch has few kernels for uint16, uint32 and uint64: `in_wider_dtype` computes them in a wider dtype.


@directly(torch.add, numbers=_NUMBERS, converts=True)
def op_add(x1, x2):
    return in_wider_dtype(torch.add, *promote(x1, x2))


@directly(torch.sub, numbers=_NUMBERS, converts=True)
def op_subtract(x1, x2):
    if is_exact_scalar(x2, x1):
        return torch.rsub(x2, x1)
    return in_wider_dtype(torch.sub, *not_bool(*promote(x1, x2)))


@directly(torch.mul, numbers=(float,), converts=True)
def op_multiply(x1, x2):
    if is_exact_scalar(x1, x2):
        return torch.mul(x1, float(x2))  # PyTorch's compiler takes NaN times the int 0 for 0
    return in_wider_dtype(torch.mul, *promote(x1, x2))


@directly(torch.div, converts=True)
def op_divide(x1, x2):
    return torch.true_divide(*promote_floating(x1, x2))


def op_floor_divide(x1, x2):
    # torch.floor_divide has no derivative; this is the same function with a derivative of zero
    return checked_divide(lambda x1, x2: torch.div(x1, x2, rounding_mode="floor"), x1, x2)


def op_mod(x1, x2):
    return checked_divide(floored_remainder, x1, x2)


def op_power(x1, x2):
    if type(x2) in (int, float) and abs(x2) < 2**24 and isinstance(x1, torch.Tensor) and x1.is_floating_point():
        # of 0.5 itself, PyTorch would take the square root, which differs at -inf and -0.0
        return torch.pow(x1, torch.scalar_tensor(x2, dtype=x1.dtype, device="cpu") if abs(x2) == 0.5 else x2)
    n = int(x2) if type(x2) in (int, float) and abs(x2) <= 16 and x2 == int(x2) else None
    given, (x1, x2) = x2, bool_to_int32(*promote(x1, x2))
    if x1.is_complex():
        return _complex.power_by_multiplication(x1, n) if n is not None else _complex.power(x1, x2)
    if not x1.is_floating_point():
        return integer_power(x1, x2, given)
    return in_float32(float_power, *torch.broadcast_tensors(x1, x2))


@directly(torch.neg, FLOATING)
def op_negative(x):
    return in_wider_dtype(torch.neg, *not_bool(convert(x)))


@directly(torch.reciprocal)
def op_reciprocal(x):
    return torch.reciprocal(floating(x))


def op_sign(x):
    (x,) = not_bool(convert(x))
    if x.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return (x != 0).type(x.dtype)
    if x.is_complex():
        unit = torch.where(torch.maximum(x.real.abs(), x.imag.abs()) > 1, 0.25, 2.0**60).type(x.real.dtype)
        return torch.sgn(torch.complex(x.real * unit, x.imag * unit))  # the length of `x` may leave the range
    # torch.sign(NaN) is 0, and the bound of NaN is NaN
    return torch.sign(x).add_(torch.clamp(x.detach(), 0, 0)) if x.is_floating_point() else torch.sign(x)


def op_abs(x):
    x = x if is_float(x) else convert(x)
    if x.is_complex() and is_tracked(x):  # the gradient of torch.abs is 0 where the value overflows
        return op_hypot(x.real, x.imag)
    return torch.abs(x) if x.is_complex() or (x.dtype.is_signed and x.dtype is not torch.bool) else x


@directly(torch.square, FLOATING)
def op_square(x):
    return in_wider_dtype(torch.square, *bool_to_int32(convert(x)))


@directly(torch.sqrt)
def op_sqrt(x):
    return torch.sqrt(floating(x))


@directly(torch.rsqrt)
def op_rsqrt(x):
    return torch.rsqrt(floating(x))


@directly(torch.exp)
def op_exp(x):
    return torch.exp(floating(x))


def op_exp2(x):
    x = floating(x)
    if not is_tracked(x):
        return torch.exp2(x)
    return _Exp2.apply(x, 0) if is_dynamo_compiling() else apply_directly(_Exp2InBothModes, x, 0)


def op_expm1(x):
    x = floating(x)
    # torch.expm1's derivative is expm1(x) + 1, which loses digits
    if x.is_complex():
        low = x.real < -1
        return torch.where(low, torch.exp(torch.where(low, x, -1)) - 1, torch.expm1(x))
    return expm1(x)


@directly(torch.log)
def op_log(x):
    return torch.log(floating(x))


def op_log2(x):
    return logarithm(torch.log2, floating(x))


def op_log10(x):
    return logarithm(torch.log10, floating(x))


@directly(torch.log1p)
def op_log1p(x):
    return torch.log1p(floating(x))


@directly(torch.maximum, FLOATING)
def op_maximum(x1, x2):
    return in_comparable_dtype(torch.maximum, *reject_complex(*promote(x1, x2)))


@directly(torch.minimum, FLOATING)
def op_minimum(x1, x2):
    return in_comparable_dtype(torch.minimum, *reject_complex(*promote(x1, x2)))


def op_clip(x, x_min, x_max):
    if is_float(x) and are_bounds(x.dtype, x_min, x_max):
        return clamp(x, x_min, x_max)
    # torch.clamp has the gradient 0.5 at a bound that is a tensor
    bounds = [bound for bound in (x_min, x_max) if bound is not None]
    x, *bounds = reject_complex(*promote_all(x, *bounds))
    if x_min is not None:
        x = choose(in_comparable_dtype(torch.ge, x, bounds[0]) | (x != x), x, bounds[0])
    if x_max is not None:
        x = choose(in_comparable_dtype(torch.le, x, bounds[-1]) | (x != x), x, bounds[-1])
    return x


def op_round(x, decimals):
    (x,) = bool_to_int32(convert(x))
    if x.is_complex():
        return torch.complex(op_round(x.real, decimals), op_round(x.imag, decimals))
    if x.is_floating_point():
        return in_float32(lambda x: round_decimals(x, decimals), x) if decimals else torch.round(x)
    if decimals >= 0:
        return x
    if 10**-decimals > torch.iinfo(x.dtype).max:
        return torch.zeros_like(x)
    if x.dtype is torch.uint64:
        return rounded_uint64(x, 10**-decimals)
    return in_wider_dtype(lambda x: rounded_integer(x, 10**-decimals), x)


def op_floor(x):
    (x,) = reject_complex(convert(x))
    return torch.floor(x) if x.is_floating_point() else x


def op_ceil(x):
    (x,) = reject_complex(convert(x))
    return torch.ceil(x) if x.is_floating_point() else x


def op_trunc(x):
    (x,) = reject_complex(convert(x))
    return torch.trunc(x) if x.is_floating_point() else x


@directly(torch.sin)
def op_sin(x):
    return torch.sin(floating(x))


@directly(torch.cos)
def op_cos(x):
    return torch.cos(floating(x))


def op_tan(x):
    x = floating(x)
    return _complex.tan(x) if x.is_complex() and is_tracked(x) else torch.tan(x)


def op_arcsin(x):
    x = floating(x)
    return _complex.arcsin(x) if x.is_complex() and is_tracked(x) else torch.asin(x)


def op_arccos(x):
    x = floating(x)
    return _complex.arccos(x) if x.is_complex() and is_tracked(x) else torch.acos(x)


def op_arctan(x):
    x = floating(x)
    if x.is_complex() and is_tracked(x):
        return _complex.arctan(x)
    return in_float32(torch.atan, x) if x.dtype is torch.float16 and is_tracked(x) else torch.atan(x)


def op_arctan2(x1, x2):
    x1, x2 = reject_complex(*promote_floating(x1, x2))
    return in_float32(arctan2, *torch.broadcast_tensors(x1, x2))


def op_sinh(x):
    return hyperbolic(torch.sinh, torch.sign, floating(x))


def op_cosh(x):
    return hyperbolic(torch.cosh, torch.ones_like, floating(x))


@directly(torch.tanh, FLOATING)
def op_tanh(x):
    x = floating(x)
    return _complex.tanh(x) if x.is_complex() and is_tracked(x) else torch.tanh(x)


def op_arcsinh(x):
    x = floating(x)
    if x.is_complex():
        return _complex.arcsinh(x) if is_tracked(x) else torch.asinh(x)
    return in_float32(arcsinh, x)


def op_arccosh(x):
    x = floating(x)
    if x.is_complex():
        return _complex.arccosh(x) if is_tracked(x) else torch.acosh(x)
    return in_float32(arccosh, x)


def op_arctanh(x):
    x = floating(x)
    return _complex.arctanh(x) if x.is_complex() and is_tracked(x) else torch.atanh(x)


def op_hypot(x1, x2):
    x1, x2 = reject_complex(*promote_floating(x1, x2))
    return hypot(*torch.broadcast_tensors(x1, x2))


def op_real(x):
    x = convert(x)
    return torch.real(x) if x.is_complex() else x


def op_imag(x):
    x = convert(x)
    return torch.imag(x) if x.is_complex() else torch.zeros_like(x)


@directly(torch.conj_physical, {torch.complex64, torch.complex128})
def op_conj(x):
    return torch.conj_physical(x) if (x := convert(x)).is_complex() else x


def op_divide_no_nan(x1, x2):
    x1, x2 = promote_floating(x1, x2)
    zero = x2 == 0
    return torch.where(zero, 0, x1 / torch.where(zero, 1, x2))


def op_logaddexp(x1, x2):
    return log_add(*reject_complex(*promote_floating(x1, x2)), 1.0)


def op_logaddexp2(x1, x2):
    return log_add(*reject_complex(*promote_floating(x1, x2)), math.log(2))


def op_nan_to_num(x, nan, posinf, neginf):
    x = convert(x)
    if x.is_complex():  # torch.nan_to_num's derivative only accepts real numbers
        return torch.complex(*(torch.nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag)))
    return torch.nan_to_num(x, nan, posinf, neginf)


def op_cbrt(x):
    return in_float32(cbrt, *reject_complex(floating(x)))


def op_fmod(x1, x2):
    return checked_divide(truncated_remainder, x1, x2)


def op_heaviside(x1, x2):
    x1, x2 = reject_complex(*promote_floating(x1, x2))
    return torch.where(x1 == 0, x2, (op_sign(x1) + 1) / 2)


def op_ldexp(x1, x2):
    x1, x2 = map(convert, together(x1, x2))
    (x1,) = reject_complex(floating(x1))
    if x2.is_floating_point() or x2.is_complex():
        raise errors.DTypeError(f"x2: {dtype_name(x2)} is not accepted: give integers")
    return scale_in_steps(x1, x2) if x1.dtype is torch.float64 else scale_in_steps(x1.float(), x2).type(x1.dtype)


def op_nextafter(x1, x2):
    x1, x2 = reject_complex(*promote_floating(x1, x2))
    if not is_tracked(x1, x2):
        return torch.nextafter(x1, x2)
    next_to = _Next if is_dynamo_compiling() else _NextInBothModes
    return next_to.apply(*torch.broadcast_tensors(x1, x2))


class _Next(torch.autograd.Function):
    """torch.nextafter: its own derivative is new, missing in 16 bits, and goes to x2 where the operands are equal."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x1, x2):
        return torch.nextafter(x1, x2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, upstream):
        return upstream, torch.zeros_like(upstream)


class _NextInBothModes(_Next):
    """The same with forward mode, which torch.compile refuses to trace."""

    @staticmethod
    def jvp(ctx, t1, t2):
        return t1.clone()


class _Exp2(torch.autograd.Function):
    """A derivative of torch.exp2, which has a larger range than the function."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, order):
        if not order:
            return torch.exp2(x)
        half = torch.exp2(x * 0.5)
        return half * math.log(2) ** order * half

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.order = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, upstream):
        return upstream * _Exp2.apply(ctx.saved_tensors[0], ctx.order + 1).conj(), None


class _Exp2InBothModes(_Exp2):
    """The same with forward mode, which torch.compile refuses to trace."""

    @staticmethod
    def backward(ctx, upstream):
        return upstream * _Exp2InBothModes.apply(ctx.saved_tensors[0], ctx.order + 1).conj(), None

    @staticmethod
    def jvp(ctx, tangent, _):
        with forward_mode_enabled(True):  # autograd turned it off, also for outer levels
            return tangent * _Exp2InBothModes.apply(without_tangent(ctx.saved_tensors[0]), ctx.order + 1)


class _Power(torch.autograd.Function):
    """A derivative of torch.pow, whose own are NaN at 0, and infinite where only the value is."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x1, x2, n, m):
        if not n and not m:
            return torch.pow(x1, x2)
        return differentiate_power(Powers, x1, x2, n, m)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x1, x2, ctx.n, ctx.m = inputs
        ctx.set_materialize_grads(False)  # 0 times a slope that is infinite would be NaN
        ctx.save_for_backward(x1, x2)
        ctx.save_for_forward(x1, x2)

    @classmethod
    def changes(cls, ctx, xs, tangents):
        slopes = cls.apply(*xs, ctx.n + 1, ctx.m), cls.apply(*xs, ctx.n, ctx.m + 1)
        return [None if t is None else t * slope for t, slope in zip(tangents, slopes, strict=True)]

    @staticmethod
    def backward(ctx, upstream):
        return *_Power.changes(ctx, ctx.saved_tensors, (upstream, upstream)), None, None


class _PowerInBothModes(_Power):
    """The same with forward mode, which torch.compile refuses to trace."""

    @staticmethod
    def backward(ctx, upstream):
        return *_PowerInBothModes.changes(ctx, ctx.saved_tensors, (upstream, upstream)), None, None

    @staticmethod
    def jvp(ctx, t1, t2, *_):
        with forward_mode_enabled(True):  # autograd turned it off, also for outer levels
            xs = [without_tangent(x) for x in ctx.saved_tensors]
            return sum(change for change in _PowerInBothModes.changes(ctx, xs, (t1, t2)) if change is not None)


class Powers:
    """What the derivatives of powers are made of."""

    where, power, log, isinf, finfo = map(staticmethod, (torch.where, torch.pow, torch.log, torch.isinf, torch.finfo))


def op_polar(abs_, angle):
    abs_, angle = reject_complex(*promote_floating(abs_, angle))
    if abs_.dtype is not torch.float64:
        abs_, angle = abs_.float(), angle.float()
    return torch.complex(abs_ * torch.cos(angle), abs_ * torch.sin(angle))


# operands


def are_bounds(dtype, low, high):
    """Say whether `torch.clamp` takes these bounds: numbers within the dtype, or one of them `None`."""
    if low is None or high is None:
        return low is not high and are_bounds(dtype, high if low is None else low, high if low is None else low)
    most = torch.finfo(dtype).max
    return type(low) in _NUMBERS and type(high) in _NUMBERS and -most <= low <= most and -most <= high <= most


def clamp(x, low, high):
    """Clamp `x` to numbers or `None`, with the gradient 1 at a bound."""
    if CLAMPS_WITH_SLOPE:
        return torch.clamp(x, low, high)
    x = x if low is None else raise_to(x, low)
    return x if high is None else torch.neg(raise_to(torch.neg(x), -high))


def raise_to(x, bound):
    """Return the maximum of `x` and a number, with the gradient 1 at a tie."""
    bound = torch.tensor(bound, dtype=x.dtype)
    return torch.threshold(x, torch.nextafter(bound, bound.new_tensor(-math.inf)).item(), bound.item())


def expm1(x):
    return torch.where(x < 0, functional.elu(x), torch.expm1(x))


def logarithm(fn, x):
    """Return `fn(x)`, a logarithm, whose derivative in float16 divides by a product that overflows."""
    return in_float32(fn, x) if x.dtype is torch.float16 and is_tracked(x) else fn(x)


def checked_divide(divide, x1, x2):
    """Divide; an integer division by 0 raises, or returns 0 if only the compiled program knows the divisor."""
    given, (x1, x2) = x2, reject_complex(*bool_to_int32(*promote(x1, x2)))
    if x1.is_floating_point():
        return divide(x1, x2)
    reject_uint64(x1)
    if x1.is_cpu and x1.numel() and is_at_hand(x2):
        try:
            return in_wider_dtype(divide, x1, x2)
        except RuntimeError:  # the divisor is 0, or the shapes do not fit
            pass
    zero = x2 == 0
    is_known = is_at_hand(zero)
    if bool(zero.any()) if is_known else host.any_integer(lambda n: n == 0, given):
        raise errors.ArgumentError("x2: an integer cannot be divided by 0")
    if is_known:
        return in_wider_dtype(divide, x1, x2)
    return in_wider_dtype(lambda x1, x2: torch.where(zero, 0, divide(x1, torch.where(zero, 1, x2))), x1, x2)


def floored_remainder(x1, x2):
    """Do the same as torch.remainder, whose zero has the sign of the dividend, and in NumPy that of the divisor."""
    if not x1.is_floating_point():
        return torch.remainder(x1, x2)
    sign = x2.detach().sign()
    return sign * (torch.remainder(sign * x1, x2.abs()) + 0.0)


def truncated_remainder(x1, x2):
    """Do the same as torch.fmod, whose gradient in `x2` rounds the quotient before truncating it."""
    if not x1.is_floating_point():
        return torch.fmod(x1, x2)
    sign = torch.where(torch.signbit(x1.detach()), -1.0, 1.0).type(x1.dtype)
    return sign * torch.remainder(sign * x1, x2.abs())


def integer_power(x1, x2, given):
    """Raise integers to a power; a negative power raises, or returns 0 if only the compiled program knows it."""
    if not x2.dtype.is_signed:
        return in_wider_dtype(torch.pow, x1, x2)
    negative = x2 < 0
    is_known = is_at_hand(negative)
    if bool(negative.any()) if is_known else host.any_integer(lambda n: n < 0, given):
        raise errors.ArgumentError("x2: an integer has no negative power; cast one of them to a float first")
    if is_known:
        return torch.pow(x1, x2)
    return torch.where(negative, 0, torch.pow(x1, torch.where(negative, 0, x2)))


def round_decimals(x, decimals):
    scale, level = host.power_of_10(-decimals), torch.round(x)  # its derivative is 0
    x = x.detach()
    if decimals > 0:  # too large to have these decimals: unchanged
        scales = host.decimal_scales(decimals, x.dtype.itemsize)
        large = functools.reduce(operator.mul, scales, x)
        y = torch.round(large) if scales else x
        for scale in scales:  # by a number, a GPU would multiply with a rounded 1 / scale
            y = y / x.new_full((), scale)
        y = torch.where(torch.isfinite(large), y, x)
    elif scale <= torch.finfo(x.dtype).max:
        y = torch.round(x / scale) * scale
    else:
        y = torch.where(torch.isfinite(x), torch.round(x / scale), x)
    return torch.where(torch.isfinite(x), y - (level.detach() - level), level)  # a sum would lose the sign of -0.0


def rounded_integer(x, unit):
    below = torch.div(x, unit, rounding_mode="floor")
    rest = x - below * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (below % 2 == 1))
    return (below + up.type(x.dtype)) * unit


def rounded_uint64(x, unit):
    """Round in the bits of `int64`, which PyTorch can divide; `unit` is even."""
    bits, half = x.view(torch.int64), unit // 2
    below = (torch.bitwise_right_shift(bits, 1) & _LARGEST) // half
    unit = unit if unit <= _LARGEST else unit - 2**64
    rest = (bits - below * unit) ^ ~_LARGEST  # compares as the unsigned number does
    half -= 2**63
    up = (rest > half) | ((rest == half) & (below % 2 == 1))
    return ((below + up) * unit).view(torch.uint64)


_LARGEST = 2**63 - 1


def float_power(x1, x2):
    if not is_tracked(x1, x2):
        return torch.pow(x1, x2)
    return _Power.apply(x1, x2, 0, 0) if is_dynamo_compiling() else apply_directly(_PowerInBothModes, x1, x2, 0, 0)


def arctan2(x1, x2):
    """Return `torch.atan2(x1, x2)`, whose gradient is NaN at the origin, and where squares overflow or underflow."""
    largest = torch.maximum(x1.detach().abs(), x2.detach().abs())
    flat = (largest == 0) | torch.isinf(largest)
    scale = torch.where(flat, 1, largest)  # a constant: it cancels out
    turned = torch.atan2(torch.where(flat, 1, x1) / scale, torch.where(flat, 1, x2) / scale)
    return torch.where(flat, torch.atan2(x1.detach(), x2.detach()), turned)


def cbrt_value(x):
    sign = torch.where(x < 0, -1, 1).type(x.dtype)
    normal = (x != 0) & torch.isfinite(x)
    safe = torch.where(normal, sign * torch.pow(x * sign, 1 / 3), 1)
    # 1 / 3 is rounded: one Newton step restores the lost digits; 0, inf and NaN are their own roots
    return torch.where(normal, (2 * safe + torch.where(normal, x, 1) / (safe * safe)) / 3, x)


cbrt_slope = with_slopes(
    lambda x: torch.reciprocal(3 * torch.square(cbrt_value(x))),
    lambda upstream, x: upstream * cbrt_slope(x) / (-1.5 * x),
    is_slope=True,
)
cbrt = with_slopes(cbrt_value, lambda upstream, x: upstream * cbrt_slope(x))


def cosine_value(x1, x2):
    # where the length overflows or underflows, its gradient is 0 or infinite unless it is computed in another unit
    far = torch.isinf(x1) | torch.isinf(x2)  # there, what is finite counts as 0
    x1, x2 = (torch.where(far, torch.where(torch.isinf(x), torch.sign(x), x * 0), x) for x in (x1, x2))
    largest = torch.maximum(x1.abs(), x2.abs())
    flat = largest == 0
    least = torch.finfo(x1.dtype).tiny ** 0.5
    unit = torch.ones_like(largest).masked_fill(largest > torch.finfo(x1.dtype).max / 2, 0.25)
    unit = unit.masked_fill(largest < least, 1 / least)
    return torch.where(flat, 0, x1 * unit / torch.where(flat, 1, torch.hypot(x1 * unit, x2 * unit)))


def curvature(x1, x2):
    """Return the sine over the length: in this order, nothing overflows, and no difference loses digits."""
    flat = ((x1 == 0) & (x2 == 0)) | torch.isinf(x1) | torch.isinf(x2)
    return torch.where(flat, 0, cosine(x2, x1) / torch.where(flat, 1, hypot(x1, x2)))


def along(upstream, x1, x2):
    """Return the gradient of a length in `x1`, also where it is 0 and the upstream gradient infinite."""
    return torch.where((x1 == 0) & (x2 == 0), 0, upstream) * cosine(x1, x2)


cosine = with_slopes(
    cosine_value,
    lambda upstream, x1, x2: upstream * cosine(x2, x1) * curvature(x1, x2),
    lambda upstream, x1, x2: -upstream * cosine(x1, x2) * curvature(x1, x2),
    is_slope=True,
)
hypot = with_slopes(torch.hypot, along, lambda upstream, x1, x2: along(upstream, x2, x1))


def hyperbolic(fn, sign, x):
    """Return `fn(x)`, a hyperbolic function: for long arrays, PyTorch's kernel overflows before the result does."""
    if x.is_complex():
        return fn(x)
    if x.dtype is not torch.float64 and not is_exporting():  # onnxruntime knows those of float32 alone
        return fn(x.double()).type(x.dtype)
    far = torch.abs(x.detach()) > 80
    ends = torch.exp(torch.where(far, torch.abs(x), 1) - 1) * (sign(x.detach()) * (math.e / 2))  # 1 less is exact
    return torch.where(far, ends, fn(torch.where(far, 0, x)))


def arcsinh(x):
    """Return `torch.asinh(x)`, with a slope that does not overflow under its square root."""
    far = torch.abs(x.detach()) > 2 * torch.finfo(x.dtype).eps ** -0.5
    line = torch.sign(x.detach()) * (torch.log(torch.abs(torch.where(far, x, 1))) + math.log(2))
    return torch.where(far, line, torch.asinh(torch.where(far, 1, x)))


def arccosh(x):
    """Return `torch.acosh(x)`, whose own slope loses digits close to 1, overflows, and is not NaN below -1."""
    return 2 * torch.asinh(torch.sqrt((x - 1) * 0.5))


def log_add(x1, x2, base):
    first = x1 >= x2
    larger, smaller = torch.where(first, x1, x2), torch.where(first, x2, x1)
    apart = torch.where((x1 == x2) & torch.isinf(x1), 0, smaller - larger)
    # torch.logaddexp's gradient is NaN at equal infinities, its second derivative also where operands are far apart
    return larger + torch.log1p(torch.exp(base * apart)) / base


def scale_in_steps(x, n):
    """Return `x * 2**n` in three steps, because 2**n may overflow where the product does not."""
    wide, shift, bias = (torch.int64, 52, 1023) if x.dtype is torch.float64 else (torch.int32, 23, 127)
    n = torch.clamp(n.type(x.dtype), -3 * bias, 3 * bias).type(wide)
    third = torch.div(n, 3, rounding_mode="trunc")
    for part in (third, third, n - 2 * third):
        # `<<` of a DTensor gives the DTensor: its name, __lshift__, ends as that of an operation in place does
        power = torch.bitwise_left_shift(torch.clamp(part, 1 - bias, bias) + bias, shift)
        x = x * power.view(x.dtype)
    return x
