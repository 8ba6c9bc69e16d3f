"""Tensors made from shapes and numbers."""

from __future__ import annotations

import jax.numpy as jnp

from multiop import _dtypes, _host, errors

from .conversion import convert, native


def op_zeros(shape, dtype):
    return jnp.zeros(shape, native(dtype))


def op_ones(shape, dtype):
    return jnp.ones(shape, native(dtype))


def op_full(shape, fill_value, dtype):
    return jnp.broadcast_to(convert(fill_value, dtype), shape)


def op_zeros_like(x, dtype):
    return jnp.zeros_like(convert(x), dtype and native(dtype))


def op_ones_like(x, dtype):
    return jnp.ones_like(convert(x), dtype and native(dtype))


def op_full_like(x, fill_value, dtype):
    x = convert(x)
    return jnp.broadcast_to(convert(fill_value, dtype or _dtypes.name(x.dtype)), x.shape)


def op_arange(start, stop, step, dtype):
    ends = (start, stop, step)
    dtype = native(
        dtype
        or _dtypes.result_type(*[_dtypes.of_scalar(x) if _host.is_scalar(x) else _dtypes.name(x.dtype) for x in ends])
    )
    if _host.is_scalar(step) and step == 0:
        raise errors.ArgumentError("step must not be 0")
    return jnp.arange(start, stop, step, dtype)


def op_eye(n, m, k, dtype):
    return jnp.eye(n, m, k, native(dtype))


def op_copy(x):
    return jnp.copy(convert(x))
