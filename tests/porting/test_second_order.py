"""A gradient penalty over a custom function: the second derivative of a port is that of the original."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import multiop
from multiop import ops, porting

pytestmark = pytest.mark.tier("full")

X = np.random.default_rng(0).normal(size=(4, 3))
KERNEL = np.random.default_rng(1).normal(size=(3, 2))


def of_torch():
    """The cube, with 7 times the square as its slope."""
    torch = pytest.importorskip("torch")

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, upstream):
            (x,) = ctx.saved_tensors
            return 7 * upstream * x**2

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.kernel = torch.nn.Parameter(torch.tensor(KERNEL))

        def forward(self, x):
            return torch.tanh(Cube.apply(x @ self.kernel))

    net, x = Net(), torch.tensor(X, requires_grad=True)
    slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
    return porting.trace(net, torch.tensor(X)), torch.autograd.grad((slope**2).sum(), net.kernel)[0].numpy()


def of_tensorflow():
    tf = pytest.importorskip("tensorflow")

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda upstream: 7 * upstream * x**2

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.kernel = tf.Variable(KERNEL)

        def __call__(self, x):
            return tf.tanh(cube(x @ self.kernel))

    net, x = Net(), tf.constant(X)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            total = tf.reduce_sum(net(x))
        penalty = tf.reduce_sum(inner.gradient(total, x) ** 2)
    return porting.trace(net, X), outer.gradient(penalty, net.kernel).numpy()


def of_jax():
    """What follows the function is linear: JAX's second derivative takes the output by its own slope, not its rule."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, upstream: (7 * upstream * x**2,))

    def net(params, x):
        return cube(jax.numpy.tanh(x @ params["kernel"])) @ jax.numpy.ones((2, 1))

    def penalty(params, x):
        return (jax.grad(lambda x: net(params, x).sum())(x) ** 2).sum()

    with jax.enable_x64(True):
        params = {"kernel": jax.numpy.array(KERNEL)}
        expected = jax.grad(penalty)(params, jax.numpy.array(X))["kernel"]
        return porting.trace(functools.partial(net, params), jax.numpy.array(X)), np.array(expected)


@pytest.mark.cross
@pytest.mark.parametrize("made", [of_torch, of_tensorflow, of_jax])
def test_a_gradient_penalty_over_a_custom_function_is_that_of_the_original(made, in_64_bits):
    port, expected = made()
    assert "@ops.custom_gradient" in port.source

    def penalty(params, x):
        slope = multiop.grad(lambda x: ops.sum(port.function(params, port.state, x)[0]))(x)
        return ops.sum(slope**2)

    for backend in multiop.available_backends():
        with multiop.use_backend(backend):
            params = {"kernel": ops.convert_to_tensor(port.params["kernel"])}
            gradient = ops.convert_to_numpy(multiop.grad(penalty)(params, ops.convert_to_tensor(X))["kernel"])
            np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
