"""Derivatives of normalization."""

from __future__ import annotations

import numpy as np

from multiop._values import args

from ..._record import array_of, ops
from .formula import by_formula


@by_formula
def op_normalize(x, axis, order, epsilon):
    axis = args.axes(axis, x.ndim)
    largest = ops.max(abs(array_of(x)), axis, True, 0)  # a constant: it cancels out
    zero = largest == 0
    small = x / ops.where(zero, 1, largest)
    total = ops.where(zero, 1, ops.sum(np.square(small) if order == 2 else ops.power(abs(small), order), axis, True))
    length = ops.power(total, 1 / order)
    return ops.where(ops.less(largest * length, epsilon), x / epsilon, small / length)
