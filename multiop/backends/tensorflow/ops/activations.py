"""Activations of neural networks."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop._values import args

from ..autodiff._programs import in_one_call
from ..autodiff.custom_gradient import can_link, link_rule, run_unrecorded, with_rule
from ..conversion import (
    beyond_float16,
    bool_to_int32,
    choose,
    convert,
    floating,
    in_float32,
    in_float32_on_cpu,
    is_float_along,
    is_tracked,
    known_shape,
    rank,
    reject_complex,
)

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def op_relu(x):
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    if not x.dtype.is_floating:
        return tf.maximum(x, tf.constant(0, x.dtype))
    # the kernel of the gradient multiplies by 0 or 1: sqrt(relu(x)) would have the slope NaN where x < 0
    return by_output("op_relu", tf.nn.relu, lambda y: y, x)


def op_sigmoid(x):
    return tf.raw_ops.Sigmoid(x=floating(x))


def op_softplus(x):
    return tf.nn.softplus(*reject_complex(floating(x)))


def op_softmax(x, axis):
    return softmax_along(tf.raw_ops.Softmax, tf.nn.softmax, x, axis)


def op_log_softmax(x, axis):
    return softmax_along(tf.raw_ops.LogSoftmax, tf.nn.log_softmax, x, axis)


def op_relu6(x):
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    if not x.dtype.is_floating:
        return tf.minimum(tf.maximum(x, tf.constant(0, x.dtype)), tf.constant(6, x.dtype))
    # as in op_relu; the kernel of the gradient shows where `y` is between its bounds
    return by_output("op_relu6", tf.nn.relu6, lambda y: tf.raw_ops.Relu6Grad(gradients=y, features=y), x)


def op_leaky_relu(x, negative_slope):
    (x,) = reject_complex(floating(x))
    if x.dtype is not tf.float64 and type(negative_slope) in (int, float) and abs(negative_slope) <= 1:
        return tf.raw_ops.LeakyRelu(features=x, alpha=negative_slope)  # which rounds the slope to float32
    return choose(x > 0, x, negative_slope * x)


@in_one_call
def op_elu(x, alpha):
    return in_float32(lambda x: scaled_elu(x, alpha, 1), *reject_complex(floating(x)))


@in_one_call
def op_celu(x, alpha):
    (x,) = reject_complex(floating(x))
    return choose(x < 0, alpha * tf.math.expm1(choose(x < 0, x, tf.constant(0, x.dtype)) / alpha), x)


@in_one_call
def op_selu(x):  # the gradient of tf.nn.selu at 0 is the one from the right; XLA's, the one from the left
    return in_float32(lambda x: scaled_elu(x, SELU_ALPHA, SELU_SCALE), *reject_complex(floating(x)))


def op_silu(x):
    return beyond_float16(lambda x: tf.raw_ops.Mul(x=x, y=tf.raw_ops.Sigmoid(x=x)), *reject_complex(floating(x)))


@in_one_call
def op_gelu(x, approximate):  # tf.nn.gelu rounds its constants to float32, also for float64
    (x,) = reject_complex(floating(x))
    return beyond_float16(gelu_tanh, x) if approximate else 0.5 * x * tf.math.erfc(x * -math.sqrt(0.5))


@in_one_call
def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    axis = args.halved_axis(axis, known_shape(x))
    x, gate = tf.split(x, 2, axis)
    return beyond_float16(lambda x, gate: x * tf.sigmoid(gate), x, gate)


def op_log_sigmoid(x):
    return tf.math.log_sigmoid(*reject_complex(floating(x)))


@in_one_call
def op_softsign(x):
    (x,) = reject_complex(floating(x))
    return with_rule("op_softsign", [run_unrecorded(softsign, x)], softsign_rule, x)[0]


@in_one_call
def op_soft_shrink(x, threshold):
    (x,) = reject_complex(floating(x))
    return choose(tf.abs(x) <= threshold, tf.constant(0, x.dtype), x - tf.stop_gradient(tf.sign(x)) * threshold)


def op_hard_shrink(x, threshold):
    (x,) = reject_complex(floating(x))
    return choose(tf.abs(x) <= threshold, tf.constant(0, x.dtype), x)


def op_tanh_shrink(x):
    (x,) = reject_complex(floating(x))
    return x - tf.tanh(x)


def op_threshold(x, threshold, default_value):
    (x,) = reject_complex(floating(x))
    return choose(x <= threshold, tf.constant(default_value, x.dtype), x)


def op_hard_sigmoid(x):
    return op_relu6(reject_complex(floating(x))[0] + 3) / 6


@in_one_call
def op_hard_silu(x):
    (x,) = reject_complex(floating(x))
    # the products of the formula's derivative would overflow, or be NaN, before they vanish
    return with_rule("op_hard_silu", [run_unrecorded(hard_silu, x)], hard_silu_rule, x)[0]


def by_output(name, kernel, inside, x):
    """Return `y = kernel(x)`, whose slope is 1 where `inside(y)` is positive, and 0 elsewhere: it keeps `y` alone."""
    if not is_tracked():
        return kernel(x)

    def rule(_, y, upstream):
        zero = tf.constant(0, upstream.dtype)
        return [choose(inside(y) > zero, upstream, zero), None]

    y = run_unrecorded(kernel, x)
    if can_link(eagerly=True):
        return link_rule(name, lambda _, y: y, rule, x, y, unused=1)
    y = tf.stop_gradient(y)
    return choose(inside(y) > tf.constant(0, x.dtype), x, y)


def softmax_along(kernel, native, x, axis):
    """Return a softmax, or its logarithm, along `axis`; -1 is the last of any number of dimensions."""
    if axis == -1 and is_float_along(x, axis):
        return kernel(logits=x)
    (x,) = reject_complex(floating(x))
    axis = -1 if axis == -1 and x.shape.rank is None else args.single_axis(axis, rank(x))
    return in_float32_on_cpu(lambda x: native(x, axis), x)


def gelu_tanh(x):  # (1 + tanh(u)) / 2 is a sigmoid, which keeps its digits where it is small
    return x * tf.sigmoid(2 * math.sqrt(2 / math.pi) * (x * (1 + 0.044715 * tf.square(x))))


def scaled_elu(x, alpha, scale):
    """Return `scale * elu(x)`; the kernel subtracts 1 from an exponential, so 16 bits would keep no small numbers."""
    y = tf.raw_ops.Elu(features=x)
    return y if alpha == scale == 1 else choose(x > 0, x if scale == 1 else scale * x, (scale * alpha) * y)


def softsign(x):
    return tf.raw_ops.Softsign(features=x)


def softsign_rule(x, upstream):
    slope = run_unrecorded(softsign_slope, x, upstream)
    return with_rule("op_softsign/slope", [slope], softsign_slope_rule, x, upstream)


def softsign_slope(x, upstream):
    return tf.raw_ops.SoftsignGrad(gradients=upstream, features=x)  # TensorFlow does not differentiate it


def softsign_slope_rule(x, u, upstream):
    inverse = tf.math.reciprocal(1 + tf.abs(x))  # its cube may vanish where the product does not
    return [-2 * tf.sign(x) * u * inverse * upstream * inverse * inverse, *softsign_rule(x, upstream)]


def hard_silu(x):
    return x * (tf.raw_ops.Relu6(features=x + 3) / 6)


def hard_silu_rule(x, upstream):
    zero, one = tf.constant(0, x.dtype), tf.constant(1, x.dtype)
    return [choose(x <= -3, zero, upstream * choose(x < 3, x / 3 + 0.5, one))]
