"""Rows of the products of matrices and tensors."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, COMPLEX, NUMERIC, call, pin, row, same
from .._samplers import normal

ROWS = [
    row(
        "op_matmul",
        np.matmul,
        call(normal(2, 3), normal(3, 4)),
        call(normal(3), normal(3, 2)),
        call(normal(2, 3), normal(3)),
        call(normal(3), normal(3)),
        call(normal(2, 1, 2, 3), normal(4, 3, 2)),
        call(normal(2, 2, 3), normal(3)),
        call(normal(3), normal(2, 3, 2)),
        call(normal(2, 0), normal(0, 3)),
        dtypes=BOOLEAN + NUMERIC,
        accumulates=True,
        analytic=True,
        pins=[pin([[1.0, np.nan]], [[0.0], [0.0]], value=[[np.nan]])],
    ),
    row(
        "op_einsum",
        lambda subscripts, *operands, **kwargs: np.einsum(subscripts, *operands),
        call("ij,jk->ik", normal(2, 3), normal(3, 4)),
        call("ij,jk,k", normal(2, 3), normal(3, 4), normal(4), optimize=True),
        call("...ij->...ji", normal(2, 2, 3)),
        call("ii->i", normal(3, 3)),
        call("ii", normal(3, 3)),
        call("i,j->ij", normal(2), normal(3)),
        call("ij->", normal(2, 3)),
        dtypes=NUMERIC,
        accumulates=True,
        analytic=True,
    ),
    row(
        "op_trace",
        np.trace,
        call(normal(3, 4)),
        call(normal(2, 3, 4), offset=-1, axis1=2, axis2=0),
        dtypes=("int32", "float32", "float64", *COMPLEX),
        returns=same,
        accumulates=True,
        analytic=True,
    ),
]
