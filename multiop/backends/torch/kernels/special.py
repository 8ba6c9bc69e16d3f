"""Special functions by PyTorch's kernels in float64, which are right to half a unit in the last place of float32.

That of torch.special.gammaincc is not.
"""

from __future__ import annotations

import torch

from .._internals import is_tracked
from .._kernels import fused, recorded
from ..conversion import floating, in_float32, is_float, promote_floating


def op_lgamma(x, *, otherwise):
    x = floating(x)
    return otherwise(x) if x.is_complex() else in_float32(lambda x: recorded(torch.lgamma, otherwise, x), x)


def op_digamma(x, *, otherwise):
    def pull(upstream, x):
        return [torch.polygamma(1, x.to(torch.float64)).to(torch.float32).mul_(upstream)]

    def kernel(x):
        return torch.digamma(x.to(torch.float64)).to(torch.float32)

    x = floating(x)
    if x.is_complex() or x.dtype is torch.float64:
        return otherwise(x)
    return in_float32(lambda x: fused(kernel, pull, otherwise, x), x)


def op_gammainc(a, x, *, otherwise):
    a, x = promote_floating(a, x)
    if a.is_complex() or a.dtype is torch.float64 or is_tracked(a, x):
        return otherwise(a, x)
    return torch.special.gammainc(a.to(torch.float64), x.to(torch.float64)).to(torch.float32).to(x.dtype)


def op_i0(x, *, otherwise):
    if not is_float(x) or x.dtype is torch.float64:
        return otherwise(x)

    # in float32, torch.special.i0 overflows before its result does; it is NaN at infinity
    def kernel(x):
        return torch.special.i0(x.double().clamp(-200, 200)).to(x.dtype)

    def pull(upstream, x):
        return [torch.special.i1(x.double().clamp(-200, 200)).mul_(upstream).to(x.dtype)]

    return fused(kernel, pull, otherwise, x)
