"""Rejection sampling with static shapes: each entry takes the first of its own candidates that is accepted."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from multiop._loading.registry import active, random_part
from multiop.frontends.conversion import op_cast
from multiop.frontends.creation import op_arange
from multiop.frontends.elementwise import op_maximum, op_minimum, op_subtract
from multiop.frontends.indexing import op_take, op_take_along_axis
from multiop.frontends.logical import op_logical_not, op_logical_or, op_where
from multiop.frontends.reduction import op_any, op_argmax, op_cumsum
from multiop.frontends.shapes import op_expand_dims
from multiop.frontends.sorting import op_searchsorted
from multiop.random import _philox

Attempt = Callable[..., tuple[Any, Any]]
Stages = Sequence[tuple[int, float]]


def first_accepted(attempt: Attempt, key: Any, n: Any, parameters: Sequence[Any], dtype: str, stages: Stages) -> Any:
    """Return the value of the first accepted candidate of each of `n` entries, or of the last if none is accepted.

    Candidate `j` of entry `i` is made of the words `2 * i` and `2 * i + 1` of the streams `2 * j + 2` and, in float64,
    `2 * j + 3` of the key. So it depends neither on the other entries nor on `stages`, which only save time: a later
    stage computes more candidates, but of a buffer that holds only the entries without an accepted one. The probability
    that the buffer is too small is less than 1e-15.

    Args:
        attempt: Function of the high and the low words of the first number, those of the second number, and the
            parameters; it returns values and whether they are accepted. Low words are `None` except in float64.
        key: Key.
        n: The number of entries.
        parameters: Tensors of shape `(n,)`.
        dtype: Dtype that the numbers are computed in.
        stages: For each stage, the number of candidates, and the largest probability that an entry reaches it.
    """
    return _stage(attempt, key, n, None, n, parameters, dtype, stages, 0)


def take_inside(x: Any, index: Any) -> Any:
    """Return the entries of a vector at an index that is known to be inside."""
    take = random_part("taken") or op_take
    return take(x, index)


def _stage(
    attempt: Attempt,
    key: Any,
    total: Any,
    index: Any,
    n: Any,
    parameters: Sequence[Any],
    dtype: str,
    stages: Stages,
    done: int,
) -> Any:
    """Return the values for the `n` entries at `index` out of `total`; `done` candidates of each were rejected."""
    count = stages[0][0]
    streams = range(2 * done + 2, 2 * (done + count) + 2, 2)
    if index is None:
        found = [attempt(*_words(_first_pairs(key, n), stream, dtype), *parameters) for stream in streams]
        value, is_accepted = functools.reduce(_earlier, found)
    else:  # one row per candidate
        column = op_expand_dims(op_arange(streams.start, streams.stop, streams.step, dtype=_philox.word()), 1)
        column = active().on_device_of(key, column)
        words = _words(functools.partial(_philox.pairs, key, index), column, dtype)
        value, is_accepted = attempt(*words, *parameters)
        row = op_expand_dims(op_argmax(op_cast(is_accepted, "int32"), 0), 0)
        value, is_accepted = op_take_along_axis(value, row, 0)[0], op_any(is_accepted, 0)
    if len(stages) == 1:
        return value
    if isinstance(total, int):
        mean = total * stages[1][1]
        room = min(n, math.ceil(mean + 9 * math.sqrt(mean) + 30))
    else:
        room = n
    if isinstance(n, int) and room == n:
        places = active().on_device_of(key, op_arange(n, dtype=_philox.word())) if index is None else index
        again = _stage(attempt, key, total, places, n, parameters, dtype, stages[1:], done + count)
        return op_where(is_accepted, value, again)
    rank = op_cumsum(op_cast(op_logical_not(is_accepted), "int32"))
    wanted = active().on_device_of(key, op_arange(1, room + 1, dtype="int32"))
    places = op_minimum(op_searchsorted(rank, wanted), n - 1)
    rest = [take_inside(one, places) for one in parameters]
    left = places if index is None else take_inside(index, places)
    again = _stage(attempt, key, total, left, room, rest, dtype, stages[1:], done + count)
    again = take_inside(again, op_maximum(op_minimum(op_subtract(rank, 1), room - 1), 0))
    return op_where(is_accepted, value, again)


def _words(pairs: Callable[[Any], tuple[Any, Any]], stream: Any, dtype: str) -> tuple[Any, Any, Any, Any]:
    """Return the high and the low words of the first number, and those of the second one."""
    high, low = pairs(stream), (None, None)
    if dtype == "float64":
        low = pairs(stream + 1)
    return high[0], low[0], high[1], low[1]


def _first_pairs(key: Any, n: Any) -> Callable[[Any], tuple[Any, Any]]:
    def pairs(stream: Any) -> tuple[Any, Any]:
        both = _philox.words(key, (n, 2), stream)
        return both[:, 0], both[:, 1]

    return pairs


def _earlier(candidate: tuple[Any, Any], later: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the first of two candidates unless only the other is accepted, and whether one is accepted."""
    return op_where(candidate[1], candidate[0], later[0]), op_logical_or(candidate[1], later[1])
