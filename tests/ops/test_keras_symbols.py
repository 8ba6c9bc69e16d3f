"""Ops take Keras's symbolic tensors: shapes, dtypes, values and gradients within functional models."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop import errors, ops

HERE = Path(__file__).parent


@pytest.mark.tier("full")
def test_within_keras_models(backend):
    """Keras has one backend for each process."""
    pytest.importorskip("keras")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "on_keras_symbols.py"],
        env=os.environ | {"KERAS_BACKEND": backend, "MULTIOP_BACKEND": backend},
        capture_output=True,
        text=True,
        cwd=HERE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]


class LeakyStep(multiop.Operation):
    def __init__(self, slope, *, name=None):
        super().__init__(name=name)
        self.slope = slope

    def call(self, x, shift=0.0):
        return ops.where(x > shift, 1.0, self.slope * x)


def test_an_operation_of_tensors(backend):
    step = LeakyStep(0.5)
    assert (step.name, LeakyStep(0.5, name="mine").name, repr(step)) == (
        "leaky_step",
        "mine",
        "<Operation name=leaky_step>",
    )
    x = ops.convert_to_tensor([-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(ops.convert_to_numpy(step(x)), [-0.5, 1.0, 1.0])
    np.testing.assert_array_equal(ops.convert_to_numpy(step(x, shift=1.0)), [-0.5, 0.25, 1.0])
    np.testing.assert_array_equal(ops.convert_to_numpy(multiop.jit(step)(x)), [-0.5, 1.0, 1.0])
    np.testing.assert_array_equal(ops.convert_to_numpy(multiop.grad(lambda x: ops.sum(step(x)))(x)), [0.5, 0, 0])


@pytest.mark.parametrize("name", [3, "a/b"])
@pytest.mark.parametrize("named", [multiop.Operation, multiop.name_scope])
def test_a_name_is_a_string_without_a_slash(named, name):
    with pytest.raises(errors.ArgumentError, match="name must be a string without a slash"):
        named(name)


def test_an_operation_defines_call(backend):
    with pytest.raises(NotImplementedError, match="Operation defines no call"):
        multiop.Operation()(1.0)


def test_a_name_scope_changes_no_value(backend):
    def f(x):
        with ops.name_scope("outer"), ops.name_scope(name="inner"):
            return ops.sin(x)

    for g in (f, multiop.jit(f), multiop.grad(lambda x: -f(x + np.float32(np.pi / 2)))):
        np.testing.assert_allclose(ops.convert_to_numpy(g(ops.convert_to_tensor(0.5))), np.sin(0.5), rtol=1e-6)
    with pytest.raises(ZeroDivisionError), ops.name_scope("outer"):
        raise ZeroDivisionError


def test_a_name_scope_names_what_is_computed(backend):
    """Each framework shows the name in its own way: the text of a program, the names of a graph, a profile."""

    def f(x):
        with multiop.name_scope("inner"):
            return ops.sin(x)

    x = ops.convert_to_tensor([0.5])
    if backend == "jax":
        import jax

        assert "inner" in jax.jit(f).lower(x).as_text(debug_info=True)
    elif backend == "tensorflow":
        import tensorflow as tf

        names = [op.name for op in tf.function(f, autograph=False).get_concrete_function(x).graph.get_operations()]
        assert any(name.startswith("inner/") for name in names)
    elif backend == "torch":
        import torch

        with torch.profiler.profile() as profile:
            f(x)
        assert "inner" in [event.key for event in profile.key_averages()]


@pytest.mark.cross
def test_a_symbolic_tensor_of_another_backend_is_refused(backend, keras):
    if backend == "numpy":
        pytest.skip("Keras runs on this backend in this process")
    told = f"op_relu: .*Keras runs on numpy and multiop on {backend}"
    with pytest.raises(errors.ForeignTensorError, match=told):
        ops.relu(keras.KerasTensor((None, 3)))
    assert ops.shape(keras.KerasTensor((None, 3))) == (None, 3)
