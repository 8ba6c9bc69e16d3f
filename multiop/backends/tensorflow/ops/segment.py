"""Reductions over the segments that a vector of ids divides a tensor into."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import errors

from ..autodiff._programs import in_one_call
from ..conversion import choose, dense, in_float32, reject_complex, to_accumulation_dtype, to_index_integers
from ..devices import is_known
from .elementwise import op_multiply
from .indexing import combine_segments


def op_segment_sum(x, ids, num_segments):
    ids, n = segments(ids, num_segments)
    return sum_segments(to_accumulation_dtype(x), ids, n + 1)[:n]


@in_one_call
def op_segment_max(x, ids, num_segments):
    return segment_extremum(tf.math.unsorted_segment_max, -math.inf, x, ids, num_segments)


@in_one_call
def op_segment_min(x, ids, num_segments):
    return segment_extremum(tf.math.unsorted_segment_min, math.inf, x, ids, num_segments)


@in_one_call
def op_segment_prod(x, ids, num_segments):
    ids, n = segments(ids, num_segments)
    order = tf.argsort(ids, stable=True)
    return combine_segments(op_multiply, tf.gather(dense(to_accumulation_dtype(x)), order), tf.gather(ids, order), n)


def segments(ids, num_segments):
    """Return the ids (`n` where out of range), and the number of segments `n`."""
    ids = to_index_integers(ids)
    if num_segments is None:
        if not is_known(ids):
            raise errors.ArgumentError("num_segments must be given in compiled or mapped code")
        num_segments = max(int(tf.reduce_max(ids)) + 1, 0) if ids.shape[0] else 0
    outside = tf.logical_or(ids < 0, ids >= num_segments)
    return choose(outside, tf.constant(num_segments, tf.int64), ids), num_segments


def sum_segments(x, ids, n):
    return in_float32(lambda x: tf.math.unsorted_segment_sum(x, ids, n), x)


def segment_extremum(reduce, start, x, ids, num_segments):
    ids, n = segments(ids, num_segments)
    (x,) = reject_complex(x)
    if x.dtype is tf.bool:
        return tf.cast(segment_extremum(reduce, start, tf.cast(x, tf.uint8), ids, n), tf.bool)
    if not x.dtype.is_floating:
        return reduce(x, ids, n + 1)[:n]

    def extremum(x):  # the native function ignores NaN, and starts from the largest finite number, not from infinity
        first, missing = tf.constant(start, x.dtype), tf.constant(math.nan, x.dtype)
        top = choose(any_in_segment(tf.not_equal(x, first), ids, n), reduce(x, ids, n + 1), first)
        return choose(any_in_segment(tf.math.is_nan(x), ids, n), missing, top)[:n]

    return in_float32(extremum, x)


def any_in_segment(condition, ids, n):
    """Say for each segment whether a condition holds anywhere in it."""
    return tf.math.unsorted_segment_max(tf.cast(condition, tf.int32), ids, n + 1) > 0
