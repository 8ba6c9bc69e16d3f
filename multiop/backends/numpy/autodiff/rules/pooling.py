"""Derivatives of pooling, which gathers the entries of each window, one axis after the other, and reduces them."""

from __future__ import annotations

import numpy as np

from multiop._values import windows as _windows

from ..._record import array_of, ops
from ...ops.pooling import in_bins
from .formula import by_formula


@by_formula
def op_average_pool(x, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
    for axis, *window in windows(x.shape, pool_size, strides, padding, data_format, ceil_mode):
        size, widths = x.shape[axis], np.zeros((x.ndim, 2), int)
        counts = np.array(_windows.counts(size, *window, count_include_pad)).reshape(-1, *[1] * (x.ndim - axis - 1))
        widths[axis] = np.add(window[2], (0, window[3]))
        padded = ops.pad(x, widths.tolist(), "constant", 0)
        x = ops.sum(ops.take(padded, places(size, *window) + window[2][0], axis), axis, False) / counts
    return x


@by_formula
def op_max_pool(x, *layout):
    for axis, *window in reversed(windows(x.shape, *layout)):  # of equal entries, the first in all axes
        inside = np.clip(places(x.shape[axis], *window), 0, x.shape[axis] - 1)  # the edge is in what extends beyond it
        x = largest(ops.take(x, inside, axis), axis)
    return x


@by_formula
def op_adaptive_average_pool(x, output_size, data_format):
    axes, size = _windows.adaptive(x.shape, output_size, data_format)
    return in_bins(lambda x, axis: ops.mean(x, axis, False), x, axes, size)


@by_formula
def op_adaptive_max_pool(x, output_size, data_format):
    axes, size = _windows.adaptive(x.shape, output_size, data_format)
    return in_bins(largest, x, axes[::-1], size[::-1])


def windows(shape, *layout):
    """Return each axis that windows move along, with their size, stride, padding and overhang."""
    return list(zip(*_windows.pooling(shape, *layout), strict=True))


def places(size, window, stride, pads, overhang):
    """Return the indices of the entries in each window, also of those outside of `size` entries."""
    (number,) = _windows.numbers_of_windows([size], [window], [stride], [pads], [overhang])
    return _windows.positions(number, window, stride, 1) - pads[0]


def largest(x, axis):
    """Return the largest entries along an axis; of equal ones, the first has the gradient."""
    first = np.argmax(array_of(x), axis, keepdims=True)
    return ops.squeeze(ops.take_along_axis(x, first, axis), axis)
