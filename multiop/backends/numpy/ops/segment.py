"""Reductions over the segments that a vector of ids divides a tensor into."""

from __future__ import annotations

import numpy as np

from ..conversion import convert, in_float32, reject_complex
from .indexing import integers
from .reduction import identity, summands


def op_segment_sum(x, ids, num_segments):
    return combine_segments(np.add, 0, summands(x, None), ids, num_segments)


def extremum(fn, which):
    def op(x, ids, num_segments):
        (x,) = reject_complex(convert(x))
        return combine_segments(fn, identity(x)[which], x, ids, num_segments)

    return op


op_segment_max = extremum(np.maximum, 0)
op_segment_min = extremum(np.minimum, 1)


def op_segment_prod(x, ids, num_segments):
    return combine_segments(np.multiply, 1, summands(x, None), ids, num_segments)


def combine_segments(combine, identity, x, ids, num_segments):
    """Return the rows of each segment combined, starting from `identity`; those out of range are dropped."""
    ids = integers(ids)
    n = max(int(ids.max(initial=-1)) + 1, 0) if num_segments is None else num_segments
    inside = (ids >= 0) & (ids < n)

    def run(x):
        y = np.full((n, *x.shape[1:]), identity, x.dtype)
        combine.at(y, ids[inside], x[inside])
        return y

    return in_float32(run, x)
