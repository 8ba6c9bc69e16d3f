"""Log densities of probability: a robust fit by maximum likelihood.

Student's distribution has heavy tails, so that a few wild samples do not move its centre. Location, scale and
degrees of freedom are fitted together; the gradient by the degrees of freedom goes through `lgamma`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from adam import minimize

from multiop import ops
from multiop.testing import example_inputs, normal, positive


@example_inputs(normal(5), normal(), positive())
def normal_log_density(x: Any, mean: Any, scale: Any) -> Any:
    """Return the logarithm of the normal density at `x`."""
    z = (x - mean) / scale
    return -z * z / 2 - ops.log(scale) - math.log(2 * math.pi) / 2


@example_inputs(normal(5), normal(), positive(), positive())
def student_log_density(x: Any, mean: Any, scale: Any, freedom: Any) -> Any:
    """Return the logarithm of the density of Student's distribution at `x`."""
    z = (x - mean) / scale
    constant = ops.lgamma((freedom + 1) / 2) - ops.lgamma(freedom / 2) - ops.log(freedom * math.pi) / 2
    return constant - ops.log(scale) - (freedom + 1) / 2 * ops.log1p(z * z / freedom)


def samples() -> Any:
    """Return 80 samples around 1, and 8 that are wild."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(1, 0.5, size=80), rng.normal(8, 1, size=8)]).astype("float32")


def run(steps: int = 300) -> dict[str, list[float]]:
    """Return the loss before each step, the fit of Student's distribution, and that of the normal one."""
    x = ops.convert_to_tensor(samples())

    def loss(parameters: Any) -> Any:
        mean, log_scale, log_freedom = parameters
        return -ops.mean(student_log_density(x, mean, ops.exp(log_scale), ops.exp(log_freedom)))

    (mean, log_scale, log_freedom), losses = minimize(
        loss, [ops.convert_to_tensor(np.float32(1))] * 3, steps, rate=0.05
    )
    fit = [float(mean), float(ops.exp(log_scale)), float(ops.exp(log_freedom))]
    return {"losses": losses, "student": fit, "normal": [float(ops.mean(x)), float(ops.std(x))]}


if __name__ == "__main__":
    print(run()["student"])
