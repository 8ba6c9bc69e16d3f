"""Resizing by PyTorch's kernel."""

from __future__ import annotations

import torch
from torch.nn import functional

from ._fused import with_formula
from ._internals import is_finite


def native_bilinear(images, axes, target, is_exact, by_taps):
    """Resize by a kernel, right for what is finite, in float64 unless float32 holds the places of the pixels."""
    if images.dtype not in (torch.float32, torch.float64) or not (images.numel() and is_finite(images)):
        return None
    dtype, working = images.dtype, images.dtype if is_exact else torch.float64
    last = axes[1] == images.ndim - 2
    order = (0, 3, 1, 2) if last else (0, 1, 2, 3)
    back = (0, 2, 3, 1) if last else order

    def planes(x):
        return x.reshape(-1, *x.shape[-3:]).permute(order).to(working)

    def restored(y):
        y = y.permute(back).to(dtype)
        return y.reshape(*images.shape[:-3], *y.shape[1:])

    sizes = planes(images.detach()).shape

    def pull(upstream, x):
        if not is_finite(upstream):
            return [torch.func.vjp(by_taps, x)[1](upstream)[0]]
        return [restored(torch.ops.aten.upsample_bilinear2d_backward(planes(upstream), target, sizes, False))]

    y = restored(functional.interpolate(planes(images.detach()), target, mode="bilinear"))
    return with_formula(y, pull, by_taps, images)
