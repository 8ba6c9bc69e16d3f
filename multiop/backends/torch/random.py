"""The PyTorch part of random numbers."""

from __future__ import annotations

import functools

import numpy as np
import torch

from multiop._loading import built_in
from multiop._values import philox

from . import _internals
from .conversion import is_compiling

word = "int64"  # the dtype in which words are multiplied: PyTorch has few kernels for uint32


def random_words(key, n, counter):
    """Return random words computed at once, where the key lies: hundreds of small operations less."""
    if type(key) is not torch.Tensor or _internals.is_tracked() or is_tracing():
        return None
    if not {int}.issuperset(map(type, (n, *counter))):
        return None
    if not key.is_cpu:
        kernel = _kernel() if key.is_cuda else None
        return None if kernel is None else kernel(key, n, counter)
    return torch.from_numpy(philox.words_on_host(key.tolist(), n, counter).astype(np.int64))


@functools.lru_cache(1)
def _kernel():
    """Return the function of a GPU if it gives the host's words; Triton, or its C compiler, may be missing."""
    if not built_in.is_package("triton") or built_in.is_triton_barred():
        return None
    key = philox.MASK - 1, 3
    try:
        from ._philox import words_on_gpu

        there = torch.tensor(key, dtype=torch.int64).to(torch.uint32).to("cuda")
        for counter in ((0, 0, 1, 0), (philox.MASK, 2**31, philox.MASK - 5, 2)):
            if words_on_gpu(there, 9, counter).tolist() != philox.words_on_host(key, 9, counter).tolist():
                return None
    except Exception:
        return None
    return words_on_gpu


def draws_on_host(x):
    """Say whether numbers for `x`, `None` for no tensor, are drawn on the host: their key then needs no tensor."""
    x = torch.empty(0) if x is None else x
    return type(x) is torch.Tensor and x.is_cpu and not _internals.is_tracked()


from_host = torch.from_numpy


def polynomial(x, coefficients):
    """Return a polynomial in `x` by Horner's rule, in place; `None` where that is recorded."""
    if type(x) is not torch.Tensor or _internals.is_tracked(x):
        return None
    first, second, *rest = coefficients
    y = torch.mul(x, first).add_(second)
    for coefficient in rest:
        y.mul_(x).add_(coefficient)
    return y


def rounded(product):
    """Return a product that a GPU compiler does not fuse with a following sum: a fused one is rounded only once."""
    return product if product.is_cpu else torch.clamp_min(product, torch.finfo(product.dtype).min)


def is_tracing():
    """Say whether ops that run now are being traced into a program."""
    return is_compiling() or _internals.is_tracing() or _internals.tracing_state() is not None


def taken(x, index):
    """Return the entries of a vector at an index that is known to be inside."""
    return x[index]
