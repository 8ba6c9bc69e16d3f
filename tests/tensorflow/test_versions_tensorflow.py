"""What TensorFlow has silently wrong, in some version, is right in multiop; and an unknown TensorFlow.

There, ops and transforms work, and custom gradients in reverse mode.
"""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop
from multiop import ops

NAN = float("nan")
COMPILED = {"multiop.jit": multiop.jit, "graph": tf.function, "XLA": lambda f: tf.function(f, jit_compile=True)}


@pytest.mark.rotating
@pytest.mark.parametrize(
    "parts",
    ["all", *(pytest.param(parts, marks=pytest.mark.tier("full")) for parts in ("missing", "other", "lacking"))],
)
def test_an_unknown_version(parts, passed_alone):
    assert passed_alone("unknown.py", MULTIOP_TEST_PARTS=parts) > 40


# functions that never decrease, or never increase, and are equal, or NaN, at places whose operands differ
MONOTONE = {
    "relu": (ops.relu, np.float32([1.0, -1.0, -5.0, 2.0])),
    "relu6": (ops.relu6, np.float32([1.0, 7.0, 9.0, -2.0, -3.0])),
    "floor": (ops.floor, np.float32([1.2, 1.1, 0.9, 0.3, 1.7])),
    "ceil": (ops.ceil, np.float32([1.2, 1.1, 0.9, 0.3, 1.7])),
    "round": (ops.round, np.float32([1.2, 1.1, 0.9, 0.3, 1.4])),
    "sign": (ops.sign, np.float32([3.0, 4.0, -3.0, -4.0])),
    "sign of integers": (ops.sign, np.int32([3, 4, -3, -4])),
    "relu of bytes": (ops.relu, np.int8([1, -1, -5, 2])),
    "negative of relu": (lambda x: -ops.relu(x), np.float32([1.0, -1.0, -5.0, 2.0])),
    "tanh": (ops.tanh, np.float32([10.0, 20.0, 5.0, -30.0, -40.0])),
    "exp": (ops.exp, np.float32([100.0, 200.0, 50.0, -200.0, -300.0])),
    "sigmoid": (ops.sigmoid, np.float32([20.0, 90.0, 5.0, -200.0, -300.0])),
    "softplus": (ops.softplus, np.float32([0.0, -200.0, -300.0])),
    "elu": (ops.elu, np.float32([0.0, -30.0, -40.0])),
    "log": (ops.log, np.float32([4.0, -1.0, 0.5])),
    "log1p": (ops.log1p, np.float32([4.0, -3.0, 0.5])),
    "sqrt": (ops.sqrt, np.float32([4.0, -1.0, 0.5])),
    "rsqrt": (ops.rsqrt, np.float32([4.0, -1.0, 0.5])),
    "arcsin": (ops.arcsin, np.float32([0.4, -1.5, 0.5])),
    "arccos": (ops.arccos, np.float32([0.4, -1.5, 0.5])),
    "arccosh": (ops.arccosh, np.float32([4.0, -1.5, 1.5])),
    "arctanh": (ops.arctanh, np.float32([0.4, -1.5, 0.5])),
}


