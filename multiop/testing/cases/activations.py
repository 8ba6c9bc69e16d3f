"""Rows of the activations."""

from __future__ import annotations

import functools

import numpy as np
import scipy.special

from .._case import BOOLEAN, COMPLEX, FLOATING, OPEN, REAL, Row, call, floating, pin, promote_dtypes, row
from .._samplers import Sampler, distinct, nonzero, normal, uniform

INF, NAN = np.inf, np.nan
SELU_SCALE, SELU_LIMIT = 1.0507009873554805, 1.7580993408473766


def activation(op: str, reference, sampler=normal, **options) -> Row:
    """Make a row of an elementwise activation."""
    options.setdefault("dtypes", BOOLEAN + REAL)
    options.setdefault("returns", floating)
    return row(op, reference, call(sampler(2, 3)), call(sampler()), call(sampler(0)), **options)


def with_option(op: str, reference, sampler, options, **rest) -> Row:
    """Make a row of an elementwise activation with an option."""
    rest.setdefault("dtypes", BOOLEAN + REAL)
    return row(
        op,
        reference,
        call(sampler(2, 3), **options),
        call(sampler()),
        call(sampler(0), **options),
        returns=floating,
        **rest,
    )


def at_some_distance(*shape: int) -> Sampler:
    """Draw values at which the hyperbolic tangent is far from its argument."""
    return uniform(*shape, low=0.5, high=4.0)


def gelu(x, approximate=True):
    """Weight `x` by the share of the normal distribution below it."""
    if approximate:
        return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2
    return x * (1 + scipy.special.erf(x / np.sqrt(2))) / 2


def glu(x, axis=-1):
    """Multiply one half by the sigmoid of the other."""
    x, gate = np.split(x, 2, axis)
    return x / (1 + np.exp(-gate))


def sparsemax(x, axis=-1):
    """Find by bisection the level above which the entries add up to 1."""
    x = np.asarray(x, np.float64)
    low, high = x.max(axis, keepdims=True, initial=-INF) - 1, x.max(axis, keepdims=True, initial=-INF)
    for _ in range(80):
        middle = (low + high) / 2
        above = np.maximum(x - middle, 0).sum(axis, keepdims=True) > 1
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.maximum(x - low, 0)


def small(*shape: int) -> Sampler:
    """Draw values near enough to each other that no logarithm of a probability is close to 0."""
    return uniform(*shape, low=-2.0, high=2.0)


along_axis = functools.partial(row, dtypes=BOOLEAN + REAL, returns=floating, ulps=16)

