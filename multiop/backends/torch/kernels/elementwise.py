"""Elementwise functions by PyTorch's kernels, whose own derivatives lose digits, overflow, or are NaN somewhere."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional

from multiop._rules.powers import differentiate_power, differentiate_usual_power

from .._internals import is_tracked
from .._kernels import FEW, LONG, are_values, is_readable, keeping, run_fused
from ..conversion import are_floats, in_float32, is_float, promote, promote_floating
from ..ops.elementwise import Powers


def op_fmod(x1, x2, *, otherwise):
    if are_values(x1, x2):
        return torch.fmod(x1, x2)
    if not are_floats(x1, x2):
        return otherwise(x1, x2)
    return run_fused(keeping(torch.fmod), remainder_gradients, otherwise, *torch.broadcast_tensors(x1, x2))


def op_mod(x1, x2, *, otherwise):
    # torch.remainder's zero has the sign of the dividend
    return torch.remainder(x1, x2).copysign_(x2) if are_values(x1, x2) else otherwise(x1, x2)


def remainder_gradients(upstream, x1, x2, rest):
    if not x2.requires_grad:
        return upstream, None
    # torch.fmod is NaN where the quotient overflows
    rest = rest.masked_fill(torch.isnan(rest) & torch.isfinite(x1) & (x2 != 0), 0)
    return upstream, torch.sub(x1, rest).div_(x2).round_().mul_(upstream).neg_()


def op_power(x1, x2, *, otherwise):
    if are_values(x1, x2):
        return torch.pow(x1, x2)
    if type(x2) in (int, float):
        is_root = abs(x2) == 0.5 and is_float(x1) and x1.numel() >= FEW and is_readable(x1)
        return torch.pow(x1, x2) if is_root and bool(x1.detach().amin() > 0) else otherwise(x1, x2)
    numbers = promote(x1, x2)
    if not numbers[0].is_floating_point():
        return otherwise(x1, x2)
    x1, x2 = torch.broadcast_tensors(*numbers)
    return in_float32(lambda *xs: run_fused(keeping(torch.pow), power_gradients, otherwise, *xs), x1, x2)


def power_gradients(upstream, x1, x2, y):
    wanted = x1.requires_grad, x2.requires_grad
    slopes = differentiate_usual_power(Powers, x1, x2, y, wanted) if is_readable(x1) else None
    if slopes is None:
        slopes = [differentiate_power(Powers, x1, x2, 1 - k, k) if wanted[k] else None for k in range(2)]
    return [slope if slope is None else slope.mul_(upstream) for slope in slopes]


def op_fmax(x1, x2, *, otherwise):
    # of two zeros PyTorch takes the first one here, and the second in torch.maximum
    return torch.fmax(x2, x1) if are_values(x1, x2) else otherwise(x1, x2)


def op_fmin(x1, x2, *, otherwise):
    return torch.fmin(x2, x1) if are_values(x1, x2) else otherwise(x1, x2)


def op_expm1(x, *, otherwise):
    if not is_float(x):
        return otherwise(x)
    if not is_tracked(x):
        return torch.expm1(x)
    return run_fused(torch.expm1, lambda upstream, x: [torch.exp(x).mul_(upstream)], otherwise, x)


def op_arctan2(x1, x2, *, otherwise):
    if are_values(x1, x2):
        return torch.atan2(x1, x2)
    x1, x2 = promote_floating(x1, x2)
    if x1.is_complex():
        return otherwise(x1, x2)
    x1, x2 = torch.broadcast_tensors(x1, x2)
    return in_float32(lambda *xs: run_fused(torch.atan2, arctan2_gradients, otherwise, *xs), x1, x2)


def arctan2_gradients(upstream, x1, x2):
    scale, most = torch.maximum(torch.abs(x1), torch.abs(x2)), torch.finfo(x1.dtype).max
    scale.masked_fill_(scale == 0, 1)
    x1, x2 = x1.clamp(-most, most), x2.clamp(-most, most)  # of an infinite operand, the scale makes 0
    x1, x2 = x1 / scale, x2 / scale
    square = torch.square(x1).addcmul_(x2, x2)
    weight = (upstream / scale).div_(square.masked_fill_(square == 0, 1))
    return x2.mul_(weight), x1.mul_(weight).neg_()


def op_arcsinh(x, *, otherwise):
    if not is_float(x):
        return otherwise(x)
    if not is_tracked(x):
        return torch.asinh(x)
    return in_float32(lambda x: run_fused(torch.asinh, arcsinh_gradient, otherwise, x), x)


def arcsinh_gradient(upstream, x):
    return [torch.div(upstream, torch.hypot(x, x.new_ones(())))]


def op_arccosh(x, *, otherwise):
    if not is_float(x):
        return otherwise(x)
    if not is_tracked(x):
        return torch.acosh(x)
    return in_float32(lambda x: run_fused(torch.acosh, arccosh_gradient, otherwise, x), x)


def arccosh_gradient(upstream, x):
    return [torch.div(upstream, torch.sqrt(x - 1)).div_(torch.sqrt(x + 1))]


def op_hypot(x1, x2, *, otherwise):
    if are_values(x1, x2):
        return torch.hypot(x1, x2)
    x1, x2 = promote_floating(x1, x2)
    if x1.is_complex():
        return otherwise(x1, x2)
    x1, x2 = torch.broadcast_tensors(x1, x2)
    return in_float32(lambda *xs: run_fused(torch.hypot, hypot_gradients, otherwise, *xs), x1, x2)


def hypot_gradients(upstream, x1, x2):
    y, info = torch.hypot(x1, x2), torch.finfo(x1.dtype)
    zero = y == 0
    y.clamp_(info.smallest_normal, info.max)  # quotients by this have all digits, and are 2 at most where finite
    x1, x2 = (x1 / y).clamp_(-2, 2), (x2 / y).clamp_(-2, 2)
    upstream = upstream.masked_fill(zero, 0).div_(torch.hypot(x1, x2).masked_fill_(zero, 1))  # it may be infinite
    return x1.mul_(upstream), x2.mul_(upstream)


def size_gradient(upstream, x):
    return [torch.complex(*hypot_gradients(upstream, x.real, x.imag))]


def op_abs(x, *, otherwise):
    if is_float(x):
        return torch.abs(x)
    if not isinstance(x, torch.Tensor) or not x.is_complex() or not is_tracked(x):
        return otherwise(x)
    return run_fused(torch.abs, size_gradient, otherwise, x)


def op_logaddexp(x1, x2, *, otherwise):
    return log_add_powers(torch.logaddexp, 1.0, x1, x2, otherwise)


def op_logaddexp2(x1, x2, *, otherwise):
    return log_add_powers(torch.logaddexp2, math.log(2), x1, x2, otherwise)


def log_add_powers(kernel, base, x1, x2, otherwise):
    """Return the logarithm of the sum of two powers; `base` is the natural logarithm of the base."""
    if are_values(x1, x2):
        return kernel(x1, x2)
    x1, x2 = promote_floating(x1, x2)
    if x1.dtype not in LONG:
        return otherwise(x1, x2)

    def share(upstream, x1, x2):
        above = (x1 - x2) * base
        return torch.sigmoid(above).mul_(upstream), torch.sigmoid(-above).mul_(upstream)

    return run_fused(kernel, share, otherwise, *torch.broadcast_tensors(x1, x2))


def op_angle(x, *, otherwise):
    if are_values(x, x) and x.numel() > FEW:  # torch.angle(-0.0) is 0; the bound of NaN is NaN
        quarter = math.pi / 2
        return torch.clamp(x, 0, 0).add_(quarter).sub_(torch.copysign(x.new_full((), quarter), x))
    is_value = isinstance(x, torch.Tensor) and x.is_complex() and not is_tracked(x)
    return torch.angle(x) if is_value else otherwise(x)


def op_sinc(x, *, otherwise):
    if not are_values(x, x):
        return otherwise(x)
    if x.dtype is torch.float32 and x.numel() <= FEW:  # what is below this in float64 stands for the 0 of an integer
        return functional.hardshrink(torch.sinc(x.double()), 1e-12).float()
    whole = torch.round(x)  # the sine is exact in the remainder
    wave = torch.sub(x, whole).mul_(math.pi).sin_().mul_(torch.remainder(whole, 2).mul_(-2).add_(1))
    return wave.div_(x * math.pi).masked_fill_(x == 0, 1)


def op_sign(x, *, otherwise):
    if not (type(x) is torch.Tensor and are_values(x, x)):
        return otherwise(x)
    y = torch.sign(x)
    return torch.clamp(x, y, y, out=y).add_(0.0)  # NaN stays what it is between any bounds, as -0 does between zeros


def op_heaviside(x1, x2, *, otherwise):
    if not are_values(x1, x2):
        return otherwise(x1, x2)
    return torch.where(torch.isnan(x1), x1, torch.heaviside(x1, x2))


def op_ldexp(x1, x2, *, otherwise):
    are_taken = are_values(x1, x1) and isinstance(x2, torch.Tensor) and x2.dtype in (torch.int32, torch.int64)
    if not (are_taken and is_readable(x1) and is_readable(x2) and max(x1.numel(), x2.numel()) <= FEW):
        return otherwise(x1, x2)
    with np.errstate(all="ignore"):  # one call of NumPy takes less time than several of PyTorch
        return torch.from_numpy(np.asarray(np.ldexp(x1.numpy(force=True), x2.numpy(force=True))))
