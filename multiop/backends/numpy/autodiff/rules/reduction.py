"""Derivatives of reductions along axes."""

from __future__ import annotations

import math

import numpy as np

from multiop._values import args

from ..._record import array_of, in_float32, ops
from .formula import by_formula, zero

op_argmax = op_argmin = op_all = op_any = zero


def op_sum(u, x, axis, keepdims):
    return ops.broadcast_to(keep_axes(u, x, axis), x.shape)


@by_formula
def op_prod(x, axis, keepdims, dtype):
    if not x.size:
        return np.ones(())
    x, axes = in_float32(ops.cast(x, dtype) if dtype else x), args.axes(axis, x.ndim)
    for dim in axes:
        while (half := x.shape[dim] // 2) > 0:  # in pairs: a quotient would fail at 0
            first, second, rest = ops.split(x, [half, 2 * half], dim)
            x = ops.concatenate([first * second, rest], dim)
    return x if keepdims else ops.squeeze(x, axes)


def op_mean(u, x, axis, keepdims):
    return ops.broadcast_to(ops.divide(keep_axes(u, x, axis), count(x, axis)), x.shape)


def op_var(u, x, axis, keepdims):
    return keep_axes(u, x, axis) * 2 * (subtract_mean(x, axis) / count(x, axis))


def op_std(u, x, axis, keepdims):
    y = ops.std(x, axis, True)
    constant = ops.equal(y, 0)  # there, the root has an infinite gradient, but the deviation a gradient of 0
    distance = subtract_mean(subtract_mean(x, axis), axis)  # the mean of equal numbers may be rounded to another one
    return ops.where(constant, 0, keep_axes(u, x, axis) / (count(x, axis) * ops.where(constant, 1, y))) * distance


def op_max(u, x, axis, keepdims, initial):
    return extremum(ops.max, ops.maximum, -np.inf)(u, x, axis, keepdims, initial)


def op_min(u, x, axis, keepdims, initial):
    return extremum(ops.min, ops.minimum, np.inf)(u, x, axis, keepdims, initial)


def op_logsumexp(u, x, axis, keepdims):
    top = np.max(array_of(x), args.axes(axis, x.ndim), keepdims=True, initial=-np.inf)
    terms = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = ops.sum(terms, axis, True)
    return keep_axes(u, x, axis) * (terms / ops.where(ops.equal(total, 0), 1, total))


def op_cumsum(u, x, axis, dtype):
    axis = axis or 0
    return ops.reshape(ops.flip(ops.cumsum(ops.flip(u, axis), axis, None), axis), x.shape)


@by_formula
def op_cumprod(x, axis, dtype):
    x, axis = (ops.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    x, n, step = in_float32(ops.cast(x, dtype) if dtype else x), x.shape[axis], 1
    while step < n:
        first, later = ops.split(x, [step], axis)
        x = ops.concatenate([first, later * ops.split(x, [n - step], axis)[0]], axis)
        step *= 2
    return x


def keep_axes(y, x, axis):
    """Return a reduction of `x` with the axes that were reduced, of size 1."""
    axes = args.axes(axis, x.ndim)
    return ops.reshape(y, tuple(1 if k in axes else n for k, n in enumerate(x.shape)))


def count(x, axis):
    return float(math.prod(x.shape[k] for k in args.axes(axis, x.ndim)))


def subtract_mean(x, axis):
    return x - ops.mean(x, axis, True)


def extremum(reduce, pairwise, lowest):
    """Return the rule of a largest or smallest entry: those of a tie share the gradient."""

    def rule(u, x, axis, keepdims, initial):
        if initial is not None:
            return reduce_from_initial(u, x, axis, keepdims, initial)
        equal = ops.equal(x, reduce(x, axis, True, None))
        number = ops.sum(equal.astype(u.dtype), axis, True)
        return ops.where(equal, ops.divide(keep_axes(u, x, axis), number), 0)

    @by_formula
    def reduce_from_initial(x, axis, keepdims, initial):
        y = reduce(x, axis, keepdims, None) if math.prod(ops.shape(x)) else reduce(array_of(x), axis, keepdims, lowest)
        return pairwise(y, initial)

    return rule
