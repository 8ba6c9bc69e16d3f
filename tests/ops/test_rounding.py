"""Rounding integers to tens and more, and casts to fewer digits, against Python's integers and fractions."""

from __future__ import annotations

import functools
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import multiop
from multiop import ops

pytestmark = pytest.mark.usefixtures("multiop_x64")
DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("dtype", DTYPES)
def test_integers_are_rounded_to_even_tens(dtype, compiled, backend):
    limits = np.iinfo(dtype)
    near = [limits.min, limits.min + 7, limits.max // 2 + 3, limits.max - 6, limits.max]
    x = np.array([0, 4, 5, 6, 15, 25, 35, 95, 105, *near], dtype)
    modulus = 2**limits.bits
    for decimals in (-1, -2, -3, -9, -18, -19, -20):
        unit = 10**-decimals
        expected = [_rounded(int(one), unit) % modulus if unit <= limits.max else 0 for one in x]
        with multiop.use_backend(backend):
            function = functools.partial(ops.round, decimals=decimals)
            found = multiop.op_convert_to_numpy((multiop.jit(function) if compiled else function)(x))
        assert found.dtype == dtype
        assert [int(one) % modulus for one in found] == expected


def _rounded(x, unit):
    below, rest = divmod(x, unit)
    return (below + (2 * rest > unit or (2 * rest == unit and below % 2 == 1))) * unit


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compiler)])
def test_decimals_beyond_the_range_of_a_float(compiled, backend):
    x = np.array([1.23456e-36, 0.0, 1.5, -3e38, np.inf], np.float32)
    for decimals, least in ((38, 1.23e-36), (40, 1.2346e-36), (45, 1.23456e-36), (46, x[0]), (400, x[0]), (-40, 0.0)):
        function = functools.partial(ops.round, decimals=decimals)
        found = multiop.op_convert_to_numpy((multiop.jit(function) if compiled else function)(x))
        expected = [least, *x[1:]] if decimals > 0 else [0.0, 0.0, 0.0, 0.0, np.inf]
        np.testing.assert_allclose(found, expected, rtol=3e-7)
    x = np.array([1.23456e-307, 1.5])
    np.testing.assert_allclose(multiop.op_convert_to_numpy(ops.round(x, 309)), [1.23e-307, 1.5], rtol=1e-15)
    assert multiop.op_convert_to_numpy(ops.round(np.float16([1.5]), 40)).tolist() == [1.5]


CASTS = [
    ("float64", "float16", [1 + 2**-11 + 2**-40, -(1 + 2**-11 + 2**-40), 65519.99999999, 2**-25 * (1 + 2**-40), 1.5]),
    ("float64", "bfloat16", [1 + 2**-8 + 2**-30, -(1 + 2**-8 + 2**-30), 1 + 2**-8, 1 + 3 * 2**-8, 1e30, -0.1]),
    ("int32", "bfloat16", [2**24 + 2**16 + 1, -(2**30 + 2**22 + 1), 2**30 + 2**22, 257, -131071, 131073]),
    ("uint32", "bfloat16", [2**31 + 2**23 + 1, 2**17 + 2**9 + 1, 255]),
    ("int64", "bfloat16", [2**40 + 2**32 + 1, -(2**62 + 2**54 + 1), 2**53 + 2**45 + 1]),
    ("uint64", "bfloat16", [2**63 + 2**55 + 1, 2**63 + 2**55]),
]
NARROW = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("before", "after", "numbers"), CASTS)
def test_a_cast_rounds_once(before, after, numbers, compiled, backend):
    """Where that takes no more than two further kernels; docs/limits.md has the table of the others."""
    if backend in ("torch", "tensorflow"):
        pytest.skip("rounds twice")
    x = np.array(numbers, before)
    with multiop.use_backend(backend):
        function = functools.partial(ops.cast, dtype=after)
        found = multiop.op_convert_to_numpy((multiop.jit(function) if compiled else function)(ops.convert_to_tensor(x)))
    assert [float(one) for one in found] == [_nearest(one.item(), after) for one in x]


def test_the_gradient_of_a_cast_that_rounds_once(backend):
    with multiop.use_backend(backend):
        x = ops.convert_to_tensor(np.array([1.5, -2.0]))
        cube = lambda x: ops.sum(ops.cast(ops.cast(x, "float16"), "float64") ** 3)
        gradient, second = multiop.grad(cube)(x), multiop.hessian(cube)(x)
        tangent = multiop.jvp(cube, (x,), (x,))[1]
        assert multiop.op_convert_to_numpy(gradient).tolist() == [6.75, 12.0]
        assert multiop.op_convert_to_numpy(second).tolist() == [[9.0, 0.0], [0.0, -12.0]]
        assert float(tangent) == 6.75 * 1.5 - 24.0


def _nearest(x, dtype):
    """Return the number of a dtype that is nearest to `x`; the even one of two."""
    bits = int(np.array(x).astype(np.float32).astype(NARROW[dtype]).view(np.uint16))
    near = [(b & 1, float(np.array(b, np.uint16).view(NARROW[dtype]))) for b in {max(bits - 1, 0), bits, bits + 1}]
    return min((abs(Fraction(x) - Fraction(y)), odd, y) for odd, y in near if np.isfinite(y))[2]
