"""Every op takes lists in the place of tensors, with the same result."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import multiop
from multiop._values import dtypes, tree
from multiop.testing._problem import Problem
from multiop.testing.cases import control_flow, rows

# to control flow a list is a tree of numbers; what asks for a tensor is not told one
ROWS = {op: row for op, row in rows().items() if row not in control_flow.ROWS and op != "op_is_tensor"}


def called(op, given):
    """Return what the first call of an op makes of its inputs, each as `given` says, as arrays."""
    row = ROWS[op]
    dtype = next((name for name in ("float32", "int32") if name in row.dtypes), row.dtypes[0])  # which lists become
    problem = Problem(getattr(multiop, op), row.calls[0], dtype=dtype)
    return outputs(problem, list(map(given, problem.arrays)))


def outputs(problem, given):
    """Return what a call makes of `given`, as arrays."""
    leaves = tree.leaves(problem.apply(problem.f, given))
    return [np.asarray(multiop.op_convert_to_numpy(y)) for y in leaves if y is not None and not isinstance(y, str)]


def differing():
    found = []
    for op in ROWS:
        try:
            of_arrays, of_lists = called(op, lambda x: x), called(op, lambda x: x.tolist())
            for x, y in zip(of_arrays, of_lists, strict=True):
                assert x.dtype == y.dtype
                np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-6)
        except Exception as error:
            found.append(f"{op}: {type(error).__name__}: {error}")
    return found


@pytest.mark.tier("full")
def test_every_op_takes_lists(backend):
    assert not differing()


IN_DEFAULT = ("op_add", "op_where", "op_linspace", "op_set_item", "op_digitize")  # each converts in a way of its own


@pytest.mark.parametrize(
    "op",
    [
        op if op in IN_DEFAULT else pytest.param(op, marks=pytest.mark.tier("full"))
        for op, row in ROWS.items()
        if "float64" in row.dtypes
    ],
)
def test_a_list_beside_64_bits_keeps_its_digits(backend, op, multiop_x64):
    problem = Problem(getattr(multiop, op), ROWS[op].calls[0], dtype="float64")
    of_arrays = outputs(problem, problem.arrays)
    for k in problem.inexact if len(problem.inexact) > 1 else ():
        given = [x if place == k else x.tolist() for place, x in enumerate(problem.arrays)]
        for x, y in zip(of_arrays, outputs(problem, given), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-13)


def test_numbers_beside_64_bits_keep_their_digits(backend, multiop_x64):
    """Two of them, one with the other: what they are together, a tensor of `floatx` would not be."""
    x = np.array([0.1, 0.35, 0.9])
    y = multiop.op_betainc(0.3, 0.7, multiop.op_convert_to_tensor(x))
    np.testing.assert_allclose(multiop.op_convert_to_numpy(y), scipy.special.betainc(0.3, 0.7, x), rtol=1e-13)
    narrow = multiop.op_cast([0.5] * 3, "bfloat16")
    y = multiop.op_betainc(narrow, 0.7, multiop.op_convert_to_tensor(x))
    np.testing.assert_allclose(multiop.op_convert_to_numpy(y), scipy.special.betainc(0.5, 0.7, x), rtol=1e-13)


def test_numbers_of_a_list_beside_a_differentiated_tensor_keep_their_digits(backend, multiop_x64):
    x = multiop.op_convert_to_tensor(np.array([3.0]))
    for f, want in (
        (lambda x: multiop.op_multiply(x, [0.1]), 0.1),
        (lambda x: multiop.op_power(x, [2.1]), 2.1 * 3**1.1),
    ):
        found = multiop.grad(lambda x, f=f: multiop.op_sum(f(x)))(x)
        np.testing.assert_allclose(multiop.op_convert_to_numpy(found), [want], rtol=1e-14)


def nested(x):
    """Return a tensor as lists of its entries."""
    return [nested(row) for row in x] if len(x.shape) else x


def slope(problem, k, given, others):
    """Return the gradient of a call by its input `k`, which the op gets as `given` says, and the others likewise."""

    def f(x):
        inputs = [given(x) if place == k else others(y) for place, y in enumerate(problem.arrays)]
        outputs = filter(is_float, tree.leaves(problem.apply(problem.f, inputs)))
        return sum(multiop.op_sum(multiop.op_sin(multiop.op_real(y))) for y in outputs)

    return multiop.op_convert_to_numpy(multiop.grad(f)(multiop.op_convert_to_tensor(problem.arrays[k])))


def is_float(y):
    return multiop.op_is_tensor(y) and multiop.op_dtype(y) in dtypes.INEXACT


@pytest.mark.tier("full")
@pytest.mark.parametrize("op", [op for op, row in ROWS.items() if row.differentiable and "float32" in row.dtypes])
def test_a_list_of_tensors_is_differentiated(backend, op):
    problem = Problem(getattr(multiop, op), ROWS[op].calls[0], dtype="float32")
    for k in problem.inexact:
        if problem.arrays[k].size:
            expected = slope(problem, k, lambda x: x, lambda x: x)
            np.testing.assert_allclose(slope(problem, k, nested, np.ndarray.tolist), expected, rtol=1e-4, atol=1e-5)
