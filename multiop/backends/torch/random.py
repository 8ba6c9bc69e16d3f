"""The PyTorch part of random numbers."""

from __future__ import annotations

import torch

from multiop._values import philox

from . import _internals
from .conversion import is_compiling

word = "int64"  # the dtype in which words are multiplied: PyTorch has few kernels for uint32


def random_words(key, n, counter):
    """Return random words computed on the host, where the key's values are there: hundreds of small operations less."""
    if type(key) is not torch.Tensor or not key.is_cpu or _internals.is_tracked():
        return None
    if not {int}.issuperset(map(type, (n, *counter))):
        return None
    return torch.from_numpy(philox.words_on_host(key.tolist(), n, counter))


_PART = 1 << 15  # numbers, which fit in a processor's cache


def in_parts(draw, *words):
    """Return what is drawn of many random words, part by part: each step would go through memory otherwise."""
    if not words[0].is_cpu or words[0].numel() <= _PART or _internals.is_tracked():
        return draw(*words)
    parts = zip(*[word.reshape(-1).split(_PART) for word in words], strict=True)
    return torch.cat([draw(*part) for part in parts]).reshape(words[0].shape)


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
    return is_compiling() or _internals.is_tracing()


def taken(x, index):
    """Return the entries of a vector at an index that is known to be inside."""
    return x[index]
