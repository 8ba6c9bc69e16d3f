"""A physics-informed network for Burgers' equation: first and second derivatives inside the loss, and one more outside.

The equation is u_t + u u_x = nu u_xx on -1 < x < 1, 0 < t < 1, with u(0, x) = -sin(pi x), u(t, -1) = u(t, 1) = 0
and nu = 0.01 / pi. The network's output is built to satisfy the initial and boundary values exactly, so the loss is
the mean square of the equation's residual alone.

    MULTIOP_BACKEND=tensorflow python examples/burgers.py

Source: M. Raissi, P. Perdikaris, G. E. Karniadakis, "Physics-informed neural networks", J. Comput. Phys. 378 (2019),
686-707, https://doi.org/10.1016/j.jcp.2018.10.045
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal, uniform

VISCOSITY = 0.01 / math.pi
SIZES = (2, 20, 20, 20, 1)

# a network of the same form that is small enough for finite differences, and points of the domain
_SMALL = [normal(2, 3), normal(3), normal(3, 1), normal(1)]
_POINTS = (uniform(4, low=0, high=1), uniform(4, low=-1, high=1))


def initial_parameters(seed: int = 0) -> list[Any]:
    """Draw weights and biases of the layers in `SIZES`, as float32 tensors."""
    rng = np.random.default_rng(seed)
    parameters = []
    for n_in, n_out in itertools.pairwise(SIZES):
        weights = rng.normal(size=(n_in, n_out)) * np.sqrt(2 / (n_in + n_out))
        parameters += [ops.convert_to_tensor(weights.astype("float32")), ops.zeros((n_out,))]
    return parameters


@example_inputs(_SMALL, *_POINTS)
def solution(parameters: list[Any], t: Any, x: Any) -> Any:
    """Return the network's u at times `t` (n,) and places `x` (n,), shape (n,)."""
    h = ops.stack([t, x], axis=-1)
    layers = list(zip(parameters[::2], parameters[1::2], strict=True))
    for weights, bias in layers[:-1]:
        h = ops.tanh(ops.matmul(h, weights) + bias)
    weights, bias = layers[-1]
    free = ops.squeeze(ops.matmul(h, weights) + bias, axis=-1)
    return -ops.sin(math.pi * x) + t * (1 - x * x) * free


@example_inputs(_SMALL, *_POINTS)
def residual(parameters: list[Any], t: Any, x: Any) -> Any:
    """Return u_t + u u_x - nu u_xx of the network at each point, shape (n,)."""

    # Each point's u depends on that point alone, so the gradient of the sum is the derivative at each point
    def u(t: Any, x: Any) -> Any:
        value = solution(parameters, t, x)
        return ops.sum(value), value

    def u_x(x: Any) -> Any:
        (u_t, u_x), value = multiop.grad(u, argnums=(0, 1), has_aux=True)(t, x)
        return ops.sum(u_x), (u_t, u_x, value)

    u_xx, (u_t, u_x, value) = multiop.grad(u_x, has_aux=True)(x)
    return u_t + value * u_x - VISCOSITY * u_xx


@example_inputs(_SMALL, *_POINTS)
def loss(parameters: list[Any], t: Any, x: Any) -> Any:
    """Return the mean square of the residual."""
    return ops.mean(ops.square(residual(parameters, t, x)))


def adam(parameters: list[Any], grads: list[Any], state: Any, rate: float) -> tuple[list[Any], Any]:
    """Take one step of Adam; `state` is `None` at the start, then what the last step returned.

    Source: D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", https://arxiv.org/abs/1412.6980
    """
    step, means, squares = state or (0, [0.0] * len(grads), [0.0] * len(grads))
    step += 1
    means = [0.9 * m + 0.1 * g for m, g in zip(means, grads, strict=True)]
    squares = [0.999 * s + 0.001 * g * g for s, g in zip(squares, grads, strict=True)]
    scale = rate / (1 - 0.9**step)
    correction = 1 / (1 - 0.999**step)
    parameters = [
        p - scale * m / (ops.sqrt(correction * s) + 1e-8) for p, m, s in zip(parameters, means, squares, strict=True)
    ]
    return parameters, (step, means, squares)


def points(n: int, seed: int = 1) -> tuple[Any, Any]:
    """Draw `n` points (t, x) of the domain, as float32 tensors."""
    drawn = np.random.default_rng(seed).uniform((0, -1), (1, 1), size=(n, 2)).astype("float32")
    return ops.convert_to_tensor(drawn[:, 0]), ops.convert_to_tensor(drawn[:, 1])


def train(steps: int = 300, n_points: int = 1000, rate: float = 5e-3, jit: bool = False) -> dict[str, Any]:
    """Run `steps` of Adam on `n_points` fixed points; return the loss curve and u at t = 1/2 on a grid of x."""
    t, x = points(n_points)
    parameters, state = initial_parameters(), None
    step = multiop.value_and_grad(loss)
    if jit:
        step = multiop.jit(step)
    curve = []
    for _ in range(steps):
        value, grads = step(parameters, t, x)
        parameters, state = adam(parameters, grads, state, rate)
        curve.append(float(value))
    grid = np.linspace(-1, 1, 9, dtype="float32")
    half = ops.convert_to_tensor(np.full_like(grid, 0.5))
    u = ops.convert_to_numpy(solution(parameters, half, ops.convert_to_tensor(grid)))
    return {"losses": curve, "x": grid.tolist(), "u": u.tolist()}


def main() -> None:
    """Train, and print the loss curve and the solution at t = 1/2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument(
        "--jit", action="store_true", help="compile the step: slow to start, many times faster after that"
    )
    options = parser.parse_args()
    result = train(options.steps, jit=options.jit)
    print(f"backend: {multiop.backend()}")
    for step, value in enumerate(result["losses"]):
        if step % 30 == 0 or step == len(result["losses"]) - 1:
            print(f"step {step:4d}  mean square residual {value:.6f}")
    for x, u in zip(result["x"], result["u"], strict=True):
        print(f"u(1/2, {x:5.2f}) = {u:8.4f}")


if __name__ == "__main__":
    main()
