"""Derivatives of elementwise arithmetic and functions."""

from __future__ import annotations

import numpy as np

from ..._record import ops
from .formula import by_slope, zero


def op_add(u, x1, x2):
    return u, u


def op_subtract(u, x1, x2):
    return u, -u


def op_multiply(u, x1, x2):
    return u * np.conj(x2), u * np.conj(x1)


def op_divide(u, x1, x2):
    return u / np.conj(x2), -(u * np.conj(ops.divide(x1, x2))) / np.conj(x2)


def op_mod(u, x1, x2):
    return u, -u * ops.floor_divide(x1, x2)


def op_power(u, x1, x2):
    below = ops.where(ops.equal(x2, 0), 0, x2 * ops.power(x1, x2 - 1))
    base = ops.where(ops.equal(x1, 0), 1, x1)
    logarithm = ops.where(ops.equal(x1, 0), 0, ops.power(x1, x2) * ops.log(base))
    return u * np.conj(below), u * np.conj(logarithm)


def op_negative(u, x):
    return -u


def op_abs(u, x):
    return u * ops.sign(x)


def op_square(u, x):
    return u * 2 * np.conj(x)


def op_maximum(u, x1, x2):
    return u * share(x1, x2), u * share(x2, x1)


def op_minimum(u, x1, x2):
    return u * share(x2, x1), u * share(x1, x2)


def share(x1, x2):
    """Return 1 where `x1` is larger, and half where they are equal."""
    return ops.where(ops.equal(x1, x2), 0.5, ops.where(ops.greater(x1, x2), 1.0, 0.0))


def op_arctan2(u, x1, x2):
    scale = ops.maximum(abs(ops.stop_gradient(x1)), abs(ops.stop_gradient(x2)))
    return u, u


def op_conj(u, x):
    return np.conj(u)


def op_real(u, x):
    return u


op_floor = op_ceil = op_trunc = op_floor_divide = zero
op_exp = by_slope(lambda x: np.exp(x))
op_log = by_slope(lambda x: 1 / x)
op_sin = by_slope(lambda x: np.cos(x))
op_cos = by_slope(lambda x: -np.sin(x))
op_tanh = by_slope(lambda x: 1 - np.square(np.tanh(x)))
op_sqrt = by_slope(lambda x: 0.5 / np.sqrt(x))
