"""Reductions along axes."""

import math

import numpy as np

from multiop import extend

from .conversion import Tensor, convert, dtype_name, floating, native, record
from .elementwise import op_maximum, op_minimum, op_multiply, real
from .shapes import op_broadcast_to, op_reshape


def op_sum(x, axis, keepdims):
    x = convert(x)
    narrow = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    dtype = native(narrow.get(dtype_name(x), dtype_name(x)))
    return reduce(x, axis, keepdims, dtype, lambda total, n: total)


def op_mean(x, axis, keepdims):
    x = floating(x)
    return reduce(x, axis, keepdims, x.dtype, lambda total, n: total / n)


def op_max(x, axis, keepdims, initial):
    return extreme(np.max, op_maximum, 0, x, axis, keepdims, initial)


def op_min(x, axis, keepdims, initial):
    return extreme(np.min, op_minimum, 1, x, axis, keepdims, initial)


def op_all(x, axis, keepdims):
    x = convert(x)
    return Tensor(np.all(x.array, extend.axes(axis, x.ndim), keepdims=keepdims))


def reduce(x, axis, keepdims, dtype, share):
    """Return the `share` of the sum of `n` entries, in `dtype`; it is that of each in the gradient, too."""
    axes = extend.axes(axis, x.ndim)
    n = math.prod(x.shape[dim] for dim in axes)

    def run(array):
        wide = np.float32 if dtype.itemsize == 2 else dtype  # halves add up badly
        return np.asarray(share(array.sum(axes, wide, keepdims=keepdims), n)).astype(dtype)

    return record(run, (x, lambda u: op_broadcast_to(op_reshape(share(u, n), kept(x, axes)), x.shape)))


def extreme(function, pairwise, k, x, axis, keepdims, initial):
    (x,) = real(convert(x))
    axes = extend.axes(axis, x.ndim)
    least = {} if initial is None else {"initial": extend.IDENTITY.get(dtype_name(x), (False, True))[k]}

    def pull(u):
        is_extreme = x.array == function(x.array, axes, keepdims=True, **least)
        with np.errstate(invalid="ignore"):
            share = np.divide(is_extreme, is_extreme.sum(axes, keepdims=True))  # equal ones share the gradient
        return op_multiply(op_reshape(u, kept(x, axes)), convert(Tensor(share), dtype_name(x)))

    y = record(function, (x, pull), axis=axes, keepdims=keepdims, **least)
    return y if initial is None else pairwise(y, convert(initial, dtype_name(x)))


def kept(x, axes):
    """Return the shape of a reduction of `x` that keeps its dimensions."""
    return tuple(1 if dim in axes else size for dim, size in enumerate(x.shape))
