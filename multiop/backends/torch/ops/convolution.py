"""Convolution, and its windows."""

from __future__ import annotations

import functools
import operator

import torch
from torch.nn import functional

from multiop import errors
from multiop._values import windows

from .._internals import holds_always
from ..conversion import (
    are_autocast,
    are_floats,
    are_plain_floats,
    bool_to_int32,
    convert,
    in_float32,
    promote,
    put_together,
    resolve,
)
from .elementwise import op_add

_CONV = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
_CONV_TRANSPOSE = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}


def op_conv(inputs, kernel, bias, strides, padding, data_format, dilation_rate):
    is_fused = are_plain_floats(inputs, kernel, *(() if bias is None else (bias,)))
    if not is_fused:
        inputs, kernel = promote_factors(inputs, kernel)
        bias = put_together(bias, operator.methodcaller("is_replicate"))
        is_fused = bias is None or are_floats(kernel, bias) or are_autocast(inputs, kernel, bias)
    plan = resolve(plan_convolution, inputs.shape, kernel.shape, strides, padding, data_format, dilation_rate)
    order, pads, *options = plan
    x = inputs if data_format == "channels_first" else inputs.movedim(-1, 1)
    x = functional.pad(x, pads) if pads else x
    kernel = torch.permute(kernel, order)
    x, kernel = (x, kernel) if kernel.is_floating_point() else integers_to_int64(x, kernel)
    if kernel.shape[0] == 1:  # the gradient of a CPU kernel requires it to be contiguous
        kernel = kernel.clone(memory_format=torch.contiguous_format)
    convolve = _CONV[len(order) - 2] if x.shape[0] else functools.partial(convolve_nothing, _CONV[len(order) - 2])
    y = convolve(x, kernel, bias if is_fused else None, *options)
    y = y if y.is_floating_point() else y.type(inputs.dtype)
    y = y if data_format == "channels_first" else y.movedim(1, -1)
    return y if is_fused else op_add(y, bias.reshape(windows.along_channels(data_format, len(order) - 2)))


@functools.lru_cache(maxsize=1024, typed=True)
def plan_convolution(shape, kernel, strides, padding, data_format, dilation_rate):
    """Return the order of the kernel's dimensions, what to pad at one end, and PyTorch's options."""
    axes, strides, dilation = windows.convolution(shape, kernel, strides, data_format, dilation_rate)
    n, sizes, spans = len(axes), [shape[axis] for axis in axes], windows.spans(kernel[:-2], dilation)
    groups = windows.groups(shape[1 if data_format == "channels_first" else -1], kernel)
    pads, both, steps = list(windows.pads(sizes, spans, strides, padding)), [], list(strides)
    # a CPU's kernel of bfloat16 reads beyond an image that is smaller than its windows, or than a step to a second one
    for k, (size, span, (start, end), stride) in enumerate(zip(sizes, spans, pads, strides, strict=True)):
        is_single = stride > 1 and holds_always(size + start + end - span < stride)
        pads[k], steps[k] = ((start, span - size - start), 1) if is_single else ((start, end), stride)
        is_small = is_single or holds_always(size < span) or min(start, end) >= span
        both.append(0 if is_small else min(start, end))
    rest = tuple([end - less for pair, less in zip(reversed(pads), reversed(both), strict=True) for end in pair])
    return (n + 1, n, *range(n)), rest if any(rest) else (), tuple(steps), tuple(both), dilation, groups


