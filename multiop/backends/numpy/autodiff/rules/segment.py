"""Derivatives of reductions over segments."""

from __future__ import annotations

import numpy as np

from ..._record import array_of, ops
from .formula import by_formula
from .indexing import combine_rows

op_segment_sum = (lambda u, _y, _x, ids, _number: spread(u, ids),)
op_segment_max = op_segment_min = (lambda u, y, x, ids, _number: share(u, x, ids, array_of(y)),)


@by_formula
def op_segment_prod(x, ids, num_segments):
    ids = np.asarray(ids)
    n = ids.max(initial=-1) + 1 if num_segments is None else num_segments
    inside = np.flatnonzero((ids >= 0) & (ids < n))
    rows, products = combine_rows(ops.multiply, ops.take(x, inside, 0), ids[inside])
    return ops.scatter_update(np.ones((n, *x.shape[1:]), products.dtype), rows[:, None], products, None)


def spread(y, ids):
    """Return for each id the row of its segment, and zeros where it is out of range."""
    ids = np.asarray(array_of(ids))
    n = y.shape[0]
    rows = ops.concatenate([y, np.zeros((1, *y.shape[1:]), y.dtype)], 0)
    return ops.take(rows, np.where((ids >= 0) & (ids < n), ids, n), 0)


def share(u, x, ids, y):
    """Return the gradient of an extremum `y`, which those of a tie share."""
    chosen = ops.logical_or(ops.isnan(x), ops.equal(x, spread(y, ids)))
    number = ops.segment_sum(chosen.astype(u.dtype), ids, len(y))
    return ops.where(chosen, spread(ops.divide(u, np.maximum(number, 1)), ids), 0)
