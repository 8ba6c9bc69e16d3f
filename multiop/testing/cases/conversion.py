"""Rows of conversion."""

from __future__ import annotations

import numpy as np

from multiop import extend

from .._case import BOOLEAN, NUMERIC, OPEN, call, pin, row, same
from .._samplers import integers, normal
from .shapes import row_without_tensor

INF, NAN = np.inf, np.nan
MOST = 2**31 - 1
FLOAT32 = float(np.finfo("float32").max)


def _saturate_cast(x, dtype):
    if dtype == "bool":
        return x != 0
    least, largest = extend.EXTREMES[dtype]
    clipped = np.clip(x.astype(np.float64), least, largest)
    return clipped if dtype == "float16" else np.trunc(clipped)


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
        "op_saturate_cast",
        _saturate_cast,
        call(normal(2, 3, scale=200.0), "int8"),
        call(normal(2, 3, scale=200.0), dtype="uint8"),
        call(normal(2, 3), "float16"),
        call(normal(3), "bool"),
        dtypes=("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
        returns=lambda dtypes: None,
        differentiable=False,
        pins=[
            pin(
                [INF, -INF, NAN, 2147483520.0, -2147483648.0],
                "int32",
                value=[MOST, -MOST - 1, 0, 2147483520, -MOST - 1],
            ),
            pin(
                [INF, -INF, NAN, 65504.0, 7e4],
                "float16",
                value=[65504.0, -65504.0, NAN, 65504.0, 65504.0],
                gradient=[0.0, 0.0, OPEN, 1.0, 0.0],
            ),
            pin([INF, NAN, 1.0], "float32", value=[INF, NAN, 1.0], dtype="float16"),
            pin([1e300 + 1e300j], "complex64", value=[FLOAT32 + 1j * FLOAT32], dtype="complex128"),
        ],
    ),
    row(
        "op_view",
        lambda x, dtype=None: (
            x if dtype is None else x.astype("float32" if x.dtype.kind == "f" else x.dtype).view(dtype)
        ),
        call(normal(2, 3), "int32"),
        call(normal(2, 2), dtype="uint8"),
        call(integers(2, 4, dtype="int16"), "float32"),
        call(normal(2)),
        dtypes=("int32", "float32"),
        returns=lambda dtypes: None,
        differentiable=False,
    ),
    row(
        "op_view_as_complex",
        lambda x: x[..., 0] + 1j * x[..., 1],
        call(normal(3, 2)),
        call(normal(2)),
        call(normal(0, 2)),
        dtypes=("int32", "bool", *extend.FLOATING),
        returns=lambda dtypes: "complex128" if dtypes[0] == "float64" else "complex64",
    ),
    row(
        "op_view_as_real",
        lambda x: np.stack([np.real(x), np.imag(x)], -1),
        call(normal(2, 3)),
        call(normal()),
        dtypes=extend.COMPLEX,
        returns=lambda dtypes: extend.REAL_PART[dtypes[0]],
    ),
    row(
        "op_array",
        lambda x, dtype=None: np.asarray(x),
        call(normal(2, 3)),
        call(3, dtype="float16"),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
    ),
    row_without_tensor(
        "op_dtype",
        lambda x: extend.dtype_name(x.dtype),
        call(normal(2)),
    ),
    row_without_tensor(
        "op_shape",
        np.shape,
        call(normal(2, 3)),
        call(normal()),
    ),
    row_without_tensor(
        "op_is_tensor",
        lambda x: isinstance(x, np.ndarray),
        call(normal(2)),
        call(2.5),
    ),
    row_without_tensor(
        "op_convert_to_numpy",
        lambda x: x,
        call(normal(2, 3)),
        returns=lambda dtypes: None,
    ),
]
