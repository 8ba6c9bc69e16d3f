"""Rows of the special functions."""

from __future__ import annotations

import numpy as np
from scipy import special

from .._case import BOOLEAN, FLOATING, REAL, Row, call, floating, pin, row
from .._samplers import normal, unit

INF, NAN = np.inf, np.nan


def function(op: str, reference, sampler=normal, dtypes=BOOLEAN + REAL, **options) -> Row:
    """Make a row of a function of real numbers."""
    return row(
        op,
        reference,
        call(sampler(2, 3)),
        call(sampler()),
        call(sampler(0)),
        dtypes=dtypes,
        returns=floating,
        ulps=16,
        **options,
    )


ROWS = [
    function(
        "op_erf",
        special.erf,
        pins=[
            *[
                pin([INF, -INF, NAN], value=[1.0, -1.0, NAN], gradient=[0.0, 0.0, NAN], dtype=dtype)
                for dtype in ("float32", "float64")
            ],
            pin([1e200, -1e300], value=[1.0, -1.0], gradient=[0.0, 0.0], dtype="float64"),
            # a long array, which PyTorch computes in another way
            pin([2.0**-30] * 32, value=[2.0**-29 / np.sqrt(np.pi)] * 32, dtype="bfloat16"),
        ],
    ),
    function(
        "op_erfc",
        special.erfc,
        lambda *shape: normal(*shape, scale=0.5),
        pins=[pin([INF, -INF, 5.0], value=[0.0, 2.0, special.erfc(5.0)])],
    ),
    function(
        "op_erfinv",
        special.erfinv,
        unit,
        dtypes=BOOLEAN + FLOATING,
        pins=[
            pin([1.0, -1.0, 2.0, 0.0], value=[INF, -INF, NAN, 0.0]),
            pin([1.0, -1.0, 0.0], gradient=[INF, INF, np.sqrt(np.pi) / 2]),
            pin([1e-20], value=[1e-20 * np.sqrt(np.pi) / 2]),
            pin(
                [1e-20, 1 - 2.0**-53], value=[1e-20 * np.sqrt(np.pi) / 2, special.erfinv(1 - 2.0**-53)], dtype="float64"
            ),
        ],
    ),
    function(
        "op_i0",
        special.i0,
        pins=[
            pin([0.0, INF, -INF, NAN], value=[1.0, INF, INF, NAN]),
            pin([0.0, 2.0, -2.0], gradient=[0.0, special.i1(2.0), -special.i1(2.0)]),
            pin([INF, -INF, 1e-10, 1000.0, NAN], gradient=[INF, -INF, 5e-11, INF, NAN]),
            pin([11.0], value=[special.i0(11.0)], gradient=[special.i1(11.0)], dtype="float16"),
            pin([100.0, -1e10], value=[special.i0(100.0), INF], gradient=[special.i1(100.0), -INF], dtype="float64"),
        ],
    ),
]
