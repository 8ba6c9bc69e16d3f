"""Rows of the reductions."""

from __future__ import annotations

import numpy as np
import scipy.special

from .._case import BOOLEAN, COMPLEX, NUMERIC, REAL, Pin, Row, call, floating, magnitude, pin, row, same
from .._samplers import Sampler, distinct, integers, normal, uniform

INF, NAN = np.inf, np.nan


def accumulation_dtype(dtypes):
    """The dtype of a sum: at least 32 bits."""
    return {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(
        dtypes[0], dtypes[0]
    )


def deviation(dtypes):
    """Return the real dtype of a variance."""
    return magnitude([floating(dtypes)])


def near_1(*shape: int) -> Sampler:
    """Draw values whose product stays near 1."""
    return uniform(*shape, low=0.5, high=1.9)


def reduction(op: str, reference, sampler=normal, *calls, **options) -> Row:
    """Make a row of a reduction: over all axes, one, several, none, and of empty tensors."""
    return row(
        op,
        reference,
        call(sampler(2, 3)),
        call(sampler(2, 3), axis=-1),
        call(sampler(2, 3), axis=(0, 1), keepdims=True),
        call(sampler(2, 3, 4), axis=(0, -1)),
        call(sampler(2, 3), axis=()),
        call(sampler()),
        *calls,
        **options,
    )


def cumulative(op: str, reference, *pins: Pin) -> Row:
    """Make a row of a cumulative sum or product."""
    return row(
        op,
        reference,
        call(near_1(2, 3)),
        call(near_1(2, 5), axis=-1),
        call(near_1(5, 2), axis=0, dtype=None),
        call(near_1(0)),
        dtypes=("int32", "int64", "float16", "bfloat16", "float32", "float64", *COMPLEX),
        returns=same,
        ulps=16,
        accumulates=True,
        analytic=True,
        pins=pins,
    )


def _prod(x, axis=None, keepdims=False, dtype=None):
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=dtype or (np.int64 if x.dtype.kind in "bi" else None))


def _logsumexp(x, axis=None, keepdims=False):
    if x.size == 0:
        return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))
    if x.ndim == 0:  # SciPy returns a vector
        return scipy.special.logsumexp(x)
    return scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)


