"""Custom gradients on PyTorch's public API alone: reverse mode to any order, outside of torch.func's transforms.

As in `custom_gradient`, the function runs once, on aliases of the primals, and its rule is the gradient of an autograd
Function. Only the graph tells what the function closes over from its primals.
"""

from __future__ import annotations

import torch

from .. import _internals
from ..conversion import is_dtensor
from . import _rules
from .custom_gradient import Override, alias, are_inexact, closed_over_fault, find_returned, is_live, names_of, save


@_internals.out_of_graphs
def custom_call(call, primals):
    if _internals.is_transformed():
        raise _internals.unknown("a custom gradient in forward mode, or inside multiop.vmap or a torch.func transform,")
    if torch.jit.is_tracing():  # which would record the outputs without the rule
        raise _internals.unknown("a custom gradient inside torch.jit.trace")
    if not torch.is_grad_enabled():
        return call.forward(primals)[0]
    call.spread = [k for k, x in enumerate(primals) if is_dtensor(x)]
    aliases = [alias(x) if x.requires_grad else x for x in primals]
    names = names_of(call)
    outputs, rule = call.forward(aliases)
    if not any(x.requires_grad for x in (*aliases, *outputs)):
        return outputs
    ends = {x.grad_fn for x in aliases}
    if found := _beyond(outputs, ends, names):
        if call.wants_variables():
            raise _internals.unknown("a gradient function with variables, of a function that closes over some,")
        raise closed_over_fault(call, found)
    residuals = _rules.closed_over_tensors([rule], outputs)
    returned = find_returned(residuals, outputs, aliases)
    reaches_beyond = bool(_beyond([x for i, x in enumerate(residuals) if i not in returned], ends, names))
    return _Override.apply((call, [rule], None, reaches_beyond, outputs, residuals, returned, []), *primals)


class _Override(Override):
    """The outputs, with the rule for their gradient; an output that shares memory with an input is copied."""

    @staticmethod
    def forward(ctx, plan, *inputs):
        ctx.call, ctx.box, places, ctx.reaches_beyond, outputs, residuals, returned, variables = plan
        ctx.inexact = are_inexact(outputs)
        shared = {_memory(x) for x in inputs}
        results = tuple([y.detach().clone() if _memory(y) in shared else y.detach() for y in outputs])
        save(ctx, places, results, residuals, returned, variables)
        ctx.mark_non_differentiable(*[y for y, inexact in zip(results, ctx.inexact, strict=True) if not inexact])
        return results


def _memory(x):
    return x.untyped_storage().data_ptr() if x.layout is torch.strided else id(x)


def _beyond(xs, ends, names):
    """Return `(use, name, tensor)` for what `xs` depend on other than through the graph nodes `ends`."""
    found, seen = [], {None, *ends}
    edges = [(x.grad_fn, x.output_nr) for x in xs if x.grad_fn is not None]
    leaves = [x for x in xs if x.grad_fn is None and x.requires_grad]
    for edge in edges:  # the list grows during the loop
        if edge in names and edge[0] not in ends:
            found.append((len(found), *names[edge]))
        elif edge[0] not in seen:
            seen.add(edge[0])
            leaves += [edge[0].variable] if hasattr(edge[0], "variable") else []
            edges += edge[0].next_functions
    found += [(len(found), *names.get(x, ("a tensor", x))) for x in {id(x): x for x in leaves}.values() if is_live(x)]
    return found
