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
_PART = 8192  # blocks, whose arrays fit in a processor's cache


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
    """Return the words that `words_on_host` returns in parts, each as many as a processor's cache holds."""
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

    Each step of a round is one call on arrays of 64 bits, made once for all parts.
    """
    first, *rest = counter
    blocks = -(-n // 4)
    of_rounds = list(np.bitwise_and(np.array(keys, np.uint64).T + _ADDED, _WORD))
    by0, by2, word, half = _STEPS
    state = np.empty((6, min(_PART, blocks), len(keys)), np.uint64)
    for start in range(0, blocks, _PART):
        c0, c1, c2, c3, first_product, second_product = part = state[:, : blocks - start]
        c0[:] = np.arange(first + start, first + start + len(c0), dtype=np.uint64)[:, None]
        c0 &= word
        c1[:], c2[:], c3[:] = rest
        for k0, k1 in of_rounds:
            np.multiply(c0, by0, first_product)
            np.multiply(c2, by2, second_product)
            np.bitwise_xor(c1, k0, c1)
            np.right_shift(second_product, half, c0)
            np.bitwise_xor(c0, c1, c0)
            np.bitwise_and(second_product, word, c1)
            np.bitwise_xor(c3, k1, c3)
            np.right_shift(first_product, half, c2)
            np.bitwise_xor(c2, c3, c2)
            np.bitwise_and(first_product, word, c3)
        words = np.empty((*c0.T.shape, 4), np.uint32)
        words[..., 0], words[..., 1], words[..., 2], words[..., 3] = part[:4].transpose(0, 2, 1)
        yield words.reshape(len(keys), -1)[:, : n - 4 * start]


_WORD = np.uint64(MASK)
_ADDED = np.arange(ROUNDS, dtype=np.uint64)[:, None, None] * np.array(INCREMENTS, np.uint64)[:, None]  # to keys
_STEPS = [np.array(one, np.uint64) for one in (*MULTIPLIERS, MASK, 32)]  # NumPy reads an array sooner than an int
