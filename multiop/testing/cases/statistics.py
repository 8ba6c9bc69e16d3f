"""Rows of the statistics."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._case import BOOLEAN, COMPLEX, FLOATING, NUMERIC, REAL, Pin, Row, call, floating, pin, row, same
from .._samplers import Sampler, distinct, integers, normal, uniform
from .products import accumulation_dtype
from .reduction import deviation

INF, NAN = np.inf, np.nan


def with_nans(*shape: int) -> Sampler:
    """Draw distinct values with some NaN, but at least one other entry along the last axis."""
    whole = distinct(*shape)

    def real(rng, s):
        drawn = whole.real(rng, s)
        nan = rng.random(s) < 0.4
        nan[..., :1] = False
        return np.where(nan, NAN, drawn)

    return Sampler("holed", shape, real, whole.integral)


def near_1(*shape: int) -> Sampler:
    """Draw values whose product stays near 1, with some NaN."""
    whole = uniform(*shape, low=0.5, high=1.9)
    return Sampler(
        "near_1", shape, lambda rng, s: np.where(rng.random(s) < 0.4, NAN, whole.real(rng, s)), whole.integral
    )


def skipping(op: str, reference, sampler=with_nans, **options) -> Row:
    """Make a row of a reduction that skips NaN: over all axes, one, several."""
    return row(
        op,
        reference,
        call(sampler(2, 3)),
        call(sampler(3, 4), axis=-1),
        call(sampler(2, 2, 3), axis=(0, -1), keepdims=True),
        **options,
    )


def cumulative(op: str, reference, *pins: Pin) -> Row:
    """Make a row of a cumulative sum or product that skips NaN."""
    return row(
        op,
        reference,
        call(near_1(2, 3)),
        call(near_1(2, 3), axis=-1, dtype=None),
        call(near_1(3, 2), axis=0),
        dtypes=("int32", *FLOATING, *COMPLEX),
        returns=same,
        ulps=16,
        accumulates=True,
        pins=pins,
    )


def _nanprod(x, axis=None, keepdims=False):
    return np.nanprod(x, axis=axis, keepdims=keepdims, dtype=np.int64 if x.dtype.kind in "bi" else None)


def _products_at_most(x, y=None, rowvar=True, **options):
    """Return the size of the products that make a covariance, as the matrix of them."""
    size = np.shape(np.cov(x, y, rowvar, **options))
    return np.full(size, max(np.max(np.abs(one)) ** 2 for one in (x, y) if one is not None))


def _quantiles(reference: Any, whole: float) -> Any:
    def quantile(x, q, axis=None, method="linear", keepdims=False):
        return reference(x, np.asarray(q) / whole, axis=axis, method=method, keepdims=keepdims)

    return quantile


def of_x(dtypes):
    """The dtype of the values whose quantiles are computed; `floatx` for integers."""
    return floating(dtypes[:1])


def shares(whole: float) -> Sampler:
    """Draw two shares of `whole`, away from the kinks of quantiles except for integers."""
    return Sampler(
        "shares", (2,), lambda rng, s: rng.uniform(0.42, 0.48, s) * whole, lambda rng, s: rng.integers(0, 2, s)
    )


def quantiles(op: str, reference, whole: float, sampler, **options) -> Row:
    """Make a row of quantiles: each method, constant and drawn shares, several axes."""
    return row(
        op,
        _quantiles(reference, whole),
        call(sampler(5), 0.3 * whole),
        call(sampler(2, 4), [0.0, 0.45 * whole, whole], axis=-1, method="midpoint"),
        call(sampler(2, 2, 3), 0.7 * whole, axis=(0, -1), method="lower", keepdims=True),
        call(sampler(2, 4), [0.2 * whole], axis=1, method="higher", keepdims=True),
        call(sampler(2, 4), [0.5 * whole, 0.2 * whole], axis=1, method="nearest"),
        call(sampler(2, 6), shares(whole), axis=1),
        returns=of_x,
        ulps=32,
        **options,
    )


convolution = functools.partial(row, dtypes=BOOLEAN + NUMERIC, accumulates=True)

ROWS = [
    convolution(
        "op_correlate",
        np.correlate,
        call(normal(5), normal(3)),
        call(normal(2), normal(5)),
        call(normal(4), normal(4), mode="same"),
        call(normal(3), normal(4), mode="same"),
        call(normal(4), normal(2), mode="full"),
        pins=[pin([1.0, INF, 3.0], [1.0, 1.0], value=[INF, INF])],
    ),
    skipping(
        "op_nansum",
        np.nansum,
        dtypes=BOOLEAN + NUMERIC,
        returns=accumulation_dtype,
        accumulates=True,
        pins=[
            pin([NAN, NAN], value=0.0, gradient=[0.0, 0.0]),
            pin([[1.0, NAN]], axis=0, value=[1.0, 0.0], gradient=[[1.0, 0.0]]),
            pin([], value=0.0),
        ],
    ),
    skipping(
        "op_nanprod",
        _nanprod,
        near_1,
        dtypes=("int32", "int64", "float16", "float32", "float64", *COMPLEX),
        returns=same,
        ulps=16,
        accumulates=True,
        pins=[
            pin([NAN, NAN], value=1.0, gradient=[0.0, 0.0]),
            pin([2.0, NAN, 0.0, 3.0], value=0.0, gradient=[0.0, 0.0, 6.0, 0.0]),
        ],
    ),
    cumulative(
        "op_nancumsum",
        lambda x, axis=None, dtype=None: np.nancumsum(x, axis),
        pin([1.0, NAN, 3.0], value=[1.0, 1.0, 4.0], gradient=[3.0, 0.0, 1.0]),
    ),
    cumulative(
        "op_nancumprod",
        lambda x, axis=None, dtype=None: np.nancumprod(x, axis),
        pin([NAN, 0.0, 3.0], value=[1.0, 0.0, 0.0], gradient=[0.0, 4.0, 0.0]),
    ),
    skipping(
        "op_nanmean",
        np.nanmean,
        dtypes=BOOLEAN + NUMERIC,
        returns=floating,
        accumulates=True,
        pins=[
            pin([NAN, NAN], value=NAN),
            pin([60000.0, NAN, 60000.0], value=60000.0, dtype="float16"),
            pin([INF, NAN, 1.0], value=INF, gradient=[0.5, 0.0, 0.5]),
            pin([], value=NAN),
        ],
    ),
    skipping(
        "op_nanvar",
        np.nanvar,
        dtypes=("int32", *FLOATING, *COMPLEX),
        returns=deviation,
        accumulates=True,
        pins=[
            pin([3.0, NAN], value=0.0, gradient=[0.0, 0.0]),
            pin([NAN, NAN], value=NAN),
            pin([INF, NAN, 1.0], value=NAN),
        ],
    ),
    skipping(
        "op_nanstd",
        np.nanstd,
        dtypes=("int32", "float16", "float32", "float64"),
        returns=floating,
        ulps=8,
        accumulates=True,
        pins=[
            pin([3.0, NAN, 3.0], value=0.0, gradient=[0.0, 0.0, 0.0]),
            pin([NAN, NAN], value=NAN),
            pin([1.0, NAN, 3.0], value=1.0, gradient=[-0.5, 0.0, 0.5]),
        ],
    ),
    *(
        skipping(
            op,
            reference,
            dtypes=REAL,
            returns=same,
            pins=[
                pin([2.0, NAN, 2.0, other], value=2.0, gradient=[0.5, 0.0, 0.5, 0.0]),
                pin([NAN, NAN], value=NAN),
                pin([NAN, worst, NAN, worst], value=worst, gradient=[0.0, 0.5, 0.0, 0.5]),
                pin([-worst, NAN, worst], value=-worst, gradient=[1.0, 0.0, 0.0]),
            ],
        )
        for op, reference, other, worst in (("op_nanmax", np.nanmax, 1.0, -INF), ("op_nanmin", np.nanmin, 3.0, INF))
    ),
    *(
        row(
            op,
            reference,
            call(with_nans(2, 3)),
            call(with_nans(3, 4), axis=-1),
            call(with_nans(3, 4), axis=1, keepdims=True),
            call(integers(20, low=0, high=3, dtype=None)),
            dtypes=BOOLEAN + REAL,
            returns="int32",
            differentiable=False,
            pins=[
                pin([[NAN, 1.0, NAN, 1.0], [NAN] * 4], axis=1, value=[1, -1]),
                pin([NAN, worst, worst], value=1),
            ],
        )
        for op, reference, worst in (("op_nanargmax", np.nanargmax, -INF), ("op_nanargmin", np.nanargmin, INF))
    ),
    quantiles(
        "op_quantile",
        np.quantile,
        1,
        distinct,
        dtypes=("int32", *FLOATING),
        pins=[
            pin([3.0, 1.0, 2.0], q=0.25, value=1.5, gradient=[0.0, 0.5, 0.5]),
            pin([1.0, 1.0], q=0.25, value=1.0, gradient=[0.75, 0.25]),
            pin([1.0, INF], [0.0, 1.0], value=[1.0, INF]),
            pin([-INF, INF], q=0.5, value=NAN),
            pin([1.0, NAN, 2.0], [0.0, 0.5], value=[NAN, NAN]),
            pin([], q=0.5, value=NAN),
            pin([1.0, 2.0, 3.0, 4.0], [0.5, 0.17], method="nearest", value=[3.0, 2.0]),
        ],
    ),
    quantiles(
        "op_percentile",
        np.quantile,
        100,
        distinct,
        dtypes=("float32", "float64"),
        pins=[pin([3.0, 1.0, 2.0], q=25, value=1.5, gradient=[0.0, 0.5, 0.5])],
    ),
    row(
        "op_median",
        np.median,
        call(distinct(2, 3)),
        call(distinct(2, 3), axis=-1, keepdims=True),
        call(distinct(2, 2, 3), axis=(0, -1)),
        call(distinct()),
        dtypes=("int32", *FLOATING),
        returns=floating,
        pins=[
            pin([4.0, 1.0, 3.0, 2.0], value=2.5, gradient=[0.0, 0.0, 0.5, 0.5]),
            pin([1.0, NAN], value=NAN),
            pin([1.0, INF, INF], value=INF),
            pin([], value=NAN),
        ],
    ),
    quantiles(
        "op_nanquantile",
        np.nanquantile,
        1,
        with_nans,
        dtypes=("int32", *FLOATING),
        pins=[
            pin([3.0, NAN, 1.0, 2.0], q=0.25, value=1.5, gradient=[0.0, 0.0, 0.5, 0.5]),
            pin([[NAN, NAN], [1.0, NAN]], q=0.5, axis=1, value=[NAN, 1.0], gradient=[[0.0, 0.0], [1.0, 0.0]]),
            pin([NAN, INF, 1.0], [0.0, 1.0], value=[1.0, INF]),
            pin([], q=0.5, value=NAN),
        ],
    ),
    quantiles(
        "op_nanpercentile",
        np.nanquantile,
        100,
        with_nans,
        dtypes=("float32", "float64"),
        pins=[pin([3.0, NAN, 1.0, 2.0], q=25, value=1.5, gradient=[0.0, 0.0, 0.5, 0.5])],
    ),
    skipping(
        "op_nanmedian",
        np.nanmedian,
        dtypes=("int32", *FLOATING),
        returns=floating,
        pins=[
            pin([4.0, NAN, 1.0, 2.0], value=2.0, gradient=[0.0, 0.0, 0.0, 1.0]),
            pin([NAN, NAN], value=NAN),
        ],
    ),
    row(
        "op_moments",
        lambda x, axes, keepdims=False, synchronized=False: (
            np.mean(x, axis=axes, keepdims=keepdims),
            np.var(x, axis=axes, keepdims=keepdims),
        ),
        call(normal(2, 3), (0,)),
        call(normal(2, 3), None, synchronized=False),
        call(normal(2, 2, 3), (0, -1), keepdims=True),
        dtypes=("int32", *FLOATING),
        returns=floating,
        accumulates=True,
    ),
    row(
        "op_corrcoef",
        np.corrcoef,
        call(normal(3, 5)),
        call(normal(2, 4)),
        dtypes=("int32", *FLOATING, *COMPLEX),
        returns=floating,
        ulps=16,
        accumulates=True,
        pins=[
            pin([[1e30, 2e30, 4e30], [1e-30, 2e-30, 4e-30]], value=[[1.0, 1.0], [1.0, 1.0]]),
            pin([[1.0, 1.0], [1.0, 2.0]], value=[[NAN, NAN], [NAN, 1.0]]),
            pin([1.0, 2.0, 4.0], value=1.0),
            pin([[1.0, 2.0, 4.0]], value=1.0),
        ],
    ),
    convolution(
        "op_convolve",
        np.convolve,
        call(normal(5), normal(3)),
        call(normal(2), normal(5), mode="same"),
        call(normal(5), normal(4), mode="same"),
        call(normal(4), normal(4), mode="valid"),
        call(normal(2), normal(3), mode="valid"),
        call(normal(1), normal(2)),
        pins=[pin([1.0, INF, 3.0], [1.0, 1.0], value=[1.0, INF, INF, 3.0])],
    ),
    row(
        "op_cov",
        np.cov,
        call(normal(3, 5)),
        call(normal(4)),
        call(normal(4, 3), rowvar=False, bias=True),
        call(normal(5), normal(2, 5), ddof=0),
        call(normal(2, 4), ddof=2, fweights=integers(4, low=1, high=4)),
        call(normal(2, 4), aweights=np.array([1, 2, 4, 3])),
        call(normal(4), y=normal(4), fweights=np.array([1, 2, 1, 3]), aweights=np.array([1, 2, 4, 3])),
        dtypes=("int32", *FLOATING, *COMPLEX),
        returns=lambda dtypes: floating(dtypes[:1]),
        ulps=16,
        accumulates=_products_at_most,
        pins=[
            pin([[1.0, 2.0, 4.0]], value=7 / 3),
            pin([[1.0], [2.0]], value=[[NAN, NAN], [NAN, NAN]]),
            pin([60000.0, 59000.0], bias=True, value=INF, dtype="float16"),
            pin([200.0, 0.0, 0.0, 0.0], value=10000.0, dtype="float16"),
        ],
    ),
    row(
        "op_trapezoid",
        lambda y, x=None, dx=1.0, axis=-1: np.trapezoid(y, x, dx, axis),
        call(normal(2, 4)),
        call(normal(3, 2), dx=0.5, axis=0),
        call(normal(3, 4), normal(4)),
        call(normal(3, 2), normal(3), axis=0),
        call(normal(2, 3), x=normal(2, 3), axis=1),
        call(normal(2, 1)),
        call(normal(0)),
        dtypes=("int32", *FLOATING, *COMPLEX),
        returns=floating,
        ulps=8,
        accumulates=True,
        analytic=True,
        pins=[pin([60000.0, 60000.0], value=60000.0, dtype="float16")],
    ),
]
