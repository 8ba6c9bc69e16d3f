"""Activations of neural networks."""

from __future__ import annotations

import math

import numpy as np
import scipy

from multiop import _args

from ..conversion import bool_to_int32, convert, floating, in_float32, reject_complex


def op_relu(x):
    return np.maximum(*reject_complex(*bool_to_int32(convert(x))), 0)


def op_sigmoid(x):
    return in_float32(sigmoid, floating(x))


def op_softplus(x):
    return in_float32(softplus, *reject_complex(floating(x)))


def op_softmax(x, axis):
    (x,) = reject_complex(floating(x))
    return in_float32(lambda x: softmax(x, _args.single_axis(axis, x.ndim)), x)


def op_log_softmax(x, axis):
    (x,) = reject_complex(floating(x))
    return in_float32(lambda x: log_softmax(x, _args.single_axis(axis, x.ndim)), x)


def op_relu6(x):
    return np.minimum(op_relu(x), 6)


def op_leaky_relu(x, negative_slope):
    return in_float32(lambda x: np.where(x > 0, x, negative_slope * x), *reject_complex(floating(x)))


def op_elu(x, alpha):
    return in_float32(lambda x: elu(x, alpha), *reject_complex(floating(x)))


def op_celu(x, alpha):
    return in_float32(lambda x: np.where(x > 0, x, alpha * np.expm1(x / alpha)), *reject_complex(floating(x)))


def op_selu(x):
    return in_float32(lambda x: SCALE * elu(x, ALPHA), *reject_complex(floating(x)))


def op_silu(x):
    return in_float32(lambda x: x * sigmoid(x), *reject_complex(floating(x)))


def op_gelu(x, approximate):
    return in_float32(gelu_by_tanh if approximate else gelu, *reject_complex(floating(x)))


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    x, gate = np.split(x, 2, _args.halved_axis(axis, x.shape))
    return in_float32(lambda x, gate: x * sigmoid(gate), x, gate)


def op_log_sigmoid(x):
    return in_float32(lambda x: -softplus(-x), *reject_complex(floating(x)))


def op_softsign(x):
    return in_float32(lambda x: x / (1 + np.abs(x)), *reject_complex(floating(x)))


def op_soft_shrink(x, threshold):
    return in_float32(lambda x: x - np.clip(x, -threshold, threshold), *reject_complex(floating(x)))


def op_hard_shrink(x, threshold):
    return in_float32(lambda x: np.where(np.abs(x) <= threshold, 0, x), *reject_complex(floating(x)))


def op_tanh_shrink(x):
    return in_float32(lambda x: x - np.tanh(x), *reject_complex(floating(x)))


def op_threshold(x, threshold, default_value):
    return in_float32(lambda x: np.where(x <= threshold, default_value, x), *reject_complex(floating(x)))


def op_hard_sigmoid(x):
    return in_float32(hard_sigmoid, *reject_complex(floating(x)))


def op_hard_silu(x):
    return in_float32(lambda x: x * hard_sigmoid(x), *reject_complex(floating(x)))


# formulas

SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def softmax(x, axis):
    weights = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return weights / np.sum(weights, axis, keepdims=True)


def log_softmax(x, axis):
    x = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return x - np.log(np.sum(np.exp(x), axis, keepdims=True))


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(x))


def gelu(x):
    return x * (scipy.special.erfc(x * -math.sqrt(0.5)) / 2)  # erf would lose digits


def gelu_by_tanh(x):
    return x * sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))


def hard_sigmoid(x):
    return np.clip(x + 3, 0, 6) / 6
