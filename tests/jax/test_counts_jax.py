"""What training pays for: compiled, bytes like those of JAX's own, or little more; eagerly, few Python calls."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
from counted_hlo import DTYPES, count, rows
from python_calls import count_calls, leave_alone

import multiop as mo

DEARER = {  # what is pinned, and its price: bytes as a multiple of JAX's
    "max": (2.1, "jnp.max's gradient is lost where XLA computes the operand twice, and rounds it otherwise"),
    "categorical_crossentropy": (1.6, "0 * log(0) is 0 where a class is masked"),
}
IN_FLOAT32 = {  # in float16, where a square, a power, a sum or a sigmoid on the way overflows or vanishes
    "gelu_tanh": 1.4,
    "silu": 1.4,
    "glu": 2.2,
    "layer_normalization": 1.3,
    "group_normalization": 1.3,
    "rms_normalization": 1.5,
    "batch_normalization": 1.8,
    "batch_normalization_with_moments": 1.3,
    "average_pool": 3.9,
    "take": 2.2,
    "sparse_categorical_crossentropy": 1.4,
}
IN_BRIEF = ("gelu_tanh", "batch_normalization_with_moments", "layer_normalization", "maximum", "max_pool", "clip")


def dearer(dtype, names=None):
    """Return the shares of JAX's bytes that are above what is allowed."""
    late = {}
    for name, ours, native, xs, n in rows(dtype):
        if names is None or name in names:
            share = count(ours, xs, n) / count(native, xs, n)
            allowed, _ = DEARER.get(name, (1.15, ""))
            if share > max(allowed, IN_FLOAT32.get(name, 1) if dtype == "float16" else 1) + 0.005:
                late[name] = share
    return late


@pytest.mark.compiler
def test_no_op_moves_more_bytes_than_its_native_form():
    assert not dearer("bfloat16", IN_BRIEF)


@pytest.mark.compiler
@pytest.mark.tier("full")
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_op_of_training_moves_more_bytes_than_its_native_form(dtype):
    assert not dearer(dtype)


@pytest.mark.compiler
def test_the_count_sees_what_is_stored():
    x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    assert count(jnp.sin, [x], 1) // (64 * 64 * 4) == 5  # both read x, and one of them the upstream gradient
    assert count(lambda x: x @ x @ x, [x], 1) > 1.15 * count(lambda x: x @ x, [x], 1)


X, PLACES, ROWS, HEADS = jnp.ones((4, 8)), jnp.arange(4), jnp.arange(4)[:, None], jnp.ones((1, 4, 2, 8))
MOST_CALLS = {  # of Python functions, eagerly, the test's own among them
    "split": (8, lambda: mo.op_split(X, 2, -1)),
    "take": (18, lambda: mo.op_take(X, PLACES, 0)),
    "get_item": (16, lambda: mo.op_get_item(X, PLACES)),
    "get_item behind a slice": (25, lambda: mo.op_get_item(X, (slice(1, 3), PLACES))),
    "one_hot": (18, lambda: mo.op_one_hot(PLACES, 8)),
    "segment_sum": (22, lambda: mo.op_segment_sum(X, PLACES, 4)),
    "sparse_categorical_crossentropy": (18, lambda: mo.op_sparse_categorical_crossentropy(PLACES, X, True)),
    "scatter_update": (22, lambda: mo.op_scatter_update(X, ROWS, X)),
    "dot_product_attention": (22, lambda: mo.op_dot_product_attention(HEADS, HEADS, HEADS)),
    "dropout": (21, lambda: mo.random.dropout(X, 0.5, seed=1)),
    "normal": (24, lambda: mo.random.normal((8,), seed=1)),
}


@pytest.fixture
def jax_alone(monkeypatch):
    """Let JAX be the backend as it is in a process that never chose another one, which costs a call more."""
    leave_alone(monkeypatch, "jax")


@pytest.mark.parametrize("name", MOST_CALLS)
def test_python_calls(name, jax_alone):
    most, call = MOST_CALLS[name]
    assert count_calls(call) <= most


def test_a_gradient_takes_few_calls_more_than_that_of_jax(jax_alone):
    f = lambda x: jnp.sum(x * x)
    assert count_calls(mo.grad(f), X) <= count_calls(jax.grad(f), X) + 30
    assert count_calls(mo.value_and_grad(f), X) <= count_calls(jax.value_and_grad(f), X) + 30


ORDERS = {  # and how many calls a trace takes at most, as a multiple of JAX's
    "first": (1.18, jax.grad),
    "second": (1.14, lambda f: jax.grad(jax.grad(f))),
    "mapped": (1.06, lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x]))),
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_trace_of_custom_gradients_takes_little_more_calls_than_that_of_jax(order, jax_alone):
    most, derivative = ORDERS[order]

    def forward(x):
        e = jnp.exp(x)
        return jnp.log1p(e), e

    native = jax.custom_vjp(lambda x: jnp.log1p(jnp.exp(x)))
    native.defvjp(forward, lambda e, u: (u * (1 - 1 / (1 + e)),))

    @mo.op_custom_gradient
    def ours(x):
        e = jnp.exp(x)
        return jnp.log1p(e), lambda u: u * (1 - 1 / (1 + e))

    def calls(f):
        def chain(x):
            for _ in range(30):
                x = f(x)
            return x

        return count_calls(lambda: jax.jit(derivative(lambda x: chain(x))).trace(1.0))

    assert calls(ours) <= most * calls(native)
