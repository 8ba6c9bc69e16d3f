"""Second derivatives inside of `jax.lax.scan`, where JAX forgets the rules of `jax.custom_jvp`."""

from __future__ import annotations

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import multiop
from multiop import ops

pytestmark = pytest.mark.usefixtures("multiop_x64")
POINTS = np.array([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
OPS = {
    "softplus": ops.softplus,
    "log_sigmoid": ops.log_sigmoid,
    "elu": lambda x: ops.elu(x, 0.5),
    "silu": ops.silu,
    "softsign": ops.softsign,
    "power of itself": lambda x: ops.power(x, x),
    "power 0": lambda x: ops.power(x, 0.0),
    "power 1": lambda x: ops.power(x, 1.0),
    "arctan2": lambda x: ops.arctan2(x, 0.0),
    "hypot": lambda x: ops.hypot(x, 0.0),
    "divide": lambda x: ops.divide(x, x + 3),
    "maximum": lambda x: ops.maximum(x, 0.0) ** 2,
    "max": lambda x: x * ops.max(ops.stack([x, -x]), axis=0),
    "prod": lambda x: ops.prod(ops.stack([x, x, x + 1]), axis=0),
    "logsumexp": lambda x: ops.logsumexp(ops.stack([x, -x]), axis=0),
    "mod": lambda x: ops.mod(x, 0.75),
    "sqrt": lambda x: ops.sqrt(x * x + 1),
    "real part of a complex root": lambda x: ops.real(ops.sqrt(ops.cast(x, "complex128") * (1 + 2j))),
}


def in_scan(f, x):
    return ops.scan(lambda carry, _: (f(carry), None), x, None, length=1)[0]


def in_mapped_scan(f, x):
    def one(x):
        return ops.scan(lambda carry, _: (multiop.vmap(f)(carry), None), x, None, length=1)[0]

    return one(ops.expand_dims(x, 1))[:, 0]


def hessian(f, how, jit=False):
    def total(x):
        return ops.sum(ops.sin(how(f, x)) * np.arange(1, len(POINTS) + 1))

    derivative = multiop.hessian(total)
    derivative = multiop.jit(derivative) if jit else derivative
    with multiop.use_backend("jax"):
        return multiop.op_convert_to_numpy(derivative(ops.convert_to_tensor(POINTS)))


@functools.cache
def hessian_outside(name):
    return hessian(OPS[name], lambda f, x: f(x))


@pytest.mark.rotating
@pytest.mark.parametrize(("how", "jit"), [(in_scan, False), (in_mapped_scan, True)])
@pytest.mark.parametrize("name", OPS)
def test_a_second_derivative_in_a_loop_is_that_outside(name, how, jit):
    """Outside, it is compared with other frameworks and with differences, by the conformance suite."""
    np.testing.assert_allclose(hessian(OPS[name], how, jit), hessian_outside(name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("map_over", ["shard_map", "vmap"])
def test_a_tangent_is_transposed_where_it_varies(map_over):
    """The tangent of a quotient is a quotient, and is transposed; in `shard_map`, its type names the mesh."""
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    over = jax.sharding.PartitionSpec("i")

    def slope(x):
        return jax.grad(lambda x: ops.sum(ops.divide(x, x + 3) / ops.sqrt(x * x + 1)))(x)

    with multiop.use_backend("jax"):
        sharded = jax.shard_map(slope, mesh=mesh, in_specs=over, out_specs=over)
        mapped = sharded if map_over == "shard_map" else jax.vmap(slope)
        found = mapped(jax.numpy.asarray(POINTS))
    x = POINTS
    expected = 3 / (x + 3) ** 2 / np.sqrt(x * x + 1) - x / (x + 3) * x / (x * x + 1) ** 1.5
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow_on(multiop_backend="tensorflow")
def test_a_forward_algorithm_of_states_that_cannot_be_reached_has_second_derivatives(backend):
    """The logarithm of a probability of 0 is -inf; with a finite number instead, all is smooth."""
    emitted = np.random.default_rng(0).normal(size=(5, 3))

    def likelihood(emitted, impossible):
        def step(logs, now):
            before = ops.concatenate([ops.full((1,), impossible, dtype="float64"), logs[:-1]])
            return ops.logsumexp(ops.stack([logs, before]), axis=0) + now, None

        start = ops.convert_to_tensor([0.0, impossible, impossible], dtype="float64")
        return ops.logsumexp(ops.scan(step, start, emitted)[0])

    with multiop.use_backend(backend):
        found, expected = (
            multiop.op_convert_to_numpy(multiop.hessian(lambda x, v=v: likelihood(x, v))(ops.array(emitted)))
            for v in (-np.inf, -1e3)
        )
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