ROWS = [
    activation(
        "op_relu",
        lambda x: np.maximum(x, 0),
        nonzero,
        returns=lambda dtypes: promote_dtypes([*dtypes, "int*"]),
        pins=[pin([0.0, -INF, INF, NAN], value=[0.0, 0.0, INF, NAN], gradient=[0.0, 0.0, 1.0, OPEN])],
    ),
    activation(
        "op_sigmoid",
        lambda x: 1 / (1 + np.exp(-x)),
        dtypes=BOOLEAN + REAL + COMPLEX,
        analytic=True,
        ulps=8,
        pins=[
            pin([0.0, -INF, INF, -200.0, NAN], value=[0.5, 0.0, 1.0, 0.0, NAN], gradient=[0.25, 0.0, 0.0, 0.0, OPEN])
        ],
    ),
    activation(
        "op_softplus",
        lambda x: np.logaddexp(x, 0),
        ulps=8,
        pins=[
            pin(
                [0.0, -INF, INF, 1000.0, -200.0, NAN],
                value=[np.log(2.0), 0.0, INF, 1000.0, 0.0, NAN],
                gradient=[0.5, 0.0, 1.0, 1.0, 0.0, OPEN],
            ),
            pin([25.0, 36.0], value=[25.0 + 1.3887943864771144e-11, 36.0 + 2.319522830243569e-16], dtype="float64"),
        ],
    ),
    activation(
        "op_relu6",
        lambda x: np.clip(x, 0, 6),
        nonzero,
        returns=lambda dtypes: promote_dtypes([*dtypes, "int*"]),
        pins=[
            pin([0.0, 6.0, -INF, INF, NAN], value=[0.0, 6.0, 0.0, 6.0, NAN], gradient=[0.0, 0.0, 0.0, 0.0, OPEN]),
            pin([-1, 5, 9], value=[0, 5, 6], dtype="int32"),
        ],
    ),
    with_option(
        "op_leaky_relu",
        lambda x, negative_slope=0.2: np.where(x > 0, x, negative_slope * x),
        nonzero,
        {"negative_slope": 0.3},
        pins=[pin([0.0, -INF, INF, NAN], value=[0.0, -INF, INF, NAN], gradient=[0.2, 0.2, 1.0, OPEN])],
    ),
    with_option(
        "op_elu",
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)),
        nonzero,
        {"alpha": 2.0},
        pins=[
            pin([0.0, -INF, INF, NAN], value=[0.0, -2.0, INF, NAN], gradient=[2.0, 0.0, 1.0, OPEN], alpha=2.0),
        ],
    ),
    with_option(
        "op_celu",
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)),
        nonzero,
        {"alpha": 2.0},
        pins=[pin([0.0, -INF, INF, NAN], value=[0.0, -2.0, INF, NAN], gradient=[1.0, 0.0, 1.0, OPEN], alpha=2.0)],
    ),
    activation(
        "op_selu",
        lambda x: np.where(x > 0, SELU_SCALE * x, SELU_LIMIT * np.expm1(x)),
        nonzero,
        pins=[
            pin(
                [0.0, -INF, INF, NAN],
                value=[0.0, -SELU_LIMIT, INF, NAN],
                gradient=[SELU_LIMIT, 0.0, SELU_SCALE, OPEN],
            )
        ],
    ),
    activation(
        "op_silu",
        lambda x: x / (1 + np.exp(-x)),
        analytic=True,
        ulps=8,
        pins=[
            pin([0.0, 1000.0, -200.0, NAN], value=[0.0, 1000.0, 0.0, NAN], gradient=[0.5, 1.0, 0.0, OPEN]),
            pin([-12.0], gradient=[(1 - 12 / (1 + np.exp(-12.0))) / (1 + np.exp(12.0))]),
            pin([-12.0], value=[-12 * np.exp(-12.0)], dtype="float16"),
        ],
    ),
    with_option(
        "op_gelu",
        gelu,
        small,
        {"approximate": False},
        ulps=64,
        dtypes=FLOATING,
        pins=[
            pin([0.0, 1000.0, -1000.0, NAN], value=[0.0, 1000.0, 0.0, NAN], gradient=[0.5, 1.0, 0.0, OPEN]),
            pin(
                [0.0, 1000.0, -1000.0, NAN],
                value=[0.0, 1000.0, 0.0, NAN],
                gradient=[0.5, 1.0, 0.0, OPEN],
                approximate=False,
            ),
            pin([300.0], value=[300.0], gradient=[1.0], dtype="float16"),
            pin([1e38, -1e38], value=[1e38, 0.0]),
            pin([1e38, -1e38], value=[1e38, 0.0], approximate=False),
            pin([-1e18, 1e18], gradient=[0.0, 1.0]),
            pin([-1e38, 1e38], gradient=[0.0, 1.0], approximate=False),
        ],
    ),
    along_axis(
        "op_glu",
        glu,
        call(normal(2, 4)),
        call(normal(4, 3), axis=0),
        call(normal(0, 2), axis=-1),
        analytic=True,
        ulps=8,
        pins=[pin([NAN, 2.0, 0.0, 1000.0], value=[NAN, 2.0])],
    ),
    activation(
        "op_log_sigmoid",
        lambda x: -np.logaddexp(-x, 0),
        ulps=8,
        pins=[
            pin(
                [0.0, -INF, INF, -1000.0, NAN],
                value=[-np.log(2.0), -INF, 0.0, -1000.0, NAN],
                gradient=[0.5, 1.0, 0.0, 1.0, OPEN],
            )
        ],
    ),
    activation(
        "op_softsign",
        lambda x: x / (1 + np.abs(x)),
        nonzero,
        pins=[
            pin([0.0, 3.0, -3.0, NAN], value=[0.0, 0.75, -0.75, NAN], gradient=[1.0, 0.0625, 0.0625, OPEN]),
            pin([-63.0], gradient=[64.0**-2], dtype="float16"),
            pin([1e20], value=[1.0], gradient=[0.0]),
        ],
    ),
    with_option(
        "op_soft_shrink",
        lambda x, threshold=0.5: np.sign(x) * np.maximum(np.abs(x) - threshold, 0),
        distinct,
        {"threshold": 0.1},
        ulps=16,
        pins=[
            pin(
                [0.5, -0.5, 0.0, -INF, INF, NAN],
                value=[0.0, 0.0, 0.0, -INF, INF, NAN],
                gradient=[0.0, 0.0, 0.0, 1.0, 1.0, OPEN],
            ),
            pin([0.0, 1.0], value=[0.0, 1.0], gradient=[0.0, 1.0], threshold=0.0),
        ],
    ),
    with_option(
        "op_hard_shrink",
        lambda x, threshold=0.5: np.where(np.abs(x) <= threshold, 0, x),
        distinct,
        {"threshold": 0.1},
        pins=[
            pin([0.5, -0.5, 0.0, NAN], threshold=-0.6, value=[0.5, -0.5, 0.0, NAN], gradient=[1.0, 1.0, 1.0, OPEN]),
            pin(
                [0.5, -0.5, 0.0, -INF, INF, NAN],
                value=[0.0, 0.0, 0.0, -INF, INF, NAN],
                gradient=[0.0, 0.0, 0.0, 1.0, 1.0, OPEN],
            ),
        ],
    ),
    activation(
        "op_tanh_shrink",
        lambda x: x - np.tanh(x),
        at_some_distance,
        analytic=True,
        ulps=32,
        pins=[pin([0.0, -INF, INF, NAN], value=[0.0, -INF, INF, NAN], gradient=[0.0, 1.0, 1.0, OPEN])],
    ),
    row(
        "op_threshold",
        lambda x, threshold, default_value: np.where(x <= threshold, default_value, x),
        call(distinct(2, 3), 0.1, 20.0),
        call(distinct(), threshold=1, default_value=-1),
        call(distinct(0), 0.0, 0.0),
        dtypes=BOOLEAN + REAL,
        returns=lambda dtypes: floating(dtypes[:1]),
        pins=[pin([1.0, -INF, INF, NAN], 1, 5, value=[5.0, 5.0, INF, NAN], gradient=[0.0, 0.0, 1.0, OPEN])],
    ),
    activation(
        "op_hard_sigmoid",
        lambda x: np.clip((x + 3) / 6, 0, 1),
        pins=[
            pin(
                [0.0, -3.0, 3.0, -INF, INF, NAN],
                value=[0.5, 0.0, 1.0, 0.0, 1.0, NAN],
                gradient=[1 / 6, 0.0, 0.0, 0.0, 0.0, OPEN],
            )
        ],
    ),
    *(
        activation(
            name,
            lambda x: x * np.clip((x + 3) / 6, 0, 1),
            pins=[
                pin(
                    [0.0, -3.0, 3.0, 1e37, -1e30, INF, NAN],
                    value=[0.0, 0.0, 3.0, 1e37, 0.0, INF, NAN],
                    gradient=[0.5, 0.0, 1.0, 1.0, 0.0, 1.0, OPEN],
                ),
                pin([300.0], value=[300.0], gradient=[1.0], dtype="float16"),
            ],
        )
        for name in ("op_hard_silu", "op_hard_swish")
    ),
    activation(
        "op_sparse_plus",
        lambda x: np.where(np.abs(x) < 1, (x + 1) ** 2 / 4, np.maximum(x, 0)),
        distinct,
        ulps=16,
        pins=[
            pin(
                [0.0, -1.0, 1.0, -INF, INF, NAN],
                value=[0.25, 0.0, 1.0, 0.0, INF, NAN],
                gradient=[0.5, 0.0, 1.0, 0.0, 1.0, OPEN],
            )
        ],
    ),
    activation(
        "op_sparse_sigmoid",
        lambda x: np.clip((x + 1) / 2, 0, 1),
        distinct,
        pins=[
            pin(
                [0.0, -1.0, 1.0, -INF, INF, NAN],
                value=[0.5, 0.0, 1.0, 0.0, 1.0, NAN],
                gradient=[0.5, 0.0, 0.0, 0.0, 0.0, OPEN],
            )
        ],
    ),
    with_option(
        "op_squareplus",
        lambda x, b=4: (x + np.sqrt(x**2 + b)) / 2,
        normal,
        {"b": 0.5},
        analytic=True,
        ulps=16,
        pins=[
            pin([0.0, -INF, INF, NAN], value=[1.0, 0.0, INF, NAN], gradient=[0.5, 0.0, 1.0, OPEN]),
            pin([-1e4, 1e30], value=[1e-4, 1e30], gradient=[1e-8, 1.0]),
            pin([300.0, -300.0], value=[300.0, 1 / 300], dtype="float16"),
            pin([0.0, 2.0, -2.0], value=[0.0, 2.0, 0.0], gradient=[0.5, 1.0, 0.0], b=0),
        ],
    ),
    activation(
        "op_hard_tanh",
        lambda x: np.clip(x, -1, 1),
        distinct,
        pins=[
            pin(
                [0.0, -1.0, 1.0, -INF, INF, NAN],
                value=[0.0, -1.0, 1.0, -1.0, 1.0, NAN],
                gradient=[1.0, 1.0, 1.0, 0.0, 0.0, OPEN],
            )
        ],
    ),
    activation("op_swish", lambda x: x / (1 + np.exp(-x)), analytic=True, ulps=8),
    along_axis(
        "op_sparsemax",
        sparsemax,
        call(normal(2, 3)),
        call(normal(3, 2), axis=0),
        call(normal(0, 3), axis=-1),
        accumulates=True,
        pins=[
            pin([1000.0, 1000.0, 0.0], value=[0.5, 0.5, 0.0], gradient=[0.0, 0.0, 0.0]),
            pin([1.0, 0.0], value=[1.0, 0.0], gradient=[0.0, 0.0]),
            pin([-INF, 0.0], value=[0.0, 1.0]),
            pin([NAN, 0.0], value=[NAN, NAN]),
            pin([INF, 0.0], value=[NAN, NAN]),
            pin([0.0, 0.0, 0.0, 0.0], value=[0.25] * 4, dtype="float16"),
        ],
    ),
    along_axis(
        "op_softmax",
        lambda x, axis=-1: scipy.special.softmax(x, axis),
        call(normal(2, 3), axis=-1),
        call(normal(2, 3), axis=0),
        call(normal(3)),
        call(normal(2, 3), axis=None),
        call(normal(2, 3, 2), (0, -1)),
        call(normal(2, 3, 2), axis=(2, 1)),
        pins=[
            pin([1000.0, 1000.0], value=[0.5, 0.5]),
            pin([-INF, 0.0], value=[0.0, 1.0], gradient=[0.0, 0.0]),
            pin([-INF, -INF], value=[NAN, NAN]),
            pin([[INF], [INF]], None, value=[[NAN], [NAN]]),
        ],
    ),
    along_axis(
        "op_log_softmax",
        lambda x, axis=-1: scipy.special.log_softmax(np.asarray(x, np.float64), axis),
        call(small(2, 3), axis=-1),
        call(small(2, 3), axis=0),
        call(small(3)),
        call(small(2, 3), axis=None),
        call(small(2, 3, 2), (0, -1)),
        pins=[pin([1000.0, 0.0], value=[0.0, -1000.0]), pin([-INF, 0.0], value=[-INF, 0.0])],
    ),
]
