"""Sums of segments by TensorFlow's kernel, which refuses a segment that is out of range."""

from __future__ import annotations

from ..conversion import to_accumulation_dtype
from ..ops.indexing import are_known_inside
from ..ops.segment import sum_segments


def op_segment_sum(x, ids, num_segments, *, otherwise):
    if are_known_inside(ids, num_segments):
        return sum_segments(to_accumulation_dtype(x), ids, num_segments)
    return otherwise(x, ids, num_segments)
