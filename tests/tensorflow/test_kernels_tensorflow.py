"""Eagerly on the CPU, TensorFlow's own kernels run where all is finite, and formulas where it is not."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop as mo
from multiop.backends.tensorflow import _internals

KERNELS = {
    "relu": (mo.op_relu, ["Relu"]),
    "clip": (lambda x: mo.op_clip(x, -1.0, 1.0), ["Maximum", "Minimum"]),
    "maximum": (lambda x: mo.op_maximum(x, 0.5), ["Maximum"]),
    "minimum": (lambda x: mo.op_minimum(0.5, x), ["Minimum"]),
}


def operations(f, x):
    found = []
    with tf.GradientTape() as tape:
        tape.watch(x)
        with _internals.operations_reported_to(lambda op, *_: found.append(op)):
            f(x)
    return [op for op in found if op not in ("Identity", "Const", "_EagerConst")]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("name", KERNELS)
def test_a_look_chooses(name, dtype):
    f, kernels = KERNELS[name]
    values = np.array([1.0, 2.0, 0.25, 3.0])
    assert operations(f, tf.constant(values, dtype)) == kernels
    values[2] = np.nan
    assert operations(f, tf.constant(values, dtype)) != kernels


def test_a_tie_is_no_case_for_the_kernel():
    assert operations(lambda x: mo.op_maximum(x, 0.5), tf.constant([1.0, 0.5])) != ["Maximum"]


GRAPHS = {
    "relu": (mo.op_relu, ["Relu"]),
    "maximum": (lambda x: mo.op_maximum(x, 0.5), ["Maximum"]),
    "clip": (lambda x: mo.op_clip(x, -1.0, 1.0), ["Maximum", "Minimum"]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_has_the_kernels_alone(name):
    f, kernels = GRAPHS[name]
    graph = tf.function(f, autograph=False).get_concrete_function(tf.TensorSpec((None, 3))).graph
    left_out = ("Placeholder", "Identity", "IdentityN", "StopGradient", "Const")
    assert [op.type for op in graph.get_operations() if op.type not in left_out] == kernels