ROWS = [
    reduction(
        "op_sum",
        lambda x, dtype=None, **options: np.sum(x, **options),
        normal,
        call(normal(0, 3), axis=0),
        call(normal(2, 3), axis=0, dtype=None),
        dtypes=BOOLEAN + NUMERIC,
        returns=accumulation_dtype,
        accumulates=True,
        analytic=True,
        pins=[
            pin([100, 100], value=200, dtype="int8"),
            pin([INF, -INF], value=NAN),
            pin([[1.0, NAN]], axis=0, value=[1.0, NAN]),
        ],
    ),
    reduction(
        "op_prod",
        _prod,
        near_1,
        call(near_1(0, 3), axis=0),
        call(near_1(3), dtype=None),
        dtypes=("int32", "int64", "float16", "float32", "float64", *COMPLEX),
        returns=lambda dtypes: None,
        ulps=16,
        accumulates=True,
        analytic=True,
        pins=[
            pin([2.0, 0.0, 3.0], value=0.0, gradient=[0.0, 6.0, 0.0]),
            pin([0.0, 0.0, 3.0], value=0.0, gradient=[0.0, 0.0, 0.0]),
            pin([1e-30, 1e-30, 1e10], value=0.0, gradient=[1e-20, 1e-20, 0.0]),  # 0 in whatever order
            pin([INF, 2.0], value=INF, gradient=[2.0, INF]),
        ],
    ),
    reduction(
        "op_mean",
        lambda x, dtype=None, **options: np.mean(x, **options),
        normal,
        call(normal(2, 3), axis=0, dtype=None),
        dtypes=BOOLEAN + NUMERIC,
        returns=floating,
        accumulates=True,
        analytic=True,
        pins=[
            pin([1, 2], value=1.5, dtype="int32"),
            pin([60000.0, 60000.0], value=60000.0, dtype="float16"),
            pin([], value=NAN),
        ],
    ),
    reduction(
        "op_var",
        np.var,
        normal,
        dtypes=("int32", "float32", "float64", *COMPLEX),
        returns=deviation,
        accumulates=True,
        pins=[pin([3.0], value=0.0, gradient=[0.0]), pin([1.0, 2.0, 4.0], value=14.0 / 9.0)],
    ),
    row(
        "op_std",
        np.std,
        call(normal(2, 3)),
        call(normal(2, 3), axis=-1),
        call(normal(2, 3, 4), axis=(0, -1), keepdims=True),
        dtypes=("int32", "float32", "float64"),
        returns=floating,
        accumulates=True,
        pins=[pin([2.0, 2.0], value=0.0, gradient=[0.0, 0.0])],
    ),
    *(
        reduction(
            op,
            reference,
            distinct,
            call(distinct(2, 3), axis=0, initial=0),
            dtypes=REAL,
            returns=same,
            pins=[
                pin([2.0, 2.0, sign], value=2.0, gradient=[0.5, 0.5, 0.0]),
                pin([NAN, 1.0], value=NAN),
                pin([INF * sign, INF * sign], value=INF * sign, gradient=[0.5, 0.5]),
                pin([], initial=3.0, value=3.0),
                pin([[2.0, 2.0]], axis=1, initial=sign, value=[2.0], gradient=[[0.5, 0.5]]),
                pin([[2.0, 2.0]], axis=(0, 1), value=2.0, gradient=[[0.5, 0.5]]),
            ],
        )
        for op, reference, sign in (("op_max", np.max, 1.0), ("op_min", np.min, 3.0))
    ),
    *(
        row(
            op,
            reference,
            call(distinct(2, 3)),
            call(distinct(2, 3), axis=-1),
            call(distinct(2, 3), axis=0, keepdims=True),
            call(integers(20, low=0, high=2, dtype=None)),
            call(distinct()),
            dtypes=BOOLEAN + REAL,
            returns="int32",
            differentiable=False,
            pins=[pin([1.0, NAN, 5.0, NAN], value=1), pin([1.0, 1.0], value=0)],
        )
        for op, reference in (("op_argmax", np.argmax), ("op_argmin", np.argmin))
    ),
    *(
        reduction(
            op,
            reference,
            lambda *shape: integers(*shape, low=0, high=2, dtype=None),
            call(integers(0, 3, low=0, high=2, dtype=None), axis=0),
            dtypes=BOOLEAN + NUMERIC,
            returns="bool",
            differentiable=False,
            pins=[pin([NAN, 1.0], value=True)],
        )
        for op, reference in (("op_all", np.all), ("op_any", np.any))
    ),
    reduction(
        "op_logsumexp",
        _logsumexp,
        normal,
        dtypes=BOOLEAN + REAL,
        returns=floating,
        ulps=8,
        pins=[
            pin([1000.0, 1000.0], value=1000.0 + np.log(2.0), gradient=[0.5, 0.5]),
            pin([-INF, -INF], value=-INF, gradient=[0.0, 0.0]),
            pin([-INF, 0.0], value=0.0, gradient=[0.0, 1.0]),
            pin([INF, 0.0, INF], value=INF),
            pin([NAN, 0.0], value=NAN),
            pin([], value=-INF),
        ],
    ),
    *(
        row(op, reference, call(distinct(2, 3)), call(distinct(2, 3), axis=0, keepdims=True), dtypes=REAL, returns=same)
        for op, reference in (("op_amax", np.max), ("op_amin", np.min))
    ),
    cumulative(
        "op_cumsum",
        lambda x, axis=None, dtype=None: np.cumsum(x, axis),
        pin([100, 100], value=[100, 200], dtype="int8"),
        pin([1.0, NAN, 1.0], value=[1.0, NAN, NAN]),
    ),
    cumulative(
        "op_cumprod",
        lambda x, axis=None, dtype=None: np.cumprod(x, axis),
        pin([2.0, 0.0, 3.0], value=[2.0, 0.0, 0.0], gradient=[1.0, 8.0, 0.0]),
        pin([1e-30, 1e-30, 1e30], gradient=[2.0, 1.0, 0.0]),
    ),
    row(
        "op_count_nonzero",
        np.count_nonzero,
        call(integers(3, 4, low=0, high=2, dtype=None)),
        call(integers(3, 4, low=0, high=2, dtype=None), axis=-1),
        call(integers(3, 4, low=0, high=2, dtype=None), axis=(0, 1)),
        dtypes=BOOLEAN + NUMERIC,
        returns="int32",
        differentiable=False,
    ),
    row(
        "op_ptp", np.ptp, call(distinct(2, 3)), call(distinct(2, 3), axis=-1, keepdims=True), dtypes=REAL, returns=same
    ),
    row(
        "op_average",
        lambda x, axis=None, weights=None: np.average(x, axis, weights),
        call(normal(2, 3)),
        call(normal(2, 3), axis=0, weights=near_1(2)),
        call(normal(2, 3), -1, near_1(2, 3)),
        call(normal(2, 3), weights=near_1(2, 3)),
        dtypes=("float32", "float64", *COMPLEX),
        returns=floating,
        accumulates=True,
        analytic=True,
    ),
    row(
        "op_diff",
        lambda a, n=1, axis=-1: np.diff(a, n, axis),
        call(normal(2, 5)),
        call(normal(5, 2), n=2, axis=0),
        call(normal(3), 0),
        call(normal(2), 3),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
        ulps=16,
        accumulates=True,
        analytic=True,
    ),
]
