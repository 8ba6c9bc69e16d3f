"""Activations of neural networks."""

from __future__ import annotations

import jax

from multiop import _args

from .conversion import convert, floating
from .elementwise import numbers, real


def op_relu(x):
    return jax.nn.relu(*real(*numbers(convert(x))))


def op_sigmoid(x):
    return jax.nn.sigmoid(floating(x))


def op_softplus(x):
    return jax.nn.softplus(*real(floating(x)))


def op_softmax(x, axis):
    (x,) = real(floating(x))
    return jax.nn.softmax(x, _args.single_axis(axis, x.ndim))


def op_log_softmax(x, axis):
    (x,) = real(floating(x))
    return jax.nn.log_softmax(x, _args.single_axis(axis, x.ndim))
