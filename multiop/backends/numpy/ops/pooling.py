"""Pooling: the average or the largest entry in each window."""

from __future__ import annotations

import numpy as np

from multiop._values import windows as _windows

from .._record import ops
from ..conversion import bool_to_int32, convert, floating, in_float32, reject_complex
from .convolution import windows
from .reduction import identity, mean


def op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
    x = floating(inputs)
    layout = _windows.pooling(x.shape, pool_size, strides, padding, data_format, ceil_mode)
    return in_float32(lambda x: averages(x, *layout, count_include_pad), x)


def op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    layout = _windows.pooling(x.shape, pool_size, strides, padding, data_format, ceil_mode)
    return np.max(padded_windows(x, *layout, identity(x)[0]), tuple(range(x.ndim, 2 * x.ndim - 2)))


def op_adaptive_average_pool(inputs, output_size, data_format):
    x = floating(inputs)
    axes, size = _windows.adaptive(x.shape, output_size, data_format)
    return in_float32(lambda x: in_bins(lambda x, axis: mean(x, (axis,), False), x, axes, size), x)


def op_adaptive_max_pool(inputs, output_size, data_format):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    return in_bins(np.max, x, *_windows.adaptive(x.shape, output_size, data_format))


def padded_windows(x, axes, size, strides, pads, overhangs, value):
    """Return the entries under each window in new last dimensions; those outside of `x` are `value`."""
    widths = [(0, 0)] * x.ndim
    for axis, (start, end), over in zip(axes, pads, overhangs, strict=True):
        widths[axis] = start, end + over
    return windows(np.pad(x, widths, constant_values=value), axes, size, strides, [1] * len(axes))


def averages(x, axes, size, strides, pads, overhangs, count_include_pad):
    y = np.sum(padded_windows(x, axes, size, strides, pads, overhangs, 0), tuple(range(x.ndim, x.ndim + len(axes))))
    for axis, *along in zip(axes, size, strides, pads, overhangs, strict=True):
        counts = np.array(_windows.counts(x.shape[axis], *along, count_include_pad), x.dtype)
        y = y / counts.reshape(-1, *[1] * (x.ndim - axis - 1))
    return y


def in_bins(reduce, x, axes, numbers):
    """Reduce the entries of each bin, one axis after the other."""
    for axis, number in zip(axes, numbers, strict=True):
        places, counts = _windows.bins(x.shape[axis], number)
        bins = [ops.take(x, places[:count, k], axis) for k, count in enumerate(counts)]
        x = ops.stack([reduce(entries, axis) for entries in bins], axis)
    return x