def op_conv_transpose(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
    if not are_plain_floats(inputs, kernel):
        inputs, kernel = promote_factors(inputs, kernel)
    options = strides, padding, output_padding, data_format, dilation_rate, groups
    order, kept, *options = resolve(plan_transposed, inputs.shape, kernel.shape, *options)
    # the gradient of a CPU kernel requires it to be contiguous
    x, kernel = integers_to_int64(channels_first(inputs, data_format), torch.permute(kernel, order).contiguous())
    kind = _CONV_TRANSPOSE[len(order) - 2]
    kind = kind if x.shape[0] else functools.partial(convolve_nothing, kind)
    convolve = lambda *xs: kind(*xs, None, *options)  # noqa: E731
    # the CPU kernel adds overlapping patches up in 16 bits
    y = in_float32(convolve, x, kernel) if x.is_cpu and not are_autocast(x, kernel) else convolve(x, kernel)
    y = y if y.is_floating_point() else y.type(inputs.dtype)
    for dim, start, lost in kept:
        y = y.narrow(dim, start, y.shape[dim] - lost)
    return to_data_format(y, data_format)


@functools.lru_cache(maxsize=1024, typed=True)
def plan_transposed(shape, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
    """Return the order of the kernel's dimensions, what is cropped as `(dimension, start, lost)`, and the options."""
    axes, strides, dilation = windows.convolution(shape, kernel, strides, data_format, dilation_rate)
    groups = windows.transposed_groups(shape[1 if data_format == "channels_first" else -1], kernel, groups)
    spans = windows.spans(kernel[:-2], dilation)
    crops = windows.crops([shape[axis] for axis in axes], spans, strides, padding, output_padding, dilation)
    both, extra, kept = [], [], []
    for dim, ((start, end), stride, rate) in enumerate(zip(crops, strides, dilation, strict=True), 2):
        # PyTorch crops both ends equally, and adds less than a stride or dilation at the end
        less = start if start - end < max(stride, rate) else max(end, 0)
        both.append(less)
        extra.append(max(less - end, 0))
        if start > less or end > less:
            kept.append((dim, start - less, start - less + max(end - less, 0)))
    return (len(axes) + 1, len(axes), *range(len(axes))), kept, strides, both, extra, groups, dilation


def op_unfold(x, kernel_size, dilation, padding, stride):
    x = convert(x)
    if x.ndim != 4:
        raise errors.ArgumentError(f"x must have 4 dimensions, not {x.ndim}")
    kernel, rates, pads, steps, number = windows.blocks(x.shape[2:], kernel_size, dilation, padding, stride)
    if x.is_floating_point() or x.is_complex():
        return functional.unfold(x, kernel, rates, pads, steps)
    x = functional.pad(x, (pads[1], pads[1], pads[0], pads[0]))
    for dim, (span, step, rate) in enumerate(zip(windows.spans(kernel, rates), steps, rates, strict=True), 2):
        x = x.unfold(dim, span, step)[..., ::rate]
    x = torch.permute(x, (0, 1, 4, 5, 2, 3))
    return x.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], number[0] * number[1])


def op_fold(x, output_size, kernel_size, dilation, padding, stride):
    (x,) = bool_to_int32(convert(x))
    output_size = windows.spatial(output_size, 2, "output_size")
    kernel, rates, pads, steps, number = windows.blocks(output_size, kernel_size, dilation, padding, stride)
    windows.check_fold(x.shape, kernel, number)
    if x.is_floating_point() or x.is_complex():
        return functional.fold(x, output_size, kernel, rates, pads, steps)
    height, width = (size + 2 * pad for size, pad in zip(output_size, pads, strict=True))
    rows, columns = (
        (torch.arange(k, device=x.device)[:, None] * rate + torch.arange(m, device=x.device) * step)
        for k, rate, m, step in zip(kernel, rates, number, steps, strict=True)
    )
    place = (rows[:, None, :, None] * width + columns[None, :, None, :]).reshape(-1)
    (terms,) = integers_to_int64(x.reshape(x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), place.numel()))
    image = terms.new_zeros((*terms.shape[:2], height * width)).index_add(2, place, terms).type(x.dtype)
    return image.reshape(*terms.shape[:2], height, width)[:, :, pads[0] : height - pads[0], pads[1] : width - pads[1]]


def convolve_nothing(kind, x, kernel, bias, *options):
    """Return the convolution of an empty batch: of its gradients, the compiler gets wrong strides, and fails."""
    return kind(torch.cat([x, x.new_zeros(1, *x.shape[1:])]), kernel, bias, *options)[:0]


def promote_factors(inputs, kernel):
    """Return the operands of a convolution in a dtype that PyTorch convolves, or as they are under torch.autocast."""
    inputs = put_together(inputs, lambda placement: placement.is_replicate() or placement.is_shard(0))  # of the batch
    kernel = put_together(kernel, operator.methodcaller("is_replicate"))
    are_taken = are_floats(inputs, kernel) or are_autocast(inputs, kernel)
    return (inputs, kernel) if are_taken else bool_to_int32(*promote(inputs, kernel))


def integers_to_int64(*xs):
    """Return integers as int64, the only integer dtype that PyTorch has all kernels for."""
    return xs if xs[0].is_floating_point() or xs[0].is_complex() else [x.long() for x in xs]


def channels_first(x, data_format):
    return x if data_format == "channels_first" else x.movedim(-1, 1)


def to_data_format(y, data_format):
    """Return `y`, whose channels come first, in the requested layout."""
    return y if data_format == "channels_first" else y.movedim(1, -1)
