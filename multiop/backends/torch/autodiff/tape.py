"""The tape. PyTorch records by itself: a tape turns recording on and makes tensors require a gradient."""

from __future__ import annotations

import contextlib
import threading

import torch

from multiop import errors

from .._internals import (
    IS_TESTED,
    are_transforms_active,
    is_view,
    number_of,
    outside_transforms,
    sequence_number,
    unknown,
)
from ..conversion import convert, is_compiling
from ._graph import are_linked, detach_unlinked, inside, is_older, nodes_of
from .custom_gradient import edge_of, hidden_edges, is_live, leaf, recording
from .gradients import differentiate, is_any_known, remember

_local = threading.local()  # tapes record per thread
_lent = {}  # id -> [leaf, number of tapes]: leaves that require a gradient as long as a tape watches them
_lock = threading.Lock()


class Tape:
    def __init__(self, persistent, watch_accessed_variables):
        if not IS_TESTED:
            raise unknown("GradientTape on PyTorch")
        self._watches_variables = watch_accessed_variables
        self._stays = persistent
        self._watched = {}  # watched tensors, by id
        self._variables = {}
        self.begin = None  # what was recorded before this sequence number is the caller's
        self._start = self._end = None  # autograd's sequence numbers at the last reset and at the end
        self._forgotten = {}  # tensors watched before the last reset, by id
        self._borrowed = {}  # leaves that require a gradient while this tape records, by id
        self._copied = {}  # tensors of inference mode, which were copied instead, by id
        self._given = {}  # the caller's own tensors, by the id of the alias that stands for them

    def __enter__(self):
        if is_compiling():
            raise errors.UnsupportedError(
                "torch.compile cannot trace a tape; use multiop.grad or multiop.vjp there, or compile with "
                "multiop.jit: https://docs.pytorch.org/docs/stable/torch.compiler.html"
            )
        self._recording = recording()
        self._recording.__enter__()
        start = sequence_number() if inside.depth else 0
        inside.depth += 1
        self.begin = start if self.begin is None else self.begin
        if self._stays:
            remember(self)
        self._end = None
        self._thread = threading.get_ident()
        _borrow(self._borrowed.values())
        _local.depth = _depth() + 1
        return self

    def __exit__(self, *exception):
        _local.depth -= 1
        inside.depth -= 1
        self._end = sequence_number()
        self._recording.__exit__(*exception)
        _give_back(self._borrowed.values())

    def watch(self, x):
        x = convert(x)
        if are_transforms_active():
            raise errors.UnsupportedError(
                "a tape cannot record inside torch.func transforms (multiop.vmap, multiop.jvp), where no tensor can be "
                "made to require a gradient; use multiop.grad or multiop.vjp there: "
                "https://docs.pytorch.org/docs/stable/func.ux_limitations.html"
            )
        if isinstance(x, torch.nn.Parameter) and x.requires_grad:
            self._variables[id(x)] = x
        elif x.is_inference():
            self._copied[id(x)] = x
            x = leaf(x)
        elif id(x) not in self._borrowed:
            if self._is_left_over(x):
                x.detach_()  # in place, since the caller may go on with `x` itself
            if id(x) in _lent or not x.requires_grad:
                self._borrowed[id(x)] = x
                is_first = _borrow([x])
            else:
                is_first = False
            if not is_first:
                given, x = x, leaf(x)  # an alias: the tensor may have been used before it was watched
                self._given[id(x)] = given
        self._watched[id(x)] = x
        return x

    def gradient(self, targets, sources, output_gradients):
        for k, x in enumerate(sources):
            if id(x) in self._copied:
                raise errors.TapeError(
                    f"GradientTape.gradient: sources[{k}] was made in inference mode, so a copy of it was recorded: "
                    f"write x = tape.watch(x), and use that x"
                )
        with self.borrowing():
            grads = self._gradient(targets, sources, output_gradients)
        return detach_unlinked(grads, self.begin)

    def _is_left_over(self, x):
        """Say whether `x` is on a graph only because a tape recorded it that is over; it can be detached in place."""
        if x.is_leaf or is_view(x) or self.begin or is_any_known(self):
            return False
        return not are_linked([x])[0]

    def has_borrowed(self, x):
        """Say whether `x` requires a gradient only because this tape watches it."""
        return self._borrowed.get(id(x)) is x

    @contextlib.contextmanager
    def borrowing(self):
        """Make what this tape watches require a gradient inside the context."""
        leaves = list(self._borrowed.values())
        _borrow(leaves)
        try:
            yield
        finally:
            _give_back(leaves)

    def _gradient(self, targets, sources, output_gradients):
        seeds = output_gradients or [None] * len(targets)
        pairs = [(y, seed) for y, seed in zip(targets, seeds, strict=True) if not self._is_outside(y)]
        targets = [y for y, _ in pairs]
        seeds = [torch.ones_like(y) if seed is None else seed for y, seed in pairs]
        leaves, reaches_beyond = _leaves(targets, self.begin)
        for x in leaves:
            if self._watches_variables and isinstance(x, torch.nn.Parameter):
                self._variables.setdefault(id(x), x)
        known = {id(x) for x in sources} | self._watched.keys()
        # needed while a tape records, and where autograd may differentiate with respect to more than this tape does
        create_graph = torch.is_grad_enabled() and (
            _depth() > 0
            or reaches_beyond
            or any(id(x) not in known and is_live(x) for x in leaves)
            or any(x.grad_fn is not None for x in self._watched.values())
            or any(seed.requires_grad for seed in seeds)
        )
        followed = self._replace_aliases(targets, sources) if self._given else sources
        grads = differentiate(targets, followed, seeds, [], create_graph)
        return [None if self._is_ignored(x) else g for g, x in zip(grads, sources, strict=True)]

    def _replace_aliases(self, targets, sources):
        """Return what to differentiate with respect to: the caller's own tensor where it was used beside its alias."""
        edges = {}  # of each such tensor -> place of its alias in `sources`
        for k, x in enumerate(sources):
            if x.grad_fn is not None and (given := self._given.get(id(x))) is not None:
                edges[edge_of(given)] = k
        uses = {k: set() for k in edges.values()}
        for node in nodes_of(targets) if edges else ():
            for edge in node.next_functions:
                if (k := edges.get(edge)) is not None and node is not sources[k].grad_fn:
                    uses[k].add(number_of(node) < number_of(sources[k].grad_fn))
        for k, when in uses.items():
            if len(when) > 1:
                raise errors.TapeError(
                    f"GradientTape.gradient: sources[{k}] was used itself before and after it was watched, which "
                    f"PyTorch cannot tell apart: write x = tape.watch(x), and use that x from then on"
                )
        return [self._given[id(x)] if uses.get(k) == {False} else x for k, x in enumerate(sources)]

    def _is_outside(self, y):
        """Say whether `y` was computed outside the recording; sequence numbers are per thread, on accelerators too."""
        if y.grad_fn is None or is_view(y) or y.device.type != "cpu" or self._thread != threading.get_ident():
            return False
        number = number_of(y.grad_fn)
        if self._start is not None and number < self._start:
            return True
        # a number that this thread has not reached belongs to another thread
        return self._end is not None and self._end <= number < sequence_number()

    def _is_ignored(self, x):
        if id(x) in self._forgotten and id(x) not in self._watched:
            return True
        return not self._watches_variables and isinstance(x, torch.nn.Parameter) and id(x) not in self._watched

    @contextlib.contextmanager
    def stop_recording(self):
        depth, _local.depth = _depth(), 0
        try:
            with torch.no_grad():
                yield
        finally:
            _local.depth = depth

    def reset(self):
        self._forgotten.update(self._watched)
        self._watched.clear()
        self._variables.clear()
        self._start = sequence_number()

    def watched_variables(self):
        return list(self._variables.values())


