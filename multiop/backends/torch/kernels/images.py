"""Resizing by PyTorch's kernel."""

from __future__ import annotations

import torch
from torch.nn import functional

from multiop._values import windows

from .._kernels import LONG, is_finite, with_formula
from ..conversion import is_float


def op_image_resize(images, size, *options, otherwise):
    """Resize by a kernel, right for what is finite, in float64 unless float32 holds the places of the pixels."""
    *usual, fill_value, data_format = options

    def meaning(images):
        return otherwise(images, size, *options)

    is_plain_resize = usual == ["bilinear", False, False, False, "constant"] and fill_value == 0
    if not (is_plain_resize and is_float(images) and images.dtype in LONG and images.ndim in (3, 4) and images.numel()):
        return meaning(images)
    if not (windows.is_pair(size) and data_format in (None, "channels_last", "channels_first") and is_finite(images)):
        return meaning(images)
    last = data_format != "channels_first"
    order, back = ((0, 3, 1, 2), (0, 2, 3, 1)) if last else ((0, 1, 2, 3), (0, 1, 2, 3))
    old = images.shape[-3:-1] if last else images.shape[-2:]
    dtype = images.dtype
    working = dtype if all(map(windows.is_exact_in_float32, old, size)) else torch.float64

    def planes(x):
        return x.reshape(-1, *x.shape[-3:]).permute(order).type(working)

    def restore_layout(y):
        y = y.permute(back).type(dtype)
        return y.reshape(*images.shape[:-3], *y.shape[1:])

    sizes = planes(images.detach()).shape

    def pull(upstream, x):
        if not is_finite(upstream):
            return [torch.func.vjp(meaning, x)[1](upstream)[0]]
        return [restore_layout(torch.ops.aten.upsample_bilinear2d_backward(planes(upstream), size, sizes, False))]

    y = restore_layout(functional.interpolate(planes(images.detach()), size, mode="bilinear"))
    return with_formula(y, pull, meaning, images)
