"""Activations of neural networks."""

from __future__ import annotations

import torch

from multiop import _args

from .conversion import convert, floating
from .elementwise import numbers, real


def op_relu(x):
    (x,) = real(*numbers(convert(x)))
    return torch.relu(x) if x.dtype not in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else x


def op_sigmoid(x):
    return torch.sigmoid(floating(x))


def op_softplus(x):
    (x,) = real(floating(x))
    return torch.nn.functional.softplus(x, threshold=40.0)  # at the default of 20, float64 would lose digits


def op_softmax(x, axis):
    (x,) = real(floating(x))
    return torch.softmax(x, _args.single_axis(axis, x.ndim))


def op_log_softmax(x, axis):
    (x,) = real(floating(x))
    return torch.log_softmax(x, _args.single_axis(axis, x.ndim))
