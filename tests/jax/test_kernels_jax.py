"""What an op's derivative keeps and runs on JAX, and its values where that was chosen for speed."""

from __future__ import annotations

import collections

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

import multiop as mo
from multiop.backends.jax import transforms

ONE_SLOPE = {
    "leaky_relu": mo.op_leaky_relu,
    "elu": mo.op_elu,
    "celu": mo.op_celu,
    "selu": mo.op_selu,
    "silu": mo.op_silu,
    "softplus": mo.op_softplus,
    "log_sigmoid": mo.op_log_sigmoid,
    "softsign": mo.op_softsign,
}


ONE_PROGRAM = {
    "tril": mo.op_tril,
    "diag": mo.op_diag,
    "rot90": mo.op_rot90,
    "diff": mo.op_diff,
    "ptp": lambda x: mo.op_ptp(x, axis=(0, 1)),
    "fmax": lambda x: mo.op_fmax(x, x),
    "cross": lambda x: mo.op_cross(x, x),
    "trapezoid": mo.op_trapezoid,
    "nanstd": lambda x: mo.op_nanstd(x, axis=1, keepdims=True),
    "at_share": lambda x: mo.op_quantile(x, 0.3),
}


def kept(f, *xs):
    """Return what the pullback of `f` keeps."""
    with mo.use_backend("jax"):
        return jax.tree.leaves(jax.vjp(f, *xs)[1])


@pytest.mark.parametrize("name", ONE_SLOPE)
def test_an_activation_keeps_its_slope_alone(name):
    assert [x.shape for x in kept(ONE_SLOPE[name], jnp.arange(3.0))] == [(3,)]


def test_a_reduction_keeps_its_slope_alone():
    x = jnp.arange(6.0).reshape(2, 3)
    for f in (mo.op_norm, mo.op_std):
        assert [y.shape for y in kept(lambda x, f=f: f(x, axis=1), x)] == [(2, 3)]


def test_det_keeps_its_cofactors_alone():
    """A `cond` on the way back would be compiled anew for each gradient."""
    x = jnp.diag(jnp.arange(4.0))
    assert [y.shape for y in kept(mo.op_det, x)] == [(4, 4)]
    with mo.use_backend("jax"):
        np.testing.assert_allclose(jax.grad(mo.op_det)(x), np.diag([6.0, 0.0, 0.0, 0.0]), atol=1e-5)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, 0.0), (0.5, 0.5), (np.nan, 1.0), (0.0, np.nan)])
def test_each_entry_of_clip_has_the_gradient_of_what_is_chosen(bounds):
    x = jnp.array([-1.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, np.nan, np.inf])
    low, high = (jnp.full_like(x, bound) for bound in bounds)

    def in_steps(x, low, high):
        x = jnp.where((x >= low) | jnp.isnan(x), x, low)
        return jnp.where((x <= high) | jnp.isnan(x), x, high)

    with mo.use_backend("jax"):
        found, pull = jax.vjp(mo.op_clip, x, low, high)
    expected, pull_in_steps = jax.vjp(in_steps, x, low, high)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(pull(jnp.ones_like(x)), pull_in_steps(jnp.ones_like(x)))


@pytest.mark.parametrize("name", ONE_PROGRAM)
def test_an_op_of_many_steps_is_one_program(name, monkeypatch):
    monkeypatch.setattr(transforms, "_programs", collections.defaultdict(dict))
    monkeypatch.setattr(transforms, "_quick", {})
    x = jnp.arange(9.0).reshape(3, 3)
    with mo.use_backend("jax"):
        mo.op_convert_to_tensor(x)  # from now on, the class of `x` is known
        first = ONE_PROGRAM[name](x)
        ((op, programs),) = [(op, programs) for op, programs in transforms._programs.items() if programs]
        assert op.__name__ in (f"op_{name}", f"_{name}") and list(transforms._quick.values()) == [*programs.values()]
        again = ONE_PROGRAM[name](x)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("f", [mo.op_softplus, lambda x: -mo.op_log_sigmoid(-x)])
def test_a_tiny_slope_in_16_bits(f):
    x = jnp.array([-12.0], jnp.float16)
    with mo.use_backend("jax"):
        slope = jax.grad(lambda x: f(x)[0])(x)
    np.testing.assert_allclose(np.float64(slope), np.exp(-12.0), rtol=1e-2)
