"""Reverse mode: a walk from results to inputs, newest step first."""

from __future__ import annotations

import weakref

import numpy as np

from .._record import Node, Traced, ops


class Owner:
    """What may ask for gradients with respect to the leaves that it made, as long as it lives."""


def leaf(x, owner=None):
    """Return `x` as a traced array of its own that gradients can be asked for; they go on to `x`."""
    owner = owner and weakref.ref(owner)
    if isinstance(x, Traced):
        return Traced(x.array, Node([x], lambda grads: grads, [x], None, owner))
    x = np.array(x)
    return Traced(x, Node([], lambda grads: [], [x], None, owner))


@np.errstate(all="ignore")
def walk(ys, grad_ys, xs, stops=(), nodes=None):
    """Return the gradient for each of `xs`, `None` where none arrives; nothing passes through `stops`."""
    grads = {}

    def receive(x, grad):
        if grad is not None and isinstance(x, Traced):
            grads[x.place] = ops.add(grads[x.place], grad) if x.place in grads else grad

    for y, grad in zip(ys, grad_ys, strict=True):
        receive(y, grad)
    stopped = {x.place for x in stops if isinstance(x, Traced)}
    for node in reversed(between(xs, history(ys) if nodes is None else nodes)):
        upstreams = [None if (node, k) in stopped else grads.get((node, k)) for k in range(len(node.specs))]
        if any(grad is not None for grad in upstreams):
            filled = [
                spec and np.zeros(*spec) if u is None else u for u, spec in zip(upstreams, node.specs, strict=True)
            ]
            for x, grad in zip(node.inputs, node.pull(filled), strict=True):
                receive(x, grad)
    return [grads.get(x.place) if isinstance(x, Traced) else None for x in xs]


def history(ys, until=()):
    """Return the nodes that `ys` came from, oldest first, without those of `until` and before."""
    nodes, stack = set(), [y.node for y in ys if isinstance(y, Traced)]
    while stack:
        node = stack.pop()
        if node not in nodes and node not in until:
            nodes.add(node)
            stack += [x.node for x in node.inputs]
    return sorted(nodes, key=lambda node: node.number)


def settled(ys, *done):
    """Return `ys`, with arrays of their own where nobody, but for the owners in `done`, may still differentiate them."""
    return [
        y.array.copy() if isinstance(y, Traced) and not any(is_owned(node, done) for node in history([y])) else y
        for y in ys
    ]


def is_owned(node, done):
    owner = node.owner and node.owner()
    return owner is not None and owner not in done


def now():
    """Return a number between those of the nodes so far and of those to come."""
    return Node((), None, ()).number


def between(xs, nodes):
    """Return those of `nodes`, oldest first, that one of `xs` has gone into."""
    places = {x.place for x in xs if isinstance(x, Traced)}
    later = {}
    for node in nodes:
        if any(x.place in places or x.node in later for x in node.inputs):
            later[node] = None
    return list(later)
