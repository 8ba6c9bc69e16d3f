"""The tape on JAX: what it records, how long, and that it gives what JAX's own transforms give."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax import lax

import multiop
from multiop import errors
from multiop.backends.jax import _internals
from multiop.backends.jax.autodiff._tape import Tape

X = jnp.array([0.3, 1.2, -0.7])
S = jnp.array(0.8)
A = jnp.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])


def recorded(fun):
    """Return the function that `jax.grad(fun, every argument)` is, by a tape."""

    def gradient(*xs):
        with Tape(False, True) as tape:
            xs = [tape.watch(x) for x in xs]
            y = fun(*xs)
        return tape.gradient([y], xs, None)

    return gradient


def nth_derivative(fun, n):
    """Return the `n`-th derivative of a function of one number, by nested tapes."""
    if n == 0:
        return fun
    return lambda x: recorded(nth_derivative(fun, n - 1))(x)[0]


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    assert _internals.trace_ctx.trace is _internals.eval_trace


@jax.custom_jvp
def sine_with_rule(x):
    return jnp.sin(x)


sine_with_rule.defjvps(lambda t, ans, x: 7 * t * x * ans)


@jax.custom_vjp
def product_with_rule(x, y):
    return x * y


product_with_rule.defvjp(
    lambda x, y: (x * y, (x, y)), lambda residuals, g: (10 * g * residuals[1], 100 * g * residuals[0])
)


@jax.custom_vjp
def reversal(x):
    return x


reversal.defvjp(lambda x: (x, None), lambda _, g: (-g,))


def python_control_flow(x):
    y = x
    while float(jnp.sum(y)) < 5:
        y = y * 1.5 + 0.1 if y[0] < 1 else y * 2
    return jnp.sum(y)


CASES = {
    "arithmetic": (lambda x, s: jnp.sum(x * s + x / s - (-x) ** 2 + 2 * x - 1.5), (X, S)),
    "astype": (lambda x: jnp.sum(x.astype(jnp.bfloat16).astype(jnp.float32) ** 2), (X,)),
    "associative_scan": (lambda x: jnp.sum(lax.associative_scan(jnp.multiply, x)), (X,)),
    "at": (lambda x, s: jnp.sum(x.at[1].set(s) * x.at[0].add(s)), (X, S)),
    "cg": (lambda a, x: jnp.sum(jax.scipy.sparse.linalg.cg(a, x)[0] ** 2), (A, X)),
    "checkpoint": (lambda x: jnp.sum(jax.checkpoint(lambda a: jnp.sin(jnp.cos(a) * x))(x)), (X,)),
    "clip": (lambda x: jnp.sum(jnp.clip(x, -0.5, 0.5) ** 2), (X,)),
    "concatenate": (lambda x, s: jnp.sum(jnp.concatenate([x, x * x])[1:4]) + jnp.sum(jnp.array([s, s * s])), (X, S)),
    "cond": (lambda x, s: lax.cond(x[0] > 0, lambda: jnp.sum(x) * s, lambda: s), (X, S)),
    "convolve": (lambda x: jnp.sum(jnp.convolve(x, x) ** 2), (X,)),
    "custom_jvp": (lambda x: jnp.sum(sine_with_rule(x) * x), (X,)),
    "custom_jvp in jit": (jax.jit(lambda x: jnp.sum(sine_with_rule(x) * x)), (X,)),
    "custom_jvp of relu": (lambda x: jnp.sum(jax.nn.relu(x) * x), (X,)),
    "custom_vjp": (lambda x, s: jnp.sum(product_with_rule(x, s * x) * x), (X, S)),
    "custom_vjp in jit": (jax.jit(lambda x, s: jnp.sum(product_with_rule(x, s * x) * x)), (X, S)),
    "custom_vjp in scan": (lambda x, s: lax.scan(lambda c, e: (product_with_rule(c, e), c), s, x)[0], (X, S)),
    "custom_vjp of the identity": (lambda x: jnp.sum(reversal(x) * x * x), (X,)),
    "custom_vjp under vmap": (lambda x, s: jnp.sum(jax.vmap(lambda e: product_with_rule(e, s))(x) ** 2), (X, S)),
    "eigh": (lambda a: jnp.sum(jnp.linalg.eigh(a)[0] ** 3), (A,)),
    "einsum": (lambda a, x: jnp.einsum("ij,j,i->", a, x, x), (A, X)),
    "empty": (lambda x: jnp.sum(x * x), (jnp.zeros((0, 3)),)),
    "fft": (lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 4), (X,)),
    "fori_loop": (lambda x, s: jnp.sum(lax.fori_loop(0, 4, lambda i, c: c * s + x, x)), (X, S)),
    "grad inside": (lambda x, s: jnp.sum(jax.grad(lambda a: jnp.sum(jnp.sin(a * s) * x))(x)), (X, S)),
    "hessian inside": (lambda x, s: jnp.sum(jax.hessian(lambda a: jnp.sum(jnp.sin(a * s)))(x)), (X, S)),
    "indexing": (
        lambda x: x[1] * x[-1] + jnp.sum(x[jnp.array([0, 0, 2])] ** 2) + jnp.sum(x[x > 0] ** 2) + jnp.sum(x[::2]),
        (X,),
    ),
    "iteration": (lambda x: sum(e * e * e for e in x), (X,)),
    "jit": (lambda x: jax.jit(lambda a: jnp.sum(jnp.tanh(a) * a))(x), (X,)),
    "jit that closes over": (lambda x, s: jax.jit(lambda a: jnp.sum(jnp.tanh(a) * s))(x), (X, S)),
    "jit in jit that closes over": (
        lambda x, s: jax.jit(lambda a: jax.jit(lambda b: jnp.sum(b * s * x))(a * 2))(x),
        (X, S),
    ),
    "jit with a constant": (lambda x: jax.jit(lambda a: jnp.sum(a * a * A[0]))(x), (X,)),
    "jvp inside": (lambda x, s: jnp.sum(jax.jvp(lambda a: jnp.sin(a * s), (x,), (x,))[1]), (X, S)),
    "linear algebra": (
        lambda a, x: jnp.linalg.solve(a, x) @ x + jnp.linalg.slogdet(a)[1] + jnp.sum(jnp.linalg.cholesky(a)),
        (A, X),
    ),
    "logsumexp": (lambda x: jax.nn.logsumexp(x * x), (X,)),
    "map": (lambda x, s: jnp.sum(lax.map(lambda e: e * s, x) ** 2), (X, S)),
    "max and min": (lambda x: jnp.max(x) ** 2 + jnp.min(x) ** 3, (X,)),
    "methods": (lambda x: x.reshape(3, 1).T.sum() * x.max() + x.mean() + x.dot(x), (X,)),
    "NumPy operand": (lambda x: jnp.sum(np.array([1.0, 2.0, 3.0], np.float32) * x * x), (X,)),
    "random": (lambda x: jnp.sum(jax.random.normal(jax.random.key(0), (3,)) * x * x), (X,)),
    "scan": (lambda x, s: lax.scan(lambda c, e: (c * s + e, c), s, x)[0], (X, S)),
    "scan, all outputs": (lambda x, s: jnp.sum(lax.scan(lambda c, e: (c * s + e, c * e), s, x)[1]), (X, S)),
    "softmax": (lambda x: jax.nn.softmax(x)[0], (X,)),
    "sort": (lambda x: jnp.sort(x) @ jnp.arange(3.0) + jnp.sort(x)[0] ** 2, (X,)),
    "split": (lambda x: jnp.split(x, 3)[1][0] * jnp.split(x, 3)[2][0], (X,)),
    "stop_gradient": (lambda x: jnp.sum(lax.stop_gradient(x) * x * x), (X,)),
    "vmap inside": (lambda x, s: jnp.sum(jax.vmap(lambda e: jnp.sin(e * s))(x)), (X, S)),
    "where": (lambda x: jnp.sum(jnp.where(x > 0, x * x, jnp.sin(x))), (X,)),
}


@pytest.mark.parametrize("case", CASES)
def test_gradient_is_that_of_jax(case):
    fun, xs = CASES[case]
    every = tuple(range(len(xs)))
    for found, wanted in zip(recorded(fun)(*xs), jax.grad(fun, every)(*xs), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


SIMPLE = {
    "astype",
    "clip",
    "convolve",
    "empty",
    "iteration",
    "logsumexp",
    "map",
    "methods",
    "NumPy operand",
    "random",
    "split",
    "einsum",
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", sorted(CASES.keys() - SIMPLE))
def test_second_order_is_that_of_jax(case):
    fun, xs = CASES[case]
    every = tuple(range(len(xs)))
    weights = [jnp.arange(1.0, 1 + x.size).reshape(x.shape) for x in xs]

    def weighted(gradients):
        return sum(jnp.sum(g * w) for g, w in zip(gradients, weights, strict=True))

    second = recorded(lambda *xs: weighted(recorded(fun)(*xs)))(*xs)
    for found, wanted in zip(
        second, jax.grad(lambda *xs: weighted(jax.grad(fun, every)(*xs)), every)(*xs), strict=True
    ):
        np.testing.assert_allclose(0 if found is None else found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ["arithmetic", "custom_jvp", "custom_vjp", "jit that closes over", "scan"])
@pytest.mark.parametrize("around", ["jit", "vmap", "grad", "jit of vmap of grad"])
def test_tape_inside_a_transform(case, around):
    fun, xs = CASES[case]
    every = tuple(range(len(xs)))
    by_tape, by_jax = recorded(fun), lambda *xs: list(jax.grad(fun, every)(*xs))

    def summed(gradient):
        return lambda *xs: sum(jnp.sum(g * g) for g in gradient(*xs))

    transform = {
        "jit": jax.jit,
        "vmap": jax.vmap,
        "grad": lambda f: jax.grad(summed(f), every),
        "jit of vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(summed(f), every))),
    }[around]
    if "vmap" in around:
        xs = [jnp.stack([x, 1.1 * x]) for x in xs]
    for found, wanted in zip(transform(by_tape)(*xs), transform(by_jax)(*xs), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_python_control_flow_follows_the_values():
    # 0.3 -> 0.55 -> 0.925 -> ... : the gradient is the product of the slopes that were taken
    (found,) = recorded(python_control_flow)(X)
    y, slope = np.asarray(X, np.float64), 1.0
    while y.sum() < 5:
        y, slope = (y * 1.5 + 0.1, slope * 1.5) if y[0] < 1 else (y * 2, slope * 2)
    np.testing.assert_allclose(found, np.full(3, slope), rtol=1e-5)


@pytest.mark.parametrize("order", range(5))
def test_nested_tapes_to_the_fourth_order(order):
    def fun(x):
        return jnp.sin(x) * jnp.exp(x)  # its n-th derivative is sqrt(2)^n sin(x + n pi / 4) e^x

    x = 0.7
    wanted = 2 ** (order / 2) * np.sin(x + order * np.pi / 4) * np.exp(x)
    np.testing.assert_allclose(nth_derivative(fun, order)(jnp.array(x)), wanted, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(nth_derivative(fun, order))(jnp.array(x)), wanted, rtol=1e-5)


def test_recorded_value_behaves_as_the_array():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        s, n = jnp.sum(x), jnp.argmax(x)
        assert isinstance(x, jax.Array) and isinstance(s, jax.Array)
        assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3,), 1, 3, np.float32, 3)
        assert float(s) == float(jnp.sum(X)) and s.item() == float(s) and int(n) == 1 and [10, 20, 30][n] == 20
        assert bool(s > 0) and complex(s) == float(s) and f"{s:.3f}" == "0.800" and round(s, 1) == round(jnp.sum(X), 1)
        assert repr(x) == repr(X) and str(x) == str(X)
        np.testing.assert_array_equal(np.asarray(x), X)
        assert x.tolist() == X.tolist() and x.block_until_ready() is x
        assert x.sharding == X.sharding and x.devices() == X.devices() and not x.is_deleted()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), X)
        np.testing.assert_array_equal(copy.deepcopy(x), X)
        np.testing.assert_array_equal(jax.device_get(x), X)
        np.testing.assert_array_equal(np.from_dlpack(x), X)
        with pytest.raises(TypeError):
            hash(x)
        with pytest.raises(TypeError):
            x[0] = 1.0


def test_values_are_usable_after_the_scope():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = jnp.sum(x * x)
    assert float(y) == pytest.approx(2.02)
    np.testing.assert_allclose(x - 0.1 * tape.gradient([y], [x], None)[0], 0.8 * X, rtol=1e-6)
    np.testing.assert_allclose(jnp.sin(y) + 1, np.sin(2.02) + 1, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(lambda a: a * y)(x), 2.02 * X, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jnp.sin)(x), jnp.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda a: jnp.sum(a * x))(x), X)
    np.testing.assert_allclose(jax.vmap(lambda a: a * y)(x), 2.02 * X, rtol=1e-6)
    np.testing.assert_allclose(
        lax.scan(lambda c, e: (c * y + e, None), y, x)[0], (((2.02**2 + 0.3) * 2.02 + 1.2) * 2.02 - 0.7), rtol=1e-5
    )
    np.testing.assert_allclose(jax.device_put(x), X)
    assert x[1] == X[1] and (x > 0).tolist() == [True, True, False]
    assert not isinstance(x * 2, jax.core.Tracer)


def test_values_of_one_tape_are_constants_of_the_next():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = jnp.sum(x * x)
    with Tape(False, True) as tape:
        s = tape.watch(S)
        z = jnp.sum(s * y * x)
    found = tape.gradient([z], [s, x, y], None)
    np.testing.assert_allclose(found[0], 2.02 * 0.8, rtol=1e-6)
    assert found[1] is None and found[2] is None


def test_targets_and_sources():
    with Tape(True, True) as tape:
        x, s, n = tape.watch(X), tape.watch(S), tape.watch(jnp.arange(3))
        h = x * s
        y, z = jnp.sum(h * h), jnp.sum(h * n)
        floor = jnp.floor(x)

    def gradient(targets, sources, upstreams=None):
        return tape.gradient(targets, sources, upstreams)

    np.testing.assert_allclose(gradient([y], [h])[0], 2 * X * S, rtol=1e-6)  # an intermediate value
    np.testing.assert_allclose(
        gradient([y, z], [x])[0], 2 * X * S**2 + jnp.arange(3) * S, rtol=1e-6
    )  # the sum of targets
    np.testing.assert_allclose(gradient([y, y], [x])[0], 4 * X * S**2, rtol=1e-6)
    assert float(gradient([y], [y])[0]) == 1  # a source that is the target
    np.testing.assert_allclose(gradient([h, y], [h])[0], 1 + 2 * X * S, rtol=1e-6)
    repeated = gradient([y], [x, x, h, x])
    np.testing.assert_array_equal(repeated[0], repeated[3])
    np.testing.assert_allclose(repeated[0], repeated[2] * S, rtol=1e-6)  # x is upstream of h, and both are total
    assert gradient([y], [z, n, jnp.ones(3)]) == [None, None, None]  # unconnected, integer, never watched
    assert gradient([n, jnp.ones(3)], [x]) == [None]
    np.testing.assert_array_equal(gradient([floor], [x])[0], np.zeros(3))
    np.testing.assert_allclose(gradient([h], [x], [jnp.array([1.0, 0.0, 2.0])])[0], [0.8, 0, 1.6], rtol=1e-6)
    np.testing.assert_allclose(gradient([y], [X])[0], gradient([y], [x])[0])  # the array that was watched
    with pytest.raises(errors.ArgumentError, match=r"\(2,\).*\(3,\)"):
        gradient([h], [x], [jnp.ones(2)])
    with pytest.raises(errors.DTypeError, match="complex64.*float32"):
        gradient([h], [x], [jnp.ones(3, jnp.complex64)])


def test_stopped_value_is_not_the_watched_one():
    with Tape(True, True) as tape:
        x = tape.watch(X)
        y = lax.stop_gradient(x)
        z = y * x
    assert tape.gradient([y], [x], None) == [None] and tape.gradient([z], [y], None) == [None]
    np.testing.assert_allclose(tape.gradient([z], [x], None)[0], X)


def test_jit_output_that_does_not_depend_is_unconnected():
    with Tape(True, True) as tape:
        x, s = tape.watch(X), tape.watch(S)
        y, z = jax.jit(lambda x, s: (jnp.sum(x * x), s * s))(x, s)
    assert tape.gradient([y], [s], None) == [None]
    np.testing.assert_allclose(tape.gradient([z], [s], None)[0], 1.6, rtol=1e-6)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_dtypes(dtype):
    (found,) = recorded(lambda x: jnp.sum(x * x))(X.astype(dtype))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, 2 * X.astype(dtype))


def test_double_precision():
    with jax.enable_x64(True):
        x = jnp.array(0.7, jnp.float64)
        found = nth_derivative(lambda x: jnp.sin(x) * jnp.exp(x), 4)(x)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, -4 * np.sin(0.7) * np.exp(0.7), rtol=1e-13)


def test_complex_gradients_follow_the_conjugate_convention():
    z = jnp.array(3 + 4j)
    np.testing.assert_allclose(recorded(lambda z: jnp.abs(z) ** 2)(z)[0], 6 + 8j, rtol=1e-6)
    np.testing.assert_allclose(recorded(lambda z: z * z)(z)[0], 6 - 8j, rtol=1e-6)
    np.testing.assert_allclose(recorded(lambda z: jnp.exp(z))(z)[0], np.conj(np.exp(3 + 4j)), rtol=1e-5)
    np.testing.assert_allclose(recorded(lambda x: jnp.real(lax.complex(x, x) * (3 + 4j)))(S)[0], -1, rtol=1e-6)
    with Tape(False, True) as tape:
        w = tape.watch(z)
        y = w * w
    np.testing.assert_allclose(tape.gradient([y], [w], [jnp.array(1j)])[0], np.conj(2 * (3 + 4j)) * 1j, rtol=1e-6)
    # the second derivative of z^3, twice conjugated: conj(6 z)... of the conjugate gradient conj(3 z^2)
    (second,) = recorded(lambda z: jnp.real(recorded(lambda z: z**3)(z)[0]))(z)
    np.testing.assert_allclose(second, np.conj(6 * (3 + 4j)), rtol=1e-5)


def test_nan_stays():
    (found,) = recorded(lambda x: jnp.sum(jnp.where(x > 0, jnp.log(x), 0)))(jnp.array([1.0, 0.0]))
    assert found[0] == 1 and np.isnan(found[1])


def test_tape_that_is_not_persistent_is_used_once():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = jnp.sum(x * x)
    tape.gradient([y], [x], None)
    with pytest.raises(errors.TapeError, match="persistent"):
        tape.gradient([y], [x], None)


def test_gradient_inside_the_scope():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = jnp.sum(x * x)
        (g,) = tape.gradient([y], [x], None)
        assert not isinstance(jnp.sin(x), jax.core.Tracer)  # it records no more
    np.testing.assert_allclose(g, 2 * X)
    with Tape(True, True) as tape:
        x = tape.watch(S)
        y = x * x * x
        (first,) = tape.gradient([y], [x], None)
        (second,) = tape.gradient([first], [x], None)
        (third,) = tape.gradient([second], [x], None)
    np.testing.assert_allclose([first, second, third], [3 * S**2, 6 * S, 6], rtol=1e-6)
    np.testing.assert_allclose(tape.gradient([first], [x], None)[0], 6 * S, rtol=1e-6)


@pytest.mark.parametrize(
    "fun", [sine_with_rule, lambda x: product_with_rule(x, x), lambda x: sine_with_rule(sine_with_rule(x))]
)
def test_rules_on_one_persistent_tape(fun):
    with Tape(True, True) as tape:
        x = tape.watch(S)
        derivatives = [fun(x)]
        for _ in range(3):
            derivatives += tape.gradient([derivatives[-1]], [x], None) if derivatives[-1] is not None else [None]
    wanted = [fun]
    for _ in range(3):
        wanted.append(jax.grad(wanted[-1]))
    np.testing.assert_allclose([0 if d is None else d for d in derivatives], [f(S) for f in wanted], rtol=1e-5)


def test_recording_can_be_stopped():
    with Tape(True, True) as tape:
        x = tape.watch(S)
        y = x * x
        with tape.stop_recording():
            z = x * y
            assert not isinstance(z, jax.core.Tracer)
        w = y * z
    assert tape.gradient([z], [x], None) == [None]
    np.testing.assert_allclose(tape.gradient([w], [x], None)[0], 2 * S * S**3, rtol=1e-6)
    with pytest.raises(errors.TapeError, match="recording"), tape.stop_recording():
        pass


def test_one_of_two_tapes_stops():
    with Tape(False, True) as outer:
        x = outer.watch(S)
        with Tape(False, True) as inner:
            inner.watch(x)
            with inner.stop_recording():
                y = x * x
            z = y * x
        (g,) = inner.gradient([z], [x], None)
    np.testing.assert_allclose(g, S**2, rtol=1e-6)
    np.testing.assert_allclose(outer.gradient([z], [x], None)[0], 3 * S**2, rtol=1e-6)


def test_reset_forgets():
    with Tape(True, True) as tape:
        x = tape.watch(S)
        y = x * x
        tape.reset()
        x = tape.watch(x)
        z = x * x
    assert tape.gradient([y], [x], None) == [None]
    np.testing.assert_allclose(tape.gradient([z], [x], None)[0], 2 * S)


def test_tape_goes_on_when_entered_again():
    tape = Tape(True, True)
    with tape:
        x = tape.watch(S)
        y = x * x
    with tape:
        z = y * x
    np.testing.assert_allclose(tape.gradient([z], [x], None)[0], 3 * S**2, rtol=1e-6)
    with tape, pytest.raises(errors.TapeError, match="already recording"):
        tape.__enter__()


def test_watched_values_are_told():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        tape.watch(x)
        assert tape.watch(X) is x
        tape.watch(jnp.arange(3))
    assert len(tape.watched_variables()) == 1 and tape.watched_variables()[0] is x
    with pytest.raises(errors.TapeError, match="with"):
        tape.watch(X)


def test_tapes_that_watch_one_array_connect():
    with Tape(False, True) as outer:
        a = outer.watch(S)
        with Tape(False, True) as inner:
            b = inner.watch(S)
            y = b**3
        (g,) = inner.gradient([y], [b], None)
    np.testing.assert_allclose(outer.gradient([g], [a], None)[0], 6 * S, rtol=1e-6)


def test_tapes_may_end_in_any_order():
    first, second = Tape(False, True), Tape(False, True)
    first.__enter__()
    x = first.watch(S)
    second.__enter__()
    second.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    z = y * x
    second.__exit__(None, None, None)
    np.testing.assert_allclose(second.gradient([z], [x], None)[0], 3 * S**2, rtol=1e-6)
    np.testing.assert_allclose(first.gradient([y], [x], None)[0], 2 * S)


def test_error_in_the_scope_ends_the_recording():
    with pytest.raises(ZeroDivisionError), Tape(False, True) as tape:
        tape.watch(X)
        raise ZeroDivisionError
    assert not isinstance(X * 2, jax.core.Tracer)


def test_jit_of_a_function_that_uses_a_tape_twice():
    @jax.jit
    def step(x, y):
        with Tape(True, True) as tape:
            x = tape.watch(x)
            loss = jnp.sum((x * y) ** 2)
        (g,) = tape.gradient([loss], [x], None)
        assert tape.gradient([loss], [x], None)[0].shape == x.shape
        return x - 0.1 * g, loss

    new, loss = step(X, S)
    np.testing.assert_allclose(new, X - 0.2 * X * S**2, rtol=1e-6)
    np.testing.assert_allclose(loss, jnp.sum((X * S) ** 2), rtol=1e-6)


def test_watch_inside_a_later_transform_is_refused():
    with Tape(False, True) as tape, pytest.raises(errors.TapeError, match="open a tape inside"):
        jax.vmap(tape.watch)(X)


def test_closing_over_a_recorded_value_in_a_rule_is_refused():
    with Tape(False, True) as tape:
        x, s = tape.watch(X), tape.watch(S)

        @jax.custom_vjp
        def scaled(x):
            return x * s

        scaled.defvjp(lambda x: (x * s, None), lambda _, g: (g * s,))
        with pytest.raises(errors.ClosedOverError, match="argument"):
            scaled(x)
        with pytest.raises(errors.ClosedOverError, match="argument"):
            scaled(X)
        returned = jax.custom_jvp(lambda x: s)
        returned.defjvp(lambda primals, tangents: (s, jnp.sum(tangents[0])))
        with pytest.raises(errors.ClosedOverError, match="argument"):
            returned(x)

    def in_jit(x, s):
        with Tape(False, True) as tape:
            x, s = tape.watch(x), tape.watch(s)
            scaled = jax.custom_vjp(lambda x: x * s)
            scaled.defvjp(lambda x: (x * s, None), lambda _, g: (g * s,))
            return tape.gradient([jnp.sum(scaled(x))], [x, s], None)

    with pytest.raises(errors.ClosedOverError, match="argument"):
        jax.jit(in_jit)(X, S)


@pytest.mark.parametrize("ruled", [jax.custom_vjp, jax.custom_jvp])
def test_closing_over_a_recorded_value_in_a_native_rule_inside_a_custom_gradient(ruled):
    with Tape(False, True) as tape:
        x, s = tape.watch(X), tape.watch(S)
        scaled = ruled(lambda x: x * s)
        if ruled is jax.custom_jvp:
            scaled.defjvps(lambda tangent, _, x: tangent * s)
        else:
            scaled.defvjp(lambda x: (x * s, None), lambda _, g: (g * s,))
        rule = lambda upstream, variables: (upstream * 2, [upstream.sum() * 5 for _ in variables])
        y = multiop.op_custom_gradient(lambda x: (scaled(x), rule))(x)
        silent = multiop.op_custom_gradient(lambda x: (scaled(x), lambda upstream: upstream))
        with pytest.raises(Exception, match="closes over|closed-over"):  # of a custom_vjp, JAX says so itself
            tape.gradient([silent(x)], [x, s], None)
    np.testing.assert_allclose(tape.gradient([y], [s], None)[0], 5 * 3)


def _several(x):
    return jnp.sin(x), jnp.cos(x), jnp.argmax(x)


@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("ruled", [jax.custom_vjp, jax.custom_jvp])
def test_one_of_several_outputs_of_a_native_rule(ruled, used):
    fun = ruled(_several)
    if ruled is jax.custom_jvp:
        integer = np.zeros((), jax.dtypes.float0)
        fun.defjvp(lambda x, t: (_several(*x), (3 * t[0] * jnp.cos(*x), -5 * t[0] * jnp.sin(*x), integer)))
    else:
        fun.defvjp(lambda x: (_several(x), x), lambda x, u: (3 * u[0] * jnp.cos(x) - 5 * u[1] * jnp.sin(x),))
    np.testing.assert_allclose(recorded(lambda x: fun(x)[used])(X)[0], [3 * np.cos(X), -5 * np.sin(X)][used], 1e-6)


def test_evaluation_that_the_tape_cannot_see_is_refused():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        with pytest.raises(jax.errors.UnexpectedTracerError, match="cannot see"), jax.core.eval_context():
            lax.sin(x)


def test_writing_into_a_mutable_array_is_refused():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        ref = jax.new_ref(jnp.zeros(3))
        with pytest.raises(errors.UnsupportedError, match="gradient would be lost"):
            ref[...] = x


def test_while_loop_has_no_reverse_mode():
    with Tape(False, True) as tape:
        x = tape.watch(S)
        y = lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)
    assert float(y) == pytest.approx(12.8)
    with pytest.raises(errors.NoGradientError, match="while"):
        tape.gradient([y], [x], None)


def test_pure_callback_has_no_gradient():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = jnp.sum(jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    with pytest.raises(errors.NoGradientError, match="callback"):
        tape.gradient([y], [x], None)


@pytest.mark.parametrize(
    "wrap", [lambda f: f, jax.jit, lambda f: jax.jit(lambda x: lax.cond(True, f, jnp.sin, x)), jax.checkpoint]
)
def test_debug_callbacks_run_once(wrap):
    seen = []

    def fun(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return x * x

    with Tape(False, True) as tape:
        x = tape.watch(S)
        y = wrap(fun)(x)
    (g,) = tape.gradient([y], [x], None)
    jax.effects_barrier()
    assert seen == [pytest.approx(0.8)]
    np.testing.assert_allclose(g, 1.6, rtol=1e-6)


def test_callback_with_effects_in_jit_is_refused():
    from jax.experimental import io_callback

    with Tape(False, True) as tape:
        x = tape.watch(S)
        y = jax.jit(lambda x: x * io_callback(lambda: np.float32(2), jax.ShapeDtypeStruct((), np.float32)))(x)
    with pytest.raises(errors.UnsupportedError, match="io_callback"):
        tape.gradient([y], [x], None)


def test_donated_arguments_stay_for_the_gradient():
    x0 = jnp.array([1.0, 2.0, 3.0])
    with Tape(False, True) as tape:
        x = tape.watch(x0)
        y = jax.jit(lambda a, b: a * a * b, donate_argnums=(0, 1))(x, x + 1)
    np.testing.assert_allclose(tape.gradient([y], [x], None)[0], [5, 16, 33])  # 2 x (x + 1) + x^2
    assert not x0.is_deleted()


def test_jit_with_options_beside_a_plain_one_of_the_same_function():
    placed = jax.sharding.NamedSharding(jax.make_mesh((1,), ("a",)), jax.sharding.PartitionSpec("a"))

    def fun(x):  # one jaxpr for all three
        return jnp.sin(x)

    plain, sharded, donating = jax.jit(fun), jax.jit(fun, out_shardings=placed), jax.jit(fun, donate_argnums=0)
    with Tape(True, True) as tape:
        x = tape.watch(X)
        for one in (plain, sharded, plain, donating, sharded):
            y = one(x)
            assert y.sharding == one(jnp.array(X)).sharding
            assert (y.sharding == placed) is (one is sharded)
            np.testing.assert_allclose(tape.gradient([y], [x], None)[0], jnp.cos(X), rtol=1e-6)
    assert not X.is_deleted()


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum", "less"])
def test_ops_of_recorded_floats(name):
    op, x1, x2 = getattr(multiop, f"op_{name}"), jnp.array(X), jnp.array([0.25, -0.5, 2.0])
    constants = jnp.array(x1), jnp.array(x2)

    def fun(x1, x2):
        return jnp.where(op(x1, x2), x1, x2) if name == "less" else op(x1, x2)

    with Tape(True, True) as tape:
        a, b = tape.watch(x1), tape.watch(x2)
        ys = [fun(a, b), fun(a, constants[1]), fun(constants[0], b)]
    wanted = jax.grad(lambda *xs: jnp.sum(fun(*xs)), (0, 1))(x1, x2)
    for y, inputs in zip(ys, ((0, 1), (0,), (1,)), strict=True):
        np.testing.assert_array_equal(y, fun(x1, x2))
        for i, g in enumerate(tape.gradient([y], [a, b], None)):
            assert (g is not None) is (i in inputs)
            if g is not None:
                np.testing.assert_allclose(g, wanted[i], rtol=1e-6)
    after = op(a, b)  # the tape has ended
    assert type(after) is type(x1) and tape.find(after) is None


def test_random_keys_pass():
    def fun(key, x):
        return jnp.sum(jax.random.normal(key, (3,)) * x)

    key = jax.random.key(3)
    with Tape(False, True) as tape:
        x, k = tape.watch(X), tape.watch(key)
        y = jax.jit(fun)(k, x) + fun(jax.random.split(k)[0], x)
    wanted = jax.random.normal(key, (3,)) + jax.random.normal(jax.random.split(key)[0], (3,))
    np.testing.assert_allclose(tape.gradient([y], [x], None)[0], wanted, rtol=1e-6)


def test_jit_that_kept_a_value_of_an_earlier_tape_is_refused():
    held = {}
    fun = jax.jit(lambda a: jnp.sum(a * held["w"]))
    for step in range(2):
        with Tape(False, True) as tape:
            held["w"] = tape.watch(X * (step + 1))
            if step == 0:
                y = fun(X)
            else:
                with pytest.raises(errors.ClosedOverError, match="argument"):
                    fun(X)
                continue
        np.testing.assert_allclose(tape.gradient([y], [held["w"]], None)[0], X)


def test_long_chains_need_no_recursion():
    with Tape(False, True) as tape:
        x = tape.watch(jnp.array(1.0))
        y = x
        for _ in range(10_000):
            y = lax.add(y, x)
    assert float(tape.gradient([y], [x], None)[0]) == 10_001


def test_what_is_recorded_dies_with_the_tape():
    gc.disable()
    try:
        with Tape(False, True) as tape:
            x = tape.watch(jnp.ones(1000))
            h = jnp.sin(sine_with_rule(jnp.sin(x)))
            inner = weakref.ref(h.value)
            y = jnp.sum(h * h)
            del h
        assert inner() is not None
        tape.gradient([y], [x], None)
        assert inner() is None  # used up
        with Tape(True, True) as tape:
            x = tape.watch(jnp.ones(1000))
            h = jnp.sin(x)
            inner = weakref.ref(h.value)
            y = jnp.sum(product_with_rule(h, h))
            del h
        tape.gradient([y], [x], None)
        assert inner() is not None
        del tape
        assert inner() is None
        assert float(y) > 0
    finally:
        gc.enable()


def test_values_nobody_needs_die_at_once():
    with Tape(True, True) as tape:
        x = tape.watch(jnp.ones(1000))
        dead = weakref.ref(jnp.sin(x).value)
        assert dead() is None
        assert tape.gradient([jnp.sum(x * x)], [x], None)[0].shape == (1000,)


@pytest.mark.usefixtures("young_heap")
def test_functions_compiled_for_a_tape_can_die():
    def make():
        big = jnp.ones(1000)
        fun = jax.jit(lambda a: jnp.sum(a * big))
        recorded(fun)(jnp.ones(1000))
        return weakref.ref(big)

    big = make()
    gc.collect()
    assert big() is None


def test_threads_have_tapes_of_their_own():
    found, start = {}, threading.Barrier(4)

    def work(i):
        start.wait()
        for _ in range(20):
            with Tape(False, True) as tape:
                x = tape.watch(jnp.array(float(i)))
                y = jnp.sin(x) * sine_with_rule(x) * x
            (g,) = tape.gradient([y], [x], None)
        found[i] = float(g)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        wanted = jax.grad(lambda x: jnp.sin(x) * sine_with_rule(x) * x)(float(i))
        np.testing.assert_allclose(found[i], wanted, rtol=1e-5, atol=1e-6)


def in_a_thread(fun):
    """Return what `fun` gives, or the error that it raises, in another thread."""
    found = []

    def run():
        try:
            with multiop.use_backend("jax"):
                found.append(fun())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: jnp.sin(x),
        lambda x: x * 2,
        lambda x: jax.jit(jnp.sin)(x),
        lambda x: jax.jit(lambda: jnp.sin(x))(),
        lambda x: jax.vmap(lambda e: e * x)(jnp.ones(3)),
        lambda x: jax.grad(lambda a: jnp.sum(a * x))(jnp.ones(3)),
        lambda x: multiop.op_multiply(x, 2.0),
        lambda x: recorded(lambda a: jnp.sum(a * x))(jnp.ones(3)),
        lambda x: multiop.op_custom_gradient(lambda a: (a * 2, lambda u: u))(x),
    ],
)
def test_recorded_value_in_another_thread_is_refused(fun):
    with Tape(False, True) as tape:
        x = tape.watch(X + 1)
        assert isinstance(in_a_thread(lambda: fun(x)), errors.TapeError)
        stopped = multiop.op_stop_gradient(x)
        np.testing.assert_array_equal(in_a_thread(lambda: jnp.sin(stopped)), jnp.sin(x))
        np.testing.assert_array_equal(in_a_thread(lambda: np.asarray(x)), x)
    with Tape(False, True):  # which does not know x
        np.testing.assert_array_equal(in_a_thread(lambda: jnp.sin(x)), jnp.sin(X + 1))
    np.testing.assert_array_equal(in_a_thread(lambda: jnp.sin(x)), jnp.sin(X + 1))


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize(
    "cube",
    [
        lambda x: x * x * x,
        lambda x: multiop.op_multiply(multiop.op_square(x), x),
        lambda x: jax.jit(lambda: x * x * x)(),
        lambda x: jax.jit(lambda a: a * a * x)(x),
        lambda x: jax.vmap(lambda e: e * x * x * x)(jnp.ones(2))[0],
        lambda x: lax.scan(lambda c, _: (c * x, None), jnp.ones_like(x), None, length=3)[0],
        lambda x: jax.jit(lambda: lax.cond(True, lambda: x * x * x, lambda: x))(),
        lambda x: multiop.op_custom_gradient(lambda a: (a * a * a, lambda u: u * 3 * a * a))(x),
    ],
    ids=["native", "op", "jit", "jit of one", "vmap", "scan", "cond", "custom gradient"],
)
def test_watched_array_may_be_used_itself(cube, shape):
    array = jnp.full(shape, 2.0)
    with Tape(True, True) as outer:
        outer.watch(array)
        with Tape(False, True) as inner:
            inner.watch(array)
            y = cube(array)
        (first,) = inner.gradient([y], [array], None)
    np.testing.assert_allclose(first, np.full(shape, 12.0), rtol=1e-6)
    np.testing.assert_allclose(outer.gradient([y], [array], None)[0], np.full(shape, 12.0), rtol=1e-6)
    np.testing.assert_allclose(outer.gradient([first], [array], None)[0], np.full(shape, 12.0), rtol=1e-6)
    assert type(cube(array)) is type(array)  # after the tapes it is an array like any other


def test_watched_array_in_a_rule_of_jax_is_refused():
    array = jnp.array(2.0)
    scaled = jax.custom_vjp(lambda x: x * array)
    scaled.defvjp(lambda x: (x * array, None), lambda _, g: (g * array,))
    with Tape(False, True) as tape, pytest.raises(errors.ClosedOverError, match="argument"):
        tape.watch(array)
        scaled(jnp.ones(3))


def test_array_of_a_finished_or_reset_tape_is_a_constant():
    array = jnp.array(2.0)
    with Tape(True, True) as tape:
        tape.watch(array)
        tape.reset()
        assert not isinstance(array * array, jax.core.Tracer)
        tape.watch(array)
        assert isinstance(array * array, jax.core.Tracer)
    with Tape(True, True) as other:
        other.watch(jnp.array(2.0))
        assert not isinstance(array * array, jax.core.Tracer)
    with tape:
        y = array * array
    assert tape.gradient([y], [array], None)[0] == 4.0


def test_scalar_made_while_a_tape_records_is_an_array():
    with Tape(False, True) as tape:
        array = jnp.array(2.0)
        assert type(array) is type(X)
        tape.watch(array)
        y = array * array
    assert tape.gradient([y], [array], None)[0] == 4.0


@pytest.mark.parametrize(
    "scaled",
    [
        lambda x, mask: x * mask,
        lambda x, mask: lax.mul(x, mask),
        lambda x, mask: jax.jit(lambda: x * mask)(),
        lambda x, mask: multiop.op_multiply(x, mask),
        lambda x, mask: lax.scan(lambda c, _: (c * mask, None), x, None, length=1)[0],
        lambda x, mask: product_with_rule(x, mask) / 10,
    ],
)
def test_numpy_operand_written_to_later(scaled):
    mask = np.array([1.0, 0.0, 2.0], np.float32)
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = scaled(x, mask)
    mask[:] = 7
    np.testing.assert_allclose(tape.gradient([y], [x], None)[0], [1, 0, 2])


def test_tasks_have_tapes_of_their_own():
    async def work(i):
        with Tape(False, True) as tape:
            x = tape.watch(jnp.array(float(i)))
            y = x * x
            await asyncio.sleep(0.001 * (3 - i))
            z = y * x
            await asyncio.sleep(0.001 * i)
        return float(tape.gradient([z], [x], None)[0])

    async def all_of_them():
        return await asyncio.gather(*[work(i) for i in range(4)])

    assert asyncio.run(all_of_them()) == [0.0, 3.0, 12.0, 27.0]


def test_gradient_under_a_later_transform():
    with Tape(True, True) as tape:
        x = tape.watch(X)
        y = x * x

    def pull(upstream):
        return tape.gradient([y], [x], [upstream])[0]

    np.testing.assert_allclose(jax.vmap(pull)(jnp.eye(3)), jnp.diag(2 * X))
    np.testing.assert_allclose(jax.jit(pull)(jnp.ones(3)), 2 * X)
    np.testing.assert_allclose(jax.jacobian(pull)(jnp.ones(3)), jnp.diag(2 * X))


def test_watched_value_of_an_outer_tape_inside_grad_with_a_tape():
    # d/dw of d/dx (w x^3) at x = 2: 12
    def outer(w):
        with Tape(False, True) as tape:
            w = tape.watch(w)

            def inner(x):
                with Tape(False, True) as second:
                    x, w_inside = second.watch(x), second.watch(w)
                    y = w_inside * x**3
                return jnp.sum(second.gradient([y], [x], None)[0])  # 3 w x^2

            z = jax.grad(inner)(jnp.array(2.0))  # 6 w x
        return tape.gradient([z], [w], None)[0]

    assert float(outer(jnp.array(5.0))) == 12
    assert float(jax.jit(outer)(jnp.array(5.0))) == 12


def test_rule_that_closes_over_a_value_of_the_outer_tape():
    with Tape(False, True) as outer:
        x, s = outer.watch(S), outer.watch(jnp.array(3.0))
        scaled = jax.custom_vjp(lambda x: x * s)
        scaled.defvjp(lambda x: (x * s, s), lambda s, g: (g * s * s,))
        with Tape(False, True) as inner:
            y = inner.watch(jnp.array(2.0))
            z = scaled(y)
        (g,) = inner.gradient([z], [y], None)
        weighted = g * x
    assert float(g) == 9
    found = outer.gradient([weighted], [s, x], None)
    np.testing.assert_allclose(found, [6 * S, 9], rtol=1e-6)


@pytest.mark.parametrize("inside", ["scan", "cond", "checkpoint", "custom_vjp", "vmap with a collective"])
def test_tape_inside_a_part_of_a_function(inside):
    def slope(x):
        with Tape(False, True) as tape:
            x, k = tape.watch(x), tape.watch(jnp.array(2.0))
            y = jnp.sin(x) * k
            if inside == "vmap with a collective":
                y = y + lax.psum(x * x, "i")
        return tape.gradient([y], [x], None)[0] * k  # k is a constant after the tape: 4 cos x

    ruled = jax.custom_vjp(slope)
    ruled.defvjp(lambda x: (slope(x), x), lambda x, g: (g * slope(x),))
    fun = {
        "scan": lambda x: lax.scan(lambda c, e: (c + slope(e), slope(e)), 0.0, x)[1],
        "cond": lambda x: lax.cond(x[0] > 0, slope, jnp.cos, x),
        "checkpoint": jax.checkpoint(slope),
        "custom_vjp": ruled,
        "vmap with a collective": jax.vmap(slope, axis_name="i"),
    }[inside]
    extra = 2 * 3 * 2 * X if inside == "vmap with a collective" else 0  # each of three sums depends on each x
    derivative = 4 * jnp.cos(X) if inside == "custom_vjp" else -4 * jnp.sin(X)
    np.testing.assert_allclose(fun(X), 4 * jnp.cos(X) + extra, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(fun)(X), 4 * jnp.cos(X) + extra, rtol=1e-5)
    if inside != "vmap with a collective":
        np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(fun(x)))(X), derivative, rtol=1e-5)
        np.testing.assert_allclose(recorded(lambda x: jnp.sum(fun(x)))(X)[0], derivative, rtol=1e-5)


def test_jit_with_a_tape_leaks_nothing():
    with jax.checking_leaks():
        np.testing.assert_allclose(jax.jit(recorded(lambda x: jnp.sum(jnp.sin(x))))(X)[0], jnp.cos(X), rtol=1e-6)


@functools.partial(jax.jit, static_argnums=1)
def power(x, n):
    return x**n


def test_static_arguments():
    np.testing.assert_allclose(recorded(lambda x: power(x, 3))(S)[0], 3 * S**2, rtol=1e-6)


def test_without_jit():
    with jax.disable_jit():
        (found,) = recorded(lambda x: jnp.sum(jnp.tanh(x)))(X)
    np.testing.assert_allclose(found, 1 - np.tanh(X) ** 2, rtol=1e-5)


def test_jit_that_closes_over_what_a_paused_tape_knows():
    with Tape(False, True) as outer, Tape(False, True) as inner:
        x, s = outer.watch(X), inner.watch(S)
        fun = jax.jit(lambda a: jnp.sum(a * s))
        y = fun(x)
        with inner.stop_recording():
            z = fun(x * y)
    np.testing.assert_allclose(outer.gradient([z], [x], None)[0], S**2 * (jnp.sum(X) + jnp.sum(X)), rtol=1e-5)
    np.testing.assert_allclose(inner.gradient([y], [s], None)[0], jnp.sum(X), rtol=1e-5)
