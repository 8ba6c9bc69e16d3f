"""Rows of convolution and its windows."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._case import BOOLEAN, COMPLEX, FLOATING, INTEGER, NUMERIC, call, pin, row, same
from .._samplers import normal
from .._window_layout import Array, broadcast, first, in_last, pads, window_slices


def _conv(
    inputs: Array,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    bias: Any = 0,
) -> Array:
    x = in_last(inputs, data_format)
    n = x.ndim - 2
    strides, rates = broadcast(strides, n), broadcast(dilation_rate, n)
    spans = [(k - 1) * rate + 1 for k, rate in zip(kernel.shape, rates, strict=False)]
    padding = padding.lower() if isinstance(padding, str) else padding
    mode = {"circular": "wrap", "reflect": "reflect"}.get(padding) if isinstance(padding, str) else None
    padding = [((span - 1) // 2, span // 2) for span in spans] if mode else padding
    before, after, number = pads(x.shape[1:-1], spans, strides, padding)
    x = np.pad(x, [(0, 0), *zip(before, after, strict=True), (0, 0)], mode or "constant")  # type: ignore[call-overload]
    groups = x.shape[-1] // kernel.shape[-2]
    share = kernel.shape[-1] // groups
    y = np.zeros((len(x), *number, kernel.shape[-1]), np.result_type(x, kernel))
    for at in np.ndindex(*number):
        window = x[(slice(None), *window_slices(at, strides, spans, rates))]
        for g in range(groups):
            seen = window[..., g * kernel.shape[-2] : (g + 1) * kernel.shape[-2]]
            weights = kernel[..., g * share : (g + 1) * share]
            y[(slice(None), *at, slice(g * share, (g + 1) * share))] = np.tensordot(seen, weights, n + 1)
    return first((y + bias).astype(y.dtype), data_format)


def _conv_transpose(
    inputs: Array,
    kernel: Array,
    strides: Any = 1,
    padding: Any = "valid",
    output_padding: Any = None,
    data_format: str | None = None,
    dilation_rate: Any = 1,
    groups: int = 1,
) -> Array:
    x = in_last(inputs, data_format)
    if groups > 1:
        shares = zip(np.split(x, groups, -1), np.split(kernel, groups, -1), strict=True)
        each = [
            _conv_transpose(*share, strides, padding, output_padding, dilation_rate=dilation_rate) for share in shares
        ]
        return first(np.concatenate(each, -1), data_format)
    n = x.ndim - 2
    strides, rates = broadcast(strides, n), broadcast(dilation_rate, n)
    spans = [(k - 1) * rate + 1 for k, rate in zip(kernel.shape, rates, strict=False)]
    sizes = []
    for i, (size, span, stride) in enumerate(zip(x.shape[1:-1], spans, strides, strict=True)):
        if not isinstance(padding, str):
            lost = np.sum(broadcast(broadcast(padding, n)[i], 2))
            sizes.append((size - 1) * stride + span - lost + broadcast(output_padding or 0, n)[i])
        elif output_padding is None:
            sizes.append(size * stride + (max(span - stride, 0) if padding == "valid" else 0))
        else:
            kept = span if padding == "valid" else span % 2
            sizes.append((size - 1) * stride + kept + broadcast(output_padding, n)[i])
    reach = [size * stride + span for size, stride, span in zip(x.shape[1:-1], strides, spans, strict=True)]
    y = np.zeros((len(x), *reach, kernel.shape[-2]), np.result_type(x, kernel))
    for at in np.ndindex(*x.shape[1:-1]):
        y[(slice(None), *window_slices(at, strides, spans, rates))] += np.tensordot(
            x[(slice(None), *at)], kernel, (1, n + 1)
        )
    # where a convolution over that many entries would start
    start = pads(sizes, spans, strides, padding)[0]
    return first(y[(slice(None), *map(slice, start, np.add(start, sizes)))], data_format)


def _depthwise_conv(inputs: Array, kernel: Array, *args: Any, **kwargs: Any) -> Array:
    return _conv(inputs, kernel.reshape(*kernel.shape[:-2], 1, -1), *args, **kwargs)


def _separable_conv(
    inputs: Array, depthwise_kernel: Array, pointwise_kernel: Array, bias: Any = 0, **kwargs: Any
) -> Array:
    y = _depthwise_conv(inputs, depthwise_kernel, **kwargs)
    return _conv(y, pointwise_kernel, data_format=kwargs.get("data_format"), bias=bias)


def _unfold(x: Array, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    kernel, rates, steps = broadcast(kernel_size, 2), broadcast(dilation, 2), broadcast(stride, 2)
    spans = [(k - 1) * rate + 1 for k, rate in zip(kernel, rates, strict=True)]
    x = np.pad(x, [(0, 0), (0, 0), *[(pad, pad) for pad in broadcast(padding, 2)]])
    number = [(size - span) // step + 1 for size, span, step in zip(x.shape[2:], spans, steps, strict=True)]
    columns = [
        x[(slice(None), slice(None), *window_slices(at, steps, spans, rates))].reshape(
            len(x), x.shape[1] * np.prod(kernel)
        )
        for at in np.ndindex(*number)
    ]
    return np.stack(columns, -1)


def _fold(x: Array, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    size, kernel, rates = broadcast(output_size, 2), broadcast(kernel_size, 2), broadcast(dilation, 2)
    pad, steps = broadcast(padding, 2), broadcast(stride, 2)
    spans = [(k - 1) * rate + 1 for k, rate in zip(kernel, rates, strict=True)]
    padded = [n + 2 * p for n, p in zip(size, pad, strict=True)]
    number = [(n - span) // step + 1 for n, span, step in zip(padded, spans, steps, strict=True)]
    y = np.zeros((len(x), x.shape[1] // int(np.prod(kernel)), *padded), x.dtype)
    for column, at in enumerate(np.ndindex(*number)):
        y[(slice(None), slice(None), *window_slices(at, steps, spans, rates))] += x[..., column].reshape(
            *y.shape[:2], *kernel
        )
    return y[:, :, pad[0] : pad[0] + size[0], pad[1] : pad[1] + size[1]]


SQUARE = np.arange(16.0).reshape(1, 4, 4, 1).tolist()
ONES = np.ones((3, 3, 1, 1)).tolist()

convolution = functools.partial(row, dtypes=("int8", "int32", *FLOATING, *COMPLEX), accumulates=True, analytic=True)

ROWS = [
    convolution(
        "op_conv",
        _conv,
        call(normal(2, 5, 2), normal(3, 2, 2), strides=2, padding="same"),
        call(normal(2, 2, 4, 4), normal(2, 3, 2, 2), data_format="channels_first"),
        call(normal(1, 4, 5, 2), normal(2, 2, 2, 1), padding="same", dilation_rate=(1, 3)),
        call(normal(1, 4, 2, 3), normal(2, 2, 2, 4), strides=(2, 1), padding="SAME", data_format="channels_first"),
        call(normal(1, 3, 2, 4, 2), normal(2, 1, 3, 2, 2), strides=(1, 1, 2), padding="same"),
        call(normal(1, 4, 2, 3, 1), normal(2, 2, 2, 1, 2), dilation_rate=(2, 1, 1)),
        call(normal(0, 4, 4, 2), normal(2, 2, 2, 3)),
        call(normal(2, 5, 2), normal(3, 2, 2), strides=2, padding=1, dilation_rate=3),
        call(normal(1, 4, 3, 1), normal(2, 2, 1, 1), strides=(2, 1), padding=((0, 3), 1), dilation_rate=(1, 2)),
        call(normal(1, 2, 4, 3), normal(2, 2, 2, 1), 2, "circular", "channels_first", (1, 2)),
        call(normal(1, 3, 4, 1), normal(3, 2, 1, 1), padding="reflect", dilation_rate=(2, 1)),
        call(normal(1, 3, 4, 2), normal(2, 2, 1, 4), padding="same", bias=normal(4)),
        call(normal(1, 2, 4, 3), normal(3, 1, 2, 2), padding="same", data_format="channels_first", bias=normal(2)),
        call(normal(2, 2, 3, 3), normal(2, 2, 2, 3), 1, "valid", "channels_first", 1, normal(3)),
        call(normal(0, 3, 2), normal(2, 2, 3), bias=normal(3)),
        dtypes=INTEGER + FLOATING + COMPLEX,
        pins=[
            pin(SQUARE, ONES, 2, "same", value=[[[[45.0], [39.0]], [[66.0], [50.0]]]]),
            pin([[[np.nan], [1.0], [2.0]]], [[[1.0]], [[1.0]]], value=[[[np.nan], [3.0]]]),
        ],
    ),
    convolution(
        "op_conv_transpose",
        _conv_transpose,
        call(normal(2, 3, 2), normal(3, 2, 2), strides=2, padding="same"),
        call(normal(1, 2, 2, 3), normal(2, 3, 1, 2), strides=(3, 2), output_padding=1, data_format="channels_first"),
        call(normal(1, 2, 3, 2), normal(3, 2, 2, 2), strides=(2, 3), padding="same", output_padding=(0, 1)),
        call(normal(1, 3, 3, 1), normal(2, 2, 2, 1), padding="same", dilation_rate=(2, 1)),
        call(normal(1, 2, 2, 1, 2), normal(2, 1, 3, 1, 2), strides=2, padding="same"),
        call(normal(0, 2, 2, 1), normal(2, 2, 2, 1), strides=3),
        call(normal(1, 3, 4), normal(3, 1, 4), strides=2, padding=1, output_padding=1, dilation_rate=2, groups=2),
        call(normal(1, 4, 2, 2), normal(2, 3, 1, 4), 2, (1, 0), data_format="channels_first", groups=4),
        call(normal(1, 3, 2, 1), normal(2, 2, 1, 1), padding=((2, 0), (0, 2)), dilation_rate=2, output_padding=(0, 1)),
        pins=[
            pin(
                [[[[1.0], [2.0]], [[3.0], [4.0]]]],
                ONES,
                2,
                "same",
                value=np.reshape([[1.0, 1, 3, 2], [1, 1, 3, 2], [4, 4, 10, 6], [3, 3, 7, 4]], (1, 4, 4, 1)),
            )
        ],
    ),
    convolution(
        "op_depthwise_conv",
        _depthwise_conv,
        call(normal(2, 5, 2), normal(2, 2, 2), strides=2, padding="same"),
        call(normal(1, 2, 3, 4), normal(2, 2, 2, 1), padding="same", data_format="channels_first"),
        call(normal(1, 4, 3, 2), normal(2, 2, 2, 2), dilation_rate=(2, 1)),
        call(normal(1, 4, 4, 2), normal(2, 3, 2, 1), strides=(2, 1), padding="same"),
        call(normal(1, 3, 2, 2, 2), normal(2, 1, 2, 2, 1)),
        call(normal(0, 3, 3, 2), normal(2, 2, 2, 1)),
        call(normal(1, 4, 3, 2), normal(2, 2, 2, 1), 2, padding=(2, (0, 1)), dilation_rate=2),
        call(normal(1, 4, 2), normal(3, 2, 2), padding="circular"),
        call(normal(1, 3, 2), normal(2, 2, 2), bias=normal(4)),
    ),
    convolution(
        "op_separable_conv",
        _separable_conv,
        call(normal(1, 4, 2), normal(2, 2, 2), normal(1, 4, 3), strides=2, padding="same"),
        call(normal(1, 2, 3, 4), normal(2, 2, 2, 1), normal(1, 1, 2, 1), data_format="channels_first", dilation_rate=2),
        call(normal(1, 3, 3, 1), normal(2, 2, 1, 1), normal(1, 1, 1, 2), strides=2, padding=1),
        call(normal(1, 3, 2), normal(2, 2, 1), normal(1, 2, 3), bias=normal(3)),
        dtypes=("int32", *FLOATING),
    ),
    row(
        "op_unfold",
        _unfold,
        call(normal(2, 2, 4, 3), 2),
        call(normal(1, 2, 4, 5), (2, 3), dilation=(1, 2), padding=(1, 2), stride=(2, 1)),
        call(normal(0, 2, 3, 3), 2),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
        analytic=True,
        pins=[pin([[[[1.0, np.inf, np.nan]]]], (1, 2), value=[[[1.0, np.inf], [np.inf, np.nan]]])],
    ),
    row(
        "op_fold",
        _fold,
        call(normal(2, 8, 6), (4, 3), 2),
        call(normal(1, 12, 15), (4, 5), (2, 3), dilation=(1, 2), padding=(1, 2), stride=(2, 1)),
        call(normal(0, 4, 4), 3, 2),
        dtypes=NUMERIC,
        returns=same,
        accumulates=True,
        analytic=True,
    ),
]
