"""Convolutions of the usual kind, whose padding needs no arithmetic."""

from __future__ import annotations

import torch

from .._kernels import is_plain
from ..conversion import are_autocast, are_floats


def op_conv(inputs, kernel, bias, strides, padding, data_format, dilation_rate, *, otherwise):
    given = inputs, kernel, bias, strides, padding, data_format, dilation_rate
    are_usual = type(padding) is str and type(strides) is int and type(dilation_rate) is int
    if not (
        are_usual
        and (padding, strides, dilation_rate, data_format) == ("same", 1, 1, "channels_first")
        and (are_floats(inputs, kernel) or are_autocast(inputs, kernel))
        and (bias is None or are_floats(kernel, bias) or are_autocast(inputs, kernel, bias))
        and kernel.ndim == inputs.ndim == 4
        and inputs.numel()
        and kernel.numel()
        and is_plain()
    ):
        return otherwise(*given)
    height, width, channels, out = kernel.shape
    if channels != inputs.shape[1] or out == 1 or not (height % 2 and width % 2):
        return otherwise(*given)
    return torch.conv2d(inputs, kernel.permute(3, 2, 0, 1), bias, 1, (height // 2, width // 2))
