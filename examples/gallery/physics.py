"""A physics-informed network: a pendulum, learned from its equation alone.

The network is trained until `u'' + sin(u) = 0` with `u(0) = 1` and `u'(0) = 0`, from no data. The loss has second
derivatives of the network, and training differentiates once more. The step is compiled once; 500 steps hold as many
tensors as 10.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from adam import minimize

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal, uniform

END = 3.0


def network(parameters: Any, t: Any) -> Any:
    """Return `u` at the times `t`, (n,); it meets the start exactly."""
    w1, b1, w2, b2, w3 = parameters
    h = ops.tanh(ops.reshape(t, (-1, 1)) * w1 + b1)
    h = ops.tanh(ops.matmul(h, w2) + b2)
    return 1 + t * t * ops.matmul(h, w3)[:, 0]


SMALL = [normal(1, 3), normal(3), normal(3, 3), normal(3), normal(3, 1)]


@example_inputs(SMALL, uniform(4, low=0.0, high=END))
def residual(parameters: Any, t: Any) -> Any:
    """Return what the equation leaves at the times `t`, (n,)."""

    def slope(t: Any) -> Any:
        return multiop.grad(lambda t: ops.sum(network(parameters, t)))(t)

    return multiop.grad(lambda t: ops.sum(slope(t)))(t) + ops.sin(network(parameters, t))


def run(steps: int = 500) -> dict[str, list[float]]:
    """Return the loss before each step, and the angle at 61 times."""
    rng = np.random.default_rng(0)
    shapes = [(1, 16), (16,), (16, 16), (16,), (16, 1)]
    start = [(rng.normal(size=shape) * 0.5).astype("float32") for shape in shapes]
    t = ops.linspace(0.0, END, 61)
    parameters, losses = minimize(
        lambda parameters: ops.mean(ops.square(residual(parameters, t))), list(map(ops.convert_to_tensor, start)), steps
    )
    return {"losses": losses, "u": ops.convert_to_numpy(network(parameters, t)).tolist()}


if __name__ == "__main__":
    print(run()["losses"][-1])
