"""Derivatives of sorting: what is sorted passes its gradient to where it came from."""

from __future__ import annotations

import numpy as np

from ..._record import array_of, ops
from .formula import zero
from .indexing import entry_numbers, put

op_argsort = op_searchsorted = op_digitize = zero


def of_sorted(u, _y, x, axis):
    x = array_of(x)
    order, numbers = ops.argsort(x, axis), entry_numbers(x)
    return put(u, np.take_along_axis(numbers, order, axis) if axis is not None else order, x.shape)


op_sort = (of_sorted,)


def op_top_k(us, x, k, sorted):
    order = ops.top_k(array_of(x), k, sorted)[1]
    return put(us[0], ops.take_along_axis(entry_numbers(x), order, -1), x.shape)


def op_bincount(u, x, weights, minlength):
    return None, ops.take(u, x, 0)
