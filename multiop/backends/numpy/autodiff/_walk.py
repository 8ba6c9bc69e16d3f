"""Reverse mode: a walk from results to inputs, newest step first."""

from __future__ import annotations

import numpy as np

from .._record import Node, Traced, array_of, is_traced, ops


def leaf(x, *owners):
    """Return `x` as a traced array of its own that gradients can be asked for; they go on to `x`."""
    if is_traced(x):
        return Traced(x.array, Node([x], lambda grads: grads, [x], owners, is_leaf=True))
    x = np.array(array_of(x))
    return Traced(x, Node([], lambda grads: [], [x], owners, is_leaf=True))


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
            if not node.tells_unused:
                pairs = zip(upstreams, node.specs, strict=True)
                upstreams = [spec and np.zeros(*spec) if u is None else u for u, spec in pairs]
            for x, grad in zip(node.inputs, node.pull(upstreams), strict=True):
                receive(x, grad)
    return [grads.get(x.place) if isinstance(x, Traced) else None for x in xs]


def history(ys, since=-1):
    """Return the nodes that `ys` came from, oldest first, without those of the number `since` and before."""
    nodes, stack = set(), [y.node for y in ys if isinstance(y, Traced)]
    while stack:
        node = stack.pop()
        if node not in nodes and node.number > since:
            nodes.add(node)
            stack += [x.node for x in node.inputs]
    return sorted(nodes, key=lambda node: node.number)


def settled(ys):
    """Return `ys`, as arrays of their own where nothing records them any more."""
    return [y if y is None or is_traced(y) else np.array(array_of(y)) for y in ys]


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
