"""Rows of normalization."""

from __future__ import annotations

import functools

import numpy as np

from .._case import BOOLEAN, REAL, call, floating, pin, row
from .._samplers import nonzero, normal, positive

NAN = np.nan


def normalize(x, axis=-1, order=2, epsilon=1e-7):
    """Divide by a norm."""
    norm = (np.abs(x.astype(float)) ** order).sum(axis, keepdims=True) ** (1 / order)
    return x / np.maximum(norm, epsilon)


def batch_normalization(x, mean, variance, axis, offset=0.0, scale=1.0, epsilon=1e-3):
    """Subtract the mean, divide by the deviation."""
    x, scale, offset = np.moveaxis(x, axis, -1), np.asarray(scale), np.asarray(offset)
    return np.moveaxis((x - mean) / np.sqrt(variance + epsilon) * scale + offset, -1, axis)


def batch_normalization_with_moments(
    x, axis, offset=0.0, scale=1.0, epsilon=1e-3, moving_mean=0.0, moving_variance=0.0, momentum=0.0, correction=0
):
    """Take off the mean, divide by the deviation, both of `x` at each place along `axis`; return these too, moved."""
    x = x.astype(float)
    rest = tuple(k for k in range(x.ndim) if k != axis % x.ndim)
    mean, variance = x.mean(rest), x.var(rest)
    y, share = batch_normalization(x, mean, variance, axis, offset, scale, epsilon), 1 - momentum
    mean = moving_mean * momentum + mean * share
    return y, mean, moving_variance * momentum + x.var(rest, ddof=correction) * share


