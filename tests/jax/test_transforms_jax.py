"""The flat transforms on JAX: conventions, dtypes, integers, and nesting with JAX's own."""

from __future__ import annotations

import collections
import inspect

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp

import multiop
from multiop.backends.jax.autodiff import transforms

X = jnp.array([0.3, -0.7, 1.1])
N = jnp.array([1, 2, 3])
Z = jnp.array([1.0 + 2j, 0.5 - 1j])


def with_integers(x, n):
    return [jnp.sin(x) * n, n + 1], [x * 2]


def test_vjp():
    outputs, pullback, aux = transforms.vjp(lambda x: with_integers(x, N), [X])
    np.testing.assert_allclose(outputs[0], np.sin(X) * N, rtol=1e-6)
    np.testing.assert_array_equal(outputs[1], N + 1)
    np.testing.assert_allclose(aux[0], 2 * X)
    np.testing.assert_allclose(pullback([X, None])[0], X * np.cos(X) * N, rtol=1e-6)
    np.testing.assert_array_equal(pullback([None, None])[0], np.zeros(3))


def test_vjp_of_the_unconnected():
    _, pullback, _ = transforms.vjp(lambda x, y: ([x * 2], []), [X, X[:2]])
    np.testing.assert_array_equal(pullback([X])[1], np.zeros(2))


def test_vjp_has_the_conjugate_convention():
    _, pullback, _ = transforms.vjp(lambda z: ([z**2], []), [Z])
    np.testing.assert_allclose(pullback([Z])[0], Z * np.conj(2 * Z), rtol=1e-6)
    _, pullback, _ = transforms.vjp(lambda z: ([jnp.abs(z) ** 2], []), [Z])
    np.testing.assert_allclose(pullback([jnp.ones(2)])[0], 2 * Z, rtol=1e-6)


def test_pullback_is_differentiable():
    def squared_gradient(x, u):
        return (transforms.vjp(lambda x: ([jnp.sin(x)], []), [x])[1]([u])[0] ** 2).sum()

    np.testing.assert_allclose(jax.grad(squared_gradient)(X, X), -(X**2) * np.sin(2 * X), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(squared_gradient, 1))(X, X), 2 * X * np.cos(X) ** 2, rtol=1e-5)


def test_jvp():
    outputs, tangents, aux = transforms.jvp(lambda x: with_integers(x, N), [X], [X])
    np.testing.assert_allclose(outputs[0], np.sin(X) * N, rtol=1e-6)
    np.testing.assert_allclose(tangents[0], X * np.cos(X) * N, rtol=1e-6)
    assert tangents[1].dtype == N.dtype and not tangents[1].any()
    np.testing.assert_allclose(aux[0], 2 * X)


def test_jvp_of_complex():
    _, tangents, _ = transforms.jvp(lambda z: ([z**2], []), [Z], [1j * Z])
    np.testing.assert_allclose(tangents[0], 2j * Z**2, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_of_weakly_typed_primals(dtype):
    weak = jnp.asarray(2.0)
    half = jnp.ones((), dtype)
    outputs, pullback, _ = transforms.vjp(lambda x: ([x * half], []), [weak])
    assert outputs[0].dtype == weak.dtype and pullback([jnp.ones_like(outputs[0])])[0].dtype == weak.dtype
    outputs, tangents, _ = transforms.jvp(lambda x: ([x * half], []), [weak], [jnp.ones(())])
    assert outputs[0].dtype == tangents[0].dtype == weak.dtype


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (1, 0), (None, None)])
def test_vmap(in_axes):
    a, b = jnp.arange(9.0).reshape(3, 3), jnp.array([1.0, 2.0, 3.0])
    found = transforms.vmap(lambda x, y: [x + y, y * 2], in_axes, 3)(a, b)
    pick = [(lambda x, i, axis=axis: x if axis is None else jnp.take(x, i, axis)) for axis in in_axes]
    each = [(pick[0](a, i), pick[1](b, i)) for i in range(3)]
    np.testing.assert_allclose(found[0], np.stack([x + y for x, y in each]))
    np.testing.assert_allclose(found[1], np.stack([y * 2 for _, y in each]))


def test_checkpoint_closes_over():
    def loss(w, x):
        return transforms.checkpoint(lambda x: [jnp.sin(x * w)], [x])[0].sum()

    for transform in (lambda f: f, jax.jit):
        np.testing.assert_allclose(transform(jax.grad(loss))(2.0, X), (X * np.cos(2 * X)).sum(), rtol=1e-5)
    np.testing.assert_allclose(jax.hessian(loss)(2.0, X), -(X**2 * np.sin(2 * X)).sum(), rtol=1e-5)


def test_checkpoint_runs_again():
    runs = []

    def function(x):
        jax.debug.callback(lambda: runs.append(1))
        return [jnp.sin(jnp.sin(x))]

    def loss(x):
        return transforms.checkpoint(function, [x])[0].sum()

    jax.grad(loss)(X)
    jax.effects_barrier()
    assert len(runs) == 2


