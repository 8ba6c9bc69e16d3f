"""What holds of every op on NumPy: its results are arrays of their own, its operands stay, and it warns of nothing."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._values import dtypes
from multiop.testing._case import Call
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

VIEWS = ("op_view_as_complex", "op_view_as_real")  # docs/memory.md: as those of PyTorch
ROWS = {op: row for op, row in rows().items() if row.returns is not None}


def problems(op):
    dtype = "float32" if "float32" in ROWS[op].dtypes else ROWS[op].dtypes[0]
    for n, call in enumerate(ROWS[op].calls):
        yield Problem(getattr(mo, op), call, dtype=dtype, seed=n, name=op)
    for pin in ROWS[op].pins:
        args = [np.asarray(x, dtypes.to_numpy(pin.dtype)) if isinstance(x, (list, float)) else x for x in pin.args]
        yield Problem(getattr(mo, op), Call(tuple(args), pin.kwargs), dtype=pin.dtype, name=op)


def arrays(returned):
    if isinstance(returned, (tuple, list)):
        return [y for entry in returned for y in arrays(entry)]
    if isinstance(returned, dict):
        return arrays(list(returned.values()))
    return [returned] if mo.op_is_tensor(returned) else []


@pytest.mark.parametrize("op", ROWS)
def test_results_are_arrays_of_their_own(op):
    for problem in problems(op):
        given = [x.copy() for x in problem.arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if op == "op_associative_scan" else "error")  # its pin adds with Python's +
            found = arrays(problem.apply(problem.f, given))
        for y in found:
            assert type(y) is np.ndarray
            assert op in VIEWS or not any(np.shares_memory(x, y) for x in given), problem.call
        for x, before in zip(given, problem.arrays, strict=True):
            assert x.tobytes() == before.tobytes()


@pytest.mark.parametrize("transform", [mo.jit, mo.vmap, mo.checkpoint, mo.op_custom_gradient])
def test_a_function_that_returns_what_it_is_given_shares_no_memory(transform):
    def same(x):
        return (x, lambda upstream: upstream) if transform is mo.op_custom_gradient else x

    x = np.ones(3, np.float32)
    y = transform(same)(x)
    assert not np.shares_memory(x, y)
    assert not np.shares_memory(x, mo.op_stop_gradient(x))


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_a_mask_is_not_lost(dtype):
    masked = np.ma.masked_array(np.ones(2, dtype), [True, False])
    for call in (mo.op_copy, mo.op_abs, lambda x: mo.op_cast(x, "int8"), lambda x: mo.op_add(x, 1.0)):
        with pytest.raises(errors.ArgumentTypeError, match="masked array"):
            call(masked)


X = np.ones(3, np.float32)


def test_values_of_custom_gradients():
    scaled = mo.op_custom_gradient(lambda x, y: ((x * y, x + y), lambda a, b: (a * y + b, a * x + b)))
    product, total = scaled(X, 2.0)
    assert product.tolist() == [2.0] * 3 and total.tolist() == [3.0] * 3
    assert mo.op_attach_gradient(X * 2, X, X).tolist() == [2.0] * 3


def test_what_it_imports():
    """SciPy's parts are imported where an op first needs them."""
    program = (
        "import sys, multiop; multiop.set_backend('numpy'); multiop.op_exp(0.0)\n"
        "assert not {'torch', 'jax', 'tensorflow', 'scipy.special', 'scipy.linalg'} & set(sys.modules)\n"
        "print(float(multiop.op_erf(10.0)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "1.0\n", done.stderr


def test_a_number_is_an_array_of_no_dimensions_and_has_a_derivative():
    """NumPy's functions return a scalar, which nothing would record."""
    x, tried = np.array(0.6), 0
    for name in dir(mo):
        row = ROWS.get(name)
        if row is None or "float64" not in row.dtypes or [len(call.args) for call in row.calls[:1]] != [1]:
            continue
        op = getattr(mo, name)
        try:
            y = op(x)
        except (errors.MultiopError, TypeError):
            continue
        if isinstance(y, np.ndarray) and not y.shape and y.dtype == np.float64 and row.differentiable:
            assert type(y) is np.ndarray, name
            slope = (op(x + 1e-6) - op(x - 1e-6)) / 2e-6
            np.testing.assert_allclose(mo.grad(op)(x), slope, rtol=1e-6, atol=1e-8, err_msg=name)
            tried += 1
    np.testing.assert_allclose(mo.grad(lambda x: mo.op_clip(x, 0.5, 1.2))(x), 1)
    assert tried > 60
