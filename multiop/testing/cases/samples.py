"""Rows of the functions that are known at points."""

from __future__ import annotations

import numpy as np

from .._case import COMPLEX, FLOATING, OPEN, call, floating, pin, row
from .._samplers import Sampler, distinct, normal, uniform

INF, NAN = np.inf, np.nan
REALS = ("int32", *FLOATING)


def increasing(n: int) -> Sampler:
    """Draw numbers in order, at least 0.3 apart."""
    return Sampler(
        "increasing",
        (n,),
        lambda rng, s: np.cumsum(rng.uniform(0.3, 1.0, s)),
        lambda rng, s: np.cumsum(rng.integers(1, 4, s)),
    )


def _unwrap(x, discont=None, axis=-1, period=2 * np.pi):
    return np.unwrap(x, discont, axis, period=period)


def _gradient_terms(f, *varargs, axis=None, edge_order=1):
    """Return the size of the terms that a slope adds."""
    slopes = np.gradient(np.ones_like(f), *varargs, axis=axis, edge_order=edge_order)
    largest = np.max(np.abs(f))
    steps = [np.min(np.diff(h)) if np.ndim(h) else np.abs(h) for h in varargs] or [1.0]
    size = 4 * largest / np.min(steps)
    return tuple(np.full(f.shape, size) for _ in slopes) if isinstance(slopes, tuple) else np.full(f.shape, size)


def _interp_terms(x, xp, fp, left=None, right=None, period=None):
    """Return the size of the terms: the slope adds to the nearer value, and its digits are those of the distances."""
    scale = np.max(np.abs(np.concatenate([np.ravel(x), xp]))) + abs(period or 0.0)
    steps = np.diff(np.sort(xp % period)) if period else np.diff(xp)
    slope = 2 * np.max(np.abs(fp)) / min([*steps, 1.0])
    return np.full(np.shape(x), np.max(np.abs(fp)) + slope * scale)


ROWS = [
    row(
        "op_interp",
        np.interp,
        call(uniform(2, 3, low=-1.0, high=5.0), increasing(5), normal(5)),
        call(uniform(4, low=-1.0, high=5.0), increasing(4), normal(4), left=-7.0, right=8.0),
        call(uniform(3, low=-9.0, high=9.0), np.array([2.5, 0.5, 4.0]), normal(3), period=-3.0),
        call(normal(2), np.array([0.1]), normal(1)),
        call(normal(0), increasing(2), normal(2)),
        returns=lambda dtypes: floating(dtypes[:1]),
        ulps=8,
        accumulates=_interp_terms,
        pins=[
            pin(
                [-1.0, 0.0, 1.0, 1.5, 3.0, 4.0, NAN, INF, -INF],
                [0.0, 1.0, 3.0],
                [1.0, 2.0, 6.0],
                value=[1.0, 1.0, 2.0, 3.0, 6.0, 6.0, NAN, 6.0, 1.0],
                gradient=([0.0, 1.0, 2.0, 2.0, 2.0, 0.0, OPEN, OPEN, OPEN], [OPEN] * 3, [OPEN] * 3),
            ),
            pin([0.0, 0.5, 1.0], [0.0, 1.0], [2.0, 4.0], gradient=([2.0] * 3, [-3.0, -3.0], [1.5, 1.5])),
            pin([0.5, 1.0, 2.0, 3.0], [0.0, 1.0, 3.0], [1.0, 2.0, INF], value=[1.5, 2.0, INF, INF]),
            pin([0.5, 2.0], [0.0, 1.0, 3.0], [INF, INF, 5.0], value=[INF, INF]),
            pin([0.5, 2.0], [-INF, 1.0, 3.0], [4.0, 2.0, 5.0], value=[2.0, 3.5]),
            pin([1.0, 2.0], [1.0, 2.0, 2.0], [4.0, 5.0, 7.0], value=[4.0, 7.0]),
            pin([1.0, 2.0], [1.0, 2.0], [1e8, 1.0], value=[1e8, 1.0]),
            pin([2.0, 5.0], [1.0], [3.0], -1.0, -2.0, value=[-2.0, -2.0]),
            pin([370.0, -10.0], [350.0, 10.0], [1.0, 3.0], period=360.0, value=[3.0, 1.0]),
            pin([1.5], [1.0, 2.0], [60000.0, -60000.0], value=[0.0], dtype="float16"),
        ],
    ),
    row(
        "op_gradient",
        np.gradient,
        call(normal(5)),
        call(normal(3, 4), 0.5),
        call(normal(3, 4), 0.5, increasing(4)),
        call(normal(2, 5), increasing(5), axis=-1, edge_order=2),
        call(normal(4, 3), 2.0, axis=(1, 0), edge_order=2),
        call(normal(3, 2), axis=0),
        dtypes=("int32", *FLOATING, *COMPLEX),
        returns=lambda dtypes: floating(dtypes[:1]),
        ulps=16,
        accumulates=_gradient_terms,
        pins=[
            pin([1.0, INF, 2.0, 4.0], value=[INF, 0.5, -INF, 2.0]),
            pin([60000.0, -60000.0, 0.0], 4.0, value=[-30000.0, -7500.0, 15000.0], dtype="float16"),
            pin([1.0, 3.0], [0.0, 4.0], value=[0.5, 0.5], gradient=([-0.5, 0.5], [0.25, -0.25])),
            pin([0.0, 1.0, 4.0, 9.0], edge_order=2, value=[0.0, 2.0, 4.0, 6.0]),
        ],
    ),
    row(
        "op_unwrap",
        _unwrap,
        call(normal(2, 5, scale=5.0)),
        call(normal(4, 2, scale=5.0), axis=0, period=1.5),
        call(distinct(2, 9), discont=0.31, period=0.2),
        call(normal(0)),
        call(normal(3, 1)),
        dtypes=("int32", "float32", "float64"),
        returns=floating,
        ulps=64,
        order=1,
        pins=[
            pin([0.0, 2.0, 4.0, 3.0, -1.0], period=4.0, value=[0.0, 2.0, 4.0, 3.0, 3.0], gradient=[1.0] * 5),
            pin([0.0, -2.0, 0.0, 3.0], period=4.0, value=[0.0, -2.0, 0.0, -1.0]),
            pin([0.0, 5.0, INF, 1.0], period=4.0, value=[0.0, 1.0, NAN, NAN]),
            pin([0.0, 3.0, 6.0], discont=3.5, period=4.0, value=[0.0, 3.0, 6.0]),
            pin(np.array([3, 4, 1, 2, 120], np.int8), period=4, value=[3, 4, 5, 6, 8]),
        ],
    ),
]
