"""Reductions over the segments that a vector of ids divides a tensor into."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import _args, errors

from .conversion import choose, convert, dense, rank
from .elementwise import is_known, reject_complex
from .indexing import to_index_integers
from .reduction import in_float32, to_accumulation_dtype


def op_segment_sum(data, segment_ids, num_segments):
    x, ids, n = segments(data, segment_ids, num_segments)
    return sum_segments(to_accumulation_dtype(x), ids, n)[:n]


def op_segment_max(data, segment_ids, num_segments):
    return segment_extremum(tf.math.unsorted_segment_max, -math.inf, data, segment_ids, num_segments)


def op_segment_min(data, segment_ids, num_segments):
    return segment_extremum(tf.math.unsorted_segment_min, math.inf, data, segment_ids, num_segments)


def op_segment_prod(data, segment_ids, num_segments):
    x, ids, n = segments(data, segment_ids, num_segments)
    order = tf.argsort(ids, stable=True)
    return multiply_segments(tf.gather(dense(to_accumulation_dtype(x)), order), tf.gather(ids, order), n)


def segments(data, segment_ids, num_segments):
    """Return the data, the ids (`n` where out of range), and the number of segments `n`."""
    x, ids = convert(data), to_index_integers(segment_ids)
    if rank(ids) != 1 or not rank(x) or not ids.shape.is_compatible_with(x.shape[:1]):
        raise errors.ArgumentError(f"segment_ids {_args.describe(ids)} do not fit data {_args.describe(x)}")
    if num_segments is None:
        if not is_known(ids):
            raise errors.ArgumentError("num_segments must be given in compiled or mapped code")
        num_segments = max(int(tf.reduce_max(ids)) + 1, 0) if ids.shape[0] else 0
    outside = tf.logical_or(ids < 0, ids >= num_segments)
    return x, choose(outside, tf.constant(num_segments, tf.int64), ids), num_segments


def sum_segments(x, ids, n):
    """Return the sum of each segment and of what is out of range."""
    return in_float32(lambda x: tf.math.unsorted_segment_sum(x, ids, n + 1), x)


def segment_extremum(reduce, start, data, segment_ids, num_segments):
    x, ids, n = segments(data, segment_ids, num_segments)
    (x,) = reject_complex(x)
    if x.dtype is tf.bool:
        found = segment_extremum(reduce, start, tf.cast(x, tf.uint8), ids, n)
        return tf.cast(tf.minimum(found, tf.ones_like(found)), tf.bool)
    top = reduce(tf.stop_gradient(x), ids, n + 1)
    if not x.dtype.is_floating:
        return top[:n]
    # the native function ignores NaN, and starts from the largest finite number, not from infinity
    nan, start = tf.math.is_nan(x), tf.constant(start, x.dtype)
    top = choose(any_in_segment(tf.not_equal(x, start), ids, n), top, start)
    top = choose(any_in_segment(nan, ids, n), tf.constant(math.nan, x.dtype), top)
    chosen = tf.logical_or(nan, tf.equal(x, tf.gather(top, ids)))
    zero = tf.zeros([], x.dtype)
    wide = tf.float64 if x.dtype is tf.float64 else tf.float32
    share = tf.gather(tf.cast(tf.math.reciprocal(sum_segments(tf.cast(chosen, wide), ids, n)), x.dtype), ids)
    change = choose(tf.math.is_inf(x), x, x - tf.stop_gradient(x))
    change = sum_segments(choose(chosen, change, zero) * choose(chosen, share, zero), ids, n)
    return choose(tf.math.is_finite(top), top + change, choose(tf.equal(change, 0), top, change))[:n]


def any_in_segment(condition, ids, n):
    """Say for each segment whether a condition holds anywhere in it."""
    return tf.math.unsorted_segment_max(tf.cast(condition, tf.int32), ids, n + 1) > 0


def multiply_segments(x, ids, n):
    """Return the product of each segment, accumulated pairwise into its first row; the ids are sorted."""
    size = tf.shape(x, tf.int64)[0] if x.shape[0] is None else x.shape[0]
    rows, behind, one = tf.range(size, dtype=tf.int64), [1] * (rank(x) - 1), tf.ones([], x.dtype)
    first = tf.minimum(tf.math.unsorted_segment_min(rows, ids, n + 1), size)
    place = rows - tf.gather(first, ids)

    def halved(step, x):
        same = tf.logical_and(tf.equal(ids[:-step], ids[step:]), ids[:-step] < n)
        joins = tf.reshape(tf.logical_and(tf.equal(place[:-step] % (2 * step), 0), same), [-1, *behind])
        joined = choose(joins, x[:-step], one) * choose(joins, x[step:], one)
        return 2 * step, tf.concat([choose(joins, joined, x[:-step]), x[-step:]], 0)

    step = 1
    if x.shape[0] is None:
        x = tf.while_loop(lambda step, x: step < size, halved, (tf.constant(1, tf.int64), x))[1]
    else:
        while step < size:
            step, x = halved(step, x)
    x = tf.concat([x, tf.ones(tf.concat([[1], tf.shape(x)[1:]], 0), x.dtype)], 0)
    return tf.gather(dense(x), first[:n])
