"""Philox-4x32-10: random 32-bit words that are a function of a key and a counter only.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Each counter, of four words, gives a block of four words. The first two words of the counter are the number of the block
in its stream, the third is the number of the stream, and the last is the purpose. So word `i` of a stream depends only
on the key and on `i`, and not on how many words are drawn, in which order, or where.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from multiop import errors
from multiop._loading.registry import active, composite, random_part
from multiop._values.philox import INCREMENTS, MASK as MASK, MULTIPLIERS, ROUNDS, block_of_ints as block_of_ints
from multiop.frontends.bitwise import op_bitwise_and, op_bitwise_xor, op_right_shift
from multiop.frontends.control_flow import op_fori_loop
from multiop.frontends.conversion import op_cast
from multiop.frontends.creation import op_arange
from multiop.frontends.elementwise import op_add, op_multiply
from multiop.frontends.logical import op_equal, op_less_equal, op_where
from multiop.frontends.shapes import op_reshape, op_stack

NUMBERS, SPLIT, FOLD, NEXT = range(4)  # what a counter is for
_LARGEST = 2**32

Words = Any


def word() -> str:
    """Return the dtype of arithmetic with words: one that can hold a product of two words, if the backend has one."""
    return random_part("word") or "int64"


def words(key: Any, shape: tuple[Any, ...], stream: Any = 0) -> Words:
    """Return random words of `shape`: integers from 0 to 2**32 - 1, in `uint32` or in `word()`.

    Args:
        key: Key, a tensor of two words.
        shape: Sizes.
        stream: Number of the key's stream: an int or a tensor.
    """
    return op_reshape(block_words(key, count(shape), (0, 0, stream, NUMBERS)), shape)


def count(shape: tuple[Any, ...]) -> Any:
    """Return the number of entries of a tensor of `shape`; raise if a stream does not have that many words."""
    n = math.prod(shape)
    if isinstance(n, int) and n > _LARGEST:
        raise errors.ArgumentError(f"shape has {n} entries; draw at most 2**32 at a time, and split the key for more")
    return n


def hidden(x: Any, key: Any, shape: tuple[Any, ...], dtype: str) -> Any:
    """Return `x`, of `shape`, as what no compiler takes for a constant or for copies of one number.

    By such a divisor, compilers multiply with the inverse, which is rounded twice.
    """
    index = active().on_device_of(key, op_arange(count(shape), dtype=dtype))
    is_number = op_less_equal(0.0, op_add(op_reshape(index, shape), op_cast(key[0], dtype)))
    return op_where(is_number, x, 0.0)


def block_words(key: Any, n: Any, counter: tuple[Any, Any, Any, Any]) -> Words:
    """Return the first `n` words of the blocks that start at `counter`, which is four ints or tensors."""
    native = random_part("random_words")
    found = None if native is None else native(key, n, counter)
    return _block_words(key, n, counter) if found is None else found


@composite
def _block_words(key: Any, n: Any, counter: Sequence[Any]) -> Words:
    dtype = word()
    index = active().on_device_of(key, op_arange(-(-n // 4), dtype=dtype))
    first, *rest = [op_cast(one, dtype) if hasattr(one, "dtype") else one for one in counter]
    found = op_reshape(op_stack(_blocks(key, (wrapped_add(index, first), *rest)), -1), (-1,))[:n]
    kept = random_part("kept")
    return found if kept is None else kept(found, key)


def pairs(key: Any, index: Any, stream: Any) -> tuple[Words, Words]:
    """Return words `2 * index` and `2 * index + 1` of a stream, for tensors that broadcast, in the dtype `word()`."""
    index, stream = op_cast(index, word()), op_cast(stream, word())
    first, second, third, fourth = _blocks(key, (op_right_shift(index, 1), 0, stream, NUMBERS))
    is_even = op_equal(op_bitwise_and(index, 1), 0)
    return op_where(is_even, first, third), op_where(is_even, second, fourth)


def _blocks(key: Any, counter: Sequence[Any]) -> list[Words]:
    """Return the four words of each block; at least the first word of the counter is a tensor of dtype `word()`."""
    # zeros that depend on all of them: a loop of TensorFlow cannot be mapped where a part of its state starts unmapped
    zeros = functools.reduce(op_add, [op_bitwise_xor(one, one) for one in counter if hasattr(one, "dtype")])
    state = [op_add(zeros, one) for one in counter]
    state += [op_cast(key[0], word()), op_cast(key[1], word())]
    state = op_fori_loop(0, ROUNDS, lambda _, state: _one_round(*state), state)
    return list(state[:4])


def _one_round(c0: Words, c1: Words, c2: Words, c3: Words, k0: Words, k1: Words) -> list[Words]:
    """Return the four words of the counter and the two words of the key after one round."""
    (high0, low0), (high1, low1) = product(c0, MULTIPLIERS[0]), product(c2, MULTIPLIERS[1])
    mixed0, mixed1 = op_bitwise_xor(op_bitwise_xor(high1, c1), k0), op_bitwise_xor(op_bitwise_xor(high0, c3), k1)
    return [mixed0, low1, mixed1, low0, wrapped_add(k0, INCREMENTS[0]), wrapped_add(k1, INCREMENTS[1])]


def product(x: Words, y: Any) -> tuple[Words, Words]:
    """Return the high and the low words of products of words, in the dtype `word()`; `y` may be an int."""
    if word() == "int64":
        whole = op_multiply(x, y)  # modulo 2**64, so the sign has no meaning
        return op_bitwise_and(op_right_shift(whole, 32), MASK), op_bitwise_and(whole, MASK)
    x_high, x_low = op_right_shift(x, 16), op_bitwise_and(x, 0xFFFF)
    is_int = isinstance(y, int)
    y_high, y_low = (y >> 16, y & 0xFFFF) if is_int else (op_right_shift(y, 16), op_bitwise_and(y, 0xFFFF))
    middle = op_add(op_multiply(x_high, y_low), op_right_shift(op_multiply(x_low, y_low), 16))
    other = op_add(op_multiply(x_low, y_high), op_bitwise_and(middle, 0xFFFF))
    high = op_add(op_add(op_multiply(x_high, y_high), op_right_shift(middle, 16)), op_right_shift(other, 16))
    return high, op_multiply(x, y)


def wrapped_add(x: Words, y: Any) -> Words:
    """Return the low words of sums of words, in the dtype `word()`."""
    total = op_add(x, y)
    return op_bitwise_and(total, MASK) if word() == "int64" else total
