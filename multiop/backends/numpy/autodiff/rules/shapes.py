"""Derivatives of what arranges entries anew."""

from __future__ import annotations

import numpy as np

from ..._record import array_of, is_traced, ops
from .indexing import put, selection

op_flip = selection("flip")
op_tile = selection("tile")
op_repeat = selection("repeat")
op_roll = selection("roll")
op_split = selection("split")
op_diagonal = selection("diagonal")


def op_reshape(u, x, newshape):
    return ops.reshape(u, x.shape)


def op_transpose(u, x, axes):
    return ops.transpose(u, axes if axes is None else np.argsort([k % x.ndim for k in axes]).tolist())


def op_swapaxes(u, x, axis1, axis2):
    return ops.swapaxes(u, axis1, axis2)


def op_moveaxis(u, x, source, destination):
    return ops.moveaxis(u, destination, source)


def op_expand_dims(u, x, axis):
    return ops.reshape(u, x.shape)


def op_squeeze(u, x, axis):
    return ops.reshape(u, x.shape)


def op_concatenate(u, xs, axis):
    ends = np.cumsum([ops.shape(x)[axis] for x in xs])
    return ops.split(u, ends[:-1].tolist(), axis)


def op_stack(u, x, axis):
    return ops.unstack(u, None, axis)


def op_broadcast_to(u, x, shape):
    return u


def op_pad(u, x, pad_width, mode, constant_values):
    if mode != "constant":
        return selection("pad")(u, x, pad_width, mode, 0)
    places = ops.pad(np.arange(x.size).reshape(x.shape), pad_width, mode, -1)
    inside = places >= 0
    return put(u, places, x.shape), ops.where(inside, 0, u)


def op_unstack(us, x, num, axis):
    return ops.stack(us, axis)
