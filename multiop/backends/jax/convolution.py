"""Convolution, and the windows that it looks through."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from multiop import _windows, errors

from .conversion import convert, promote
from .elementwise import numbers


def op_conv(inputs, kernel, strides, padding, data_format, dilation_rate):
    inputs, kernel = numbers(*promote(inputs, kernel))
    axes, strides, dilation = _windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    spans = _windows.spans(kernel.shape[:-2], dilation)
    _windows.fits([inputs.shape[axis] for axis in axes], spans, padding, "kernel")
    return jax.lax.conv_general_dilated(
        inputs,
        kernel,
        strides,
        padding.upper(),
        rhs_dilation=dilation,
        dimension_numbers=dimension_numbers(len(axes), data_format, "IO"),
        feature_group_count=_windows.groups(inputs.shape[channels(data_format)], kernel.shape),
    )


def op_conv_transpose(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate):
    inputs, kernel = numbers(*promote(inputs, kernel))
    axes, strides, dilation = _windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    if inputs.shape[channels(data_format)] != kernel.shape[-1]:
        raise errors.ArgumentError(f"kernel takes {kernel.shape[-1]} channels, which is not the number of inputs")
    spans = _windows.spans(kernel.shape[:-2], dilation)
    crops = _windows.crops(spans, strides, padding, output_padding)
    return jax.lax.conv_general_dilated(
        inputs,
        jax.lax.rev(kernel, range(len(axes))),
        (1,) * len(axes),
        [(span - 1 - start, span - 1 - end) for span, (start, end) in zip(spans, crops, strict=True)],
        lhs_dilation=strides,
        rhs_dilation=dilation,
        dimension_numbers=dimension_numbers(len(axes), data_format, "OI"),
    )


def op_unfold(x, kernel_size, dilation, padding, stride):
    x = convert(x)
    if x.ndim != 4:
        raise errors.ArgumentError(f"x must have 4 dimensions, not {x.ndim}")
    kernel, rates, pads, steps, number = _windows.blocks(x.shape[2:], kernel_size, dilation, padding, stride)
    x = jnp.pad(x, ((0, 0), (0, 0), *[(pad, pad) for pad in pads]))
    rows, columns = map(_windows.positions, number, kernel, steps, rates)
    # batch, channels, places in the block, blocks
    x = x[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return x.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], number[0] * number[1])


def op_fold(x, output_size, kernel_size, dilation, padding, stride):
    (x,) = numbers(convert(x))
    output_size = _windows.spatial(output_size, 2, "output_size")
    kernel, rates, pads, steps, number = _windows.blocks(output_size, kernel_size, dilation, padding, stride)
    _windows.folded(x.shape, kernel, number)
    rows, columns = map(_windows.positions, number, kernel, steps, rates)
    x = x.reshape(x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), *kernel, *number)
    height, width = (size + 2 * pad for size, pad in zip(output_size, pads, strict=True))
    image = jnp.zeros((*x.shape[:2], height, width), x.dtype)
    image = image.at[:, :, rows[:, None, :, None], columns[None, :, None, :]].add(x)
    return image[:, :, pads[0] : height - pads[0], pads[1] : width - pads[1]]


def channels(data_format):
    return -1 if data_format == "channels_last" else 1


def dimension_numbers(n, data_format, kernel):
    space = "DHW"[-n:]
    layout = f"N{space}C" if data_format == "channels_last" else f"NC{space}"
    return layout, space + kernel, layout
