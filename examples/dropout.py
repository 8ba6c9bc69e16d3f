"""Train a classifier of handwritten digits with dropout: every backend draws the same numbers, so the curves agree.

Weights and masks come from `multiop.random`. The key of each step is derived from one seed and the step's number with
`fold_in`, so a step can be compiled, and can be repeated on its own.

    MULTIOP_BACKEND=jax python examples/dropout.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import multiop
from multiop import ops, random
from multiop.testing import example_inputs, normal, probabilities

CLASSES = 10
HIDDEN = 64
N_TEST = 360
RATE = 0.5  # share of the hidden units that are dropped

# a network of the same structure, small enough for finite differences
_SMALL = [normal(6, 4), normal(4), normal(4, 3), normal(3)]


def initial_parameters(seed: int = 0) -> list[Any]:
    """Draw the weights and biases of two layers, (64, HIDDEN) and (HIDDEN, CLASSES)."""
    keys = random.split(seed)
    return [
        random.truncated_normal((64, HIDDEN), stddev=(2 / 64) ** 0.5, seed=keys[0]),
        ops.zeros((HIDDEN,)),
        random.truncated_normal((HIDDEN, CLASSES), stddev=HIDDEN**-0.5, seed=keys[1]),
        ops.zeros((CLASSES,)),
    ]


@example_inputs(_SMALL, normal(5, 6))
def predict(parameters: list[Any], images: Any, key: Any = None) -> Any:
    """Return the logits (n, CLASSES) of `images` (n, 64); hidden units are dropped only if a key is given."""
    w1, b1, w2, b2 = parameters
    hidden = ops.relu(ops.matmul(images, w1) + b1)
    if key is not None:
        hidden = random.dropout(hidden, RATE, seed=key)
    return ops.matmul(hidden, w2) + b2


@example_inputs(_SMALL, normal(5, 6), probabilities(5, 3))
def loss(parameters: list[Any], images: Any, targets: Any, key: Any = None) -> Any:
    """Return the mean cross-entropy of the predictions."""
    return -ops.mean(ops.sum(targets * ops.log_softmax(predict(parameters, images, key)), axis=-1))


def load() -> tuple[Any, ...]:
    """Return images (n, 64) with values from 0 to 1 and labels (n,), for training and for testing."""
    from sklearn.datasets import load_digits  # takes seconds, and is not needed to check the functions

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    return images[:-N_TEST], labels[:-N_TEST], images[-N_TEST:], labels[-N_TEST:]


def train(steps: int = 200, rate: float = 0.5, seed: int = 0) -> dict[str, Any]:
    """Run `steps` steps of gradient descent, each on 256 random images; return the loss curve and the accuracy."""
    images, labels, test_images, test_labels = load()
    x = ops.convert_to_tensor(images)
    targets = ops.convert_to_tensor(np.eye(CLASSES, dtype="float32")[labels])
    parameters = initial_parameters(seed)
    step = multiop.jit(multiop.value_and_grad(loss))
    curve = []
    for k in range(steps):
        keys = random.split(random.fold_in(seed, k))
        rows = random.randint((256,), 0, len(images), seed=keys[0])
        value, grads = step(parameters, ops.take(x, rows, 0), ops.take(targets, rows, 0), keys[1])
        parameters = [p - rate * g for p, g in zip(parameters, grads, strict=True)]
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
