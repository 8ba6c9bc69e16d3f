"""Reverse mode: a walk from results to inputs, newest step first."""

from __future__ import annotations

import operator

import numpy as np

from .. import kernels
from .._record import Entries, Leaf, Traced, array_of, is_traced, ops


def leaf(x, *owners):
    """Return `x` as a traced array of its own that gradients can be asked for; they go on to `x`."""
    if is_traced(x):
        return Traced(x.array, Leaf(x.array, owners, before=x))
    x = np.array(array_of(x))
    return Traced(x, Leaf(x, owners))


def walk(ys, grad_ys, xs, stops=(), nodes=None, once=None, path=None, settle=False):
    """Return the gradient for each of `xs`, `None` where none arrives; nothing passes through `stops`.

    What `once` alone owns is forgotten on the way: it is not walked again. `path` is what `between` gives. With
    `settle`, gradients are as `settled` returns them, and zeros where none arrives; each of `xs` has another place.
    """
    grads, own = {}, set()
    places = [x.place if isinstance(x, Traced) else None for x in xs]
    wanted, stopped = set(places), {x.place for x in stops if isinstance(x, Traced)} if stops else ()
    for y, grad in zip(ys, grad_ys, strict=True):
        if grad is not None and isinstance(y, Traced):
            receive(grads, own, y.place, grad)
    errors = kernels.ERRORS.set(kernels.IGNORED)
    try:
        if path is None:
            path = between(wanted, history(ys) if nodes is None else nodes)
        for node in reversed(path):
            upstreams, is_reached = [], False
            for k, spec in enumerate(node.specs):
                place = node, k
                grad = None if place in stopped else grads.get(place) if place in wanted else grads.pop(place, None)
                if grad is not None:
                    is_reached = True
                elif spec and not node.tells_unused:
                    grad = np.zeros(*spec)
                upstreams.append(grad)
            if is_reached:
                for place, grad in zip(node.inputs, node.pull(upstreams), strict=True):
                    if grad is not None:
                        if place in grads or type(grad) is Entries:
                            receive(grads, own, place, grad)
                        else:
                            grads[place] = grad
            if once is not None and len(node.owners) == 1 and once in node.owners:
                node.forget()
    finally:
        kernels.ERRORS.reset(errors)
    if not settle:
        return [grads.get(place) for place in places]
    found = [np.zeros(x.shape, x.dtype) if y is None else y for x, y in zip(xs, map(grads.get, places), strict=True)]
    return [y if place in own else settled([y])[0] for place, y in zip(places, found, strict=True)]


def receive(grads, own, place, grad):
    """Add a gradient to those of a place: to the sum itself, where that is an array of this walk's `own`."""
    there = grads.get(place)
    if type(grad) is Entries and not isinstance(there, Traced):
        if place not in own:
            there = np.zeros(grad.shape, grad.dtype) if there is None else np.array(there)
            own.add(place)
        grads[place] = grad.add_to(there)
        return
    grad = grad.array() if type(grad) is Entries else grad
    if there is None:
        grads[place] = grad
    elif isinstance(there, Traced) or isinstance(grad, Traced):
        grads[place] = ops.add(there, grad)
        own.discard(place)
    elif place in own:
        np.add(there, grad, out=there)
    else:
        total = grads[place] = np.add(there, grad)
        if type(total) is np.ndarray:
            own.add(place)


def history(ys, since=-1):
    """Return the nodes that `ys` came from, oldest first, without those of the number `since` and before."""
    nodes, stack = set(), [y.node for y in ys if isinstance(y, Traced)]
    while stack:
        node = stack.pop()
        if node not in nodes and node.number > since:
            nodes.add(node)
            for before, _ in node.inputs:
                stack.append(before)
    return sorted(nodes, key=NUMBER)


NUMBER = operator.attrgetter("number")


def settled(ys):
    """Return `ys`, as arrays of their own where nothing records them any more."""
    found = []
    for y in ys:
        is_kept = y is None or is_traced(y)
        found.append(y if is_kept else np.array(y.array if isinstance(y, Traced) else y))
    return found


def between(places, nodes):
    """Return those of `nodes`, oldest first, that one of `places` has gone into."""
    found, later = [], set()
    for node in nodes:
        for place in node.inputs:
            if place in places or place[0] in later:
                later.add(node)
                found.append(node)
                break
    return found
