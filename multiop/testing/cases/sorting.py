"""Rows of sorting and searching."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, REAL, call, pin, row, same
from .._samplers import distinct, integers, normal

INF, NAN = np.inf, np.nan

ROWS = [
    row(
        "op_sort",
        np.sort,
        call(distinct(2, 3)),
        call(distinct(4, 3), axis=0),
        call(distinct(2, 3), axis=None),
        call(distinct(0)),
        dtypes=BOOLEAN + REAL,
        returns=same,
        pins=[
            pin([1.0, NAN, 3.0, -INF, 3.0, INF], value=[-INF, 1.0, 3.0, 3.0, INF, NAN]),
            pin([2.0, INF, NAN, 1.0], value=[1.0, 2.0, INF, NAN], gradient=[1.0, 1.0, 1.0, 1.0]),
        ],
    ),
    row(
        "op_argsort",
        lambda x, axis=-1: np.argsort(x, axis, stable=True),
        call(distinct(2, 3)),
        call(distinct(4, 3), axis=0),
        call(distinct(2, 3), axis=None),
        call(integers(40, low=0, high=3, dtype=None)),
        dtypes=BOOLEAN + REAL,
        returns="int32",
        differentiable=False,
        pins=[pin([NAN, INF, 1.0, NAN, INF, -INF], value=[5, 2, 1, 4, 0, 3])],
    ),
    row(
        "op_searchsorted",
        lambda sorted_sequence, values, side="left": np.searchsorted(sorted_sequence, values, side),
        call([0, 1, 2, 3], integers(2, 3, low=-1, high=5, dtype=None)),
        call([0, 1, 1, 3], integers(5, low=-1, high=5, dtype=None), side="right"),
        call([0.5, 2.5], normal()),
        dtypes=("int32", "int64", "float16", "float32", "float64"),
        returns="int32",
        differentiable=False,
        pins=[pin([1.0, 2.0], [NAN, 1.0, 3.0], value=[2, 0, 2])],
    ),
]
