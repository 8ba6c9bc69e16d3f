"""TensorFlow's named models, with random weights and small images.

Four images, with two by two entries or more in the last layers. A normalization over two entries, as of two images
with one each in training mode, has next to no gradient: what is left is rounding.
"""

from __future__ import annotations

import inspect

import keras
import numpy as np
from keras.src.applications import convnext, densenet, resnet

L = keras.layers


def application(name, size=64, **options):
    """Return what makes a model of `keras.applications`, and its input."""
    original = getattr(keras.applications, name)

    def make():
        model = original(weights=None, input_shape=(size, size, 3), classes=10, **options)
        return model, np.random.default_rng(0).normal(size=(4, size, size, 3))

    make.original = original
    return make


def recurrent():
    x = inputs = keras.Input((6,), dtype="int64")
    x = L.Embedding(20, 8, name="embedding")(x)
    y = L.Bidirectional(L.LSTM(8, return_sequences=True), name="encoder")(x)
    y = L.GRU(8, return_sequences=True, name="decoder")(y)
    y = L.LayerNormalization(name="norm")(y + L.MultiHeadAttention(2, 4, name="attention")(y, x))
    model = keras.Model(inputs, L.Dense(4, name="head")(L.GlobalAveragePooling1D()(y)), name="recurrent")
    return model, np.random.default_rng(0).integers(0, 20, (2, 6))


def small(original, *args, size=64, **options):
    """Return what makes a model of `keras.applications` with few blocks and channels, and its input."""

    def make():
        model = original(*args, weights=None, input_shape=(size, size, 3), classes=10, **options)
        return model, np.random.default_rng(0).normal(size=(4, size, size, 3))

    make.original = original
    return make


def stacked(stack):
    """Return a function that puts three stacks of two residual blocks on each other."""

    def layers(x):
        for number, filters in enumerate((8, 16, 16)):
            x = stack(x, filters, 2, name=f"conv{number + 2}")
        return x

    return layers


def unet():
    """An encoder and a decoder of images, with connections between them."""
    x = inputs = keras.Input((32, 32, 3))
    kept = []
    for number, filters in enumerate((8, 16)):
        x = L.Conv2D(filters, 3, padding="same", activation="relu", name=f"down{number}")(x)
        kept.append(x)
        x = L.MaxPooling2D()(x)
    x = L.SeparableConv2D(32, 3, padding="same", activation="swish", name="middle")(x)
    for number, filters in enumerate((16, 8)):
        x = L.Conv2DTranspose(filters, 2, strides=2, name=f"up{number}")(x)
        x = L.Concatenate()([x, kept.pop()])
        x = L.GroupNormalization(4, name=f"norm{number}")(x)
    model = keras.Model(inputs, L.Conv2D(2, 1, activation="sigmoid", name="mask")(x), name="unet")
    return model, np.random.default_rng(0).normal(size=(2, 32, 32, 3))


class TransformerBlock(L.Layer):
    """Attention and two dense layers, each behind a normalization."""

    def __init__(self, **options):
        super().__init__(**options)
        self.norm1, self.norm2 = L.LayerNormalization(name="norm1"), L.LayerNormalization(name="norm2")
        self.attention = L.MultiHeadAttention(4, 8, name="attention")
        self.dense1, self.dense2 = L.Dense(64, activation="gelu", name="dense1"), L.Dense(32, name="dense2")

    def build(self, shape):
        self.norm1.build(shape)
        self.attention.build(shape, shape)
        self.norm2.build(shape)
        self.dense1.build(shape)
        self.dense2.build((*shape[:-1], 64))

    def call(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, use_causal_mask=True)
        return x + self.dense2(self.dense1(self.norm2(x)))


def transformer():
    x = inputs = keras.Input((6,), dtype="int64")
    x = L.Embedding(20, 32, name="embedding")(x)
    for number in range(3):
        x = TransformerBlock(name=f"block_{number}")(x)
    model = keras.Model(inputs, L.Dense(20, name="head")(L.LayerNormalization(name="norm")(x)), name="transformer")
    return model, np.random.default_rng(0).integers(0, 20, (2, 6))


def text_convolutions():
    model = keras.Sequential(
        [
            keras.Input((12,), dtype="int64"),
            L.Embedding(20, 8, name="embedding"),
            L.Conv1D(16, 3, padding="causal", dilation_rate=2, activation="elu", name="conv1"),
            L.BatchNormalization(name="norm"),
            L.DepthwiseConv1D(3, padding="same", name="conv2"),
            L.PReLU(name="activation"),
            L.GlobalMaxPooling1D(),
            L.Dense(4, activation="softmax", name="head"),
        ],
        name="text_convolutions",
    )
    return model, np.random.default_rng(0).integers(0, 20, (4, 12))


def mixture():
    """Dense layers of which a gate chooses, by Einstein sums."""
    x = inputs = keras.Input((8,))
    experts = L.EinsumDense("bi,iek->bek", (4, 8), bias_axes="ek", activation="tanh", name="experts")(x)
    gate = L.Dense(4, activation="softmax", name="gate")(x)
    y = L.Dot((1, 1))([gate, experts])
    model = keras.Model(inputs, L.UnitNormalization()(L.Dense(3, name="head")(y)), name="mixture")
    return model, np.random.default_rng(0).normal(size=(4, 8))


MODELS = {
    "recurrent network with attention": recurrent,
    "transformer": transformer,
    "U-Net": unet,
    "convolutions of text": text_convolutions,
    "mixture of experts": mixture,
    "ResNet": small(resnet.ResNet, stacked(resnet.stack_residual_blocks_v1), False, True, name="resnet"),
    "ResNetV2": small(resnet.ResNet, stacked(resnet.stack_residual_blocks_v2), True, True, name="resnet_v2"),
    "DenseNet": small(densenet.DenseNet, [2, 3, 3, 2]),
    "ConvNeXt": small(convnext.ConvNeXt, [1, 2, 2, 1], [8, 16, 16, 16]),
    "MobileNet": application("MobileNet", alpha=0.25),
    "MobileNetV2": application("MobileNetV2", alpha=0.35),
    "MobileNetV3Small": application("MobileNetV3Small", alpha=0.75),
    "EfficientNetV2B0": application("EfficientNetV2B0"),
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


def written_in(name):
    """Return the file in which a model is defined."""
    make = MODELS[name]
    return [inspect.getsourcefile(getattr(make, "original", make))]
