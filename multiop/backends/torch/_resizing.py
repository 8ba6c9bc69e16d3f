"""Resizing by PyTorch's kernel."""

from __future__ import annotations

import torch
from torch.nn import functional

from ._fused import fused


def native_bilinear(images, axes, target, is_exact, by_taps):
    """Resize by a kernel, right for what is finite, in float64 unless float32 holds the places of the pixels."""
    if images.dtype not in (torch.float32, torch.float64) or not images.numel():
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

    sizes = planes(images).shape

    def kernel(x):
        return restored(functional.interpolate(planes(x), target, mode="bilinear"))

    def pull(upstream, _):
        return [restored(torch.ops.aten.upsample_bilinear2d_backward(planes(upstream), target, sizes, False))]

    return fused(kernel, pull, by_taps, images)
