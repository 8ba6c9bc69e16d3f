"""Eagerly on the CPU, TensorFlow's own kernels run where a look finds that they are right, and formulas elsewhere."""

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
    """Return the operations of `f` and those of its gradient."""
    forward, backward = [], []
    with tf.GradientTape() as tape:
        tape.watch(x)
        with _internals.operations_reported_to(lambda op, *_: forward.append(op)):
            y = f(x)
    upstream = tf.ones_like(y)
    with _internals.operations_reported_to(lambda op, *_: backward.append(op)):
        tape.gradient(y, x, upstream)
    return [[op for op in found if op not in ("Identity", "Const", "_EagerConst")] for found in (forward, backward)]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("name", KERNELS)
def test_a_look_chooses(name, dtype):
    f, kernels = KERNELS[name]
    values = np.array([1.0, 2.0, 0.25, 3.0])
    forward, backward = operations(f, tf.constant(values, dtype))
    assert forward == kernels
    values[2] = np.nan
    assert operations(f, tf.constant(values, dtype))[1] != backward


def test_a_tie_is_no_case_for_the_kernel():
    one, tie = (operations(lambda x: mo.op_maximum(x, 0.5), tf.constant([1.0, x])) for x in (0.25, 0.5))
    assert one[1] != tie[1]


REVERSE = {
    "relu": (mo.op_relu, ["ReluGrad"]),
    "relu6": (mo.op_relu6, ["Relu6Grad"]),
    "leaky_relu": (lambda x: mo.op_leaky_relu(x, 0.2), ["LeakyReluGrad"]),
    "softsign": (mo.op_softsign, ["SoftsignGrad"]),
}


@pytest.mark.parametrize("name", REVERSE)
def test_the_gradient_is_a_kernel(name):
    f, kernels = REVERSE[name]
    assert operations(f, tf.constant([-1.0, 0.5, 2.0]))[1] == kernels


@pytest.mark.parametrize("way", ["eager", "graph"])
@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_an_infinite_upstream_does_not_pass_where_the_slope_is_zero(name, way):
    f = lambda x: mo.op_log(REVERSE[name][0](x))
    f = tf.function(f, autograph=False) if way == "graph" else f
    x = tf.constant([-1.0, 0.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 0.0, 0.5])


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
