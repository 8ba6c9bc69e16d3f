"""Tensors made from shapes and numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from multiop._values import args, dtypes, host

from ..conversion import convert, floating, jit_inline, native, promote, reject_complex

FEW = 2048  # entries, which NumPy makes in a tenth of the time


def op_zeros(shape, dtype):
    return jnp.zeros(args.countable(shape), native(dtype))  # others end the process


def op_ones(shape, dtype):
    return jnp.ones(args.countable(shape), native(dtype))


def op_full(shape, fill_value, dtype):
    return jnp.broadcast_to(convert(fill_value, dtype), args.countable(shape))


def op_zeros_like(x, dtype):
    return jnp.zeros_like(convert(x), dtype and native(dtype))


def op_ones_like(x, dtype):
    return jnp.ones_like(convert(x), dtype and native(dtype))


def op_full_like(x, fill_value, dtype):
    x, dtype = convert(x), dtype or dtypes.name(convert(x).dtype)
    if host.is_scalar(fill_value):
        return jnp.full_like(x, host.scalar(fill_value, dtype), native(dtype))  # stays on the devices of x
    return jnp.broadcast_to(convert(fill_value, dtype), x.shape)


def op_arange(start, stop, step, dtype):
    if type(start) is type(stop) is type(step) is int and step and len(range(start, stop, step)) <= FEW:
        return _tensor(np.arange(start, stop, step, native(dtype)))
    return jnp.arange(start, stop, step, native(dtype))


_tensor = jit_inline(lambda x: x)


def op_eye(n, m, k, dtype):
    return jnp.eye(*args.countable((n, m)), k, native(dtype))


def op_copy(x):
    return jnp.copy(convert(x))


def op_linspace(start, stop, num, endpoint, dtype, axis):
    ends = promote(start, stop)
    axis = args.single_axis(axis, max(x.ndim for x in ends) + 1)
    return _linspace(ends, [floating(x) for x in ends], num, endpoint, dtype, axis)


def _space_evenly(ends, floats, num, endpoint, dtype, axis):
    given = dtypes.name(floats[0].dtype)
    wide = jnp.promote_types(floats[0].dtype, np.float32)
    ends, (start, stop) = [x[None] for x in ends], (x[None].astype(wide) for x in floats)  # as `index` is
    unit = jnp.where(jnp.isfinite(stop - start), 1, 4).astype(wide)  # the distance of large numbers overflows
    delta, parts = stop / unit - start / unit, num - endpoint
    index = jnp.arange(num, dtype=delta.real.dtype).reshape(num, *[1] * (delta.ndim - 1))
    step = delta / max(parts, 1)
    whole = dtype in dtypes.INTEGER
    if ends[0].dtype.kind in "iu":
        samples = between_integers(*ends, index, max(parts, 1), whole, wide)
    else:  # a rounded step may miss an integer
        samples = (start / unit + (index * delta / max(parts, 1) if whole else index * step)) * unit
        samples = jnp.floor(*reject_complex(samples)) if whole else samples
    if endpoint and num > 1:
        samples = jnp.where(index == parts, ends[1] if samples.dtype.kind in "iu" else stop, samples)
    step = step * unit if parts > 0 else jnp.full_like(step, jnp.nan)
    return jnp.moveaxis(convert(samples, dtype or given), 0, axis), convert(step[0], given)


_linspace = jit_inline(_space_evenly, static_argnums=(2, 3, 4, 5))


def between_integers(start, stop, index, parts, whole, wide):
    """Return the numbers between two integers: multiples of the quotient, exactly, and a part of the remainder.

    In float32, large ends would be rounded, and numbers near 0 with them.
    """
    start, stop = (x if x.dtype.itemsize >= 4 else x.astype(np.int32) for x in (start, stop))
    unsigned, falls = np.dtype(f"uint{8 * start.dtype.itemsize}"), stop < start
    delta = jnp.where(falls, start - stop, stop - start).astype(unsigned)
    whole_part = (index.astype(unsigned) * (delta // parts)).astype(start.dtype)
    base = jnp.where(falls, start - whole_part, start + whole_part)
    rest = index.astype(wide) * (delta % parts).astype(wide) / parts
    rest = jnp.where(falls, -rest, rest)
    return base + jnp.floor(rest).astype(base.dtype) if whole else base.astype(wide) + rest
