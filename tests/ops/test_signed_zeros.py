"""The sign of zero in a result is NumPy's, in each dtype, eager and compiled."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import multiop as mo
from multiop.testing.cases import rows

X = np.array([-0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, np.inf, -np.inf])
PAIRS = [x.ravel() for x in np.meshgrid(X, X)]
LEFT_OUT = {
    **dict.fromkeys(("fmax", "fmin", "maximum", "minimum"), "of two zeros, NumPy takes now one and now the other"),
}


def of_numpy():
    """Yield each op of floats that is a function of NumPy, entry by entry: its name, that function, its operands."""
    for row in rows().values():
        name = row.op.removeprefix("op_")
        function = getattr(np, name, None)
        is_entrywise = isinstance(function, np.ufunc) and function.signature is None
        if is_entrywise and {"f->f", "ff->f"} & {*function.types} and name not in LEFT_OUT:
            yield name, function, PAIRS if function.nin == 2 else [X]


WITH_OPTIONS = {
    "round to a decimal": (lambda x: mo.op_round(x, 1), lambda x: np.round(x, 1)),
    "round to tens": (lambda x: mo.op_round(x, -1), lambda x: np.round(x, -1)),
    "floor_divide by a number": (lambda x: mo.op_floor_divide(x, 2.0), lambda x: np.floor_divide(x, 2.0)),
    "clip": (lambda x: mo.op_clip(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1)),
    "cumprod": (mo.op_cumprod, np.cumprod),
    "where": (lambda x: mo.op_where(x > 0, 1.0, x), lambda x: np.where(x > 0, 1.0, x)),
    "round": (mo.op_round, np.round),
    "sinc": (mo.op_sinc, np.sinc),
    "nan_to_num": (mo.op_nan_to_num, np.nan_to_num),
    "angle": (mo.op_angle, np.angle),
}
CALLS = {name: (getattr(mo, f"op_{name}"), f, operands) for name, f, operands in of_numpy()}
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
