"""Activations of neural networks."""

from __future__ import annotations

import tensorflow as tf

from multiop import _args

from .conversion import choose, convert, floating, rank
from .elementwise import numbers, real


def op_relu(x):
    (x,) = real(*numbers(convert(x)))
    return choose(
        tf.less_equal(x, tf.constant(0, x.dtype)), tf.zeros_like(x), x
    )  # NaN passes, and so does its gradient


def op_sigmoid(x):
    return tf.sigmoid(floating(x))


def op_softplus(x):
    return tf.nn.softplus(*real(floating(x)))


def op_softmax(x, axis):
    (x,) = real(floating(x))
    axis = _args.single_axis(axis, rank(x))
    # where the largest entry is infinite, tf.nn.softmax makes NaN of that entry alone, not of all
    top = tf.stop_gradient(tf.reduce_max(x, axis, keepdims=True))
    return tf.nn.softmax(x, axis) + (top - top)


def op_log_softmax(x, axis):
    (x,) = real(floating(x))
    return tf.nn.log_softmax(x, _args.single_axis(axis, rank(x)))