@pytest.mark.parametrize("compiler", ["multiop.jit", pytest.param("XLA", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("name", MONOTONE)
def test_extrema_of_monotone_functions(name, compiler):
    """Grappler takes those of the operand.

    https://github.com/tensorflow/tensorflow/issues/116436, 118374, 118675
    """
    fun, x = MONOTONE[name]
    y = np.asarray(fun(tf.constant(x)))
    with np.errstate(invalid="ignore"):
        expected = [np.argmax(y), np.argmin(y), y.max(), y.min()]

    @COMPILED[compiler]
    def found(x):
        y = fun(x)
        return [op(y) for op in (ops.argmax, ops.argmin, ops.max, ops.min)]

    np.testing.assert_array_equal(np.float32([*map(float, found(tf.constant(x)))]), np.float32(expected))
    for op, wanted in zip((ops.argmax, ops.argmin, ops.max, ops.min), expected, strict=True):
        alone = float(COMPILED[compiler](lambda x, op=op: op(fun(x), axis=-1))(tf.constant(x)))
        np.testing.assert_array_equal(np.float32(alone), np.float32(wanted))


BESIDE_NAN = {
    "top_k of roots": (lambda x: ops.top_k(ops.sqrt(x - 2), 2)[1], [0, 3]),
    "argsort of roots": (lambda x: ops.argsort(ops.sqrt(x - 2)), [1, 2, 0, 3]),
    "top_k": (lambda x: ops.top_k(x, 3)[0], [NAN, 3.0, 2.0]),
    "sort": (ops.sort, [1.0, 2.0, 3.0, NAN]),
    "argsort": (ops.argsort, [0, 1, 2, 3]),
    "segment_max": (lambda x: ops.segment_max(x[::-1], [0, 0, 1, 1], 2), [NAN, 2.0]),
    "segment_min": (lambda x: ops.segment_min(x, [0, 0, 1, 1], 2), [1.0, NAN]),
    "cummax": (lambda x: ops.associative_scan(ops.maximum, x[::-1]), [NAN] * 4),
    "max_pool": (lambda x: ops.max_pool(ops.reshape(x, (1, 4, 1)), 2)[0, :, 0], [2.0, NAN]),
}


@pytest.mark.parametrize("compiler", ["eager", "multiop.jit", "XLA"])
@pytest.mark.parametrize("name", BESIDE_NAN)
def test_order_beside_nan(name, compiler):
    """XLA orders NaN otherwise, or leaves it out.

    https://github.com/tensorflow/tensorflow/issues/116992, 118375, 118647, 119438
    """
    fun, expected = BESIDE_NAN[name]
    found = COMPILED.get(compiler, lambda f: f)(fun)(tf.constant([1.0, 2.0, 3.0, NAN]))
    np.testing.assert_array_equal(found, expected)


SLOPES = {
    # https://github.com/tensorflow/tensorflow/issues/119430
    "cumprod at 0": (lambda x: ops.sum(ops.cumprod(x)), [0.0, 2.0, 3.0], [9.0, 0.0, 0.0]),
    "cumprod at two 0": (lambda x: ops.sum(ops.cumprod(x)), [2.0, 0.0, 0.0, 3.0], [1.0, 2.0, 0.0, 0.0]),
    # https://github.com/tensorflow/tensorflow/issues/127244
    "ldexp at 0": (lambda x: ops.sum(ops.ldexp(x, [3, -1, 0])), [0.0, 0.0, 2.0], [8.0, 0.5, 1.0]),
    # https://github.com/tensorflow/tensorflow/issues/36999
    "checkpoint of one tensor twice": (
        lambda x: ops.sum(multiop.checkpoint(lambda a, b: a * b)(x, x)),
        [1.0, -3.0],
        [2.0, -6.0],
    ),
    # https://github.com/tensorflow/tensorflow/issues/73367
    "vmap in a loop": (
        lambda x: ops.sum(ops.fori_loop(0, 2, lambda i, c: multiop.vmap(lambda a: a * a)(c), x)),
        [1.0, -2.0],
        [4.0, -32.0],
    ),
}


@pytest.mark.usefixtures("multiop_x64")
@pytest.mark.parametrize("compiler", ["eager", "multiop.jit", pytest.param("XLA", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("name", SLOPES)
def test_gradients_that_tensorflow_drops(name, compiler):
    fun, x, expected = SLOPES[name]
    wrap = COMPILED.get(compiler, lambda f: f)
    x = tf.constant(x, tf.float64)
    np.testing.assert_allclose(wrap(multiop.grad(fun))(x), expected, rtol=1e-12, atol=1e-12)
    slope = wrap(lambda x: multiop.jvp(fun, (x,), (tf.ones_like(x),))[1])(x)
    np.testing.assert_allclose(slope, np.sum(expected), rtol=1e-12)


@pytest.mark.usefixtures("multiop_x64")
def test_second_derivative_of_a_sum_of_exponentials():
    """That of tf.math.cumulative_logsumexp is NaN: https://github.com/tensorflow/tensorflow/issues/127243."""

    def f(t):
        return ops.logsumexp(ops.stack([t, 10 * t, -10 * t, 2 * t - 3]))

    def by_jvp(f):
        return lambda t: multiop.jvp(f, (t,), (tf.ones_like(t),))[1]

    t = -0.05
    terms, slopes = np.exp([t, 10 * t, -10 * t, 2 * t - 3]), np.array([1, 10, -10, 2])
    mean = np.sum(terms * slopes) / terms.sum()
    expected = np.sum(terms * slopes**2) / terms.sum() - mean**2
    for outer in (multiop.grad, by_jvp):
        for inner in (multiop.grad, by_jvp):
            np.testing.assert_allclose(outer(inner(f))(tf.constant(t, tf.float64)), expected, rtol=1e-10)


def test_a_window_that_does_not_fit():
    """It gave a result of a wrong shape: https://github.com/tensorflow/tensorflow/issues/109175."""
    x, kernel = tf.ones((2, 10, 3)), tf.ones((2, 3, 1))
    for wrap in (lambda f: f, multiop.jit):
        try:
            found = wrap(lambda x: ops.conv(x, kernel, padding="valid", dilation_rate=15))(x)
        except multiop.errors.MultiopError:
            continue
        assert found.shape == (2, 0, 1)


@pytest.mark.parametrize("mapping", [multiop.vmap, lambda f: lambda x: tf.vectorized_map(f, x)], ids=["ours", "native"])
def test_products_of_mapped_complex_matrices(mapping):
    """2.18 conjugates one that is transposed: https://github.com/tensorflow/tensorflow/issues/52148."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3))).astype(np.complex64)
    for of_left in (np.conj, np.asarray):
        for of_right in (np.conj, np.asarray):
            ways = {
                "transpose_a" if of_left is np.asarray else "adjoint_a": True,
                "transpose_b" if of_right is np.asarray else "adjoint_b": True,
            }
            expected = of_left(x).mT @ of_right(x).mT
            np.testing.assert_allclose(mapping(lambda x, ways=ways: tf.matmul(x, x, **ways))(x), expected, rtol=1e-5)

    def loss(x):
        return ops.sum(ops.real(ops.matmul(x, x)))

    ones = np.ones_like(x)
    slope = ones @ x.conj().mT + x.conj().mT @ ones
    np.testing.assert_allclose(mapping(multiop.grad(loss))(x), slope, rtol=1e-5)
