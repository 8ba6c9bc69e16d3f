"""Measure training steps of ported models, loss and gradients, against the original in its own framework.

    python benchmarks/bench_ported.py --backends torch

ResNet-18 (8 images of 64 x 64) and a layer of BERT (8 sentences of 64 tokens, 256 features) of PyTorch, a residual
network of Keras on TensorFlow. The original is differentiated and compiled by its framework, the port by `multiop`;
on PyTorch, the memory of an eager step at its peak, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optree
from bench_training import LIMITS, MEMORY, TOLERANCE, peak
from harness import Bench, run

IMAGES, SIZE = 8, 64
SENTENCES, TOKENS, WIDTH, HEADS = 8, 64, 256, 4


def torch_models() -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return ResNet-18 and a layer of BERT, each with the shape of its input."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width: int, wider: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(width, wider, 3, stride, 1, bias=False), nn.BatchNorm2d(wider)
            self.conv2, self.bn2 = nn.Conv2d(wider, wider, 3, 1, 1, bias=False), nn.BatchNorm2d(wider)
            self.downsample = nn.Identity()
            if stride != 1:
                self.downsample = nn.Sequential(nn.Conv2d(width, wider, 1, stride, bias=False), nn.BatchNorm2d(wider))

        def forward(self, x: Any) -> Any:
            h = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(h)) + self.downsample(x))

    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
    blocks = [Block(*size) for size in [*sizes, (512, 512, 1)]]
    resnet = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return {
        "ResNet-18": (resnet, (IMAGES, 3, SIZE, SIZE)),
        "layer of BERT": (bert_layer(WIDTH, HEADS), (SENTENCES, TOKENS, WIDTH)),
    }


def bert_layer(width: int, heads: int) -> Any:
    """Return a layer of BERT."""
    from torch import nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

        def forward(self, x: Any) -> Any:
            parts = [
                layer(x).unflatten(-1, (heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
            ]
            seen = nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(-2)
            x = self.norm1(self.output(seen) + x)
            return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)

    return Layer()


def torch_step(model: Any, compiled: bool) -> Callable[[Any], Any]:
    import torch

    model.train()
    run_model = torch.compile(model) if compiled else model
    parameters = list(model.parameters())

    def step(x: Any) -> Any:
        y = (run_model(x) ** 2).mean()
        return y.detach(), torch.autograd.grad(y, parameters)

    return step


def tensorflow_models() -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return a residual network of Keras, with the shape of its input."""
    import keras
    from keras import layers

    def normalized(x: Any, width: int, size: int, stride: int = 1) -> Any:
        return layers.BatchNormalization()(layers.Conv2D(width, size, stride, "same", use_bias=False)(x))

    x = inputs = keras.Input((SIZE, SIZE, 3))
    x = layers.MaxPooling2D(2)(layers.ReLU()(normalized(x, 32, 3, 2)))
    for width, stride in ((32, 1), (64, 2), (128, 2)):
        h = normalized(layers.ReLU()(normalized(x, width, 3, stride)), width, 3)
        x = layers.ReLU()(h + (x if stride == 1 else normalized(x, width, 1, stride)))
    model = keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))
    return {"residual network": (model, (IMAGES, SIZE, SIZE, 3))}


def tensorflow_step(model: Any, compiled: bool) -> Callable[[Any], Any]:
    import tensorflow as tf

    variables = model.trainable_variables

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.reduce_mean(model(x, training=True) ** 2)
        return y, tape.gradient(y, variables)

    return tf.function(step, autograph=False) if compiled else step


NATIVE = {"torch": (torch_models, torch_step), "tensorflow": (tensorflow_models, tensorflow_step)}


def multiop_step(port: Any, compiled: bool, device: str = "cpu") -> Callable[[Any], Any]:
    import multiop

    params, state = optree.tree_map(lambda x: multiop.to_device(x, device), (port.params, port.state))

    def loss(params: Any, state: Any, x: Any) -> Any:
        y, state = port.function(params, state, x, training=True)
        return multiop.op_mean(y**2), state

    derivative = multiop.value_and_grad(loss, has_aux=True)
    derivative = multiop.jit(derivative) if compiled else derivative

    def step(x: Any) -> Any:
        (y, _), gradients = derivative(params, state, x)
        return y, gradients

    return step


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    bench.load()
    if bench.backend not in NATIVE:  # JAX's models are functions: their ports are what bench_training measures
        return
    from multiop import porting

    models, native_step = NATIVE[bench.backend]
    for name, (model, shape) in models().items():
        x = bench.tensor(*shape)
        port = porting.trace(model, np.asarray(x) if bench.backend == "tensorflow" else x, training=True)
        for mode, limit in LIMITS.items():
            steps = {
                "native": native_step(model, mode == "compiled"),
                "multiop": multiop_step(port, mode == "compiled"),
            }
            contenders = {who: partial(loss_of, step, x) for who, step in steps.items()}
            bench.compare(f"{name}, {mode}", contenders, limit, TOLERANCE)
            if bench.backend == "torch" and mode == "eager":
                held = {who: peak(call) for who, call in contenders.items()}
                bench.note(f"{name}, {mode}, peak memory", held["multiop"] / held["native"], MEMORY, "x", bytes=held)


def loss_of(step: Callable[[Any], Any], x: Any) -> Any:
    """Return the loss alone: in float32, a relu within rounding of 0 changes some gradients by percents."""
    return step(x)[0]


if __name__ == "__main__":
    run(["ported"], __doc__)
