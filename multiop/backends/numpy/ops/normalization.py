"""Normalization: rescaling entries to a common magnitude."""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args

from .._record import array_of, ops
from ..conversion import floating, in_float32, of_reals, promote_all, reject_complex


@of_reals
def op_normalize(x, axis, order, epsilon):
    axis = args.axes(axis, x.ndim)
    largest = ops.max(abs(array_of(x)), axis, True, 0)  # no power overflows; a constant: it cancels out
    zero = largest == 0
    small = x / ops.where(zero, 1, largest)
    total = ops.sum(np.square(small) if order == 2 else ops.power(abs(small), order), axis, True)
    length = ops.power(ops.where(zero, 1, total), 1 / order)
    return ops.where(ops.less(largest * length, epsilon), x / epsilon, small / length)


def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
    x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
    axis = args.single_axis(axis, x.ndim)
    for name, vector in {"mean": mean, "variance": variance, "offset": offset, "scale": scale}.items():
        if vector is not None and vector.shape != (x.shape[axis],):
            raise errors.ArgumentError(f"{name} must have the shape ({x.shape[axis]},), got {vector.shape}")
    others = [dim for dim in range(x.ndim) if dim != axis]
    pairs = (mean, 0), (variance, 0), (offset, 0), (scale, 1)
    vectors = (ops.expand_dims(default(vector, x, number), others) for vector, number in pairs)
    return in_float32(lambda x, m, v, offset, scale: (x - m) * (scale / np.sqrt(v + epsilon)) + offset, x, *vectors)


def op_layer_normalization(x, gamma, beta, axis, epsilon):
    x, gamma, beta = promote_operands(x, gamma, beta)
    axis = tuple(sorted(args.axes(axis, x.ndim)))
    gamma, beta = fit_parameter(gamma, x, axis, "gamma", 1), fit_parameter(beta, x, axis, "beta", 0)
    return in_float32(lambda x, gamma, beta: standardize(x, axis, epsilon) * gamma + beta, x, gamma, beta)


def op_rms_normalization(x, scale, axis, epsilon):
    x, scale = promote_operands(x, scale)
    axis = tuple(sorted(args.axes(axis, x.ndim)))
    scale = fit_parameter(scale, x, axis, "scale", 1)
    return in_float32(lambda x, scale: x / np.sqrt(ops.mean(x * x, axis, True) + epsilon) * scale, x, scale)


def standardize(x, axis, epsilon):
    centred = x - ops.mean(x, axis, True)
    return centred / np.sqrt(ops.mean(centred * centred, axis, True) + epsilon)


def promote_operands(*xs):
    """Return tensors of one floating dtype; `None` stays."""
    given = iter(reject_complex(*map(floating, promote_all(*[x for x in xs if x is not None]))))
    return [None if x is None else next(given) for x in xs]


def default(vector, x, number):
    return np.full((1,), number, x.dtype) if vector is None else vector


def fit_parameter(parameter, x, axis, name, number):
    """Return `parameter`, or a number in its place, with as many dimensions as `x`, from those of the axes `axis`."""
    if parameter is None:
        return x.dtype.type(number)
    if parameter.ndim == x.ndim:
        return parameter
    if parameter.shape != tuple(x.shape[dim] for dim in axis):
        raise errors.ArgumentError(f"{name} has the shape {parameter.shape}, which does not fit axis {axis}")
    return ops.reshape(parameter, [x.shape[dim] if dim in axis else 1 for dim in range(x.ndim)])
