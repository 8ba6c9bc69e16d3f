"""Convolution, and its windows."""

from __future__ import annotations

import math

import numpy as np

from multiop import errors
from multiop._values import windows as _windows

from .._record import ops
from ..conversion import bool_to_int32, convert, in_float32, promote
from .elementwise import op_add


def op_conv(inputs, kernel, bias, strides, padding, data_format, dilation_rate):
    inputs, kernel = bool_to_int32(*promote(inputs, kernel))
    _, strides, rates = _windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    x = channels_last(inputs, data_format)
    groups = _windows.groups(x.shape[-1], kernel.shape)
    pads = _windows.pads(x.shape[1:-1], _windows.spans(kernel.shape[:-2], rates), strides, padding)
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    y = in_float32(lambda x, kernel: convolve(x, kernel, strides, rates, groups), x, kernel)
    return to_data_format(y if bias is None else op_add(y, bias), data_format)


def op_conv_transpose(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
    inputs, kernel = bool_to_int32(*promote(inputs, kernel))
    _, strides, rates = _windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    x = channels_last(inputs, data_format)
    groups = _windows.transposed_groups(x.shape[-1], kernel.shape, groups)
    spans = _windows.spans(kernel.shape[:-2], rates)
    crops = _windows.crops(x.shape[1:-1], spans, strides, padding, output_padding, rates)
    y = in_float32(lambda x, kernel: spread(x, kernel, strides, rates, groups), x, kernel)
    y = np.pad(y, [(0, 0), *[(0, max(-end, 0)) for _, end in crops], (0, 0)])
    inside = [slice(start, size - max(end, 0)) for (start, end), size in zip(crops, y.shape[1:], strict=False)]
    return to_data_format(y[:, *inside], data_format)


def op_unfold(x, kernel_size, dilation, padding, stride):
    x = convert(x)
    if x.ndim != 4:
        raise errors.ArgumentError(f"x must have 4 dimensions, not {x.ndim}")
    kernel, rates, pads, steps, number = _windows.blocks(x.shape[2:], kernel_size, dilation, padding, stride)
    view = windows(np.pad(x, [(0, 0), (0, 0), *[(pad, pad) for pad in pads]]), (2, 3), kernel, steps, rates)
    return np.moveaxis(view, (4, 5), (2, 3)).reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(number))


def op_fold(x, output_size, kernel_size, dilation, padding, stride):
    (x,) = bool_to_int32(convert(x))
    output_size = _windows.spatial(output_size, 2, "output_size")
    kernel, rates, pads, steps, number = _windows.blocks(output_size, kernel_size, dilation, padding, stride)
    _windows.check_fold(x.shape, kernel, number)
    blocks = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), *kernel, *number)
    y = in_float32(lambda blocks: add_blocks(blocks, output_size, pads, steps, rates), blocks)
    return y[:, :, pads[0] : pads[0] + output_size[0], pads[1] : pads[1] + output_size[1]]


def windows(x, axes, sizes, strides, rates):
    """Return the entries under each window in new last dimensions, one for each of `axes`."""
    view = np.lib.stride_tricks.sliding_window_view(x, _windows.spans(sizes, rates), axes)
    steps = dict(zip(axes, strides, strict=True))
    return view[*(slice(None, None, steps.get(axis)) for axis in range(x.ndim)), *(slice(None, None, r) for r in rates)]


def convolve(x, kernel, strides, rates, groups):
    n = len(strides)
    view = windows(x, range(1, n + 1), kernel.shape[:n], strides, rates)
    inner = range(n + 1, 2 * n + 2), (n, *range(n))  # channels, and the entries under the window
    parts = zip(np.split(view, groups, n + 1), np.split(kernel, groups, -1), strict=True)
    return np.concatenate([np.tensordot(*part, inner) for part in parts], -1)


def spread(x, kernel, strides, rates, groups):
    """Add the kernel, times an entry of `x`, at each of its places."""
    spans = _windows.spans(kernel.shape[:-2], rates)
    sizes = [(size - 1) * step + span for size, step, span in zip(x.shape[1:], strides, spans, strict=False)]
    y = np.zeros((x.shape[0], *sizes, kernel.shape[-2] * groups), x.dtype)
    parts = list(zip(np.split(x, groups, -1), np.split(kernel, groups, -1), strict=True))
    for place in np.ndindex(kernel.shape[:-2]):
        terms = [np.tensordot(one, weights[place], (-1, -1)) for one, weights in parts]
        y[:, *entry_slices(place, x.shape[1:-1], strides, rates)] += np.concatenate(terms, -1)
    return y


def add_blocks(blocks, size, pads, steps, rates):
    """Add each block of `(batch, channels, *kernel, *number)` at its place."""
    y = np.zeros((*blocks.shape[:2], *(n + 2 * pad for n, pad in zip(size, pads, strict=True))), blocks.dtype)
    for place in np.ndindex(blocks.shape[2:4]):
        y[:, :, *entry_slices(place, blocks.shape[4:], steps, rates)] += blocks[:, :, *place]
    return y


def entry_slices(place, numbers, strides, rates):
    """Return, for each dimension, where the entry at `place` of each window is."""
    every = zip(place, numbers, strides, rates, strict=True)
    return [slice(k * rate, k * rate + (number - 1) * step + 1, step) for k, number, step, rate in every]


def channels_last(x, data_format):
    return x if data_format == "channels_last" else ops.moveaxis(x, 1, -1)


def to_data_format(y, data_format):
    """Return `y`, whose channels come last, in the requested layout."""
    return y if data_format == "channels_last" else ops.moveaxis(y, -1, 1)
