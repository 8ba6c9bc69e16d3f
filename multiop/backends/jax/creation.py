"""Tensors made from shapes and numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from multiop import _args, _dtypes, _host

from .conversion import convert, native, promote_floating
from .elementwise import reject_complex


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
    x, dtype = convert(x), dtype or _dtypes.name(convert(x).dtype)
    if _host.is_scalar(fill_value):
        return jnp.full_like(x, _host.scalar(fill_value, dtype), native(dtype))  # stays on the devices of x
    return jnp.broadcast_to(convert(fill_value, dtype), x.shape)


def op_arange(start, stop, step, dtype):
    return jnp.arange(start, stop, step, native(dtype))


def op_eye(n, m, k, dtype):
    return jnp.eye(n, m, k, native(dtype))


def op_copy(x):
    return jnp.copy(convert(x))


def op_linspace(start, stop, num, endpoint, dtype, axis):
    start, stop = promote_floating(start, stop)
    given = _dtypes.name(start.dtype)
    wide = jnp.promote_types(start.dtype, np.float32)
    start, stop = start.astype(wide), stop.astype(wide)
    delta, parts = stop - start, num - endpoint
    axis = _args.single_axis(axis, delta.ndim + 1)
    index = jnp.arange(num, dtype=delta.real.dtype).reshape(num, *[1] * delta.ndim)
    step = delta / max(parts, 1)
    whole = dtype in _dtypes.INTEGER
    # a rounded step may miss an integer
    samples = start + (index * delta / max(parts, 1) if whole else index * step)
    if endpoint and num > 1:
        samples = jnp.where(index == parts, stop, samples)
    samples = convert(jnp.floor(*reject_complex(samples)) if whole else samples, dtype or given)
    return jnp.moveaxis(samples, 0, axis), convert(step if parts > 0 else jnp.full_like(step, jnp.nan), given)
