"""Derivatives of reductions along axes."""

from __future__ import annotations

import math

import numpy as np

from multiop._values import args

from ..._record import Traced, array_of, in_float32, ops
from .elementwise import to_larger
from .formula import by_formula, conj, reshape_gradient, zero

op_argmax = op_argmin = op_all = op_any = zero


op_sum = (lambda u, _y, like, axis, _k: spread(u if axis is None else keep_axes(u, like, axis), like.shape),)


def of_product(u, _y, x, axis, keepdims, dtype):
    """Return for each entry the product of those before and after it: a quotient would fail at 0."""
    if not x.size:
        return None
    axes = args.axes(axis, x.ndim)
    last = range(-len(axes), 0)
    rows = ops.moveaxis(ops.cast(x, dtype) if dtype else x, axes, last)
    flat = ops.reshape(rows, (*rows.shape[: x.ndim - len(axes)], math.prod(x.shape[k] for k in axes)))
    ends = np.ones((*flat.shape[:-1], 1), flat.dtype)
    before = ops.cumprod(ops.concatenate([ends, flat[..., :-1]], -1), -1, None)
    after = ops.flip(ops.cumprod(ops.concatenate([ends, ops.flip(flat[..., 1:], -1)], -1), -1, None), -1)
    others = ops.moveaxis(ops.reshape(conj(before * after), rows.shape), last, axes)
    return keep_axes(u, x, axis) * others


op_prod = (of_product,)


op_mean = (
    lambda u, _y, like, axis, _keepdims: spread(ops.divide(keep_axes(u, like, axis), count(like, axis)), like.shape),
)


def op_var(u, x, axis, keepdims):
    return keep_axes(u, x, axis) * 2 * (subtract_mean(x, axis) / count(x, axis))


def op_std(u, x, axis, keepdims):
    y = ops.std(x, axis, True)
    constant = ops.equal(y, 0)  # there, the root has an infinite gradient, but the deviation a gradient of 0
    distance = subtract_mean(subtract_mean(x, axis), axis)  # the mean of equal numbers may be rounded to another one
    return ops.where(constant, 0, keep_axes(u, x, axis) / (count(x, axis) * ops.where(constant, 1, y))) * distance


def op_logsumexp(u, x, axis, keepdims):
    top = np.max(array_of(x), args.axes(axis, x.ndim), keepdims=True, initial=-np.inf)
    terms = np.exp(x - np.where(np.isfinite(top), top, 0))
    total = ops.sum(terms, axis, True)
    return keep_axes(u, x, axis) * (terms / ops.where(ops.equal(total, 0), 1, total))


def of_running_sum(u, _y, like, axis, _dtype):
    return reshape_gradient(ops.flip(ops.cumsum(ops.flip(u, axis or 0), axis or 0, None), axis or 0), like.shape)


op_cumsum = (of_running_sum,)


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
    if axis is None:
        return reshape_gradient(y, (1,) * x.ndim)
    shape = list(x.shape)
    for k in args.axes(axis, x.ndim):
        shape[k] = 1
    return reshape_gradient(y, tuple(shape))


def spread(u, shape):
    """Return `u` broadcast: many plain numbers as a view, which takes longer to make than few numbers to copy."""
    if isinstance(u, Traced) or math.prod(shape) < 10_000:
        return ops.broadcast_to(np.asarray(u) if isinstance(u, np.generic) else u, shape)
    return np.broadcast_to(u, shape)


def count(x, axis):
    return float(math.prod(x.shape if axis is None else [x.shape[k] for k in args.axes(axis, x.ndim)]))


def subtract_mean(x, axis):
    return x - ops.mean(x, axis, True)


def extremum(which, lowest, winning):
    """Return the rule of a largest or smallest entry: those of a tie share the gradient, and `initial` is one more."""

    def reduce_or_keep(x, y, axis, initial):
        return keep_axes(y, x, axis) if initial is None else getattr(ops, which)(array_of(x), axis, True, lowest)

    def rule(u, y, x, axis, _keepdims, initial):
        y, u = reduce_or_keep(x, y, axis, initial), keep_axes(u, x, axis)
        u = u if initial is None else winning(u, y, initial)
        equal = ops.equal(x, y)
        return ops.where(equal, ops.divide(u, ops.sum(equal.astype(u.dtype), axis, True)), 0)

    def of_initial(u, y, x, axis, _keepdims, initial):
        return winning(keep_axes(u, x, axis), initial, reduce_or_keep(x, y, axis, initial))

    return (rule, None, None, of_initial)


op_max = extremum("max", -np.inf, to_larger)
op_min = extremum("min", np.inf, lambda u, x1, x2: to_larger(u, x2, x1))
