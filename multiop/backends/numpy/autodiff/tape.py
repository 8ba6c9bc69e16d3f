"""The tape: the owner of what it watches, which goes through the record that came from there."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from multiop import errors

from .._record import Owner, Traced
from ..conversion import convert
from ._walk import history, leaf, settled, walk


class Tape:
    def __init__(self, persistent, watch_accessed_variables):
        self._owner, self._used, self._given = Owner(is_tape=True), [], []

    def __enter__(self):
        self._owner.__enter__()
        return self

    def __exit__(self, *error):
        self._owner.__exit__()

    def watch(self, x):
        self._given.append(x)
        return leaf(convert(x), self._owner)

    def gradient(self, targets, sources, output_gradients):
        if any(x is given for x in sources for given in self._given if not isinstance(x, Traced)):
            raise errors.TapeError(
                "an array of NumPy cannot record: compute with what tape.watch returned, x = tape.watch(x), and ask "
                "for the gradient with respect to that"
            )
        seeds = [np.ones(y.shape, y.dtype) for y in targets] if output_gradients is None else output_gradients
        nodes = [node for node in history(targets) if self._owner in node.owners]
        self._used += nodes
        sources = [x if isinstance(x, Traced) and self._owner in x.node.owners else None for x in sources]
        return settled(walk(targets, seeds, sources, (), nodes))

    @contextmanager
    def stop_recording(self):
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def reset(self):
        self.__exit__()
        self._owner = Owner(is_tape=True).__enter__()

    def watched_variables(self):
        return ()

    def __del__(self):
        """Free what only this tape could differentiate, though a result of it, such as a loss, may be kept."""
        for node in self._used:
            if node.owners == {self._owner}:
                node.forget()
