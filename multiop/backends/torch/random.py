"""The PyTorch part of random numbers."""

from __future__ import annotations

import torch

from . import _internals
from .conversion import is_compiling

word = "int64"  # the dtype in which words are multiplied: PyTorch has few kernels for uint32


def rounded(product):
    """Return a product that a GPU compiler does not fuse with a following sum: a fused one is rounded only once."""
    return product if product.is_cpu else torch.clamp_min(product, torch.finfo(product.dtype).min)


def is_tracing():
    """Say whether ops that run now are being traced into a program."""
    return is_compiling() or _internals.is_tracing()


def taken(x, index):
    """Return the entries of a vector at an index that is known to be inside."""
    return x[index]
