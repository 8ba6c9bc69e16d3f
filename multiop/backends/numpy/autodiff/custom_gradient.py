"""Custom gradients: the rule is the map of one step, whose results are all those of the function."""

from __future__ import annotations

import contextlib
import itertools
import operator

import numpy as np

from multiop import errors
from multiop._rules import closures

from .._record import Leaf, Node, Owner, Traced, array_of, become_output, is_inexact, is_traced, now, only_read
from ..conversion import convert, own
from ._walk import history, leaf


def stop_gradient(x):
    """Return the value; what was traced stays it, so that it can be the output of a function with a rule."""
    array = own(convert(array_of(x)), [array_of(x)])
    return Traced(array, Leaf(array, x.node.owners, is_constant=True)) if is_traced(x) else array


def custom_call(call, primals, may_be_bare=True):
    """Run the function, on plain arrays where a first derivative is all that the one open transform needs."""
    start, are_traced = now(), list(map(is_traced, primals))
    if Owner.n_open and not all(are_traced):  # a rule may close over what the caller changes later
        primals = [
            x if is_recorded else np.array(array_of(x)) for x, is_recorded in zip(primals, are_traced, strict=True)
        ]
    is_bare = may_be_bare and Owner.n_open == 1 and True in are_traced and is_used_once(primals[are_traced.index(True)])
    enter = only_read if is_bare else leaf
    leaves = [enter(x) if is_recorded else array_of(x) for x, is_recorded in zip(primals, are_traced, strict=True)]
    outputs, rule = call.forward(leaves)
    arrays, variables, inside = list(map(array_of, outputs)), [], set()
    if not is_bare or any(map(operator.is_not, arrays, outputs)):
        inside = {x.node for x in leaves if isinstance(x, Traced)}
        variables = closed_over(outputs, start, inside)
    if variables and not call.wants_variables():
        raise errors.ClosedOverError(
            f"{call.name} closes over a differentiable value whose gradient would be dropped; pass it as an argument, "
            f"or take op_stop_gradient of it"
        )
    inputs = [*itertools.compress(primals, are_traced), *variables]
    if not inputs:
        return own(arrays, list(map(array_of, primals)))
    arrays = list(map(np.array, arrays))  # the function may keep its own

    def pull(upstreams):
        if is_bare and any(map(is_traced, primals)):  # it will be differentiated again, after all
            again = custom_call(call, primals, False)
            return next(y.node for y in again if isinstance(y, Traced)).pull(upstreams)
        upstreams = [np.array(u) if isinstance(u, np.ndarray) else u for u in upstreams]  # a rule may write there
        if constants:
            with carrying(constants, rule) as carried:
                grads, grads_of_variables = call.backward(carried, upstreams, variables)
        else:
            grads, grads_of_variables = call.backward(rule, upstreams, variables)
        grads = *itertools.compress(grads, are_traced), *grads_of_variables
        return [grad.held() if isinstance(grad, Traced) else grad for grad in grads]

    node = Node(inputs, pull, arrays, None if call.is_op else call.rule_name)
    constants = {}
    for k, y in enumerate(outputs):
        if type(y) is Traced and y.node.number > start and y.node not in inside:
            become_output(y, node, k)
        elif not is_bare and is_inexact(y) and not isinstance(y, Traced) and not any(y is x for x in leaves):
            constants[id(y)] = constant = Traced(arrays[k], Leaf(arrays[k], is_constant=True))
            become_output(constant, node, k)
    return [Traced(y, node, k) if is_inexact(y) else y for k, y in enumerate(arrays)]


def is_used_once(x):
    """Say whether the one open transform, which records `x`, differentiates once, when it is over."""
    for owner in x.node.owners:
        if owner.is_open:
            return owner.is_used_once
    return False


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
