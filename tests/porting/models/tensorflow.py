"""TensorFlow's named models, with random weights and small images.

Four images, with two by two entries or more in the last layers. A normalization over two entries, as of two images
with one each in training mode, has next to no gradient: what is left is rounding.
"""

from __future__ import annotations

import keras
import numpy as np

L = keras.layers


def application(name, size=64, **options):
    """Return what makes a model of `keras.applications`, and its input."""

    def make():
        model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10, **options)
        return model, np.random.default_rng(0).normal(size=(4, size, size, 3))

    return make


def recurrent():
    x = inputs = keras.Input((6,), dtype="int64")
    x = L.Embedding(20, 8, name="embedding")(x)
    y = L.Bidirectional(L.LSTM(8, return_sequences=True), name="encoder")(x)
    y = L.GRU(8, return_sequences=True, name="decoder")(y)
    y = L.LayerNormalization(name="norm")(y + L.MultiHeadAttention(2, 4, name="attention")(y, x))
    model = keras.Model(inputs, L.Dense(4, name="head")(L.GlobalAveragePooling1D()(y)), name="recurrent")
    return model, np.random.default_rng(0).integers(0, 20, (2, 6))


MODELS = {
    "recurrent network with attention": recurrent,
    "MobileNetV3Small": application("MobileNetV3Small"),
    "ResNet50V2": application("ResNet50V2"),
    "EfficientNetV2B0": application("EfficientNetV2B0"),
    "ConvNeXtTiny": application("ConvNeXtTiny"),
    "DenseNet121": application("DenseNet121"),
    "InceptionV3": application("InceptionV3", 107),
    "NASNetMobile": application("NASNetMobile"),
}


def made(name, dtype):
    """Return a model without dropout, whose layers all matter, and its inputs."""
    keras.utils.set_random_seed(0)
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)  # Keras keeps that of the first layer
    model, x = MODELS[name]()
    for layer in model._flatten_layers():
        if getattr(layer, "rate", None):
            layer.rate = 0.0
    rng = np.random.default_rng(1)
    for variable in model.variables:
        if len(variable.shape) == 1 and "seed" not in variable.path:
            is_scale = variable.path.endswith(("gamma", "variance"))
            variable.assign(
                rng.uniform(0.7, 1.3, variable.shape) if is_scale else 0.1 * rng.normal(size=variable.shape)
            )
    return model, (x.astype(dtype) if x.dtype.kind == "f" else x,)
