"""Arrays made from shapes and numbers."""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args, dtypes

from ..conversion import HALVES, convert, dtype_name, native, promote, reject_complex


def op_zeros(shape, dtype):
    return np.zeros(shape, native(dtype))


def op_ones(shape, dtype):
    return np.ones(shape, native(dtype))


def op_full(shape, fill_value, dtype):
    return np.broadcast_to(convert(fill_value, dtype), shape)


def op_zeros_like(x, dtype):
    return op_full_like(x, 0, dtype)


def op_ones_like(x, dtype):
    return op_full_like(x, 1, dtype)


def op_full_like(x, fill_value, dtype):
    x = convert(x)
    return np.broadcast_to(convert(fill_value, dtype or dtype_name(x)), x.shape)


def op_arange(start, stop, step, dtype):
    if step == 0:
        raise errors.ArgumentError("step must not be 0")
    return np.arange(start, stop, step).astype(native(dtype))


def op_eye(n, m, k, dtype):
    return np.eye(n, m, k, native(dtype))


def op_copy(x):
    return convert(x)


def op_linspace(start, stop, num, endpoint, dtype, axis):
    start, stop = promote(start, stop)
    given = dtypes.to_floating(dtype_name(start))
    # in float32, large integers would be rounded, and numbers near 0 with them
    wide = np.float32 if start.dtype in HALVES else np.float64 if start.dtype.kind in "biu" else start.dtype
    shape = np.broadcast_shapes(start.shape, stop.shape)
    axis = args.single_axis(axis, len(shape) + 1)
    start, stop = start.astype(wide), stop.astype(wide)
    unit = 4 if np.isinf(stop - start).any() else 1  # the distance of large numbers overflows
    samples, step = np.linspace(start / unit, stop / unit, num, endpoint, True, axis=axis)
    samples, step = samples * unit, step * unit
    samples = np.floor(*reject_complex(samples)) if dtype in dtypes.INTEGER else samples
    return convert(samples, dtype or given), convert(np.broadcast_to(step, shape), given)
