"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from ..conversion import alike, bool_to_int32, comparable, convert, jit_inline, promote, reject_complex


def op_equal(x1, x2):
    return _equal(*alike(x1, x2))


def op_not_equal(x1, x2):
    return _not_equal(*alike(x1, x2))


def op_less(x1, x2):
    return _less(*comparable(x1, x2))


def op_less_equal(x1, x2):
    return _less_equal(*comparable(x1, x2))


def op_greater(x1, x2):
    return _greater(*comparable(x1, x2))


def op_greater_equal(x1, x2):
    return _greater_equal(*comparable(x1, x2))


def op_isnan(x):
    return jnp.isnan(convert(x))


def op_isinf(x):
    return jnp.isinf(convert(x))


def op_isfinite(x):
    return jnp.isfinite(convert(x))


def op_logical_and(x1, x2):
    return jnp.logical_and(convert(x1), convert(x2))


def op_logical_or(x1, x2):
    return jnp.logical_or(convert(x1), convert(x2))


def op_logical_xor(x1, x2):
    return jnp.logical_xor(convert(x1), convert(x2))


def op_logical_not(x):
    return jnp.logical_not(convert(x))


def op_where(condition, x1, x2):
    return _where(convert(condition), *promote(x1, x2))


def op_nonzero(x):
    return tuple(i.astype(np.int32) for i in jnp.nonzero(convert(x)))


def op_isposinf(x):
    return jnp.isposinf(*reject_complex(convert(x)))


def op_isneginf(x):
    return jnp.isneginf(*reject_complex(convert(x)))


def op_isreal(x):
    x = convert(x)
    return jnp.isreal(x) if jnp.iscomplexobj(x) else jnp.ones_like(x, bool)  # jnp.isreal forgets the devices of x


def op_signbit(x):
    return jnp.signbit(*reject_complex(convert(x)))


def op_isclose(x1, x2, rtol, atol, equal_nan):
    return _isclose(*promote(x1, x2), rtol, atol, equal_nan)


@functools.partial(jit_inline, static_argnums=(2, 3, 4))
def _isclose(x1, x2, rtol, atol, equal_nan):
    x1, x2 = bool_to_int32(x1, x2)
    if not jnp.issubdtype(x1.dtype, np.inexact):
        return close_integers(x1, x2, rtol, atol)
    wide = jnp.promote_types(x1.dtype, np.float32)
    return jnp.isclose(x1.astype(wide), x2.astype(wide), rtol, atol, equal_nan)


def close_integers(x1, x2, rtol, atol):
    """Compare integers by their unsigned difference: the widest available float may not hold them exactly."""
    unsigned = f"uint{8 * x1.dtype.itemsize}"
    difference = jnp.where(x1 > x2, x1 - x2, x2 - x1).astype(unsigned)
    return (x1 == x2) | (difference.astype(float) <= atol + rtol * jnp.abs(x2).astype(unsigned).astype(float))


_equal, _not_equal, _where = map(jit_inline, (jnp.equal, jnp.not_equal, jnp.where))
_less, _less_equal = map(jit_inline, (jnp.less, jnp.less_equal))
_greater, _greater_equal = map(jit_inline, (jnp.greater, jnp.greater_equal))
