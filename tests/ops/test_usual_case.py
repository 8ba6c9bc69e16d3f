"""The usual case (tensors of floats, an int axis, a Python number) takes a shorter way to the same answer."""

from __future__ import annotations

import numpy as np
import pytest

import multiop
from multiop import errors

FLOATS = ["float32", "float16", "bfloat16"]
ROWS = [
    [0.5, -1.0, 2.0, 2.0],
    [np.nan, 1.0, np.nan, 3.0],
    [1.0, 2.0, 3.0, np.nan],
    [np.inf, 1.0, -np.inf, np.inf],
    [np.inf, 1.0, 2.0, 2.0],
    [-np.inf] * 4,
    [0.0, -0.0, 0.0, -0.0],
]
ALONG = ["sum", "mean", "var", "max", "min", "argmax", "argmin", "cumsum", "softmax", "log_softmax"]
NUMBERS = [0.1, 1e-50, -0.0, 65504.0, 65505.0, 1e38, 1e300, np.inf, np.nan, 3, 2**24 + 1, 2**53 + 1, 2**60 + 2**36 + 1]


def same(a, b):
    """Assert that two tensors have one dtype and one value, the sign of 0 included."""
    assert multiop.op_dtype(a) == multiop.op_dtype(b)
    a, b = map(multiop.op_convert_to_numpy, (a, b))
    a, b = (x.astype("float64") if x.dtype.name == "bfloat16" else x for x in (a, b))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b))


def answer(op, *args):
    try:
        return op(*args)
    except errors.MultiopError as error:
        return type(error), str(error).split("\n")[0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ALONG)
def test_an_axis_of_python_is_one_of_numpy(backend, op, dtype):
    op = getattr(multiop, f"op_{op}")
    whole = multiop.op_convert_to_tensor(ROWS, dtype)
    for x in (whole, *(whole[i : i + 1] for i in range(len(ROWS)))):  # one NaN must not hide another answer
        for axis in (0, 1, -1, -2) if x is whole else (1,):
            same(op(x, axis), op(x, np.int64(axis)))  # of which NumPy's takes the long way


@pytest.mark.parametrize("op", ALONG)
def test_an_axis_out_of_range_is_one_error(backend, op):
    op = getattr(multiop, f"op_{op}")
    for x, axis in ((np.zeros((2, 3), "float32"), 2), (np.zeros((2, 3), "float32"), -3), (np.float32(1), 0)):
        x = multiop.op_convert_to_tensor(x)
        found, expected = answer(op, x, axis), answer(op, x, np.int64(axis))
        assert found == expected
        assert found[0] is errors.ArgumentError


@pytest.mark.parametrize("op", ["sum", "mean", "max", "argmax", "argmin", "cumsum", "softmax"])
def test_an_empty_axis(backend, op):
    op = getattr(multiop, f"op_{op}")
    for shape in ((0, 3), (3, 0)):
        x = multiop.op_convert_to_tensor(np.zeros(shape, "float32"))
        for axis in (0, 1):
            found, expected = answer(op, x, axis), answer(op, x, np.int64(axis))
            if isinstance(expected, tuple):
                assert found[0] is expected[0]
            else:
                same(found, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_a_tensor_of_it(backend, op, number, dtype):
    op = getattr(multiop, f"op_{op}")
    x = multiop.op_convert_to_tensor([*np.concatenate(ROWS), 3.3, 1e-38, 60000.0], dtype)
    same(op(x, number), op(x, multiop.op_convert_to_tensor(number, dtype)))
    same(op(number, x), op(multiop.op_convert_to_tensor(number, dtype), x))


def test_a_number_beside_other_dtypes(backend):
    for x, number, dtype in (
        (np.int32([1, 2]), 2, "int32"),
        (np.int32([1, 2]), 2.5, "float32"),
        (np.array([True, False]), 2, "int32"),
        (np.float32([1, 2]), True, "float32"),
        (np.float32([1, 2]), 2j, "complex64"),
        (np.float16([1, 2]), 2, "float16"),
    ):
        y = multiop.op_multiply(multiop.op_convert_to_tensor(x), number)
        assert multiop.op_dtype(y) == dtype
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(y), x * number)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
@pytest.mark.parametrize("source", ["float32", "bool"])
def test_take_is_numpys(backend, dtype, source):
    for shape in ((5,), (5, 4), (3, 4, 5)):
        values = np.arange(np.prod(shape)).reshape(shape) % 3
        x = multiop.op_convert_to_tensor(values, source)
        for axis in [*range(len(shape)), -1, None]:
            size = values.size if axis is None else shape[axis]
            for indices in ([0, size - 1, 0], [[0, 1], [size - 1, 0]], 1, [], [-1, 0], [-size, size - 1], -1):
                if dtype == "uint8" and np.min(indices, initial=0) < 0:
                    continue
                indices = np.array(indices, dtype)
                found = multiop.op_take(x, multiop.op_convert_to_tensor(indices), axis)
                assert multiop.op_dtype(found) == source
                found = multiop.op_convert_to_numpy(multiop.op_cast(found, "int32"))
                np.testing.assert_array_equal(
                    found, np.take(values, indices, axis) if source != "bool" else np.take(values != 0, indices, axis)
                )


