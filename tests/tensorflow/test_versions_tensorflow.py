"""A TensorFlow that lacks parts: ops and transforms work, custom gradients and the tape are refused."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

# one process, since TensorFlow takes seconds to import: each line is a check's name, then numbers
PROGRAM = """
import sys, warnings
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python import pywrap_tfe
from tensorflow.python.autograph.core import config
parts = [(record, "could_possibly_record"), (pywrap_tfe, "TFE_Py_PackJVPs"), (config, "DoNotConvert")]
held = [(module, name, getattr(module, name)) for module, name in parts]
for module, name in parts:
    delattr(module, name)
import multiop
from multiop import errors, ops

def tell(name, x):
    print(name, *map(float, ops.convert_to_numpy(x).ravel()))

def refused(name, call):
    try:
        call()
    except errors.UnsupportedError as error:
        print(name, int("tensorflow>=2.18,<2.22" in str(error)))

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x = ops.convert_to_tensor([1.0, 2.0])
    ops.exp(x)
for part in held:  # TensorFlow itself calls them
    setattr(*part)
print("warnings", sum("tensorflow>=2.18,<2.22" in str(one.message) for one in caught))

def f(x):
    return ops.sum(x**3)

def branches(x):
    if ops.sum(x) > 0:
        y = x * 2.0
    else:
        y = x * 3.0
    return y

tell("op", ops.softmax(x))
tell("grad", multiop.grad(f)(x))
tell("second", multiop.grad(lambda x: ops.sum(multiop.grad(f)(x)))(x))
tell("jit", multiop.jit(multiop.grad(f))(x))
tell("function", tf.function(multiop.grad(f))(x))
tell("autograph", tf.function(lambda x: ops.softmax(branches(x)))(-x))
tell("jvp", multiop.jvp(f, (x,), (x,))[1])
tell("hvp", multiop.hvp(f, (x,), (x,)))
tell("vmap", multiop.vmap(multiop.grad(lambda x: x**3))(x))
tell("jacrev", multiop.jacrev(lambda x: x**3)(x))
tell("checkpoint", multiop.grad(lambda x: multiop.checkpoint(f)(x))(x))
tell("stop", multiop.grad(lambda x: ops.sum(x * multiop.op_stop_gradient(x)))(x))
tell("cond", multiop.grad(lambda x: multiop.op_cond(True, lambda: f(x), lambda: ops.sum(x)))(x))
refused("gradients of a function", lambda: multiop.gradients(f, [x]))
refused("custom", lambda: multiop.op_custom_gradient(lambda x: (x, lambda u: u))(x))
refused("custom in a function", lambda: tf.function(multiop.op_custom_gradient(lambda x: (x, lambda u: u)))(x))
refused("tape", lambda: multiop.GradientTape().__enter__())
refused("gradients of tensors", lambda: multiop.gradients([x * x], [x]))
"""


def softmax(x):
    return np.exp(x) / np.sum(np.exp(x))


X = np.array([1.0, 2.0])
EXPECTED = {
    "warnings": [1],
    "op": softmax(X),
    "grad": 3 * X**2,
    "second": 6 * X,
    "jit": 3 * X**2,
    "function": 3 * X**2,
    "autograph": softmax(-3 * X),
    "jvp": [27],
    "hvp": 6 * X**2,
    "vmap": 3 * X**2,
    "jacrev": np.diag(3 * X**2).ravel(),
    "checkpoint": 3 * X**2,
    "stop": X,
    "cond": 3 * X**2,
    "gradients of a function": [1],
    "custom": [1],
    "custom in a function": [1],
    "tape": [1],
    "gradients of tensors": [1],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    environment = os.environ | {"MULTIOP_BACKEND": "tensorflow"}
    path = tmp_path_factory.mktemp("program") / "program.py"  # AutoGraph reads the source of what it rewrites
    path.write_text(PROGRAM)
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("check", EXPECTED)
def test_parts_that_are_missing(found, check):
    rows = [line.removeprefix(check + " ").split() for line in found if line.startswith(check + " ")]
    numbers = [row for row in rows if all(entry[0] in "-0123456789" for entry in row)]
    assert len(numbers) == 1, rows
    np.testing.assert_allclose([float(x) for x in numbers[0]], EXPECTED[check], rtol=1e-6)
