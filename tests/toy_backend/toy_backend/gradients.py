"""Reverse mode: a walk from results to inputs, newest node first."""

from .conversion import Node, Tensor
from .elementwise import op_add


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    return walk(ys, grad_ys, xs, stop_gradients)


def leaf(x):
    """Return `x` as a tensor of its own that gradients can be asked for; they go on to `x`."""
    return Tensor(x.array, Node([x], lambda grads: grads))


def walk(ys, grad_ys, xs, stops=(), nodes=None):
    """Return the gradient for each of `xs`, `None` where none arrives; nothing passes through `stops`."""
    grads = {}

    def receive(x, grad):
        if grad is not None:
            grads[x.place] = op_add(grads[x.place], grad) if x.place in grads else grad

    for y, grad in zip(ys, grad_ys, strict=True):
        receive(y, grad)
    stopped = {x.place for x in stops}
    for node in reversed(between(xs, history(ys) if nodes is None else nodes)):
        upstreams = [None if (node, k) in stopped else grads.get((node, k)) for k in range(node.size)]
        if any(grad is not None for grad in upstreams):
            for x, grad in zip(node.inputs, node.pull(upstreams), strict=True):
                receive(x, grad)
    return [grads.get(x.place) for x in xs]


def history(ys, until=()):
    """Return the nodes that `ys` came from, oldest first, without those of `until` and before."""
    found, stack = set(), [y.node for y in ys]
    while stack:
        node = stack.pop()
        if node is not None and node not in found and node not in until:
            found.add(node)
            stack += [x.node for x in node.inputs]
    return sorted(found, key=lambda node: node.number)


def settled(ys, *spans):
    """Return `ys`, as constants where nothing that they came from is older than a transform, told by its `spans`."""
    return [
        y
        if any(not any(start <= node.number <= end for start, end in spans) for node in history([y]))
        else Tensor(y.array)
        for y in ys
    ]


def now():
    """Return a number between those of the nodes so far and of those to come."""
    return Node((), None).number


def between(xs, nodes):
    """Return those of `nodes`, oldest first, that one of `xs` has gone into."""
    places, found = {x.place for x in xs}, {}
    for node in nodes:
        if any(x.place in places or x.node in found for x in node.inputs):
            found[node] = None
    return list(found)
