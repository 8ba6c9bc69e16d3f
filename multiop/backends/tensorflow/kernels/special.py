"""Special functions by TensorFlow's kernels in float64, which are right to half a unit in the last place of float32.

Not all of their derivatives are. That of the logarithm of the gamma function is right to two units in float64, too.
"""

from __future__ import annotations

import tensorflow as tf

from ..autodiff.custom_gradient import can_link, linked
from ..conversion import choose, executing_eagerly, floating, in_this_graph, is_tracked


def op_lgamma(x, *, otherwise):
    x = floating(x)
    if x.dtype.is_complex or not can_link(eagerly=True):
        return otherwise(x)
    if x.dtype not in (tf.float32, tf.float64):
        return tf.cast(op_lgamma(tf.cast(x, tf.float32), otherwise=otherwise), x.dtype)
    if not is_tracked():
        return in_float64(tf.raw_ops.Lgamma, x)

    def slope(x, upstream):
        return linked("op_lgamma/slope", lambda x, upstream: upstream * digamma(x), slope_rule, x, upstream)

    def slope_rule(x, upstream, second_upstream):
        x, upstream = in_this_graph(x), in_this_graph(upstream)
        return pull(lambda x, upstream: pull(otherwise, [x], upstream)[0], [x, upstream], second_upstream)

    return linked("op_lgamma", lambda x: in_float64(tf.raw_ops.Lgamma, x), lambda x, upstream: [slope(x, upstream)], x)


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


def in_float64(kernel, x):
    if x.dtype is tf.float64:
        return kernel(x=x)
    return tf.raw_ops.Cast(x=kernel(x=tf.raw_ops.Cast(x=x, DstT=tf.float64)), DstT=tf.float32)


def digamma(x):
    y = in_float64(tf.raw_ops.Digamma, x)  # NaN at 0
    return choose(tf.raw_ops.Equal(x=x, y=0.0), tf.raw_ops.Neg(x=tf.raw_ops.Reciprocal(x=x)), y)
