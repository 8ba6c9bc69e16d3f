"""The sign of zero in a result is NumPy's, in each dtype, eager and compiled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import multiop as mo

X = np.array([-0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, np.inf, -np.inf])
PAIRS = [x.ravel() for x in np.meshgrid(X, X)]
UNARY = {
    name: getattr(np, name)
    for name in [
        "abs",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "log",
        "log1p",
        "log2",
        "log10",
        "negative",
        "reciprocal",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "tan",
        "tanh",
        "trunc",
        "sinc",
        "deg2rad",
        "nan_to_num",
        "angle",
        "round",
        "flip",
    ]
}
BINARY = {
    name: getattr(np, name)
    for name in [
        "add",
        "subtract",
        "multiply",
        "divide",
        "floor_divide",
        "fmod",
        "power",
        "arctan2",
        "hypot",
        "heaviside",
    ]
}
WITH_OPTIONS = {
    "round to a decimal": (lambda x: mo.op_round(x, 1), lambda x: np.round(x, 1)),
    "round to tens": (lambda x: mo.op_round(x, -1), lambda x: np.round(x, -1)),
    "floor_divide by a number": (lambda x: mo.op_floor_divide(x, 2.0), lambda x: np.floor_divide(x, 2.0)),
    "clip": (lambda x: mo.op_clip(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1)),
    "cumprod": (mo.op_cumprod, np.cumprod),
    "where": (lambda x: mo.op_where(x > 0, 1.0, x), lambda x: np.where(x > 0, 1.0, x)),
}
CALLS = {name: (getattr(mo, f"op_{name}"), f, [X]) for name, f in UNARY.items()}
CALLS |= {name: (getattr(mo, f"op_{name}"), f, PAIRS) for name, f in BINARY.items()}
CALLS |= {name: (op, f, [X]) for name, (op, f) in WITH_OPTIONS.items()}


REWRITTEN = {  # the compiler adds a zero, or computes as if numbers were real
    "numpy": (),
    "torch": (),
    "jax": (),
    "tensorflow": ("power", "subtract"),
}
OF_DTYPE = [pytest.param(dtype, marks=pytest.mark.tier("full")) for dtype in ("float16", "bfloat16", "float64")]


def operands_of(name, dtype):
    return [x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for x in CALLS[name][2]]


def check(name, dtype, found):
    with np.errstate(all="ignore"):
        operands = [x.astype("float32" if x.itemsize == 2 else dtype) for x in operands_of(name, dtype)]
        wanted = CALLS[name][1](*operands)
    found = mo.op_convert_to_numpy(found).astype(wanted.dtype)
    zero = (wanted == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found)[zero], np.signbit(wanted)[zero], err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_the_sign_of_zero(backend, name, dtype, multiop_x64):
    check(name, dtype, CALLS[name][0](*map(mo.op_convert_to_tensor, operands_of(name, dtype))))


@pytest.mark.parametrize("dtype", ["float32", *OF_DTYPE])
def test_the_sign_of_zero_in_one_program(backend, dtype, multiop_x64):
    names = [name for name in CALLS if name not in REWRITTEN[backend]]

    def program(*operands):
        return [CALLS[name][0](*xs) for name, xs in zip(names, operands, strict=True)]

    given = [list(map(mo.op_convert_to_tensor, operands_of(name, dtype))) for name in names]
    for name, found in zip(names, mo.jit(program)(*given), strict=True):
        check(name, dtype, found)
