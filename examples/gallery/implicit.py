"""An implicit layer: a fixed point with its own gradient.

The layer returns the `z` with `z = tanh(z w + x)` (Bai et al., 2019). Autodiff would keep every step of the iteration.
At its end all steps are alike, so the rule needs `z` alone: it solves `v = upstream + v J` by the same iteration, where
`J` is the step's derivative by `z`. The memory does not grow with the number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal

STEPS = 40


def step(w: Any, x: Any, z: Any) -> Any:
    """Return the next iterate: `w` (n, n), `x` and `z` (batch, n)."""
    return ops.tanh(ops.matmul(z, w) + x)


@example_inputs(normal(3, 3, scale=0.15), normal(2, 3))
@multiop.op_custom_gradient
def fixed_point(w: Any, x: Any) -> Any:
    """Return the fixed point of `step`."""
    z = ops.zeros_like(x)
    for _ in range(STEPS):
        z = step(w, x, z)

    def grad(upstream: Any) -> Any:
        _, pull = multiop.vjp(step, w, x, z)
        v = upstream
        for _ in range(STEPS):
            v = upstream + pull(v)[2]
        return pull(v)[:2]

    return z, grad


def run(steps: int = STEPS) -> dict[str, list[float]]:
    """Return how far the iteration is from its end after each step, and the gradient of the sum by `x`."""
    rng = np.random.default_rng(0)
    w = ops.convert_to_tensor(0.3 * rng.normal(size=(4, 4)), "float32")
    x = ops.convert_to_tensor(rng.normal(size=(1, 4)), "float32")
    end, z, errors = fixed_point(w, x), ops.zeros_like(x), []
    for _ in range(steps):
        z = step(w, x, z)
        errors.append(float(ops.max(ops.abs(z - end))))
    gradient = multiop.grad(lambda x: ops.sum(fixed_point(w, x)))(x)
    return {"errors": errors, "gradient": ops.convert_to_numpy(gradient)[0].tolist()}


if __name__ == "__main__":
    print(run())
