"""Numbers drawn on the host, by arrays: few numbers for successive keys or ints together, ahead of their turns.

They follow from a generator's seed and the number of its key, so what is kept is right for whoever has both.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from multiop._loading.registry import random_part
from multiop._values import philox
from multiop._values.philox import Array
from multiop.random import _philox
from multiop.random._keys import AT_ONCE, Turn, keys_of, words_of

_AHEAD = 4 * AT_ONCE  # keys
_FEW = 128  # numbers of a draw, which take less time than its calls: it may be one of many that take turns
_SINGLY = 8  # draws of one kind before others are drawn ahead, which takes about their time
_KEPT = 32  # at most 4 MB


def draw(
    of: Callable[..., Any], options: tuple[Any, ...], turn: Turn, shape: tuple[int, ...], streams: tuple[int, ...]
) -> Array:
    """Return numbers in an array of their own.

    Args:
        of: Makes numbers of `options` and the words of each stream, each by itself.
        options: What `of` takes first.
        turn: Whose numbers they are.
        shape: Sizes.
        streams: Numbers of the key's streams.
    """
    n = _philox.count(shape)
    part, place = divmod(turn.number, _AHEAD)
    times_of, whose = (_times_of_ints, part) if turn.seed is None else (_times_of, turn.seed)
    if 0 < n <= _FEW and next(times_of(of, options, shape, streams, whose)) >= _SINGLY:
        return _rows_of(of, options, shape, streams, turn.seed, part)[place, ...].copy()
    key = words_of(turn)
    words = map(functools.partial(philox.parts_on_host, key, n), _counters(streams))
    parts = list(map(functools.partial(of, *options), *words))  # each step would go through memory otherwise
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(shape)


def to_tensor(x: Any) -> Any:
    """Return an array of the host as a tensor on the same memory; anything else as it is."""
    return random_part("from_host")(x) if type(x) is np.ndarray else x


def _count_from_zero(*what: Any) -> Iterator[int]:
    return itertools.count()


# how often the next of a generator is asked for, or of ints near each other: a program may use any of these
_times_of, _times_of_ints = (functools.lru_cache(_KEPT // 2)(_count_from_zero) for _ in range(2))


@functools.lru_cache(_KEPT)
def _rows_of(of: Any, options: Any, shape: Any, streams: Any, seed: int | None, part: int) -> Array:
    """Return the numbers of each of successive keys."""
    keys = [key for k in range(4 * part, 4 * part + 4) for key in keys_of(seed, k)]
    words = [next(iter(philox.words_of_keys(keys, math.prod(shape), counter))) for counter in _counters(streams)]
    return of(*options, *words).reshape(_AHEAD, *shape)


@functools.lru_cache(_KEPT)
def _counters(streams: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    return [(0, 0, stream, _philox.NUMBERS) for stream in streams]
