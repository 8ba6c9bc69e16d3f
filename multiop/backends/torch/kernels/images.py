"""Resizing by PyTorch's kernel."""

from __future__ import annotations

import operator

import torch
from torch.nn import functional

from multiop._values import windows

from .._internals import is_tracked
from .._kernels import LONG, is_finite, with_formula


def op_image_resize(images, size, *options, otherwise):
    """Resize by a kernel, right for what is finite, in float64 unless float32 holds the places of the pixels."""
    interpolation, *usual, fill_value, data_format = options

    def meaning(images):
        return otherwise(images, size, *options)

    is_plain_resize = usual == [False, False, False, "constant"] and fill_value == 0
    is_usual = is_plain_resize and isinstance(images, torch.Tensor) and images.dtype in LONG and images.ndim in (3, 4)
    is_usual = is_usual and images.numel() and data_format in (None, "channels_last", "channels_first")
    if not (is_usual and windows.is_pair(size)):
        return meaning(images)
    last = data_format != "channels_first"
    old = images.shape[-3:-1] if last else images.shape[-2:]
    is_exact, dtype = all(map(windows.is_exact_in_float32, old, size)), images.dtype  # else, a place is rounded
    is_repeated = interpolation == "nearest" and is_exact and not is_tracked() and not any(map(operator.mod, size, old))
    if not (is_repeated or (interpolation == "bilinear" and is_finite(images))):
        return meaning(images)
    working = dtype if is_exact else torch.float64

    def planes(x):
        x = x if x.ndim == 4 else x[None]
        return (x.movedim(-1, 1) if last else x).type(working)

    def restore_layout(y):
        y = y.movedim(1, -1) if last else y
        return (y if images.ndim == 4 else y[0]).type(dtype)

    if is_repeated:
        return restore_layout(torch.ops.aten.upsample_nearest2d(planes(images), size))
    sizes = planes(images.detach()).shape

    def pull(upstream, x):
        if not is_finite(upstream):
            return [torch.func.vjp(meaning, x)[1](upstream)[0]]
        return [restore_layout(torch.ops.aten.upsample_bilinear2d_backward(planes(upstream), size, sizes, False))]

    y = restore_layout(functional.interpolate(planes(images.detach()), size, mode="bilinear"))
    return with_formula(y, pull, meaning, images)
