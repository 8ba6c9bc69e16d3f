"""Rounding integers to tens and more, of every dtype, against Python's own integers."""

from __future__ import annotations

import functools

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
