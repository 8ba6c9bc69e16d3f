"""Entries picked out by their indices."""

from __future__ import annotations

import math

import torch

from multiop import errors

from .conversion import along, convert
from .elementwise import is_known


def op_take(x, indices, axis):
    x, axis = along(convert(x), axis)
    indices, outside = within(indices, x.shape[axis], x.device)
    picked = torch.index_select(x, axis, indices.reshape(-1))
    picked = picked.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :])
    return picked if outside is None else blank(picked, outside[(..., *[None] * (x.ndim - axis - 1))])


def op_take_along_axis(x, indices, axis):
    x, axis = along(convert(x), axis)
    indices, outside = within(indices, x.shape[axis], x.device)
    if indices.ndim != x.ndim:
        raise errors.ArgumentError(f"indices has {indices.ndim} dimensions, x has {x.ndim}")
    picked = torch.take_along_dim(x, indices, axis)
    return picked if outside is None else blank(picked, outside)


def within(indices, size, device=None):
    """Return indices from 0 to `size`, and where they were out of range, unless that could be seen, and raised."""
    indices = convert(indices, device=device)
    if indices.dtype is torch.bool or indices.is_floating_point() or indices.is_complex():
        raise errors.DTypeError("indices must be integers")
    indices = indices.to(torch.int64)
    outside = (indices < -size) | (indices >= size)
    if is_known(outside):
        if bool(outside.any()):
            raise errors.ArgumentError(f"an index is out of range for {size} entries")
        return torch.where(indices < 0, indices + size, indices), None
    return torch.where(outside, 0, torch.where(indices < 0, indices + size, indices)), outside


def blank(x, outside):
    return torch.where(outside, math.nan if x.is_floating_point() or x.is_complex() else 0, x)
