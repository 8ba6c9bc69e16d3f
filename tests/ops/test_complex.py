"""Functions of complex numbers on their branch cuts, and where squares overflow or vanish, against long doubles."""

import numpy as np
import pytest
from edge_complex import FUNCTIONS, SIZES, missed, points

import multiop as mo


def check(found, expected, dtype, what):
    wrong = missed(found, expected, dtype)
    assert not len(wrong), f"{what} at {len(wrong)} points"


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("op", FUNCTIONS)
def test_branch_cuts_and_sizes(backend, multiop_x64, op, dtype):
    fn, (reference, slope) = getattr(mo, op), FUNCTIONS[op]
    z, long = points(op, dtype)
    with np.errstate(all="ignore"):
        value, derivative = reference(long), slope(long)
    x = mo.op_convert_to_tensor(z)
    check(mo.op_convert_to_numpy(fn(x)), value, dtype, "the value")
    y, pullback = mo.vjp(fn, x)
    check(mo.op_convert_to_numpy(y), value, dtype, "the value, differentiated,")
    check(mo.op_convert_to_numpy(pullback(mo.op_ones_like(y))[0]), np.conj(derivative), dtype, "the gradient")
    tangent = mo.jvp(fn, (x,), (mo.op_ones_like(x),))[1]
    check(mo.op_convert_to_numpy(tangent), derivative, dtype, "the tangent")
    alone = np.array([mo.op_convert_to_numpy(fn(mo.op_convert_to_tensor(one))) for one in z[::5]])
    check(alone, value[::5], dtype, "the value of one number")


PARTS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf]
BRANCH_POINTS = np.array([complex(a, b) for a in PARTS for b in PARTS], "complex64")
OF_NUMPY = [
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
]


@pytest.mark.parametrize("name", OF_NUMPY)
def test_branch_points_and_infinities_are_those_of_numpy(backend, name):
    z = BRANCH_POINTS
    if (backend, name) == ("jax", "exp"):  # XLA's is NaN there
        z = z[~(np.isneginf(z.real) & np.isinf(z.imag))]
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(z.astype("complex128"))
    known = ~np.isnan(wanted)  # in both parts
    found = mo.op_convert_to_numpy(getattr(mo, f"op_{name}")(mo.op_convert_to_tensor(z)))[known]
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(found), part(wanted[known]), rtol=1e-5, atol=1e-6)


@pytest.mark.tier("full")
@pytest.mark.parametrize("op", ["op_sqrt", "op_arccosh", "op_arctanh", "op_log"])
def test_branch_cuts_when_compiled(backend, op):
    z, long = points(op, "complex64")
    reference, slope = FUNCTIONS[op]

    def gradient(x):
        y, pullback = mo.vjp(getattr(mo, op), x)
        return y, pullback(mo.op_ones_like(y))[0]

    y, found = mo.jit(gradient)(mo.op_convert_to_tensor(z))
    check(mo.op_convert_to_numpy(y), reference(long), "complex64", "the value")
    check(mo.op_convert_to_numpy(found), np.conj(slope(long)), "complex64", "the gradient")
