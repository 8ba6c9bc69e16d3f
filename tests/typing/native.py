"""Lines of somebody who works with a framework itself: its tensors are `multiop.Tensor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import jax
import jax.numpy as jnp
import tensorflow as tf
import torch

import multiop
from multiop import ops


def area(width: multiop.Tensor, height: multiop.Tensor) -> multiop.Tensor:
    return width * height


@multiop.op_custom_gradient
def f(x: multiop.Tensor) -> tuple[multiop.Tensor, Callable[..., Any]]:
    return x * x, lambda upstream: upstream * 10


t, j, v = torch.ones(3), jnp.ones(3), tf.constant([1.0])
p = torch.nn.Parameter(t)
assert_type(area(t, p), multiop.Tensor)
assert_type(area(j, j), multiop.Tensor)
assert_type(f(t), multiop.Tensor)
assert_type(f(j), multiop.Tensor)
ops.add(t, p)
ops.add(j, 1.0)
ops.add(v, tf.Variable(v))
ops.cast(t, torch.float32)
ops.cast(j, jnp.float32)
ops.cast(v, tf.float32)
ops.zeros(3, t.dtype)
ops.zeros(3, j.dtype)
ops.zeros(3, v.dtype)
ops.zeros(t.shape)
ops.zeros(j.shape)
multiop.grad(lambda x: ops.sum(x * x))(t)


def native(x: torch.Tensor, y: jax.Array) -> tuple[torch.Tensor, jax.Array]:
    return torch.exp(x), jnp.exp(y)


value, pullback = multiop.vjp(native, t, j)
assert_type(value, tuple[torch.Tensor, jax.Array])
ops.zeros(t)  # refused: arg-type, reportArgumentType
ops.cast(t, t)  # refused: arg-type, reportArgumentType
area("text", t)  # refused: arg-type, reportArgumentType
