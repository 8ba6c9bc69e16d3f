"""Derivatives of what arranges entries anew."""

from __future__ import annotations

import itertools

import numpy as np

from multiop._values import args

from ..._record import needs_shapes, ops
from .formula import passed, reshape_gradient
from .indexing import entry_numbers, put, selection, shape_of

op_transpose = (lambda u, _y, _x, axes: ops.transpose(u, axes and np.argsort([k % u.ndim for k in axes]).tolist()),)
op_swapaxes = (lambda u, _y, _x, axis1, axis2: ops.swapaxes(u, axis1, axis2),)
op_moveaxis = (lambda u, _y, _x, source, destination: ops.moveaxis(u, destination, source),)
op_reshape = op_expand_dims = op_squeeze = (lambda u, _y, like, _: reshape_gradient(u, like.shape),)


@needs_shapes
def op_concatenate(u, xs, axis):
    ends = [0, *itertools.accumulate(shape_of(x)[axis] for x in xs)]
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


def of_padded(u, _y, like, pad_width, mode, _number):
    if mode != "constant":
        return put(u, ops.pad(entry_numbers(like), pad_width, mode, -1), like.shape)
    return ops.slice(u, [before for before, _ in args.pairs(pad_width, u.ndim)], like.shape)


def of_number(u, _y, like, pad_width, mode, _number):
    return ops.where(ops.pad(np.zeros(like.shape, bool), pad_width, mode, True), u, 0)


op_pad = (of_padded, None, None, of_number)


def op_unstack(us, x, num, axis):
    return ops.stack(us, axis)
