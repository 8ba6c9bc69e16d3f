"""What an op's derivative keeps and runs on JAX, and its values where that was chosen for speed."""

from __future__ import annotations

import collections

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

import multiop as mo
from multiop.backends.jax import conversion
from multiop.backends.jax.autodiff import transforms

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
def test_an_activation_keeps_one_array(name):
    assert [x.shape for x in kept(ONE_SLOPE[name], jnp.arange(3.0))] == [(3,)]


def test_a_reduction_keeps_its_operand_and_its_result():
    x = jnp.arange(6.0).reshape(2, 3)
    for f in (mo.op_norm, mo.op_std):
        assert [y.shape for y in kept(lambda x, f=f: f(x, axis=1), x)] == [(2, 3), (2, 1)]


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


OPERANDS = {
    "maximum": (mo.op_maximum, 2),
    "minimum": (mo.op_minimum, 2),
    "fmax": (mo.op_fmax, 2),
    "arctan2": (mo.op_arctan2, 2),
    "logaddexp": (mo.op_logaddexp, 2),
    "elu": (mo.op_elu, 1),
    "arctanh": (mo.op_arctanh, 1),
    "lgamma": (mo.op_lgamma, 1),
    "digamma": (mo.op_digamma, 1),
    "sinc": (mo.op_sinc, 1),
    "squareplus": (mo.op_squareplus, 1),
    "nanstd": (mo.op_nanstd, 1),
    "nanmax": (mo.op_nanmax, 1),
    "trapezoid": (mo.op_trapezoid, 1),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_a_derivative_keeps_the_operands_alone(name):
    """What it needs of them is computed on the way back: nothing is written that no derivative reads."""
    f, n = OPERANDS[name]
    xs = [jnp.linspace(0.5, 0.9, 4), jnp.linspace(0.8, 0.4, 4)][:n]
    assert {x.unsafe_buffer_pointer() for x in kept(f, *xs)} == {x.unsafe_buffer_pointer() for x in xs}


def test_numbers_are_constants_of_the_first_programs(monkeypatch):
    monkeypatch.setattr(conversion, "_PROGRAMS_EACH", 2)
    traced = []

    @conversion.with_constants
    def scaled(x, number):
        traced.append(number)
        return x * number

    x = jnp.ones(2)
    for number in (0.0, -0.0, 3.0, 4.0, np.float32(5.0)):
        found = scaled(x, number)
        np.testing.assert_array_equal(found, np.ones(2) * number)
        np.testing.assert_array_equal(np.signbit(found), [np.signbit(number)] * 2)
    assert [type(number) for number in traced[:2]] == [float, float]
    assert all(isinstance(number, jax.core.Tracer) for number in traced[2:])


@pytest.mark.parametrize("low", [0.0, -1.0])
def test_clip_takes_any_number_of_bounds(low):
    x = jnp.array([-2.0, 0.5, 99.0])
    with mo.use_backend("jax"):
        for high in np.linspace(1.0, 2.0, 3 * conversion._PROGRAMS_EACH):
            np.testing.assert_array_equal(mo.op_clip(x, low, float(high)), np.float32([low, 0.5, high]))


NOT_LINEAR = {
    "clip": lambda u: mo.op_clip(u, -1.0, 1.0),
    "maximum": lambda u: mo.op_maximum(u, 0.5),
    "arctanh": mo.op_arctanh,
    "elu": mo.op_elu,
    "sinc": mo.op_sinc,
    "fmax": lambda u: mo.op_fmax(u, 0.5 * u),
    "lgamma": mo.op_lgamma,
    "a slope": lambda u: jax.vjp(mo.op_softplus, u)[1](jnp.ones_like(u))[0],
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_a_rule_that_calls_it_is_not_taken_for_linear(name):
    """A function with a derivative of its own has a linear part, which is not the function."""

    @mo.op_custom_gradient
    def f(x):
        return 2 * x, NOT_LINEAR[name]

    x = jnp.linspace(0.2, 0.6, 3)
    with mo.use_backend("jax"), pytest.raises(mo.errors.NonLinearRuleError):
        mo.jvp(f, (x,), (x,))


def primitives(jaxpr):
    """Return the names of all primitives in a jaxpr."""
    found = set()
    for eqn in jaxpr.eqns:
        found.add(eqn.primitive.name)
        for inner in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            found |= primitives(inner) if hasattr(inner, "eqns") else set()
    return found


WAYS = {
    "as it is": lambda resize, x: resize(x),
    "mapped": lambda resize, x: jax.vmap(resize, 1, 2)(x),
    "in a loop": lambda resize, x: jax.lax.scan(lambda carry, x: (carry, resize(x)), 0.0, x)[1],
}


@pytest.mark.parametrize("size", [(6, 8), (2, 9)])
@pytest.mark.parametrize("way", WAYS)
def test_a_resized_image_is_gathered_both_ways(way, size):
    images = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4, 3)), jnp.float32)
    weights = np.random.default_rng(1).normal(size=(2, *size, 3))

    def loss(x, resize):
        return jnp.sum(jnp.sin(WAYS[way](resize, x)).reshape(-1) * weights.reshape(-1))

    def by_matrix(x):
        return jax.image.resize(x, (*size, x.shape[-1]), "bilinear", antialias=False)

    def ours(x):
        return mo.op_image_resize(x, size)

    with mo.use_backend("jax"):
        x = images if way == "in a loop" else jnp.moveaxis(images, 0, 1) if way == "mapped" else images[0]
        weights = weights if way != "as it is" else weights[0]
        first = jax.grad(loss)(x, ours)
        second = jax.jvp(lambda x: jax.grad(loss)(x, ours), (x,), (x,))[1]
        used = primitives(jax.make_jaxpr(lambda x: jax.grad(loss)(x, ours))(x).jaxpr)
    np.testing.assert_allclose(first, jax.grad(loss)(x, by_matrix), atol=1e-5)
    expected = jax.jvp(lambda x: jax.grad(loss)(x, by_matrix), (x,), (x,))[1]
    np.testing.assert_allclose(second, expected, atol=1e-5)
    assert "gather" in used and "scatter-add" not in used
