"""Windows for the analysis of signals."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.special as scipy_special


def op_kaiser(triangle, beta):
    beta = jnp.asarray(beta, triangle.dtype)
    root = jnp.sqrt(triangle * (2 - triangle))
    below = jnp.square(1 - triangle) / (1 + root)  # 1 - root without cancellation
    # both functions are scaled by exp(-beta); unscaled, they would overflow
    return jnp.exp(-beta * below) * scipy_special.i0e(beta * root) / scipy_special.i0e(beta)
