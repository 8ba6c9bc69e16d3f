"""Custom gradients under JAX's own transforms, to third order, and what they keep alive."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import linear_call
from jax.sharding import PartitionSpec
from jax.test_util import check_grads

import multiop
from multiop import errors, op_custom_gradient

X = np.array([0.3, -0.7, 1.1])
Y = np.array([0.5, 2.0, -1.0])


@pytest.fixture(autouse=True)
def x64(on_jax):
    before = multiop.x64()
    multiop.enable_x64()
    yield
    multiop.enable_x64(before)


@op_custom_gradient
def product(x, y):
    s, c = jnp.sin(x), jnp.cos(x)
    return s * y, lambda upstream: (upstream * c * y, upstream * s)


def product_natively(x, y):
    return jnp.sin(x) * y


@op_custom_gradient
def clipped(x):
    return x * 1.0, lambda upstream: jnp.clip(upstream, -1, 1)


@op_custom_gradient
def rounded(x):
    return jnp.round(x), lambda upstream: upstream


def assert_same(found, wanted):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11), found, wanted)


# each turns a function of (x, y) into another; all have to hold for the custom function as for the native one
ON_VECTORS = {
    "itself": lambda f: f,
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "vmap": jax.vmap,
    "vmap x": lambda f: lambda x, y: jax.vmap(f, (0, None))(x, y[0]),
    "vmap y": lambda f: lambda x, y: jax.vmap(f, (None, 0))(x[0], y),
    "vmap twice": lambda f: jax.vmap(jax.vmap(f, (0, None)), (None, 0)),
    "jit of vmap": lambda f: jax.jit(jax.vmap(f)),
    "vmap of jit": lambda f: jax.vmap(jax.jit(f)),
    "scan": lambda f: lambda x, y: lax.scan(lambda c, yi: (f(c, yi), c), x[0], y)[1],
    "scan over x": lambda f: lambda x, y: lax.scan(lambda c, xi: (c, f(xi, c)), y[0], x)[1],
    "fori_loop": lambda f: lambda x, y: lax.fori_loop(0, 3, lambda i, c: f(c, y), x),
    "cond": lambda f: lambda x, y: lax.cond(x[0] > 0, lambda: f(x, y), lambda: y),
    "map": lambda f: lambda x, y: lax.map(lambda xi: f(xi, y[0]), x),
    "checkpoint of scan": lambda f: jax.checkpoint(lambda x, y: lax.scan(lambda c, yi: (f(c, yi), None), x[0], y)[0]),
}


@pytest.mark.rotating
@pytest.mark.parametrize("name", ON_VECTORS)
def test_check_grads(name):
    check_grads(ON_VECTORS[name](product), (X, Y), 2)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_check_grads_third_order(wrap):
    check_grads(wrap(product), (X, Y), 3)


def test_while_loop_in_forward_mode():
    def looped(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, product(c[1], 1.5)), (0, x))[1]

    check_grads(looped, (0.3,), 2, modes=["fwd"])


DERIVATIVES = {
    "grad": lambda f: jax.grad(f, (0, 1)),
    "jit of grad": lambda f: jax.jit(jax.grad(f, (0, 1))),
    "grad of jit": lambda f: jax.grad(jax.jit(f), (0, 1)),
    "jacfwd": lambda f: jax.jacfwd(f, (0, 1)),
    "jacrev": lambda f: jax.jacrev(f, (0, 1)),
    "hessian": lambda f: jax.hessian(f, (0, 1)),
    "jacfwd twice": lambda f: jax.jacfwd(jax.jacfwd(f), (0, 1)),
    "jacrev twice": lambda f: jax.jacrev(jax.jacrev(f), (0, 1)),
    "jacrev of jacfwd": lambda f: jax.jacrev(jax.jacfwd(f), (0, 1)),
    "grad thrice": lambda f: jax.grad(jax.grad(jax.grad(f))),
    "jit of grad of jit of grad": lambda f: jax.jit(jax.grad(jax.jit(jax.grad(f)))),
    "hessian of jit": lambda f: jax.hessian(jax.jit(f)),
    "third order forward": lambda f: jax.jacfwd(jax.hessian(f)),
    "hessian of checkpoint": lambda f: jax.hessian(jax.checkpoint(f)),
    "vmap of hessian": lambda f: lambda x, y: jax.vmap(jax.hessian(f), (0, None))(X, y),
    "jit of vmap of grad": lambda f: lambda x, y: jax.jit(jax.vmap(jax.grad(f, (0, 1)), (None, 0)))(x, Y),
    "grad of vmap": lambda f: jax.grad(lambda x, y: jax.vmap(f, (None, 0))(x, Y).sum() * y, (0, 1)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    differentiate = DERIVATIVES[name]
    assert_same(differentiate(product)(0.4, 1.5), differentiate(product_natively)(0.4, 1.5))


def test_linearize():
    outputs, linear = jax.linearize(product, X, Y)
    wanted = jax.jvp(product_natively, (X, Y), (Y, X))[1]
    assert_same(outputs, product_natively(X, Y))
    assert_same(linear(Y, X), wanted)
    assert_same(jax.jit(linear)(Y, X), wanted)
    assert_same(jax.vmap(linear)(jnp.stack([Y, X]), jnp.stack([X, X]))[0], wanted)
    assert_same(jax.linear_transpose(linear, X, Y)(X), jax.vjp(product_natively, X, Y)[1](X))
    assert_same(jax.jacrev(linear)(X, Y), np.diag(np.cos(X) * Y))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_derivative_of_linearized(wrap):
    def through(f):
        return wrap(jax.grad(lambda x: jax.linearize(f, x, Y)[1](X, Y).sum()))(X)

    assert_same(through(product), through(product_natively))


def test_pullbacks_travel():
    """A pullback returned from `jit`, passed to it, or handed out of a `grad`."""
    wanted = X * np.cos(X) * Y
    assert_same(jax.jit(lambda x: jax.vjp(product, x, Y))(X)[1](X)[0], wanted)
    assert_same(jax.jit(lambda pullback: pullback(X))(jax.vjp(product, X, Y)[1])[0], wanted)
    _, pullback = jax.grad(lambda x: (lambda y, back: (y.sum(), back))(*jax.vjp(product, x, Y)), has_aux=True)(X)
    assert_same(pullback(X)[0], wanted)


@pytest.mark.parametrize("loop", [False, True])
def test_nonlinear_rule(loop):
    def f(x):
        if loop:
            return lax.scan(lambda c, _: (clipped(c) * 3.0, None), x, None, length=2)[0]
        return 3.0 * clipped(x)

    for reverse in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f)), jax.grad(jax.checkpoint(f))):
        assert reverse(1.0) == 1.0
    assert_same(jax.vmap(jax.grad(f))(X), np.ones(3))
    forward = (
        lambda: jax.jvp(f, (1.0,), (1.0,)),
        lambda: jax.jit(lambda x: jax.jvp(f, (x,), (x,)))(1.0),
        lambda: jax.linearize(f, 1.0)[1](1.0),
        lambda: jax.jacfwd(f)(1.0),
    )
    for run in forward:
        with pytest.raises(errors.NonLinearRuleError, match="clipped"):
            run()


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, u: u + 1.0,
        lambda x, u: 10.0,
        lambda x, u: x,
        lambda x, u: u - x,
        lambda x, u: jnp.where(x > 0, u, 1.0),
        lambda x, u: jnp.where(u > 0, u, 0.0),
        lambda x, u: u * u,
        lambda x, u: jnp.abs(u),
        lambda x, u: lax.cond(x > 0, lambda: u, lambda: jnp.ones_like(u)),
        lambda x, u: lax.scan(lambda c, _: (c + u, None), 1.0, None, length=2)[0],
        lambda x, u: u + lax.cond(x > 0, lambda: 0.0, lambda: 1.0),
        lambda x, u: u + lax.scan(lambda c, _: (1.0, c), 0.0, None, length=2)[0],
        lambda x, u: jnp.concatenate([u[None], jnp.ones(1)]).sum(),
        lambda x, u: jax.jit(lambda u: u + x)(u),
        lambda x, u: jnp.zeros(3).at[1].set(u).sum() + jnp.ones(3).at[0].set(u).sum(),
        lambda x, u: jnp.stack([u, x]).sum(),
        lambda x, u: sum(lax.optimization_barrier((u, x))),
        lambda x, u: sum(jax.device_put((u, x))),
        lambda x, u: linear_call(lambda _, pair: sum(pair), lambda _, ct: (ct, ct), (), (u, x)),
        lambda x, u: u + lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] + x), (0, 0.0))[1],
        lambda x, u: u + lax.sort((jnp.stack([x, -x]), jnp.zeros(2)), num_keys=1)[0].max(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_rule_that_is_not_linear(rule, wrap):
    f = op_custom_gradient(lambda x: (2.0 * x, lambda u: rule(x, u)))
    assert jnp.isfinite(wrap(jax.grad(f))(1.5))
    with pytest.raises(errors.NonLinearRuleError):
        wrap(lambda x: jax.jvp(f, (x,), (1.0,)))(1.5)


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, z, u: jnp.where(x > 0, u, 0.0) + jnp.where(x > 0, 0.0, u),
        lambda x, z, u: u + z,
        lambda x, z, u: jnp.where(x > 0, u, z),
        lambda x, z, u: lax.cond(x > 0, lambda: u, lambda: jnp.zeros_like(u)),
        lambda x, z, u: lax.scan(lambda c, _: (c + u / 2, None), 0.0, None, length=2)[0],
        lambda x, z, u: jnp.zeros(3).at[1].set(u).sum(),
        lambda x, z, u: jnp.concatenate([u[None], jnp.zeros(1)]).sum(),
        lambda x, z, u: jax.jit(lambda u: u * x / x)(u),
        lambda x, z, u: rounded_free(u),
        lambda x, z, u: jnp.pad(u[None], 2).sum(),
        lambda x, z, u: jnp.real(lax.complex(u, jnp.zeros_like(u))),
        lambda x, z, u: jnp.stack([u, z]).sum(),
        lambda x, z, u: sum(lax.optimization_barrier((u, z))),
        lambda x, z, u: linear_call(lambda _, pair: sum(pair), lambda _, ct: (ct, ct), (), (u, u)) / 2,
        lambda x, z, u: (
            u + lax.linalg.tridiagonal_solve(jnp.ones(2), 3 + jnp.ones(2), jnp.ones(2), z + jnp.zeros((2, 1))).sum()
        ),
        lambda x, z, u: u + lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * x), (0, z))[1],
        lambda x, z, u: u + lax.sort((jnp.stack([x, -x]), jnp.stack([z, z])), num_keys=1)[1].sum(),
        lambda x, z, u: u + jax.jvp(rounded_free, (x,), (z,))[1],
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_rule_that_is_linear(rule, wrap):
    def function(x):
        z = jnp.zeros_like(x)
        return x * 1.0, lambda u: rule(x, z, u)

    f = op_custom_gradient(function)
    assert_same(wrap(lambda x: jax.jvp(f, (x,), (3.0,))[1])(1.5), 3.0)
    assert_same(wrap(jax.grad(f))(1.5), 1.0)


@op_custom_gradient
def rounded_free(x):
    return x * 1.0, lambda upstream: upstream * 1.0


def test_straight_through_at_second_order():
    def squared(x):
        return rounded(x) ** 2

    first = jax.grad(squared)
    for second in (jax.grad(first), jax.jit(jax.grad(first)), jax.hessian(squared), jax.grad(jax.jit(first))):
        assert second(1.3) == 2.0
    assert jax.grad(lambda x: jax.value_and_grad(rounded)(x)[0] ** 2)(1.3) == 2.0


def test_nested_in_native_rules():
    def natively(x):
        return jnp.sin(x) * x

    def f(x):
        return product(x, x)

    by_vjp = jax.custom_vjp(f)
    by_vjp.defvjp(lambda x: (f(x), x), lambda x, u: (u * jax.grad(f)(x),))
    by_jvp = jax.custom_jvp(f)
    by_jvp.defjvp(lambda primals, tangents: jax.jvp(f, primals, tangents))
    of_native = op_custom_gradient(lambda x: (by_jvp(x), lambda u: u * jax.grad(by_jvp)(x)))
    of_ours = op_custom_gradient(lambda x: (f(x), lambda u: u * jax.grad(f)(x)))
    reverse = (jax.grad, lambda f: jax.grad(jax.grad(f)), lambda f: jax.jit(jax.grad(jax.grad(f))))
    both = (*reverse, jax.hessian, lambda f: jax.grad(jax.grad(jax.grad(f))), lambda f: jax.jit(jax.jacfwd(f)))
    for function, transforms in ((by_vjp, reverse), (by_jvp, both), (of_native, both), (of_ours, both)):
        for transform in transforms:
            assert_same(transform(function)(0.4), transform(natively)(0.4))


def test_in_a_linear_place():
    """Called on a tangent, by the rule of another function."""
    doubled = op_custom_gradient(lambda x: (2.0 * x, lambda u: 2.0 * u))
    outer = op_custom_gradient(lambda x: (2.0 * x, doubled))
    for wrap in (lambda f: f, jax.jit):
        assert wrap(jax.grad(outer))(1.0) == 2.0
        assert wrap(lambda x: jax.jvp(outer, (x,), (x,))[1])(1.0) == 2.0
    assert jax.linear_transpose(doubled, 1.0)(3.0) == (6.0,)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype):
    x, y = jnp.asarray(X, dtype), jnp.asarray(Y, dtype)
    tolerance = 4 * float(jnp.finfo(dtype).eps)
    for found, wanted in (
        (jax.grad(lambda x: product(x, y).sum())(x), np.cos(X) * Y),
        (jax.jit(jax.grad(lambda x: product(x, y).sum()))(x), np.cos(X) * Y),
        (jax.jvp(product, (x, y), (y, x))[1], np.cos(X) * Y * Y + np.sin(X) * X),
        (jnp.diagonal(jax.hessian(lambda x: product(x, y).sum())(x)), -np.sin(X) * Y),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=tolerance, atol=tolerance * 3)


def test_weak_types_do_not_reach_the_function():
    seen = []

    @op_custom_gradient
    def f(x):
        seen.append(x.weak_type)
        return x * 2.0, lambda upstream: upstream * 2.0

    for run in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.grad(f)), jax.jit(f), lambda x: jax.jvp(f, (x,), (x,))):
        run(1.0)
    assert seen and not any(seen)


class TestComplex:
    Z = np.array([1.0 + 2j, 0.5 - 1j])

    @staticmethod
    def cube():
        return op_custom_gradient(lambda z: (z**3, lambda u: u * jnp.conj(3 * z**2)))

    @pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_native_transforms_have_their_own_convention(self, wrap):
        def loss(f):
            return lambda z: (jnp.abs(f(z)) ** 2).sum()

        f = self.cube()
        assert_same(wrap(jax.grad(loss(f)))(self.Z), jax.grad(loss(lambda z: z**3))(self.Z))
        assert_same(jax.jvp(wrap(f), (self.Z,), (self.Z,)), jax.jvp(lambda z: z**3, (self.Z,), (self.Z,)))
        assert_same(wrap(jax.grad(jax.grad(f, holomorphic=True), holomorphic=True))(self.Z[0]), 6 * self.Z[0])
        check_grads(wrap(f), (self.Z,), 3)

    def test_real_output(self):
        f = op_custom_gradient(lambda z: (jnp.real(z) ** 2 + jnp.imag(z) ** 2, lambda u: 2 * u * z))
        check_grads(f, (self.Z,), 2)
        check_grads(jax.jit(f), (self.Z,), 2)
        assert_same(multiop.grad(lambda z: f(z).sum())(self.Z), 2 * self.Z)
        assert_same(jax.grad(lambda z: f(z).sum())(self.Z), 2 * self.Z.conj())

    def test_the_rule_sees_the_conjugate_convention(self):
        seen = []

        def function(z):
            def grad(upstream):
                seen.append(upstream)
                return upstream

            return z * 1.0, grad

        _, pullback = multiop.vjp(op_custom_gradient(function), self.Z)
        upstream = jnp.asarray(self.Z * 1j)
        assert_same(pullback(upstream)[0], upstream)
        assert_same(seen[0], upstream)


class TestOutputs:
    N = np.array([1, 2, 3])

    @staticmethod
    def three():
        def function(x, n, k):
            e = jnp.exp(x)

            def grad(d1, dn, de):
                assert dn is None
                return d1 * n + de * e, None, None

            return (x * n, n + k, e), grad

        return op_custom_gradient(function)

    @pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_integers_among_them(self, wrap):
        f = self.three()
        check_grads(wrap(lambda x: f(x, self.N, 2)[::2]), (X,), 3)
        assert_same(wrap(jax.grad(lambda x: f(x, self.N, 2)[2].sum()))(X), np.exp(X))
        outputs, linear = jax.linearize(wrap(lambda x: f(x, self.N, 2)), X)
        assert outputs[1].dtype == self.N.dtype and linear(X)[1].dtype == jax.dtypes.float0
        assert_same(linear(X)[::2], (X * self.N, X * np.exp(X)))
        grads = jax.grad(wrap(lambda x, n: f(x, n, 2)[0].sum()), (0, 1), allow_int=True)(X, self.N)
        assert_same(grads[0], self.N)
        assert grads[1].dtype == jax.dtypes.float0
        assert_same(jax.vmap(wrap(jax.grad(lambda x, n: f(x, n, 2)[0])))(X, self.N), self.N)

    def test_only_integers(self):
        f = op_custom_gradient(lambda x: (jnp.arange(3), lambda u: (None,)))
        assert jax.jvp(f, (1.0,), (1.0,))[1].dtype == jax.dtypes.float0
        assert jax.grad(lambda x: x * f(x).sum())(2.0) == 3.0

    @pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_missing_gradients(self, wrap):
        f = op_custom_gradient(lambda x, y: (x * y, lambda u: (u * y, None)))
        assert wrap(jax.grad(f, (0, 1)))(2.0, 3.0) == (3.0, 0.0)
        assert wrap(lambda y: jax.jvp(f, (2.0, y), (0.0, 1.0))[1])(3.0) == 0.0
        assert wrap(jax.grad(lambda y: jax.grad(f)(2.0, y)))(3.0) == 1.0

    def test_empty(self):
        f = op_custom_gradient(lambda x: (x * 2, lambda u: u * 2))
        assert jax.jit(jax.hessian(lambda x: f(x).sum()))(jnp.zeros((0, 3))).shape == (0, 3, 0, 3)


def closing_over(y, how):
    """Return a function of `x` that closes over `y`."""

    def f(x):
        if how == "outputs":
            return x * y, lambda u: u
        if how == "both":
            return x * y, lambda u: u * y
        if how == "stopped":
            return x * lax.stop_gradient(y), lambda u: u * y
        return x * 1.0, lambda u: u * y

    return op_custom_gradient(f)


DROPPED = {
    "grad": lambda f: jax.grad(f, 1)(1.0, 2.0),
    "grad of both": lambda f: jax.grad(f, (0, 1))(1.0, 2.0),
    "grad of jit": lambda f: jax.grad(jax.jit(f), 1)(1.0, 2.0),
    "grad of jit of both": lambda f: jax.grad(jax.jit(f), (0, 1))(1.0, 2.0),
    "jit of grad": lambda f: jax.jit(jax.grad(f, 1))(1.0, 2.0),
    "jvp": lambda f: jax.jvp(f, (1.0, 2.0), (1.0, 2.0)),
    "jvp of jit": lambda f: jax.jvp(jax.jit(f), (1.0, 2.0), (1.0, 2.0)),
    "jacfwd": lambda f: jax.jacfwd(f, 1)(1.0, 2.0),
    "hessian": lambda f: jax.hessian(f, (0, 1))(1.0, 2.0),
    "linearize": lambda f: jax.linearize(lambda y: f(1.0, y), 2.0)[1](1.0),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f), 1)(1.0, 2.0),
    "outer grad": lambda f: jax.grad(lambda y: jax.value_and_grad(f)(1.0, y)[0])(2.0),
    "scan": lambda f: jax.grad(lambda y: lax.scan(lambda c, _: (f(c, y), None), 1.0, None, length=2)[0])(2.0),
    "vmap": lambda f: jax.grad(lambda y: jax.vmap(lambda x: f(x, y))(X).sum())(2.0),
    "vmap of both": lambda f: jax.grad(lambda y: jax.vmap(f)(X, y).sum())(Y),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f, 1))(X, Y),
    "cond": lambda f: jax.grad(lambda y: lax.cond(y > 0, lambda: f(1.0, y), lambda: 0.0))(2.0),
    "while": lambda f: jax.jvp(
        lambda y: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1], y)), (0, 1.0))[1], (2.0,), (1.0,)
    ),
}

KEPT = {
    "grad": lambda f: jax.grad(f)(1.0, 2.0),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(1.0, 2.0),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(1.0, 2.0),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f), (None, 0))(1.0, jnp.array([2.0, 2.0]))[0],
    "scan": lambda f: jax.grad(lambda x: lax.scan(lambda c, y: (f(c, y), None), x, jnp.array([2.0]))[0])(1.0),
    "scan in jit": lambda f: jax.jit(
        lambda y: jax.grad(lambda x: lax.scan(lambda c, _: (f(c, y), None), x, None, length=1)[0])(1.0)
    )(2.0),
    "scan in vmap": lambda f: jax.vmap(
        lambda y: jax.grad(lambda x: lax.scan(lambda c, _: (f(c, y), None), x, None, length=1)[0])(1.0)
    )(jnp.array([2.0]))[0],
    "jacfwd in vmap": lambda f: jax.vmap(lambda y: jax.jacfwd(lambda x: f(x, y))(1.0))(jnp.array([2.0]))[0],
    "jvp": lambda f: jax.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))[1],
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(1.0, 2.0),
}


class TestClosedOver:
    @staticmethod
    def through(how):
        return lambda x, y: closing_over(y, how)(x)

    @pytest.mark.parametrize("how", ["outputs", "both"])
    @pytest.mark.parametrize("name", DROPPED)
    def test_never_dropped(self, name, how):
        with pytest.raises(errors.ClosedOverError, match=r"closing_over.<locals>.f .*float64"):
            DROPPED[name](self.through(how))

    @pytest.mark.parametrize("how", ["both", "stopped", "rule"])
    @pytest.mark.parametrize("name", KEPT)
    def test_works_where_nothing_is_dropped(self, name, how):
        assert KEPT[name](self.through(how)) == 2.0

    @pytest.mark.parametrize("how", ["stopped", "rule"])
    @pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_by_the_rule_alone(self, how, wrap):
        f = self.through(how)
        assert jax.grad(wrap(f), (0, 1))(1.0, 2.0) == (2.0, 0.0)
        assert wrap(jax.grad(lambda y: jax.grad(f)(1.0, y)))(2.0) == 1.0
        assert wrap(jax.jacfwd(lambda y: jax.jacfwd(f)(1.0, y)))(2.0) == 1.0
        assert wrap(jax.grad(lambda y: jax.jvp(lambda x: f(x, y), (1.0,), (1.0,))[1]))(2.0) == 1.0

    def test_in_an_object(self):
        class Rule:
            def __init__(self, y):
                self.y = y

            def __call__(self, upstream):
                return upstream * self.y

        def f(x, y):
            return op_custom_gradient(lambda x: (x * 1.0, Rule(y)))(x)

        assert jax.grad(f)(1.0, 2.0) == 2.0
        assert jax.grad(lambda y: jax.grad(f)(1.0, y))(2.0) == 1.0
        assert jax.jit(jax.grad(f, (0, 1)))(1.0, 2.0) == (2.0, 0.0)
        with pytest.raises(errors.ClosedOverError, match="as an argument"):
            jax.grad(f, (0, 1))(1.0, 2.0)

    def test_returned_as_it_is(self):
        def f(x, y):
            return op_custom_gradient(lambda x: ((x, y), lambda dx, dy: dx))(x)

        assert jax.grad(lambda x: f(x, 2.0)[0])(1.0) == 1.0
        for argnums in (1, (0, 1)):
            with pytest.raises(errors.ClosedOverError):
                jax.grad(lambda x, y: sum(f(x, y)), argnums)(1.0, 2.0)

    def test_names_it(self):
        def f(x, weights):
            return op_custom_gradient(lambda x: (x * weights["w"], lambda u: u))(x)

        with pytest.raises(errors.ClosedOverError, match=r"'weights' \(float64\[\]\)"):
            jax.grad(lambda w: f(1.0, {"w": w}))(2.0)

    def test_a_pytree_of_jax_is_an_argument(self):
        @jax.tree_util.register_pytree_node_class
        class Layer:
            def __init__(self, w):
                self.w = w

            def tree_flatten(self):
                return (self.w,), None

            @classmethod
            def tree_unflatten(cls, _, children):
                return cls(*children)

            @op_custom_gradient
            def scaled(self, x):
                return x * self.w, lambda upstream: (Layer(upstream * x), upstream * self.w)

            @op_custom_gradient
            def forgetful(self, x):
                return x * self.w, lambda upstream: upstream * self.w

        layer = Layer(jnp.asarray(2.0))
        for wrap in (lambda f: f, jax.jit):
            assert wrap(jax.grad(lambda x, layer: layer.scaled(x)))(1.0, layer) == 2.0
            assert wrap(jax.grad(lambda layer, x: layer.scaled(x)))(layer, 3.0).w == 3.0
            with pytest.raises(errors.GradientRuleError, match=r"returned 1 gradient .* for 2 arguments \(self, x\)"):
                wrap(jax.grad(lambda layer, x: layer.forgetful(x)))(layer, 3.0)

    def test_variables(self):
        def f(parameters, x):
            a, b = parameters

            def function(x):
                s = jnp.sin(a * x)

                def grad(upstream, variables):
                    assert len(variables) == 2
                    c = jnp.cos(a * x)
                    return upstream * b * a * c, [upstream * b * x * c, upstream * s]

                return s * b, grad

            return op_custom_gradient(function)(x)

        def natively(parameters, x):
            return jnp.sin(parameters[0] * x) * parameters[1]

        at = (0.7, 1.3), 0.4
        check_grads(f, at, 3)
        for name, differentiate in DERIVATIVES.items():
            if name in ("grad", "jit of grad", "grad of jit", "hessian", "jacfwd", "hessian of checkpoint"):
                assert_same(differentiate(f)(*at), differentiate(natively)(*at))

        def looped(f):
            return jax.grad(lambda p, x: lax.scan(lambda c, _: (f(p, c), None), x, None, length=3)[0])

        assert_same(looped(f)(*at), looped(natively)(*at))


def test_callbacks():
    """A function that JAX cannot differentiate, with a rule that it can."""

    def function(x):
        y = jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")
        return y, lambda upstream: upstream * jnp.cos(x)

    f = op_custom_gradient(function)
    first = (jax.grad, lambda f: jax.jit(jax.grad(f)), jax.jacfwd, lambda f: jax.grad(jax.checkpoint(f)))
    second = (lambda f: jax.grad(jax.grad(f)), jax.hessian, lambda f: jax.jit(jax.hessian(f)))
    for transform in (*first, *second):
        assert_same(transform(f)(0.3), transform(jnp.sin)(0.3))
    assert_same(jax.vmap(jax.grad(f))(X), np.cos(X))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.grad, lambda f: jax.jit(jax.grad(f))])
def test_effects(wrap, capsys):
    def function(x):
        jax.debug.print("at {}", x)
        return x * 2, lambda upstream: upstream * 2

    wrap(op_custom_gradient(function))(1.0)
    jax.effects_barrier()
    assert capsys.readouterr().out == "at 1.0\n"


class TestMemory:
    def test_residuals_live_as_long_as_the_graph(self):
        alive = []

        def function(x):
            e = jnp.exp(x)
            alive.append(weakref.ref(e))
            return e * 2, lambda upstream: upstream * 2 * e

        f = op_custom_gradient(function)
        gc.collect()
        gc.disable()  # what is freed must be freed without the cycle collector
        try:
            f(X)
            assert alive[-1]() is None
            _, pullback = jax.vjp(f, X)
            assert alive[-1]() is not None
            pullback(X)
            del pullback
            assert alive[-1]() is None
            _, linear = jax.linearize(f, X)
            linear(X)
            del linear
            assert alive[-1]() is None
            jax.grad(lambda x: f(x).sum())(X)
            jax.jvp(f, (X,), (X,))
            assert alive[-1]() is None and alive[-2]() is None
        finally:
            gc.enable()

    def test_as_many_arrays_as_a_hand_written_function(self):
        @jax.custom_vjp
        def by_hand(x):
            return jnp.log(1 + jnp.exp(x))

        def forward(x):
            e = jnp.exp(x)
            return jnp.log(1 + e), e

        by_hand.defvjp(forward, lambda e, upstream: (upstream * (1 - 1 / (1 + e)),))

        @op_custom_gradient
        def ours(x):
            e = jnp.exp(x)
            return jnp.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

        @op_custom_gradient
        def over_output(x):
            y = jnp.log(1 + jnp.exp(x))
            return y, lambda upstream: upstream * (1 - jnp.exp(-y))

        def kept():
            return sum(a.shape == x.shape for a in jax.live_arrays())

        x = jnp.ones(1237)  # a size that nothing else has
        counts = []
        gc.collect()
        gc.disable()  # what is freed must be freed without the cycle collector
        try:
            for f in (by_hand, ours, over_output):
                y, pullback = jax.vjp(f, x)
                counts.append(kept())
                pullback(y)
                del y, pullback
                assert kept() == 1
        finally:
            gc.enable()
        assert counts == [3, 3, 2]  # x and y; e for the first two

    def test_the_primals_are_not_kept_by_the_call(self):
        f = op_custom_gradient(lambda x: (x * 2, lambda upstream: upstream * 2))
        x = jnp.asarray(X) * 1.0
        alive = weakref.ref(x)
        _, pullback = jax.vjp(f, x)
        gc.collect()
        del x
        assert alive() is None
        assert_same(pullback(X)[0], 2 * X)

    def test_no_leaks(self):
        with jax.checking_leaks():
            self.run_all()

    def test_checks(self):
        with jax.enable_checks(True):
            self.run_all()

    @staticmethod
    def run_all():
        def total(x):
            return product(x, jnp.full_like(x, 2.0)).sum()

        each = (jax.grad, jax.hessian, jax.vmap, lambda f: jax.vmap(jax.grad(f)), lambda f: jax.grad(jax.checkpoint(f)))
        for transform in each:
            found = transform(total)(X)
            assert_same(jax.jit(transform(total))(X), found)
        assert_same(jax.linearize(product, X, Y)[1](Y, X), jax.jvp(product, (X, Y), (Y, X))[1])
        looped = jax.grad(lambda x: lax.scan(lambda c, _: (product(c, Y), None), x, None, length=2)[0].sum())
        assert_same(jax.jit(looped)(X), looped(X))


def test_threads():
    faults = []

    def run():
        try:
            with multiop.use_backend("jax"):
                for _ in range(5):
                    assert_same(jax.grad(lambda x: product(x, Y).sum())(X), np.cos(X) * Y)
                    assert_same(jnp.diagonal(jax.hessian(lambda x: product(x, Y).sum())(X)), -np.sin(X) * Y)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_shard_map():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    over = PartitionSpec("i")
    f = jax.shard_map(product, mesh=mesh, in_specs=(over, over), out_specs=over)
    assert_same(f(X, Y), product_natively(X, Y))
    for transform in (jax.grad, jax.hessian, lambda f: jax.jit(jax.hessian(f))):
        assert_same(transform(lambda x: f(x, Y).sum())(X), transform(lambda x: product_natively(x, Y).sum())(X))


def test_shard_map_with_a_replicated_argument():
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    over, everywhere = PartitionSpec("i"), PartitionSpec()
    scaled = op_custom_gradient(lambda x, w: (x * w, lambda u: (u * w, multiop.op_sum(u * x))))
    total = op_custom_gradient(lambda x: (lax.psum(x.sum(), "i"), lambda u: u * jnp.ones_like(x)))
    x, y, w = jnp.asarray(X), jnp.asarray(Y), jnp.asarray(3.0)
    f = jax.shard_map(scaled, mesh=mesh, in_specs=(over, everywhere), out_specs=over)
    for wrap in (lambda f: f, jax.jit):
        gx, gw = wrap(jax.grad(lambda x, w: (f(x, w) * y).sum(), (0, 1)))(x, w)
        assert_same(gx, 3 * Y)
        assert_same(gw, X @ Y)
        assert_same(wrap(lambda x, w: jax.jvp(f, (x, w), (y, w - 1))[1])(x, w), 3 * Y + 2 * X)
        assert_same(wrap(jax.hessian(lambda w: (f(x, w) ** 2).sum()))(w), 2 * X @ X)
        t = jax.shard_map(total, mesh=mesh, in_specs=over, out_specs=everywhere)
        assert_same(wrap(jax.grad(lambda x: t(x) * 2))(x), [2.0, 2.0, 2.0])
        assert_same(wrap(lambda x: jax.jvp(t, (x,), (y,))[1])(x), Y.sum())


TAKEN = np.array([0, 2, 2])


@pytest.mark.parametrize(
    "take",
    [
        lambda u, i: multiop.op_take(u, i, 0),
        lambda u, i: multiop.op_take_along_axis(u, i, 0),
        lambda u, i: multiop.ops.get_item(u, i),
        lambda u, i: multiop.op_concatenate([multiop.op_slice(u, i[:1], (1,)), u[2:], u[2:]]),
    ],
    ids=["take", "take_along_axis", "get_item", "slice"],
)
@pytest.mark.parametrize("wrap", ["eager", "jit", "jit of the indices"])
def test_rule_that_takes_by_indices_is_linear(take, wrap):
    def tangent(x, i):
        return jax.jvp(op_custom_gradient(lambda x: (x * 1.0, lambda u: take(u, i))), (x,), (Y,))[1]

    i = jnp.asarray(TAKEN)
    run = {
        "eager": tangent,
        "jit": lambda x, i: jax.jit(lambda x: tangent(x, i))(x),
        "jit of the indices": jax.jit(tangent),
    }[wrap]
    assert_same(run(X, i), np.eye(3)[TAKEN].T @ Y)


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, u: jnp.asarray(np.asarray(u) * 2),
        lambda x, u: u * 2 if float(u) > 0 else u,
        lambda x, u: u * [1, 2][int(u)],
        lambda x, u: u if u > 0 else u * 2,
    ],
    ids=["NumPy", "float", "int", "bool"],
)
def test_rule_that_reads_values_has_no_forward_mode(rule):
    f = op_custom_gradient(lambda x: (x * x, lambda u: rule(x, u)))
    assert jnp.isfinite(jax.grad(f)(3.0))
    for run in (
        lambda: jax.jvp(f, (3.0,), (1.0,)),
        lambda: jax.linearize(f, 3.0)[1](1.0),
        lambda: jax.jacfwd(f)(3.0),
        lambda: multiop.jvp(f, (3.0,), (1.0,)),
    ):
        with pytest.raises(errors.NonLinearRuleError, match="reads values"):
            run()


def test_collectives_over_a_mapped_axis():
    centred = op_custom_gradient(lambda x: (x - lax.pmean(x, "b"), lambda u: u - lax.pmean(u, "b")))
    f, natively = jax.vmap(centred, axis_name="b"), jax.vmap(lambda x: x - lax.pmean(x, "b"), axis_name="b")
    for wrap in (lambda f: f, jax.jit):
        assert_same(wrap(lambda x: jax.vjp(f, x)[1](Y)[0])(X), jax.vjp(natively, X)[1](Y)[0])
        assert_same(wrap(lambda x: jax.jvp(f, (x,), (Y,))[1])(X), jax.jvp(natively, (X,), (Y,))[1])


def test_compiled_code_is_that_of_custom_vjp():
    def log1pexp(x):
        e = jnp.exp(x)
        return jnp.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    def forward(x):
        e = jnp.exp(x)
        return jnp.log(1 + e), e

    by_hand = jax.custom_vjp(lambda x: jnp.log(1 + jnp.exp(x)))
    by_hand.defvjp(forward, lambda e, upstream: (upstream * (1 - 1 / (1 + e)),))

    def n_operations(f):
        return jax.jit(f).lower(1.0).compile().as_text().count(" = ")

    ours = op_custom_gradient(log1pexp)
    for transform in (jax.grad, jax.value_and_grad, lambda f: jax.grad(jax.grad(f))):
        assert n_operations(transform(ours)) <= n_operations(transform(by_hand))


FACTORS = (0.5, 2.0, 0.5, 1, 1.0, True, 0.0, -0.0, np.float32(2.0), jnp.float32(3.0))


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad,
        lambda f: jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2)),
        jax.hessian,
        lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, 2 * x])),
        lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (x,))[1],
        lambda f: jax.grad(jax.checkpoint(f)),
    ],
)
def test_what_is_shared_is_equal(derivative):
    """Calls of one line, whose programs differ in a number alone, keep their own."""

    def scaled(k):
        return op_custom_gradient(lambda x: (x * x * k, lambda u: jnp.copysign(2 * k, k) * x * u))

    def total(f):
        return lambda x: sum(jnp.sum(f(k)(x)) * (i + 1) for i, k in enumerate(FACTORS))

    ours, plain = total(scaled), total(lambda k: lambda x: x * x * k)
    for wrap in (lambda f: f, jax.jit):
        assert_same(wrap(derivative(ours))(X), derivative(plain)(X))


def test_the_sign_of_a_zero_is_not_shared():
    def signed(k):
        return op_custom_gradient(lambda x: (x * 1, lambda u: jnp.copysign(u, k)))

    assert jax.jit(jax.grad(lambda x: signed(0.0)(x) + 2 * signed(-0.0)(x)))(1.0) == -1


def test_a_compiled_residual_is_only_what_the_wanted_gradients_need():
    """Differentiated with respect to `x` alone, `sin(x)`, which the gradient of `y` needs, is no residual."""
    _, pullback = jax.jit(lambda x: jax.vjp(lambda x: product(x, Y), x))(X)
    kept = [leaf for leaf in jax.tree.leaves(pullback) if np.shape(leaf) == X.shape]
    assert not any(np.allclose(leaf, np.sin(X)) for leaf in kept)


@pytest.mark.parametrize("order", [1, 2])
def test_python_control_flow_under_a_tape(order):
    @op_custom_gradient
    def f(x):
        s, c = (jnp.sin(x), jnp.cos(x)) if x > 0 else (jnp.cos(x), -jnp.sin(x))

        def grad(upstream):
            return upstream * c if float(c) < 2 else upstream

        return s, grad

    with multiop.GradientTape() as outer:
        x = outer.watch(jnp.asarray(np.float64(0.4)))
        with multiop.GradientTape() as inner:
            x = inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    assert_same(first, np.cos(0.4))
    if order == 2:
        assert_same(outer.gradient(first, x), -np.sin(0.4))


def test_native_transforms_inside_a_tape():
    for derivative in (lambda x: jax.value_and_grad(rounded)(x)[0] ** 2, jax.grad(lambda x: rounded(x) ** 2)):
        with multiop.GradientTape() as tape:
            x = tape.watch(jnp.asarray(1.3))
            y = derivative(x)
        assert tape.gradient(y, x) == 2.0

    def doubled(x):
        return product(x, 2.0)

    for derivative in (jax.grad(doubled), lambda x: jax.jvp(doubled, (x,), (jnp.ones_like(x),))[1]):
        with multiop.GradientTape() as tape:
            x = tape.watch(jnp.asarray(np.float64(0.4)))
            y = derivative(x)
        assert_same(tape.gradient(y, x), -2 * np.sin(0.4))


def differentiate_by_tape(f, x, how):
    """Return the gradients that a tape gives in some way, after `f` was called once, and what is to be done before."""
    with multiop.GradientTape(persistent=how != "once") as outer:
        x = outer.watch(x)
        if how == "around jax.vjp":
            y, pull = jax.vjp(f, x)
            yield None
            yield [pull(jnp.ones_like(y))[0]]
            return
        if how == "nested":
            with multiop.GradientTape() as tape:
                y = f(tape.watch(x))
            yield None
            yield [tape.gradient(y, x), outer.gradient(y, x)]
            return
        y = f(x)
        if how == "inside":
            yield None
            yield [outer.gradient(y, x)]
            return
    yield None
    yield [outer.gradient(y, x)] if how == "once" else [outer.gradient(y, x), outer.gradient(y, x)]


@pytest.mark.parametrize("how", ["once", "twice", "inside", "nested", "around jax.vjp"])
@pytest.mark.parametrize("state", ["flag", "mask", "drawn mask"])
def test_forward_runs_once_under_a_tape(how, state):
    flag, mask, runs = [True], np.array([1.0, 0.0, 1.0]), []
    draw = np.random.default_rng(0)

    @op_custom_gradient
    def dropped(x):
        runs.append(1)
        if state == "flag":
            scale = jnp.asarray([1.0, 0.0, 1.0] if flag[0] else [5.0, 5.0, 5.0])
        else:
            scale = multiop.op_convert_to_tensor(mask if state == "mask" else draw.integers(0, 9, 3) + 0.0)
        seen.append(np.asarray(scale))
        return x * scale, lambda u: u * scale * 10

    seen = []
    steps = differentiate_by_tape(dropped, jnp.asarray(X), how)
    next(steps)
    flag[0], mask[:] = False, 7.0
    for found in next(steps):
        assert_same(found, 10 * seen[0])
    assert len(runs) == 1


@pytest.mark.parametrize("persistent", [False, True])
def test_higher_orders_under_tapes_go_through_what_ran_once(persistent):
    runs = []

    @op_custom_gradient
    def f(x):  # sin(x) cos(x), with a rule that needs what was computed on the way, the output and the argument
        runs.append(1)
        s, c = jnp.sin(x), jnp.cos(x)
        y = s * c
        return y, lambda u: u * (c * c - s * s) * (1 + y - s * c) * (x / x)

    with multiop.GradientTape(persistent=True) as outer:
        x = outer.watch(jnp.asarray(X))
        if persistent:
            y = f(x)
            first = outer.gradient(y, x)
        else:
            with multiop.GradientTape() as inner:
                y = f(inner.watch(x))
            first = inner.gradient(y, x)
        second = outer.gradient(first, x)
        third = outer.gradient(second, x)
    for found, wanted in ((first, np.cos(2 * X)), (second, -2 * np.sin(2 * X)), (third, -4 * np.cos(2 * X))):
        # y - s c is zero, but not its derivative by the rule: that is the same, and cancels
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert len(runs) == 1


@pytest.mark.parametrize("wrap", ["grad", "jit", "vmap", "tape", "persistent tape", "unused result of watch"])
@pytest.mark.parametrize("use", ["operands", "jit", "cond", "rule"])
def test_variables_come_in_the_order_of_their_first_use(use, wrap):
    def weighted(x, a, b, c):
        @op_custom_gradient
        def f(x):
            if use == "operands":
                y = x * b * a * c * b
            elif use == "jit":
                y = jax.jit(lambda x: x * b * a)(x) * c
            elif use == "cond":
                y = lax.cond(x > 0, lambda: x * b * a, lambda: x) * c
            else:
                y = x * b * a  # the function does not use c, the rule does

            def grad(upstream, variables):
                assert len(variables) == (2 if use == "rule" else 3)
                k = c / c if use == "rule" else 1.0
                return upstream * 7 * k, [upstream * (i + 1.0) for i in range(len(variables))]

            return y, grad

        return f(x)

    xs = [jnp.asarray(float(k)) for k in (3, 2, 5, 7)]
    gradient = jax.grad(weighted, (0, 1, 2, 3))
    if wrap == "grad":
        found = gradient(*xs)
    elif wrap == "jit":
        found = jax.jit(gradient)(*xs)
    elif wrap == "vmap":
        found = [g[0] for g in jax.vmap(gradient)(*[x[None] for x in xs])]
    else:
        with multiop.GradientTape(persistent=wrap == "persistent tape") as tape:
            watched = tape.watch(xs)
            y = weighted(*(xs if wrap == "unused result of watch" else watched))
        found = tape.gradient(y, xs, unconnected_gradients="zero")
    assert [float(g) for g in found[:3]] == [7.0, 2.0, 1.0]
    if use != "rule":
        assert float(found[3]) == 3.0


def test_each_operation_of_a_rule_has_its_own_line():
    @op_custom_gradient
    def f(x):
        def grad(upstream):
            doubled = upstream * 2
            return jnp.cos(x) * doubled

        return jnp.sin(x), grad

    lowered = jax.jit(jax.value_and_grad(f)).lower(1.0).as_text(debug_info=True)
    first = f.__wrapped__.__code__.co_firstlineno
    of_function = (6,) if jax.__version_info__ >= (0, 9) else ()  # before, its operations are at its call
    for below in (3, 4, *of_function):
        assert f'test_custom_gradient_jax.py":{first + below}:' in lowered
