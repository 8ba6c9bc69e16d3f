"""Convolution, and its windows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import windows

from ..conversion import bool_to_int32, convert, in_one_call, promote
from ..devices import is_cpu_default
from .elementwise import op_add


@in_one_call
def op_conv(inputs, kernel, bias, strides, padding, data_format, dilation_rate):
    inputs, kernel = bool_to_int32(*promote(inputs, kernel))
    axes, strides, dilation = windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    spans = windows.spans(kernel.shape[:-2], dilation)
    y = convolve(
        inputs,
        kernel,
        strides,
        windows.pads([inputs.shape[axis] for axis in axes], spans, strides, padding),
        rhs_dilation=dilation,
        dimension_numbers=dimension_numbers(len(axes), data_format, "IO"),
        feature_group_count=windows.groups(inputs.shape[channels(data_format)], kernel.shape),
    )
    return y if bias is None else op_add(y, bias.reshape(windows.along_channels(data_format, len(axes))))


@in_one_call
def op_conv_transpose(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
    inputs, kernel = bool_to_int32(*promote(inputs, kernel))
    axes, strides, dilation = windows.convolution(inputs.shape, kernel.shape, strides, data_format, dilation_rate)
    groups = windows.transposed_groups(inputs.shape[channels(data_format)], kernel.shape, groups)
    spans = windows.spans(kernel.shape[:-2], dilation)
    sizes = [inputs.shape[axis] for axis in axes]
    crops = windows.crops(sizes, spans, strides, padding, output_padding, dilation)
    if groups > 1:  # (*window, channels_out / groups, channels_in) -> (*window, channels_out, channels_in / groups)
        kernel = kernel.reshape(*kernel.shape[:-1], groups, -1)
        kernel = jnp.swapaxes(kernel, -3, -2).reshape(*kernel.shape[:-3], -1, kernel.shape[-1])
    return convolve(
        inputs,
        jax.lax.rev(kernel, range(len(axes))),
        (1,) * len(axes),
        [(span - 1 - start, span - 1 - end) for span, (start, end) in zip(spans, crops, strict=True)],
        lhs_dilation=strides,
        rhs_dilation=dilation,
        dimension_numbers=dimension_numbers(len(axes), data_format, "OI"),
        feature_group_count=groups,
    )


@in_one_call
def op_unfold(x, kernel_size, dilation, padding, stride):
    x = convert(x)
    if x.ndim != 4:
        raise errors.ArgumentError(f"x must have 4 dimensions, not {x.ndim}")
    kernel, rates, pads, steps, number = windows.blocks(x.shape[2:], kernel_size, dilation, padding, stride)
    x = jnp.pad(x, ((0, 0), (0, 0), *[(pad, pad) for pad in pads]))
    rows, columns = map(windows.positions, number, kernel, steps, rates)
    # batch, channels, positions in the block, blocks
    x = x[:, :, rows[:, None, :, None], columns[None, :, None, :]]
    return x.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], number[0] * number[1])


@in_one_call
def op_fold(x, output_size, kernel_size, dilation, padding, stride):
    (x,) = bool_to_int32(convert(x))
    output_size = windows.spatial(output_size, 2, "output_size")
    kernel, rates, pads, steps, number = windows.blocks(output_size, kernel_size, dilation, padding, stride)
    windows.check_fold(x.shape, kernel, number)
    rows, columns = map(windows.positions, number, kernel, steps, rates)
    x = x.reshape(x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), *kernel, *number)
    height, width = (size + 2 * pad for size, pad in zip(output_size, pads, strict=True))
    image = jnp.zeros((*x.shape[:2], height, width), x.dtype)
    image = image.at[:, :, rows[:, None, :, None], columns[None, :, None, :]].add(x)
    return image[:, :, pads[0] : height - pads[0], pads[1] : width - pads[1]]


def convolve(x, kernel, strides, pads, **options):
    """Convolve; integers one kernel entry at a time where a GPU library would saturate or reject them."""
    if jnp.issubdtype(x.dtype, np.inexact) or is_cpu_default():
        return jax.lax.conv_general_dilated(x, kernel, strides, pads, **options)
    layouts = jax.lax.conv_dimension_numbers(x.shape, kernel.shape, options["dimension_numbers"])
    dtype, n, groups = x.dtype, len(strides), options.get("feature_group_count", 1)
    x = jnp.moveaxis(x.transpose(layouts.lhs_spec), 1, -1)
    kernel = kernel.transpose(layouts.rhs_spec)  # output channels, input channels, window
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.int32)
    spread = options.get("lhs_dilation", (1,) * n)
    gaps = [(low, high, rate - 1) for (low, high), rate in zip(pads, spread, strict=True)]
    x = jax.lax.pad(x.astype(wide), np.zeros((), wide), [(0, 0, 0), *gaps, (0, 0, 0)])
    rates = options.get("rhs_dilation", (1,) * n)
    spans = windows.spans(kernel.shape[2:], rates)
    number = [(size - span) // step + 1 for size, span, step in zip(x.shape[1:-1], spans, strides, strict=True)]
    kernel = kernel.astype(wide).reshape(groups, -1, *kernel.shape[1:])
    total = 0
    for place in np.ndindex(kernel.shape[3:]):
        starts = [0, *(at * rate for at, rate in zip(place, rates, strict=True)), 0]
        ends = [start + (m - 1) * step + 1 for start, m, step in zip(starts[1:-1], number, strides, strict=True)]
        seen = jax.lax.slice(x, starts, [x.shape[0], *ends, x.shape[-1]], [1, *strides, 1])
        seen = seen.reshape(*seen.shape[:-1], groups, -1)
        total = total + jnp.einsum("...gi,goi->...go", seen, kernel[(..., *place)])
    total = total.reshape(*total.shape[:-2], -1).astype(dtype)
    return jnp.moveaxis(total, -1, 1).transpose(np.argsort(layouts.out_spec))


def channels(data_format):
    return -1 if data_format == "channels_last" else 1


def dimension_numbers(n, data_format, kernel):
    space = "DHW"[-n:]
    layout = f"N{space}C" if data_format == "channels_last" else f"NC{space}"
    return layout, space + kernel, layout
