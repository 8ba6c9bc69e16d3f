"""Numbers drawn on the host, by arrays: few numbers for successive keys of a generator together, ahead of their turns.

They follow from the generator's seed and the number of its key, so what is kept is right for whoever has both.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from multiop._values import philox
from multiop._values.philox import Array
from multiop.random import _philox
from multiop.random._keys import AT_ONCE, Turn, keys_of, words_of

_AHEAD = 4 * AT_ONCE  # keys
_FEW = 128  # numbers of a draw, which take less time than its calls: it may be one of many that take turns
_SINGLY = 8  # draws of one kind before others are drawn ahead, which takes about their time
_KEPT = 32  # at most 4 MB


class Draw(NamedTuple):
    """A draw: `of` makes numbers of the words of one or two of a key's streams, each by itself, and of `options`."""

    of: Callable[..., Any]
    shape: tuple[int, ...]
    streams: tuple[int, ...]
    options: tuple[Any, ...]

    def __call__(self, key: tuple[int, int]) -> Array:
        """Return the numbers of a key, its words or a turn, in an array of their own."""
        n = _philox.count(self.shape)
        if type(key) is Turn:
            if 0 < n <= _FEW and next(_times_of(self, key.seed)) >= _SINGLY:
                return _rows_of(self, key.seed, key.number // _AHEAD)[key.number % _AHEAD, ...].copy()
            key = words_of(key)
        return self.of_words(functools.partial(philox.parts_on_host, key), n).reshape(self.shape)

    def of_words(self, words: Callable[[int, tuple[int, ...]], Iterable[Array]], n: int) -> Array:
        """Return numbers, part by part: each step would go through memory otherwise."""
        both = [words(n, (0, 0, stream, _philox.NUMBERS)) for stream in self.streams]
        parts = [self.of(high, *(low or (None,)), *self.options) for high, *low in zip(*both, strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, -1)


@functools.lru_cache(_KEPT // 2)
def _times_of(draw: Draw, seed: int) -> Iterator[int]:
    """Return how often the next is asked for."""
    return itertools.count()


@functools.lru_cache(_KEPT)
def _rows_of(draw: Draw, seed: int, part: int) -> Array:
    """Return the numbers of each of successive keys."""
    keys = [key for k in range(4 * part, 4 * part + 4) for key in keys_of(seed, k)]
    words = functools.partial(philox.words_of_keys, keys)
    return draw.of_words(words, _philox.count(draw.shape)).reshape(_AHEAD, *draw.shape)
