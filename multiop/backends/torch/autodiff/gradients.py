"""`tf.gradients` on the graph that autograd records."""

from __future__ import annotations

import contextlib
import threading
import weakref

from multiop import errors

from .._internals import grads_of
from ..conversion import is_compiling
from ._graph import are_linked, detach_unlinked, inside, nodes_of

_tapes = weakref.WeakSet()  # persistent tapes, which may be used after their block
_lock = threading.Lock()


def remember(tape):
    """Let `gradients` find what a persistent tape watched after its block, when its leaves require no gradient."""
    with _lock:
        _tapes.add(tape)


def is_any_known(but):
    """Say whether a persistent tape other than `but` may still be used."""
    with _lock:
        return any(tape is not but for tape in _tapes)


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    if is_compiling():  # no tape records under a compiler
        return differentiate(ys, xs, grad_ys, stop_gradients, create_graph=True)
    with _lock:
        tapes = list(_tapes)
    if tapes:
        leaves = [*xs, *ys, *[node.variable for node in nodes_of(ys) if hasattr(node, "variable")]]
        tapes = [tape for tape in tapes if any(map(tape.has_borrowed, leaves))]
    with contextlib.ExitStack() as lent:
        for tape in tapes:
            lent.enter_context(tape.borrowing())
        if not any(are_linked(ys)) and not inside.depth:
            return None
        grads = differentiate(ys, xs, grad_ys, stop_gradients, create_graph=True)
    return detach_unlinked(grads, min(tape.begin for tape in tapes)) if tapes else grads


def differentiate(ys, xs, seeds, stops, create_graph):
    """Return the gradient for each of `xs`, `None` where it is not connected; nothing passes through `stops`."""
    grads = [None] * len(xs)
    for y, seed in zip(ys, seeds, strict=True):
        if not y.requires_grad:  # not on the graph, but it may be one of xs
            grads = [seed + (0 if g is None else g) if x is y else g for g, x in zip(grads, xs, strict=True)]
    roots = [(y, seed) for y, seed in zip(ys, seeds, strict=True) if y.requires_grad]
    edges = {(stop.grad_fn, stop.output_nr) for stop in stops if stop.grad_fn is not None}
    reached = _edges_reached([y for y, _ in roots], edges) if edges else None
    sources = {id(x): x for x in xs if x.requires_grad and (reached is None or _edge(x) in reached)}
    if not roots or not sources:
        return grads
    with _block_gradients(edges):
        try:
            ys, seeds = zip(*roots, strict=True)
            found = grads_of(ys, seeds, True, create_graph, tuple(sources.values()))
        except RuntimeError as error:
            if isinstance(error, NotImplementedError) or "derivative for" in str(error):
                raise errors.NoGradientError(str(error).split("\n")[0]) from error
            raise
    found = dict(zip(sources, found, strict=True))
    return [found.get(id(x), g) for x, g in zip(xs, grads, strict=True)]


def _edge(x):
    """Return the graph edge that a tensor comes from; a leaf is its own edge."""
    return id(x) if x.grad_fn is None else (x.grad_fn, x.output_nr)


def _edges_reached(ys, stops):
    """Return the edges that a gradient of `ys` reaches if nothing passes through `stops`."""
    reached = {_edge(y) for y in ys}
    stack = [y.grad_fn for y in ys if y.grad_fn is not None and _edge(y) not in stops]
    entered = set()
    while stack:
        node = stack.pop()
        if node in entered:
            continue
        entered.add(node)
        for parent, output in node.next_functions:
            if parent is None:
                continue
            leaf = getattr(parent, "variable", None)
            edge = (parent, output) if leaf is None else id(leaf)
            reached.add(edge)
            if edge not in stops:
                stack.append(parent)
    return reached


@contextlib.contextmanager
def _block_gradients(edges):
    """Block gradients at `edges` of the graph inside the context; what arrives there can still be returned."""
    blocked = {}
    for node, output in edges:
        blocked.setdefault(node, set()).add(output)

    def hook(outputs):
        return lambda grads: tuple(None if k in outputs else g for k, g in enumerate(grads))

    handles = [node.register_prehook(hook(outputs)) for node, outputs in blocked.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
