"""Convolution, and its windows."""

from __future__ import annotations

import itertools
import math

import tensorflow as tf

from multiop import errors
from multiop._values import windows as _windows

from ..autodiff._programs import in_one_call
from ..conversion import are_floats, bool_to_int32, convert, in_float32_on_cpu, known_shape, op_shape, promote, rank
from .elementwise import op_add
from .products import product_of

_LAYOUT = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


@in_one_call
def op_conv(inputs, kernel, bias, strides, padding, data_format, dilation_rate):
    inputs, kernel = bool_to_int32(*promote(inputs, kernel))
    shapes = known_shape(inputs), known_shape(kernel)
    _, strides, dilation = _windows.convolution(*shapes, strides, data_format, dilation_rate)
    x = channels_last(inputs, data_format)
    if padding != "same":
        spans = _windows.spans(kernel.shape[:-2], dilation)
        pads = _windows.pads(known_shape(x)[1:-1], spans, strides, padding)
        if padding != "valid":
            x, padding = tf.pad(x, [(0, 0), *pads, (0, 0)]), "valid"
    y = to_data_format(run_convolution(x, kernel, strides, padding, dilation), data_format)
    if bias is None:
        return y
    if data_format == "channels_last" and are_floats(y, bias):
        return tf.raw_ops.BiasAdd(value=y, bias=bias)
    return op_add(y, tf.reshape(bias, _windows.along_channels(data_format, len(strides))))


