"""Derivatives of normalization."""

from __future__ import annotations

import numpy as np

from multiop._values import args

from ..._record import array_of, ops
from ...ops.normalization import promote_operands
from .formula import by_formula


@by_formula
def op_normalize(x, axis, order, epsilon):
    axis = args.axes(axis, x.ndim)
    largest = ops.max(abs(array_of(x)), axis, True, 0)  # a constant: it cancels out
    zero = largest == 0
    small = x / ops.where(zero, 1, largest)
    total = ops.where(zero, 1, ops.sum(np.square(small) if order == 2 else ops.power(abs(small), order), axis, True))
    length = ops.power(total, 1 / order)
    return ops.where(ops.less(largest * length, epsilon), x / epsilon, small / length)


@by_formula
def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
    x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
    axis = args.single_axis(axis, x.ndim)
    others = [dim for dim in range(x.ndim) if dim != axis]
    factor = ops.rsqrt(ops.expand_dims(variance, others) + epsilon)
    factor = factor if scale is None else factor * ops.expand_dims(scale, others)
    y = (x - ops.expand_dims(mean, others)) * factor
    return y if offset is None else y + ops.expand_dims(offset, others)


@by_formula
def op_layer_normalization(x, gamma, beta, axis, epsilon):
    x, gamma, beta = promote_operands(x, gamma, beta)
    x = x - ops.mean(x, axis, True)
    y = x * ops.rsqrt(ops.mean(np.square(x), axis, True) + epsilon)
    y = y if gamma is None else y * along(gamma, x, axis)
    return y if beta is None else y + along(beta, x, axis)


@by_formula
def op_rms_normalization(x, scale, axis, epsilon):
    x, scale = promote_operands(x, scale)
    y = x * ops.rsqrt(ops.mean(np.square(x), axis, True) + epsilon)
    return y if scale is None else y * along(scale, x, axis)


def along(parameter, x, axis):
    """Return a parameter of the dimensions `axis` of `x` with as many dimensions as `x`."""
    axis = args.axes(axis, x.ndim)
    if parameter.ndim == x.ndim:
        return parameter
    return ops.reshape(parameter, [x.shape[dim] if dim in axis else 1 for dim in range(x.ndim)])
