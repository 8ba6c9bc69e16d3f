"""A normalizing flow: a density learned from samples.

Layers of RealNVP (Dinh et al., 2016) shift and scale one coordinate by functions of the other, so that the inverse and
the determinant are known. The log density is that of a normal distribution at the point that a sample is mapped to,
plus the logarithm of the determinant. The samples are two crescents.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from adam import minimize

from multiop import ops
from multiop.testing import example_inputs, normal

LAYERS, WIDTH = 4, 16


def mapped(parameters: Any, x: Any) -> Any:
    """Return the points that `x` (n, 2) is mapped to, and the logarithms of the determinants, (n,)."""
    kept, moved, total = x[:, 0], x[:, 1], ops.zeros_like(x[:, 0])
    for w1, b1, w2 in zip(parameters[::3], parameters[1::3], parameters[2::3], strict=True):
        out = ops.matmul(ops.tanh(kept[:, None] * w1 + b1), w2)
        log_scale = ops.tanh(out[:, 0])
        kept, moved = moved * ops.exp(log_scale) + out[:, 1], kept  # the coordinates take turns
        total = total + log_scale
    return ops.stack([kept, moved], axis=1), total


@example_inputs([normal(1, 3), normal(3), normal(3, 2)] * 2, normal(4, 2))
def log_density(parameters: Any, x: Any) -> Any:
    """Return the logarithm of the density at `x`, (n,)."""
    z, total = mapped(parameters, x)
    return total - ops.sum(ops.square(z), axis=1) / 2 - math.log(2 * math.pi)


def crescents(n: int = 256, seed: int = 0) -> Any:
    """Return samples of two crescents, (n, 2)."""
    rng = np.random.default_rng(seed)
    angle, upper = np.pi * rng.uniform(size=n), rng.uniform(size=n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle)) - 0.5
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle)) - 0.25
    return (np.stack([x, y], 1) + 0.08 * rng.normal(size=(n, 2))).astype("float32")


def run(steps: int = 400) -> dict[str, Any]:
    """Return the loss before each step, and the log density on a grid of 40 x 40 points from -2 to 2."""
    rng = np.random.default_rng(1)
    shapes = [(1, WIDTH), (WIDTH,), (WIDTH, 2)] * LAYERS
    start = [ops.convert_to_tensor((0.3 * rng.normal(size=shape)).astype("float32")) for shape in shapes]
    samples = ops.convert_to_tensor(crescents())
    parameters, losses = minimize(lambda parameters: -ops.mean(log_density(parameters, samples)), start, steps)
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 40)] * 2), -1).reshape(-1, 2).astype("float32")
    values = log_density(parameters, ops.convert_to_tensor(grid))
    return {"losses": losses, "grid": ops.convert_to_numpy(values).reshape(40, 40).tolist()}


if __name__ == "__main__":
    print(run()["losses"][-1])
