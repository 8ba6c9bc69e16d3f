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


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_the_sign_of_zero(backend, name, dtype, compiled):
    if dtype == "float64" and backend == "jax":
        pytest.skip("64-bit mode is off")
    if compiled and backend == "torch":
        pytest.skip("its compiler takes minutes for all")
    if compiled and (name, backend) in {("power", "tensorflow"), ("subtract", "tensorflow")}:
        pytest.skip("the graph adds a zero, or is rewritten as if numbers were real")
    op, reference, operands = CALLS[name]
    operands = [x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for x in operands]
    with np.errstate(all="ignore"):
        wanted = reference(*[x.astype("float32" if x.itemsize == 2 else dtype) for x in operands])
    found = (mo.jit(op) if compiled else op)(*[mo.op_convert_to_tensor(x) for x in operands])
    found = mo.op_convert_to_numpy(found).astype(wanted.dtype)
    zero = (wanted == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found)[zero], np.signbit(wanted)[zero])
