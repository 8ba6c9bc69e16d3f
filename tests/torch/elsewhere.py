"""Devices other than the CPU, stood in for by tensors without values: where results lie, and what would wait.

PyTorch must be told that there is such a device, and cannot be told otherwise again: `test_devices_torch.py` runs this
file in a process of its own.
"""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from elsewhere_table import OF_THE_HOST, WAITS
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration

import multiop as mo
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

ROWS = rows()
NAME = "npy"  # the one device for which PyTorch can be told that it exists
# call a function of their own with the operands one by one
OF_FUNCTIONS = {
    "op_associative_scan",
    "op_cond",
    "op_fori_loop",
    "op_map",
    "op_scan",
    "op_switch",
    "op_vectorize",
    "op_vectorized_map",
    "op_while_loop",
}


@pytest.fixture(scope="module", autouse=True)
def device():
    """A device of which PyTorch knows the name; its tensors have no values."""
    backend_registration._setup_privateuseone_for_python_backend(NAME)


def without_values(array):
    native = torch.bfloat16 if array.dtype.name == "bfloat16" else torch.from_numpy(array[..., None]).dtype
    return torch.zeros(array.shape, dtype=native, device=NAME)


def run(function):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        mode.may_turn_const = lambda x: False
        return function()


@functools.cache
def problems(op):
    row = ROWS[op]
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    found = [Problem(getattr(mo, op), call, dtype=dtype, name=op) for call in row.calls[:2]]
    return [problem for problem in found if problem.arrays]


@pytest.mark.rotating
@pytest.mark.parametrize("op", sorted(set(ROWS) - WAITS - OF_THE_HOST))
def test_results_follow_the_operands_and_nothing_waits(op):
    for problem in problems(op):
        outputs = run(lambda: problem.outputs(*map(without_values, problem.arrays)))
        assert {y.device.type for y in outputs} <= {NAME}


@pytest.mark.rotating
@pytest.mark.parametrize("op", sorted(set(ROWS) - WAITS - OF_THE_HOST - OF_FUNCTIONS))
def test_host_values_go_where_a_tensor_is(op):
    for problem in problems(op):
        for k in range(len(problem.arrays) if len(problem.arrays) > 1 else 0):
            mixed = list(problem.arrays)
            outputs = run(lambda: problem.outputs(*mixed[:k], without_values(mixed[k]), *mixed[k + 1 :]))
            assert {y.device.type for y in outputs} <= {NAME}, f"operand {k} is on the device"


@pytest.mark.rotating
@pytest.mark.parametrize("op", sorted(op for op, row in ROWS.items() if row.differentiable and op not in WAITS))
def test_gradients_follow_the_operands_and_nothing_waits(op):
    def gradients(problem):
        xs = list(map(without_values, problem.arrays))
        wanted = [xs[i].requires_grad_() for i in problem.inexact]
        ys = [y.abs().sum() for y in problem.outputs(*xs) if y.requires_grad]
        return torch.autograd.grad(ys, wanted, allow_unused=True)

    for problem in problems(op):
        if problem.inexact:
            found = run(lambda: gradients(problem))
            assert {g.device.type for g in found if g is not None} <= {NAME}


def test_a_look_that_would_wait_is_seen():
    x = np.ones(3, np.float32)
    with pytest.raises(RuntimeError, match="_local_scalar_dense"):
        run(lambda: bool(mo.op_any(without_values(x) > 0)))
    with pytest.raises(RuntimeError, match="two d"):
        run(lambda: torch.add(without_values(x), torch.ones(3)))


def test_mixed_devices_are_an_error_that_names_both():
    for op in ("op_multiply", "op_matmul"):
        with pytest.raises(mo.errors.ArgumentError, match=rf"{op}: .*cpu.*npy:0|{op}: .*npy:0.*cpu"):
            run(lambda op=op: getattr(mo, op)(without_values(np.ones((3, 3), np.float32)), torch.ones(3, 3)))


