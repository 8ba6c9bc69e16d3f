"""Rows of the products of matrices and tensors."""

from __future__ import annotations

import functools

import numpy as np

from .._case import BOOLEAN, COMPLEX, NUMERIC, call, pin, promote_dtypes, row, same
from .._samplers import normal, uniform

INF = np.inf


def _cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Compute the cross product from its definition: NumPy is about to drop vectors of two components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(x1, axisa, 0), np.moveaxis(x2, axisb, 0)
    if len(a) == len(b) == 2:
        return a[0] * b[1] - a[1] * b[0]
    a, b = ([*x, 0] if len(x) == 2 else x for x in (a, b))
    c = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return np.moveaxis(np.stack(c), 0, axisc)


def _vander(x, N=None, increasing=False):
    return np.vander(x, N, increasing)


def _of_products(dtypes):
    dtype = promote_dtypes(dtypes)
    return "int32" if dtype == "int8" else dtype


def _without_int8(*arrays):
    return [x.astype(np.int32) if x.dtype == np.int8 else x for x in arrays]


def _matmul(x1, x2):
    return np.matmul(*_without_int8(x1, x2))


def _einsum(subscripts, *operands, optimize=False):
    return np.einsum(subscripts, *_without_int8(*operands))


def accumulation_dtype(dtypes):
    """The dtype of a product: at least 32 bits."""
    return {"bool": "int32", "int8": "int32", "uint8": "uint32"}.get(dtypes[0], dtypes[0])


product = functools.partial(row, dtypes=BOOLEAN + NUMERIC, accumulates=True, analytic=True)

ROWS = [
    product(
        "op_matmul",
        _matmul,
        call(normal(2, 3), normal(3, 4)),
        call(normal(3), normal(3, 2)),
        call(normal(2, 3), normal(3)),
        call(normal(3), normal(3)),
        call(normal(2, 1, 2, 3), normal(4, 3, 2)),
        call(normal(2, 2, 3), normal(3)),
        call(normal(3), normal(2, 3, 2)),
        call(normal(2, 0), normal(0, 3)),
        returns=_of_products,
        pins=[
            pin([[1.0, np.nan]], [[0.0], [0.0]], value=[[np.nan]]),
            pin(np.array([[100, -128]], np.int8), np.array([[2], [-128]], np.int8), value=[[16584]]),
        ],
    ),
    product(
        "op_einsum",
        _einsum,
        call("ij,jk->ik", normal(2, 3), normal(3, 4)),
        call("ij,jk,k", normal(2, 3), normal(3, 4), normal(4), optimize=True),
        call("...ij->...ji", normal(2, 2, 3)),
        call("ii->i", normal(3, 3)),
        call("ii", normal(3, 3)),
        call("i,j->ij", normal(2), normal(3)),
        call("ij->", normal(2, 3)),
        dtypes=NUMERIC,
        returns=_of_products,
    ),
    product(
        "op_trace",
        np.trace,
        call(normal(3, 4)),
        call(normal(2, 3, 4), offset=-1, axis1=2, axis2=0),
        dtypes=("int32", "float32", "float64", *COMPLEX),
        returns=same,
    ),
    product(
        "op_tensordot",
        np.tensordot,
        call(normal(2, 3, 4), normal(3, 4, 2)),
        call(normal(2, 3), normal(3, 2, 2), axes=1),
        call(normal(2), normal(3), axes=0),
        call(normal(2, 3, 2), normal(3, 4), axes=(-2, 0)),
        call(normal(2, 3, 2), normal(2, 4, 2), axes=([0, 2], (-1, 0))),
        call(normal(2, 0), normal(0, 2), axes=1),
    ),
    product(
        "op_dot",
        np.dot,
        call(normal(3), normal(3)),
        call(normal(2, 3), normal(3, 2)),
        call(normal(2, 2, 3), normal(3)),
        call(normal(3), normal(2, 3, 2)),
        call(normal(2, 3), normal(2, 3, 2)),
        call(normal(2, 3), 2),
        call(normal(), normal(2)),
    ),
    product(
        "op_inner",
        np.inner,
        call(normal(3), normal(3)),
        call(normal(2, 3), normal(2, 2, 3)),
        call(normal(2, 3), 2),
        call(normal(2, 0), normal(0)),
    ),
    row(
        "op_outer",
        np.outer,
        call(normal(3), normal(2)),
        call(normal(2, 2), normal()),
        call(2, normal(3)),
        call(normal(0), normal(3)),
        dtypes=BOOLEAN + NUMERIC,
        analytic=True,
        pins=[pin([0.0, 1.0], [INF, 2.0], value=[[np.nan, 0.0], [INF, 2.0]])],
    ),
    row(
        "op_vdot",
        np.vdot,
        call(normal(3), normal(3)),
        call(normal(2, 3), normal(3, 2)),
        call(normal(), normal(1)),
        call(normal(0), normal(0)),
        dtypes=BOOLEAN + NUMERIC,
        accumulates=True,
    ),
    row(
        "op_kron",
        lambda *xs: functools.reduce(np.kron, xs),
        call(normal(2, 3), normal(3, 2)),
        call(normal(2), normal(2, 1, 2)),
        call(normal(2, 2), normal(3)),
        call(normal(2), normal()),
        call(normal(2, 2), 2),
        call(normal(2), normal(2, 1), normal(3)),
        dtypes=BOOLEAN + NUMERIC,
        analytic=True,
    ),
    product(
        "op_cross",
        _cross,
        call(normal(3), normal(3)),
        call(normal(2, 3), normal(3, 2), axisb=0),
        call(normal(3, 2), normal(2, 3, 1), axisa=0, axisb=-2, axisc=1),
        call(normal(3, 2), normal(3, 2), axis=0),
        call(normal(2, 2), normal(2, 2)),
        call(normal(2), normal(3)),
        call(normal(2, 3), normal(2)),
        dtypes=NUMERIC,
        pins=[pin([1, 2, 3], [4, 5, 6], value=[-3, 6, -3], dtype="int32")],
    ),
    product(
        "op_vander",
        _vander,
        call(uniform(3, low=-2.0, high=2.0)),
        call(uniform(2, low=-2.0, high=2.0), N=5, increasing=True),
        call(uniform(2, low=-2.0, high=2.0), 1),
        call(uniform(2, low=-2.0, high=2.0), 0),
        call(uniform(0, low=-2.0, high=2.0), 2),
        returns=accumulation_dtype,
        ulps=8,
        pins=[
            pin([0.0, 2.0], 4, value=[[0.0, 0.0, 0.0, 1.0], [8.0, 4.0, 2.0, 1.0]], gradient=[1.0, 17.0]),
            pin([np.nan], 2, value=[[np.nan, 1.0]]),
            pin([100], 3, value=[[10000, 100, 1]], dtype="int8"),
        ],
    ),
]
