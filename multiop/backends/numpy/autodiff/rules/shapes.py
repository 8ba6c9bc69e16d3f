"""Derivatives of what arranges entries anew."""

from __future__ import annotations

import numpy as np

from ..._record import ops
from .formula import reshape_gradient
from .indexing import entry_numbers, put, selection


def op_transpose(u, x, axes):
    return ops.transpose(u, axes if axes is None else np.argsort([k % x.ndim for k in axes]).tolist())


def op_swapaxes(u, x, axis1, axis2):
    return ops.swapaxes(u, axis1, axis2)


def op_moveaxis(u, x, source, destination):
    return ops.moveaxis(u, destination, source)


op_reshape = op_expand_dims = op_squeeze = (lambda u, _y, like, _: reshape_gradient(u, like.shape),)


def op_concatenate(u, xs, axis):
    ends = np.cumsum([ops.shape(x)[axis] for x in xs])
    grads = ops.split(u, ends[:-1].tolist(), axis)
    return grads if isinstance(xs, (tuple, list)) else ops.stack(grads, 0)


def op_stack(u, x, axis):
    return ops.moveaxis(u, axis, 0)  # its rows are those of the operands


op_split = selection("split")


op_broadcast_to = (lambda u, *_: u,)


op_flip = selection("flip")
op_tile = selection("tile")
op_repeat = selection("repeat")
op_roll = selection("roll")


def op_pad(u, x, pad_width, mode, constant_values):
    places = ops.pad(entry_numbers(x), pad_width, mode, -1)
    return put(u, places, ops.shape(x)), None, None, ops.where(places < 0, u, 0)


def op_unstack(us, x, num, axis):
    return ops.stack(us, axis)


op_diagonal = selection("diagonal")
