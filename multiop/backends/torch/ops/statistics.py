"""Statistics: the ops that are not composed of others."""

from __future__ import annotations

import operator

import torch

from ..conversion import put_together
from .products import product_of


def op_correlate(x1, x2, before, after):
    x1, x2 = (put_together(x, operator.methodcaller("is_replicate")) for x in (x1, x2))
    if x1.is_floating_point() or x1.is_complex():
        padded = torch.nn.functional.pad(x1, (before, after))
        return torch.nn.functional.conv1d(padded[None, None], x2[None, None])[0, 0]
    return product_of(lambda x1, x2: correlate_windows(x1, x2, before, after), x1, x2)


def correlate_windows(x1, x2, before, after):
    """Correlate integers, which PyTorch cannot convolve."""
    windows = torch.nn.functional.pad(x1, (before, after)).unfold(0, x2.shape[0], 1)
    return torch.sum(windows * x2, 1, dtype=x1.dtype)