def test_conversion_keeps_the_device():
    def conversions():
        x = without_values(np.ones(3, np.float32))
        return mo.op_convert_to_tensor(x), mo.op_cast(x, "float64"), mo.op_convert_to_tensor([x[0], 1.0])

    assert [y.device.type for y in run(conversions)] == [NAME] * 3


def test_a_rules_host_values_follow_the_upstream_gradient():
    f = mo.op_custom_gradient(lambda x, y: (x * y, lambda u: (4.0, np.array([1, 2, 3], np.float32))))
    a, b = np.float32(2.0), np.ones(3, np.float32)
    found = run(lambda: mo.vjp(f, without_values(np.asarray(a)), without_values(b))[1](np.ones(3, np.float32)))
    assert [g.device.type for g in found] == [NAME, NAME]


R = mo.random
DRAWS = {
    "uniform": lambda p, seed: R.uniform((3,), p, 3.0, seed=seed),
    "uniform of complex": lambda p, seed: R.uniform((3,), p, 3.0, "complex64", seed=seed),
    "normal": lambda p, seed: R.normal((3,), 1.0, p, seed=seed),
    "normal of complex": lambda p, seed: R.normal((3,), p, 2.0, "complex64", seed=seed),
    "truncated_normal": lambda p, seed: R.truncated_normal((3,), p, seed=seed),
    "exponential": lambda p, seed: R.exponential((3,), p, seed=seed),
    "gumbel": lambda p, seed: R.gumbel((3,), p, seed=seed),
    "laplace": lambda p, seed: R.laplace((3,), 0.0, p, seed=seed),
    "multivariate_normal": lambda p, seed: R.multivariate_normal((2,), p, np.eye(3, dtype="float32"), seed=seed),
    "gamma": lambda p, seed: R.gamma((3,), p, seed=seed),
    "beta": lambda p, seed: R.beta((3,), 1.5, p, seed=seed),
    "poisson": lambda p, seed: R.poisson((3,), p, seed=seed),
    "binomial": lambda p, seed: R.binomial((3,), 4, p, seed=seed),
    "multinomial": lambda p, seed: R.multinomial((2,), 4, p, seed=seed),
    "randint": lambda p, seed: R.randint((3,), mo.op_cast(p, "int32"), 9, seed=seed),
    "categorical": lambda p, seed: R.categorical(mo.op_expand_dims(p, 0), 4, seed=seed),
    "choice": lambda p, seed: R.choice(p, (2,), seed=seed),
    "choice by weights": lambda p, seed: R.choice(3, (2,), p=p, seed=seed),
    "choice without replacement": lambda p, seed: R.choice(p, (2,), False, [1.0, 2.0, 0.5], seed=seed),
    "dropout": lambda p, seed: R.dropout(p, 0.5, seed=seed),
    "shuffle": lambda p, seed: R.shuffle(p, seed=seed),
    "shuffle_along_axis": lambda p, seed: R.shuffle_along_axis(p, seed=seed),
}
OF_LISTS = DRAWS.keys() - {"dropout", "randint", "categorical"}  # of these, a call above makes a tensor


@pytest.mark.parametrize(
    ("name", "where"), [*((name, "parameter") for name in DRAWS), *((name, "key, list") for name in sorted(OF_LISTS))]
)
def test_draws_lie_where_a_parameter_or_else_the_key_lies(name, where):
    def draw(p):
        if where == "parameter":
            return DRAWS[name](without_values(p), None)
        return DRAWS[name](p.tolist(), without_values(np.zeros(2, np.uint32)))

    assert run(lambda: draw(np.array([0.5, 0.25, 0.125], np.float32))).device.type == NAME


@pytest.mark.parametrize("name", ["normal", "uniform of complex", "gamma", "choice"])
def test_a_key_elsewhere_comes_to_a_tensor_here(name):
    p = torch.tensor([0.5, 0.25, 0.125])
    assert run(lambda: DRAWS[name](p, without_values(np.zeros(2, np.uint32)))).device.type == "cpu"
