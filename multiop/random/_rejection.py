"""Rejection sampling with static shapes: each entry takes the first of its own candidates that is accepted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from multiop._registry import active
from multiop.frontends.conversion import op_cast
from multiop.frontends.creation import op_arange
from multiop.frontends.elementwise import op_maximum, op_minimum, op_subtract
from multiop.frontends.indexing import op_take, op_take_along_axis
from multiop.frontends.logical import op_logical_not, op_where
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
    words: list[Any] = []
    for stream in (2 * done + 2, 2 * done + 3):
        if stream % 2 and dtype != "float64":
            words.append((None, None))
        elif index is None:
            both = _philox.words(key, (n, 2), stream)
            words.append((both[:, 0], both[:, 1]))
        else:
            streams = op_arange(stream, stream + 2 * count, 2, dtype=_philox.word())
            words.append(_philox.pairs(key, index, active().on_device_of(key, op_expand_dims(streams, 1))))
    (first_high, second_high), (first_low, second_low) = words
    value, is_accepted = attempt(first_high, first_low, second_high, second_low, *parameters)
    if index is not None:  # one row per candidate
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
    rest = [op_take(one, places) for one in parameters]
    left = places if index is None else op_take(index, places)
    again = _stage(attempt, key, total, left, room, rest, dtype, stages[1:], done + count)
    again = op_take(again, op_maximum(op_minimum(op_subtract(rank, 1), room - 1), 0))
    return op_where(is_accepted, value, again)
