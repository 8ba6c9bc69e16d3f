"""A differentiable ODE: the adjoint method.

`solve` takes Runge-Kutta steps for `y' = f(y)`. Autodiff would keep each stage of each step. The rule keeps the states
alone, walks them back, and takes each step again with its pullback: the discrete adjoint, whose gradient is that of the
computed solution to the last digits. The example finds the rates of a predator-prey model from an observed path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from adam import minimize

import multiop
from multiop import ops
from multiop.testing import example_inputs, uniform


def field(rates: Any, y: Any) -> Any:
    """Return the slopes of Lotka and Volterra's model: `rates` (4,), numbers of prey and predators `y` (2,)."""
    prey, predators = y[0], y[1]
    return ops.stack(
        [rates[0] * prey - rates[1] * prey * predators, rates[2] * prey * predators - rates[3] * predators]
    )


def step(rates: Any, y: Any, h: float) -> Any:
    """Take one step of the classic Runge-Kutta method."""
    k1 = field(rates, y)
    k2 = field(rates, y + h / 2 * k1)
    k3 = field(rates, y + h / 2 * k2)
    k4 = field(rates, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@example_inputs(uniform(4, low=0.5, high=1.0), uniform(2, low=0.5, high=1.5), 1.0, 5)
@multiop.op_custom_gradient
def solve(rates: Any, y: Any, end: float, count: int) -> Any:
    """Return the states at `count` times until `end`, (count, 2)."""
    h = end / count

    def forward(y: Any, _: Any) -> Any:
        after = step(rates, y, h)
        return after, after

    def backward(carry: Any, at: Any) -> Any:
        (total, adjoint), (before, upstream) = carry, at
        slope, adjoint = multiop.vjp(lambda rates, y: step(rates, y, h), rates, before)[1](adjoint + upstream)
        return (total + slope, adjoint), before

    _, states = ops.scan(forward, y, length=count)

    def grad(upstream: Any) -> Any:
        before = ops.concatenate([y[None], states[:-1]])
        return ops.scan(backward, (ops.zeros_like(rates), ops.zeros_like(y)), (before, upstream), reverse=True)[0]

    return states, grad


TRUE, START, END, COUNT = np.float32([1.1, 0.4, 0.1, 0.4]), np.float32([5.0, 2.0]), 8.0, 16


def run(steps: int = 40) -> dict[str, list[float]]:
    """Return the loss before each step, the rates that were found, and the path."""
    start, path = ops.convert_to_tensor(START), solve(TRUE, START, END, COUNT)
    guess = ops.convert_to_tensor(np.float32([0.9, 0.5, 0.15, 0.5]))

    def loss(parameters: Any) -> Any:
        return ops.mean(ops.square(solve(parameters[0], start, END, COUNT) - path))

    [rates], losses = minimize(loss, [guess], steps, rate=0.03, compiled=False)
    prey, predators = ops.convert_to_numpy(solve(rates, start, END, COUNT)).T.tolist()
    return {"losses": losses, "rates": ops.convert_to_numpy(rates).tolist(), "prey": prey, "predators": predators}


if __name__ == "__main__":
    print(run()["rates"])
