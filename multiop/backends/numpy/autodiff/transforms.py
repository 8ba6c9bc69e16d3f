"""Transforms of flat functions: those that need no derivative."""

from __future__ import annotations

import numpy as np

from ..conversion import own
from .gradients import refused


def vjp(fun, primals, persistent=True):
    raise refused("reverse mode")


def jvp(fun, primals, tangents):
    raise refused("forward mode")


def vmap(fun, in_axes, axis_size):
    """Run `fun` row by row."""

    def mapped(*xs):
        columns = [x if axis is None else np.moveaxis(x, axis, 0) for x, axis in zip(xs, in_axes, strict=True)]

        def row(k):
            return fun(*(np.array(x if axis is None else x[k]) for x, axis in zip(columns, in_axes, strict=True)))

        if axis_size:
            return [np.stack(entries) for entries in zip(*map(row, range(axis_size)), strict=True)]
        columns = [
            x if axis is None else np.zeros((1, *x.shape[1:]), x.dtype)
            for x, axis in zip(columns, in_axes, strict=True)
        ]
        return [np.zeros((0, *y.shape), y.dtype) for y in row(0)]

    return mapped


def jit(fun):
    """Return a function that runs `fun`: NumPy has no compiler."""

    def run(*tensors):
        outputs, finish = fun(*tensors)
        return finish(own(outputs, tensors))

    return run


def checkpoint(fun, primals):
    return own(list(fun(*primals)), primals)
