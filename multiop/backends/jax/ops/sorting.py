"""Sorting and searching."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import convert, in_float32, jit_inline, promote, reject_complex, resolve_axis, to_index_integers
from ..devices import is_readable


def op_sort(x, axis):
    x, axis = resolve_axis(*reject_complex(convert(x)), axis)
    return jnp.sort(x, axis)


def op_argsort(x, axis):
    x, axis = resolve_axis(*reject_complex(convert(x)), axis)
    return _argsort(x, axis)


def op_searchsorted(sorted_sequence, values, side):
    sorted_sequence, values = reject_complex(*promote(sorted_sequence, values))
    args.rows(sorted_sequence.shape, values.shape)
    return _searchsorted(sorted_sequence, values, side)


def op_top_k(x, k, sorted):
    (x,) = reject_complex(convert(x))
    args.within_last(k, x.shape)
    return _top_k(x, k)


def op_digitize(x, bins):
    bins = convert(bins)
    if bins.ndim != 1:
        raise errors.ArgumentError(f"bins must be a vector, got {args.describe(bins)}")
    known = np.asarray(bins) if is_readable(bins) else None
    if known is not None and (known[1:] < known[:-1]).any():
        raise errors.ArgumentError("bins must be sorted, smallest first")
    return op_searchsorted(bins, x, "right")


def op_bincount(x, weights, minlength):
    x = to_index_integers(x)
    weights = jnp.ones(x.shape, np.int32) if weights is None else weights
    if bool((x < 0).any()):
        raise errors.ArgumentError("x must hold no negative number")
    bins = jnp.zeros(max(minlength, int(x.max()) + 1 if x.size else 0), weights.dtype)
    return in_float32(lambda bins, weights: bins.at[x].add(weights), bins, weights)


_argsort = jit_inline(lambda x, axis: jnp.argsort(x, axis).astype(np.int32), static_argnums=1)


@functools.partial(jit_inline, static_argnums=2)
def _searchsorted(sorted_sequence, values, side):
    search = functools.partial(jnp.searchsorted, side=side)
    for _ in sorted_sequence.shape[1:]:
        search = jax.vmap(search)
    return search(sorted_sequence, values).astype(np.int32)


@functools.partial(jit_inline, static_argnums=1)
def _top_k(x, k):
    rank = x.astype(np.uint8) if x.dtype == bool else x
    if jnp.issubdtype(x.dtype, np.floating):  # jax.lax.top_k orders 0.0 before -0.0, and NaN by sign
        rank = jnp.where(x == 0, 0, jnp.where(jnp.isnan(x), np.nan, x)).astype(x.dtype)
    indices = jax.lax.top_k(jax.lax.stop_gradient(rank), k)[1]
    return jnp.take_along_axis(x, indices, -1, mode="clip"), indices.astype(np.int32)
