"""Entries picked out by their indices."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from multiop import errors

from .conversion import along, convert
from .elementwise import is_known


def op_take(x, indices, axis):
    x, axis = along(convert(x), axis)
    indices, outside = within(indices, x.shape[axis])
    if x.shape[axis]:
        picked = jnp.take(x, indices, axis, mode="clip")
    else:  # jnp.take returns a shape that is wrong
        picked = jnp.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return picked if outside is None else blank(picked, outside[(..., *[None] * (x.ndim - axis - 1))])


def op_take_along_axis(x, indices, axis):
    x, axis = along(convert(x), axis)
    indices, outside = within(indices, x.shape[axis])
    if indices.ndim != x.ndim:
        raise errors.ArgumentError(f"indices has {indices.ndim} dimensions, x has {x.ndim}")
    picked = jnp.take_along_axis(x, indices, axis, mode="clip")
    return picked if outside is None else blank(picked, outside)


def within(indices, size):
    """Return indices from 0 to `size`, and where they were out of range, unless that could be seen, and raised."""
    indices = convert(indices)
    if indices.dtype.kind not in "iu":
        raise errors.DTypeError("indices must be integers")
    outside = (indices < -size) | (indices >= size)
    if is_known(outside):
        if bool(jnp.any(outside)):
            raise errors.ArgumentError(f"an index is out of range for {size} entries")
        outside = None
    return jnp.where(indices < 0, indices + size, indices), outside


def blank(x, outside):
    return jnp.where(outside, np.nan if jnp.issubdtype(x.dtype, np.inexact) else 0, x).astype(x.dtype)
