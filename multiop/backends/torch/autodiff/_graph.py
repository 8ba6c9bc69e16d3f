"""The graph that autograd records, seen from outside: what may still be differentiated with respect to what."""

from __future__ import annotations

import itertools
import threading

import torch

from .._internals import all_levels, hides_levels, metadata_of, number_of, requires_grad, sequence_number
from .custom_gradient import hidden_edges, is_live

_local = threading.local()


def enter():
    """Enter a transform or a tape in this thread, until `leave`; return the `start` of `detach_unlinked` for it.

    Inside another one, what was recorded before belongs to that. At the outermost level it may be a tape's, which is
    over, so its leaves are asked.
    """
    depth = getattr(_local, "depth", 0)
    _local.depth = depth + 1
    return sequence_number() if depth else 0


def leave():
    _local.depth -= 1


def is_recording():
    """Say whether a transform or a tape is recording in this thread."""
    return getattr(_local, "depth", 0) > 0


def nodes_of(ys):
    """Return the nodes of the graph of `ys`, each once."""
    seen = dict.fromkeys(y.grad_fn for y in ys)
    seen.pop(None, None)
    nodes = list(seen)
    for node in nodes:  # the list grows during the loop
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen[parent] = None
                nodes.append(parent)
    return nodes


def are_linked(ys, start=0):
    """Say for each of `ys` whether code outside may differentiate it: whether its graph reaches a live leaf.

    What this thread recorded before the sequence number `start` is taken for linked, so the walk ends there.
    """
    verdicts = {None: False}  # node -> whether it leads to a live leaf
    return [any(_is_linked(level, start, verdicts) for level in all_levels(y)) for y in ys]


def _is_linked(y, start, verdicts):
    if y.grad_fn is None:
        return y.requires_grad and is_live(y)
    nodes, edges = [], [iter([(y.grad_fn, y.output_nr)])]  # the path from `y`, and what is left to walk at each of it
    while edges:
        for node, _ in edges[-1]:
            known = verdicts.get(node)
            if known is None:
                variable = getattr(node, "variable", None)
                if variable is not None:
                    known = verdicts[node] = is_live(variable)
                elif is_older(node, start) or (hidden := hidden_edges(node)) is None:
                    known = verdicts[node] = True
                else:
                    verdicts[node] = False  # unless one of its parents is linked
                    nodes.append(node)
                    edges.append(itertools.chain(node.next_functions, hidden))
                    break
            if known:
                verdicts.update(dict.fromkeys(nodes, True))
                return True
        else:
            edges.pop()
            if nodes:
                nodes.pop()
    return False


def is_older(node, start):
    """Say whether this thread recorded `node` before `start`; an accelerator's own threads have their own numbers."""
    return 0 < start > number_of(node) and metadata_of(node)[0].device.type == "cpu"


def detach_unlinked(xs, start=0):
    """Return `xs`, where each tensor whose graph no code outside can differentiate is detached from it."""
    tracked = [k for k, x in enumerate(xs) if isinstance(x, torch.Tensor) and requires_grad(x)]
    if not tracked or hides_levels():
        return list(xs)
    linked = are_linked([xs[k] for k in tracked], start) if torch.is_grad_enabled() else [False] * len(tracked)
    detached = {k: xs[k].detach() for k, is_linked in zip(tracked, linked, strict=True) if not is_linked}
    return [detached.get(k, x) for k, x in enumerate(xs)]
