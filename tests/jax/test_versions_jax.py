"""What JAX has had silently wrong, in some version, is right in multiop. Each test runs on every tested version."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp

import multiop
from multiop import ops

RNG = np.random.default_rng(0)


@multiop.op_custom_gradient
def tenfold(x):
    return x * x, lambda u: 10 * u * x


HOW = {
    "scan": lambda f, x: ops.scan(lambda carry, _: (f(carry), None), x, None, length=1)[0],
    "jax.lax.scan": lambda f, x: jax.lax.scan(lambda carry, _: (f(carry), None), x, None, length=1)[0],
    "fori_loop": lambda f, x: ops.fori_loop(0, 1, lambda _, carry: f(carry), x),
    "checkpoint in scan": lambda f, x: HOW["scan"](multiop.checkpoint(f), x),
    "scan in checkpoint": lambda f, x: multiop.checkpoint(lambda x: HOW["scan"](f, x))(x),
    "jax.checkpoint": lambda f, x: jax.checkpoint(f)(x),
    "cond": lambda f, x: ops.cond(ops.sum(x) > -100, lambda: f(x), lambda: -x),
    "vmap": lambda f, x: multiop.vmap(f)(x),
}


@pytest.mark.parametrize("how", HOW)
def test_a_rule_is_kept_to_the_second_order(how):
    """That of jax.custom_jvp is lost in a scan: https://github.com/patrick-kidger/optimistix/issues/151.

    In a checkpoint, it was once lost too: https://github.com/jax-ml/jax/issues/4566.
    """
    x = jnp.asarray([0.5, -2.0])
    first = multiop.grad(lambda x: ops.sum(HOW[how](tenfold, x)))
    second = multiop.grad(lambda x: ops.sum(first(x)))
    for compiled in (lambda f: f, jax.jit):
        np.testing.assert_allclose(compiled(first)(x), 10 * x, rtol=1e-6)
        np.testing.assert_allclose(compiled(second)(x), [10, 10], rtol=1e-6)


@pytest.mark.parametrize("bounds", ["known", "traced"])
def test_forward_mode_of_a_loop_in_a_checkpoint(bounds):
    """What is known of its carry changed from step to step: https://github.com/jax-ml/jax/pull/27353 (0.6)."""

    def f(x, n):
        return ops.fori_loop(0, n, lambda i, carry: (carry[1] * carry[0], carry[1] + x, carry[0]), (x, x, x))

    def of(x, n=3):
        return multiop.checkpoint(f)(x, n)

    if bounds == "traced":
        found = jax.jit(lambda x, n: jax.linearize(lambda x: of(x, n), x)[1](1.0))(2.0, 3)
    else:
        found = jax.linearize(of, 2.0)[1](1.0)
    np.testing.assert_allclose(found, multiop.jvp(lambda x: f(x, 3), (2.0,), (1.0,))[1], rtol=1e-6)
    # the values are x, x, x; x^2, 2x, x; 2x^3, 3x, x^2; 6x^4, 4x, 2x^3
    np.testing.assert_allclose(found, [24 * 2.0**3, 4, 6 * 2.0**2], rtol=1e-6)


