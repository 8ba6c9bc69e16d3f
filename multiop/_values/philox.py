"""Philox-4x32-10 on the host: blocks of ints, and of arrays.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"

MASK = 0xFFFFFFFF
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
_FEW = 256  # blocks, which take the lanes of Python's ints less time than arrays
_PART = 8192  # blocks, whose arrays fit in a processor's cache


def block_of_ints(counter: Sequence[int], key: Sequence[int], lanes: int = 1) -> list[int]:
    """Return one block, computed in Python's ints; or one in each of the lanes of 64 bits that `lanes` has ones in."""
    (c0, c1, c2, c3), (k0, k1), mask = counter, key, MASK * lanes
    (by0, by2), (more0, more1) = MULTIPLIERS, INCREMENTS
    more0, more1 = more0 * lanes, more1 * lanes
    for _ in range(ROUNDS):  # without a call, which takes longer than all of a round's arithmetic
        first, second = c0 * by0, c2 * by2
        c0, c1 = second >> 32 & mask ^ c1 ^ k0, second & mask
        c2, c3 = first >> 32 & mask ^ c3 ^ k1, first & mask
        k0, k1 = k0 + more0 & mask, k1 + more1 & mask
    return [c0, c1, c2, c3]


def words_on_host(key: Sequence[int], n: int, counter: Sequence[int]) -> Array:
    """Return the first `n` words of the blocks that start at `counter`, as uint32."""
    parts = list(parts_on_host(key, n, counter))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def parts_on_host(key: Sequence[int], n: int, counter: Sequence[int]) -> Iterable[Array]:
    """Return the words that `words_on_host` returns in parts, each as many as a processor's cache holds."""
    first, *rest = counter
    blocks = -(-n // 4)
    if blocks <= _FEW:
        return [_few_words(key, blocks, first, rest)[:n]]
    return (
        _many_words(key, min(_PART, blocks - start), first + start, rest)[: n - 4 * start]
        for start in range(0, blocks, _PART)
    )


def _few_words(key: Sequence[int], blocks: int, first: int, rest: Sequence[int]) -> Array:
    lanes = int.from_bytes(b"\1\0\0\0\0\0\0\0" * blocks, "little")
    index = int.from_bytes((np.arange(first, first + blocks, dtype=np.uint64) & _WORD).tobytes(), "little")
    (c1, c2, c3), (k0, k1) = rest, key
    words = block_of_ints((index, c1 * lanes, c2 * lanes, c3 * lanes), (k0 * lanes, k1 * lanes), lanes)
    every = b"".join(map(operator.methodcaller("to_bytes", 8 * blocks, "little"), words))
    return np.frombuffer(every, np.uint64).reshape(4, blocks).T.astype(np.uint32).reshape(-1)


def _many_words(key: Sequence[int], blocks: int, first: int, rest: Sequence[int]) -> Array:
    """Return the words of blocks; the two halves of a round, which is that of `one_round`, are rows of an array."""
    even, odd, whole = np.empty((3, 2, blocks), np.uint64)
    even[0] = np.arange(first, first + blocks, dtype=np.uint64) & _WORD
    odd[0], even[1], odd[1] = rest
    crossed = whole[::-1]
    for k in range(ROUNDS):
        np.multiply(even, _FACTORS, out=whole)
        np.right_shift(crossed, _HALF, out=even)
        odd ^= np.array([[one + k * more & MASK] for one, more in zip(key, INCREMENTS, strict=True)], np.uint64)
        even ^= odd
        np.bitwise_and(crossed, _WORD, out=odd)
    words = np.empty((blocks, 4), np.uint32)
    words[:, 0], words[:, 1], words[:, 2], words[:, 3] = even[0], odd[0], even[1], odd[1]
    return words.reshape(-1)


_FACTORS = np.array([[one] for one in MULTIPLIERS], np.uint64)
_WORD, _HALF = np.uint64(MASK), np.uint64(32)