def _borrow(leaves):
    """Make `leaves` require a gradient until `_give_back`; say whether the last of them did not before."""
    is_first = False
    for x in leaves:
        with _lock:
            entry = _lent.setdefault(id(x), [x, 0])
            entry[1] += 1
            is_first = entry[1] == 1
            if is_first:
                _set_requires_grad(x, True)
    return is_first


def _give_back(leaves):
    for x in leaves:
        with _lock:
            entry = _lent[id(x)]
            entry[1] -= 1
            if not entry[1]:
                del _lent[id(x)]
                _set_requires_grad(x, False)


def _set_requires_grad(x, value):
    with outside_transforms():  # functorch forbids it for any tensor
        x.requires_grad_(value)


def _depth():
    """Return how many tapes are recording in this thread."""
    return getattr(_local, "depth", 0)


def _leaves(targets, begin):
    """Return the leaves of the graph of `targets` by first use, and whether it depends on others.

    It does through a custom gradient, or through what was recorded before the sequence number `begin`.
    """
    found, seen, reaches_beyond = {}, set(), False
    stack = [y.grad_fn for y in targets if y.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        reaches_beyond = reaches_beyond or is_older(node, begin) or hidden_edges(node) != []
        number = number_of(node)
        for place, (parent, _) in enumerate(node.next_functions):
            if parent is None:
                continue
            variable = getattr(parent, "variable", None)
            if variable is None:
                stack.append(parent)
            elif variable not in found or (number, place) < found[variable]:
                found[variable] = (number, place)
    return sorted(found, key=found.get), reaches_beyond
