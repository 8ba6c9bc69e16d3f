"""Custom gradients: the rule is the map of one step, whose results are all those of the function."""

from __future__ import annotations

import itertools

from multiop import errors

from .._record import Node, Traced, array_of, become_output, is_inexact, is_traced
from ..conversion import convert, own
from .walk import history, leaf, now


def stop_gradient(x):
    """Return the value; what was traced stays it, so that it can be the output of a function with a rule."""
    array = own(convert(array_of(x)), [array_of(x)])
    return Traced(array, Node([], lambda grads: [], [array], x.node.owners)) if is_traced(x) else array


def custom_call(call, primals):
    start = now()
    leaves = [leaf(x) if is_traced(x) else array_of(x) for x in primals]
    outputs, rule = call.forward(leaves)
    inside = {x.node for x in leaves if isinstance(x, Traced)}
    variables = closed_over(outputs, start, inside)
    if variables and not call.wants_variables():
        raise errors.ClosedOverError(
            f"{call.name} closes over a differentiable value whose gradient would be dropped; pass it as an argument, "
            f"or take op_stop_gradient of it"
        )
    arrays = own(list(map(array_of, outputs)), list(map(array_of, primals)))
    are_traced = [isinstance(x, Traced) for x in leaves]
    inputs = [*itertools.compress(primals, are_traced), *variables]
    if not inputs:
        return arrays

    def pull(upstreams):
        grads, grads_of_variables = call.backward(rule, upstreams, variables)
        grads = *itertools.compress(grads, are_traced), *grads_of_variables
        return [grad.held() if isinstance(grad, Traced) else grad for grad in grads]

    node = Node(inputs, pull, arrays, (), call.name)
    for k, y in enumerate(outputs):
        if type(y) is Traced and y.node.number > start and y.node not in inside:
            become_output(y, node, k)
    return [Traced(y, node, k) if is_inexact(y) else y for k, y in enumerate(arrays)]


def closed_over(outputs, start, inside=()):
    """Return the traced arrays from before `start` that went into `outputs`, in the order of their use."""
    nodes = [node for node in history(outputs, start) if node not in inside]
    used = [x for node in nodes for x in node.inputs] + [y for y in outputs if is_traced(y)]
    return list({x.place: x for x in used if x.node.number < start}.values())
