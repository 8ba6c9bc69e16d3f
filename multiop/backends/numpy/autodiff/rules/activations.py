"""Derivatives of activations; at a kink, the one on the left, or the one of less size."""

from __future__ import annotations

import math

import numpy as np

from ..._record import ops
from ...ops.activations import ALPHA, SCALE
from .elementwise import sech_squared
from .formula import by_formula, by_slope, is_complex, sloped

op_relu = (lambda u, _y, x: ops.where(ops.greater(x, 0), u, 0),)
op_softmax = (lambda u, y, _x, axis: y * (u - ops.sum(u * y, axis, True)),)


def op_log_softmax(u, x, axis):
    return u - ops.softmax(x, axis) * ops.sum(u, axis, True)


def op_relu6(u, x):
    return ops.where(ops.greater(x, 0) & ops.less(x, 6), u, 0)


def op_leaky_relu(u, x, negative_slope):
    return ops.where(ops.greater(x, 0), u, negative_slope * u)


@by_slope
def op_sigmoid(x):
    if is_complex(x):
        return ops.sigmoid(x) * (1 - ops.sigmoid(x))
    return sech_squared(x * 0.5) / 4


@by_slope
def op_softplus(x):
    return ops.sigmoid(x)


@by_slope
def op_elu(x, alpha):
    return ops.where(ops.greater(x, 0), 1.0, alpha * np.exp(below(x)))


@by_slope
def op_celu(x, alpha):
    return ops.where(ops.greater(x, 0), 1.0, np.exp(below(x) / alpha))


@by_slope
def op_selu(x):
    return SCALE * ops.where(ops.greater(x, 0), 1.0, ALPHA * np.exp(below(x)))


@by_slope
def op_silu(x):
    return ops.sigmoid(x) * (1 + x * ops.sigmoid(-x))


@by_slope
def op_gelu(x, approximate):
    x = ops.clip(x, -64, 64)  # beyond, nothing changes but that powers overflow
    if approximate:
        y = math.sqrt(8 / math.pi) * (x + 0.044715 * x * np.square(x))
        change = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * np.square(x))
        return ops.sigmoid(y) * (1 + x * ops.sigmoid(-y) * change)
    return ops.erfc(x * -math.sqrt(0.5)) / 2 + x * np.exp(np.square(x) / -2) / math.sqrt(2 * math.pi)


@by_formula
def op_glu(x, axis):
    x, gate = ops.split(x, 2, axis)
    return x * ops.sigmoid(gate)


def op_soft_shrink(u, x, threshold):
    return ops.where(ops.greater(abs(x), threshold), u, 0)


def op_hard_shrink(u, x, threshold):
    return ops.where(ops.less_equal(abs(x), threshold), 0, u)


def op_threshold(u, x, threshold, default_value):
    return ops.where(ops.less_equal(x, threshold), 0, u)


def op_hard_sigmoid(u, x):
    return ops.where(ops.less(abs(x), 3), u / 6, 0)


def op_hard_silu(u, x):
    return ops.where(ops.less(abs(x), 3), u * (x / 3 + 0.5), ops.where(ops.greater(x, 0), u, 0))


op_log_sigmoid = by_slope(lambda x: ops.sigmoid(-x))
op_softsign = by_slope(lambda x: softsign_slope(x, 1))
op_tanh_shrink = by_slope(lambda x: np.square(np.tanh(x)))


def softsign_slope(x, n):
    """Return a derivative of softsign, which is a factor over a power: that of a quotient would lose digits."""

    def value(x):
        slope = (-1.0) ** (n - 1) * math.factorial(n) / (1 + np.abs(x)) ** (n + 1)
        return slope if n % 2 else np.sign(x) * slope

    return sloped(value, lambda x: softsign_slope(x, n + 1), x)


def below(x):
    """Return `x` where it is below 0: at 0, there is no second derivative."""
    return ops.where(ops.less(x, 0), x, 0)
