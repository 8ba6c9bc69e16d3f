"""A training step in 16 bits: the values, gradients and dtypes of the same step in the framework's own functions.

The same step in `float32` is the truth: multiop's error is at most twice the framework's, plus a rounding.
"""

from __future__ import annotations

import functools
import importlib
from types import SimpleNamespace

import numpy as np
import pytest

import multiop as mo

BATCH, WORDS, WIDTH, CLASSES, HEADS = 4, 6, 16, 5, 2
EPSILON = 1e-5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(BATCH, WORDS, WIDTH)).astype("float32")
TARGETS = RNG.integers(0, CLASSES, (BATCH, WORDS)).astype("int32")
SHAPES = {"qkv": (WIDTH, 3 * WIDTH), "gain": (WIDTH,), "shift": (WIDTH,), "up": (WIDTH, 32), "down": (32, CLASSES)}
PARAMETERS = {name: RNG.normal(size=shape).astype("float32") / shape[0] ** 0.5 for name, shape in SHAPES.items()}
PARAMETERS["gain"] += 1
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def step(lib, parameters, x, targets, cast):
    """Return the loss, and each intermediate: parameters are cast layer by layer, the loss is in float32."""
    p = {name: cast(value) for name, value in parameters.items()}
    heads = (BATCH, WORDS, HEADS, WIDTH // HEADS)
    projected = lib.matmul(cast(x), p["qkv"])
    query, key, value = (lib.reshape(projected[..., k * WIDTH : (k + 1) * WIDTH], heads) for k in range(3))
    attended = lib.reshape(lib.attention(query, key, value), (BATCH, WORDS, WIDTH))
    normal = lib.layer_norm(lib.relu(attended) + cast(x), p["gain"], p["shift"])
    hidden = lib.gelu(lib.matmul(normal, p["up"]))
    logits = lib.matmul(hidden, p["down"])
    weights = lib.softmax(logits)
    losses = lib.cross_entropy(targets, lib.wide(logits))
    seen = [projected, attended, normal, hidden, logits, weights, losses]
    return lib.mean(losses), seen


def of_multiop():
    return SimpleNamespace(
        matmul=mo.op_matmul,
        reshape=mo.op_reshape,
        attention=mo.op_dot_product_attention,
        layer_norm=lambda x, gain, shift: mo.op_layer_normalization(x, gain, shift, epsilon=EPSILON),
        relu=mo.op_relu,
        gelu=mo.op_gelu,
        softmax=mo.op_softmax,
        cross_entropy=lambda t, x: mo.op_sparse_categorical_crossentropy(t, x, from_logits=True),
        mean=mo.op_mean,
        cast=mo.op_cast,
        wide=lambda x: mo.op_cast(x, "float32"),
    )


def of_torch():
    torch = importlib.import_module("torch")
    functional = torch.nn.functional

    def attention(*heads):
        return functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in heads)).transpose(1, 2)

    def cross_entropy(targets, logits):
        loss = functional.cross_entropy(logits.reshape(-1, CLASSES), targets.reshape(-1).long(), reduction="none")
        return loss.reshape(targets.shape)

    def gradient(f, parameters):
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        loss, seen = f(leaves)
        return loss, seen, dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))

    return SimpleNamespace(
        matmul=torch.matmul,
        reshape=torch.reshape,
        attention=attention,
        layer_norm=lambda x, gain, shift: functional.layer_norm(x, (WIDTH,), gain, shift, EPSILON),
        relu=torch.relu,
        gelu=lambda x: functional.gelu(x, approximate="tanh"),
        softmax=lambda x: torch.softmax(x, -1),
        cross_entropy=cross_entropy,
        mean=torch.mean,
        cast=lambda x, dtype: x.to(getattr(torch, dtype)),
        wide=lambda x: x.to(torch.float32),
        gradient=gradient,
        compiled=lambda f: torch.compile(f, fullgraph=True),
        usual=lambda f: f,
    )


