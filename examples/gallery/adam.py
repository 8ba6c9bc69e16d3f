"""Adam, by Kingma and Ba (2014), as one step: what the examples of the gallery train with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import multiop
from multiop import ops


def minimize(
    loss: Callable[[list[Any]], Any], parameters: list[Any], steps: int, rate: float = 1e-2, compiled: bool = True
) -> tuple[list[Any], list[float]]:
    """Return the parameters after some steps, and the loss before each."""

    def step(parameters: list[Any], means: list[Any], squares: list[Any], k: Any) -> Any:
        value, grads = multiop.value_and_grad(loss)(parameters)
        means = [0.9 * mean + 0.1 * g for mean, g in zip(means, grads, strict=True)]
        squares = [0.999 * square + 0.001 * g * g for square, g in zip(squares, grads, strict=True)]
        scale = rate * ops.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        moved = zip(parameters, means, squares, strict=True)
        return value, [x - scale * mean / (ops.sqrt(square) + 1e-8) for x, mean, square in moved], means, squares

    take, losses = multiop.jit(step) if compiled else step, []
    means = squares = [ops.zeros_like(x) for x in parameters]
    for k in range(1, steps + 1):
        value, parameters, means, squares = take(parameters, means, squares, ops.cast(k, "float32"))
        losses.append(float(value))
    return parameters, losses
