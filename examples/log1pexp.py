"""log(1 + exp(x)) with a gradient that does not overflow, written once for every backend.

Where exp(x) overflows, autodiff multiplies an infinity by a zero: the gradient that it finds is NaN. The rule below is
the same derivative, 1 - 1 / (1 + exp(x)), in a form that has no such product.

    MULTIOP_BACKEND=torch python examples/log1pexp.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import multiop
from multiop.testing import example_inputs, normal

POINTS = np.array([-100.0, -1.0, 0.0, 1.0, 100.0])


@example_inputs(normal(3))
def naive(x: Any) -> Any:
    """Compute log(1 + exp(x)) entry by entry, and leave the gradient to autodiff."""
    return multiop.op_log(1 + multiop.op_exp(x))


@example_inputs(normal(2, 3))
@example_inputs(POINTS)
@multiop.op_custom_gradient
def log1pexp(x: Any) -> Any:
    """Compute log(1 + exp(x)) entry by entry, with a stable gradient."""
    e = multiop.op_exp(x)

    def grad(upstream: Any) -> Any:
        return upstream * (1 - 1 / (1 + e))

    return multiop.op_log(1 + e), grad


def main() -> None:
    """Print both gradients at a few points."""
    print(f"backend: {multiop.backend()}")
    print(f"{'x':>8} {'naive gradient':>16} {'log1pexp gradient':>18}")
    for x in POINTS.tolist():
        print(f"{x:8.1f} {float(multiop.grad(naive)(x)):16.6f} {float(multiop.grad(log1pexp)(x)):18.6f}")


if __name__ == "__main__":
    main()
