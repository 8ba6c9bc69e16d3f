"""Entries by their place."""

import numpy as np

from multiop import extend

from .conversion import Tensor, convert, record


def op_get_item(x, key):
    x = convert(x)
    entries, places = extend.index_parts(key, x.shape)
    if places and not all(isinstance(entries[p], int) for p in places):
        entries = [entry.array if isinstance(entry, Tensor) else entry for entry in entries]
    entries = tuple(entries)
    return record(lambda array: array[entries], (x, lambda u: put(u, entries, x.shape)))


def put(u, entries, shape):
    """Return zeros of `shape` to which `u` is added at `entries`."""

    def run(array):
        zeros = np.zeros(shape, array.dtype)
        np.add.at(zeros, entries, array)
        return zeros

    return record(run, (u, lambda v: record(lambda array: array[entries], (v, lambda w: put(w, entries, shape)))))


Tensor.__getitem__ = op_get_item
