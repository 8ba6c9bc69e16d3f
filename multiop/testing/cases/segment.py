"""Rows of the reductions of segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._case import BOOLEAN, NUMERIC, REAL, Row, call, pin, row, same
from .._samplers import distinct, integers, normal, uniform
from .products import accumulation_dtype

INF, NAN = np.inf, np.nan


def _segments(reduce: Any, identity: Any) -> Any:
    def reduce_segments(data, segment_ids, num_segments=None, **options):
        n = max(segment_ids.max(initial=-1) + 1, 0) if num_segments is None else num_segments
        empty = np.full((1, *data.shape[1:]), identity(data.dtype), data.dtype)
        dtype = {} if reduce in (np.max, np.min) or data.dtype.kind not in "bi" else {"dtype": np.int64}
        found = [reduce(np.concatenate([empty, data[np.asarray(segment_ids) == i]]), 0, **dtype) for i in range(n)]
        return np.stack(found) if found else np.zeros((0, *data.shape[1:]))

    return reduce_segments


def _limit(largest: bool) -> Any:
    def identity(dtype):
        if dtype.kind in "iu":
            return np.iinfo(dtype).max if largest else np.iinfo(dtype).min
        return largest if dtype.kind == "b" else INF if largest else -INF

    return identity


def segments(op: str, reference, sampler, *calls, **options) -> Row:
    """Make a row of a segment reduction: some ids are dropped, and there may be no rows."""
    return row(
        op,
        reference,
        call(sampler(8, 2), integers(8, low=-1, high=3), num_segments=2),
        call(sampler(5), [0, 0, 0, 1, 1], 2, sorted=True),
        call(sampler(0, 2), integers(0, low=0, high=2), 2),
        *calls,
        **options,
    )


ROWS = [
    segments(
        "op_segment_sum",
        _segments(np.sum, lambda dtype: 0),
        normal,
        dtypes=BOOLEAN + NUMERIC,
        returns=accumulation_dtype,
        accumulates=True,
        analytic=True,
        pins=[
            pin([100.0, 100.0], np.array([0, 0]), 1, value=[200], dtype="int8"),
            pin([INF, 1.0, NAN], np.array([0, -1, 2]), 2, value=[INF, 0.0], gradient=[1.0, 0.0, 0.0]),
        ],
    ),
    *(
        segments(
            op,
            _segments(reduce, _limit(largest)),
            distinct,
            dtypes=BOOLEAN + REAL,
            returns=same,
            pins=[
                pin([2.0, 2.0, sign, 2.0], np.zeros(4, np.int32), 1, value=[2.0], gradient=[1 / 3, 1 / 3, 0.0, 1 / 3]),
                pin([1.0, NAN, 3.0], np.array([0, 0, 1]), 2, value=[NAN, 3.0]),
                pin([2.0] * 3, np.array([0, 0, 0]), 1, gradient=[1 / 3] * 3, dtype="float64"),
                pin([INF, INF, -INF], np.array([0, 0, 1]), 2, value=[INF, -INF]),
                pin([5.0], np.array([1]), 3, value=[-sign_of * INF, 5.0, -sign_of * INF], gradient=[1.0]),
            ],
        )
        for op, reduce, largest, sign, sign_of in (
            ("op_segment_max", np.max, False, 1.0, 1.0),
            ("op_segment_min", np.min, True, 3.0, -1.0),
        )
    ),
    segments(
        "op_segment_prod",
        _segments(np.prod, lambda dtype: 1),
        lambda *shape: uniform(*shape, low=0.5, high=1.9),
        dtypes=("int32", "int64", "float16", "float32", "float64", "complex64", "complex128"),
        ulps=16,
        accumulates=True,
        analytic=True,
        returns=same,
        pins=[
            pin([2.0, 0.0, 3.0, 4.0], np.array([0, 0, 0, 1]), 2, value=[0.0, 4.0], gradient=[0.0, 6.0, 0.0, 1.0]),
            pin([0.0, 0.0, 3.0], np.zeros(3, np.int32), 1, value=[0.0], gradient=[0.0, 0.0, 0.0]),
            pin([INF, 2.0, 3.0], np.zeros(3, np.int32), 1, value=[INF], gradient=[6.0, INF, INF]),
            pin([INF, 2.0, 7.0], np.array([-1, -1, 0]), 1, value=[7.0], gradient=[0.0, 0.0, 1.0]),
        ],
    ),
]
