"""Shapes: the same entries, arranged otherwise."""

from __future__ import annotations

import torch

from multiop import _args, errors

from .conversion import convert, promote_all, widened


def op_reshape(x, newshape):
    return torch.reshape(convert(x), newshape)


def op_transpose(x, axes):
    x = convert(x)
    return torch.permute(x, tuple(range(x.ndim))[::-1] if axes is None else _args.permutation(axes, x.ndim))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    return torch.transpose(x, _args.single_axis(axis1, x.ndim, "axis1"), _args.single_axis(axis2, x.ndim, "axis2"))


def op_moveaxis(x, source, destination):
    x = convert(x)
    return torch.permute(x, _args.moved(source, destination, x.ndim))


def op_expand_dims(x, axis):
    x = convert(x)
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    for dim in sorted(_args.axes(axis, ndim)):
        x = torch.unsqueeze(x, dim)
    return x


def op_squeeze(x, axis):
    x = convert(x)
    if axis is None:
        return torch.squeeze(x)
    dims = _args.axes(axis, x.ndim)
    if any(x.shape[dim] != 1 for dim in dims):  # torch.squeeze would leave such a dimension alone
        raise errors.ArgumentError(f"axis {axis} has more than one entry in shape {tuple(x.shape)}")
    return torch.squeeze(x, dims)


def op_concatenate(xs, axis):
    xs = promote_all(*sequence(xs))
    return torch.cat(xs, _args.single_axis(axis, xs[0].ndim))


def op_stack(x, axis):
    xs = promote_all(*sequence(x))
    return torch.stack(xs, _args.single_axis(axis, xs[0].ndim + 1))


def op_split(x, indices_or_sections, axis):
    x = convert(x)
    axis = _args.single_axis(axis, x.ndim)
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or x.shape[axis] % indices_or_sections:
            raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {indices_or_sections} equal parts")
        return list(torch.chunk(x, indices_or_sections, axis)) if x.shape[axis] else [x] * indices_or_sections
    return list(torch.tensor_split(x, tuple(indices_or_sections), axis))


def op_broadcast_to(x, shape):
    return torch.broadcast_to(convert(x), shape)


def op_flip(x, axis):
    x = convert(x)
    dims = _args.axes(axis, x.ndim)
    return widened(lambda x: torch.flip(x, dims), x)


def sequence(xs):
    return xs.unbind() if isinstance(xs, torch.Tensor) else _args.sequence(xs)
