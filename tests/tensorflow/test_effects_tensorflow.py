"""What multiop needs of TensorFlow's own functions and registries is given back."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import tensorflow as tf
from tensorflow.python.eager import backprop, execute, forwardprop
from tensorflow.python.framework import ops
from tensorflow.python.ops import gradients_util, resource_variable_ops

import multiop


@multiop.op_custom_gradient
def square(x):
    return x * x, lambda upstream: 2 * x * upstream


def loss(x):
    return multiop.op_sum(square(multiop.op_softsign(x)) + multiop.op_prod(x))


def names():
    gc.collect()
    return [name for name in ops.gradient_registry.list() if name.startswith("Multiop")]


def traced(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.function(loss, autograph=False)(x)
    return tape.gradient(y, x)


def test_names_of_gradients_go_with_their_graphs(young_heap):
    x = tf.constant([1.0, 2.0])
    traced(x)
    before = names()
    for _ in range(10):
        traced(x)
    assert len(names()) == len(before)


def test_a_graph_that_is_kept_keeps_its_gradients(young_heap):
    x = tf.constant([1.0, 2.0])
    kept = tf.function(loss, autograph=False)
    kept.get_concrete_function(x)
    assert names()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = kept(x)
    assert tf.reduce_all(tape.gradient(y, x) == traced(x))


def standing():
    owners = [
        (resource_variable_ops, "variable_accessed"),
        (execute, "execute"),
        (backprop.GradientTape, "_push_tape"),
        (forwardprop.ForwardAccumulator, "_push_accumulator"),
        (gradients_util, "PossibleTapeGradientTypes"),
    ]
    return [getattr(owner, name) for owner, name in owners]


def test_functions_of_tensorflow_are_put_back():
    x, before, inside = tf.constant([1.0, 2.0]), standing(), []

    def seen(x):
        inside.append(standing())
        return loss(x)

    multiop.grad(multiop.op_custom_gradient(lambda x: (seen(x), lambda upstream: upstream * x)))(x)
    assert standing() == before
    assert all(now != then for now, then in zip(inside[0], before, strict=True))
    assert all(of.__module__.startswith("tensorflow.") for of in before)


def test_what_another_has_replaced_meanwhile_stays(monkeypatch):
    def others(variable):
        usual(variable)

    usual = resource_variable_ops.variable_accessed

    @multiop.op_custom_gradient
    def replacing(x):
        monkeypatch.setattr(resource_variable_ops, "variable_accessed", others)
        return x * x, lambda upstream: upstream

    with tf.GradientTape() as tape:
        x = tf.constant(2.0)
        tape.watch(x)
        replacing(x)
    assert resource_variable_ops.variable_accessed is others
    monkeypatch.undo()
    resource_variable_ops.variable_accessed = usual


def test_the_level_of_logs_is_not_left_in_the_environment():
    program = "import os, multiop; multiop.set_backend('tensorflow'); multiop.op_exp(0.0); print(sorted(os.environ))"
    environment = {name: text for name, text in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert "PATH" in done.stdout
    assert "TF_CPP_MIN_LOG_LEVEL" not in done.stdout
