"""Indexing: entries selected by their indices."""

from __future__ import annotations

import contextlib
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import (
    available,
    convert,
    in_float32,
    in_one_call,
    is_array,
    jit_inline,
    native,
    promote_all,
    resolve_axis,
    to_index_integers,
)
from ..devices import is_at_hand, is_readable
from .elementwise import op_add, op_maximum, op_minimum, op_multiply


def op_take(x, indices, axis):
    x, axis = resolve_axis(convert(x), axis)
    indices, outside = check_indices(indices, x.shape[axis])
    if x.shape[axis]:
        picked = _take(x, indices, axis)
    else:  # jnp.take returns a wrong shape
        picked = jnp.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return picked if outside is None else blank_out_of_range(picked, outside[(..., *[None] * (x.ndim - axis - 1))])


def op_take_along_axis(x, indices, axis):
    x, axis = resolve_axis(convert(x), axis)
    indices, outside = check_indices(indices, x.shape[axis])
    if indices.ndim != x.ndim:
        raise errors.ArgumentError(f"indices has {indices.ndim} dimensions, x has {x.ndim}")
    picked = _take_along_axis(x, indices, axis)
    return picked if outside is None else blank_out_of_range(picked, outside)


def op_get_item(x, key):
    x = convert(x)
    if args.is_static(key):
        return _slice_entries(x, key)
    if args.selects_inside(key, x.shape, are_known_inside):
        return _select_inside(x, key)
    entries, arrays = args.normalize_key(key, x.shape)
    if args.selects_inside(tuple(entries), x.shape, are_known_inside):
        return _select_inside(x, tuple(entries))
    return _select(x, entries, arrays, False)


@in_one_call
def _slice_entries(x, key):
    return x[tuple(args.normalize_key(key, x.shape)[0])]


def _select(x, entries, arrays, are_inside):
    x = x[tuple(slice(None) if place in arrays else entry for place, entry in enumerate(entries))]
    if not arrays:
        return x
    found = [(entries[i], None) if are_inside else check_indices(entries[i], x.shape[i]) for i in arrays]
    places = [slice(None)] * x.ndim
    for place, (indices, _) in zip(arrays, found, strict=True):
        places[place] = indices
    picked = in_float32(lambda x: x.at[tuple(places)].get(mode="clip"), x)
    behind = x.ndim - len(arrays) - args.index_axis(arrays)
    for _, outside in found:
        picked = picked if outside is None else blank_out_of_range(picked, outside[(..., *[None] * behind)])
    return picked


@in_one_call
def _select_inside(x, key):
    return _select(x, *args.normalize_key(key, x.shape), True)


def op_slice(inputs, start_indices, shape):
    x = convert(inputs)
    starts, outside = block_start(start_indices, x, shape)
    x = jax.lax.dynamic_slice(x, starts, shape)
    return x if outside is None else blank_out_of_range(x, outside)


def op_slice_update(x, start_indices, updates):
    starts, outside = block_start(start_indices, x, updates.shape)
    updated = _updated(x, updates, starts)
    return updated if outside is None else jnp.where(outside, x, updated)


def op_scatter_update(x, indices, updates, reduction):
    known = np.asarray(indices) if is_readable(indices) else None
    if known is None or not ((known >= 0) & (known < x.shape[: known.shape[-1]])).all():
        return _update_cells(x, indices, updates, reduction, False)
    return _update_inside(x, indices, updates, reduction, True)


def _update_cells(x, indices, updates, reduction, are_inside):
    cells, inner = flat_indices(indices, x, are_inside)
    outer, width = x.shape[: x.ndim - len(inner)], math.prod(inner)
    updates = jnp.broadcast_to(updates, (*cells.shape, *inner)).reshape(cells.size, width)
    if cells.size == 0:
        return x
    rows = scatter_rows(x.reshape(math.prod(outer), width), cells.reshape(-1), updates, reduction)
    return rows.reshape(x.shape)


_update_inside = in_one_call(_update_cells)


