"""Fused kernels: their own first derivative in reverse mode, and that of a formula where another one is asked for."""

from __future__ import annotations

import torch
from torch.autograd.function import Function

from ._internals import (
    are_transforms_active,
    grads_of,
    has_no_nan,
    is_batch_of_gradients,
    is_finite,
    is_plain,
    keeps_graph,
)


def with_formula(y, pull, formula, *xs, residuals=()):
    """Return `y`, the result of a kernel for `xs`, with the gradients `pull(upstream, *xs, *residuals)`, one for each.

    Gradients that are differentiated again are those of `formula(*xs)`, which computes the same. Where `y` is a tuple
    of results, `pull` takes an upstream for each, `None` for one that is not used.
    """
    if torch.is_grad_enabled():
        for x in xs:
            if x.requires_grad:
                return _Fused.apply((y, *residuals), pull, formula, *xs)
    return y


def of_finite(kernel, pull, formula, x):
    """Return `kernel(x)`, with the gradient `pull(upstream, x)`, if `x` is seen to be finite, else `formula(x)`.

    Where no gradient is taken, a value of the kernel is right if it is not NaN.
    """
    if x.requires_grad or not is_plain():
        return with_formula(kernel(x.detach()), pull, formula, x) if is_finite(x) else formula(x)
    y = kernel(x)
    return y if has_no_nan(y) else formula(x)


def fused(kernel, pull, formula, *xs):
    """Return `kernel(*xs)`, with the gradients `pull(upstream, *xs)`, or `formula(*xs)` where autograd does not run."""
    if not is_plain():
        return formula(*xs)
    return with_formula(kernel(*[x.detach() for x in xs]), pull, formula, *xs)


def of_finite_result(kernel, pull, formula, *xs):
    """Return `kernel(*xs)`, with the gradients `pull(upstream, *xs)`, if it is finite, else `formula(*xs)`."""
    if is_plain():
        y = kernel(*[x.detach() for x in xs])
        if is_finite(y):
            return with_formula(y, pull, formula, *xs)
    return formula(*xs)


def by_kernel(kernel, formula, *xs):
    """Return `kernel(*xs)`, whose first derivative is its own, and others those of `formula`.

    It is `None` where it cannot be looked at, or is not finite.
    """
    if not is_plain():
        return None
    inputs = [x.detach().requires_grad_(x.requires_grad) for x in xs]
    y = kernel(*inputs)
    if not is_finite(y):
        return None

    def pull(upstream, *_):
        wanted = [x for x in inputs if x.requires_grad]
        grads = iter(grads_of((y,), wanted, (upstream,), keeps_graph(), False))
        return [next(grads) if x.requires_grad else None for x in inputs]

    return with_formula(y, pull, formula, *xs)


class _Fused(Function):
    @staticmethod
    def forward(ctx, results, pull, formula, *xs):
        y, *residuals = results
        ctx.save_for_backward(*xs, *residuals)
        ctx.n, ctx.pull, ctx.formula = len(xs), pull, formula
        ctx.is_kernel = True  # not a user's rule
        if not isinstance(y, tuple):
            return y.detach()
        ctx.set_materialize_grads(False)
        return tuple([each.detach() for each in y])

    @staticmethod
    def backward(ctx, *upstreams):
        is_recording = torch.is_grad_enabled()
        # for a batch of gradients a kernel may be wrong
        is_batch = are_transforms_active() or any(u is not None and is_batch_of_gradients(u) for u in upstreams)
        if not is_recording and not is_batch:
            return None, None, None, *ctx.pull(*upstreams, *ctx.saved_tensors)
        xs = ctx.saved_tensors[: ctx.n]
        wanted = [k for k in range(len(xs)) if ctx.needs_input_grad[3 + k]]
        with torch.enable_grad():
            inputs = [x.view_as(x) for x in xs]  # two of them may be one tensor
            ys = ctx.formula(*inputs)
        ys = ys if isinstance(ys, tuple) else (ys,)
        used = [k for k, upstream in enumerate(upstreams) if upstream is not None and ys[k].requires_grad]
        ends = [ys[k] for k in used], [inputs[k] for k in wanted], [upstreams[k] for k in used]
        grads = dict(zip(wanted, grads_of(*ends, is_recording, is_recording), strict=True))
        return None, None, None, *[grads.get(k) for k in range(len(xs))]
