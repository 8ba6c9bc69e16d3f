"""Rows of the elementwise ops."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, COMPLEX, FLOATING, INTEGER, NUMERIC, call, floating, pin, row
from .._samplers import normal

ROWS = [
    row(
        "op_add",
        np.add,
        call(normal(2, 3), normal(2, 3)),
        call(normal(2, 3), normal(3)),
        call(normal(), 2.5),
        call(normal(0, 3), normal(3)),
        dtypes=NUMERIC,
        analytic=True,
        pins=[pin([np.nan, np.inf, 1e30], [1.0, -np.inf, 1e30], value=[np.nan, np.nan, 2e30], gradient=([1.0] * 3, [1.0] * 3))],
    ),
    row(
        "op_exp",
        np.exp,
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        dtypes=BOOLEAN + INTEGER + FLOATING + COMPLEX,
        returns=floating,
        analytic=True,
        pins=[pin([100.0, -200.0, np.nan], value=[np.inf, 0.0, np.nan], gradient=[np.inf, 0.0, np.nan])],
    ),
]
