"""Activations of neural networks."""

from __future__ import annotations

import math

import numpy as np
import scipy

from multiop._values import args

from .._record import ops
from ..conversion import bool_to_int32, convert, of_floats, of_reals, pipeline, reject_complex

SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    axis = args.single_axis(axis, x.ndim)
    weights = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return weights / np.sum(weights, axis, keepdims=True)


def log_softmax(x, axis):
    axis = args.single_axis(axis, x.ndim)
    x = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.sum(np.exp(x), axis, keepdims=True))


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(x))


def gelu(x, approximate):
    if approximate:
        return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))
    return x * (scipy.special.erfc(x * -math.sqrt(0.5)) / 2)  # erf would lose digits


def hard_sigmoid(x):
    return np.clip(x + 3, 0, 6) / 6


op_relu = pipeline(convert, bool_to_int32, reject_complex, lambda x: np.maximum(x, 0))
op_sigmoid = of_floats(sigmoid)
op_softplus = of_reals(lambda x: np.logaddexp(x, 0))
op_softmax = of_reals(softmax)
op_log_softmax = of_reals(log_softmax)
op_relu6 = pipeline(op_relu, lambda x: np.minimum(x, 6))
op_leaky_relu = of_reals(lambda x, negative_slope: np.where(x > 0, x, negative_slope * x))
op_elu = of_reals(elu)
op_celu = of_reals(lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)))
op_selu = of_reals(lambda x: SCALE * elu(x, ALPHA))
op_silu = of_reals(lambda x: x * sigmoid(x))
op_gelu = of_reals(gelu)


@of_reals
def op_glu(x, axis):
    x, gate = ops.split(x, 2, args.halved_axis(axis, x.shape))
    return x * ops.sigmoid(gate)


op_log_sigmoid = of_reals(lambda x: -np.logaddexp(-x, 0))
op_softsign = of_reals(lambda x: x / (1 + np.abs(x)))
op_soft_shrink = of_reals(lambda x, threshold: x - np.clip(x, -threshold, threshold))
op_hard_shrink = of_reals(lambda x, threshold: np.where(np.abs(x) <= threshold, 0, x))
op_tanh_shrink = of_reals(lambda x: x - np.tanh(x))
op_threshold = of_reals(lambda x, threshold, default_value: np.where(x <= threshold, default_value, x))
op_hard_sigmoid = of_reals(hard_sigmoid)
op_hard_silu = of_reals(lambda x: x * hard_sigmoid(x))
