"""What an op's derivative keeps and runs on JAX, and its values where that was chosen for speed."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

import multiop as mo

ONE_SLOPE = {
    "leaky_relu": mo.op_leaky_relu,
    "elu": mo.op_elu,
    "celu": mo.op_celu,
    "selu": mo.op_selu,
    "silu": mo.op_silu,
    "softplus": mo.op_softplus,
    "log_sigmoid": mo.op_log_sigmoid,
    "softsign": mo.op_softsign,
    "hard_sigmoid": mo.op_hard_sigmoid,
    "hard_silu": mo.op_hard_silu,
}


def kept(f, *xs):
    """Return what the pullback of `f` keeps."""
    with mo.use_backend("jax"):
        return jax.tree.leaves(jax.vjp(f, *xs)[1])


@pytest.mark.parametrize("name", ONE_SLOPE)
def test_an_activation_keeps_its_slope_alone(name):
    assert [x.shape for x in kept(ONE_SLOPE[name], jnp.arange(3.0))] == [(3,)]


@pytest.mark.parametrize("f", [mo.op_softplus, lambda x: -mo.op_log_sigmoid(-x)])
def test_a_tiny_slope_in_16_bits(f):
    x = jnp.array([-12.0], jnp.float16)
    with mo.use_backend("jax"):
        slope = jax.grad(lambda x: f(x)[0])(x)
    np.testing.assert_allclose(np.float64(slope), np.exp(-12.0), rtol=1e-2)
