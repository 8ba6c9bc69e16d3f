"""Shapes: the same entries in another arrangement."""

from __future__ import annotations

import torch

from multiop import errors
from multiop._values import args, host

from ..conversion import (
    FLOATING,
    are_alike,
    choose,
    convert,
    dtype_name,
    in_wider_dtype,
    on_device_of,
    promote_all,
    resolve_axis,
    where_differentiated,
)
from .indexing import SIGNED


def op_reshape(x, newshape):
    return torch.reshape(x if isinstance(x, torch.Tensor) else convert(x), newshape)


def op_transpose(x, axes):
    x = x if isinstance(x, torch.Tensor) else convert(x)
    if axes is None:
        return x.T if x.ndim == 2 else torch.permute(x, tuple(range(x.ndim))[::-1])
    if type(axes) is tuple and {int}.issuperset(map(type, axes)) and sorted(axes) == list(range(x.ndim)):
        return torch.permute(x, axes)
    return torch.permute(x, args.permutation(axes, x.ndim))


def op_swapaxes(x, axis1, axis2):
    x = convert(x)
    return torch.transpose(x, args.single_axis(axis1, x.ndim, "axis1"), args.single_axis(axis2, x.ndim, "axis2"))


def op_moveaxis(x, source, destination):
    x = convert(x)
    if type(source) is type(destination) is int and -(ndim := x.ndim) <= source < ndim and -ndim <= destination < ndim:
        return torch.movedim(x, source, destination)
    return torch.permute(x, args.moved_order(source, destination, x.ndim))


def op_expand_dims(x, axis):
    x = x if isinstance(x, torch.Tensor) else convert(x)
    if type(axis) is int and -(ndim := x.ndim) - 1 <= axis <= ndim:
        return torch.unsqueeze(x, axis)
    ndim = x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    for dim in sorted(args.axes(axis, ndim)):
        x = torch.unsqueeze(x, dim)
    return x


def op_squeeze(x, axis):
    x = convert(x)
    if type(axis) is int and -(ndim := x.ndim) <= axis < ndim and x.shape[axis] == 1:
        return torch.squeeze(x, axis)
    return torch.squeeze(x) if axis is None else torch.squeeze(x, args.axes_to_squeeze(axis, x.shape))


def op_concatenate(xs, axis):
    xs = xs if type(xs) in (list, tuple) and xs else sequence(xs)
    xs = xs if are_alike(xs) else promote_all(*xs)
    ndim = xs[0].ndim
    y = torch.cat(xs, axis if type(axis) is int and -ndim <= axis < ndim else args.single_axis(axis, ndim))
    if y.ndim > 1 and len({*map(torch.Tensor.dim, xs)}) > 1:  # PyTorch leaves a tensor of shape (0,) out
        raise errors.ArgumentError(f"xs must have the same number of dimensions, got {[*map(torch.Tensor.dim, xs)]}")
    return y


def op_stack(x, axis):
    xs = x if type(x) in (list, tuple) and x else sequence(x)
    xs = xs if are_alike(xs) else promote_all(*xs)
    is_usual = type(axis) is int and -(ndim := xs[0].ndim + 1) <= axis < ndim
    return torch.stack(xs, axis if is_usual else args.single_axis(axis, xs[0].ndim + 1))


def op_split(x, indices_or_sections, axis):
    if not (type(axis) is int and isinstance(x, torch.Tensor) and -(ndim := x.ndim) <= axis < ndim):
        x = convert(x)
        axis = args.single_axis(axis, x.ndim)
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or x.shape[axis] % indices_or_sections:
            raise errors.ArgumentError(f"{x.shape[axis]} entries do not split into {indices_or_sections} equal parts")
        return list(torch.chunk(x, indices_or_sections, axis)) if x.shape[axis] else [x] * indices_or_sections
    return list(torch.tensor_split(x, tuple(indices_or_sections), axis))


def op_broadcast_to(x, shape):
    return torch.broadcast_to(x if isinstance(x, torch.Tensor) else convert(x), shape)


def op_flip(x, axis):
    x = convert(x)
    dims = args.axes(axis, x.ndim)
    return in_wider_dtype(lambda x: torch.flip(x, dims), x)


def op_tile(x, repeats):
    return torch.tile(convert(x), repeats)


def op_repeat(x, repeats, axis):
    is_usual = len(repeats) == 1 and type(repeats[0]) is type(axis) is int and isinstance(x, torch.Tensor)
    if is_usual and x.dtype in FLOATING and -(ndim := x.ndim) <= axis < ndim:
        return torch.repeat_interleave(x, repeats[0], axis)
    x, axis = resolve_axis(convert(x), axis)
    if x.dtype in SIGNED:  # entries are copied, for which unsigned ones have no kernel
        return op_repeat(x.view(SIGNED[x.dtype]), repeats, axis).view(x.dtype)
    repeats = [n.item() if isinstance(n, torch.Tensor) else n for n in repeats]  # few kernels take counts of 8 bits
    if len(repeats) == 1:
        return torch.repeat_interleave(x, repeats[0], axis)
    if not repeats and x.shape[axis] == 0:  # PyTorch takes no counts for floats
        return x.clone()
    counts = on_device_of(x, torch.tensor(repeats, device="cpu"))
    return torch.repeat_interleave(x, counts, axis, output_size=sum(repeats))


def op_roll(x, shift, axis):
    x = convert(x)
    if axis is None:
        return torch.roll(x, args.shifts(shift, (0,))[0])
    dims = args.axes(axis, x.ndim)
    return torch.roll(x, args.shifts(shift, dims), dims) if dims else x


def op_pad(x, pad_width, mode, constant_values):
    x = convert(x)
    pairs = args.pairs(pad_width, x.ndim)
    if mode == "constant":
        widths = [n for pair in reversed(pairs) for n in pair]
        padded = torch.constant_pad_nd(x, widths)
        if host.is_zero(constant_values):
            return padded
        inside = torch.nn.functional.pad(torch.ones_like(x, dtype=torch.bool), widths)
        return choose(inside, padded, convert(constant_values, dtype_name(x), x.device))
    for dim, pair in enumerate(pairs):
        if any(pair):
            args.not_empty(x.shape[dim], mode)
            places = _source_indices(x.shape[dim], pair, mode, x.device)
            x = where_differentiated(lambda x, places=places, dim=dim: torch.index_select(x, dim, places), x)
    return x


def _source_indices(size, pair, mode, device):
    """Return, for each entry of a padded dimension, its index in the dimension before padding."""
    places = torch.arange(-pair[0], size + pair[1], device=device)
    if mode == "edge":
        return places.clamp(0, size - 1)
    if mode == "wrap":
        return places % size
    last = 2 * size - 1 if mode == "symmetric" else max(2 * size - 2, 1)  # where the mirror image ends
    places = places % (2 * size if mode == "symmetric" else last)
    return torch.minimum(places, last - places)


def op_unstack(x, num, axis):
    x = convert(x)
    return list(torch.unbind(x, args.axis_to_unstack(axis, num, x.shape)))


def op_diagonal(x, offset, axis1, axis2):
    x = convert(x)
    axis1, axis2 = args.two_axes(axis1, axis2, x.ndim)
    return torch.diagonal(x, offset, axis1, axis2)


def sequence(xs):
    if type(xs) in (list, tuple) and xs:
        return xs
    return xs.unbind() if isinstance(xs, torch.Tensor) else args.sequence(xs)
