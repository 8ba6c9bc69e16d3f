"""Derivatives of convolution: that of the inputs is a transposed convolution, and the other way round."""

from __future__ import annotations

import math

import numpy as np

from multiop._values import windows

from ..._record import ops
from ...conversion import convert
from ...ops.convolution import channels_last, entry_slices, to_data_format


def op_conv(u, inputs, kernel, bias, strides, padding, data_format, dilation_rate):
    inputs, kernel = convert(inputs), convert(kernel)
    axes, strides, rates = windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    sizes, spans = [inputs.shape[axis] for axis in axes], windows.spans(kernel.shape[:-2], rates)
    pads = windows.pads(sizes, spans, strides, padding)
    left = [(n + sum(pad) - s) % step for n, pad, s, step in zip(sizes, pads, spans, strides, strict=True)]
    groups = inputs.shape[-1 if data_format == "channels_last" else 1] // kernel.shape[-2]
    return (
        ops.conv_transpose(u, np.conj(kernel), strides, pads, left, data_format, rates, groups),
        of_kernel(
            channels_last(inputs, data_format), channels_last(u, data_format), kernel.shape, strides, pads, rates
        ),
        channels_last(u, data_format),
    )


def op_conv_transpose(u, inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
    inputs, kernel = convert(inputs), convert(kernel)
    axes, strides, rates = windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    spans = windows.spans(kernel.shape[:-2], rates)
    crops = windows.crops([inputs.shape[axis] for axis in axes], spans, strides, padding, output_padding, rates)
    pads = [(start, max(end, 0)) for start, end in crops]
    x, y = channels_last(inputs, data_format), channels_last(u, data_format)
    grad = ops.conv(y, np.conj(kernel), None, strides, pads, "channels_last", rates)
    grad = grad[:, *(slice(size) for size in x.shape[1:-1])]  # without windows in zeros that were appended
    return (
        to_data_format(grad, data_format),
        np.conj(of_kernel(y, x, kernel.shape, strides, pads, rates)),
    )


def of_kernel(x, u, shape, strides, pads, rates):
    """Return the gradient of the kernel of a convolution of `x`: for each of its places, a product of matrices."""
    x, number = ops.pad(x, [(0, 0), *pads, (0, 0)], "constant", 0), u.shape[1:-1]
    groups = x.shape[-1] // shape[-2]
    rows = (math.prod(u.shape[:-1]), groups)
    u = ops.transpose(ops.reshape(u, (*rows, shape[-1] // groups)), (1, 0, 2))
    taps = [
        ops.transpose(ops.reshape(x[:, *entry_slices(place, number, strides, rates)], (*rows, shape[-2])), (1, 2, 0))
        for place in np.ndindex(shape[:-2])
    ]
    grads = ops.transpose(ops.matmul(np.conj(ops.stack(taps, 0)), u), (0, 2, 1, 3))
    return ops.reshape(grads, shape)


op_unfold = (lambda u, _y, like, *layout: ops.fold(u, like.shape[2:], *layout),)
op_fold = (lambda u, _y, _x, _size, *layout: ops.unfold(u, *layout),)
