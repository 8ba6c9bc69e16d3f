"""The graph that autograd records, seen from outside: what may still be differentiated with respect to what."""

from __future__ import annotations

import itertools
import threading

import torch
from torch.autograd.function import BackwardCFunction

from .._internals import all_levels, hides_levels, metadata_of, number_of, requires_grad, tracing_state
from .custom_gradient import hidden_edges, is_live, replay

_inner = set()  # classes of nodes of PyTorch's own that are no leaves, as they are met


class _Inside(threading.local):
    """How many transforms and tapes this thread is in.

    The `start` of `detach_unlinked` for one more is the sequence number: what was recorded before belongs to those. At
    the outermost level it may be a tape's, which is over, so its leaves are asked: it is 0.
    """

    depth = 0


inside = _Inside()


def nodes_of(ys):
    """Return the nodes of the graph of `ys`, each once."""
    seen, nodes = {None}, []
    for y in ys:
        if (node := y.grad_fn) not in seen:
            seen.add(node)
            nodes.append(node)
    for node in nodes:  # the list grows during the loop
        for parent, _ in node.next_functions:
            if parent not in seen:
                seen.add(parent)
                nodes.append(parent)
    return nodes


def are_linked(ys, start=0):
    """Say for each of `ys` whether code outside may differentiate it: whether its graph reaches a live leaf.

    What this thread recorded before the sequence number `start` is taken for linked, so the walk ends there.
    """
    levels, found = list(map(all_levels, ys)), [False] * len(ys)
    if not start and not reach_out([y for of_y in levels for y in of_y]):  # the usual case, in half the time
        return found
    verdicts = {None: False}  # node -> whether it leads to a live leaf
    for k, of_y in enumerate(levels):
        for y in of_y:
            found[k] = found[k] or _is_linked(y, start, verdicts)
    return found


def reach_out(ys):
    """Say whether the graph of `ys` has a live leaf, or a node that may have edges beyond the graph."""
    seen, nodes, start = {None}, [], getattr(replay, "start", 0)
    for y in ys:
        node = y.grad_fn
        if node is None:
            if y.requires_grad and is_live(y):
                return True
        elif node not in seen:
            seen.add(node)
            nodes.append(node)
    for node in nodes:  # the list grows during the loop
        if type(node) not in _inner:
            variable = getattr(node, "variable", None)
            if variable is not None:
                if getattr(variable, "retired_at", -1) < start and is_live(variable):
                    return True
            elif hidden_edges(node) != []:
                return True
            elif not isinstance(node, BackwardCFunction):
                _inner.add(type(node))
        for parent, _ in node.next_functions:
            if parent not in seen:
                seen.add(parent)
                nodes.append(parent)
    return False


def _is_linked(y, start, verdicts):
    if y.grad_fn is None:
        return y.requires_grad and is_live(y)
    nodes, edges = [], [iter([(y.grad_fn, y.output_nr)])]  # the path from `y`, and what is left to walk at each of it
    while edges:
        for node, _ in edges[-1]:
            known = verdicts.get(node)
            if known is None:
                is_inner = type(node) in _inner
                variable = None if is_inner else getattr(node, "variable", None)
                hidden = () if is_inner or variable is not None else hidden_edges(node)
                if variable is not None:
                    known = verdicts[node] = is_live(variable)
                elif hidden is None or (start > number_of(node) and is_older(node, start)):
                    known = verdicts[node] = True
                else:
                    if not (is_inner or isinstance(node, BackwardCFunction)):
                        _inner.add(type(node))
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
    results, tracked = list(xs), []
    for k, x in enumerate(results):
        if isinstance(x, torch.Tensor) and (x.requires_grad or requires_grad(x)):
            tracked.append(k)
    if tracked and tracing_state() is None and not hides_levels():  # torch.jit.trace would record that it is detached
        linked = are_linked([results[k] for k in tracked], start) if torch.is_grad_enabled() else [False] * len(tracked)
        for k, is_linked in zip(tracked, linked, strict=True):
            if not is_linked:
                results[k] = results[k].detach()
    return results
