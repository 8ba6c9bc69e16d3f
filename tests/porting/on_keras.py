"""Keras models on TensorFlow, compared: `test_trace_tensorflow.py` runs this file in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")  # before TensorFlow
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
from test_native_compare import check, filled, merged

import multiop
from multiop import errors, ops, porting


@pytest.fixture(autouse=True)
def in_float32_on_jax():
    """Run beside another file, which asks Keras for float64."""
    width, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    with multiop.use_backend("jax"):
        yield
    keras.config.set_floatx(width)
    keras.config.set_dtype_policy(policy)


def test_a_model_is_compared_layer_by_layer():
    layers = keras.layers
    inputs = keras.Input((6, 6, 3), dtype="float64")
    options = {"dtype": "float64"}
    x = layers.Conv2D(4, 3, strides=2, padding="same", name="conv", **options)(inputs)
    x = layers.BatchNormalization(name="norm", **options)(x)
    x = keras.ops.mean(keras.ops.tanh(x), (1, 2))
    model = keras.Model(inputs, layers.Dense(5, name="dense", **options)(x))
    weights = filled(porting.read_weights(model))
    porting.write_weights(model, weights)
    check(model, merged(weights), ("conv", "norm", "dense"))


def test_keras_on_another_backend_is_refused(monkeypatch):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    monkeypatch.setattr(keras.config, "backend", lambda: "numpy")
    with pytest.raises(errors.ArgumentTypeError, match="Keras runs on numpy"):
        porting.compare(model, lambda x: x, [np.ones((2, 3), "float32")])


def test_a_bridged_model_is_a_function_of_its_parameters():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "gelu"), keras.layers.Dense(2)])
    bridged, x = porting.bridge(model), np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    variables = model.trainable_variables
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(model(x) ** 2)
    expected = tape.gradient(total, variables)
    with multiop.use_backend("torch"):
        gradient = multiop.grad(lambda params: ops.sum(bridged(params, x) ** 2))(bridged.params)
        for variable, other in zip(variables, expected, strict=True):
            computed = multiop.op_convert_to_numpy(gradient[variable.path])
            np.testing.assert_allclose(computed, other.numpy(), rtol=1e-5, atol=1e-6)


def test_calls_of_a_shared_layer_are_told_apart_though_keras_has_another_order():
    shared, other = (keras.layers.Dense(3, "tanh", name=name, dtype="float64") for name in ("shared", "other"))
    first, second = (keras.Input((3,), dtype="float64") for _ in range(2))
    model = keras.Model([first, second], shared(other(shared(first))) - shared(second))
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3))
    port = porting.trace(model, tf.constant(x), tf.constant(y), taps=True)
    for inputs in ([x, y], [[x, y]]):
        comparison = porting.compare(model, port, inputs)
        assert comparison.agree, comparison
        assert {check.layer for check in comparison.checks} >= {"shared", "shared#2", "shared#3", "other"}


def test_inputs_and_outputs_in_dicts():
    a, b = (keras.Input((3,), name=name, dtype="float64") for name in "ab")
    hidden = keras.layers.Dense(4, "tanh", name="dense", dtype="float64")(a) * keras.ops.sum(b, 1, keepdims=True)
    model = keras.Model({"b": b, "a": a}, {"z": hidden, "mean": keras.ops.mean(hidden, 1)})
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3))
    port = porting.trace(model, {"a": tf.constant(x), "b": tf.constant(y)}, taps=True)
    comparison = porting.compare(model, port, [{"b": y, "a": x}])
    assert comparison.agree, comparison
    assert {check.layer for check in comparison.checks} >= {"dense", "output.0", "output.1"}


class Counted(tf.Module):
    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(np.linspace(-1, 1, 9).reshape(3, 3))
        self.calls = tf.Variable(0.0, dtype="float64", trainable=False)

    def __call__(self, x):
        self.calls.assign_add(1.0)
        return tf.tanh(x @ self.kernel) * self.calls


def test_a_module_and_a_function_of_tensorflow_are_compared_without_layers():
    module, x = Counted(), np.random.default_rng(0).normal(size=(2, 3))
    function = tf.function(lambda x: tf.tanh(x @ module.kernel))
    for model in (module, function, function.get_concrete_function(tf.TensorSpec((2, 3), "float64"))):
        port = porting.trace(model, tf.constant(x))
        comparison = porting.compare(model, port, [x])
        assert comparison.agree and "parameter gradient" in {check.quantity for check in comparison.checks}
        port.params = {name: leaf * 1.01 for name, leaf in port.params.items()}
        assert porting.compare(model, port, [x]).differences
    assert float(module.calls) == 0.0
