"""Rows of the activations."""

from __future__ import annotations

import numpy as np
import scipy.special

from .._case import BOOLEAN, COMPLEX, REAL, Row, call, floating, pin, promoted, row
from .._samplers import Sampler, nonzero, normal, uniform

INF, NAN = np.inf, np.nan


def activation(op: str, reference, sampler=normal, **options) -> Row:
    """Make a row of an elementwise activation."""
    options.setdefault("dtypes", BOOLEAN + REAL)
    options.setdefault("returns", floating)
    return row(op, reference, call(sampler(2, 3)), call(sampler()), call(sampler(0)), **options)


def small(*shape: int) -> Sampler:
    """Draw values near enough to each other that no logarithm of a probability is close to 0."""
    return uniform(*shape, low=-2.0, high=2.0)


ROWS = [
    activation(
        "op_relu",
        lambda x: np.maximum(x, 0),
        nonzero,
        returns=lambda dtypes: promoted([*dtypes, "int*"]),
        pins=[pin([0.0, -INF, INF, NAN], value=[0.0, 0.0, INF, NAN], gradient=[0.0, 0.0, 1.0, 1.0])],
    ),
    activation(
        "op_sigmoid",
        lambda x: 1 / (1 + np.exp(-x)),
        dtypes=BOOLEAN + REAL + COMPLEX,
        analytic=True,
        ulps=8,
        pins=[pin([0.0, -INF, INF, -200.0, NAN], value=[0.5, 0.0, 1.0, 0.0, NAN], gradient=[0.25, 0.0, 0.0, 0.0, NAN])],
    ),
    activation(
        "op_softplus",
        lambda x: np.logaddexp(x, 0),
        ulps=8,
        pins=[
            pin(
                [0.0, -INF, INF, 1000.0, -200.0, NAN],
                value=[np.log(2.0), 0.0, INF, 1000.0, 0.0, NAN],
                gradient=[0.5, 0.0, 1.0, 1.0, 0.0, NAN],
            ),
            pin([25.0, 36.0], value=[25.0 + 1.3887943864771144e-11, 36.0 + 2.319522830243569e-16], dtype="float64"),
        ],
    ),
    row(
        "op_softmax",
        lambda x, axis=-1: scipy.special.softmax(x, axis),
        call(normal(2, 3), axis=-1),
        call(normal(2, 3), axis=0),
        call(normal(3)),
        dtypes=BOOLEAN + REAL,
        returns=floating,
        ulps=16,
        pins=[
            pin([1000.0, 1000.0], value=[0.5, 0.5]),
            pin([-INF, 0.0], value=[0.0, 1.0], gradient=[0.0, 0.0]),
            pin([-INF, -INF], value=[NAN, NAN]),
            pin([INF, 0.0], value=[NAN, NAN]),
        ],
    ),
    row(
        "op_log_softmax",
        lambda x, axis=-1: scipy.special.log_softmax(np.asarray(x, np.float64), axis),
        call(small(2, 3), axis=-1),
        call(small(2, 3), axis=0),
        call(small(3)),
        dtypes=BOOLEAN + REAL,
        returns=floating,
        ulps=16,
        pins=[pin([1000.0, 0.0], value=[0.0, -1000.0]), pin([-INF, 0.0], value=[-INF, 0.0])],
    ),
]
