"""Devices: JAX has as many CPUs as it is asked for, in a process of its own."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import multiop as mo
from multiop.backends.jax.ops import convolution

PROGRAM = """
import itertools, sys
import jax, numpy as np
import multiop as mo
from multiop.testing.cases import rows
from multiop.testing._problem import Problem

there = jax.devices()[2]
x = mo.to_device([1.0, 2.0], "cpu:2")
assert mo.device(x) == "cpu:2" and x.devices() == {there}
assert mo.device(mo.to_device(x, "cpu")) == "cpu" and mo.device([1.0]) == "cpu"
assert mo.device(mo.to_device(x, there)) == "cpu:2"
assert mo.device(mo.grad(lambda x: mo.op_sum(mo.to_device(x, "cpu") ** 2))(x)) == "cpu:2"
assert mo.device(mo.op_convert_to_tensor(x)) == mo.device(mo.op_cast(x, "int32")) == "cpu:2"
assert mo.device(mo.op_take([[1.0, 2.0]], mo.to_device([0], "cpu:2"))) == "cpu:2"
try:
    mo.op_add(x, mo.to_device([1.0, 2.0], "cpu:1"))
except mo.errors.ArgumentError as error:
    assert "[2]" in str(error) and "[1]" in str(error), error
else:
    raise AssertionError("devices were mixed")
mesh = jax.sharding.Mesh(np.array(jax.devices()), "i")
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
spread = mo.to_device(np.arange(8.0, dtype="float32"), sharding)
assert mo.device(spread) == sharding and mo.device(mo.op_exp(spread)) == sharding

left, of_the_host = set(), {"op_convert_to_numpy", "op_is_tensor", "op_ndim", "op_shape", "op_size", "op_meshgrid"}
of_one_operand = {"op_broadcast_arrays", "op_cond"}  # each result is of one, and lies where that does
for op, row in itertools.islice(rows().items(), 0, None, int(sys.argv[1])):
    if op in of_the_host | of_one_operand:
        continue
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    for call in row.calls[:1]:
        problem = Problem(getattr(mo, op), call, dtype=dtype, name=op)
        for k in range(op == "op_switch", len(problem.arrays)):  # an index with a value is a number
            mixed = list(problem.arrays)
            mixed[k] = mo.to_device(mixed[k], "cpu:2")
            if any(mo.device(y) != "cpu:2" for y in problem.outputs(*mixed)):
                left.add((op, k))
print("left:", sorted(left))
"""


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.tier("full"))], ids=["every sixth", "every op"])
def test_results_follow_the_operands(step):
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "4", "JAX_PLATFORMS": "cpu", "MULTIOP_BACKEND": "jax"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(step)], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    (line,) = [line for line in run.stdout.splitlines() if line.startswith("left:")]
    assert line == "left: []"


CONVOLUTIONS = [
    case
    for case in itertools.product((1, 2, 3), ("channels_last", "channels_first"), ("same", "valid"), (1, 2), (1, 2))
    if 1 in case[3:]
]


@pytest.mark.parametrize(("n", "layout", "padding", "stride", "rate"), CONVOLUTIONS)
def test_integers_convolved_entry_by_entry(n, layout, padding, stride, rate, monkeypatch):
    rng = np.random.default_rng(0)

    def drawn(*shape):
        return rng.integers(-100, 100, shape).astype(np.int8)

    space, window = (5, 6, 4)[:n], (3, 2, 2)[:n]
    x = drawn(2, *space, 4) if layout == "channels_last" else drawn(2, 4, *space)
    grouped, turned = drawn(*window, 2, 6), drawn(*window, 6, 4)

    def both():
        return [
            mo.op_conv(x, grouped, stride, padding, layout, rate),
            mo.op_conv_transpose(x, turned, stride, padding, None, layout, rate),
        ]

    expected = both()
    monkeypatch.setattr(convolution, "is_cpu_default", lambda: False)
    for found, wanted in zip(both(), expected, strict=True):
        assert found.dtype == wanted.dtype == np.int8
        np.testing.assert_array_equal(found, wanted)


def test_an_integer_is_divided_by_a_number_where_the_default_device_is_no_cpu(monkeypatch):
    """The number is an array of NumPy, which is on no device of JAX."""
    monkeypatch.setattr("multiop.backends.jax.devices.is_cpu_default", lambda: False)
    with mo.use_backend("jax"):
        x = mo.op_convert_to_tensor([1, 4, 9])
        assert mo.op_floor_divide(x, 2).tolist() == [0, 2, 4]
        assert mo.op_mod(x, 2).tolist() == [1, 0, 1]
        assert mo.op_power(x, 2).tolist() == [1, 16, 81]
        with pytest.raises(mo.errors.ArgumentError, match="divided by 0"):
            mo.op_floor_divide(x, 0)
