"""What random numbers need of PyTorch."""

from __future__ import annotations

import torch

from . import _internals
from .conversion import is_compiling

word = "int64"  # the dtype in which words are multiplied: PyTorch has few kernels for uint32


def rounded(product):
    """Return a product that a compiler for a GPU does not merge with a sum that follows, rounding only once."""
    return product if product.is_cpu else torch.clamp_min(product, torch.finfo(product.dtype).min)


def is_tracing():
    """Say whether what is called now becomes a part of a program."""
    return is_compiling() or _internals.is_tracing()
