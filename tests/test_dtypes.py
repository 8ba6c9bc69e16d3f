"""Limits and names of dtypes, given by name, as NumPy's, as the framework's, or by a tensor."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._values import dtypes

FLOATS = ("bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2")
FIELDS = ("eps", "epsneg", "max", "min", "smallest_normal", "smallest_subnormal", "tiny", "resolution")


def spellings(dtype):
    array = np.zeros(2, dtypes.to_numpy(dtype))
    return [dtype, array, array.dtype, array.dtype.type, mo.native_dtype(dtype), mo.op_cast(array, dtype)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_limits_of_floats(backend, dtype):
    expected = ml_dtypes.finfo(dtypes.to_numpy(dtype))
    for spelling in spellings(dtype):
        found = mo.finfo(spelling)
        assert (found.dtype, found.bits, found.precision) == (dtype, expected.bits, expected.precision)
        for field in FIELDS:
            assert getattr(found, field) == float(getattr(expected, field)), field
        assert mo.dtype_name(spelling) == dtype


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_limits_of_integers(backend, dtype):
    expected = np.iinfo(dtype)
    for spelling in spellings(dtype):
        assert mo.iinfo(spelling) == (dtype, expected.bits, expected.min, expected.max)


def test_dtypes_of_64_bits(backend, multiop_x64):
    assert mo.finfo(mo.op_zeros(2, "complex128")) == mo.finfo("float64") == mo.finfo(mo.native_dtype("float64"))
    assert mo.iinfo(mo.native_dtype("uint64")).max == 2**64 - 1


@pytest.mark.parametrize("dtype", [*dtypes.BOOLEAN, "int32", "bfloat16", "float32", "complex64"])
def test_a_native_dtype_is_that_of_tensors(backend, dtype):
    native = mo.native_dtype(dtype)
    assert native == mo.op_zeros(2, dtype).dtype == mo.native_dtype(native)
    assert mo.dtype_name(native) == dtype


def test_pythons_types(backend):
    assert [mo.dtype_name(one) for one in (float, int, complex, bool)] == ["float32", "int32", "complex64", "bool"]


@pytest.mark.parametrize("framework", ["torch", "jax.numpy", "tensorflow"])
def test_float8_of_each_framework(framework):
    module = pytest.importorskip(framework)
    module = module.dtypes.experimental if framework == "tensorflow" else module
    for dtype in dtypes.FLOAT8:
        assert mo.finfo(getattr(module, dtype)).dtype == dtype


def test_limits_in_a_compiled_function(backend):
    y = mo.jit(lambda x: x + mo.finfo(x.dtype).eps + mo.iinfo("int8").max)(mo.op_ones(2, "float32"))
    np.testing.assert_array_equal(mo.op_convert_to_numpy(y), np.float32([128, 128]))


@pytest.mark.parametrize(
    ("function", "dtype", "message"),
    [
        ("finfo", "int32", "int32 is not a float dtype; see multiop.iinfo"),
        ("finfo", "bool", "bool is not a float dtype"),
        ("iinfo", "float8_e5m2", "float8_e5m2 is not an integer dtype; see multiop.finfo"),
        ("iinfo", "bool", "bool is not an integer dtype"),
        ("finfo", "float31", "unknown dtype 'float31'"),
        ("dtype_name", "quad", "unknown dtype 'quad'"),
        ("native_dtype", "float8_e3m4", "unknown dtype 'float8_e3m4'"),
    ],
)
def test_a_wrong_dtype_is_named(backend, function, dtype, message):
    with pytest.raises(errors.DTypeError, match=rf"^{function}: {message}"):
        getattr(mo, function)(dtype)


def test_a_size_in_place_of_a_dtype_is_told(backend):
    for call in (lambda: mo.op_zeros(2, 3), lambda: mo.op_view(mo.op_ones((2, 3)), (3, 2))):
        with pytest.raises(errors.DTypeError, match=r"unknown dtype .*; sizes are one tuple, as in op_reshape"):
            call()
