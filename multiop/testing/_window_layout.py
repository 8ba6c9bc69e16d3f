"""The positions of windows, for the references of convolution and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def broadcast(value: Any, n: int) -> list[int]:
    """Return one entry for each of `n` dimensions."""
    return list(value) if isinstance(value, (tuple, list)) else [value] * n


def in_last(x: Array, data_format: str | None) -> Array:
    """Return `x` with its channels last."""
    return np.moveaxis(x, 1, -1) if data_format == "channels_first" else x


def first(y: Array, data_format: str | None) -> Array:
    """Return `y`, whose channels come last, in the requested layout."""
    return np.moveaxis(y, -1, 1) if data_format == "channels_first" else y


def pads(
    sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int], padding: Any
) -> tuple[list[int], list[int], list[int]]:
    """Return the padding before and after, and the number of windows: TensorFlow's rule for `"same"`."""
    if padding != "same":
        both = (
            [(0, 0)] * len(sizes) if padding == "valid" else [broadcast(n, 2) for n in broadcast(padding, len(sizes))]
        )
        before, after = ([pair[side] for pair in both] for side in (0, 1))
        padded = np.add(sizes, before) + after
        number = [(size - span) // stride + 1 for size, span, stride in zip(padded, spans, strides, strict=True)]
        return before, after, number
    number = [int(np.ceil(size / stride)) for size, stride in zip(sizes, strides, strict=True)]
    total = [
        max((m - 1) * stride + span - size, 0)
        for size, span, stride, m in zip(sizes, spans, strides, number, strict=True)
    ]
    return [one // 2 for one in total], [one - one // 2 for one in total], number


def window_slices(
    at: Sequence[int], strides: Sequence[int], spans: Sequence[int], rates: Sequence[int]
) -> tuple[slice, ...]:
    """Return the slices of the window at index `at`."""
    return tuple(slice(i * s, i * s + span, d) for i, s, span, d in zip(at, strides, spans, rates, strict=True))
