"""Activations of neural networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from multiop import _args

from .conversion import convert, floating
from .elementwise import compiled, numbers, real


def op_relu(x):
    (x,) = real(*numbers(convert(x)))
    return _relu(x)


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


@compiled
def _relu(x):
    return jnp.where(x <= 0, 0, x)  # NaN passes, and so does its gradient
