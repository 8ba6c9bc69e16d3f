"""The tape: of the record that a traced array has, what was made while it ran, from what it watches."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np

from .._record import Traced
from ..conversion import convert
from .walk import Owner, history, leaf, now, settled, walk


class Tape:
    def __init__(self, persistent, watch_accessed_variables):
        self._persistent = persistent
        self.reset()

    def __enter__(self):
        self._spans.append([now(), math.inf])
        return self

    def __exit__(self, *error):
        self._spans[-1][1] = now()

    def watch(self, x):
        x = leaf(convert(x), self._owner)
        self._watched.add(x.node)
        return x

    def gradient(self, targets, sources, output_gradients):
        seeds = [np.ones(y.shape, y.dtype) for y in targets] if output_gradients is None else output_gradients
        known = set()
        for node in history(targets):
            was_recorded = any(start < node.number < end for start, end in self._spans)
            if node in self._watched or (was_recorded and any(x.node in known for x in node.inputs)):
                known.add(node)
        sources = [x if isinstance(x, Traced) and x.node in self._watched | known else None for x in sources]
        grads = walk(targets, seeds, sources, (), sorted(known, key=lambda node: node.number))
        is_recording = self._persistent and self._spans[-1][1] == math.inf
        return settled(grads, *(() if is_recording else (self._owner,)))

    @contextmanager
    def stop_recording(self):
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def reset(self):
        is_running = bool(getattr(self, "_spans", None))
        self._spans, self._watched, self._owner = [], set(), Owner()
        if is_running:
            self.__enter__()

    def watched_variables(self):
        return ()
