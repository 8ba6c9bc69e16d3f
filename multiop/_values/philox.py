"""Philox-4x32-10 on the host: blocks of ints, and of arrays.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"

MASK = 0xFFFFFFFF
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
_FEW = 96  # blocks, which take the lanes of Python's ints less time than arrays
_PART = 1 << 15  # blocks, of which a call takes ten times its overhead; their arrays have 1 MB


def block_of_ints(counter: Sequence[int], key: Sequence[int], lanes: int = 1) -> list[int]:
    """Return one block, computed in Python's ints; or one in each lane of 64 bits or more; `lanes` has their ones."""
    (c0, c1, c2, c3), (k0, k1), mask = counter, key, MASK * lanes
    (by0, by2), (more0, more1) = MULTIPLIERS, INCREMENTS
    more0, more1 = more0 * lanes, more1 * lanes
    for _ in range(ROUNDS):  # without a call, which takes longer than all of a round's arithmetic
        first, second = c0 * by0, c2 * by2
        c0, c1 = (second >> 32 ^ c1 ^ k0) & mask, second & mask
        c2, c3 = (first >> 32 ^ c3 ^ k1) & mask, first & mask
        k0, k1 = k0 + more0, k1 + more1  # less than 2**36
    return [c0, c1, c2, c3]


def words_on_host(key: Sequence[int], n: int, counter: Sequence[int]) -> Array:
    """Return the first `n` words of the blocks that start at `counter`, as uint32."""
    parts = list(parts_on_host(key, n, counter))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def parts_on_host(key: Sequence[int], n: int, counter: Sequence[int]) -> Iterable[Array]:
    """Return the words that `words_on_host` returns in parts, each of arrays that stay in a processor's cache."""
    blocks = -(-n // 4)
    if blocks <= _FEW:
        return [_few_words(key, blocks, *counter)[:n]]
    return (words[0] for words in words_of_keys([key], n, counter))


def _few_words(key: Sequence[int], blocks: int, first: int, c1: int, c2: int, c3: int) -> Array:
    (lanes, index), (k0, k1) = _lanes(blocks), key
    counter = index + first * lanes & MASK * lanes, c1 * lanes, c2 * lanes, c3 * lanes
    w0, w1, w2, w3 = block_of_ints(counter, (k0 * lanes, k1 * lanes), lanes)
    return np.frombuffer((w0 | w1 << 32 | w2 << 64 | w3 << 96).to_bytes(16 * blocks, "little"), "<u4")


@functools.lru_cache(_FEW + 1)
def _lanes(blocks: int) -> tuple[int, int]:
    """Return a one in each of the lanes of 128 bits, which hold a block's words, and the number of each."""
    return sum(1 << 128 * k for k in range(blocks)), sum(k << 128 * k for k in range(blocks))


def words_of_keys(keys: Sequence[Sequence[int]], n: int, counter: Sequence[int]) -> Iterable[Array]:
    """Return parts of the words that `words_on_host` returns, in a row for each of some keys.

    Each step of a round is one call on arrays of 64 bits, in which two words of a block stand, the first in front.
    """
    first, second, third, fourth = counter
    blocks = -(-n // 4)
    by0, by2, half = _STEPS
    of_rounds = list(np.left_shift(np.array(keys, np.uint64).T + _ADDED, half))
    state = np.empty((4, min(_PART, blocks), len(keys)), np.uint64)
    for start in range(0, blocks, _PART):
        pair0, pair2, product0, product2 = state[:, : blocks - start]
        pair0[:] = np.arange(first + start, first + start + len(pair0), dtype=np.uint64)[:, None]
        pair0 <<= half
        pair0 |= second
        pair2[:] = third << 32 | fourth
        for k0, k1 in of_rounds:
            np.right_shift(pair0, half, product0)
            np.multiply(product0, by0, product0)
            np.right_shift(pair2, half, product2)
            np.multiply(product2, by2, product2)
            np.left_shift(pair0, half, pair0)
            np.bitwise_xor(pair0, k0, pair0)
            np.bitwise_xor(pair0, product2, pair0)
            np.left_shift(pair2, half, pair2)
            np.bitwise_xor(pair2, k1, pair2)
            np.bitwise_xor(pair2, product0, pair2)
        words = np.empty((*pair0.T.shape, 2), "<u8")
        for place, pair in enumerate((pair0, pair2)):  # in memory, the first word of a number is its low one
            np.right_shift(pair, half, product0)
            np.left_shift(pair, half, pair)
            words[..., place] = np.bitwise_or(pair, product0, pair).T
        yield words.view("<u4").reshape(len(keys), -1)[:, : n - 4 * start]


_ADDED = np.arange(ROUNDS, dtype=np.uint64)[:, None, None] * np.array(INCREMENTS, np.uint64)[:, None]  # to keys
_STEPS = [np.array(one, np.uint64) for one in (*MULTIPLIERS, 32)]  # NumPy reads an array sooner than an int
