"""Order: sorting and searching."""

from __future__ import annotations

import torch

from multiop import errors

from .conversion import along, comparable, convert, promote
from .elementwise import real


def op_sort(x, axis):
    x, axis = along(*real(convert(x)), axis)
    return torch.sort(x, dim=axis, stable=True).values


def op_argsort(x, axis):
    x, axis = along(*real(convert(x)), axis)
    return torch.sort(x, dim=axis, stable=True).indices.to(torch.int32)


def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = map(comparable, real(*promote(sorted_sequence, values)))
    if sorted_sequence.ndim != 1:
        raise errors.ArgumentError(f"sorted_sequence must have one dimension, not {sorted_sequence.ndim}")
    if sorted_sequence.dtype is torch.bool:
        sorted_sequence, values = sorted_sequence.to(torch.uint8), values.to(torch.uint8)
    return torch.searchsorted(sorted_sequence, values, side=side, out_int32=True)
