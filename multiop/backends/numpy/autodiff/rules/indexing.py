"""Derivatives of selections by index: what is picked passes its gradient to where it came from."""

from __future__ import annotations

import math

import numpy as np

from ..._record import Entries, array_of, is_traced, ops, recorded
from .formula import by_formula, zero


def selection(name):
    """Return the rule of an op that selects entries of its first operand: of numbers, it says which."""

    def rule(u, x, *options):
        return put(u, getattr(ops, name)(entry_numbers(x), *array_of(options)), x.shape)

    return rule


def entry_numbers(x):
    """Return an array of the shape of `x` with the number of each entry."""
    return np.arange(math.prod(shape_of(x))).reshape(shape_of(x))


def shape_of(x):
    """Return the shape of an operand, which may be a list of tensors."""
    return x.shape if hasattr(x, "shape") else ops.shape(x)


def put(u, places, shape):
    """Return the sum of the entries of `u` at each of their places in a tensor of `shape`; both may be lists."""
    if type(u) is np.ndarray and u.dtype == np.float64 and places.min(initial=0) >= 0:
        return np.bincount(places.ravel(), u.ravel(), math.prod(shape)).astype(u.dtype, copy=False).reshape(shape)
    us, places = (u, places) if isinstance(u, list) else ([u], [places])
    entries = ops.concatenate([ops.reshape(v, (-1,)) for v in us], 0)
    places = np.concatenate([np.ravel(numbers) for numbers in places])
    return ops.reshape(ops.segment_sum(entries, places, math.prod(shape)), shape)


op_take, op_take_along_axis, op_slice = map(selection, ["take", "take_along_axis", "slice"])


def of_item(u, _y, like, key):
    entries = key if type(key) is tuple else (key,)
    if not all(entry is None or entry is ... or type(entry) in (int, slice) for entry in entries):
        return put(u, entry_numbers(like)[array_of(key)], like.shape)
    return placed(u, key, like.shape)


def placed(u, key, shape):
    """Return zeros of `shape`, and `u` where `key`, of slices and numbers, takes it."""
    if not is_traced(u):
        return Entries(key, array_of(u), shape)
    return recorded(lambda u: Entries(key, u, shape).array(), (lambda u, *_: ops.get_item(u, key),), (u,))


op_get_item = (of_item,)


def op_slice_update(u, x, start_indices, updates):
    block = ops.slice(u, start_indices, updates.shape)
    return ops.slice_update(u, start_indices, np.zeros(updates.shape, u.dtype)), None, block


def op_scatter_update(u, x, indices, updates, reduction):
    cells = tuple(np.moveaxis(np.asarray(array_of(indices)), -1, 0))
    if reduction in ("max", "min", "mul"):
        combine = {"max": ops.maximum, "min": ops.minimum, "mul": ops.multiply}[reduction]
        return update_entries(u, x, cells, updates, combine)
    there = ops.get_item(u, cells)
    if reduction == "add":
        return u, None, there
    numbers = entry_numbers(there)
    last = ops.scatter_update(np.full(x.shape, -1), indices, numbers, None)
    return ops.where(last < 0, u, 0), None, ops.where(last[cells] == numbers, there, 0)


def op_select(u, condlist, choicelist, default):
    grads = []
    for condition in condlist:
        grads.append(ops.where(condition, u, 0))
        u = ops.where(condition, 0, u)
    return [None] * len(condlist), grads, u


op_unravel_index = op_one_hot = zero


@by_formula
def update_entries(x, cells, updates, combine):
    """Return `x` with each entry combined with what its updates are when combined."""
    places = entry_numbers(x)[cells]
    flat, updates = ops.reshape(x, (-1,)), ops.reshape(ops.broadcast_to(updates, places.shape), (-1,))
    rows, updates = combine_rows(combine, updates, places.ravel())
    return ops.reshape(ops.scatter_update(flat, rows[:, None], combine(flat[rows], updates), None), x.shape)


def combine_rows(combine, x, ids):
    """Return the ids that there are, in order, and the rows of `x` that have each of them, combined in pairs."""
    order = np.argsort(ids, stable=True)
    x, ids = x[order], ids[order]
    while (ids[1:] == ids[:-1]).any():
        even = (np.arange(len(ids)) - np.searchsorted(ids, ids)) % 2 == 0  # the place of a row among those of its id
        pairs = np.flatnonzero(even[:-1] & (ids[1:] == ids[:-1]))
        x = ops.scatter_update(x, pairs[:, None], combine(x[pairs], x[pairs + 1]), None)[even]
        ids = ids[even]
    return ids, x
