"""Tests of the library: each runs once per backend, which the fixture `multiop_backend` makes the active one."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop import ops
from multiop.testing import check_op, uniform


def load(name):
    """Return a module of this folder; a library of one's own is installed, and needs only `import transport`."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


transport, before = load("transport"), load("before")
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(size=(3, 2)), RNG.uniform(size=(4, 2))
COST, A, B = RNG.uniform(size=(3, 4)), RNG.dirichlet(np.full(3, 9.0)), RNG.dirichlet(np.full(4, 9.0))


def scaled(cost, a, b, blur=1.0):
    """Return the cost by its definition: that of the plan whose rows and columns are scaled until they fit."""
    kernel, v = np.outer(a, b) * np.exp(-cost / blur), np.ones(len(b))
    for _ in range(1000):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
    plan = u[:, None] * kernel * v
    return np.sum(plan * cost) + blur * np.sum(plan * np.log(plan / np.outer(a, b)))


def test_the_cost_is_that_of_its_definition(multiop_backend, multiop_x64):
    assert float(transport._transport(COST, A, B)) == pytest.approx(scaled(COST, A, B), rel=1e-10)


def test_the_gradients_are_those_of_the_definition(multiop_backend, multiop_x64):
    grads = map(ops.convert_to_numpy, multiop.grad(transport._transport, (0, 1, 2))(COST, A, B))
    for k, gradient in enumerate(grads):
        direction = RNG.normal(size=gradient.shape)
        direction -= direction.mean() * (k > 0)  # weights have a sum
        ends = [[x + size * direction if n == k else x for n, x in enumerate((COST, A, B))] for size in (-1e-5, 1e-5)]
        low, high = (scaled(*given) for given in ends)
        assert np.sum(gradient * direction) == pytest.approx((high - low) / 2e-5, rel=1e-7)


def test_the_distance_and_its_derivatives_of_both_orders(multiop_backend):
    check_op(
        transport.distance,
        uniform(3, 2, low=0.0, high=1.0),
        uniform(4, 2, low=0.0, high=1.0),
        backends=[multiop_backend],
        reference=lambda x, y: scaled(np.sum((x[:, None] - y) ** 2, -1), np.full(3, 1 / 3), np.full(4, 1 / 4)),
    )


def test_it_gives_what_the_shim_gave(multiop_backend, multiop_x64):
    x, y = map(ops.convert_to_tensor, (X, Y))
    value, grads = multiop.value_and_grad(transport.distance, (0, 1))(x, y)
    assert float(before.distance(x, y)) == pytest.approx(float(value), rel=1e-13)
    if multiop_backend == "numpy":  # where the shim had no gradient
        return
    for found, expected in zip(multiop.grad(before.distance, (0, 1))(x, y), grads, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(found), ops.convert_to_numpy(expected), rtol=1e-12, atol=1e-14)
