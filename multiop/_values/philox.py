"""Philox-4x32-10 on the host: one round, written for numbers of any kind; blocks of ints, and of arrays.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MASK = 0xFFFFFFFF
ROUNDS = 10
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_INCREMENTS = 0x9E3779B9, 0xBB67AE85
_FEW = 12  # blocks, which take Python's ints less time than arrays
_PART = 4096  # blocks, whose arrays fit in a processor's cache


def one_round(
    state: Sequence[Any], product: Callable[..., Any], xor: Callable[..., Any], add: Callable[..., Any]
) -> Any:
    """Return the four words of the counter and the two words of the key after one round."""
    c0, c1, c2, c3, k0, k1 = state
    (high0, low0), (high1, low1) = product(c0, _MULTIPLIERS[0]), product(c2, _MULTIPLIERS[1])
    added = add(k0, _INCREMENTS[0]), add(k1, _INCREMENTS[1])
    return [xor(xor(high1, c1), k0), low1, xor(xor(high0, c3), k1), low0, *added]


def block_of_ints(counter: Sequence[Any], key: Sequence[int]) -> list[Any]:
    """Return one block, computed in Python's ints; or blocks, where a word of the counter is an array of uint64."""
    state = [*counter, *key]
    for _ in range(ROUNDS):
        state = one_round(state, _product, operator.xor, _wrapped_add)
    return state[:4]


def _product(x: Any, y: int) -> tuple[Any, Any]:
    whole = x * y
    return whole >> 32, whole & MASK


def _wrapped_add(x: int, y: int) -> int:
    return x + y & MASK


def words_on_host(key: Sequence[int], n: int, counter: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the first `n` words of the blocks that start at `counter`, as int64."""
    first, *rest = counter
    blocks = -(-n // 4)
    if blocks <= _FEW:
        found = [block_of_ints((first + k & MASK, *rest), key) for k in range(blocks)]
        return np.array(list(itertools.chain(*found))[:n], np.int64)
    words = np.empty((blocks, 4), np.uint64)
    for start in range(0, blocks, _PART):
        part = words[start : start + _PART]
        index = np.arange(first + start, first + start + len(part), dtype=np.uint64) & np.uint64(MASK)
        for k, word in enumerate(block_of_ints((index, *rest), key)):
            part[:, k] = word
    return words.reshape(-1)[:n].view(np.int64)
