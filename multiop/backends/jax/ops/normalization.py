"""Normalization: rescaling entries to a common magnitude."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from multiop import errors
from multiop._values import args

from ..conversion import floating, in_float32, in_one_call, promote_operands, reject_complex
from .elementwise import _abs, divide


def op_normalize(x, axis, order, epsilon):
    (x,) = reject_complex(floating(x))
    axis = args.axes(axis, x.ndim)
    return _normalize_in_float32(x, axis, order, epsilon) if x.size else x


@in_one_call
def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
    x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
    axis = args.single_axis(axis, x.ndim)
    for name, vector in {"mean": mean, "variance": variance, "offset": offset, "scale": scale}.items():
        if vector is not None and vector.shape != (x.shape[axis],):
            raise errors.ArgumentError(f"{name} must have the shape ({x.shape[axis]},), got {vector.shape}")
    return _batch_normalized(x, mean, variance, axis, offset, scale, epsilon)


@in_one_call
def op_layer_normalization(x, gamma, beta, axis, epsilon):
    x, gamma, beta = promote_operands(x, gamma, beta)
    axis = tuple(sorted(args.axes(axis, x.ndim)))
    gamma, beta = fit_parameter(gamma, x, axis, "gamma"), fit_parameter(beta, x, axis, "beta")
    return _layer_normalized(x, gamma, beta, axis, epsilon)


@in_one_call
def op_rms_normalization(x, scale, axis, epsilon):
    x, scale = promote_operands(x, scale)
    axis = tuple(sorted(args.axes(axis, x.ndim)))
    return _rms_normalized(x, fit_parameter(scale, x, axis, "scale"), axis, epsilon)


@functools.partial(jax.jit, inline=True, static_argnums=(1, 2))
def _normalize_in_float32(x, axis, order, epsilon):
    return in_float32(lambda x: normalize(x, axis, order, epsilon), x)


@functools.partial(jax.jit, inline=True, static_argnums=3)
def _batch_normalized(x, mean, variance, axis, offset, scale, epsilon):
    def normalize_batch(x, mean, variance, offset, scale):
        factor = jax.lax.rsqrt(variance + epsilon)
        y = (x - mean) * (factor if scale is None else factor * scale)
        return y if offset is None else y + offset

    others = [dim for dim in range(x.ndim) if dim != axis]
    vectors = [v if v is None else jnp.expand_dims(v, others) for v in (mean, variance, offset, scale)]
    return in_float32(normalize_batch, x, *vectors)


@functools.partial(jax.jit, inline=True, static_argnums=3)
def _layer_normalized(x, gamma, beta, axis, epsilon):
    def center(x, gamma, beta):  # jax.nn.standardize subtracts squares, which cancel where the mean is large
        x = divide_by_rms(x - jnp.mean(x, axis, keepdims=True), gamma, axis, epsilon)
        return x if beta is None else x + beta

    return in_float32(center, x, gamma, beta)


@functools.partial(jax.jit, inline=True, static_argnums=2)
def _rms_normalized(x, scale, axis, epsilon):
    return in_float32(lambda x, scale: divide_by_rms(x, scale, axis, epsilon), x, scale)


def divide_by_rms(x, scale, axis, epsilon):
    """Return `x` divided by the root of its mean square, times `scale`."""
    x = x * jax.lax.rsqrt(jnp.mean(x * x, axis, keepdims=True) + epsilon)
    return x if scale is None else x * scale


def normalize(x, axis, order, epsilon):
    # divide by the largest entry first, so that no power overflows; as a constant, it cancels out
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(x), axis, keepdims=True))
    small = divide(x, jnp.where(largest == 0, 1, largest))
    total = jnp.sum(small * small if order == 2 else _abs(small) ** order, axis, keepdims=True)
    total = jnp.where(largest == 0, 1, total)
    length = jnp.sqrt(total) if order == 2 else total ** (1 / order)
    epsilon = jnp.maximum(epsilon, jnp.finfo(x.dtype).tiny)  # a smaller one is 0 in a compiled program
    return jnp.where(largest * length < epsilon, x / epsilon, divide(small, length))


def fit_parameter(parameter, x, axis, name):
    """Return `parameter`, shaped like the dimensions `axis` of `x`, with as many dimensions as `x`."""
    if parameter is None or parameter.ndim == x.ndim:
        return parameter
    if parameter.shape != tuple(x.shape[dim] for dim in axis):
        raise errors.ArgumentError(f"{name} has the shape {parameter.shape}, which does not fit axis {axis}")
    return parameter.reshape([x.shape[dim] if dim in axis else 1 for dim in range(x.ndim)])
