"""Rows of conversion."""

from __future__ import annotations

import numpy as np

from multiop import _dtypes

from .._case import BOOLEAN, NUMERIC, call, pin, row, same
from .._samplers import normal

ROWS = [
    row(
        "op_convert_to_tensor",
        lambda x, dtype=None, sparse=None, ragged=None: x,
        call(normal(2, 3)),
        call(normal(), sparse=False, ragged=False),
        call(3, dtype="float16"),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
        analytic=True,
    ),
    row(
        "op_cast",
        lambda x, dtype: x.astype(np.int32 if dtype == "int32" else np.float64),
        call(normal(2, 3), "float32"),
        call(normal(2, 3, scale=9.0), dtype="int32"),
        dtypes=("int8", "uint8", "float16", "bfloat16", "float32", "float64"),
        returns=lambda dtypes: None,
        differentiable=False,
        pins=[
            pin([1.7, -1.7], "bool", value=[True, True]),
            pin([1.5, 0.0], "float16", value=[1.5, 0.0], gradient=[1.0, 1.0]),
        ],
    ),
    row(
        "op_dtype",
        lambda x: _dtypes.name(x.dtype),
        call(normal(2)),
        dtypes=("float32",),
        returns=None,
        differentiable=False,
        vmap=False,
        jit=False,
    ),
    row(
        "op_shape",
        np.shape,
        call(normal(2, 3)),
        call(normal()),
        dtypes=("float32",),
        returns=None,
        differentiable=False,
        vmap=False,
        jit=False,
    ),
    row(
        "op_is_tensor",
        lambda x: isinstance(x, np.ndarray),
        call(normal(2)),
        call(2.5),
        dtypes=("float32",),
        returns=None,
        differentiable=False,
        vmap=False,
        jit=False,
    ),
    row(
        "op_convert_to_numpy",
        lambda x: x,
        call(normal(2, 3)),
        dtypes=("float32",),
        returns=lambda dtypes: None,
        differentiable=False,
        vmap=False,
        jit=False,
    ),
]
