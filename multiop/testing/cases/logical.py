"""Rows of comparison, tests of values, logic and selection."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, INTEGER, NUMERIC, REAL, Row, call, pin, row
from .._samplers import booleans, integers, normal

INF, NAN = np.inf, np.nan


def comparison(op: str, reference, dtypes, **options) -> Row:
    """Make a row of an op of two operands that gives bools."""
    return row(
        op,
        reference,
        call(integers(2, 3, low=-2, high=3, dtype=None), integers(2, 3, low=-2, high=3, dtype=None)),
        call(normal(2, 3), integers(3, low=-2, high=3, dtype=None)),
        call(integers(4, low=0, high=3, dtype=None), 1),
        call(normal(0), normal()),
        dtypes=dtypes,
        returns="bool",
        differentiable=False,
        **options,
    )


def tested(op: str, reference, **options) -> Row:
    """Make a row of an op of one operand that gives bools."""
    return row(
        op,
        reference,
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        dtypes=BOOLEAN + NUMERIC,
        returns="bool",
        differentiable=False,
        **options,
    )


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
    tested("op_isnan", np.isnan, pins=[pin([NAN, INF, 0.0], value=[True, False, False])]),
    tested("op_isinf", np.isinf, pins=[pin([NAN, -INF, 0.0], value=[False, True, False])]),
    tested("op_isfinite", np.isfinite, pins=[pin([NAN, -INF, 0.0], value=[False, False, True])]),
    comparison("op_logical_and", np.logical_and, BOOLEAN + NUMERIC),
    comparison("op_logical_or", np.logical_or, BOOLEAN + NUMERIC),
    comparison("op_logical_xor", np.logical_xor, BOOLEAN + NUMERIC),
    tested("op_logical_not", np.logical_not, pins=[pin([NAN, 0.0], value=[False, True])]),
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
]
