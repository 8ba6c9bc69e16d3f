"""Special functions by TensorFlow's kernels in float64, which are right to half a unit in the last place of float32.

Not all of their derivatives are.
"""

from __future__ import annotations

import tensorflow as tf

from ..autodiff.custom_gradient import can_link, linked
from ..conversion import choose, executing_eagerly, floating, in_this_graph, is_tracked


def op_lgamma(x, *, otherwise):
    x = floating(x)
    if x.dtype is tf.float64 or x.dtype.is_complex or not can_link(eagerly=True):
        return otherwise(x)
    if x.dtype is not tf.float32:
        return tf.cast(op_lgamma(tf.cast(x, tf.float32), otherwise=otherwise), x.dtype)

    def slope(x, upstream):
        return linked("op_lgamma/slope", lambda x, upstream: upstream * digamma(x), slope_rule, x, upstream)

    def slope_rule(x, upstream, second_upstream):
        x, upstream = in_this_graph(x), in_this_graph(upstream)
        return pull(lambda x, upstream: pull(otherwise, [x], upstream)[0], [x, upstream], second_upstream)

    return linked(
        "op_lgamma", lambda x: in_float64(tf.raw_ops.Lgamma, x=x), lambda x, upstream: [slope(x, upstream)], x
    )


def pull(fn, xs, upstream):
    """Return the gradients of `fn(*xs)`."""
    if not executing_eagerly():
        return tf.gradients(fn(*xs), xs, upstream)
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = fn(*xs)
    return tape.gradient(y, xs, upstream)


def op_digamma(x, *, otherwise):
    x = floating(x)
    if x.dtype is tf.float64 or x.dtype.is_complex or is_tracked():
        return otherwise(x)
    return tf.cast(digamma(tf.cast(x, tf.float32)), x.dtype)


def in_float64(kernel, **xs):
    wide = {name: tf.raw_ops.Cast(x=x, DstT=tf.float64) for name, x in xs.items()}
    return tf.raw_ops.Cast(x=kernel(**wide), DstT=tf.float32)


def digamma(x):
    y = in_float64(tf.raw_ops.Digamma, x=x)  # NaN at 0
    return choose(tf.raw_ops.Equal(x=x, y=0.0), tf.raw_ops.Neg(x=tf.raw_ops.Reciprocal(x=x)), y)