@in_one_call
def op_conv_transpose(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
    inputs, kernel = bool_to_int32(*promote(inputs, kernel))
    shapes = known_shape(inputs), known_shape(kernel)
    axes, strides, dilation = _windows.convolution(*shapes, strides, data_format, dilation_rate)
    x, n = channels_last(inputs, data_format), len(axes)
    groups = _windows.transposed_groups(x.shape[-1], kernel.shape, groups)
    spans = _windows.spans(kernel.shape[:-2], dilation)
    crops = _windows.crops(known_shape(x)[1:-1], spans, strides, padding, output_padding, dilation)
    # where TensorFlow has no kernel or returns a wrong shape (see convolved), spread the inputs and convolve
    if not x.dtype.is_floating or max(dilation) > 1 or groups > 1 or x.shape[0] == 0:
        pads = [(span - 1 - start, span - 1 - end) for span, (start, end) in zip(spans, crops, strict=True)]
        x = tf.pad(insert_zeros(x, strides), [(0, 0), *[(max(low, 0), max(high, 0)) for low, high in pads], (0, 0)])
        x = x[(slice(None), *[slice(max(-low, 0), min(high, 0) or None) for low, high in pads])]
        *window, share, channels = kernel.shape
        flipped = tf.reshape(tf.reverse(kernel, range(n)), [*window, share, groups, channels // groups])
        flipped = tf.transpose(flipped, (*range(n), n + 2, n + 1, n))
        flipped = tf.reshape(flipped, [*window, channels // groups, groups * share])
        return to_data_format(run_convolution(x, flipped, (1,) * n, "valid", dilation), data_format)
    full = [
        (size(x, axis) - 1) * stride + span + max(-end, 0)
        for axis, stride, span, (_, end) in zip(range(1, n + 1), strides, spans, crops, strict=True)
    ]
    shape = [size(x, 0), *full, kernel.shape[-2]]
    convolve = lambda *xs: tf.nn.conv_transpose(*xs, shape, strides, "VALID", _LAYOUT[n])  # noqa: E731
    y = in_float32_on_cpu(convolve, x, kernel)
    kept = [slice(start, length - max(end, 0)) for length, (start, end) in zip(full, crops, strict=True)]
    return to_data_format(y[(slice(None), *kept)], data_format)


@in_one_call
def op_unfold(x, kernel_size, dilation, padding, stride):
    x = convert(x)
    if rank(x) != 4:
        raise errors.ArgumentError(f"x must have 4 dimensions, not {rank(x)}")
    kernel, rates, pads, steps, number = _windows.blocks(sizes(x), kernel_size, dilation, padding, stride)
    x = tf.pad(x, [(0, 0), (0, 0), *[(pad, pad) for pad in pads]])
    for i in (1, 0):
        x = tf.gather(x, _windows.positions(number[i], kernel[i], steps[i], rates[i]), axis=2 + i)
    # batch, channels, row positions and blocks, column positions and blocks
    x = tf.transpose(x, (0, 1, 2, 4, 3, 5))
    return tf.reshape(x, [size(x, 0), size(x, 1) * kernel[0] * kernel[1], number[0] * number[1]])


@in_one_call
def op_fold(x, output_size, kernel_size, dilation, padding, stride):
    (x,) = bool_to_int32(convert(x))
    output_size = _windows.spatial(output_size, 2, "output_size")
    kernel, rates, pads, steps, number = _windows.blocks(output_size, kernel_size, dilation, padding, stride)
    _windows.check_fold(known_shape(x), kernel, number)
    height, width = (length + 2 * pad for length, pad in zip(output_size, pads, strict=True))
    rows, columns = map(_windows.positions, number, kernel, steps, rates)
    place = (rows[:, None, :, None] * width + columns[None, :, None, :]).reshape(-1)
    shape = [size(x, 0), x.shape[1] // (kernel[0] * kernel[1])]
    x = tf.transpose(tf.reshape(x, [*shape, place.size]), (2, 0, 1))
    image = tf.transpose(tf.math.unsorted_segment_sum(x, place, height * width), (1, 2, 0))
    image = tf.reshape(image, [*shape, height, width])
    return image[:, :, pads[0] : height - pads[0], pads[1] : width - pads[1]]


def run_convolution(x, kernel, strides, padding, dilation):
    groups = _windows.groups(x.shape[-1], kernel.shape)
    if x.dtype.is_floating and max(strides) > 1 and max(dilation) > 1:
        return in_phases(x, kernel, strides, padding, dilation)
    one_each = groups > 1 and kernel.shape[-2] == 1 and len(strides) < 3 and len(set(strides)) == 1
    # TensorFlow gives an empty batch the shape of the inputs: https://github.com/tensorflow/tensorflow/pull/112639
    if x.dtype.is_floating and x.shape[0] != 0 and (groups == 1 or one_each):
        if one_each:
            y = depthwise(x, kernel, strides, padding, dilation)
        else:
            # tf.nn.convolution takes twice as long to start; on the CPU, only it has the gradient of a dilation
            convolve = tf.nn.conv2d if len(strides) == 2 and max(dilation) == 1 else tf.nn.convolution
            y = convolve(x, kernel, strides, padding.upper(), _LAYOUT[len(strides)], dilation)
        return y if x.shape[0] else tf.ensure_shape(y, y.shape)
    # TensorFlow has no kernel, or no gradient on the CPU: multiply the patch under each window
    return product_of(lambda x, kernel: convolve_groups(x, kernel, groups, strides, padding, dilation), x, kernel)


def in_phases(x, kernel, strides, padding, dilation):
    """Convolve with strides and dilation, which TensorFlow refuses, as a sum of convolutions without strides.

    Entries of the kernel whose distance times its dilation is a multiple of the stride all see every stride-th entry.
    """
    n, axes = len(strides), range(1, len(strides) + 1)
    spans = _windows.spans(kernel.shape[:-2], dilation)
    if padding == "same":
        x = tf.pad(x, [(0, 0), *_windows.pads(op_shape(x)[1:-1], spans, strides, padding, maximum=larger), (0, 0)])
    number = [(size(x, axis) - span) // stride + 1 for axis, span, stride in zip(axes, spans, strides, strict=True)]
    steps = [stride // math.gcd(stride, rate) for stride, rate in zip(strides, dilation, strict=True)]
    rates = [rate // math.gcd(stride, rate) for stride, rate in zip(strides, dilation, strict=True)]
    total = 0
    for first in itertools.product(*map(range, map(min, steps, kernel.shape))):
        part = kernel[tuple(slice(start, None, step) for start, step in zip(first, steps, strict=True))]
        reach = [m - 1 + (k - 1) * rate for m, k, rate in zip(number, part.shape, rates, strict=False)]
        seen = [
            slice(start * rate, start * rate + last * stride + 1, stride)
            for start, rate, last, stride in zip(first, dilation, reach, strides, strict=True)
        ]
        total = total + run_convolution(x[(slice(None), *seen)], part, (1,) * n, "valid", rates)
    return total


def depthwise(x, kernel, strides, padding, dilation):
    if len(strides) == 1:
        return tf.squeeze(depthwise(x[:, None], kernel[None], strides * 2, padding, (1, *dilation)), 1)
    kernel = tf.reshape(kernel, [*kernel.shape[:2], x.shape[-1], kernel.shape[-1] // x.shape[-1]])
    return tf.nn.depthwise_conv2d(x, kernel, (1, *strides, 1), padding.upper(), dilations=dilation)


def convolve_groups(x, kernel, groups, strides, padding, dilation):
    for i, (k, stride, rate) in enumerate(zip(kernel.shape, strides, dilation, strict=False)):
        axis, span = 1 + 2 * i, (k - 1) * rate + 1
        if padding == "same":
            pads = _windows.same(size(x, axis), span, stride, larger)
            x = tf.pad(x, [pads if dim == axis else (0, 0) for dim in range(rank(x))])
        start = tf.range((size(x, axis) - span) // stride + 1) * stride
        x = tf.gather(x, start[:, None] + tf.range(k) * rate, axis=axis)
    n = len(strides)
    x = tf.reshape(x, [*op_shape(x)[:-1], groups, kernel.shape[-2]])
    kernel = tf.reshape(kernel, [*kernel.shape[:-1], groups, kernel.shape[-1] // groups])
    places, blocks = "abc"[:n], "def"[:n]
    windows = "".join(block + place for block, place in zip(blocks, places, strict=True))
    y = tf.einsum(f"n{windows}gi,{places}igo->n{blocks}go", x, kernel)
    return tf.reshape(y, [*op_shape(y)[: n + 1], groups * kernel.shape[-1]])


def insert_zeros(x, strides):
    """Insert `stride - 1` zeros between neighbours along each spatial axis."""
    for axis, stride in enumerate(strides, 1):
        if stride > 1:
            shape = [size(x, dim) * (stride if dim == axis else 1) for dim in range(rank(x))]
            x = tf.expand_dims(x, axis + 1)
            x = tf.pad(x, [(0, stride - 1 if dim == axis + 1 else 0) for dim in range(rank(x))])
            x = tf.reshape(x, shape)
            x = x[(*[slice(None)] * axis, slice(None, 1 - stride))]
    return x


def size(x, axis):
    """Return the size of `x` along `axis`, as a tensor if it is known only at run time."""
    return tf.shape(x)[axis] if x.shape[axis] is None else x.shape[axis]


def sizes(x):
    """Return the spatial sizes of `x`, whose channels come first."""
    if None in x.shape[2:]:
        raise errors.ArgumentError("x must have a height and a width that are known")
    return x.shape[2:]


def larger(a, b):
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else tf.maximum(a, b)


def channels_last(x, data_format):
    # on the CPU, TensorFlow's kernels accept nothing else
    return x if data_format == "channels_last" else tf.transpose(x, (0, *range(2, rank(x)), 1))


def to_data_format(y, data_format):
    """Return `y`, whose channels come last, in the requested layout."""
    return y if data_format == "channels_last" else tf.transpose(y, (0, rank(y) - 1, *range(1, rank(y) - 1)))
