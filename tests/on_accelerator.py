"""On an accelerator, nothing waits for the device: each op, and its gradient, with guards that raise where one would.

`tools/accelerator.py` runs this file where there is a device; `tests/torch/elsewhere.py` asks the same of tensors
without values, on a CPU.
"""

import contextlib
import functools
import sys

import numpy as np
import pytest
from elsewhere_table import OF_THE_HOST, WAITS

import multiop as mo
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

ROWS = rows()
# docs/devices.md: the framework itself waits, or JAX computes it on the CPU
OF_THE_FRAMEWORK = {
    "torch": {
        "op_eig",
        "op_eigvals",
        "op_eigh",
        "op_eigvalsh",
        "op_svdvals",
        "op_svd",
        "op_pinv",
        "op_lstsq",
        "op_matrix_rank",
        "op_det",
        "op_slogdet",
        "op_logdet",
        "op_expm",
        "op_polar_decomposition",
        "op_polyfit",
        "op_roots",
    },
    "jax": {"op_eig", "op_eigvals"},
}


@pytest.fixture(autouse=True)
def device(backend, pytestconfig):
    """The device that was asked for; there is none on a CPU, where nothing can wait."""
    name = pytestconfig.getoption("multiop_device")
    if name is None or name.startswith("cpu"):
        pytest.skip("there is no accelerator")
    return name


@contextlib.contextmanager
def without_waiting(backend):
    if backend == "jax":
        import jax

        with jax.transfer_guard_device_to_host("disallow_explicit"):
            yield
        return
    torch = pytest.importorskip("torch")
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def problems(op, backend):
    if op in OF_THE_FRAMEWORK.get(backend, ()):
        pytest.skip("the framework itself waits")
    row = ROWS[op]
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    found = [Problem(getattr(mo, op), call, dtype=dtype, name=op) for call in row.calls[:2]]
    return [problem for problem in found if problem.arrays]


def run(fun, backend, device, arrays):
    xs = [mo.to_device(x, device) for x in arrays]
    # PyTorch copies a host value to its default device with a wait: what is made on the CPU is moved without one
    with sys.modules["torch"].device("cpu") if backend == "torch" else contextlib.nullcontext():
        fun(*xs)  # what is looked up once, and may wait
        with without_waiting(backend):
            fun(*xs)


@pytest.mark.parametrize("op", sorted(set(ROWS) - WAITS - OF_THE_HOST))
def test_no_value_waits(op, backend, device):
    for problem in problems(op, backend):
        run(lambda *xs, problem=problem: problem.outputs(*xs), backend, device, problem.arrays)


@pytest.mark.parametrize("op", sorted(op for op, row in ROWS.items() if row.differentiable and op not in WAITS))
def test_no_gradient_waits(op, backend, device):
    def total(problem, *xs):
        inexact = [y for y in problem.outputs(*xs) if mo.op_dtype(y).startswith(("float", "bfloat", "complex"))]
        return functools.reduce(mo.op_add, [mo.op_sum(mo.op_abs(y)) for y in inexact])

    for problem in problems(op, backend):
        if problem.inexact:
            gradient = mo.grad(functools.partial(total, problem), argnums=tuple(problem.inexact))
            run(gradient, backend, device, problem.arrays)


def test_a_wait_is_seen(backend, device):
    x = mo.to_device([1.0, 2.0], device)
    with without_waiting(backend), pytest.raises(Exception, match=r"synchroniz|[Tt]ransfer"):
        float(x[0])


@pytest.mark.parametrize("op", [mo.op_logical_and, mo.op_logical_or, mo.op_logical_xor, mo.op_where])
def test_a_number_joins_a_tensor_there_without_a_wait(op, backend, device):
    def both(x):
        return (op(True, x, x), op(x, x, False)) if op is mo.op_where else (op(True, x), op(x, 0.0))

    run(both, backend, device, [mo.op_convert_to_tensor([True, False])])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_there_is_ported(dtype, backend, device):
    if backend != "torch":
        pytest.skip("a model of JAX lies nowhere")
    import torch

    from multiop import porting

    layers = [torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Tanh(), torch.nn.Linear(3, 2)]
    model = torch.nn.Sequential(*layers).to(device, getattr(torch, dtype))
    x = torch.randn(5, 4, device=device).to(model[0].weight.dtype)
    for training in (False, True):
        port = porting.trace(model, x, training=training)
        assert porting.prove(port, backend).agrees
        assert porting.compare(model, port, [x], training=training).first_difference is None
    assert all(parameter.device == x.device for parameter in model.parameters())


DRAWS = {
    "uniform": lambda key, p: mo.random.uniform((1001,), p, seed=key),
    "normal": lambda key, p: mo.random.normal((1001,), p, seed=key),
    "normal of float64": lambda key, p: mo.random.normal((1001,), 0.5, dtype="float64", seed=key),
    "randint": lambda key, p: mo.random.randint((1001,), 3, 2**31 - 1, seed=key),
    "split": lambda key, p: mo.random.split(key, 5),
    "fold_in": lambda key, p: mo.random.fold_in(key, 2**40 + 3),
    "gamma": lambda key, p: mo.random.gamma((1001,), p, seed=key),
    "poisson": lambda key, p: mo.random.poisson((1001,), p, seed=key),
    "binomial": lambda key, p: mo.random.binomial((1001,), 100, p, seed=key),
    "choice": lambda key, p: mo.random.choice(1001, (100,), replace=False, seed=key),
    "dropout": lambda key, p: mo.random.dropout(p * mo.op_ones((1001,)), 0.25, seed=key),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_there_have_the_bits_of_the_host(name, backend, device):
    key, p = mo.random.key(2**63 + 5), mo.op_convert_to_tensor(0.5)
    here = mo.op_convert_to_numpy(DRAWS[name](mo.to_device(key, "cpu"), mo.to_device(p, "cpu")))
    there = DRAWS[name](mo.to_device(key, device), mo.to_device(p, device))
    assert name == "choice" or str(mo.device(there)).startswith(device.partition(":")[0])
    if name == "gamma":  # to within 2 units in the last place, as its docstring says
        np.testing.assert_array_max_ulp(mo.op_convert_to_numpy(there), here, 2)
    else:
        np.testing.assert_array_equal(mo.op_convert_to_numpy(there), here)


def test_a_draw_there_is_few_kernels(backend, device):
    if backend != "torch":
        pytest.skip("JAX compiles a draw into one program")
    import torch

    x, key = torch.ones(1000, device=device), mo.to_device(mo.random.key(3), device)
    mo.random.dropout(x, 0.5, seed=key)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        mo.random.dropout(x, 0.5, seed=key)
    assert sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profile.events()) < 20
