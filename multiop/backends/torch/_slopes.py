"""Functions of tensors with derivatives of their own."""

from __future__ import annotations

import inspect

import torch

from ._internals import apply_directly, forward_mode_enabled, without_tangent


def with_slopes(value, *slopes, is_slope=False):
    """Return `value`, a function of tensors of one shape, with these derivatives in both modes."""
    names = (inspect.Parameter(f"x{k}", inspect.Parameter.POSITIONAL_ONLY) for k in range(len(slopes)))
    signature = inspect.Signature(list(names))

    class Ruled(torch.autograd.Function):
        generate_vmap_rule = True

        def forward(*xs):
            return value(*xs)

        forward.__signature__ = signature  # PyTorch's compiler counts its parameters
        forward = staticmethod(forward)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.set_materialize_grads(False)  # 0 times a slope that is infinite would be NaN
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, upstream):
            asked = [upstream is not None and needed for needed in ctx.needs_input_grad]
            xs = ctx.saved_tensors
            return tuple([slope(upstream, *xs) if k else None for k, slope in zip(asked, slopes, strict=True)])

    class InBothModes(Ruled):
        """The same with forward mode, which torch.compile refuses to trace."""

        @staticmethod
        def jvp(ctx, *tangents):
            with forward_mode_enabled(True):  # autograd turned it off, also for outer levels
                xs = [without_tangent(x) for x in ctx.saved_tensors]
                return sum(slope(t, *xs) for slope, t in zip(slopes, tangents, strict=True) if t is not None)

    def call(*xs):
        if not torch.compiler.is_dynamo_compiling():
            return apply_directly(InBothModes, *xs)
        return value(*xs) if is_slope else Ruled.apply(*xs)  # it has first derivatives alone, and nests no such classes

    return call
