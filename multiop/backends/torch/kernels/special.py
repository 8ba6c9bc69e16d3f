"""Special functions by PyTorch's kernels in float64, which are right to half a unit in the last place of float32.

That of torch.special.gammaincc is not. In float64, SciPy's serve, if nothing is differentiated and values can be read;
its incomplete gamma functions lack three digits.
"""

from __future__ import annotations

import torch

from .._internals import is_tracked
from .._kernels import are_values, is_readable, run_fused, run_recorded
from ..conversion import floating, in_float32, is_float, promote_floating


def op_lgamma(x, *, otherwise):
    x = floating(x)
    return otherwise(x) if x.is_complex() else in_float32(lambda x: run_recorded(torch.lgamma, otherwise, x), x)


def op_digamma(x, *, otherwise):
    def pull(upstream, x):
        return [torch.polygamma(1, x.double()).float().mul_(upstream)]

    def kernel(x):
        return torch.digamma(x.double()).float()

    if are_values(x, x) and x.dtype is torch.float32:
        return kernel(x)
    x = floating(x)
    if x.is_complex():
        return otherwise(x)
    if x.dtype is torch.float64:
        return on_host("digamma", x) if are_readable_values(x) else otherwise(x)
    return in_float32(lambda x: run_fused(kernel, pull, otherwise, x), x)


def op_polygamma(n, x, *, otherwise):
    x = floating(x)
    if x.is_complex() or not are_readable_values(x) or type(n) is not int or n < 1 or not bool((x > 0).all()):
        return otherwise(n, x)
    if x.dtype is not torch.float64 and n <= 20:  # of more, the factorial may overflow
        return torch.polygamma(n, x.double()).type(x.dtype)
    return on_host("polygamma", n, x)


def op_gammainc(a, x, *, otherwise):
    a, x = promote_floating(a, x)
    if a.is_complex() or a.dtype is torch.float64 or is_tracked(a, x):
        return otherwise(a, x)
    return torch.special.gammainc(a.double(), x.double()).float().type(x.dtype)


def op_gammaincc(a, x, *, otherwise):
    a, x = promote_floating(a, x)
    if a.is_complex() or a.dtype is torch.float64 or not are_readable_values(a, x):
        return otherwise(a, x)
    if bool((a > 1e-6).all()):  # of less, PyTorch's loses digits
        return torch.special.gammaincc(a.double(), x.double()).type(x.dtype)
    return on_host("gammaincc", a, x)


def are_readable_values(*xs):
    """Say whether nothing differentiates `xs`, and their values can be read: SciPy then saves hundreds of steps."""
    return not is_tracked(*xs) and all(map(is_readable, xs))


def on_host(name, *operands):
    """Return a function of SciPy of tensors and numbers, in the dtype of the last one, a tensor."""
    from multiop._values import scipy_special  # SciPy takes longer to import than multiop

    arrays = [x.double().numpy(force=True) if isinstance(x, torch.Tensor) else x for x in operands]
    return torch.from_numpy(scipy_special.compute(name, *arrays)).type(operands[-1].dtype)


def op_xlogy(x, y, *, otherwise):
    return torch.xlogy(x, y) if are_values(x, y) else otherwise(x, y)


def op_xlog1py(x, y, *, otherwise):
    return torch.special.xlog1py(x, y) if are_values(x, y) else otherwise(x, y)


def op_i0(x, *, otherwise):
    if not is_float(x):
        return otherwise(x)
    if x.dtype is torch.float64:
        return on_host("i0", x) if are_readable_values(x) else otherwise(x)

    # in float32, torch.special.i0 overflows before its result does; it is NaN at infinity
    def kernel(x):
        return torch.special.i0(x.double().clamp(-200, 200)).type(x.dtype)

    def pull(upstream, x):
        return [torch.special.i1(x.double().clamp(-200, 200)).mul_(upstream).type(x.dtype)]

    return run_fused(kernel, pull, otherwise, x)
