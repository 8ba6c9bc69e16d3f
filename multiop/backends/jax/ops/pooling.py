"""Pooling: the average or the largest entry in each window."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from multiop._values import windows as _windows

from ..conversion import bool_to_int32, convert, floating, in_float32, in_one_call, reject_complex


@in_one_call
def op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
    x = floating(inputs)
    windows = _windows.pooling(x.shape, pool_size, strides, padding, data_format, ceil_mode)
    # JAX would round after each addition
    return in_float32(lambda x: average(x, *windows, count_include_pad), x)


@in_one_call
def op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    return _max_pool(x, *_windows.pooling(x.shape, pool_size, strides, padding, data_format, ceil_mode))


@in_one_call
def op_adaptive_average_pool(inputs, output_size, data_format):
    x = floating(inputs)
    axes, size = _windows.adaptive(x.shape, output_size, data_format)
    if all(x.shape[axis] % bins == 0 for axis, bins in zip(axes, size, strict=True)):
        window = tuple(x.shape[axis] // bins for axis, bins in zip(axes, size, strict=True))
        return in_float32(lambda x: average(x, axes, window, window), x)
    return in_float32(lambda x: _adaptive_average(x, axes, size), x)


@in_one_call
def op_adaptive_max_pool(inputs, output_size, data_format):
    (x,) = reject_complex(*bool_to_int32(convert(inputs)))
    return _adaptive_max(x, *_windows.adaptive(x.shape, output_size, data_format))


def average(x, axes, size, strides, pads=((0, 0),) * 3, overhangs=(0,) * 3, count_include_pad=False):
    window, steps, beyond, count = [1] * x.ndim, [1] * x.ndim, [(0, 0)] * x.ndim, np.ones((), x.dtype)
    for axis, k, stride, pad, over in zip(axes, size, strides, pads, overhangs, strict=False):
        window[axis], steps[axis], beyond[axis] = k, stride, (pad[0], pad[1] + over)
        counts = _windows.counts(x.shape[axis], k, stride, pad, over, count_include_pad)
        count = count * broadcast_along(np.array(counts, x.dtype), axis, x)
    return jax.lax.reduce_window(x, np.zeros((), x.dtype), jax.lax.add, window, steps, beyond) / count


@functools.partial(jax.jit, inline=True, static_argnums=(1, 2, 3, 4, 5))
def _max_pool(x, axes, size, strides, pads, overhangs):
    # one axis after the other; the derivative of lax.reduce_window ignores NaN
    for axis, k, stride, (start, end), over in reversed(list(zip(axes, size, strides, pads, overhangs, strict=True))):
        if start or end or over:  # repeat the edges, which are in the windows that extend beyond them
            end += over
            x = jnp.pad(x, [(start, end) if dim == axis else (0, 0) for dim in range(x.ndim)], mode="edge")
        last = (x.shape[axis] - k) // stride * stride + 1
        x = elementwise_max([jax.lax.slice_in_dim(x, i, i + last, stride, axis) for i in range(k)])
    return x


@functools.partial(jax.jit, inline=True, static_argnums=(1, 2))
def _adaptive_average(x, axes, size):
    for axis, bins in zip(axes, size, strict=True):
        indices, count = _windows.bins(x.shape[axis], bins)
        entries = [
            jnp.where(broadcast_along(i < count, axis, x), jnp.take(x, index, axis), 0)
            for i, index in enumerate(indices)
        ]
        x = sum(entries) / broadcast_along(count, axis, x).astype(x.dtype)
    return x


@functools.partial(jax.jit, inline=True, static_argnums=(1, 2))
def _adaptive_max(x, axes, size):
    for axis, bins in reversed(list(zip(axes, size, strict=True))):
        x = elementwise_max([jnp.take(x, index, axis) for index in _windows.bins(x.shape[axis], bins)[0]])
    return x


def elementwise_max(entries):
    """Return the elementwise maximum of `entries`, the first one at ties; NaN is larger than anything else."""
    best, *later = entries
    for entry in later:
        best = jnp.where(~(entry <= best) & (best == best), entry, best)
    return best


def broadcast_along(vector, axis, x):
    """Return `vector` in a shape that broadcasts along `axis` of `x`."""
    return vector.reshape([-1 if dim == axis else 1 for dim in range(x.ndim)])
