"""Sorting and searching."""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import convert, in_float32, promote, reject_complex
from .indexing import integers
from .reduction import flat_along


def op_sort(x, axis):
    x, axis = flat_along(*reject_complex(convert(x)), axis)
    return in_float32(lambda x: np.sort(x, axis), x)


def op_argsort(x, axis):
    x, axis = flat_along(*reject_complex(convert(x)), axis)
    return in_float32(lambda x: np.argsort(x, axis, stable=True), x).astype(np.int32)


def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = reject_complex(*promote(sorted_sequence, values))
    args.rows(sorted_sequence.shape, values.shape)
    return in_float32(lambda *xs: search_rows(*xs, side), sorted_sequence, values).astype(np.int32)


def op_top_k(x, k, sorted):
    (x,) = reject_complex(convert(x))
    args.within_last(k, x.shape)
    rising = in_float32(lambda x: np.argsort(x[..., ::-1], -1, stable=True), x)
    indices = (x.shape[-1] - 1 - rising[..., ::-1])[..., :k]
    return np.take_along_axis(x, indices, -1), indices.astype(np.int32)


def op_digitize(x, bins):
    bins = convert(bins)
    if bins.ndim != 1:
        raise errors.ArgumentError(f"bins must be a vector, got {args.describe(bins)}")
    if (bins[1:] < bins[:-1]).any():
        raise errors.ArgumentError("bins must be sorted, smallest first")
    return op_searchsorted(bins, x, "right")


def op_bincount(x, weights, minlength):
    x = integers(x)
    if (x < 0).any():
        raise errors.ArgumentError("x must hold no negative number")
    if weights is None:
        return np.bincount(x, None, minlength).astype(np.int32)
    bins = np.zeros(max(minlength, x.max(initial=-1) + 1), weights.dtype)
    return in_float32(lambda bins, weights: add_weights(bins, x, weights), bins, weights)


def search_rows(sorted_sequence, values, side):
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side)
    rows = zip(
        sorted_sequence.reshape(-1, sorted_sequence.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True
    )
    found = [np.searchsorted(row, wanted, side) for row, wanted in rows]
    return np.array(found, int).reshape(values.shape)


def add_weights(bins, x, weights):
    np.add.at(bins, x, weights)
    return bins
