"""Rows of comparison, tests of values, logic and selection."""

from __future__ import annotations

import functools

import numpy as np

from .._case import BOOLEAN, INTEGER, NUMERIC, REAL, Row, call, pin, row
from .._samplers import booleans, integers, normal

INF, NAN = np.inf, np.nan


boolean_row = functools.partial(row, dtypes=BOOLEAN + NUMERIC, returns="bool", differentiable=False)


def comparison(op: str, reference, dtypes, **options) -> Row:
    """Make a row of an op with two operands that returns bools."""
    return boolean_row(
        op,
        reference,
        call(integers(2, 3, low=-2, high=3, dtype=None), integers(2, 3, low=-2, high=3, dtype=None)),
        call(normal(2, 3), integers(3, low=-2, high=3, dtype=None)),
        call(integers(4, low=0, high=3, dtype=None), 1),
        call(normal(0), normal()),
        dtypes=dtypes,
        **options,
    )


def predicate_row(op: str, reference, **options) -> Row:
    """Make a row of an op with one operand that returns bools."""
    return boolean_row(op, reference, call(normal(2, 3)), call(normal()), call(normal(0)), **options)


def _where(condition, x1, x2):
    return np.where(condition, x1, x2)


def _nonzero(x):
    return tuple(np.nonzero(x))


ROWS = [
    comparison(
        "op_equal",
        np.equal,
        BOOLEAN + NUMERIC,
        pins=[pin([NAN, 0.0, INF], [NAN, -0.0, INF], value=[False, True, True])],
    ),
    comparison(
        "op_not_equal", np.not_equal, BOOLEAN + NUMERIC, pins=[pin([NAN, 0.0], [NAN, -0.0], value=[True, False])]
    ),
    comparison("op_less", np.less, BOOLEAN + REAL, pins=[pin([NAN, 0.0], [1.0, -0.0], value=[False, False])]),
    comparison(
        "op_less_equal", np.less_equal, BOOLEAN + REAL, pins=[pin([NAN, 0.0], [1.0, -0.0], value=[False, True])]
    ),
    comparison("op_greater", np.greater, BOOLEAN + REAL, pins=[pin([NAN, INF], [1.0, 1.0], value=[False, True])]),
    comparison(
        "op_greater_equal", np.greater_equal, BOOLEAN + REAL, pins=[pin([NAN, INF], [1.0, INF], value=[False, True])]
    ),
    predicate_row("op_isnan", np.isnan, pins=[pin([NAN, INF, 0.0], value=[True, False, False])]),
    predicate_row("op_isinf", np.isinf, pins=[pin([NAN, -INF, 0.0], value=[False, True, False])]),
    predicate_row("op_isfinite", np.isfinite, pins=[pin([NAN, -INF, 0.0], value=[False, False, True])]),
    comparison("op_logical_and", np.logical_and, BOOLEAN + NUMERIC),
    comparison("op_logical_or", np.logical_or, BOOLEAN + NUMERIC),
    comparison("op_logical_xor", np.logical_xor, BOOLEAN + NUMERIC),
    predicate_row("op_logical_not", np.logical_not, pins=[pin([NAN, 0.0], value=[False, True])]),
    row(
        "op_where",
        _where,
        call(booleans(2, 3), x1=normal(2, 3), x2=normal(2, 3)),
        call(booleans(3), normal(2, 3), normal(3)),
        call(booleans(2, 1), normal(3), normal()),
        call(booleans(0), normal(0), normal(0)),
        dtypes=BOOLEAN + NUMERIC,
        returns=lambda dtypes: dtypes[1] if len(dtypes) > 1 else None,
        pins=[
            pin(
                [1.0, 0.0, NAN],
                [1.0] * 3,
                [2.0] * 3,
                value=[1.0, 2.0, 1.0],
                gradient=([0.0] * 3, [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
            )
        ],
    ),
    row(
        "op_nonzero",
        _nonzero,
        call(integers(3, 4, low=0, high=2, dtype=None)),
        call(integers(5, low=0, high=2, dtype=None)),
        dtypes=BOOLEAN + INTEGER + ("float32",),
        returns="int32",
        differentiable=False,
        vmap=False,
        jit=False,
    ),
    *(
        predicate_row(
            op,
            reference,
            dtypes=BOOLEAN + REAL,
            pins=[pin([NAN, INF, -INF, 0.0], value=value), pin([INF, -INF], value=value[1:3], dtype="bfloat16")],
        )
        for op, reference, value in (
            ("op_isposinf", lambda x: x == INF, [False, True, False, False]),
            ("op_isneginf", lambda x: x == -INF, [False, False, True, False]),
        )
    ),
    predicate_row(
        "op_isreal", np.isreal, pins=[pin([1j, 1 + 0j, complex(0, NAN)], value=[False, True, False], dtype="complex64")]
    ),
    predicate_row(
        "op_signbit",
        lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0,
        dtypes=BOOLEAN + REAL,
        pins=[
            pin([-0.0, 0.0, -NAN, -INF, 1.0], value=[True, False, True, True, False], dtype=dtype)
            for dtype in ("float16", "bfloat16", "float32", "float64")
        ],
    ),
    boolean_row(
        "op_isclose",
        np.isclose,
        call(integers(2, 3, low=-2, high=3, dtype=None), integers(2, 3, low=-2, high=3, dtype=None)),
        call(normal(2, 3), normal(3), rtol=0.5, atol=1.0),
        call(normal(), 1, 0.25, 0.0, True),
        call(normal(0), normal(), equal_nan=True),
        pins=[
            pin([NAN, INF, INF, 1.0, INF], [NAN, INF, -INF, INF, 1.0], value=[False, True, False, False, False]),
            pin([NAN, NAN], [NAN, 1.0], equal_nan=True, value=[True, False]),
            pin([1.0, 1.0, 0.0], [1.000001, 1.0001, 1e-9], value=[True, False, True]),
            pin([2**24 + 1, 2**31 - 1], [2**24, -(2**31)], rtol=0.0, atol=0.5, value=[False, False], dtype="int32"),
            pin([127, 255], [129, 0], rtol=0.0, atol=2.0, value=[True, False], dtype="uint8"),
            pin([0.0, 1.0], [1e-8, 1.0], rtol=0.0, value=[True, True], dtype="float16"),
        ],
    ),
    boolean_row(
        "op_allclose",
        np.allclose,
        call(normal(2, 3), normal(3), rtol=0.5, atol=9.0, equal_nan=True),
        call(normal(2), normal()),
        call(normal(0), 1),
        pins=[pin([1.0, NAN], [1.0, NAN], value=False), pin([1.0, NAN], [1.0, NAN], equal_nan=True, value=True)],
    ),
]
