"""Sorting and searching."""

from __future__ import annotations

import math

import torch

from multiop import errors
from multiop._values import args

from ..conversion import (
    convert,
    is_compiling,
    is_float_along,
    promote,
    reject_complex,
    resolve_axis,
    to_comparable,
    to_index_integers,
    together,
)
from ..devices import is_at_hand
from .indexing import index_add
from .logical import op_less


def op_sort(x, axis):
    x, axis = resolve_axis(*reject_complex(convert(x)), axis)
    return stable_sort(x, axis)[0]


def stable_sort(x, dim, descending=False):
    """Sort `x` stably along `dim`; return the entries and their indices."""
    if x.is_cpu or not x.is_floating_point():
        return torch.sort(x, dim=dim, descending=descending, stable=True)
    return stable_sort_nan_last(x, dim, descending)


def stable_sort_nan_last(x, dim, descending):
    """Do the same, with NaN last whatever its sign: a GPU kernel puts NaN with a negative sign first."""
    values = torch.where(torch.isnan(x.detach()), math.nan, x.detach())
    places = torch.sort(values, dim=dim, descending=descending, stable=True).indices
    return torch.gather(x, dim, places), places


def op_argsort(x, axis):
    if is_float_along(x, axis) and x.is_cpu:
        return torch.sort(x, dim=axis, stable=True)[1].int()
    return stable_sort(*resolve_axis(*reject_complex(convert(x)), axis))[1].int()


def op_searchsorted(sorted_sequence, values, side):
    operands = map(to_comparable, reject_complex(*promote(sorted_sequence, values)))
    sorted_sequence, values = (x.contiguous() for x in operands)  # as PyTorch warns that it will
    args.rows(sorted_sequence.shape, values.shape)
    if sorted_sequence.dtype is torch.bool:
        sorted_sequence, values = sorted_sequence.type(torch.uint8), values.type(torch.uint8)
    if not values.is_floating_point():
        return torch.searchsorted(sorted_sequence, values, side=side, out_int32=True)
    nan = torch.isnan(sorted_sequence)  # at which PyTorch takes a wrong turn
    below = torch.sum(~nan, -1, keepdim=nan.ndim > 1, dtype=torch.int32)
    found = torch.searchsorted(torch.where(nan, math.inf, sorted_sequence), values, side=side, out_int32=True)
    of_nan = below if side == "left" else nan.shape[-1]
    return torch.where(torch.isnan(values), of_nan, torch.minimum(found, below))


def op_top_k(x, k, sorted):
    (x,) = reject_complex(convert(x))
    args.within_last(k, x.shape)
    values, indices = stable_sort(x, -1, descending=True)
    return values[..., :k], indices[..., :k].int()


def op_digitize(x, bins):
    x, bins = together(x, bins)
    bins = convert(bins)
    if bins.ndim != 1:
        raise errors.ArgumentError(f"bins must be a vector, got {args.describe(bins)}")
    falling = op_less(bins[1:], bins[:-1])
    if is_at_hand(falling) and bool(falling.any()):
        raise errors.ArgumentError("bins must be sorted, smallest first")
    return op_searchsorted(bins, x, "right")


def op_bincount(x, weights, minlength):
    x = to_index_integers(x)
    if weights is None:
        return torch.bincount(x, minlength=minlength).int()
    if is_compiling():  # in a graph, only an operation can compute a size that depends on values
        number = torch.bincount(x, minlength=minlength).shape[0]
    elif bool((x < 0).any()):
        raise errors.ArgumentError("x must hold no negative number")
    else:
        number = max(minlength, int(x.max()) + 1 if x.numel() else 0)
    bins = weights.new_zeros(number)
    return index_add(bins, x, weights)
