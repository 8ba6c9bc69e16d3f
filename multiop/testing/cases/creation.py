"""Rows of the tensors made from shapes and numbers; their dtypes are tested by hand, since no operand decides them."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, NUMERIC, Row, call, row, same
from .._samplers import normal


def made(op: str, reference, *calls) -> Row:
    """Make a row of an op that makes a tensor of a shape."""
    return row(
        op, reference, *calls, dtypes=("float32",), returns=lambda dtypes: None, differentiable=False, vmap=False
    )


def like(op: str, reference, *calls, **options) -> Row:
    """Make a row of an op that makes a tensor like another."""
    return row(op, reference, *calls, dtypes=BOOLEAN + NUMERIC, returns=same, differentiable=False, **options)


def _arange(start, stop=None, step=None, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    return np.arange(start, stop, 1 if step is None else step, dtype)


ROWS = [
    made("op_zeros", np.zeros, call((2, 3)), call(3), call((), dtype="int32"), call((0, 2))),
    made("op_ones", np.ones, call((2, 3)), call(3), call((), dtype="int32"), call((0, 2))),
    made("op_full", np.full, call((2, 3), 7), call(3, 1.5), call((2, 2), [1, 2]), call((), 2, dtype="float32")),
    like(
        "op_zeros_like",
        lambda x, dtype=None: np.zeros_like(x),
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        call(normal(2), dtype="int8"),
    ),
    like(
        "op_ones_like",
        lambda x, dtype=None: np.ones_like(x),
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        call(normal(2), dtype="int8"),
    ),
    like(
        "op_full_like",
        lambda x, fill_value, dtype=None: np.full_like(x, fill_value, dtype),
        call(normal(2, 3), 1),
        call(normal(), True),
        call(normal(2), 3, dtype="float16"),
    ),
    made(
        "op_arange",
        _arange,
        call(5),
        call(2, 8, 3),
        call(5, step=-2, stop=0),
        call(0.0, 1.0, 0.1),
        call(3, dtype="float32"),
        call(0),
        call(1, 0),
    ),
    made("op_eye", np.eye, call(3), call(2, 3, k=1), call(3, M=2, k=-1, dtype="int32"), call(0)),
    row(
        "op_copy", np.copy, call(normal(2, 3)), call(normal()), call(normal(0)), dtypes=BOOLEAN + NUMERIC, returns=same
    ),
    made("op_empty", np.zeros, call((2, 3)), call(3, dtype="int32")),
    like("op_empty_like", lambda x, dtype=None: np.zeros_like(x), call(normal(2, 3)), call(normal(2), dtype="int8")),
    made("op_identity", np.identity, call(3), call(2, dtype="int32")),
]