def test_take_refuses_what_is_out_of_range(backend):
    for shape, axis in (((3, 4), 0), ((3, 4), 1), ((2, 3, 4), 2), ((3,), 0), ((0, 2), 0), ((3, 0), 0)):
        x = multiop.op_convert_to_tensor(np.ones(shape, "float32"))
        for index in (shape[axis], -shape[axis] - 1, 2**31 - 1, -(2**31)):
            for indices in ([index], [0, index], index, [[index]]):
                indices = np.array(indices, "int32")
                with pytest.raises(errors.ArgumentError, match=f"an index is out of range for {shape[axis]} entries"):
                    multiop.op_take(x, multiop.op_convert_to_tensor(indices), axis)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool", "complex64"])
def test_cast(backend, dtype):
    x = multiop.op_convert_to_tensor([0.0, 1.0, 2.0, 3.0])
    found = multiop.op_cast(x, dtype)
    assert multiop.op_dtype(found) == dtype
    expected = np.float32([0, 1, 1, 1] if dtype == "bool" else [0, 1, 2, 3])
    np.testing.assert_array_equal(
        multiop.op_convert_to_numpy(multiop.op_cast(multiop.op_real(found), "float32")), expected
    )


def test_sequences_of_one_dtype_and_of_several(backend):
    x, y = multiop.op_convert_to_tensor([1.0, 2.0]), multiop.op_convert_to_tensor([3, 4])
    for op in (multiop.op_concatenate, multiop.op_stack):
        same(op([x, x]), op([[1.0, 2.0], x]))
        same(op((x, y)), op([x, multiop.op_cast(y, "float32")]))
        same(op([x]), op([[1.0, 2.0]]))
        same(op([y, y]), op([y, [3, 4]]))


def test_transpose(backend):
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        found = multiop.op_transpose(multiop.op_convert_to_tensor(x))
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(found), x.T)


def test_sign_of_zero(backend):
    one = multiop.op_convert_to_tensor(np.float32([1.0]))
    negative, half = multiop.op_convert_to_tensor(np.float32([-0.0])), multiop.op_cast(one, "bfloat16")
    ops = [
        lambda zero: multiop.op_multiply(one, zero),
        lambda zero: multiop.op_multiply(zero, one),
        lambda zero: multiop.op_cast(multiop.op_multiply(half, zero), "float32"),
        lambda zero: multiop.op_divide(zero, one),
        lambda zero: multiop.op_add(negative, zero),
        lambda zero: multiop.op_full((1,), zero),
        lambda zero: multiop.op_full_like(one, zero),
        lambda zero: multiop.op_where([True], zero, one),
        lambda zero: multiop.op_pad(one, ((1, 0),), constant_values=zero)[:1],
        lambda zero: multiop.op_convert_to_tensor(zero),
        lambda zero: multiop.op_array([zero]),
    ]
    for zero in (0.0, -0.0, 0.0, -0.0):  # equal numbers, of which a cache keeps one
        for op in ops:
            found = multiop.op_convert_to_numpy(op(zero))
            assert found == 0 and np.signbit(found) == np.signbit(zero)
