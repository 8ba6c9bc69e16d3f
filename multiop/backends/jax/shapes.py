"""Shapes: the same entries, arranged otherwise."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from multiop import _args, errors

from .conversion import convert, promote_all


def op_reshape(x, newshape):
    return jnp.reshape(convert(x), newshape)


def op_transpose(x, axes):
    x = convert(x)
    return jax.lax.transpose(x, range(x.ndim)[::-1] if axes is None else _args.permutation(axes, x.ndim))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    return jnp.swapaxes(x, _args.single_axis(axis1, x.ndim, "axis1"), _args.single_axis(axis2, x.ndim, "axis2"))


def op_moveaxis(x, source, destination):
    x = convert(x)
    return jax.lax.transpose(x, _args.moved(source, destination, x.ndim))


def op_expand_dims(x, axis):
    x = convert(x)
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    return jax.lax.expand_dims(x, _args.axes(axis, ndim))


def op_squeeze(x, axis):
    x = convert(x)
    if axis is None:
        return jnp.squeeze(x)
    dims = _args.axes(axis, x.ndim)
    if any(x.shape[dim] != 1 for dim in dims):
        raise errors.ArgumentError(f"axis {axis} has more than one entry in shape {x.shape}")
    return jax.lax.squeeze(x, dims)


def op_concatenate(xs, axis):
    xs = promote_all(*sequence(xs))
    return jax.lax.concatenate(xs, _args.single_axis(axis, xs[0].ndim))


def op_stack(x, axis):
    xs = promote_all(*sequence(x))
    return jnp.stack(xs, _args.single_axis(axis, xs[0].ndim + 1))


def op_split(x, indices_or_sections, axis):
    x = convert(x)
    axis = _args.single_axis(axis, x.ndim)
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or x.shape[axis] % indices_or_sections:
            raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {indices_or_sections} equal parts")
        return jnp.split(x, indices_or_sections, axis)
    whole = (slice(None),) * axis
    ends = [*indices_or_sections, None]  # jnp.split refuses an index beyond the end
    return [x[(*whole, slice(start, end))] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def op_broadcast_to(x, shape):
    return jnp.broadcast_to(convert(x), shape)


def op_flip(x, axis):
    x = convert(x)
    return jax.lax.rev(x, _args.axes(axis, x.ndim))


def sequence(xs):
    return list(xs) if isinstance(xs, jax.Array) else _args.sequence(xs)
