"""Pooling: the average or the largest entry in each window."""

from __future__ import annotations

import torch
from torch.nn import functional

from multiop import _windows

from ._internals import is_tracked
from .conversion import convert, floating, in_comparable_dtype
from .convolution import channels_first, to_data_format
from .elementwise import bool_to_int32, keep_nan_gradient, reject_complex

_AVERAGE = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}
_ADAPTIVE_AVERAGE = {
    1: functional.adaptive_avg_pool1d,
    2: functional.adaptive_avg_pool2d,
    3: functional.adaptive_avg_pool3d,
}
_MAX = {2: functional.max_pool2d, 3: functional.max_pool3d}
_ADAPTIVE_MAX = {
    1: functional.adaptive_max_pool1d,
    2: functional.adaptive_max_pool2d,
    3: functional.adaptive_max_pool3d,
}


def op_average_pool(inputs, pool_size, strides, padding, data_format):
    inputs = floating(inputs)
    _, size, strides = _windows.pooling(inputs.shape, pool_size, strides, padding, data_format)

    def average(x):
        return pool_with_padding(
            lambda x, pads: _AVERAGE[len(size)](x, size, strides, pads, padding == "same", False),
            x,
            size,
            strides,
            padding,
        )

    return to_data_format(average_in_wider_dtype(average, channels_first(inputs, data_format)), data_format)


def op_max_pool(inputs, pool_size, strides, padding, data_format):
    (inputs,) = reject_complex(*bool_to_int32(convert(inputs)))
    _, size, strides = _windows.pooling(inputs.shape, pool_size, strides, padding, data_format)

    def largest(x):
        return pool_with_padding(
            lambda x, pads: _MAX[len(pads)](x, size, strides, pads, ceil_mode=padding == "same"),
            x,
            size,
            strides,
            padding,
        )

    x = channels_first(keep_nan_gradient_if_tracked(inputs), data_format)
    if len(size) == 1:  # PyTorch has no kernel for integers
        x, size, strides = x.unsqueeze(2), (1, *size), (1, *strides)
        return to_data_format(in_comparable_dtype(largest, x).squeeze(2), data_format)
    return to_data_format(in_comparable_dtype(largest, x), data_format)


def op_adaptive_average_pool(inputs, output_size, data_format):
    inputs = floating(inputs)
    size = _windows.spatial(output_size, len(_windows.axes(inputs.shape, data_format)), "output_size")
    x = channels_first(inputs, data_format)
    return to_data_format(average_in_wider_dtype(lambda x: _ADAPTIVE_AVERAGE[len(size)](x, size), x), data_format)


def op_adaptive_max_pool(inputs, output_size, data_format):
    (inputs,) = reject_complex(*bool_to_int32(convert(inputs)))
    size = _windows.spatial(output_size, len(_windows.axes(inputs.shape, data_format)), "output_size")
    x = channels_first(keep_nan_gradient_if_tracked(inputs), data_format)
    pool = _ADAPTIVE_MAX[len(size)] if x.is_floating_point() else adaptive_integer_max
    return to_data_format(in_comparable_dtype(lambda x: pool(x, size), x), data_format)


def keep_nan_gradient_if_tracked(x):
    return keep_nan_gradient(x) if x.is_floating_point() and is_tracked(x) else x


def adaptive_integer_max(x, size):
    """Take the maximum of each bin, one dimension after the other: PyTorch has no kernel for integers."""
    for dim, bins in enumerate(size, 2):
        n = x.shape[dim]
        start = torch.arange(bins, device=x.device) * n // bins
        last = (torch.arange(1, bins + 1, device=x.device) * n - 1) // bins
        places = torch.arange(max(((i + 1) * n - 1) // bins - i * n // bins for i in range(bins)) + 1, device=x.device)
        index = torch.minimum(start[:, None] + places, last[:, None])
        x = x.index_select(dim, index.reshape(-1)).unflatten(dim, tuple(index.shape)).amax(dim + 1)
    return x


def pool_with_padding(pool, x, size, strides, padding):
    """Call `pool`, which pads symmetrically and allows windows beyond the end, with TensorFlow's padding."""
    pads = _windows.same_pads(x.shape[2:], size, strides, padding)
    shifted = [stride == 1 and end > start for (start, end), stride in zip(pads, strides, strict=True)]
    y = pool(x, [end if shift else start for (start, end), shift in zip(pads, shifted, strict=True)])
    for dim, shift in enumerate(shifted, 2):
        y = y.narrow(dim, 1, y.shape[dim] - 1) if shift else y  # drop the extra first window
    return y


def average_in_wider_dtype(average, x):
    """Call `average` on `x` in a dtype that PyTorch has a kernel for and that does not overflow."""
    if x.is_complex():
        return torch.complex(average(x.real), average(x.imag))
    if x.dtype in (torch.float16, torch.bfloat16) and x.device.type == "cpu":
        return average(x.float()).to(x.dtype)
    return average(x)
