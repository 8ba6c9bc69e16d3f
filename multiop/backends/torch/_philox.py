"""Random words on a GPU, by a kernel in Triton: hundreds of small kernels less than by ops, and the same bits."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

SIZE = 256  # blocks of a program


def words_on_gpu(key, n, counter):
    """Return the first `n` words of the blocks that start at `counter`, which is four ints, as int64."""
    blocks = -(-n // 4)
    words = torch.empty(4 * blocks, dtype=torch.int64, device=key.device)
    if blocks:
        with torch.cuda.device(key.device):
            _write[(triton.cdiv(blocks, SIZE),)](words, key.contiguous(), blocks, *counter, SIZE)
    return words[:n]


@triton.jit(do_not_specialize=["blocks", "first", "second", "third", "fourth"])
def _write(words, key, blocks, first, second, third, fourth, SIZE: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    counter = (index + first).to(tl.uint32)
    zeros = tl.zeros([SIZE], tl.uint32)
    w0, w1, w2, w3 = tl.philox_impl(
        counter,
        zeros + second.to(tl.uint32),
        zeros + third.to(tl.uint32),
        zeros + fourth.to(tl.uint32),
        tl.load(key),
        tl.load(key + 1),
    )
    place, is_inside = words + 4 * index, index < blocks
    tl.store(place, w0.to(tl.int64), mask=is_inside)
    tl.store(place + 1, w1.to(tl.int64), mask=is_inside)
    tl.store(place + 2, w2.to(tl.int64), mask=is_inside)
    tl.store(place + 3, w3.to(tl.int64), mask=is_inside)
