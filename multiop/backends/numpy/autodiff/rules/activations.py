"""Derivatives of activations; at a kink, the one on the left, or the one of less size."""

from __future__ import annotations

import math

import numpy as np

from ..._record import ops
from ...ops.activations import ALPHA, SCALE
from .elementwise import sech_squared
from .formula import by_slope, is_complex

op_relu = (lambda u, _y, x: ops.where(ops.greater(x, 0), u, 0),)
op_softmax = (lambda u, y, _x, axis: y * (u - ops.sum(u * y, axis, True)),)


op_log_softmax = (lambda u, _y, x, axis: u - ops.softmax(x, axis) * ops.sum(u, axis, True),)
op_relu6 = (lambda u, _y, x: ops.where(ops.greater(x, 0) & ops.less(x, 6), u, 0),)
op_leaky_relu = (lambda u, _y, x, slope: ops.where(ops.greater(x, 0), u, slope * u),)


op_sigmoid = by_slope(lambda x: ops.sigmoid(x) * (1 - ops.sigmoid(x)) if is_complex(x) else sech_squared(x * 0.5) / 4)
op_softplus = (lambda u, _y, x: u * ops.sigmoid(x),)
op_elu = by_slope(lambda x, alpha: ops.where(ops.greater(x, 0), 1.0, alpha * np.exp(below(x))))
op_celu = by_slope(lambda x, alpha: ops.where(ops.greater(x, 0), 1.0, np.exp(below(x) / alpha)))
op_selu = by_slope(lambda x: SCALE * ops.where(ops.greater(x, 0), 1.0, ALPHA * np.exp(below(x))))
op_silu = by_slope(lambda x: ops.sigmoid(x) * (1 + x * ops.sigmoid(-x)))


@by_slope
def op_gelu(x, approximate):
    x = ops.clip(x, -64, 64)  # beyond, nothing changes but that powers overflow
    if approximate:
        y = math.sqrt(8 / math.pi) * (x + 0.044715 * x * np.square(x))
        change = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * np.square(x))
        return ops.sigmoid(y) * (1 + x * ops.sigmoid(-y) * change)
    return ops.erfc(x * -math.sqrt(0.5)) / 2 + x * np.exp(np.square(x) / -2) / math.sqrt(2 * math.pi)


op_soft_shrink = (lambda u, _y, x, threshold: ops.where(ops.greater(abs(x), threshold), u, 0),)
op_hard_shrink = (lambda u, _y, x, threshold: ops.where(ops.less_equal(abs(x), threshold), 0, u),)
op_threshold = (lambda u, _y, x, threshold, _value: ops.where(ops.less_equal(x, threshold), 0, u),)
op_hard_sigmoid = (lambda u, _y, x: ops.where(ops.less(abs(x), 3), u / 6, 0),)
op_hard_silu = (lambda u, _y, x: ops.where(ops.less(abs(x), 3), u * (x / 3 + 0.5), ops.where(ops.greater(x, 0), u, 0)),)
op_log_sigmoid = by_slope(lambda x: ops.sigmoid(-x))
op_softsign = (lambda u, _y, x: u / (1 + np.abs(x)) / (1 + np.abs(x)),)
op_tanh_shrink = by_slope(lambda x: np.square(np.tanh(x)))


def below(x):
    """Return `x` where it is below 0: at 0, there is no second derivative."""
    return ops.where(ops.less(x, 0), x, 0)
