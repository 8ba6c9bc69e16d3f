"""Custom gradients: the rule is the map of one step, whose results are all those of the function."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np

from multiop import errors
from multiop._rules import closures

from .._record import Leaf, Node, Owner, Traced, array_of, become_output, is_inexact, is_traced, kept, now
from ..conversion import convert, own
from ._walk import history, leaf


def stop_gradient(x):
    """Return the value; what was traced stays it, so that it can be the output of a function with a rule."""
    array = own(convert(array_of(x)), [array_of(x)])
    return Traced(array, Leaf(array, x.node.owners, is_constant=True)) if is_traced(x) else array


def custom_call(call, primals):
    start = now()
    if Owner.n_open:  # a rule may close over what the caller changes later
        primals = [kept(x) for x in primals]
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
    arrays = [kept(y) if x is y else y for x, y in zip(outputs, arrays, strict=True)]  # the function may keep it

    def pull(upstreams):
        upstreams = [
            u if u is None or isinstance(u, Traced) else np.array(u) for u in upstreams
        ]  # a rule may write there
        with carrying(constants, rule) if constants else contextlib.nullcontext(rule) as carried:
            grads, grads_of_variables = call.backward(carried, upstreams, variables)
        grads = *itertools.compress(grads, are_traced), *grads_of_variables
        return [grad.held() if isinstance(grad, Traced) else grad for grad in grads]

    node = Node(inputs, pull, arrays, call.rule_name)
    constants = {}
    for k, y in enumerate(outputs):
        if type(y) is Traced and y.node.number > start and y.node not in inside:
            become_output(y, node, k)
        elif is_inexact(y) and not isinstance(y, Traced) and not any(y is x for x in leaves):
            constants[id(y)] = constant = Traced(arrays[k], Leaf(arrays[k], is_constant=True))
            become_output(constant, node, k)
    return [Traced(y, node, k) if is_inexact(y) else y for k, y in enumerate(arrays)]


@contextlib.contextmanager
def carrying(constants, rule):
    """Yield the rule with traced arrays in place of the arrays of the function's outputs that it closes over, by id."""
    box = [rule]
    walk = closures.Walk(np.ndarray, lambda x: id(x) in constants)
    if constants:
        walk.enter(box, True)
    places = [place for place in walk.places if any(id(walk.tensors[k]) in constants for k in place.numbers)]
    with closures.carrying(places, [constants.get(id(x), x) for x in walk.tensors]):
        yield box[0]


def closed_over(outputs, start, inside=()):
    """Return the traced arrays from before `start` that went into `outputs`, in the order of their use."""
    places = {}
    for node in history(outputs, start):
        if node not in inside:
            for before, k in node.inputs:
                if before.number < start and (before, k) not in places:
                    array = before.results[k]()  # NaN if nobody has it any more, and so nobody can use it
                    places[before, k] = Traced(np.full((), np.nan) if array is None else array, before, k)
    return list((places | {y.place: y for y in outputs if is_traced(y) and y.node.number < start}).values())
