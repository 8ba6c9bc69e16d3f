"""A straight-through quantizer: training weights that have only a few values.

Rounding has the gradient 0, with which nothing trains. The rule passes the gradient on as if nothing had been rounded
(Bengio et al., 2013), and the scale of the weights is learned with them. Forward mode follows the rule, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from adam import minimize

import multiop
from multiop import ops


@multiop.op_custom_gradient
def _straight_through(x: Any) -> Any:
    """Round each entry of `x`; the gradient is that of the identity."""
    return ops.round(x), lambda upstream: upstream


def quantized(w: Any, scale: Any, bits: int = 3) -> Any:
    """Return `w` at `2**bits - 1` levels, `scale` apart."""
    most = 2 ** (bits - 1) - 1
    return _straight_through(ops.clip(w / scale, -most, most)) * scale


def run(steps: int = 300, bits: int = 3) -> dict[str, list[float]]:
    """Fit quantized weights to a linear map; return the loss before each step, the weights and their levels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(128, 16))
    y = ops.convert_to_tensor(x @ rng.normal(size=16), "float32")
    x = ops.convert_to_tensor(x, "float32")
    start = [ops.zeros(16) + 0.1, ops.convert_to_tensor(np.float32(0.4))]

    def loss(parameters: Any) -> Any:
        w, scale = parameters
        return ops.mean(ops.square(ops.matmul(x, quantized(w, scale, bits)) - y))

    (w, scale), losses = minimize(loss, start, steps, rate=0.02)
    levels = quantized(w, scale, bits)
    return {
        "losses": losses,
        "weights": ops.convert_to_numpy(w).tolist(),
        "levels": ops.convert_to_numpy(levels).tolist(),
        "scale": [float(scale)],
    }


if __name__ == "__main__":
    print(run()["levels"])
