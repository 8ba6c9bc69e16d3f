"""Special functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.special as scipy_special

from .conversion import floating, is_float
from .elementwise import compiled, real


def op_erf(x):
    if is_float(x):
        return jax.lax.erf(x)
    return scipy_special.erf(*real(floating(x)))


def op_erfc(x):
    return scipy_special.erfc(*real(floating(x)))


def op_erfinv(x):
    return scipy_special.erfinv(*real(floating(x)))


def op_i0(x):
    return _i0(*real(floating(x)))


@compiled
def _i0(x):
    # at 0 the derivatives of JAX's are wrong, and at infinity it is NaN: the first terms of the series stand for it
    ends = (x == 0) | jnp.isinf(x)
    return jnp.where(ends, 1 + x * x / 4, scipy_special.i0(jnp.where(ends, 1, x)))
