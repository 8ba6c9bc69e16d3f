"""Custom gradients.

The function runs once, on aliases of the primals, with autograd on, so that what its rule closes over is linked to the
primals by autograd itself. Then one autograd Function puts the outputs, detached, on the graph, with the rule as their
gradient: higher orders differentiate the rule through what it closes over, without a second run.
"""

from __future__ import annotations

import torch
from torch.autograd import forward_ad
from torch.autograd.function import Function

from multiop import errors

from . import _rules


def stop_gradient(x):
    return x.detach()


def custom_call(call, primals):
    call.primals = None  # the graph keeps `call`, and must not keep the primals by it
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return _lifted_call(call, primals)
    if not torch.is_grad_enabled():
        return call.forward(primals)[0]
    aliases = [x.view_as(x) if x.requires_grad else x for x in primals]
    outputs, rule = call.forward(aliases)
    variables = _closed_over(call, rule, outputs, aliases)
    if not variables and not any([x.requires_grad for x in primals]):
        return outputs
    residuals, template = _rules.lift(rule)
    return list(_Override.apply(call, template, outputs, residuals, variables, *primals, *variables))


class _Override(Function):
    """The outputs, with the rule for their gradient."""

    @staticmethod
    def forward(ctx, call, template, outputs, residuals, variables, *_):
        ctx.save_for_backward(*residuals, *variables)
        ctx.call, ctx.template, ctx.n_residuals = call, template, len(residuals)
        ctx.inexact = [y.is_floating_point() or y.is_complex() for y in outputs]
        results = tuple([y.view_as(y) if y._is_view() else y.detach() for y in outputs])
        if not all(ctx.inexact):
            ctx.mark_non_differentiable(*[y for y, inexact in zip(results, ctx.inexact, strict=True) if not inexact])
        return results

    @staticmethod
    def backward(ctx, *upstreams):
        saved = ctx.saved_tensors
        upstreams = [u if inexact else None for u, inexact in zip(upstreams, ctx.inexact, strict=True)]
        rule = _rules.lower(ctx.template, saved[: ctx.n_residuals])
        grads, variable_grads = ctx.call.backward(rule, upstreams, list(saved[ctx.n_residuals :]))
        return (None, None, None, None, None, *grads, *variable_grads)


def _closed_over(call, rule, outputs, aliases):
    """Return what the outputs depend on differentiably beside the primals, for a rule that takes variables; else raise."""
    found = _foreign(outputs, aliases)
    if found and not call.wants_variables(rule):
        raise errors.ClosedOverError(
            f"{call.name} closes over differentiable values that its gradient function would drop: {len(found)}"
        )
    return found


def _foreign(outputs, aliases):
    """Walk the graph of `outputs` back to the primals' aliases; return the leaves that are not behind them, by first use."""
    seen = {alias.grad_fn for alias in aliases if alias.requires_grad}
    found = {}
    stack = []
    for y in outputs:
        if y.requires_grad:
            if y.grad_fn is None:
                found[y] = (-1, 0)
            else:
                stack.append(y.grad_fn)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for place, (parent, _) in enumerate(node.next_functions):
            if parent is None or parent in seen:
                continue
            variable = getattr(parent, "variable", None)
            if variable is None:
                stack.append(parent)
            else:
                use = (node._sequence_nr(), place)
                found[variable] = min(found.get(variable, use), use)
    return sorted(found, key=found.get)


class _Plan:
    """What `_Lifted` is told about its tensors: primals, variables, outputs and residuals, in this order."""

    def __init__(self, call, template, n_primals, n_variables, outputs):
        self.call, self.template = call, template
        self.inexact = [y.is_floating_point() or y.is_complex() for y in outputs]
        self.outputs_from = n_primals + n_variables
        self.residuals_from = self.outputs_from + len(outputs)
        self.n_primals = n_primals


def _lifted_call(call, primals):
    outputs, rule = call.forward([x.view_as(x) for x in primals])
    residuals, template = _rules.lift(rule)
    plan = _Plan(call, template, len(primals), 0, outputs)
    return list(_Lifted.apply(plan, *primals, *outputs, *residuals))


class _Lifted(Function):
    """`_Override` for functorch and forward mode: every tensor is an input, so that each level sees its own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(plan, *tensors):
        return tuple([y.detach() for y in tensors[plan.outputs_from : plan.residuals_from]])

    @staticmethod
    def setup_context(ctx, inputs, output):
        plan, *tensors = inputs
        ctx.plan = plan
        kept = tensors[plan.n_primals : plan.outputs_from] + tensors[plan.residuals_from :]
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        if not all(plan.inexact):
            ctx.mark_non_differentiable(*[y for y, inexact in zip(output, plan.inexact, strict=True) if not inexact])

    @staticmethod
    def backward(ctx, *upstreams):
        plan = ctx.plan
        saved = ctx.saved_tensors
        n_variables = plan.outputs_from - plan.n_primals
        upstreams = [u if inexact else None for u, inexact in zip(upstreams, plan.inexact, strict=True)]
        rule = _rules.lower(plan.template, saved[n_variables:])
        grads, variable_grads = plan.call.backward(rule, upstreams, list(saved[:n_variables]))
        rest = len(plan.inexact) + len(saved) - n_variables
        return (None, *grads, *variable_grads, *[None] * rest)
