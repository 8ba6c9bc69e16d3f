"""Activations of neural networks."""

from __future__ import annotations

import torch
from torch.nn import functional

from multiop._values import args

from .._internals import VERSION, is_forward_mode, silu
from ..conversion import (
    FLOATING,
    bool_to_int32,
    convert,
    directly,
    floating,
    in_comparable_dtype,
    in_float32,
    is_float,
    is_float_along,
    reject_complex,
)


@directly(torch.relu, FLOATING)
def op_relu(x):
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return torch.relu(x) if x.dtype not in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else x


@directly(torch.sigmoid)
def op_sigmoid(x):
    return torch.sigmoid(floating(x))


def op_softplus(x):
    # at the default threshold of 20, float64 would lose digits
    return functional.softplus(*reject_complex(floating(x)), threshold=40.0)


def op_softmax(x, axis):
    if is_float_along(x, axis):
        return torch.softmax(x, axis)
    (x,) = reject_complex(floating(x))
    return torch.softmax(x, args.single_axis(axis, x.ndim))


def op_log_softmax(x, axis):
    if not is_float_along(x, axis):
        (x,) = reject_complex(floating(x))
        axis = args.single_axis(axis, x.ndim)
    if x.dtype is torch.float16 and x.is_cpu:  # the kernel rounds the sum to float16, which may overflow
        return torch.log_softmax(x, axis, dtype=torch.float32).type(x.dtype)
    return torch.log_softmax(x, axis)


@directly(functional.relu6, FLOATING)
def op_relu6(x):
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


@directly(silu, FLOATING)
def op_silu(x):
    return functional.silu(*reject_complex(floating(x)))


def op_gelu(x, approximate):
    form = "tanh" if approximate else "none"
    (x,) = (x,) if is_float(x) else reject_complex(floating(x))
    if x.dtype is torch.float16:  # the second derivative of the kernel overflows
        return in_float32(lambda x: functional.gelu(x, approximate=form), x)
    return functional.gelu(x, approximate=form)


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    axis = args.halved_axis(axis, x.shape)
    if not is_forward_mode():
        return functional.glu(x, axis)
    x, gate = torch.chunk(x, 2, axis)  # functional.glu has no forward mode in 16 bits, nor a derivative of it
    return x * torch.sigmoid(gate)


def op_log_sigmoid(x):
    return functional.logsigmoid(*reject_complex(floating(x)))


def op_softsign(x):
    return functional.softsign(*reject_complex(floating(x)))


def op_soft_shrink(x, threshold):
    return functional.softshrink(*reject_complex(floating(x)), threshold)


def op_hard_shrink(x, threshold):
    return functional.hardshrink(*reject_complex(floating(x)), threshold)


def op_tanh_shrink(x):
    return functional.tanhshrink(*reject_complex(floating(x)))


def op_threshold(x, threshold, default_value):
    return functional.threshold(*reject_complex(floating(x)), threshold, default_value)


def op_hard_sigmoid(x):
    return functional.relu6(reject_complex(floating(x))[0] + 3) / 6  # functional.hardsigmoid has no second derivative


def op_hard_silu(x):
    (x,) = reject_complex(floating(x))
    if VERSION >= (2, 8):
        return functional.hardswish(x)
    # its gradient at the bounds was that of the parabola: https://github.com/pytorch/pytorch/issues/147801
    return torch.where(x.abs() < 3, functional.hardswish(x), functional.relu(x))