def fit_parameter(parameter, x, axis):
    """Reshape a parameter of the dimensions `axis` to broadcast with `x`."""
    axes = sorted(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
    return parameter.reshape([x.shape[d] if d in axes else 1 for d in range(x.ndim)])


def layer_normalization(x, gamma=None, beta=None, axis=-1, epsilon=1e-7, rms_scaling=False):
    """Take off the mean, divide by the deviation, both of `x`."""
    x = x.astype(float)
    y = (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + epsilon)
    y = y if gamma is None else y * fit_parameter(gamma, x, axis)
    return y if beta is None else y + fit_parameter(beta, x, axis)


def group_normalization(x, groups, gamma=1.0, beta=0.0, axis=-1, epsilon=1e-7):
    """Take off the mean, divide by the deviation, both of each group of channels of `x`."""
    last = np.moveaxis(x.astype(float), axis, -1)
    shape, others = (*last.shape[:-1], groups, last.shape[-1] // groups), (*range(1, last.ndim - 1), last.ndim)
    parts = last.reshape(shape)
    y = (parts - parts.mean(others, keepdims=True)) / np.sqrt(parts.var(others, keepdims=True) + epsilon)
    return np.moveaxis(y.reshape(last.shape) * gamma + beta, -1, axis)


def rms_normalization(x, scale=None, axis=-1, epsilon=1e-7):
    """Divide by the root mean square."""
    x = x.astype(float)
    y = x / np.sqrt((x * x).mean(axis, keepdims=True) + epsilon)
    return y if scale is None else y * fit_parameter(scale, x, axis)


normalization = functools.partial(row, dtypes=BOOLEAN + REAL, returns=floating, ulps=16, accumulates=True)

ROWS = [
    row(
        "op_normalize",
        normalize,
        call(normal(2, 3)),
        call(nonzero(2, 3), axis=0, order=1),
        call(normal(2, 2, 2), axis=(0, -1), order=3, epsilon=2.0),
        call(normal(0, 3)),
        call(normal(), axis=None),
        dtypes=BOOLEAN + REAL,
        returns=floating,
        ulps=16,
        pins=[
            pin([0.0, 0.0], value=[0.0, 0.0], gradient=[1e7, 1e7]),
            pin([0.0, 0.0], value=[0.0, 0.0], gradient=[10.0, 10.0], order=1, epsilon=0.1),
            pin([0.0, 0.0], value=[0.0, 0.0], gradient=[10.0, 10.0], order=3, epsilon=0.1),
            pin([3e30, 4e30], value=[0.6, 0.8]),
            pin([300.0, 400.0], value=[0.6, 0.8], dtype="float16"),
            pin([NAN, 1.0], value=[NAN, NAN]),
        ],
    ),
    normalization(
        "op_batch_normalization",
        batch_normalization,
        call(normal(2, 3), normal(3), positive(3), -1),
        call(normal(2, 3, 2), normal(3), positive(3), axis=1, offset=normal(3), scale=normal(3), epsilon=0.1),
        call(normal(0, 3), normal(3), positive(3), 1, scale=normal(3)),
        pins=[
            pin([[4.0], [6.0]], [4.0], [0.0], value=[[0.0], [64.0]], axis=1, epsilon=2.0**-10),
            pin([[300.0]], [100.0], [40000.0], value=[[1.0]], axis=1, dtype="float16"),
        ],
    ),
    normalization(
        "op_batch_normalization_with_moments",
        batch_normalization_with_moments,
        call(normal(4, 3), 1),
        call(normal(2, 3, 2), axis=1, offset=normal(3), scale=normal(3), epsilon=0.1),
        call(normal(2, 2, 3), axis=-1, scale=normal(3)),
        call(normal(4, 3), 1, moving_mean=normal(3), moving_variance=positive(3), momentum=0.75, correction=1),
        call(normal(2, 3, 2), 1, scale=normal(3), moving_mean=normal(3), moving_variance=positive(3), momentum=0.9),
        ulps=32,
        pins=[pin([[4.0], [4.0]], value=([[0.0], [0.0]], [4.0], [0.0]), axis=1, epsilon=2.0**-10)],
    ),
    normalization(
        "op_layer_normalization",
        layer_normalization,
        call(normal(2, 3), rms_scaling=False),
        call(normal(3, 2, 2), normal(3, 2), normal(3, 2), axis=(0, -1), epsilon=0.1),
        call(normal(2, 3), gamma=normal(3), beta=normal(3)),
        call(normal(0, 3), axis=1),
        ulps=32,
        pins=[
            pin([2.0, 2.0], value=[0.0, 0.0], gradient=[0.0, 0.0]),
            *[pin([2.0, 2.0], value=[0.0, 0.0], gradient=[0.0, 0.0], dtype=dtype) for dtype in ("float16", "bfloat16")],
            pin([10001.0, 9999.0], value=[1.0, -1.0]),
            pin([400.0, -400.0], value=[1.0, -1.0], dtype="float16"),
            pin([NAN, 1.0], value=[NAN, NAN]),
        ],
    ),
    normalization(
        "op_group_normalization",
        group_normalization,
        call(normal(2, 3, 4), 2),
        call(normal(2, 4, 3, 2), 2, normal(4), normal(4), axis=1, epsilon=0.1),
        call(normal(3, 4, 2), 1, gamma=normal(4), axis=-2),
        call(normal(2, 3, 3), 3, beta=normal(3)),
        call(normal(0, 3), 3, axis=1),
        ulps=32,
        pins=[
            pin([[2.0, 2.0]], value=[[0.0, 0.0]], gradient=[[0.0, 0.0]], groups=1),
            pin([[2.0, 5.0]], value=[[0.0, 0.0]], gradient=[[0.0, 0.0]], groups=2),
            *[pin([[2.0, 2.0]], value=[[0.0, 0.0]], groups=1, dtype=dtype) for dtype in ("float16", "bfloat16")],
            pin([[10001.0, 9999.0]], value=[[1.0, -1.0]], groups=1),
            pin([[[10001.0], [9999.0]]], value=[[[1.0], [-1.0]]], groups=1, axis=1),
            pin([[400.0, -400.0]], value=[[1.0, -1.0]], groups=1, dtype="float16"),
            pin([[NAN, 1.0, 2.0, 2.0]], value=[[NAN, NAN, 0.0, 0.0]], groups=2),
        ],
    ),
    normalization(
        "op_rms_normalization",
        rms_normalization,
        call(normal(2, 3)),
        call(normal(3, 2, 2), normal(3, 2), axis=(0, -1), epsilon=0.1),
        call(normal(2, 3), scale=normal(3)),
        call(normal(0, 3), axis=1),
        pins=[
            pin([0.0, 0.0], value=[0.0, 0.0], gradient=[1e7**0.5] * 2),
            pin([400.0, -400.0], value=[1.0, -1.0], dtype="float16"),
            pin([NAN, 1.0], value=[NAN, NAN]),
        ],
    ),
]
