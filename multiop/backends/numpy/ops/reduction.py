"""Reductions along axes."""

from __future__ import annotations

import functools
import math

import numpy as np

from multiop._values import args, dtypes

from ..conversion import convert, dtype_name, in_float32, of_floats, of_reals, promote, reject_complex
from .elementwise import op_maximum, op_minimum

# sums and products are computed in at least 32 bits
ACCUMULATED = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}


def mean(x, axis, keepdims):
    axes = args.axes(axis, x.ndim)
    n = math.prod(x.shape[axis] for axis in axes)
    return np.sum(x, axes, keepdims=keepdims) / x.dtype.type(n)


def variance(x, axis, keepdims):
    return mean(np.square(np.abs(x - mean(x, axis, True))), axis, keepdims)


def total(fn):
    """Return the op that adds or multiplies entries."""

    def op(x, axis, keepdims, dtype=None):
        x = summands(x, dtype)
        return in_float32(lambda x: fn(x, args.axes(axis, x.ndim), x.dtype, keepdims=keepdims), x)

    return op


op_sum = total(np.sum)
op_prod = total(np.prod)


op_mean = of_floats(mean)
op_var = of_floats(variance)
op_std = of_floats(lambda x, axis, keepdims: np.sqrt(variance(x, axis, keepdims)))


def place(fn):
    """Return the op that tells where an entry is."""

    def op(x, axis, keepdims):
        (x,) = reject_complex(convert(x))
        axis = None if axis is None else args.single_axis(axis, x.ndim)
        return fn(x, axis, keepdims=keepdims).astype(np.int32)

    return op


def of_truths(fn):
    def op(x, axis, keepdims):
        x = convert(x, "bool")
        return fn(x, args.axes(axis, x.ndim), keepdims=keepdims)

    return op


def extremum(reduce, pairwise, which, x, axis, keepdims, initial):
    (x,) = reject_complex(convert(x))
    axes = args.axes(axis, x.ndim)
    if initial is None:
        return reduce(x, axes, keepdims=keepdims)
    x, initial = promote(x, initial)
    return pairwise(reduce(x, axes, keepdims=keepdims, initial=identity(x)[which]), initial)


op_max = functools.partial(extremum, np.max, op_maximum, 0)
op_min = functools.partial(extremum, np.min, op_minimum, 1)
op_argmax = place(np.argmax)
op_argmin = place(np.argmin)
op_all = of_truths(np.all)
op_any = of_truths(np.any)


@of_reals
def op_logsumexp(x, axis, keepdims):
    axes = args.axes(axis, x.ndim)
    top = np.max(x, axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, x.dtype.type(0))
    y = np.log(np.sum(np.exp(x - shift), axes, keepdims=True)) + shift
    return y if keepdims else np.squeeze(y, axes)


def so_far(fn):
    def op(x, axis, dtype):
        x, axis = flat_along(summands(x, dtype), axis)
        return in_float32(lambda x: fn(x, axis, x.dtype), x)

    return op


op_cumsum = so_far(np.cumsum)
op_cumprod = so_far(np.cumprod)


def summands(x, dtype):
    x = convert(x, dtype)
    return x if dtype else convert(x, ACCUMULATED.get(dtype_name(x)))


def identity(x):
    """Return the maximum and the minimum of no entries in the dtype of `x`."""
    return dtypes.IDENTITY.get(dtype_name(x), (False, True))


def flat_along(x, axis):
    """Return `x` and `axis` as a non-negative int; for `None`, `x` flattened and 0."""
    return (x.reshape(-1), 0) if axis is None else (x, args.single_axis(axis, x.ndim))
