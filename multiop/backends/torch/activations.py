"""Activations of neural networks."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional

from multiop import _args

from ._fused import of_finite, of_finite_result, with_formula
from ._internals import (
    FEW,
    has_no_nan,
    is_finite,
    is_forward_mode,
    is_plain,
    is_readable,
    is_tracked,
    is_within,
    of_no_nan,
)
from .conversion import convert, floating, in_comparable_dtype, is_float, is_float_along
from .elementwise import bool_to_int32, in_float32, keep_nan_gradient, reject_complex


def op_relu(x):
    if is_float(x):
        y = of_no_nan(torch.relu, x)
        return keep_nan_gradient(torch.relu(x)) if y is None else y
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return torch.relu(x) if x.dtype not in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else x


def op_sigmoid(x):
    return torch.sigmoid(floating(x))


def op_softplus(x):
    (x,) = reject_complex(floating(x))
    return torch.nn.functional.softplus(x, threshold=40.0)  # at the default of 20, float64 would lose digits


def op_softmax(x, axis):
    if is_float_along(x, axis):
        return torch.softmax(x, axis)
    (x,) = reject_complex(floating(x))
    return torch.softmax(x, _args.single_axis(axis, x.ndim))


def op_log_softmax(x, axis):
    if not is_float_along(x, axis):
        (x,) = reject_complex(floating(x))
        axis = _args.single_axis(axis, x.ndim)
    if x.dtype is torch.float16 and x.is_cpu:  # the kernel rounds the sum to float16, which may overflow
        return torch.log_softmax(x, axis, dtype=torch.float32).to(x.dtype)
    return torch.log_softmax(x, axis)


def op_relu6(x):
    if is_float(x):
        y = of_no_nan(functional.relu6, x)
        return keep_nan_gradient(functional.relu6(x)) if y is None else y
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return in_comparable_dtype(lambda x: torch.clamp(x, 0, 6), x)


def op_leaky_relu(x, negative_slope):
    return functional.leaky_relu(*reject_complex(floating(x)), negative_slope)


def op_elu(x, alpha):
    return functional.elu(*reject_complex(floating(x)), alpha)


def op_celu(x, alpha):
    return functional.celu(*reject_complex(floating(x)), alpha)


def op_selu(x):
    return functional.selu(*reject_complex(floating(x)))


def op_silu(x):
    x = x if is_float(x) else reject_complex(floating(x))[0]
    if x.requires_grad or not is_plain():
        return functional.silu(x if is_finite(x) else replace_neg_inf(x))
    y = functional.silu(x)
    return y if has_no_nan(y) else functional.silu(replace_neg_inf(x))


def op_gelu(x, approximate):
    # functional.gelu computes 1 + erf(x), which has no correct digit below x = -5, and NaN for -inf
    return in_float32(gelu_tanh if approximate else gelu, *reject_complex(floating(x)))


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    axis = _args.halved_axis(axis, x.shape)

    def gated(x):
        if not is_forward_mode():
            return functional.glu(x, axis)
        x, gate = torch.chunk(x, 2, axis)  # functional.glu cannot differentiate forward mode
        return x * torch.sigmoid(gate)

    return in_float32(gated, x)  # functional.glu has no forward mode in 16 bits


def op_log_sigmoid(x):
    return functional.logsigmoid(*reject_complex(floating(x)))


def op_softsign(x):
    (x,) = reject_complex(floating(x))
    return of_finite(functional.softsign, softsign_gradient, softsign, x)


def softsign(x):
    size = 1 + x.abs()
    # for large x, the slope of the quotient would suffer from cancellation
    return torch.where(size < 2, torch.where(size < 2, x, 0) / size, torch.sign(x) * (1 - torch.reciprocal(size)))


def softsign_gradient(upstream, x):
    size = torch.abs(x).add_(1)
    return [torch.div(upstream, size).div_(size)]  # the square overflows in float16


def op_soft_shrink(x, threshold):
    return functional.softshrink(*reject_complex(floating(x)), threshold)


def op_hard_shrink(x, threshold):
    return functional.hardshrink(*reject_complex(floating(x)), threshold)


def op_tanh_shrink(x):
    return functional.tanhshrink(*reject_complex(floating(x)))


def op_threshold(x, threshold, default_value):
    return functional.threshold(*reject_complex(floating(x)), threshold, default_value)


def op_hard_sigmoid(x):
    (x,) = reject_complex(floating(x))
    if not is_tracked(x):
        return functional.hardsigmoid(x)
    return of_finite(functional.hardsigmoid, hard_sigmoid_gradient, hard_sigmoid, x)


def hard_sigmoid(x):
    return op_relu6(x + 3) / 6  # functional.hardsigmoid has no second derivative


def hard_sigmoid_gradient(upstream, x):
    # hardsigmoid_backward multiplies by 1/6 in float32
    return [torch.ops.aten.hardtanh_backward(upstream, x, -3.0, 3.0).div_(6)]


def op_hard_silu(x):
    (x,) = reject_complex(floating(x))
    return of_finite_result(functional.hardswish, hard_silu_gradient, hard_silu, x)  # the kernel multiplies by 6


def hard_silu(x):
    bent = torch.abs(x) < 3
    safe = torch.where(bent, x, 0)
    return torch.where(bent, functional.hardswish(safe), torch.where(x <= -3, 0, x))


def hard_silu_gradient(upstream, x):
    return [torch.ops.aten.hardswish_backward(upstream, x)]


def replace_neg_inf(x):
    """Replace -inf by the lowest finite number, so that a product with 0 is 0."""
    return torch.where(x == -math.inf, torch.finfo(x.dtype).min, x)


def clamp_to_40(x):
    """Clamp `x` to where a sigmoid or Gaussian still differs from its limit."""
    return torch.where(x < -40, -40, torch.where(x > 40, 40, x))


TAIL = -2.0  # below it, 1 + erf(x), which PyTorch's kernel computes, has lost more than four bits
FEW_THREADS = 4  # with more of them, PyTorch computes the exact form sooner than NumPy finds the tail


def gelu(x):
    if x.numel() < FEW or not is_readable(x):
        return of_finite(exact_gelu, gelu_gradient, gelu_in_steps, x)
    fixed = x.detach()
    total = torch.sum(fixed).item()
    if not math.isfinite(total):
        return gelu_in_steps(x)
    tail = few_below(x, TAIL)
    if tail is not None and not len(tail) and total < 1e9:  # the kernel's second derivative has a square
        return functional.gelu(x)
    if tail is None:
        return with_formula(exact_gelu(fixed), gelu_gradient, gelu_in_steps, x)
    y = functional.gelu(fixed)
    y.view(-1).index_copy_(0, tail, exact_gelu(fixed.view(-1).index_select(0, tail)))
    return with_formula(y, gelu_gradient_by_kernel, gelu_in_steps, x, residuals=[tail])


def gelu_in_steps(x):
    return 0.5 * replace_neg_inf(x) * torch.special.erfc(clamp_to_40(x) * -math.sqrt(0.5))


def few_below(x, bound):
    """Return where, in the flat `x`, the entries below `bound` are; `None` where those are not few, or slow to find."""
    if not x.is_contiguous() or torch.get_num_threads() > FEW_THREADS:
        return None
    is_below = x.detach().resolve_neg().view(-1).numpy() < bound  # PyTorch takes three times as long on one core
    if np.count_nonzero(is_below) > x.numel() // 8:
        return None
    return torch.from_numpy(is_below.nonzero()[0])


def exact_gelu(x):
    # in place: new memory costs more than the arithmetic
    return torch.mul(x, -math.sqrt(0.5)).erfc_().mul_(x).mul_(0.5)


def gelu_gradient(upstream, x):
    slope = torch.mul(x, -math.sqrt(0.5)).erfc_()
    density = torch.square(x).mul_(-0.5).exp_()
    return [slope.addcmul_(x, density, value=math.sqrt(2 / math.pi)).mul_(0.5).mul_(upstream)]


def gelu_gradient_by_kernel(upstream, x, tail):
    gradient = torch.ops.aten.gelu_backward(upstream, x)
    x, upstream = (one.reshape(-1).index_select(0, tail) for one in (x, upstream))
    gradient.view(-1).index_copy_(0, tail, gelu_gradient(upstream, x)[0])
    return [gradient]


LINEAR, CUBIC = 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi) * 0.044715


def gelu_tanh(x):
    if x.requires_grad or not is_plain():
        if not is_within(x, 1e4):
            return gelu_tanh_in_steps(x)
        weight = gelu_tanh_weight(x.detach())
        return with_formula(weight * x.detach(), gelu_tanh_gradient, gelu_tanh_in_steps, x, residuals=[weight])
    y = gelu_tanh_weight(x).mul_(x)
    return y if has_no_nan(y) else gelu_tanh_in_steps(x)


def gelu_tanh_in_steps(x):
    u = clamp_to_40(x)
    return replace_neg_inf(x) * torch.sigmoid(LINEAR * u + CUBIC * u * u * u)


def gelu_tanh_weight(x):
    # written as a sigmoid, (1 + tanh(u)) / 2 keeps its digits where it is small
    return torch.square(x).mul_(CUBIC).add_(LINEAR).mul_(x).sigmoid_()


def gelu_tanh_gradient(upstream, x, weight):
    slope = torch.square(x).mul_(3 * CUBIC).add_(LINEAR).mul_(x)
    torch.addcmul(slope, slope, weight, value=-1, out=slope)
    return [slope.add_(1).mul_(weight).mul_(upstream)]
