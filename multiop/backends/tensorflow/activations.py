"""Activations of neural networks."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import _args

from .conversion import (
    choose,
    convert,
    floating,
    is_finite,
    is_float,
    is_float_along,
    is_tracked,
    largest_on_cpu,
    rank,
    takes_kernel,
)
from .custom_gradient import can_link, linked, unrecorded
from .elementwise import bool_to_int32, in_float32, is_on_cpu, keep_nan_gradient, reject_complex

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def op_relu(x):
    if is_float(x) and not is_tracked():
        return tf.raw_ops.Relu(features=x)
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    if not x.dtype.is_floating:
        return tf.maximum(x, tf.constant(0, x.dtype))
    if can_link(eagerly=True):
        return by_output("op_relu", lambda x: tf.raw_ops.Relu(features=x), relu_gradient, x)
    return relu_product(tf.raw_ops.Relu(features=tf.stop_gradient(x)), x)


def op_sigmoid(x):
    return tf.raw_ops.Sigmoid(x=floating(x))


def op_softplus(x):
    return tf.nn.softplus(*reject_complex(floating(x)))


def op_softmax(x, axis):
    if is_float(x) and x.dtype.size == 2 and is_on_cpu(x):
        return in_float32(lambda x: op_softmax(x, axis), x)
    if axis == -1 and is_float_along(x, axis) and (top := largest_on_cpu(x)) is not None and top < math.inf:
        return tf.raw_ops.Softmax(logits=x)
    if axis == -1 and is_float(x) and not is_tracked():
        top = tf.raw_ops.Max(input=x, axis=-1, keep_dims=True)
        return tf.raw_ops.AddV2(x=tf.raw_ops.Softmax(logits=x), y=tf.raw_ops.Sub(x=top, y=top))
    (x,) = reject_complex(floating(x))
    axis = _args.single_axis(axis, rank(x))
    # if the largest entry is infinite, tf.nn.softmax returns NaN only there, not everywhere
    top = tf.stop_gradient(tf.reduce_max(x, axis, keepdims=True))
    return tf.nn.softmax(x, axis) + (top - top)


def op_log_softmax(x, axis):
    if is_float(x) and x.dtype.size == 2 and is_on_cpu(x):
        return in_float32(lambda x: op_log_softmax(x, axis), x)
    if axis == -1 and is_float(x):
        return tf.raw_ops.LogSoftmax(logits=x)
    (x,) = reject_complex(floating(x))
    return tf.nn.log_softmax(x, _args.single_axis(axis, rank(x)))


def op_relu6(x):
    if is_float(x) and not is_tracked():
        return tf.raw_ops.Relu6(features=x)
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    if x.dtype.is_floating and can_link(eagerly=True):
        return by_output("op_relu6", lambda x: tf.raw_ops.Relu6(features=x), relu6_gradient, x)
    top = keep_nan_gradient(x) if x.dtype.is_floating else x
    return choose(x <= 0, tf.zeros_like(x), choose(x >= 6, tf.constant(6, x.dtype), top))


def op_leaky_relu(x, negative_slope):
    (x,) = reject_complex(floating(x))
    if x.dtype is tf.float32 and type(negative_slope) in (int, float) and abs(negative_slope) <= 1:
        return tf.raw_ops.LeakyRelu(features=x, alpha=negative_slope)  # which rounds the slope to float32
    return choose(x > 0, x, negative_slope * x)


def op_elu(x, alpha):
    return scaled_elu(*reject_complex(floating(x)), alpha, 1)


def op_celu(x, alpha):
    (x,) = reject_complex(floating(x))
    return choose(x < 0, alpha * tf.math.expm1(choose(x < 0, x, tf.constant(0, x.dtype)) / alpha), x)


def op_selu(x):
    # the gradient of tf.nn.selu at 0 is the one from the right
    return scaled_elu(*reject_complex(floating(x)), SELU_ALPHA, SELU_SCALE)


def op_silu(x):
    return in_float32(by_gradient("op_silu", silu, silu_gradient), *reject_complex(floating(x)))


def op_gelu(x, approximate):
    return in_float32(gelu_tanh if approximate else gelu, *reject_complex(floating(x)))


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    rank(x)  # raises if it is unknown
    axis = _args.halved_axis(axis, x.shape)
    x, gate = tf.split(x, 2, axis)
    return in_float32(lambda x, gate: x * tf.sigmoid(gate), x, gate)


def op_log_sigmoid(x):
    return tf.math.log_sigmoid(*reject_complex(floating(x)))


def op_softsign(x):
    (x,) = reject_complex(floating(x))
    if x.dtype.size > 2 and can_link(eagerly=True):
        return linked("op_softsign", softsign, softsign_gradient, x) if is_tracked() else softsign(x)
    size, zero = 1 + tf.abs(x), tf.constant(0, x.dtype)
    # tf.nn.softsign has no third derivative; for large x, the slope of the quotient would suffer from cancellation
    return choose(size < 2, choose(size < 2, x, zero) / size, tf.sign(x) * (1 - tf.math.reciprocal(size)))


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


def op_hard_silu(x):
    return by_gradient("op_hard_silu", hard_silu, hard_silu_gradient)(*reject_complex(floating(x)))


def by_gradient(name, fn, gradient):
    """Return `fn`, whose own derivative adds up infinities of both signs, with the gradient `gradient(x, upstream)`."""

    def chosen(x):
        if not is_tracked() or not can_link(eagerly=True):
            return fn(x)
        return linked(name, fn, lambda x, upstream: [gradient(x, upstream)], x)

    return chosen


def silu(x):
    return (x if is_finite(x) else replace_neg_inf(x)) * tf.sigmoid(x)


def silu_gradient(x, upstream):
    share = tf.raw_ops.Sigmoid(x=x)
    bend = tf.raw_ops.SigmoidGrad(y=share, dy=x if is_finite(x) else replace_neg_inf(x))
    return tf.raw_ops.Mul(x=upstream, y=tf.raw_ops.AddV2(x=share, y=bend))


def hard_silu(x):
    bent = tf.abs(x) < 3
    safe = choose(bent, x, tf.constant(0, x.dtype))
    return choose(bent, safe * (safe + 3) / 6, choose(x <= -3, tf.constant(0, x.dtype), x))


def hard_silu_gradient(x, upstream):
    zero = tf.zeros_like(x)
    slope = choose(tf.abs(x) < 3, x, zero) / 3 + 0.5
    return choose(tf.abs(x) < 3, upstream * slope, choose(x <= -3, zero, upstream))


def by_output(name, fn, gradient, x):
    """Return `y = fn(x)` with the gradient `gradient(y, upstream)`, for which `x` need not be kept."""
    y = unrecorded(fn, x)
    return linked(name, lambda _, y: y, lambda _, *given: [gradient(*given), None], x, y, unused=1)


def relu_product(y, x):
    """Multiply by the slope, which is 0, 1 or NaN; the product with 0 is 0 for whatever is in `x`."""
    return tf.math.multiply_no_nan(x, tf.stop_gradient(tf.sign(y)))


def relu_gradient(y, upstream):
    if takes_kernel(y, upstream):
        return tf.raw_ops.ReluGrad(gradients=upstream, features=y)
    return relu_product(y, upstream)


def relu6_gradient(y, upstream):
    if takes_kernel(y, upstream):
        return tf.raw_ops.Relu6Grad(gradients=upstream, features=y)
    return relu_product(y * (6 - y), upstream)


def scaled_elu(x, alpha, scale):
    if not is_tracked():
        return elu(x, alpha, scale)
    if can_link(eagerly=True) and isinstance(alpha, (int, float)):
        rule = lambda x, upstream: [elu_gradient(x, alpha, scale, upstream)]  # noqa: E731
        return linked("op_elu", lambda x: elu(x, alpha, scale), rule, x)
    left = scale * alpha * tf.math.expm1(choose(x < 0, x, tf.constant(0, x.dtype)))
    return choose(x < 0, left, x * elu_slope(x, alpha, scale))


def elu(x, alpha, scale):
    left = scaled_expm1(x, scale * alpha)
    return choose(tf.raw_ops.Less(x=x, y=0.0), left, scaled(x, scale))


def scaled_expm1(x, factor):
    """Return `factor * expm1(x)` where `x` is not positive: values alone, to as many digits, of many in less time."""
    if x.dtype.size == 2 or (x.shape.num_elements() or MANY) < MANY or not 1e-3 < factor < 1e3:
        return scaled(tf.raw_ops.Expm1(x=x), factor)
    half, share = tf.raw_ops.Tanh(x=tf.raw_ops.Mul(x=x, y=0.5)), 0.5 / factor
    return tf.raw_ops.RealDiv(x=half, y=tf.raw_ops.AddV2(x=tf.raw_ops.Mul(x=half, y=-share), y=share))


MANY = 4096  # entries, from which on the time of an operation is that of its numbers


def scaled(x, number):
    return x if number == 1 else tf.raw_ops.Mul(x=x, y=number)


def elu_slope(x, alpha, scale):
    """Return the slope from 0 on: at 0 it is that from the left, and constant, so the second derivative is 0."""
    return choose(tf.equal(x, 0), tf.constant(scale * alpha, x.dtype), tf.constant(scale, x.dtype))


def elu_gradient(x, alpha, scale, upstream):
    if alpha == scale == 1 and takes_kernel(x):
        return tf.raw_ops.Mul(x=upstream, y=tf.raw_ops.Exp(x=tf.raw_ops.Minimum(x=x, y=0.0)))
    right = scaled(upstream, scale)
    if not is_tracked():
        left = tf.raw_ops.Mul(x=upstream, y=scaled(tf.raw_ops.Exp(x=x), scale * alpha))
        return choose(tf.raw_ops.LessEqual(x=x, y=0.0), left, right)
    # exp of a large x is infinite, and so would be its derivative, where it is not chosen
    left = upstream * ((scale * alpha) * tf.exp(choose(x < 0, x, tf.constant(0, x.dtype))))
    return choose(x < 0, left, right if alpha == 1 else upstream * elu_slope(x, alpha, scale))


def softsign(x):
    if not is_finite(x):  # the kernel is NaN at infinity
        highest = tf.constant(x.dtype.max, x.dtype)
        x = tf.raw_ops.Maximum(x=tf.raw_ops.Minimum(x=x, y=highest), y=-highest)
    return tf.raw_ops.Softsign(features=x)


def softsign_gradient(x, upstream):
    if takes_kernel(x, upstream):  # which squares x
        return [tf.raw_ops.SoftsignGrad(gradients=upstream, features=x)]
    inverse = tf.math.reciprocal(1 + tf.abs(x))
    return [upstream * inverse * inverse]


def replace_neg_inf(x):
    """Replace -inf by the lowest finite number, so that a product with 0 is 0."""
    return choose(tf.equal(x, -math.inf), tf.constant(x.dtype.min, x.dtype), x)


def clamp_to_40(x):
    """Clamp `x` to where a sigmoid or Gaussian still differs from its limit, without a gradient at NaN."""
    bound = tf.constant(40, x.dtype)
    return tf.raw_ops.Maximum(x=tf.raw_ops.Minimum(x=x, y=bound), y=-bound)


def gelu(x):
    # erfc keeps the digits that 1 + erf loses where it is small
    if is_finite(x):
        return 0.5 * x * tf.math.erfc(x * -math.sqrt(0.5))
    if can_link():
        return linked("op_gelu", gelu_product, gelu_gradient, x, tf.math.erfc(x * -math.sqrt(0.5)))
    return 0.5 * replace_neg_inf(x) * tf.math.erfc(clamp_to_40(x) * -math.sqrt(0.5))


def gelu_product(x, tail):
    lowest = tf.constant(x.dtype.min, x.dtype)  # in place of -inf, whose product with 0 is NaN
    return 0.5 * tf.raw_ops.Maximum(x=x, y=lowest) * tail


def gelu_gradient(x, tail, upstream):
    """Return the gradient with respect to `x`, of which `tail` is a function too."""
    u = clamp_to_40(x)
    bell = u * tf.exp(-0.5 * u * u) * (1 / math.sqrt(2 * math.pi))
    return [upstream * (0.5 * tail + bell), None]


def gelu_tanh(x):
    # written as a sigmoid, (1 + tanh(u)) / 2 keeps its digits where it is small
    u = clamp_to_40(x)
    return replace_neg_inf(x) * tf.sigmoid(2 * math.sqrt(2 / math.pi) * (u + 0.044715 * u * u * u))
