"""Normalization: rescaling entries to a common magnitude."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._values import args

from ..autodiff._programs import in_one_call
from ..conversion import choose, floating, in_float32, promote_operands, rank, reject_complex
from .elementwise import power_by_multiplication


@in_one_call
def op_normalize(x, axis, order, epsilon):
    (x,) = reject_complex(floating(x))
    axis = args.axes(axis, rank(x))
    return in_float32(lambda x: normalize(x, axis, order, epsilon), x)


@in_one_call
def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
    x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
    axis = args.single_axis(axis, rank(x))
    dtype, shape = x.dtype, [-1 if dim == axis else 1 for dim in range(rank(x))]
    compute = tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype

    def along(vector, name):
        if not vector.shape.is_compatible_with(x.shape[axis : axis + 1]):
            raise errors.ArgumentError(f"{name} must have the shape ({x.shape[axis]},), got {tuple(vector.shape)}")
        return tf.reshape(tf.cast(vector, compute), shape)

    factor = tf.math.rsqrt(along(variance, "variance") + epsilon)
    if scale is not None:
        factor = factor * along(scale, "scale")
    # the gradient of a difference would negate all of the upstream
    x = (tf.cast(x, compute) + -along(mean, "mean")) * factor
    return tf.cast(x if offset is None else x + along(offset, "offset"), dtype)


@in_one_call
def op_layer_normalization(x, gamma, beta, axis, epsilon):
    x, gamma, beta = promote_operands(x, gamma, beta)
    axis = sorted(args.axes(axis, rank(x)))
    gamma, beta = fit_parameter(gamma, x, axis, "gamma"), fit_parameter(beta, x, axis, "beta")

    def scale_and_shift(x, *rest):
        x, rest = layer_normalized(x, axis, epsilon), iter(rest)
        x = x if gamma is None else x * next(rest)
        return x if beta is None else x + next(rest)

    return in_float32(scale_and_shift, x, *[t for t in (gamma, beta) if t is not None])


@in_one_call
def op_rms_normalization(x, scale, axis, epsilon):
    x, scale = promote_operands(x, scale)
    axis = sorted(args.axes(axis, rank(x)))
    scale = fit_parameter(scale, x, axis, "scale")

    def divide_by_rms(x, *scale):
        x = x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis, keepdims=True) + epsilon)
        return x * scale[0] if scale else x

    return in_float32(divide_by_rms, x, *[t for t in (scale,) if t is not None])


def layer_normalized(x, axis, epsilon):
    # tf.nn.moments, which takes the mean for a constant, has a wrong second derivative
    x = x - tf.reduce_mean(x, axis, keepdims=True)
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), axis, keepdims=True) + epsilon)


def normalize(x, axis, order, epsilon):
    # divide by the largest entry first, so that no power overflows; as a constant, it cancels out
    largest = tf.stop_gradient(tf.reduce_max(tf.abs(x), axis, keepdims=True))
    zero, one = tf.equal(largest, 0), tf.constant(1, x.dtype)
    small = x / choose(zero, one, largest)
    total = tf.reduce_sum(
        tf.square(small) if order == 2 else power_by_multiplication(tf.abs(small), order), axis, keepdims=True
    )
    total = choose(zero, one, total)
    length = tf.sqrt(total) if order == 2 else total ** (1 / order)
    epsilon = max(epsilon, float(np.finfo(x.dtype.as_numpy_dtype).tiny))  # a smaller one is 0 in a compiled program
    return choose(largest * length < epsilon, x / epsilon, small / length)


def fit_parameter(parameter, x, axis, name):
    """Return `parameter`, shaped like the dimensions `axis` of `x`, with as many dimensions as `x`."""
    if parameter is None or rank(parameter) == rank(x):
        return parameter
    if not parameter.shape.is_compatible_with([x.shape[dim] for dim in axis]):
        raise errors.ArgumentError(f"{name} has the shape {tuple(parameter.shape)}, which does not fit axis {axis}")
    sizes = iter(tf.unstack(tf.shape(parameter)))
    return tf.reshape(parameter, [next(sizes) if dim in axis else 1 for dim in range(rank(x))])
