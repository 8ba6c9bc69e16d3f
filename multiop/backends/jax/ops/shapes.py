"""Shapes: the same entries in another arrangement."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import args, host

from ..conversion import convert, dtype_name, hashable, in_float32, jit_inline, promote_all, resolve_axis


def op_reshape(x, newshape):
    return _reshape(convert(x), hashable(newshape))


def op_transpose(x, axes):
    x = convert(x)
    return _transpose(x, tuple(range(x.ndim))[::-1] if axes is None else args.permutation(axes, x.ndim))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    return jnp.swapaxes(x, args.single_axis(axis1, x.ndim, "axis1"), args.single_axis(axis2, x.ndim, "axis2"))


def op_moveaxis(x, source, destination):
    x = convert(x)
    return _transpose(x, args.moved_order(source, destination, x.ndim))


def op_expand_dims(x, axis):
    x = convert(x)
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    return _expand_dims(x, args.axes(axis, ndim))


def op_squeeze(x, axis):
    x = convert(x)
    return jnp.squeeze(x) if axis is None else _squeeze(x, args.axes_to_squeeze(axis, x.shape))


def op_concatenate(xs, axis):
    xs = promote_all(*sequence(xs))
    return join_in_parts(_concatenate, xs, args.single_axis(axis, xs[0].ndim))


def op_stack(x, axis):
    xs = promote_all(*sequence(x))
    return join_in_parts(_stack, xs, args.single_axis(axis, xs[0].ndim + 1))


def op_split(x, indices_or_sections, axis):
    x = convert(x)
    axis = args.single_axis(axis, x.ndim)
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or x.shape[axis] % indices_or_sections:
            raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {indices_or_sections} equal parts")
        return list(_split(x, indices_or_sections, axis))
    whole = (slice(None),) * axis
    ends = [*indices_or_sections, None]  # jnp.split rejects an index beyond the end
    return [x[(*whole, slice(start, end))] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def op_broadcast_to(x, shape):
    return _broadcast_to(convert(x), hashable(args.countable(shape)))


def op_flip(x, axis):
    x = convert(x)
    return _flip(x, args.axes(axis, x.ndim))


def op_tile(x, repeats):
    x = convert(x)
    args.countable((*x.shape, *repeats), "repeats")  # others end the process
    return jnp.tile(x, repeats)


def op_repeat(x, repeats, axis):
    x, axis = resolve_axis(convert(x), axis)
    if len(repeats) not in (1, x.shape[axis]):
        raise errors.ArgumentError(f"{len(repeats)} numbers of repeats do not fit {x.shape[axis]} entries")
    args.countable((*x.shape, max(repeats, default=0)), "repeats")
    return jnp.repeat(x, repeats[0] if len(repeats) == 1 else np.array(repeats), axis)


def op_roll(x, shift, axis):
    x = convert(x)
    if axis is None:
        return _roll(x, args.shifts(shift, (0,))[0])
    dims = args.axes(axis, x.ndim)
    return _roll(x, args.shifts(shift, dims), dims)


def op_pad(x, pad_width, mode, constant_values):
    x = convert(x)
    pairs = args.pairs(pad_width, x.ndim)
    if mode == "constant":
        dtype = dtype_name(x)
        scalar = host.is_scalar(constant_values)
        value = host.scalar(constant_values, dtype) if scalar else convert(constant_values, dtype)
        return _pad(x, value, tuple(pairs))
    for dim, pair in enumerate(pairs):
        if any(pair):
            places = args.padding_indices(x.shape[dim], pair, mode)
            x = in_float32(lambda x, places=places, dim=dim: jnp.take(x, places, dim), x)  # the gradient is a sum
    return x


def op_unstack(x, num, axis):
    x = convert(x)
    axis = args.axis_to_unstack(axis, num, x.shape)
    parts = range(0, x.shape[axis], _AT_ONCE)
    return [part for start in parts for part in _unstack(x, start, min(start + _AT_ONCE, x.shape[axis]), axis)]


def op_diagonal(x, offset, axis1, axis2):
    x = convert(x)
    axis1, axis2 = args.two_axes(axis1, axis2, x.ndim)
    return jnp.diagonal(x, hashable(offset), axis1, axis2)


def join_in_parts(join, xs, axis):
    """Return `join(xs, axis)`, in parts if there are many: a program of thousands takes minutes to compile."""
    if len(xs) > _AT_ONCE:
        parts = [join(xs[k : k + _AT_ONCE], axis) for k in range(0, len(xs), _AT_ONCE)]
        return join_in_parts(_concatenate, parts, axis)
    return join(xs, axis)


def sequence(xs):
    return list(xs) if isinstance(xs, jax.Array) else args.sequence(xs)


@functools.partial(jit_inline, static_argnums=(1, 2, 3))
def _unstack(x, start, stop, axis):
    return [jax.lax.index_in_dim(x, i, axis, keepdims=False) for i in range(start, stop)]


_AT_ONCE = 128
_pad = jit_inline(lambda x, value, pairs: jnp.pad(x, pairs, constant_values=value), static_argnums=2)
_roll, _split = (jit_inline(fn, static_argnums=(1, 2)) for fn in (jnp.roll, jnp.split))
_reshape, _concatenate, _stack, _broadcast_to = (
    jit_inline(fn, static_argnums=1) for fn in (jnp.reshape, jax.lax.concatenate, jnp.stack, jnp.broadcast_to)
)
_transpose, _expand_dims, _squeeze, _flip = (
    jit_inline(fn, static_argnums=1) for fn in (jax.lax.transpose, jax.lax.expand_dims, jax.lax.squeeze, jax.lax.rev)
)
