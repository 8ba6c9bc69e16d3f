"""Activations by PyTorch's kernels, whose second derivative is missing or overflows."""

from __future__ import annotations

import torch
from torch.nn import functional

from .._internals import is_tracked
from .._kernels import run_fused
from ..conversion import is_float


def op_gelu(x, approximate, *, otherwise):
    if getattr(x, "dtype", None) is not torch.float16:
        return otherwise(x, approximate)
    form = "tanh" if approximate else "none"

    def kernel(x):
        return functional.gelu(x, approximate=form)

    def pull(upstream, x):
        return [torch.ops.aten.gelu_backward(upstream, x, approximate=form)]

    return run_fused(kernel, pull, lambda x: otherwise(x, approximate), x)


def op_hard_sigmoid(x, *, otherwise):
    if not is_float(x):
        return otherwise(x)
    if not is_tracked(x):
        return functional.hardsigmoid(x)
    if x.dtype is torch.float64:  # the kernel's derivative is 1/6 in float32
        return otherwise(x)
    return run_fused(functional.hardsigmoid, hard_sigmoid_gradient, otherwise, x)


def hard_sigmoid_gradient(upstream, x):
    return [torch.ops.aten.hardsigmoid_backward(upstream, x)]
