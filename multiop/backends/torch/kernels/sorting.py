"""Searches by PyTorch's kernels, which are right where no entry is NaN, or none of the largest are equal."""

from __future__ import annotations

import torch

from .._internals import is_tracked
from .._kernels import FEW, LONG, are_values, is_finite, is_plain, is_seen_without_nan
from ..conversion import INDEX, are_alike, are_floats, is_float


def op_searchsorted(sorted_sequence, values, side, *, otherwise):
    if not (
        are_floats(sorted_sequence, values)
        and sorted_sequence.is_contiguous()
        and values.is_contiguous()
        and sorted_sequence.shape[:-1] == values.shape[:-1] * (sorted_sequence.ndim > 1)
        and is_seen_without_nan(sorted_sequence)
        and is_seen_without_nan(values)
    ):
        return otherwise(sorted_sequence, values, side)
    return torch.searchsorted(sorted_sequence, values, side=side, out_int32=True)


def op_digitize(x, bins, *, otherwise):
    if not (are_values(x, bins) and bins.ndim == 1 and is_seen_without_nan(bins) and is_seen_without_nan(x)):
        return otherwise(x, bins)
    if bool((bins[1:] < bins[:-1]).any()):
        return otherwise(x, bins)
    return torch.bucketize(x, bins, out_int32=True, right=True)


def op_unique(x, sorted, return_index, return_inverse, return_counts, axis, size, fill_value, *, otherwise):
    if return_index or not axis is size is None or not _are_comparable(x):
        return otherwise(x, sorted, return_index, return_inverse, return_counts, axis, size, fill_value)
    found = torch.unique(x, True, return_inverse, return_counts)
    return (found[0], *[y.int() for y in found[1:]]) if return_inverse or return_counts else found


def _are_comparable(x):
    """Say whether the values of `x` can be looked at, and none is NaN."""
    if type(x) is torch.Tensor and x.dtype in INDEX:
        return is_plain()
    return are_values(x, x) and is_seen_without_nan(x)


def op_isin(x1, x2, assume_unique, invert, *, otherwise):
    if not (are_alike((x1, x2)) and x1.dtype in (*LONG, torch.int32) and not is_tracked(x1, x2)):
        return otherwise(x1, x2, assume_unique, invert)
    return torch.isin(x1, x2, invert=invert)


def op_top_k(x, k, sorted, *, otherwise):
    # few entries are sorted sooner than equal ones are looked for: torch.topk is not stable
    is_fit = is_float(x) and x.ndim and type(k) is int and x.numel() >= FEW and 0 <= k < x.shape[-1]
    if not (is_fit and is_finite(x)):
        return otherwise(x, k, sorted)
    values, indices = torch.topk(x, k + 1)
    if bool((values[..., 1:] == values[..., :-1]).any()):
        return otherwise(x, k, sorted)
    return values[..., :k], indices[..., :k].int()
