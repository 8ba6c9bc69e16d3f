"""Fused kernels: their own first derivative in reverse mode, and that of a formula where another one is asked for."""

from __future__ import annotations

import torch
from torch.autograd.function import Function

from ._internals import are_transforms_active, is_batch_of_gradients, is_finite, keeps_graph


def with_formula(y, pull, formula, *xs, residuals=()):
    """Return `y`, the result of a kernel for `xs`, with the gradients `pull(upstream, *xs, *residuals)`, one for each.

    Gradients that are differentiated again are those of `formula(*xs)`, which computes the same.
    """
    if not torch.is_grad_enabled() or not any(x.requires_grad for x in xs):
        return y
    return _Fused.apply((y, *residuals), pull, formula, *xs)


def of_finite(kernel, pull, formula, x):
    """Return `kernel(x)`, with the gradient `pull(upstream, x)`, if `x` is seen to be finite, else `formula(x)`."""
    return with_formula(kernel(x.detach()), pull, formula, x) if is_finite(x) else formula(x)


def by_kernel(kernel, formula, *xs):
    """Return `kernel(*xs)`, whose first derivative is its own, and others those of `formula`.

    It is `None` where it cannot be looked at, or is not finite.
    """
    inputs = [x.detach().requires_grad_(x.requires_grad) for x in xs]
    y = kernel(*inputs)
    if not is_finite(y):
        return None

    def pull(upstream, *_):
        wanted = [x for x in inputs if x.requires_grad]
        grads = iter(torch.autograd.grad(y, wanted, upstream, retain_graph=keeps_graph()))
        return [next(grads) if x.requires_grad else None for x in inputs]

    return with_formula(y, pull, formula, *xs)


class _Fused(Function):
    @staticmethod
    def forward(ctx, results, pull, formula, *xs):
        y, *residuals = results
        ctx.save_for_backward(*xs, *residuals)
        ctx.n, ctx.pull, ctx.formula = len(xs), pull, formula
        ctx.is_kernel = True  # not a user's rule
        return y.detach()

    @staticmethod
    def backward(ctx, upstream):
        is_recording = torch.is_grad_enabled()
        is_batch = are_transforms_active() or is_batch_of_gradients(upstream)  # for which a kernel may be wrong
        if not is_recording and not is_batch:
            return None, None, None, *ctx.pull(upstream, *ctx.saved_tensors)
        xs = ctx.saved_tensors[: ctx.n]
        wanted = [k for k in range(len(xs)) if ctx.needs_input_grad[3 + k]]
        with torch.enable_grad():
            inputs = [x.view_as(x) for x in xs]  # two of them may be one tensor
            y = ctx.formula(*inputs)
        found = torch.autograd.grad(y, [inputs[k] for k in wanted], upstream, create_graph=is_recording)
        grads = dict(zip(wanted, found, strict=True))
        return None, None, None, *[grads.get(k) for k in range(len(xs))]