def op_select(condlist, choicelist, default):
    *choices, result = promote_all(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = jnp.where(convert(condition), choice, result)
    return result


def op_unravel_index(indices, shape):
    indices = to_index_integers(indices)
    outside = (indices < 0) | (indices >= math.prod(shape))
    if is_at_hand(outside) and bool(jnp.any(outside)):
        raise errors.ArgumentError(f"an index is out of range for shape {shape}")
    found = []
    for n in reversed(shape[1:]):
        found.append(indices % max(n, 1))
        indices = indices // max(n, 1)
    return tuple(index.astype(np.int32) for index in reversed([*found, indices][: len(shape)]))


def op_one_hot(x, num_classes, axis, dtype):
    return _one_hot(x, num_classes, axis, available(dtype))  # which may warn, as a program would only once


@in_one_call
def _one_hot(x, num_classes, axis, dtype):
    x = to_index_integers(x)
    args.countable((*x.shape, num_classes))
    return jax.nn.one_hot(x, num_classes, axis=args.single_axis(axis, x.ndim + 1), dtype=native(dtype))


def check_indices(indices, size):
    """Return non-negative indices, and a mask of those out of range; if the values are known, raise, and no mask."""
    if type(indices) is int:
        args.check_indices(indices, indices, size)
        return np.array(indices % size, np.int32 if size < 2**31 else np.int64), None
    known = args.host_indices(indices, size)
    if known is not None:
        return convert(known), None
    if not (is_array(indices) and indices.aval.dtype in _INDEX):
        indices = to_index_integers(indices)
    if are_known_inside(indices, size):
        return indices, None
    if is_readable(indices):
        values = np.asarray(indices)
        args.check_indices(int(values.min()), int(values.max()), size)
    # read concrete indices even while tracing: a rule that gathers by them then stays linear
    with jax.ensure_compile_time_eval() if is_array(indices) else contextlib.nullcontext():
        indices, outside, some = _wrap_indices(indices, size)
    if is_at_hand(some):
        if np.asarray(some):  # bool() takes ten times as long
            raise args.out_of_range(size)
        outside = None
    return indices, outside


def are_known_inside(indices, size):
    """Say whether `indices` are a tensor of ints that are known to lie from 0 to `size`."""
    if not (is_array(indices) and indices.aval.dtype in _INDEX and is_readable(indices)):
        return False
    values = np.asarray(indices)
    # as an unsigned number, a negative one is large
    return not values.size or values.view(_UNSIGNED[values.itemsize]).max() < size


@functools.partial(jit_inline, static_argnums=1)
def _wrap_indices(indices, size):
    outside = (indices < -size) | (indices >= size)
    return jnp.where(indices < 0, indices + size, indices), outside, jnp.any(outside)


_take, _take_along_axis = (  # the gradient is a sum
    jit_inline(lambda x, i, axis, fn=fn: in_float32(lambda x: fn(x, i, axis, mode="clip"), x), static_argnums=2)
    for fn in (jnp.take, jnp.take_along_axis)
)


_updated = jit_inline(jax.lax.dynamic_update_slice)


@jax.jit  # `_linearity` recognizes it by its name
def blank_out_of_range(x, outside):
    return jnp.where(outside, np.nan if jnp.issubdtype(x.dtype, np.inexact) else 0, x).astype(x.dtype)


def block_start(start_indices, x, shape):
    """Return where a block of `shape` starts in `x` and, if the values are not known, whether it exceeds `x`."""
    starts = args.host_ints(start_indices)
    if starts is None:
        starts = to_index_integers(start_indices)
        if is_at_hand(starts):
            starts = np.atleast_1d(starts).tolist()
    if not isinstance(starts, jax.Array):
        return args.corner(starts, x.shape, shape), None
    args.block(starts, x.shape, shape)
    sizes = np.array(x.shape, starts.dtype)
    starts = jnp.where(starts < 0, starts + sizes, starts)
    return tuple(starts), jnp.any((starts < 0) | (starts > sizes - np.array(shape, starts.dtype)))


def flat_indices(indices, x, are_inside):
    """Return the flat index of each cell of `x` that `indices` select, and the shape of a cell.

    Indices out of range that cannot raise become the first index after the last cell.
    """
    indices = to_index_integers(indices)
    depth = indices.shape[-1]
    cells, left_out = jnp.zeros(indices.shape[:-1], indices.dtype), []
    for dim in range(depth):
        column = indices[..., dim]
        column, outside = (column, None) if are_inside else check_indices(column, x.shape[dim])
        cells = cells * x.shape[dim] + column
        left_out += [] if outside is None else [outside]
    for outside in left_out:
        cells = jnp.where(outside, math.prod(x.shape[:depth]), cells)
    return cells, x.shape[depth:]


@functools.partial(jit_inline, static_argnums=3)
def scatter_rows(rows, cells, updates, reduction):
    """Return `rows` with `updates` of the rows `cells`, applied in order; `cells` may repeat."""
    if reduction == "add" and rows.dtype != bool:
        return in_float32(lambda rows, updates: rows.at[cells].add(updates, mode="drop"), rows, updates)
    last = jnp.full(rows.shape[0], -1).at[cells].max(jnp.arange(cells.size), mode="drop")
    hit = (last >= 0)[:, None]
    if reduction is None:
        return jnp.where(hit, updates.at[last].get(mode="clip"), rows)
    order, combine = jnp.argsort(cells, stable=True), _COMBINE[reduction]
    updates = combine_segments(combine, updates[order], cells[order], rows.shape[0])
    one = jnp.ones((), rows.dtype)  # a zero gradient must not be multiplied by infinity
    return jnp.where(hit, combine(jnp.where(hit, rows, one), updates), rows)


_INDEX, _UNSIGNED = {np.dtype(np.int32), np.dtype(np.int64)}, {4: np.uint32, 8: np.uint64}
_COMBINE = {"add": op_add, "max": op_maximum, "min": op_minimum, "mul": op_multiply}


def combine_segments(combine, x, ids, n):
    """Return the rows of each segment combined pairwise, ones for an empty one; the ids are sorted, and `n` is none."""
    rows, behind, one = jnp.arange(x.shape[0]), [1] * (x.ndim - 1), jnp.ones((), x.dtype)
    first = jnp.full(n + 1, x.shape[0]).at[ids].min(rows)
    place, step = rows - first[ids], 1
    while step < x.shape[0]:
        joins = (place[:-step] % (2 * step) == 0) & (ids[:-step] == ids[step:]) & (ids[:-step] < n)
        joins = joins.reshape(-1, *behind)
        joined = combine(jnp.where(joins, x[:-step], one), jnp.where(joins, x[step:], one))
        x = jnp.concatenate([jnp.where(joins, joined, x[:-step]), x[-step:]])
        step *= 2
    x = jnp.concatenate([x, jnp.ones((1, *x.shape[1:]), x.dtype)])
    return x[first[:n]]
