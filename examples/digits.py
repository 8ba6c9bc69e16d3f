"""Train a classifier of handwritten digits, with a loss that brings its own gradient: the same curve on every backend.

The data are the 1797 images of 8 x 8 pixels that scikit-learn ships. Initial weights come from NumPy, so the only thing
that differs between two backends is the backend.

    MULTIOP_BACKEND=jax python examples/digits.py
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal, probabilities

CLASSES = 10
HIDDEN = 32
N_TEST = 360

# a network of the same form that is small enough for finite differences
_SMALL = [normal(6, 4), normal(4), normal(4, 3), normal(3)]


@example_inputs(normal(5, 3), probabilities(5, 3))
@multiop.op_custom_gradient
def cross_entropy(logits: Any, targets: Any) -> Any:
    """Compute the mean cross-entropy of `logits` (n, classes) against the distributions `targets` (n, classes).

    The gradient is what the forward pass has at hand, the probabilities minus the targets (where each target sums to
    one, as a distribution does), instead of a chain through the log-softmax.
    """
    log_p = ops.log_softmax(logits)
    n = logits.shape[0]

    def grad(upstream: Any) -> Any:
        total = ops.sum(targets, axis=-1, keepdims=True)
        return upstream * (total * ops.exp(log_p) - targets) / n, -upstream * log_p / n

    return -ops.sum(targets * log_p) / n, grad


def initial_parameters(seed: int = 0) -> list[Any]:
    """Draw the weights and biases of two layers, (64, HIDDEN) and (HIDDEN, CLASSES), as float32 tensors."""
    rng = np.random.default_rng(seed)
    sizes = [64, HIDDEN, CLASSES]
    parameters = []
    for n_in, n_out in itertools.pairwise(sizes):
        weights = rng.normal(size=(n_in, n_out)) / np.sqrt(n_in)
        parameters += [ops.convert_to_tensor(weights.astype("float32")), ops.zeros((n_out,))]
    return parameters


@example_inputs(_SMALL, normal(5, 6))
def predict(parameters: list[Any], images: Any) -> Any:
    """Return the logits (n, CLASSES) of `images` (n, 64)."""
    w1, b1, w2, b2 = parameters
    return ops.matmul(ops.relu(ops.matmul(images, w1) + b1), w2) + b2


@example_inputs(_SMALL, normal(5, 6), probabilities(5, 3))
def loss(parameters: list[Any], images: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of the predictions."""
    return cross_entropy(predict(parameters, images), targets)


def load() -> tuple[Any, ...]:
    """Return images (n, 64) from 0 to 1 and labels (n,), for training and for testing."""
    from sklearn.datasets import load_digits  # takes seconds, and is not needed to check the functions

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    return images[:-N_TEST], labels[:-N_TEST], images[-N_TEST:], labels[-N_TEST:]


def train(steps: int = 200, rate: float = 0.5) -> dict[str, Any]:
    """Run `steps` of gradient descent with momentum on all training images; return the loss curve and the accuracy."""
    images, labels, test_images, test_labels = load()
    x = ops.convert_to_tensor(images)
    targets = ops.convert_to_tensor(np.eye(CLASSES, dtype="float32")[labels])
    parameters = initial_parameters()
    momenta = [ops.zeros_like(p) for p in parameters]
    step = multiop.value_and_grad(loss)
    curve = []
    for _ in range(steps):
        value, grads = step(parameters, x, targets)
        momenta = [0.8 * m + g for m, g in zip(momenta, grads, strict=True)]
        parameters = [p - rate * m for p, m in zip(parameters, momenta, strict=True)]
        curve.append(float(value))
    logits = ops.convert_to_numpy(predict(parameters, ops.convert_to_tensor(test_images)))
    return {"losses": curve, "accuracy": float((logits.argmax(-1) == test_labels).mean())}


def main() -> None:
    """Train, and print the loss curve and the test accuracy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    result = train(parser.parse_args().steps)
    print(f"backend: {multiop.backend()}")
    for step, value in enumerate(result["losses"]):
        if step % 20 == 0 or step == len(result["losses"]) - 1:
            print(f"step {step:4d}  loss {value:.6f}")
    print(f"accuracy on {N_TEST} held-out images: {result['accuracy']:.4f}")


if __name__ == "__main__":
    main()
