"""Reductions along axes."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import errors
from multiop._values import args

from .._internals import executing_eagerly
from .._ranks import MOST_SLICED
from ..autodiff._programs import in_one_call
from ..autodiff.custom_gradient import can_link, link_rule
from ..conversion import (
    cached_ints,
    choose,
    convert,
    floating,
    in_float32,
    is_float_along,
    is_tracked,
    promote,
    rank,
    reject_complex,
    resolve_axis,
    to_accumulation_dtype,
    to_summands,
)
from .elementwise import op_maximum, op_minimum, with_nan
from .indexing import by_doubling


def op_sum(x, axis, keepdims):
    if is_float_along(x, axis):
        return tf.raw_ops.Sum(input=x, axis=axis, keep_dims=bool(keepdims))
    x = convert(x)
    if (x.dtype is tf.float32 or x.dtype is tf.float64) and x.shape.rank is not None:
        return tf.raw_ops.Sum(input=x, axis=cached_ints(args.axes(axis, rank(x))), keep_dims=bool(keepdims))
    return in_float32(lambda x: reduce_axes(tf.reduce_sum, x, axis, keepdims), to_accumulation_dtype(x))


def op_prod(x, axis, keepdims, dtype):
    if dtype is None and is_float_along(x, axis) and not is_tracked():
        return tf.raw_ops.Prod(input=x, axis=axis, keep_dims=bool(keepdims))
    x = convert(x, dtype) if dtype else to_accumulation_dtype(convert(x))
    return in_float32(lambda x: (product if is_tracked() else tf.reduce_prod)(x, axes(axis, x), keepdims), x)


def op_mean(x, axis, keepdims):
    if is_float_along(x, axis):
        return tf.raw_ops.Mean(input=x, axis=axis, keep_dims=bool(keepdims))
    return in_float32(lambda x: reduce_axes(tf.reduce_mean, x, axis, keepdims), floating(x))


def op_var(x, axis, keepdims):
    if can_link() and (x := floating(x)).dtype.is_floating:
        y = in_float32(lambda x: mean_square(x, reduce_axes(tf.reduce_mean, x, axis, True), axis), x)
        return y if keepdims else squeeze_axes(y, axis)
    if is_float_along(x, axis):
        centred = tf.raw_ops.Sub(x=x, y=tf.raw_ops.Mean(input=x, axis=axis, keep_dims=True))
        return tf.raw_ops.Mean(input=tf.raw_ops.Square(x=centred), axis=axis, keep_dims=bool(keepdims))
    return in_float32(lambda x: reduce_axes(tf.math.reduce_variance, x, axis, keepdims), floating(x))


@in_one_call
def op_std(x, axis, keepdims):
    return in_float32(lambda x: deviation(x, axis, keepdims), floating(x))  # squares would overflow


def deviation(x, axis, keepdims):
    variance = op_var(x, axis, keepdims)
    if not is_tracked():
        return tf.sqrt(variance)
    constant = tf.equal(variance, 0)  # there, the root has an infinite gradient, but the deviation a gradient of 0
    are_equal = variance < math.inf  # the mean of equal entries may be rounded to another number
    for part in [tf.math.real(x), tf.math.imag(x)] if x.dtype.is_complex else [x]:
        are_equal &= tf.equal(*(reduce_axes(reduce, part, axis, keepdims) for reduce in (tf.reduce_min, tf.reduce_max)))
    constant |= are_equal
    return choose(constant, tf.zeros_like(variance), tf.sqrt(choose(constant, tf.ones_like(variance), variance)))


def op_max(x, axis, keepdims, initial):
    return extremum(tf.raw_ops.Max, tf.reduce_max, op_maximum, x, axis, keepdims, initial)


def op_min(x, axis, keepdims, initial):
    return extremum(tf.raw_ops.Min, tf.reduce_min, op_minimum, x, axis, keepdims, initial)


def op_argmax(x, axis, keepdims):
    return arg_extremum(tf.raw_ops.ArgMax, x, axis, keepdims)


def op_argmin(x, axis, keepdims):
    return arg_extremum(tf.raw_ops.ArgMin, x, axis, keepdims)


def op_all(x, axis, keepdims):
    return reduce_axes(tf.reduce_all, convert(x, "bool"), axis, keepdims)


def op_any(x, axis, keepdims):
    return reduce_axes(tf.reduce_any, convert(x, "bool"), axis, keepdims)


def op_logsumexp(x, axis, keepdims):
    return in_float32(lambda x: logsumexp(x, axis, keepdims), *reject_complex(floating(x)))


@in_one_call
def logsumexp(x, axis, keepdims):
    top = tf.stop_gradient(reduce_axes(tf.reduce_max, x, axis, True))
    shift = choose(tf.math.is_finite(top), top, tf.zeros([], x.dtype))
    total = reduce_axes(tf.reduce_sum, tf.exp(x - shift), axis, True)
    empty = tf.equal(total, 0)  # a row of -inf, where the gradient of tf.reduce_logsumexp is NaN
    y = choose(empty, tf.constant(-math.inf, x.dtype), tf.math.log(choose(empty, tf.ones([], x.dtype), total)) + shift)
    return y if keepdims else squeeze_axes(y, axis)


def op_cumsum(x, axis, dtype):
    if dtype is None and is_float_along(x, axis):
        return tf.raw_ops.Cumsum(x=x, axis=axis)
    x, axis = resolve_axis(to_summands(x, dtype), axis)
    return in_float32(lambda x: _in_signed(tf.cumsum, x, axis), x)


def _in_signed(cumulate, x, axis):
    """Cumulate unsigned integers as signed ones in a graph, modulo their range: XLA has no kernel for them."""
    signed = None if executing_eagerly() else _SIGNED.get(x.dtype)
    return cumulate(x, axis) if signed is None else tf.cast(cumulate(tf.cast(x, signed), axis), x.dtype)


_SIGNED = {tf.uint8: tf.int32, tf.uint16: tf.int32, tf.uint32: tf.int64, tf.uint64: tf.int64}


def op_cumprod(x, axis, dtype):
    x, axis = resolve_axis(to_summands(x, dtype), axis)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        return _in_signed(tf.math.cumprod, x, axis)
    cumulate = cumprod if is_tracked() else tf.math.cumprod
    return in_float32(lambda x: cumulate(x, axis), x)


@in_one_call
def cumprod(x, axis):
    if rank(x) > MOST_SLICED and x.shape.is_fully_defined():
        before, after = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
        return tf.reshape(cumprod(tf.reshape(x, [before, x.shape[axis], after]), 1), x.shape)
    order = args.moved_order(axis, 0, rank(x))
    # tf.math.cumprod's gradient divides by the entries
    x = by_doubling(lambda step, x: tf.concat([x[:step], x[step:] * x[:-step]], 0), tf.transpose(x, order))
    return tf.transpose(x, args.moved_order(0, axis, rank(x)))


def axes(axis, x):
    """Return the axes of `x` to reduce; `None` for all axes of an unknown rank."""
    return None if axis is None and x.shape.rank is None else args.axes(axis, rank(x))


def reduce_axes(reduce, x, axis, keepdims):
    dims = axes(axis, x)
    if dims is not None:
        dims = dims[0] if len(dims) == 1 else cached_ints(dims)  # TensorFlow takes five times as long to read a list
    return reduce(x, dims, keepdims)


def mean_square(x, centre, axis):
    """Return the mean square distance from `centre`, the mean, which has no part in the gradient.

    TensorFlow's own gradient passes through the mean too: to 0, in more steps.
    """

    def square(x, centre):
        return reduce_axes(tf.reduce_mean, tf.math.squared_difference(x, centre), axis, True)

    def rule(x, centre, upstream):
        return [(x - centre) * (upstream * (2 / count(x, upstream))), None]

    return link_rule("op_var", square, rule, x, centre)


def count(x, y):
    """Return how many entries of `x` there are for each of `y`, as a number of their dtype."""
    if x.shape.is_fully_defined() and y.shape.is_fully_defined():
        return tf.constant(x.shape.num_elements() / max(y.shape.num_elements(), 1), x.dtype)
    return tf.cast(tf.size(x, tf.int64), x.dtype) / tf.cast(tf.maximum(tf.size(y, tf.int64), 1), x.dtype)


def squeeze_axes(x, axis):
    """Drop the axes that a reduction over `axis` kept."""
    dims = axes(axis, x)
    return x if dims == () else tf.squeeze(x, dims)


@in_one_call
def product(x, dims, keepdims):
    """Multiply pairwise in halves: the second derivative of tf.reduce_prod is wrong where an entry is zero."""
    if dims is None or not (x.dtype.is_floating or x.dtype.is_complex):
        return tf.reduce_prod(x, dims, keepdims)
    if rank(x) > MOST_SLICED and x.shape.is_fully_defined() and dims:
        return product_of_rows(x, dims, keepdims)
    for dim in sorted(dims, reverse=True):
        x = tf.transpose(x, args.moved_order(dim, 0, rank(x)))
        if x.shape[0] is None:
            rest = tf.TensorShape([None, *x.shape[1:]])
            x = tf.while_loop(lambda x: tf.shape(x)[0] > 1, lambda x: [multiply_halves(x)], [x], [rest])[0]
        else:
            while x.shape[0] > 1:
                x = multiply_halves(x)
        x = x[0] if x.shape[0] else tf.reduce_prod(x, 0)
        x = tf.expand_dims(x, dim) if keepdims else x
    return x


def product_of_rows(x, dims, keepdims):
    """Do the same with all of `dims` as one dimension, and all others as another."""
    kept = [dim for dim in range(rank(x)) if dim not in dims]
    rows = tf.reshape(tf.transpose(x, [*sorted(dims), *kept]), [math.prod(x.shape[dim] for dim in dims), -1])
    shape = [1 if dim in dims else n for dim, n in enumerate(x.shape) if keepdims or dim not in dims]
    return tf.reshape(product(rows, (0,), False), shape)


def multiply_halves(x):
    """Multiply the first half of `x` by the second, entry by entry; an odd entry is left over."""
    half = tf.shape(x)[0] // 2 if x.shape[0] is None else x.shape[0] // 2
    return tf.concat([x[:half] * x[half : 2 * half], x[2 * half :]], 0)


def extremum(kernel, reduce, pairwise, x, axis, keepdims, initial):
    if initial is None and is_float_along(x, axis) and x.shape[axis]:
        y = kernel(input=x, axis=axis, keep_dims=bool(keepdims))
        return with_nan(y, lambda: tf.reduce_any(tf.math.is_nan(x), axis, keepdims))
    (x,) = reject_complex(convert(x))
    dims = axes(axis, x)
    if x.dtype is tf.bool and initial is not None:
        x = promote(x, initial)[0]
    if x.dtype is tf.bool:
        return tf.cast(extremum(kernel, reduce, pairwise, tf.cast(x, tf.uint8), axis, keepdims, initial), tf.bool)
    if dims is not None and any(x.shape[dim] == 0 for dim in dims):
        if initial is None:
            raise errors.ArgumentError("x: an empty reduction has no extreme value; give initial")
        shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdims or d not in dims]
        return tf.broadcast_to(promote(x, initial)[1], shape)
    y = reduce_axes(reduce, x, axis, keepdims)
    y = with_nan(y, lambda: reduce_axes(tf.reduce_any, tf.math.is_nan(x), axis, keepdims))
    return y if initial is None else pairwise(y, initial)


def arg_extremum(reduce, x, axis, keepdims):
    (x,) = reject_complex(convert(x))
    if axis is None:
        found = arg_extremum(reduce, tf.reshape(x, [-1]), 0, False)
        return tf.reshape(found, tf.ones_like(tf.shape(x))) if keepdims else found
    axis = args.single_axis(axis, rank(x))
    x = tf.cast(x, tf.uint8) if x.dtype is tf.bool else x
    if x.dtype.is_integer and not executing_eagerly():
        # Grappler takes the place in x for that in sign(x), https://github.com/tensorflow/tensorflow/issues/116436
        x, reduce = tf.bitwise.invert(x), tf.raw_ops.ArgMin if reduce is tf.raw_ops.ArgMax else tf.raw_ops.ArgMax
    found = reduce(input=x, dimension=axis, output_type=tf.int32)
    if x.dtype.is_floating:
        nan = tf.raw_ops.IsNan(x=x)  # the first NaN wins; TensorFlow ignores them
        first = tf.raw_ops.ArgMax(input=tf.raw_ops.Cast(x=nan, DstT=tf.uint8), dimension=axis, output_type=tf.int32)
        found = choose(tf.raw_ops.Any(input=nan, axis=axis), first, found)
    return tf.expand_dims(found, axis) if keepdims else found
