"""A stable loss in the style of softmax: sparsemax, whose probabilities can be 0.

Sparsemax (Martins and Astudillo, 2016) projects scores onto the probabilities, so that what is unlikely gets exactly 0.
The gradient of its loss is the probabilities minus the target, which no overflow reaches: the rule says so, in place of
the sort and sums that autodiff would go back through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal


@example_inputs(normal(4, 5))
def sparsemax(scores: Any) -> Any:
    """Return the probabilities, of the shape of `scores`, whose last axis they sum to 1 over."""
    high = ops.max(scores, axis=-1, keepdims=True)
    falling = -ops.sort(high - scores, axis=-1)  # from 0 down
    counts = ops.arange(1, scores.shape[-1] + 1, dtype=ops.dtype(scores))
    sums = ops.cumsum(falling, axis=-1)
    kept = ops.cast(1 + counts * falling > sums, ops.dtype(scores))
    threshold = (ops.sum(falling * kept, -1, keepdims=True) - 1) / ops.sum(kept, -1, keepdims=True)
    return ops.maximum(scores - high - threshold, 0.0)


@example_inputs(normal(4, 5), np.eye(5)[[0, 1, 4, 4]])
@multiop.op_custom_gradient
def loss(scores: Any, target: Any) -> Any:
    """Return the loss of each row, of the shape of `scores` without its last axis; `target` are probabilities."""
    p = sparsemax(scores)
    centred = scores - ops.max(scores, axis=-1, keepdims=True)
    value = ops.sum((p - target) * centred - (p * p - target * target) / 2, axis=-1)

    def grad(upstream: Any) -> Any:
        return upstream[..., None] * (p - target), upstream[..., None] * (target - centred)

    return value, grad


def run(steps: int = 81) -> dict[str, list[float]]:
    """Return losses and gradients of a score against 0, by sparsemax and by softmax."""
    scores = np.stack([np.linspace(-4, 4, steps), np.zeros(steps)], 1).astype("float32")
    target = np.tile(np.float32([1, 0]), (steps, 1))
    x, target = ops.convert_to_tensor(scores), ops.convert_to_tensor(target)
    slope = multiop.grad(lambda x: ops.sum(loss(x, target)))(x)
    found = {"losses": loss(x, target), "gradient": slope[:, 0], "sparsemax": sparsemax(x)[:, 0]}
    found["softmax"] = ops.softmax(x)[:, 0]
    return {"x": scores[:, 0].tolist(), **{name: ops.convert_to_numpy(y).tolist() for name, y in found.items()}}


if __name__ == "__main__":
    print(run()["gradient"][::10])
