"""Rows of the creation ops; their dtypes are tested by hand, since no operand determines them."""

from __future__ import annotations

import functools

import numpy as np

from .._case import BOOLEAN, FLOATING, INTEGER, NUMERIC, REAL, Row, call, floating, pin, row, same
from .._samplers import normal, positive, uniform

NAN = np.nan


# an op that creates a tensor of a given shape
creation_row = functools.partial(
    row, dtypes=("float32",), returns=lambda dtypes: None, differentiable=False, vmap=False
)


def like(op: str, reference, *calls, **options) -> Row:
    """Make a row of an op that creates a tensor like another."""
    return row(op, reference, *calls, dtypes=BOOLEAN + NUMERIC, returns=same, differentiable=False, **options)


def _arange(start, stop=None, step=None, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    return np.arange(start, stop, 1 if step is None else step, dtype)


def spacing_row(op: str, reference, sampler, *calls, **options) -> Row:
    """Make a row of an op that creates numbers between two ends."""
    return row(
        op,
        reference,
        call(sampler(2, 1), sampler(3), 4),
        call(sampler(2), sampler(2), num=3, endpoint=False, axis=-1),
        call(sampler(), 3, 1),
        call(sampler(), sampler(), 0, endpoint=False),
        call(sampler(2, 3), sampler(3), 2, axis=1),
        *calls,
        returns=floating,
        **options,
    )


ROWS = [
    creation_row("op_zeros", np.zeros, call((2, 3)), call(3), call((), dtype="int32"), call((0, 2))),
    creation_row("op_ones", np.ones, call((2, 3)), call(3), call((), dtype="int32"), call((0, 2))),
    creation_row("op_full", np.full, call((2, 3), 7), call(3, 1.5), call((2, 2), [1, 2]), call((), 2, dtype="float32")),
    like(
        "op_zeros_like",
        lambda x, dtype=None: np.zeros_like(x, dtype),
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        call(normal(2), dtype="int8"),
    ),
    like(
        "op_ones_like",
        lambda x, dtype=None: np.ones_like(x, dtype),
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
    creation_row(
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
    creation_row("op_eye", np.eye, call(3), call(2, 3, k=1), call(3, M=2, k=-1, dtype="int32"), call(0)),
    row(
        "op_copy", np.copy, call(normal(2, 3)), call(normal()), call(normal(0)), dtypes=BOOLEAN + NUMERIC, returns=same
    ),
    creation_row("op_empty", np.zeros, call((2, 3)), call(3, dtype="int32")),
    like(
        "op_empty_like",
        lambda x, dtype=None: np.zeros_like(x, dtype),
        call(normal(2, 3)),
        call(normal(2), dtype="int8"),
    ),
    creation_row("op_identity", np.identity, call(3), call(2, dtype="int32")),
    spacing_row(
        "op_linspace",
        np.linspace,
        lambda *shape: uniform(*shape, low=1.0, high=9.0),
        call(uniform(2, low=1.0, high=9.0), 20, 3, retstep=True),
        call(positive(2), 7.25, 4, dtype="int32"),
        dtypes=BOOLEAN + REAL,
        ulps=8,
        pins=[
            pin(
                [1 + 2j],
                [3.0 + 0j],
                3,
                value=[[1 + 2j], [2 + 1j], [3 + 0j]],
                gradient=([1.5], [1.5]),
                dtype="complex64",
            ),
            pin([2.0], [3.0], 1, True, True, value=([[2.0]], [NAN])),
        ],
    ),
    spacing_row(
        "op_logspace",
        np.logspace,
        lambda *shape: uniform(*shape, low=-1.0, high=1.5),
        call(positive(2), 3, 3, base=2.5),
        call(0, 3, 4, dtype="int32"),
        dtypes=REAL,
        ulps=24,
        pins=[pin([0.0], [3.0], 4, dtype="float32", value=[[1.0], [10.0], [100.0], [1000.0]])],
    ),
    spacing_row(
        "op_geomspace",
        np.geomspace,
        positive,
        call(1, 64, 4, dtype="int32"),
        dtypes=INTEGER + FLOATING,
        ulps=24,
        pins=[
            pin([-1.0], [-1000.0], 4, value=[[-1.0], [-10.0], [-100.0], [-1000.0]]),
            pin([1.0], [-1000.0], 3, value=[[1.0], [NAN], [-1000.0]]),
        ],
    ),
]
