"""Special functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..conversion import floating, in_float32, reject_complex
from ._complex import with_slope
from .elementwise import of_reals


def op_erf(x):
    return jax.lax.erf(*reject_complex(floating(x)))


def op_erfc(x):
    return jax.lax.erfc(*reject_complex(floating(x)))


def op_erfinv(x):
    return jax.lax.erf_inv(*reject_complex(floating(x)))


@of_reals
def op_i0(x):
    return in_float32(i0, x)


# JAX's i0 overflows before its result does, and its gradient suffers from cancellation


def undo_scaling(scaled, x):
    """Return `scaled(x) * exp(abs(x))`."""
    x = jax.lax.clamp(x.dtype.type(-1000), x, x.dtype.type(1000))  # where both have overflowed: at infinity, one is 0
    root = jnp.exp(jnp.abs(x) / 2)
    return root * scaled(x) * root


def i1_slope(x):
    near = jnp.abs(x) < 1e-4
    return jnp.where(near, 0.5 + 3 * x * x / 16, i0(x) - i1(x) / jnp.where(near, 1, x))


i1 = with_slope(lambda x: undo_scaling(jax.lax.bessel_i1e, x), i1_slope)
i0 = with_slope(lambda x: undo_scaling(jax.lax.bessel_i0e, x), i1)
