"""Integers: bits, shifts and divisors."""

from __future__ import annotations

import jax.numpy as jnp

from ..conversion import bool_to_int32, convert, jit_inline, not_bool, promote, reject_floats


def op_bitwise_and(x, y):
    return jnp.bitwise_and(*reject_floats(*promote(x, y)))


def op_bitwise_or(x, y):
    return jnp.bitwise_or(*reject_floats(*promote(x, y)))


def op_bitwise_xor(x, y):
    return jnp.bitwise_xor(*reject_floats(*promote(x, y)))


def op_bitwise_invert(x):
    return jnp.invert(*reject_floats(convert(x)))


def op_left_shift(x, y):
    return jnp.left_shift(*reject_floats(*bool_to_int32(*promote(x, y))))


def op_right_shift(x, y):
    return jnp.right_shift(*reject_floats(*bool_to_int32(*promote(x, y))))


def op_gcd(x1, x2):
    return gcd(*not_bool(*reject_floats(*promote(x1, x2))))


def op_lcm(x1, x2):
    return lcm(*not_bool(*reject_floats(*promote(x1, x2))))


def magnitude(x):
    """Return absolute values as unsigned integers, which can hold that of the most negative integer."""
    return jnp.abs(x).astype(f"uint{8 * x.dtype.itemsize}")


@jit_inline
def gcd(x1, x2):
    return jnp.gcd(magnitude(x1), magnitude(x2)).astype(x1.dtype)  # jnp.gcd never returns for the most negative integer


@jit_inline
def lcm(x1, x2):
    common = magnitude(gcd(x1, x2))
    return (magnitude(x1) // jnp.where(common == 0, 1, common) * magnitude(x2)).astype(x1.dtype)