class TestComposite:
    """An op that is made of others is one program when it runs eagerly."""

    IMAGES = np.random.default_rng(0).random((2, 6, 7, 3), np.float32)

    @pytest.fixture(autouse=True)
    def programs(self, monkeypatch):
        monkeypatch.setattr(transforms, "_programs", collections.defaultdict(dict))
        with multiop.use_backend("jax"):
            yield transforms._programs

    @pytest.mark.parametrize(
        "f",
        [
            multiop.op_image_rgb_to_hsv,
            lambda x: multiop.op_image_resize(x, [4, 9], interpolation="bicubic", antialias=True),
            lambda x: multiop.op_image_affine_transform(x, [[1.0, 0.1, 0.5, 0.0, 1.0, 0.0, 0.0, 0.01]] * 2),
        ],
    )
    def test_it_gives_what_its_steps_give(self, f, monkeypatch):
        found, grad = f(jnp.asarray(self.IMAGES)), multiop.grad(lambda x: multiop.op_sum(f(x) ** 2))(self.IMAGES)
        monkeypatch.delattr("multiop.backends.jax.composite")
        np.testing.assert_allclose(found, f(self.IMAGES), rtol=1e-5, atol=1e-6)
        expected = multiop.grad(lambda x: multiop.op_sum(f(x) ** 2))(self.IMAGES)
        np.testing.assert_allclose(grad, expected, rtol=1e-4, atol=1e-5)

    def test_it_is_kept_for_each_set_of_options(self, programs):
        x = jnp.asarray(self.IMAGES)
        for size in ((4, 4), [4, 4], (4, 4), (4, 5)):
            assert multiop.op_image_resize(x, size).shape == (2, *size, 3)
        (kept,) = programs.values()
        assert [program._cache_size() for program in kept.values()] == [1, 1, 1]  # a list is not a tuple

    def test_options_that_are_equal_are_not_alike(self, programs):
        x = jnp.asarray(self.IMAGES)
        assert multiop.op_image_ssim(x, x, 1, 5).dtype == multiop.op_image_ssim(x, x, 1.0, 5).dtype
        assert len(programs[inspect.unwrap(multiop.op_image_ssim)]) == 2

    def test_no_more_are_kept_than_the_limit(self, programs, monkeypatch):
        monkeypatch.setattr(transforms, "_PROGRAMS_EACH", 2)
        x = jnp.asarray(self.IMAGES)
        for n in (3, 4, 5, 6):
            assert multiop.op_image_resize(x, (n, n)).shape == (2, n, n, 3)
        assert sum(map(len, programs.values())) == 2

    def test_what_is_wrong_is_named_with_its_value(self, programs):
        with pytest.raises(
            multiop.errors.ArgumentError, match=r"size must be at least 1, got 0.*\n.*float32\[2, 6, 7, 3\]"
        ):
            multiop.op_image_resize(jnp.asarray(self.IMAGES), (0, 3))
        assert not any(programs.values())

    def test_scalars_of_numpy_are_options(self, programs):
        x = jnp.asarray(self.IMAGES)
        padded = multiop.op_image_map_coordinates(x[..., 0], jnp.full((3, 2), -1.0), 1, "constant", np.float32(2.0))
        assert padded.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("op", "mapped"),
    [
        ("op_max", False),
        ("op_logsumexp", False),
        ("op_segment_max", True),
        ("op_min", True),
        pytest.param("op_max", True, marks=pytest.mark.tier("full")),
        pytest.param("op_min", False, marks=pytest.mark.tier("full")),
        pytest.param("op_logsumexp", True, marks=pytest.mark.tier("full")),
        pytest.param("op_segment_max", False, marks=pytest.mark.tier("full")),
        pytest.param("op_segment_min", True, marks=pytest.mark.tier("full")),
    ],
)
def test_what_xla_computes_twice_keeps_its_gradient(op, mapped):
    """XLA rounds the two otherwise; unoptimized, as in a hasty run, it does so here."""

    def f(x):
        x = 0.7 * (x - jnp.roll(x, 1, -1))
        centered = x - jnp.mean(x, -1, keepdims=True)
        y = centered / jnp.sqrt(jnp.mean(centered**2, -1, keepdims=True) + 1e-5)
        if "segment" not in op:
            return jnp.sum(jnp.sin(getattr(multiop, op)(y, axis=-1)))
        return jnp.sum(jnp.sin(getattr(multiop, op)(jnp.moveaxis(y, -1, 0), [0, 1, 1, 1], 2)))

    for seed in range(1, 4):
        x = jnp.asarray(np.random.default_rng(seed).normal(size=(2, 3, 4)), jnp.float32)
        gradient = jax.jit(jax.vmap(jax.grad(f)) if mapped else jax.grad(f))(x)
        with jax.disable_jit():
            np.testing.assert_allclose(gradient, jax.grad(f)(x), rtol=1e-3, atol=1e-4)