def of_jax():
    jax = importlib.import_module("jax")
    jnp = jax.numpy

    def attention(query, key, value):  # XLA's CPU has no float16 product in float32, which jax.nn's function asks for
        logits = jnp.einsum("bqhd,bkhd->bhqk", query * (WIDTH // HEADS) ** -0.5, key)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(logits), value)

    def layer_norm(x, gain, shift):
        wide = x.astype("float32")
        centred = wide - jnp.mean(wide, -1, keepdims=True)
        y = centred * jax.lax.rsqrt(jnp.mean(centred**2, -1, keepdims=True) + EPSILON)
        return (y * gain + shift).astype(x.dtype)

    def gradient(f, parameters):
        (loss, seen), grads = jax.value_and_grad(f, has_aux=True)(parameters)
        return loss, seen, grads

    return SimpleNamespace(
        matmul=jnp.matmul,
        reshape=jnp.reshape,
        attention=attention,
        layer_norm=layer_norm,
        relu=jax.nn.relu,
        gelu=jax.nn.gelu,
        softmax=jax.nn.softmax,
        cross_entropy=lambda t, x: -jnp.take_along_axis(jax.nn.log_softmax(x), t[..., None], -1)[..., 0],
        mean=jnp.mean,
        cast=lambda x, dtype: x.astype(dtype),
        wide=lambda x: x.astype("float32"),
        gradient=gradient,
        compiled=jax.jit,
        usual=jax.jit,  # eager steps are compiled too, and take longer
    )


def of_tensorflow():
    tf = importlib.import_module("tensorflow")

    def attention(query, key, value):
        query, key, value = (tf.transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
        logits = tf.matmul(query * (WIDTH // HEADS) ** -0.5, key, transpose_b=True)
        return tf.transpose(tf.matmul(tf.nn.softmax(logits), value), (0, 2, 1, 3))

    def layer_norm(x, gain, shift):
        wide, gain, shift = (tf.cast(y, "float32") for y in (x, gain, shift))
        mean, variance = tf.nn.moments(wide, [-1], keepdims=True)
        return tf.cast(tf.nn.batch_normalization(wide, mean, variance, shift, gain, EPSILON), x.dtype)

    def gradient(f, parameters):
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            loss, seen = f(parameters)
        return loss, seen, tape.gradient(loss, parameters)

    return SimpleNamespace(
        matmul=tf.matmul,
        reshape=tf.reshape,
        attention=attention,
        layer_norm=layer_norm,
        relu=tf.nn.relu,
        gelu=lambda x: tf.nn.gelu(x, approximate=True),
        softmax=tf.nn.softmax,
        cross_entropy=lambda t, x: tf.nn.sparse_softmax_cross_entropy_with_logits(t, x),
        mean=tf.reduce_mean,
        cast=tf.cast,
        wide=lambda x: tf.cast(x, "float32"),
        gradient=gradient,
        compiled=tf.function,
        usual=lambda f: f,
    )


NATIVE = {"torch": of_torch, "jax": of_jax, "tensorflow": of_tensorflow}


@pytest.fixture(autouse=True)
def _native(multiop_backend):
    if multiop_backend not in NATIVE:
        pytest.skip(f"{multiop_backend} has no derivatives of its own")


def gradient(f, parameters):
    (loss, seen), grads = mo.value_and_grad(f, has_aux=True)(parameters)
    return loss, seen, grads


def trained(lib, differentiate, dtype, scale=1.0, compiled=lambda f: f):
    """Return the scaled loss, the intermediates and the gradients of one step, with the layers in `dtype`."""
    x, targets = map(mo.op_convert_to_tensor, (X, TARGETS))
    parameters = {name: mo.op_convert_to_tensor(p) for name, p in PARAMETERS.items()}

    def f(p):
        loss, seen = step(lib, p, x, targets, lambda x: lib.cast(x, dtype))
        return loss * scale, seen

    return differentiate(compiled(f), parameters)


@functools.cache
def native_step(backend, dtype, scale=1.0):
    lib = NATIVE[backend]()
    return trained(lib, lib.gradient, dtype, scale, lib.usual)


def compare(ours, native, truth, rounding, scale=1.0):
    """Check that `ours` has the dtypes of `native`, and at most twice its errors, plus a rounding."""
    assert [mo.op_dtype(y) for y in leaves(ours)] == [mo.op_dtype(y) for y in leaves(native)]
    assert mo.op_dtype(ours[0]) == "float32"
    for mine, theirs, true in zip(*(map(array, leaves(x)) for x in (ours, native, truth)), strict=True):
        true = true * scale if mine.shape in ((), *SHAPES.values()) else true  # the loss and the gradients
        error, allowed = np.abs(mine - true).max(), np.abs(theirs - true).max()
        assert error <= 2 * allowed + rounding * np.abs(true).max()


def leaves(result):
    loss, seen, grads = result
    return [loss, *seen, *(grads[name] for name in PARAMETERS)]


def array(x):
    return mo.op_convert_to_numpy(x).astype("float64")


WAYS = {"eager": lambda lib: lambda f: f, "jit": lambda lib: mo.jit, "compiler": lambda lib: lib.compiled}


@pytest.mark.slow_on(multiop_backend="jax", way="eager")
@pytest.mark.slow_on(multiop_backend="jax", dtype="float16")  # the scaled loss is in float16 too
@pytest.mark.parametrize(
    "way", ["eager", "jit", pytest.param("compiler", marks=[pytest.mark.compiler, pytest.mark.tier("full")])]
)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_a_step_whose_layers_are_cast_is_the_native_one(backend, dtype, way):
    ours = trained(of_multiop(), gradient, dtype, compiled=WAYS[way](NATIVE[backend]()))
    assert [mo.op_dtype(y) for y in ours[1]] == [dtype] * 6 + ["float32"]
    compare(ours, native_step(backend, dtype), native_step(backend, "float32"), ROUNDING[dtype])


def test_a_step_in_float16_with_a_scaled_loss_is_the_native_one(backend):
    scale = 2.0**15
    ours = trained(of_multiop(), gradient, "float16", scale, mo.jit)
    assert all(np.isfinite(array(x)).all() for x in ours[2].values())
    natives = native_step(backend, "float16", scale), native_step(backend, "float32")
    compare(ours, *natives, ROUNDING["float16"], scale)


@pytest.mark.slow_on(multiop_backend="jax")
def test_a_scale_that_overflows_float16_is_seen_in_the_gradients(backend):
    ours = trained(of_multiop(), gradient, "float16", 2.0**24, mo.jit)
    for result in (ours, native_step(backend, "float16", 2.0**24)):  # the step is skipped
        assert not all(np.isfinite(array(x)).all() for x in result[2].values())
