"""Shapes: the same entries, arranged otherwise."""

import numpy as np

from multiop import errors, extend

from .conversion import Tensor, convert, promote_all, record
from .indexing import op_get_item


def op_reshape(x, newshape):
    x = convert(x)
    return record(np.reshape, (x, lambda u: op_reshape(u, x.shape)), shape=newshape)


def op_transpose(x, axes):
    x = convert(x)
    order = tuple(range(x.ndim))[::-1] if axes is None else extend.permutation(axes, x.ndim)
    return record(np.transpose, (x, lambda u: op_transpose(u, tuple(map(order.index, range(x.ndim))))), axes=order)


def op_swapaxes(x, axis1, axis2):
    ndim = convert(x).ndim
    order = list(range(ndim))
    axis1, axis2 = extend.single_axis(axis1, ndim, "axis1"), extend.single_axis(axis2, ndim, "axis2")
    order[axis1], order[axis2] = axis2, axis1
    return op_transpose(x, order)


def op_moveaxis(x, source, destination):
    return op_transpose(x, extend.moved_axes(source, destination, convert(x).ndim))


def op_expand_dims(x, axis):
    x = convert(x)
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    return op_reshape(x, np.expand_dims(x.array, extend.axes(axis, ndim)).shape)


def op_squeeze(x, axis):
    x = convert(x)
    dims = None if axis is None else extend.axes(axis, x.ndim)
    return op_reshape(x, np.squeeze(x.array, dims).shape)


def op_concatenate(xs, axis):
    xs = promote_all(*sequence(xs))
    axis = extend.single_axis(axis, xs[0].ndim)
    ends = np.cumsum([x.shape[axis] for x in xs]).tolist()

    def pull(start, end):
        return lambda u: op_get_item(u, (slice(None),) * axis + (slice(start, end),))

    parts = [(x, pull(start, end)) for x, start, end in zip(xs, [0, *ends], ends, strict=False)]
    return record(lambda *arrays: np.concatenate(arrays, axis), *parts)


def op_stack(x, axis):
    xs = promote_all(*sequence(x))
    axis = extend.single_axis(axis, xs[0].ndim + 1)
    return op_concatenate([op_expand_dims(x, axis) for x in xs], axis)


def op_broadcast_to(x, shape):
    x = convert(x)
    return record(np.broadcast_to, (x, lambda u: sum_to(u, x.shape)), shape=shape)


def op_unstack(x, num, axis):
    x = convert(x)
    axis = extend.single_axis(axis, x.ndim)
    if num not in (None, x.shape[axis]):
        raise errors.ArgumentError(f"num is {num}, but axis {axis} has {x.shape[axis]} entries")
    return [op_get_item(x, (slice(None),) * axis + (i,)) for i in range(x.shape[axis])]


def sum_to(x, shape):
    """Return the sum of `x` over what was added to `shape` by broadcasting."""
    if x.shape == shape:
        return x
    new = x.ndim - len(shape)
    axes = tuple(dim for dim in range(x.ndim) if dim < new or (shape[dim - new] == 1 and x.shape[dim] != 1))

    def run(array):
        return array.sum(axes, np.float32 if array.dtype.itemsize == 2 else None).reshape(shape).astype(array.dtype)

    return record(run, (x, lambda u: op_broadcast_to(u, x.shape)))


def sequence(xs):
    return op_unstack(xs, None, 0) if isinstance(xs, Tensor) else extend.sequence(xs)
