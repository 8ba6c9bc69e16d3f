"""Reductions over the segments that a vector of ids divides a tensor into."""

from __future__ import annotations

import torch

from multiop import errors
from multiop._values import dtypes

from ..conversion import (
    LONG,
    convert,
    dtype_name,
    in_comparable_dtype,
    in_wider_dtype,
    reject_complex,
    to_accumulation_dtype,
    to_index_integers,
)
from ..devices import is_known
from .elementwise import op_multiply
from .indexing import checks_indices, combine_segments


def op_segment_sum(x, ids, num_segments):
    if num_segments is not None and x.dtype in LONG and checks_indices(x, ids):
        try:
            return torch.index_add(x.new_zeros((num_segments, *x.shape[1:])), 0, ids, x)
        except (IndexError, RuntimeError):  # an id is out of range or negative
            pass
    ids, n = segments(x, ids, num_segments)
    x = to_accumulation_dtype(x)
    return in_wider_dtype(lambda x: sum_segments(x, ids, n), x)[:n]


def op_segment_max(x, ids, num_segments):
    return segment_extremum("amax", x, ids, num_segments)


def op_segment_min(x, ids, num_segments):
    return segment_extremum("amin", x, ids, num_segments)


def op_segment_prod(x, ids, num_segments):
    ids, n = segments(x, ids, num_segments)
    x = to_accumulation_dtype(x)
    order = torch.sort(ids, stable=True).indices
    ids = ids[order]
    return in_wider_dtype(lambda x: combine_segments(op_multiply, x[order], ids, n), x)


def segments(x, ids, num_segments):
    """Return the ids (`n` where out of range), and the number of segments `n`."""
    ids = to_index_integers(ids, x.device)
    if num_segments is None:
        if not is_known(ids):
            raise errors.ArgumentError("num_segments must be given in compiled or mapped code")
        num_segments = max(int(ids.max()) + 1, 0) if ids.numel() else 0
    return torch.where((ids < 0) | (ids >= num_segments), num_segments, ids), num_segments


def sum_segments(x, ids, n):
    """Return the sum of each segment and of what is out of range; 16-bit floats are summed in float32."""
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    return torch.index_add(x.new_zeros((n + 1, *x.shape[1:]), dtype=wide), 0, ids, x.type(wide)).type(x.dtype)


def segment_extremum(reduce, x, ids, num_segments):
    ids, n = segments(x, ids, num_segments)
    (x,) = reject_complex(x)
    if x.dtype is torch.bool:
        return segment_extremum(reduce, x.type(torch.uint8), ids, n).bool()
    places = ids.reshape(-1, *[1] * (x.ndim - 1)).expand(x.shape)
    start = convert(dtypes.IDENTITY[dtype_name(x)][reduce == "amin"], dtype_name(x), x.device)
    top = in_comparable_dtype(
        lambda start, x: start.expand(n + 1, *x.shape[1:]).scatter_reduce(0, places, x, reduce), start, x.detach()
    )
    if not x.is_floating_point():
        return top[:n]
    # the native gradient is NaN for the whole segment if one entry is NaN
    chosen = torch.isnan(x) | (x == top[ids])
    share = torch.reciprocal(sum_segments(chosen.type(torch.promote_types(x.dtype, torch.float32)), ids, n))
    share = share.type(x.dtype)[ids]
    change = torch.where(torch.isinf(x), x, x - x.detach())
    change = sum_segments(torch.where(chosen, change, 0) * torch.where(chosen, share, 0), ids, n)
    return torch.where(torch.isfinite(top), top + change, torch.where(change == 0, top, change))[:n]
