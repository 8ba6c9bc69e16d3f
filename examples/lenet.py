"""Train a small convolutional network of LeNet's form on handwritten digits: the same curve on every backend.

Two convolutions with max-pooling, then two dense layers, on the 8 x 8 images that scikit-learn ships. Weights come from
NumPy, so the only thing that differs between two backends is the backend.

    MULTIOP_BACKEND=jax python examples/lenet.py --dtype float64
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs, integers, normal

CLASSES = 10
SHAPES = {
    "conv1": (3, 3, 1, 6),
    "bias1": (6,),
    "conv2": (3, 3, 6, 12),
    "bias2": (12,),
    "dense1": (2 * 2 * 12, 32),
    "bias3": (32,),
    "dense2": (32, CLASSES),
    "bias4": (CLASSES,),
}


def initial_parameters(dtype: str, seed: int = 0) -> dict[str, Any]:
    """Draw the weights, scaled by the square root of what feeds them; biases are zero."""
    rng = np.random.default_rng(seed)
    parameters = {}
    for name, shape in SHAPES.items():
        drawn = rng.normal(size=shape) / np.sqrt(np.prod(shape[:-1])) if len(shape) > 1 else np.zeros(shape)
        parameters[name] = ops.convert_to_tensor(drawn.astype(dtype))
    return parameters


def predict(parameters: dict[str, Any], images: Any) -> Any:
    """Return the logits (n, CLASSES) of `images` (n, 8, 8, 1)."""
    x = ops.conv(images, parameters["conv1"], padding="same", data_format="channels_last") + parameters["bias1"]
    x = ops.max_pool(ops.relu(x), 2, data_format="channels_last")
    x = ops.conv(x, parameters["conv2"], padding="same", data_format="channels_last") + parameters["bias2"]
    x = ops.max_pool(ops.relu(x), 2, data_format="channels_last")
    x = ops.reshape(x, (-1, SHAPES["dense1"][0]))
    x = ops.relu(ops.matmul(x, parameters["dense1"]) + parameters["bias3"])
    return ops.matmul(x, parameters["dense2"]) + parameters["bias4"]


@example_inputs(
    {name: normal(*shape, scale=0.3) for name, shape in SHAPES.items()}, normal(2, 8, 8, 1), integers(2, low=0)
)
def loss(parameters: dict[str, Any], images: Any, labels: Any) -> Any:
    """Return the mean cross-entropy of the predictions against `labels` (n,)."""
    return ops.mean(ops.sparse_categorical_crossentropy(labels, predict(parameters, images), from_logits=True))


def load(n: int, dtype: str) -> tuple[Any, Any]:
    """Return `n` images (n, 8, 8, 1) from 0 to 1 and their labels (n,)."""
    from sklearn.datasets import load_digits  # takes seconds, and is not needed to check the functions

    images, labels = load_digits(return_X_y=True)
    images = (images[:n] / 16).astype(dtype).reshape(n, 8, 8, 1)
    return ops.convert_to_tensor(images), ops.convert_to_tensor(labels[:n].astype("int32"))


def train(steps: int = 50, rate: float = 0.05, n: int = 256, dtype: str = "float32") -> dict[str, Any]:
    """Run `steps` of gradient descent with momentum; return the losses, and the first gradient by parameter."""
    if dtype == "float64":
        multiop.enable_x64()
    images, labels = load(n, dtype)
    parameters = initial_parameters(dtype)
    momenta = {name: ops.zeros_like(p) for name, p in parameters.items()}
    step = multiop.jit(multiop.value_and_grad(loss))
    curve, first = [], {}
    for _ in range(steps):
        value, grads = step(parameters, images, labels)
        first = first or {name: np.asarray(ops.convert_to_numpy(grad)).tolist() for name, grad in grads.items()}
        momenta = {name: 0.8 * momenta[name] + grad for name, grad in grads.items()}
        parameters = {name: p - rate * momenta[name] for name, p in parameters.items()}
        curve.append(float(value))
    return {"losses": curve, "gradient": first}


def main() -> None:
    """Train, and print the loss curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    options = parser.parse_args()
    result = train(options.steps, dtype=options.dtype)
    print(f"backend: {multiop.backend()}")
    for step, value in enumerate(result["losses"]):
        if step % 10 == 0 or step == len(result["losses"]) - 1:
            print(f"step {step:4d}  loss {value:.9f}")


if __name__ == "__main__":
    main()
