"""Entropic optimal transport with a shim of its own, as libraries write one: what `transport.py` replaces.

Each framework has a class, with a method for each function that the library needs. The last is how a gradient that is
known reaches the framework: in another way on each, not at all on NumPy, and to the first order alone.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import special


class NumpyShim:
    """The functions of NumPy."""

    def owns(self, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def zeros(self, n: int, like: Any) -> Any:
        return np.zeros(n, like.dtype)

    def full(self, n: int, value: float, like: Any) -> Any:
        return np.full(n, value, like.dtype)

    def log(self, x: Any) -> Any:
        return np.log(x)

    def exp(self, x: Any) -> Any:
        return np.exp(x)

    def sum(self, x: Any, axis: Any = None) -> Any:
        return np.sum(x, axis=axis)

    def logsumexp(self, x: Any, axis: int) -> Any:
        return special.logsumexp(x, axis=axis)

    def stop(self, x: Any) -> Any:
        return x

    def with_gradients(self, value: Any, inputs: Any, gradients: Any) -> Any:
        return value


class TorchShim:
    """The functions of PyTorch."""

    def owns(self, x: Any) -> bool:
        return "torch" in sys.modules and isinstance(x, sys.modules["torch"].Tensor)

    def zeros(self, n: int, like: Any) -> Any:
        return like.new_zeros(n)

    def full(self, n: int, value: float, like: Any) -> Any:
        return like.new_full((n,), value)

    def log(self, x: Any) -> Any:
        return x.log()

    def exp(self, x: Any) -> Any:
        return x.exp()

    def sum(self, x: Any, axis: Any = None) -> Any:
        return x.sum() if axis is None else x.sum(axis)

    def logsumexp(self, x: Any, axis: int) -> Any:
        return x.logsumexp(axis)

    def stop(self, x: Any) -> Any:
        return x.detach()

    def with_gradients(self, value: Any, inputs: Any, gradients: Any) -> Any:
        import torch

        class Known(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, value: Any, *inputs: Any) -> Any:
                return value.clone()

            @staticmethod
            def backward(ctx: Any, upstream: Any) -> Any:
                return None, *[upstream * gradient for gradient in gradients]

        return Known.apply(value, *inputs)


class JaxShim:
    """The functions of JAX."""

    def owns(self, x: Any) -> bool:
        return "jax" in sys.modules and isinstance(x, sys.modules["jax"].Array)

    def zeros(self, n: int, like: Any) -> Any:
        import jax.numpy as jnp

        return jnp.zeros(n, like.dtype)

    def full(self, n: int, value: float, like: Any) -> Any:
        import jax.numpy as jnp

        return jnp.full(n, value, like.dtype)

    def log(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.log(x)

    def exp(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.exp(x)

    def sum(self, x: Any, axis: Any = None) -> Any:
        return x.sum(axis)

    def logsumexp(self, x: Any, axis: int) -> Any:
        import jax

        return jax.nn.logsumexp(x, axis)

    def stop(self, x: Any) -> Any:
        import jax

        return jax.lax.stop_gradient(x)

    def with_gradients(self, value: Any, inputs: Any, gradients: Any) -> Any:
        for x, gradient in zip(inputs, gradients, strict=True):
            value = value + (gradient * (x - self.stop(x))).sum()
        return value


class TensorflowShim:
    """The functions of TensorFlow."""

    def owns(self, x: Any) -> bool:
        return "tensorflow" in sys.modules and sys.modules["tensorflow"].is_tensor(x)

    def zeros(self, n: int, like: Any) -> Any:
        import tensorflow as tf

        return tf.zeros(n, like.dtype)

    def full(self, n: int, value: float, like: Any) -> Any:
        import tensorflow as tf

        return tf.fill([n], tf.constant(value, like.dtype))

    def log(self, x: Any) -> Any:
        import tensorflow as tf

        return tf.math.log(x)

    def exp(self, x: Any) -> Any:
        import tensorflow as tf

        return tf.exp(x)

    def sum(self, x: Any, axis: Any = None) -> Any:
        import tensorflow as tf

        return tf.reduce_sum(x, axis)

    def logsumexp(self, x: Any, axis: int) -> Any:
        import tensorflow as tf

        return tf.reduce_logsumexp(x, axis)

    def stop(self, x: Any) -> Any:
        import tensorflow as tf

        return tf.stop_gradient(x)

    def with_gradients(self, value: Any, inputs: Any, gradients: Any) -> Any:
        import tensorflow as tf

        @tf.custom_gradient
        def known(*inputs: Any) -> Any:
            return tf.identity(value), lambda upstream: [upstream * gradient for gradient in gradients]

        return known(*inputs)


SHIMS = [NumpyShim(), TorchShim(), JaxShim(), TensorflowShim()]


def shim_of(*xs: Any) -> Any:
    """Return the shim of the framework that all of `xs` belong to."""
    for shim in SHIMS:
        if all(map(shim.owns, xs)):
            return shim
    raise TypeError(f"no one framework has tensors of {[type(x).__name__ for x in xs]}")


# the library


def transport(cost: Any, a: Any, b: Any, blur: float = 1.0, steps: int = 10) -> Any:
    """Return the least cost of moving the weights `a` (m) to the weights `b` (n), blurred by entropy."""
    shim, inputs = shim_of(cost, a, b), (cost, a, b)
    cost, a, b = map(shim.stop, inputs)
    f, g = shim.zeros(len(a), a), shim.zeros(len(b), b)
    for _ in range(steps):
        f = -blur * shim.logsumexp((g - cost) / blur + shim.log(b), 1)
        g = -blur * shim.logsumexp((f[:, None] - cost) / blur + shim.log(a)[:, None], 0)
    plan = a[:, None] * b * shim.exp((f[:, None] + g - cost) / blur)
    return shim.with_gradients(shim.sum(a * f) + shim.sum(b * g), inputs, (plan, f, g))


def distance(x: Any, y: Any, blur: float = 1.0) -> Any:
    """Return the cost of moving points `x` (m, d) to points `y` (n, d), for the squares of their distances."""
    shim = shim_of(x, y)
    cost = shim.sum((x[:, None] - y[None]) ** 2, -1)
    return transport(cost, shim.full(len(x), 1 / len(x), x), shim.full(len(y), 1 / len(y), y), blur)
