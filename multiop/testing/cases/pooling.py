"""Rows of pooling."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._case import BOOLEAN, COMPLEX, NUMERIC, REAL, call, floating, pin, row, same
from .._samplers import distinct, normal
from .._window_layout import Array, broadcast, first, in_last, pads

INF, NAN = np.inf, np.nan


def _reduce_windows(reduce: Callable[..., Array], x: Array, windows: list[list[slice]]) -> Array:
    """Reduce each window of `x`, whose channels come last; `windows` has a list for each spatial dimension."""
    columns: Iterable[tuple[slice, ...]] = itertools.product(*windows)
    found = [reduce(x[(slice(None), *window)], axis=tuple(range(1, x.ndim - 1))) for window in columns]
    return np.stack(found, 1).reshape(len(x), *map(len, windows), x.shape[-1])


def _pool(reduce: Callable[..., Array]) -> Callable[..., Array]:
    def reference(
        inputs: Array,
        pool_size: Any,
        strides: Any = None,
        padding: Any = "valid",
        data_format: str | None = None,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
    ) -> Array:
        x = in_last(inputs, data_format)
        sizes, steps = (broadcast(one, x.ndim - 2) for one in (pool_size, strides or pool_size))
        leads, after, number = pads(x.shape[1:-1], sizes, steps, padding)
        before, n = leads, x.shape
        if count_include_pad:
            x = np.pad(x, [(0, 0), *zip(before, after, strict=True), (0, 0)])
            before = [0] * len(sizes)
        windows = [
            [slice(max(i * step - lead, 0), i * step - lead + size) for i in range(m)]
            for size, step, lead, m in zip(sizes, steps, before, number, strict=True)
        ]
        if ceil_mode:
            for found, size, step, k, lead, more, start in zip(
                windows, n[1:-1], steps, sizes, leads, after, before, strict=True
            ):
                at = len(found) * step  # where the next window starts in the padded dimension
                if at + k - step < size + lead + more and at < size + lead:
                    found.append(slice(at - start, at - start + k))
        return first(_reduce_windows(reduce, x, windows), data_format)

    return reference


def _adaptive(reduce: Callable[..., Array]) -> Callable[..., Array]:
    def reference(inputs: Array, output_size: Any, data_format: str | None = None) -> Array:
        x = in_last(inputs, data_format)
        windows = [
            [slice(i * n // m, int(np.ceil((i + 1) * n / m))) for i in range(m)]
            for n, m in zip(x.shape[1:-1], broadcast(output_size, x.ndim - 2), strict=True)
        ]
        return first(_reduce_windows(reduce, x, windows), data_format)

    return reference


def _depth_to_space(x: Array, block_size: int, data_format: str | None = "channels_last") -> Array:
    n, h, w, c = in_last(x, data_format).shape
    y = np.zeros((n, h * block_size, w * block_size, c // block_size**2), x.dtype)
    for i, j, k in np.ndindex(block_size, block_size, y.shape[-1]):
        if data_format == "channels_first":
            y[:, i::block_size, j::block_size, k] = x[:, (k * block_size + i) * block_size + j]
        else:
            y[:, i::block_size, j::block_size, k] = x[..., (i * block_size + j) * y.shape[-1] + k]
    return first(y, data_format)


def _space_to_depth(x: Array, block_size: int, data_format: str | None = "channels_last") -> Array:
    blocks = in_last(x, data_format)
    corners = [blocks[:, i::block_size, j::block_size] for i, j in np.ndindex(block_size, block_size)]
    if data_format == "channels_first":
        stacked = np.stack(corners, -1)
        return first(stacked.reshape(*stacked.shape[:3], blocks.shape[-1] * block_size**2), data_format)
    return np.concatenate(corners, -1)


TIE = [[[[1.0], [1.0]], [[1.0], [1.0]]]]
FIRST = [[[[1.0], [0.0]], [[0.0], [0.0]]]]

average = functools.partial(row, returns=floating, accumulates=True, analytic=True)
maximum = functools.partial(row, dtypes=REAL, returns=same)
rearrangement = functools.partial(row, dtypes=BOOLEAN + NUMERIC, returns=same, analytic=True)

ROWS = [
    average(
        "op_average_pool",
        _pool(np.mean),
        call(normal(2, 5, 2), 3, strides=2),
        call(normal(1, 2, 5, 4), (2, 3), strides=1, padding="same", data_format="channels_first"),
        call(normal(1, 5, 4, 2), 2, padding="same"),
        call(normal(1, 4, 4, 1), (3, 4), strides=(2, 3), padding="same"),
        call(normal(1, 3, 4, 3, 2), (2, 3, 2), strides=(1, 2, 2), padding="same"),
        call(normal(0, 4, 4, 2), 2),
        call(normal(2, 5, 1), 3, strides=2, padding=1, count_include_pad=True),
        call(normal(1, 2, 5, 4), (3, 2), 2, ((2, 0), (0, 1)), "channels_first", True),
        call(normal(1, 4, 5, 1), 3, 2, ((0, 2), 1), ceil_mode=True, count_include_pad=True),
        call(normal(1, 3, 4, 1), (2, 4), 2, "same", count_include_pad=True),
        dtypes=REAL + COMPLEX,
        pins=[
            pin([[[[1.0], [2.0]], [[3.0], [4.0]]]], 3, 1, "same", value=np.full((1, 2, 2, 1), 2.5)),
            pin([[[2.0], [4.0]]], 2, 2, 1, value=[[[2.0], [4.0]]]),
            pin([[[2.0], [4.0]]], 2, 2, 1, count_include_pad=True, value=[[[1.0], [2.0]]]),
            pin([[[1.0], [INF], [NAN], [2.0], [3.0]]], 1, 1, value=[[[1.0], [INF], [NAN], [2.0], [3.0]]]),
            pin(np.full((1, 4, 1), 6e4).tolist(), 4, value=[[[6e4]]], dtype="float16"),
        ],
    ),
    maximum(
        "op_max_pool",
        _pool(np.max),
        call(distinct(2, 5, 2), 3, strides=2),
        call(distinct(1, 2, 5, 4), (2, 3), strides=1, padding="same", data_format="channels_first"),
        call(distinct(1, 5, 4, 2), 2, padding="same"),
        call(distinct(1, 4, 4, 1), (3, 4), strides=(2, 3), padding="same"),
        call(distinct(1, 3, 4, 3, 2), (2, 3, 2), strides=(1, 2, 2), padding="same"),
        call(distinct(0, 4, 4, 2), 2),
        call(distinct(2, 5, 1), 3, strides=2, padding=1),
        call(distinct(1, 2, 5, 4), (3, 2), 2, ((2, 0), (0, 1)), "channels_first", True),
        call(distinct(1, 3, 4, 2, 1), (2, 3, 1), 3, (0, 1, 0), ceil_mode=True),
        pins=[
            pin(TIE, 2, value=[[[[1.0]]]], gradient=FIRST),
            pin([[[[1.0], [2.0]], [[2.0], [0.0]]]], 2, value=[[[[2.0]]]], gradient=[[[[0.0], [1.0]], [[0.0], [0.0]]]]),
            pin(
                [[[NAN], [1.0], [1.0], [NAN], [INF], [NAN]]],
                2,
                value=[[[NAN], [NAN], [NAN]]],
            ),
            pin([[[1.0], [1.0]]], 4, 1, ((1, 3),), value=np.ones((1, 3, 1)), gradient=[[[2.0], [1.0]]]),
            pin([[[-1.0], [-2.0]]], 2, 1, "same", value=[[[-1.0], [-2.0]]], gradient=[[[1.0], [1.0]]]),
        ],
    ),
    average(
        "op_adaptive_average_pool",
        _adaptive(np.mean),
        call(normal(1, 5, 2), 3),
        call(normal(1, 2, 5, 4), (3, 2), data_format="channels_first"),
        call(normal(2, 4, 3, 2), (2, 3)),
        call(normal(1, 3, 2, 4, 1), (2, 1, 3)),
        call(normal(0, 2, 3, 1), 2),
        dtypes=("int32", *REAL[-4:], *COMPLEX),
        pins=[pin([[[INF], [1.0], [2.0], [NAN]]], 3, value=[[[INF], [1.5], [NAN]]])],
    ),
    maximum(
        "op_adaptive_max_pool",
        _adaptive(np.max),
        call(distinct(1, 5, 2), 3),
        call(distinct(1, 2, 5, 4), (3, 2), data_format="channels_first"),
        call(distinct(2, 4, 3, 2), (2, 3)),
        call(distinct(1, 3, 2, 4, 1), (2, 1, 3)),
        call(distinct(0, 2, 3, 1), 2),
        pins=[
            pin(TIE, 1, value=[[[[1.0]]]], gradient=FIRST),
            pin([[[1.0], [NAN], [INF]]], 2, value=[[[NAN], [NAN]]]),
        ],
    ),
    rearrangement(
        "op_depth_to_space",
        _depth_to_space,
        call(normal(2, 1, 2, 8), 2),
        call(normal(1, 8, 2, 1), 2, data_format="channels_first"),
        call(normal(0, 2, 2, 9), 3),
    ),
    rearrangement(
        "op_space_to_depth",
        _space_to_depth,
        call(normal(2, 2, 4, 2), 2),
        call(normal(1, 2, 4, 2), 2, data_format="channels_first"),
        call(normal(0, 3, 3, 1), 3),
    ),
]
