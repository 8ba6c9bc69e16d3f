"""Rows of the elementwise ops."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from .._case import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INTEGER,
    NUMERIC,
    OPEN,
    REAL,
    Pin,
    Row,
    call,
    floating,
    magnitude,
    pin,
    promote_dtypes,
    row,
    same,
)
from .._samplers import Sampler, distinct, integers, nonzero, normal, positive, uniform, unit

INF, NAN = np.inf, np.nan
MOST = float(np.finfo(np.float32).max)


def binary(op: str, reference, *, sampler=normal, other=None, **options) -> Row:
    """Make a row of an op with two operands: equal shapes, broadcasting, a Python scalar, empty tensors."""
    other = other or sampler
    return row(
        op,
        reference,
        call(sampler(2, 3), other(2, 3)),
        call(sampler(2, 3), other(3)),
        call(sampler(), 2.5),
        call(sampler(0, 3), other(3)),
        **options,
    )


def unary(op: str, reference, sampler=normal, **options) -> Row:
    """Make a row of an op with one operand."""
    return row(op, reference, call(sampler(2, 3)), call(sampler()), call(sampler(0)), **options)


def function(op: str, reference, sampler=normal, **options) -> Row:
    """Make a row of a function of real or complex numbers, which converts integers to floats."""
    options.setdefault("dtypes", BOOLEAN + INTEGER + FLOATING + COMPLEX)
    return unary(op, reference, sampler, returns=floating, analytic="complex128" in options["dtypes"], **options)


def numbers(dtypes):
    """The promoted dtype, with bool counted as a number."""
    return promote_dtypes([*dtypes, "int*"])


def at_least_1(*shape: int) -> Sampler:
    """Draw from the domain of arccosh."""
    return uniform(*shape, low=1.1, high=5.0)


def between(*shape: int) -> Sampler:
    """Draw away from the poles of the tangent."""
    return uniform(*shape, low=-1.4, high=1.4)


def safe_integers(*shape: int) -> Sampler:
    """Draw values above -1, for integers too: the domain of log1p."""
    return uniform(*shape, low=-0.5, high=4.0)


def _quotient(x1, x2):
    return np.true_divide(x1, x2)


def _reciprocal(x):
    return 1.0 / x


def _rsqrt(x):
    return 1 / np.sqrt(x)


def _power(x1, x2):
    return np.power(x1, x2)


def _round(x, decimals=0):
    return np.round(x.astype(np.int32) if x.dtype == bool else x, decimals)


def _sign(x):
    return np.sign(x)


def _clip(x, x_min=None, x_max=None, **bounds):
    low, high = (bounds.get("a" + end, bounds.get(end[1:])) for end in ("_min", "_max"))
    return np.clip(x, low if x_min is None else x_min, high if x_max is None else x_max)


SPLIT = ([0.5], [0.5])


def _slopes_of_quotients() -> Iterator[Pin]:
    """Pin quotients whose slopes are in range although the square of the denominator is not."""
    for dtype, x1, x2 in (
        ("float16", [1024.0, 2.0**-13, 60000.0], [320.0, 2.0**-13, 256.0]),
        ("bfloat16", [2.0**90, 2.0**-80], [2.0**80, 2.0**-80]),
        ("float32", [2.0**90, 2.0**-80], [2.0**80, 2.0**-80]),
        ("float64", [2.0**900, 2.0**-600], [2.0**800, 2.0**-600]),
    ):
        slopes = [1 / b for b in x2], [-(a / b) / b for a, b in zip(x1, x2, strict=True)]
        yield pin(x1, x2, gradient=slopes, dtype=dtype)


def _far_out(gradient: Callable[[float], float]) -> Iterator[Pin]:
    """Pin a function whose slope `gradient` is in range although the square of its argument is not."""
    for dtype, x in (("float16", 320.0), ("bfloat16", 2.0**70), ("float32", 2.0**70), ("float64", 2.0**600)):
        yield pin([x], gradient=[gradient(x)], dtype=dtype)


quotient = functools.partial(binary, other=nonzero, dtypes=NUMERIC, returns=floating, analytic=True)
remainder = functools.partial(binary, other=nonzero, dtypes=REAL)
extremum = functools.partial(
    binary, sampler=distinct, other=lambda *shape: uniform(*shape, low=-0.03, high=0.03), dtypes=BOOLEAN + REAL
)
of_two_reals = functools.partial(binary, dtypes=BOOLEAN + REAL, returns=floating)
of_unit = functools.partial(function, sampler=unit, dtypes=BOOLEAN + FLOATING + COMPLEX)

ROWS = [
    binary(
        "op_add",
        np.add,
        dtypes=BOOLEAN + NUMERIC,
        analytic=True,
        pins=[pin([NAN, INF, 1e30], [1.0, -INF, 1e30], value=[NAN, NAN, 2e30], gradient=([1.0] * 3, [1.0] * 3))],
    ),
    binary(
        "op_subtract", np.subtract, dtypes=NUMERIC, analytic=True, pins=[pin([INF, 1.0], [INF, NAN], value=[NAN, NAN])]
    ),
    binary("op_multiply", np.multiply, dtypes=BOOLEAN + NUMERIC, analytic=True, pins=[pin([0.0], [INF], value=[NAN])]),
    quotient(
        "op_divide",
        _quotient,
        pins=[
            pin([1.0, -1.0, 0.0], [0.0, 0.0, 0.0], value=[INF, -INF, NAN]),
            *_slopes_of_quotients(),
        ],
    ),
    remainder(
        "op_floor_divide",
        np.floor_divide,
        pins=[
            pin(
                [7.0, -7.0, 7.0, -7.0],
                [2.0, 2.0, -2.0, -2.0],
                value=[3.0, -4.0, -4.0, 3.0],
                gradient=([0.0] * 4, [0.0] * 4),
            ),
            pin([1.0, 1.0, 0.0], [0.1, 0.0, 0.0], value=[9.0, INF, NAN], dtype="float64"),
            pin([0.5, -2.0, INF], [-INF, INF, 2.0], value=[-1.0, -1.0, NAN]),
        ],
    ),
    remainder(
        "op_mod",
        np.mod,
        pins=[
            pin(
                [7.0, -7.0, 7.0, -7.0],
                [2.0, 2.0, -2.0, -2.0],
                value=[1.0, 1.0, -1.0, -1.0],
                gradient=([1.0] * 4, [-3.0, 4.0, 4.0, -3.0]),
            ),
            # 0.1 exceeds a tenth by less than the rounding error of the quotient
            pin([1000.0, -300.0], [0.1, 0.1], gradient=([1.0] * 2, [-9999.0, 3000.0])),
            pin([-1.0, 1.0, -1.0], [INF, INF, -INF], value=[INF, 1.0, -1.0]),
        ],
    ),
    row(
        "op_power",
        _power,
        call(positive(2, 3), normal(2, 3)),
        call(positive(2, 3), normal(3)),
        call(nonzero(2, 3), 3),
        call(positive(3), -0.5),
        call(2.5, normal(3)),
        call(positive(0, 3), normal(3)),
        dtypes=FLOATING + COMPLEX,
        analytic=True,
        ulps=16,
        pins=[
            pin(
                [0.0, 0.0, 2.0],
                [0.0, 1.0, 0.0],
                value=[1.0, 0.0, 1.0],
                gradient=([0.0, 1.0, 0.0], [0.0, 0.0, np.log(2.0)]),
            ),
            pin([-2.0], [2.0], value=[4.0], gradient=([-4.0], [NAN])),
            *[
                pin(
                    [0j, 0j, 0j, 0j, 0j],
                    [0j, 1 + 0j, 2 + 0j, 2 - 1j, -1 + 0j],
                    value=[1.0, 0.0, 0.0, 0.0, complex(NAN, NAN)],
                    dtype=dtype,
                )
                for dtype in ("complex64", "complex128")
            ],
            pin([0j, 0j, 0j], [0j, 1 + 0j, 2 + 0j], gradient=([0.0, 1.0, 0.0], [0.0] * 3), dtype="complex64"),
            *[
                pin([0j, 3j], n, gradient=[slope, n * 1j ** (1 - n) * 3 ** (n - 1)], dtype="complex64")
                for n, slope in ((1, 1), (2, 0))
            ],
            pin([0.0, -3.0], 2, value=[0.0, 9.0], gradient=[0.0, -6.0]),
            pin([0.0, NAN], 0, value=[1.0, 1.0], gradient=[0.0, 0.0]),
            pin([0.0, 4.0], 0.5, value=[0.0, 2.0], gradient=([INF, 0.25], 2 * np.log(4.0))),
            pin([1e38, 4.0], [0.0, 0.0], value=[1.0, 1.0], gradient=([0.0, 0.0], [np.log(1e38), np.log(4.0)])),
            pin([60000.0], [0.0], gradient=([0.0], [np.log(60000.0)]), dtype="float16"),
            pin([-3.0], [4.0], gradient=([-108.0], [NAN]), dtype="bfloat16"),
            pin(
                [1.03125], [300.0], gradient=([300 * 1.03125**299], [1.03125**300 * np.log(1.03125)]), dtype="bfloat16"
            ),
            pin([320.0], -1, gradient=[-(320.0**-2)], dtype="float16"),
            # the largest odd number is 2**24 - 1 in float32, and 2**53 - 1 in float64
            pin(
                [-1.0, -1.0, -2.0],
                [2.0**24, 2.0**24 + 2, 2.0**25],
                gradient=([-(2.0**24), -(2.0**24) - 2, -INF], [NAN] * 3),
            ),
            pin(
                [-1.0, -1.0, -0.5], [-(2.0**24), -(2.0**60), -(2.0**60)], gradient=([2.0**24, 2.0**60, INF], [NAN] * 3)
            ),
            pin([-1.0, -2.0], [2.0**60, 2.0**60], gradient=([-(2.0**60), -INF], [NAN, NAN]), dtype="float64"),
            pin([-1.0, -2.0], [2.0**60, 2.0**60], gradient=([-(2.0**60), -INF], [NAN, NAN]), dtype="bfloat16"),
            pin([-1.0, -1.0], [16777215.0, -16777213.0], gradient=([16777215.0, -16777213.0], [NAN, NAN])),
            pin([0.0, -0.0, -2.0], -INF, value=[INF, INF, 0.0]),
            pin([0.0, -0.0, -2.0], [-INF] * 3, value=[INF, INF, 0.0]),
            pin([0.5, 2.0, 0.0], [INF] * 3, value=[0.0, INF, 0.0], gradient=([NAN, INF, NAN], [0.0, INF, 0.0])),
        ],
    ),
    unary("op_negative", np.negative, dtypes=NUMERIC, returns=same, analytic=True),
    function(
        "op_reciprocal",
        _reciprocal,
        nonzero,
        dtypes=NUMERIC,
        pins=[
            pin([0.0, INF], value=[INF, 0.0], gradient=[-INF, 0.0]),
            pin([320.0, 2.0**-7], gradient=[-(320.0**-2), -(2.0**14)], dtype="float16"),
        ],
    ),
    unary(
        "op_sign",
        _sign,
        nonzero,
        dtypes=NUMERIC,
        returns=same,
        pins=[pin([0.0, -INF, NAN], value=[0.0, -1.0, NAN], gradient=[0.0, 0.0, OPEN])],
    ),
    unary(
        "op_abs",
        np.abs,
        nonzero,
        dtypes=BOOLEAN + NUMERIC,
        returns=magnitude,
        pins=[pin([0.0, -2.0, -INF, NAN], value=[0.0, 2.0, INF, NAN], gradient=[0.0, -1.0, -1.0, OPEN])],
    ),
    unary("op_square", lambda x: x * x, dtypes=BOOLEAN + NUMERIC, returns=numbers, analytic=True),
    function(
        "op_sqrt", np.sqrt, positive, pins=[pin([0.0, -1.0, INF], value=[0.0, NAN, INF], gradient=[INF, OPEN, 0.0])]
    ),
    function(
        "op_rsqrt",
        _rsqrt,
        positive,
        dtypes=INTEGER + FLOATING + COMPLEX,
        ulps=8,
        pins=[pin([0.0, INF], value=[INF, 0.0], gradient=[-INF, 0.0])],
    ),
    function("op_exp", np.exp, pins=[pin([100.0, -200.0, NAN], value=[INF, 0.0, NAN], gradient=[INF, 0.0, OPEN])]),
    function(
        "op_exp2",
        np.exp2,
        dtypes=BOOLEAN + INTEGER + FLOATING,
        ulps=8,
        pins=[pin([3.0, -INF, 200.0], value=[8.0, 0.0, INF])],
    ),
    function(
        "op_expm1",
        np.expm1,
        ulps=8,
        pins=[
            pin([1e-20, -INF, 100.0], value=[1e-20, -1.0, INF], gradient=[1.0, 0.0, INF]),
            pin([-20.0, -40.0], value=[-1.0, -1.0], gradient=list(np.exp([-20.0, -40.0]))),
            pin([-20.0, -40.0], gradient=list(np.exp([-20.0, -40.0])), dtype="float64"),
            pin([-20 + 1j, -40 - 1j], gradient=list(np.exp([-20 - 1j, -40 + 1j])), dtype="complex128"),
        ],
    ),
    function(
        "op_log", np.log, positive, pins=[pin([0.0, -1.0, INF], value=[-INF, NAN, INF], gradient=[INF, OPEN, 0.0])]
    ),
    function("op_log2", np.log2, positive, ulps=8, pins=[pin([0.0, 8.0], value=[-INF, 3.0])]),
    function("op_log10", np.log10, positive, ulps=8, pins=[pin([0.0, 1000.0], value=[-INF, 3.0])]),
    function(
        "op_log1p",
        np.log1p,
        safe_integers,
        ulps=8,
        pins=[pin([1e-20, -1.0, -2.0], value=[1e-20, -INF, NAN], gradient=[1.0, INF, OPEN])],
    ),
    extremum(
        "op_maximum",
        np.maximum,
        pins=[
            pin([1.0, 0.0], [1.0, -0.0], value=[1.0, 0.0], gradient=([0.5, 0.5], [0.5, 0.5])),
            pin([NAN, 1.0, NAN], [1.0, NAN, NAN], value=[NAN, NAN, NAN]),
            pin([INF, -INF], [INF, -INF], value=[INF, -INF], gradient=([0.5, 0.5], [0.5, 0.5])),
        ],
    ),
    extremum(
        "op_minimum",
        np.minimum,
        pins=[
            pin([1.0], [1.0], value=[1.0], gradient=SPLIT),
            pin([NAN, 1.0, NAN], [1.0, NAN, NAN], value=[NAN, NAN, NAN]),
        ],
    ),
    row(
        "op_clip",
        _clip,
        call(distinct(3, 4), -0.201, 0.301),
        call(distinct(3, 4), normal(4), 5.0),
        call(distinct(3), x_min=None, x_max=0.101),
        call(distinct(3), a_min=-0.101, a_max=0.201),
        call(distinct(3), min=-0.101, max=0.201),
        call(distinct(), -0.101, None),
        call(distinct(0, 2), 0.0, 1.0),
        pins=[
            pin(
                [0.0, 1.0, -1.0, 2.0],
                0.0,
                1.0,
                value=[0.0, 1.0, 0.0, 1.0],
                gradient=([1.0, 1.0, 0.0, 0.0], 1.0, 1.0),
            ),
            pin([NAN, 2.0], 0.0, 1.0, value=[NAN, 1.0]),
            pin([0.0, 5.0], 2.0, 1.0, value=[1.0, 1.0], gradient=([0.0, 0.0], 0.0, 2.0)),
        ],
    ),
    row(
        "op_round",
        _round,
        call(normal(2, 3, scale=9.0)),
        call(uniform(3, low=-9.0, high=9.0), decimals=1),
        call(uniform(3, low=-90.0, high=90.0), decimals=-1),
        dtypes=BOOLEAN + INTEGER + ("float32", "float64"),
        returns=numbers,
        ulps=16,
        pins=[
            pin([0.5, 1.5, 2.5, -0.5, NAN, INF], value=[0.0, 2.0, 2.0, -0.0, NAN, INF], gradient=[0.0] * 6),
            pin([1.4, 2.5], value=[1.0, 2.0], gradient=[0.0, 0.0], dtype="bfloat16"),
            pin([656.0, -60000.0], decimals=2, value=[656.0, -60000.0], gradient=[0.0, 0.0], dtype="float16"),
            *[pin([1e38, -INF, 0.5], decimals=n, value=[1e38, -INF, 0.5], gradient=[0.0] * 3) for n in (3, 38, 400)],
            *[pin([1e38, NAN, -0.5], decimals=n, value=[0.0, NAN, 0.0], gradient=[0.0] * 3) for n in (-39, -400)],
        ],
    ),
    *(
        unary(
            op,
            reference,
            lambda *shape: uniform(*shape, low=-9.0, high=9.0),
            dtypes=BOOLEAN + REAL,
            returns=same,
            pins=[
                pin([1.5, -1.5, -INF, NAN], value=[*reference(np.array([1.5, -1.5])), -INF, NAN], gradient=[0.0] * 4)
            ],
        )
        for op, reference in (("op_floor", np.floor), ("op_ceil", np.ceil), ("op_trunc", np.trunc))
    ),
    function("op_sin", np.sin, ulps=8),
    function("op_cos", np.cos, ulps=8),
    function("op_tan", np.tan, between, ulps=16),
    of_unit(
        "op_arcsin",
        np.arcsin,
        ulps=8,
        pins=[pin([1.0, 2.0], value=[np.pi / 2, NAN], gradient=[INF, OPEN])],
    ),
    of_unit(
        "op_arccos",
        np.arccos,
        ulps=16,
        pins=[pin([-1.0, 2.0], value=[np.pi, NAN], gradient=[-INF, OPEN])],
    ),
    function(
        "op_arctan",
        np.arctan,
        unit,
        ulps=8,
        pins=[
            pin([INF, -INF], value=[np.pi / 2, -np.pi / 2], gradient=[0.0, 0.0]),
            pin([320.0], gradient=[1 / (1 + 320.0**2)], dtype="float16"),
        ],
    ),
    of_two_reals(
        "op_arctan2",
        np.arctan2,
        sampler=nonzero,
        dtypes=REAL,
        ulps=8,
        pins=[
            pin(
                [0.0, 0.0, -0.0],
                [0.0, -0.0, -1.0],
                value=[0.0, np.pi, -np.pi],
                gradient=([0.0, 0.0, -1.0], [0.0, 0.0, 0.0]),
            ),
            *[
                pin(
                    [x, -x, 0.0], [x, x, x], gradient=([0.5 / x, 0.5 / x, 1 / x], [-0.5 / x, 0.5 / x, 0.0]), dtype=dtype
                )
                for dtype, sizes in (
                    ("float16", (512.0, 2.0**-12, 60000.0)),
                    ("bfloat16", (2.0**100, 2.0**-100)),
                    ("float32", (2.0**100, 2.0**-100)),
                    ("float64", (2.0**900, 2.0**-900)),
                )
                for x in sizes
            ],
        ],
    ),
    # a long array, which PyTorch computes in another way; at this value, an inner rounding error is magnified 89 times
    function("op_sinh", np.sinh, ulps=8, pins=[pin([0.5] * 32, value=np.sinh([0.5] * 32).tolist())]),
    function("op_cosh", np.cosh, ulps=8, pins=[pin([0.5] * 32, value=np.cosh([0.5] * 32).tolist())]),
    function("op_tanh", np.tanh, ulps=16, pins=[pin([INF, -100.0], value=[1.0, -1.0], gradient=[0.0, 0.0])]),
    function("op_arcsinh", np.arcsinh, ulps=8, pins=[*_far_out(lambda x: 1 / np.hypot(x, 1))]),
    function(
        "op_arccosh",
        np.arccosh,
        at_least_1,
        ulps=16,
        pins=[
            pin([1.0, 0.5, -2.0], value=[0.0, NAN, NAN], gradient=[INF, OPEN, OPEN]),
            *_far_out(lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1))),
        ],
    ),
    of_unit(
        "op_arctanh",
        np.arctanh,
        ulps=16,
        pins=[pin([1.0, 2.0], value=[INF, NAN])],
    ),
    of_two_reals(
        "op_hypot",
        np.hypot,
        sampler=nonzero,
        dtypes=REAL,
        ulps=8,
        pins=[
            pin([0.0, 3.0], [0.0, 4.0], value=[0.0, 5.0], gradient=([0.0, 0.6], [0.0, 0.8])),
            pin([1.0], [1.0], gradient=([np.sqrt(0.5)], [np.sqrt(0.5)])),
            pin([3e38], [1e30], value=[3e38]),
            pin([3e38], [-3e38], value=[INF]),
            pin([2.0**-125], [2.0**-125], gradient=([np.sqrt(0.5)], [np.sqrt(0.5)])),
            pin([INF, NAN], [NAN, -INF], value=[INF, INF]),
        ],
    ),
    unary("op_real", np.real, dtypes=BOOLEAN + NUMERIC, returns=magnitude),
    unary("op_imag", np.imag, dtypes=BOOLEAN + NUMERIC, returns=magnitude),
    unary("op_conj", np.conj, dtypes=BOOLEAN + NUMERIC, returns=same),
    quotient(
        "op_divide_no_nan",
        _quotient,
        pins=[
            pin([1.0, INF, 0.0, NAN], [0.0, 0.0, -0.0, 0.0], value=[0.0] * 4, gradient=([0.0] * 4, [0.0] * 4)),
            pin([1.0, 1.0], [4.0, INF], value=[0.25, 0.0], gradient=([0.25, 0.0], [-0.0625, 0.0])),
            *_slopes_of_quotients(),
        ],
    ),
    of_two_reals(
        "op_logaddexp",
        np.logaddexp,
        ulps=8,
        pins=[
            pin(
                [INF, -INF, INF, 1.0, -INF, 1000.0],
                [INF, -INF, 1.0, INF, 1.0, 1000.0],
                value=[INF, -INF, INF, INF, 1.0, 1000.0 + np.log(2.0)],
            ),
            pin([1000.0, 1.0], [1000.0, -200.0], gradient=([0.5, 1.0], [0.5, 0.0])),
            pin([1.0, 0.0], [NAN, -50.0], value=[NAN, np.exp(-50.0)]),
        ],
    ),
    of_two_reals(
        "op_logaddexp2",
        np.logaddexp2,
        ulps=8,
        pins=[
            pin(
                [INF, -INF, 1000.0, 3.0],
                [INF, -INF, 1000.0, -INF],
                value=[INF, -INF, 1001.0, 3.0],
            ),
            pin([1000.0, 1.0], [1000.0, -200.0], gradient=([0.5, 1.0], [0.5, 0.0])),
        ],
    ),
    row(
        "op_nan_to_num",
        lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
        call(normal(2, 3)),
        call(normal(), nan=1.0, posinf=2, neginf=-2.0),
        call(normal(0)),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
        pins=[
            pin([NAN, INF, -INF, 2.0], value=[0.0, MOST, -MOST, 2.0], gradient=[0.0, 0.0, 0.0, 1.0]),
            pin([NAN, INF, -INF], value=[0.0, 65504.0, -65504.0], dtype="float16"),
            pin([NAN, INF, -INF], nan=-1.0, posinf=7.0, neginf=INF, value=[-1.0, 7.0, INF], gradient=[0.0] * 3),
            pin([complex(NAN, INF), 1 + 2j], posinf=3.0, value=[3j, 1 + 2j], dtype="complex64"),
        ],
    ),
    function(
        "op_cbrt",
        np.cbrt,
        nonzero,
        dtypes=BOOLEAN + REAL,
        pins=[
            pin([0.0, -8.0, INF, -INF, NAN], value=[0.0, -2.0, INF, -INF, NAN], gradient=[INF, 1 / 12, 0.0, 0.0, OPEN]),
            pin([1e-37, 3e38], value=np.cbrt([1e-37, 3e38])),
        ],
    ),
    remainder(
        "op_fmod",
        np.fmod,
        pins=[
            pin(
                [7.0, -7.0, 7.0, -7.0],
                [2.0, 2.0, -2.0, -2.0],
                value=[1.0, -1.0, 1.0, -1.0],
                gradient=([1.0] * 4, [-3.0, 3.0, 3.0, -3.0]),
            ),
            pin([-1.0, 2.0, INF, 1.0], [INF, -INF, 2.0, 0.0], value=[-1.0, 2.0, NAN, NAN]),
            pin([1000.0, -300.0, -1.0], [0.1, 0.1, INF], gradient=([1.0] * 3, [-9999.0, 2999.0, 0.0])),
            pin([-128, 127, -128], [3, -3, -1], value=[-2, 1, 0], dtype="int8"),
        ],
    ),
    of_two_reals(
        "op_heaviside",
        np.heaviside,
        sampler=nonzero,
        pins=[
            pin(
                [0.0, -0.0, 2.0, -INF, NAN],
                [0.5, NAN, 0.5, 0.5, 0.5],
                value=[0.5, NAN, 1.0, 0.0, NAN],
                gradient=([0.0] * 5, [1.0, OPEN, 0.0, 0.0, OPEN]),
            )
        ],
    ),
    row(
        "op_ldexp",
        np.ldexp,
        call(normal(2, 3), integers(2, 3)),
        call(normal(2, 1), integers(3, dtype="int64")),
        call(normal(), 3),
        call(normal(0, 3), integers(3, dtype="uint8")),
        dtypes=REAL,
        returns=lambda dtypes: floating(dtypes[:1]),
        pins=[
            pin(
                [0.0, 2.0**-100, 2.0**100, INF, NAN, 1.0],
                np.array([3, 200, -150, -5, 1, 1000], np.int32),
                value=[0.0, 2.0**100, 2.0**-50, INF, NAN, INF],
                gradient=[8.0, INF, 2.0**-150, 2.0**-5, OPEN, INF],
            ),
        ],
    ),
    binary(
        "op_nextafter",
        np.nextafter,
        dtypes=("float32", "float64"),
        pins=[
            pin(
                [1.0, -1.0, INF],
                [2.0, 2.0, 0.0],
                value=[1 + 2.0**-23, 2.0**-24 - 1, MOST],
                gradient=([1.0] * 3, [0.0] * 3),
            ),
            pin([2.0, 1.0, NAN], [2.0, NAN, 1.0], value=[2.0, NAN, NAN]),
            pin([2.0], [2.0], gradient=([1.0], [0.0])),
            *(
                pin(
                    [1.0, -1.0, 2.0, INF, NAN],
                    [2.0, 2.0, 2.0, 0.0, 1.0],
                    value=[1 + step, step / 2 - 1, 2.0, most, NAN],
                    dtype=dtype,
                )
                for dtype, step, most in (
                    ("float16", 2.0**-10, 65504.0),
                    ("bfloat16", 2.0**-7, 2.0**128 * (1 - 2.0**-8)),
                )
            ),
        ],
    ),
    function(
        "op_sinc",
        np.sinc,
        lambda *shape: uniform(*shape, low=-2.9, high=2.9),
        dtypes=FLOATING + COMPLEX,
        ulps=16,
        pins=[
            pin([0.0, 1.0, -2.0, 0.5, NAN], value=[1.0, 0.0, 0.0, 2 / np.pi, NAN]),
            pin([0.0, 1.0, 2.0], gradient=[0.0, -1.0, 0.5]),
            pin([1e-4, 1e-6], gradient=[-(np.pi**2) / 3 * 1e-4, -(np.pi**2) / 3 * 1e-6]),
        ],
    ),
    of_two_reals(
        "op_polar",
        lambda abs_, angle: abs_ * np.exp(1j * angle),
        returns=lambda dtypes: "complex128" if floating(dtypes) == "float64" else "complex64",
        ulps=8,
    ),
    quotient("op_true_divide", _quotient),
    unary("op_absolute", np.abs, nonzero, dtypes=BOOLEAN + NUMERIC, returns=magnitude),
    unary("op_conjugate", np.conj, dtypes=BOOLEAN + NUMERIC, returns=same),
    unary("op_fabs", np.abs, nonzero, dtypes=BOOLEAN + REAL, returns=floating),
    unary("op_deg2rad", np.deg2rad, dtypes=REAL, returns=floating),
    unary("op_rad2deg", np.rad2deg, dtypes=REAL, returns=floating),
    unary(
        "op_angle",
        np.angle,
        nonzero,
        dtypes=BOOLEAN + NUMERIC,
        returns=lambda dtypes: magnitude([floating(dtypes)]),
        ulps=8,
    ),
    *(
        extremum(
            op,
            reference,
            pins=[
                pin([1.0, 0.0], [1.0, -0.0], value=[1.0, 0.0], gradient=([0.5, 0.5], [0.5, 0.5])),
                pin([NAN, 1.0, NAN], [1.0, NAN, NAN], value=[1.0, 1.0, NAN]),
                pin([NAN, 1.0], [1.0, NAN], gradient=([0.0, 1.0], [1.0, 0.0])),
                pin([INF, -INF], [INF, -INF], value=[INF, -INF], gradient=([0.5, 0.5], [0.5, 0.5])),
            ],
        )
        for op, reference in (("op_fmax", np.fmax), ("op_fmin", np.fmin))
    ),
    of_two_reals(
        "op_copysign",
        np.copysign,
        sampler=nonzero,
        pins=[
            pin(
                [3.0, -3.0, 0.0, -0.0, INF, NAN],
                [-0.0, 2.0, -1.0, NAN, -INF, 1.0],
                value=[-3.0, 3.0, -0.0, 0.0, -INF, NAN],
                gradient=([-1.0, -1.0, 0.0, OPEN, -1.0, OPEN], [0.0] * 6),
            )
        ],
    ),
    unary(
        "op_modf",
        np.modf,
        nonzero,
        dtypes=BOOLEAN + REAL,
        returns=floating,
        pins=[
            pin(
                [1.5, -1.5, 0.0, -0.0, -2.0, 1e30, INF, -INF, NAN],
                value=(
                    [0.5, -0.5, 0.0, -0.0, -0.0, 0.0, 0.0, -0.0, NAN],
                    [1.0, -1.0, 0.0, -0.0, -2.0, 1e30, INF, -INF, NAN],
                ),
                gradient=[1.0] * 6 + [OPEN] * 3,
            )
        ],
    ),
]
