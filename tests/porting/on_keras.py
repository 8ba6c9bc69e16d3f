"""Keras models on TensorFlow: `test_native_compare.py` runs this file in a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")  # before TensorFlow
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
from test_native_compare import check, filled, merged

import multiop
from multiop import errors, ops, porting


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
