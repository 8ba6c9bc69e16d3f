"""Order: sorting and searching."""

from __future__ import annotations

import torch

from multiop import _args, errors

from .conversion import comparable, convert, promote
from .elementwise import real


def op_sort(x, axis):
    x, axis = along(x, axis)
    return torch.sort(x, dim=axis, stable=True).values


def op_argsort(x, axis):
    x, axis = along(x, axis)
    return torch.sort(x, dim=axis, stable=True).indices.to(torch.int32)


def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = map(comparable, real(*promote(sorted_sequence, values)))
    if sorted_sequence.ndim != 1:
        raise errors.ArgumentError(f"sorted_sequence must have one dimension, not {sorted_sequence.ndim}")
    if sorted_sequence.dtype is torch.bool:
        sorted_sequence, values = sorted_sequence.to(torch.uint8), values.to(torch.uint8)
    return torch.searchsorted(sorted_sequence, values, side=side, out_int32=True)


def along(x, axis):
    (x,) = real(convert(x))
    return (x.reshape(-1), 0) if axis is None else (x, _args.single_axis(axis, x.ndim))