def test_an_integer_result_of_a_mapped_rule():
    """It had a tangent in some versions: https://github.com/jax-ml/jax/issues/25724 (0.6)."""
    f = multiop.op_custom_gradient(lambda x: ((x[0] * x[1], ops.argmax(x)), lambda u, none: 5 * u * x))
    x = jnp.asarray([[1.0, 2.0], [4.0, 3.0]])

    def total(x):
        y, place = multiop.vmap(f)(x)
        return ops.sum(y * (1 + ops.cast(place, "float32")))

    for compiled in (lambda f: f, jax.jit):
        np.testing.assert_allclose(compiled(jax.grad(total))(x), [[10, 20], [20, 15]], rtol=1e-6)
        np.testing.assert_allclose(compiled(lambda x: jax.jvp(total, (x,), (x,))[1])(x), 10 * 5 + 5 * 25, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_indices_of_few_bits(dtype, wrap):
    """They overflowed, or were taken for out of range.

    https://github.com/jax-ml/jax/issues/16557, https://github.com/openxla/xla/issues/48718
    """
    last = np.iinfo(dtype).max
    x = np.arange(300, dtype=np.float32)
    k = np.array([last], dtype)
    assert wrap(ops.take)(x, k).tolist() == [last]
    changed = wrap(lambda x, k: ops.scatter_update(x, ops.expand_dims(k, 1), np.float32([-1.0])))(x, k)
    assert np.flatnonzero(changed != x).tolist() == [last]
    added = wrap(lambda x, k: ops.segment_sum(x[:1] + 1, k, 300))(x, k)
    assert np.flatnonzero(added).tolist() == [last]
    many, rows = np.zeros(300, dtype), np.ones((300, 1), np.float32)
    assert wrap(multiop.vmap(lambda x, k: ops.take(x, k)))(rows, many).tolist() == [1.0] * 300
    slope = wrap(multiop.grad(lambda x: ops.sum(ops.take(x, k) * 2)))(x)
    assert np.flatnonzero(slope).tolist() == [last]


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 2.0**24, 1e12])
def test_eigenvectors_of_large_eigenvalues(size):
    """Their derivative lost its digits, and was wrong or NaN from 2^24 on.

    https://github.com/jax-ml/jax/issues/40141 (0.12)
    """
    basis = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    x = np.float32((basis * [1.0, 2.0, 4.0]) @ basis.T * size)
    weights = RNG.normal(size=(3, 3))
    values, vectors = np.linalg.eigh(np.float64(x))
    gaps = values - values[:, None] + np.eye(3)
    outer = (1 / gaps - np.eye(3)) * (vectors.T @ (2 * weights * vectors))
    expected = vectors @ (outer + outer.T) @ vectors.T / 2

    def f(x):
        return ops.sum(weights.astype("float32") * ops.square(ops.eigh(x)[1]))

    for wrap in (lambda f: f, jax.jit):
        found = np.asarray(wrap(multiop.grad(f))(x))
        np.testing.assert_allclose((found + found.T) / 2 * size, expected * size, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("multiop_x64")
@pytest.mark.parametrize("x", [1e-20, -1.1102230246251565e-16, 1e-9, 1e-4, 0.0])
def test_the_slope_of_sinc_near_0(x):
    """That of jnp.sinc is anything there: https://github.com/jax-ml/jax/issues/40629, 34139 (0.12)."""
    for by in (multiop.grad, lambda f: lambda x: multiop.jvp(f, (x,), (jnp.ones_like(x),))[1]):
        found = float(by(ops.sinc)(jnp.asarray(x)))
        np.testing.assert_allclose(found, -(np.pi**2) * x / 3 + np.pi**4 * x**3 / 30, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("shape", [(1, 8, 8, 1), (1, 128, 96, 1)], ids=["small", "large"])
@pytest.mark.parametrize("op", ["average_pool", "max_pool"])
def test_pools_with_gaps(op, shape):
    """A window of 1 with a stride is dilated on the way back, which some kernels left out.

    https://github.com/openxla/xla/issues/48714
    """
    x = RNG.permutation(np.prod(shape)).reshape(shape).astype("float32")
    weights = RNG.normal(size=(1, shape[1] // 2, shape[2] // 2, 1)).astype("float32")

    def f(x):
        return ops.sum(weights * getattr(ops, op)(x, (2, 1), (2, 2)))

    pairs = x[:, :, ::2].reshape(1, shape[1] // 2, 2, shape[2] // 2, 1)
    share = np.full(pairs.shape, 0.5) if op == "average_pool" else pairs == pairs.max(2, keepdims=True)
    expected = np.zeros(shape)
    expected[:, :, ::2] = (share * weights[:, :, None]).reshape(1, shape[1], shape[2] // 2, 1)
    for wrap in (lambda f: f, jax.jit):
        np.testing.assert_allclose(wrap(multiop.grad(f))(x), expected, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e6, 1e25])
def test_singular_vectors_of_large_and_small_values(size):
    """Squares of singular values overflow, and then the derivative is 0, or vanish, and then it is NaN."""
    x = RNG.normal(size=(3, 3))
    weights = RNG.normal(size=(3, 3))

    def f(x):
        return ops.sum(weights.astype("float32") * ops.square(ops.svd(x)[0]))

    u, s, vh = np.linalg.svd(x)
    gaps = s**2 - s[:, None] ** 2 + np.eye(3)
    outer = (1 / gaps - np.eye(3)) * (u.T @ (2 * weights * u))
    expected = u @ (outer + outer.T) @ np.diag(s) @ vh
    for wrap in (lambda f: f, jax.jit):
        found = np.asarray(wrap(multiop.grad(f))(np.float32(x * size)))
        np.testing.assert_allclose(found * size, expected, rtol=1e-3, atol=1e-3)


def test_entries_taken_from_a_sum_of_entries():
    """JAX 0.5 to 0.7 takes others on a CPU, compiled: https://github.com/openxla/xla/issues/34260."""
    x, upstream = RNG.normal(size=(3, 4, 1)).astype("float32"), RNG.normal(size=(5, 2, 1)).astype("float32")

    def resized(x):
        return multiop.op_image_resize(x, (5, 2))

    matrix = np.stack([np.asarray(resized(e)).ravel() for e in np.eye(12, dtype="float32").reshape(12, 3, 4, 1)])
    expected = (matrix @ upstream.ravel()).reshape(x.shape)
    found = jax.jit(multiop.grad(lambda x: ops.sum(resized(x) * upstream)))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    taken = jnp.broadcast_to(jnp.arange(5), (2, 5))
    np.testing.assert_array_equal(jax.jit(lambda: taken[:, jnp.arange(5)] + 1)(), np.arange(1, 6) + np.zeros((2, 1)))


@pytest.mark.tier("full")
@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_a_rule_around_a_search(compiled):
    """JAX's matrix exponential holds one, which 0.12 lowers apart: https://github.com/jax-ml/jax/tree/main/jax/_src/hijax.py."""
    x = jnp.asarray([[0.5, -2.0], [0.25, 1.0]])
    native = jax.scipy.linalg.expm
    slope = jax.grad(lambda x: jnp.sum(native(x)))(x)
    np.testing.assert_allclose(compiled(ops.expm)(x), native(x), rtol=1e-5)
    for f in (ops.expm, lambda x: HOW["scan"](ops.expm, x)):
        np.testing.assert_allclose(compiled(multiop.grad(lambda x, f=f: ops.sum(f(x))))(x), slope, rtol=1e-5)


@pytest.mark.tier("full")
@pytest.mark.usefixtures("multiop_x64")
def test_eigenvalues_in_a_loop_that_is_differentiated_twice():
    """Before 0.10, JAX has no derivative of `eig`, and forgets one of `jax.custom_jvp` there."""
    x, v = np.diag([1.0, 2.0, 4.0]) + np.arange(9.0).reshape(3, 3) / 9, np.linspace(-1, 1, 9).reshape(3, 3)

    def f(x):
        step = lambda c, _: (c + 0.01 * ops.real(ops.eigvals(c))[:, None] * c, None)
        return ops.sum(ops.scan(step, x, None, length=2)[0] ** 2)

    grad, h = multiop.grad(f), 1e-5
    expected = sum(sign * np.asarray(grad(x + sign * h * v)) for sign in (1, -1)) / (2 * h)
    found = multiop.grad(lambda x: ops.sum(grad(x) * v))(x)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-7, atol=1e-7)
