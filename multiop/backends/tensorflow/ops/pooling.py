"""Pooling: the average or the largest entry in each window."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop._values import windows as _windows

from ..autodiff._programs import in_one_call
from ..conversion import (
    bool_to_int32,
    choose,
    convert,
    floating,
    in_float32,
    known_shape,
    op_shape,
    rank,
    reject_complex,
)
from .convolution import channels_last, larger, size, to_data_format


@in_one_call
def op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
    x = floating(inputs)
    _, *windows = _windows.pooling(op_shape(x), pool_size, strides, padding, data_format, ceil_mode, larger)
    native = not ceil_mode and (padding == "valid" or (padding == "same" and not count_include_pad))

    def average_windows(x):
        return average(x, *windows[:2], padding) if native else average_of_padded(x, *windows, count_include_pad)

    return to_data_format(average_in_wider_dtype(average_windows, channels_last(x, data_format)), data_format)


@in_one_call
def op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    axes, window, strides, pads, overhangs = _windows.pooling(
        op_shape(x), pool_size, strides, padding, data_format, ceil_mode, larger
    )
    native = isinstance(padding, str) and not ceil_mode
    if not native:
        for axis, (start, end), over in zip(axes, pads, overhangs, strict=True):
            x = with_edges(x, axis, start, end + over)
        padding = "valid"
    if len(axes) == 3 or x.shape[0] == 0 or not x.dtype.is_floating:
        return largest_along_axes(x, axes, window, strides, padding)
    x = channels_last(x, data_format)

    # the kernel ignores NaN, https://github.com/tensorflow/tensorflow/issues/2501, and an average does not
    spoilt = tf.math.is_nan(tf.nn.avg_pool(tf.stop_gradient(x), window, strides, padding.upper()))
    largest = tf.nn.max_pool(x, window, strides, padding.upper())
    return to_data_format(choose(spoilt, tf.constant(math.nan, x.dtype), largest), data_format)


def largest_along_axes(x, axes, window, strides, padding):
    """Take the largest entries along one axis after the other, where TensorFlow has no kernel."""
    for axis, k, stride in reversed(list(zip(axes, window, strides, strict=True))):
        if padding == "same":
            x = with_edges(x, axis, *_windows.same(size(x, axis), k, stride, larger))
        n = size(x, axis)
        last = (n - k) // stride * stride + 1
        x = elementwise_max([x[(*[slice(None)] * axis, slice(i, i + last, stride))] for i in range(k)])
    return x


@in_one_call
def op_adaptive_average_pool(inputs, output_size, data_format):
    x = floating(inputs)
    bins = _windows.adaptive(known_shape(x), output_size, data_format)[1]
    x = channels_last(x, data_format)
    known = None not in x.shape[1:-1]
    if known and not any(n % number for n, number in zip(x.shape[1:-1], bins, strict=True)):
        window = tuple(n // number for n, number in zip(x.shape[1:-1], bins, strict=True))
        y = average_in_wider_dtype(lambda x: average(x, window, window, "valid"), x)
    else:
        y = in_float32(lambda x: adaptive_average(x, bins), x)
    return to_data_format(y, data_format)


@in_one_call
def op_adaptive_max_pool(inputs, output_size, data_format):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    axes, bins = _windows.adaptive(known_shape(x), output_size, data_format)
    for axis, number in reversed(list(zip(axes, bins, strict=True))):
        x = elementwise_max([tf.gather(x, index, axis=axis) for index in _windows.bins(x.shape[axis], number)[0]])
    return x


def average(x, window, strides, padding):
    if len(window) == 3:  # TensorFlow only has a float32 kernel: average rows and columns, then the depth
        batch, depth, height, width, channels = op_shape(x)
        x = tf.reshape(x, [batch * depth, height, width, channels])
        x = tf.nn.avg_pool2d(x, window[1:], strides[1:], padding.upper())
        height, width = size(x, 1), size(x, 2)
        x = tf.reshape(x, [batch, depth, height * width, channels])
        x = tf.nn.avg_pool2d(x, (window[0], 1), (strides[0], 1), padding.upper())
        return tf.reshape(x, [batch, size(x, 1), height, width, channels])
    return tf.nn.avg_pool(x, window, strides, padding.upper())


def average_of_padded(x, window, strides, pads, overhangs, count_include_pad):
    sizes = op_shape(x)[1:-1]
    beyond = [(start, end + over) for (start, end), over in zip(pads, overhangs, strict=True)]
    y = average(tf.pad(x, [(0, 0), *beyond, (0, 0)]), window, strides, "valid")
    for axis, (start, end) in enumerate(pads):
        n, k, stride, over = sizes[axis], window[axis], strides[axis], overhangs[axis]
        first = tf.range(-start, n + end + over - k + 1, stride)
        low, high = (-start, n + end) if count_include_pad else (0, n)
        count = tf.minimum(first + k, high) - tf.maximum(first, low)
        y /= tf.reshape(tf.cast(count, y.dtype) / k, [-1, *[1] * (len(window) - axis)])
    return y


def with_edges(x, axis, start, end):
    """Repeat the edges, which are in the windows of a maximum that extend beyond them."""
    n = size(x, axis)
    return tf.gather(x, tf.clip_by_value(tf.range(-start, n + end), 0, n - 1), axis=axis)


def average_in_wider_dtype(average, x):
    """Call `average` on `x` in a dtype that TensorFlow has a kernel for and that does not overflow."""
    if x.dtype.is_complex:
        return tf.complex(average(tf.math.real(x)), average(tf.math.imag(x)))
    return in_float32(average, x)


def adaptive_average(x, bins):
    for axis, number in enumerate(bins, 1):
        indices, count = _windows.bins(x.shape[axis], number)
        shape = [-1 if dim == axis else 1 for dim in range(rank(x))]
        entries = [
            choose(tf.constant((i < count).reshape(shape)), tf.gather(x, index, axis=axis), tf.zeros([], x.dtype))
            for i, index in enumerate(indices)
        ]
        x = tf.add_n(entries) / tf.cast(count.reshape(shape), x.dtype)
    return x


def elementwise_max(entries):
    """Return the elementwise maximum of `entries`, the first one at ties; NaN is larger than anything else."""
    best, *later = entries
    for entry in later:
        is_larger = (entry > best) | tf.not_equal(entry, entry)  # not ~(entry <= best): see logical.negation
        best = choose(is_larger & tf.equal(best, best), entry, best)
    return best
