"""Pooling: the average or the largest entry in each window."""

from __future__ import annotations

import numpy as np

from multiop._values import windows as _windows

from .._record import array_of, is_traced, ops
from ..conversion import bool_to_int32, convert, floating, in_float32, reject_complex


def op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
    x = floating(inputs)
    layout = windows(x.shape, pool_size, strides, padding, data_format, ceil_mode)
    return in_float32(lambda x: averages(x, layout, count_include_pad), x)


def op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    for axis, *window in reversed(windows(x.shape, pool_size, strides, padding, data_format, ceil_mode)):
        inside = np.clip(places(x.shape[axis], *window), 0, x.shape[axis] - 1)  # the edge is in what extends beyond it
        x = largest(ops.take(x, inside, axis), axis)
    return x


def op_adaptive_average_pool(inputs, output_size, data_format):
    x = floating(inputs)
    axes, size = _windows.adaptive(x.shape, output_size, data_format)
    return in_float32(lambda x: in_bins(lambda x, axis: ops.mean(x, axis, False), x, axes, size), x)


def op_adaptive_max_pool(inputs, output_size, data_format):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    axes, size = _windows.adaptive(x.shape, output_size, data_format)
    return in_bins(largest, x, axes[::-1], size[::-1])


def averages(x, layout, count_include_pad):
    for axis, *window in layout:
        size, widths = x.shape[axis], np.zeros((x.ndim, 2), int)
        counts = np.array(_windows.counts(size, *window, count_include_pad), x.dtype)
        widths[axis] = np.add(window[2], (0, window[3]))
        padded = ops.pad(x, widths.tolist(), "constant", 0)
        sums = ops.sum(ops.take(padded, places(size, *window) + window[2][0], axis), axis, False)
        x = sums / counts.reshape(-1, *[1] * (x.ndim - axis - 1))
    return x


def windows(shape, *layout):
    """Return each axis that windows move along, with their size, stride, padding and overhang."""
    return list(zip(*_windows.pooling(shape, *layout), strict=True))


def places(size, window, stride, pads, overhang):
    """Return the indices of the entries in each window, also of those outside of `size` entries."""
    (number,) = _windows.numbers_of_windows([size], [window], [stride], [pads], [overhang])
    return _windows.positions(number, window, stride, 1) - pads[0]


def largest(x, axis):
    """Return the largest entries along an axis; of equal ones, the first in all axes has the gradient."""
    if not is_traced(x):
        return np.max(x, axis)
    first = np.argmax(array_of(x), axis, keepdims=True)
    return ops.squeeze(ops.take_along_axis(x, first, axis), axis)


def in_bins(reduce, x, axes, numbers):
    """Reduce the entries of each bin, one axis after the other."""
    for axis, number in zip(axes, numbers, strict=True):
        places, counts = _windows.bins(x.shape[axis], number)
        bins = [ops.take(x, places[:count, k], axis) for k, count in enumerate(counts)]
        x = ops.stack([reduce(entries, axis) for entries in bins], axis)
    return x