COMPILED = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: COMPILED.append(name) if name == "/jax/core/compile/backend_compile_duration" else None
)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "complex64"])
def test_to_convert_an_array_compiles_nothing(dtype):
    array = np.ones((3, 1, 7, 2), multiop.op_convert_to_numpy(multiop.op_ones((), dtype)).dtype)
    COMPILED.clear()
    assert multiop.op_convert_to_tensor(array).shape == array.shape
    assert COMPILED == []


def in_custom_gradient(body):
    @multiop.op_custom_gradient
    def called(x):
        return multiop.vjp(body, x)

    return called


@pytest.mark.parametrize("wrapped", [lambda body: lambda x: body(x), multiop.checkpoint, in_custom_gradient])
@pytest.mark.parametrize("name", ["dropout", pytest.param("gamma", marks=pytest.mark.tier("full")), "det", "ctc_loss"])
def test_an_eager_loop_compiles_what_holds_loops_once(name, wrapped):
    draws = multiop.random.SeedGenerator(3)
    x = jnp.eye(4) * 3 + jnp.arange(16.0).reshape(4, 4) / 16
    ones = np.array([1, 1])
    bodies = {
        "dropout": lambda x: multiop.random.dropout(x, 0.5, seed=draws),
        "gamma": lambda x: x * multiop.random.gamma((4, 4), 2.0, seed=draws),
        "det": multiop.op_det,
        "ctc_loss": lambda x: multiop.op_ctc_loss([[1], [2]], x.reshape(2, 2, 4), ones, 2 * ones),
    }

    def step():  # whose functions are new at each call
        multiop.grad(lambda x: multiop.op_sum(wrapped(lambda x: bodies[name](x))(x)))(x)

    for _ in range(3):
        step()
    COMPILED.clear()
    step()
    assert not COMPILED
    jax.jit(lambda x: x + 1)(x)
    assert COMPILED  # what is new is seen


def test_control_flow_leaks_no_tracer():
    def outputs(pred, x):
        return [
            multiop.op_cond(pred, lambda: (x * 2, x), lambda: (x, x)),
            multiop.op_switch(pred.astype(int), [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], x),
            multiop.op_scan(lambda carry, x: (carry + x, carry * x), x[0], x),
            multiop.op_fori_loop(0, 3, lambda i, y: y * x, x),
            multiop.op_associative_scan(multiop.op_multiply, x),
            multiop.op_map(lambda x: x * pred, x),
            multiop.op_vectorize(lambda x: x * x)(x),
        ]

    def total(pred, x):
        return sum(jnp.sum(y) for y in jax.tree.leaves(outputs(pred, x)))

    x = jnp.array([1.0, 2.0, 3.0])
    expected = total(jnp.array(True), x), jax.grad(total, 1)(jnp.array(True), x)
    with jax.checking_leaks():
        np.testing.assert_allclose(jax.jit(total)(True, x), expected[0])
        np.testing.assert_allclose(jax.jit(jax.grad(total, 1))(True, x), expected[1])
        np.testing.assert_allclose(multiop.vmap(lambda pred: total(pred, x))(jnp.array([True]))[0], expected[0])
        doubled = jax.jit(lambda x: multiop.op_while_loop(lambda x: multiop.op_all(x < 9), lambda x: 2 * x, x))(x)
        np.testing.assert_allclose(doubled, [4.0, 8.0, 12.0])


CORNERS = np.float32([[0, 0], [2, 0], [0, 3], [2, 3]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: multiop.op_linspace(np.float32([1, 2]), np.float32([3, 7]), 4, dtype="int32", axis=-1),
        lambda: multiop.op_linspace(np.int32([1, 2]), np.int32([3, 7]), 4, retstep=True),
        lambda: multiop.op_tril(np.ones((3, 2), "float32")),
        lambda: multiop.op_geomspace(np.float32([1, 2]), np.float32([3, 7]), 4),
        lambda: multiop.op_image_affine_transform(np.ones((2, 4, 3, 1)), [[1.0, 0, 0.5, 0, 1, 0, 0, 0]] * 2),
        lambda: multiop.op_image_perspective_transform(np.ones((4, 3, 1)), CORNERS, CORNERS[::-1]),
        lambda: multiop.op_image_elastic_transform(np.ones((2, 4, 3, 1)), seed=0),
        lambda: multiop.op_image_scale_and_translate(np.arange(4.0), (6,), [1.5], [0.5], (0,), "cubic"),
    ],
)
def test_what_an_op_makes_on_its_way_broadcasts_without_a_promotion_of_ranks(call):
    with multiop.use_backend("jax"):
        wanted = call()
        with jax.numpy_rank_promotion("raise"):
            found = call()
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
