"""The maximum over windows: TensorFlow's kernel, to whose result NaN is added."""

import gc
import weakref

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop as mo

RNG = np.random.default_rng(0)
FINITE = RNG.normal(size=(2, 4, 6, 3))
WITH_NAN, WITH_INFINITY = FINITE.copy(), FINITE.copy()
WITH_NAN[0, 1, 2, 0] = np.nan
WITH_INFINITY[0, 0, :2] = -np.inf  # beside what is finite
WITH_INFINITY[1, 0, 0] = np.inf
BATCHES = {"finite": FINITE, "NaN": WITH_NAN, "infinities": WITH_INFINITY, "empty": FINITE[:0]}
V = tf.constant(RNG.normal(size=FINITE.shape))


def pool(x):
    return mo.op_max_pool(x, 2)


def loss(x):
    return tf.reduce_sum(pool(x) ** 3)


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def product(f, x, v):
    """Return the product of the Hessian and `v`, in reverse mode twice."""
    return gradient(lambda x: tf.reduce_sum(gradient(f, x) * v), x)


def tangent(f, x, v):
    with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
        y = f(x)
    return accumulator.jvp(y)


def expected(x):
    """Return the maxima over windows of 2 by 2."""
    return np.max([x[:, i::2, j::2] for i in (0, 1) for j in (0, 1)], axis=0)


def compiled(f):
    return tf.function(f, autograph=False)


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_a_graph_is_as_eager(batch):
    signature = [tf.TensorSpec((None, 4, 6, 3), tf.float64)]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(tf.function(pool, signature, autograph=False)(batch), expected(batch))
    x = tf.constant(batch)
    found = tf.function(lambda x: gradient(loss, x), signature, autograph=False)(x)
    np.testing.assert_allclose(found, gradient(loss, x), rtol=1e-12)


@pytest.mark.parametrize("batch", [FINITE, WITH_NAN], ids=["finite", "NaN"])
def test_sizes_that_are_unknown_differ_between_graphs(batch):
    same = lambda x: mo.op_max_pool(x, 3, 2, "same")
    for x in map(tf.constant, (batch, batch[:, :3, :5])):
        signature = [tf.TensorSpec((None, None, None, 3), tf.float64)]
        found = tf.function(lambda x: gradient(lambda x: same(x) ** 2, x), signature, autograph=False)(x)
        np.testing.assert_array_equal(found, gradient(lambda x: same(x) ** 2, x))


ROW = [np.nan, 1, 1, np.nan, np.inf, np.nan, np.nan, -np.inf, -np.inf, 2, np.inf, 3, -0.0, -0.0, 3, 5]
LARGEST = [np.nan, np.nan, np.nan, np.nan, 2, np.inf, -0.0, 5]


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
def test_nan_and_infinity_reach_the_result(dtype, xla):
    lowest = float(dtype.min)  # which is no -inf
    x = tf.constant([*ROW, lowest, lowest, -np.inf, lowest], dtype)[None, :, None]
    found = tf.function(pool, autograph=False, jit_compile=xla)(x)[0, :, 0]
    expected = np.array([*LARGEST, lowest, lowest])
    np.testing.assert_array_equal(tf.cast(found, tf.float64), expected)
    assert np.signbit(tf.cast(found, tf.float64)[6])


@pytest.mark.parametrize("batch", [FINITE, WITH_INFINITY], ids=["finite", "infinities"])
def test_orders_and_modes(batch):
    x = tf.constant(batch)
    first = lambda x: tf.reduce_sum(tf.tanh(pool(x)))
    mapped = lambda x, v: tf.vectorized_map(lambda row: product(first, row[0][None], row[1][None])[0], (x, v))
    inner = compiled(first)
    mapped_inner = lambda x, v: tf.vectorized_map(lambda row: product(inner, row[0][None], row[1][None])[0], (x, v))
    second = product(first, x, V)
    for f in (lambda x, v: product(first, x, v), lambda x, v: product(inner, x, v), mapped, mapped_inner):
        np.testing.assert_allclose(compiled(f)(x, V), second, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(mapped_inner(x, V), second, rtol=1e-12, atol=1e-12)
    forward = mo.jvp(pool, (x,), (V,))[1]
    np.testing.assert_array_equal(tangent(compiled(pool), x, V), forward)
    np.testing.assert_array_equal(compiled(lambda x, v: tangent(pool, x, v))(x, V), forward)
    np.testing.assert_array_equal(mo.jit(lambda x, v: mo.jvp(pool, (x,), (v,))[1])(x, V), forward)


def test_a_jacobian_and_a_map_that_is_differentiated():
    x = tf.constant(FINITE[:, :2, :2])

    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = pool(x) ** 2
        return tape.batch_jacobian(y, x)

    np.testing.assert_allclose(compiled(jacobian)(x), jacobian(x))
    inner = compiled(pool)
    mapped = lambda x: tf.reduce_sum(tf.vectorized_map(lambda row: inner(row[None])[0], x) ** 3)
    for f in (lambda x: gradient(mapped, x), compiled(lambda x: gradient(mapped, x))):
        np.testing.assert_allclose(f(x), gradient(loss, x))


def test_the_kernel_runs_forwards_and_backwards():
    both = compiled(lambda x: gradient(loss, x)).get_concrete_function(tf.constant(FINITE))
    types = [op.type for op in both.graph.get_operations()]
    assert (types.count("MaxPool"), types.count("AvgPool"), types.count("MaxPoolGrad")) == (1, 1, 1)
    assert not {"If", "StatelessIf"} & set(types)


@pytest.mark.usefixtures("young_heap")
def test_a_graph_is_released():
    f = compiled(lambda x: gradient(loss, x))
    graph = weakref.ref(f.get_concrete_function(tf.constant(FINITE)).graph)
    del f
    gc.collect()
    assert graph() is None
