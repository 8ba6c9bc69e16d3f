"""Shapes: the same entries in another arrangement."""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import convert, dtype_name, promote_all
from .reduction import flat_along


def op_reshape(x, newshape):
    return np.reshape(convert(x), newshape)


def op_transpose(x, axes):
    x = convert(x)
    return np.transpose(x, None if axes is None else args.permutation(axes, x.ndim))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    return np.swapaxes(x, args.single_axis(axis1, x.ndim, "axis1"), args.single_axis(axis2, x.ndim, "axis2"))


def op_moveaxis(x, source, destination):
    x = convert(x)
    return np.transpose(x, args.moved_order(source, destination, x.ndim))


def op_expand_dims(x, axis):
    x = convert(x)
    return np.expand_dims(x, args.axes(axis, x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)))


def op_squeeze(x, axis):
    x = convert(x)
    return np.squeeze(x, None if axis is None else args.axes_to_squeeze(axis, x.shape))


def op_concatenate(xs, axis):
    xs = promote_all(*args.sequence(xs))
    return np.concatenate(xs, args.single_axis(axis, xs[0].ndim))


def op_stack(x, axis):
    xs = promote_all(*args.sequence(x))
    return np.stack(xs, args.single_axis(axis, xs[0].ndim + 1))


def op_split(x, indices_or_sections, axis):
    x = convert(x)
    axis, parts = args.single_axis(axis, x.ndim), indices_or_sections
    if isinstance(parts, int) and (parts < 1 or x.shape[axis] % parts):
        raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {parts} equal parts")
    return np.split(x, parts, axis)


def op_broadcast_to(x, shape):
    return np.broadcast_to(convert(x), shape)


def op_flip(x, axis):
    x = convert(x)
    return np.flip(x, args.axes(axis, x.ndim))


def op_tile(x, repeats):
    return np.tile(convert(x), repeats)


def op_repeat(x, repeats, axis):
    x, axis = flat_along(convert(x), axis)
    return np.repeat(x, [int(n) for n in repeats], axis)


def op_roll(x, shift, axis):
    x = convert(x)
    dims = None if axis is None else args.axes(axis, x.ndim)
    return np.roll(x, args.shifts(shift, (0,) if dims is None else dims), dims)


def op_pad(x, pad_width, mode, constant_values):
    x = convert(x)
    pairs = args.pairs(pad_width, x.ndim)
    if mode == "constant":
        y = np.full([before + size + after for size, (before, after) in zip(x.shape, pairs, strict=True)], 0, x.dtype)
        y[...] = convert(constant_values, dtype_name(x))
        y[tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, pairs, strict=True))] = x
        return y
    for size, pair in zip(x.shape, pairs, strict=True):
        if any(pair):
            args.not_empty(size, mode)
    return np.pad(x, pairs, mode)


def op_unstack(x, num, axis):
    x = convert(x)
    return list(np.moveaxis(x, args.axis_to_unstack(axis, num, x.shape), 0))


def op_diagonal(x, offset, axis1, axis2):
    x = convert(x)
    return np.diagonal(x, offset, *args.two_axes(axis1, axis2, x.ndim))
