"""Derivatives of what arranges entries anew."""

from __future__ import annotations

import itertools

import numpy as np

from ..._record import needs_shapes, ops
from .formula import passed, reshape_gradient
from .indexing import entry_numbers, put, selection

op_transpose = (lambda u, _y, _x, axes: ops.transpose(u, axes and np.argsort([k % u.ndim for k in axes]).tolist()),)
op_swapaxes = (lambda u, _y, _x, axis1, axis2: ops.swapaxes(u, axis1, axis2),)
op_moveaxis = (lambda u, _y, _x, source, destination: ops.moveaxis(u, destination, source),)
op_reshape = op_expand_dims = op_squeeze = (lambda u, _y, like, _: reshape_gradient(u, like.shape),)


@needs_shapes
def op_concatenate(u, xs, axis):
    ends = [0, *itertools.accumulate(np.shape(x)[axis] for x in xs)]
    before = (slice(None),) * (axis % u.ndim)
    grads = [u[(*before, slice(start, end))] for start, end in itertools.pairwise(ends)]
    return grads if isinstance(xs, (tuple, list)) else ops.stack(grads, 0)


@needs_shapes
def op_stack(u, x, axis):
    return ops.moveaxis(u, axis, 0)  # its rows are those of the operands


op_broadcast_to = passed
op_split, op_flip, op_tile, op_repeat, op_roll, op_diagonal = map(
    selection, ["split", "flip", "tile", "repeat", "roll", "diagonal"]
)


def op_pad(u, x, pad_width, mode, constant_values):
    places = ops.pad(entry_numbers(x), pad_width, mode, -1)
    return put(u, places, ops.shape(x)), None, None, ops.where(places < 0, u, 0)


def op_unstack(us, x, num, axis):
    return ops.stack(us, axis)
