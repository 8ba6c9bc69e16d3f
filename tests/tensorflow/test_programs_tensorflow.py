"""Ops of many steps as one function: the same to the bit, at every order, and in no more Python calls than promised."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from python_calls import count_calls

import multiop as mo
from multiop import errors
from multiop.backends.tensorflow.autodiff import _programs as programs

MOST_CALLS = 28  # of Python functions, the test's own among them
RNG = np.random.default_rng(0)
X, Y, V = RNG.uniform(0.2, 0.8, (4, 8)), RNG.uniform(0.2, 0.8, (4, 8)), RNG.normal(size=8)
Q, IMAGE, KERNEL = RNG.normal(size=(1, 4, 2, 8)), RNG.normal(size=(1, 4, 4, 2)), RNG.normal(size=(3, 3, 2, 2))
PLACES, ROWS = tf.constant([1, 3, 1]), tf.constant([[1], [3], [1]])
OPS = {
    "layer_normalization": (lambda x, g: mo.op_layer_normalization(x, g, g), X, V),
    "rms_normalization": (lambda x, g: mo.op_rms_normalization(x, g), X, V),
    "batch_normalization": (lambda x, m, v: mo.op_batch_normalization(x, m, v, -1, m, v), X, V, V**2),
    "normalize": (lambda x: mo.op_normalize(x), X),
    "attention": (lambda q, k, v: mo.op_dot_product_attention(q, k, v, is_causal=True), Q, Q + 1, Q - 1),
    "binary_crossentropy": (lambda x, y: mo.op_binary_crossentropy(x, y), X, Y),
    "categorical_crossentropy": (lambda x, y: mo.op_categorical_crossentropy(x, y, True), X, Y),
    "max_pool": (lambda x: mo.op_max_pool(x, 2), IMAGE),
    "average_pool": (lambda x: mo.op_average_pool(x, 2), IMAGE),
    "conv": (lambda x, k: mo.op_conv(x, k, padding="same"), IMAGE, KERNEL),
    "gelu": (lambda x: mo.op_gelu(x), X),
    "selu": (lambda x: mo.op_selu(x), X),
    "sort": (lambda x: mo.op_sort(x), X),
    "take": (lambda x: mo.op_take(x, PLACES, 0), X),
    "get_item": (lambda x: mo.op_get_item(x, (slice(None, None, 2), 1)), X),
}
MORE = {  # whose frontend makes more Python calls
    "sparse_categorical_crossentropy": (lambda x: mo.op_sparse_categorical_crossentropy(PLACES, x[:3], True), X),
    "get_item of a tensor": (lambda x: mo.op_get_item(x, (slice(None), PLACES)), X),
    "scatter_update": (lambda x, y: mo.op_scatter_update(x, ROWS, y[:3]), X, Y),
    "scatter_update max": (lambda x, y: mo.op_scatter_update(x, ROWS, y[:3], "max"), X, Y),
    "logsumexp": (lambda x: mo.op_logsumexp(x, 1), X),
    "top_k": (lambda x: mo.op_top_k(x, 3)[0], X),
    "segment_max": (lambda x: mo.op_segment_max(x, tf.constant([0, 1, 1, 0]), 3), X),
    "power": (lambda x, y: mo.op_power(x, y), X, Y),
    "arcsinh": (lambda x: mo.op_arcsinh(x), X),
    "digamma": (lambda x: mo.op_digamma(x), X),
    "betaln": (lambda x, y: mo.op_betaln(x, y), X, Y),
    "prod": (lambda x: mo.op_prod(x, 1), X),
    "cumprod": (lambda x: mo.op_cumprod(x, 1), X),
}


@pytest.fixture
def from_call(monkeypatch):
    """Return a function that says from which call of a signature on there is a program."""

    def begin(number):
        monkeypatch.setattr(programs, "CALLS_BEFORE", number - 1)
        programs._signatures.entries.clear()

    yield begin
    programs._signatures.entries.clear()


def first(f, xs, weights=None):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = f(*xs)
    return [y, *tape.gradient(y, xs, weights)]


def second(f, xs):
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(xs)
        grads = first(f, xs)[1:]
        total = tf.add_n([tf.reduce_sum(tf.sin(grad) * x) for grad, x in zip(grads, xs, strict=True)])
    return outer.gradient(total, xs, unconnected_gradients="zero")


def forward(f, xs):
    with tf.autodiff.ForwardAccumulator(xs, [tf.cos(x) for x in xs]) as accumulator:
        y = f(*xs)
    return [accumulator.jvp(y)]


def arrays(xs):
    return [np.asarray(tf.cast(x, tf.float64)) for x in xs]


FEW = ("layer_normalization", "attention", "max_pool", "sort", "scatter_update", "power")  # the others: the full tier


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.tier("full")) for name in (*OPS, *MORE)]
)
def test_a_program_is_the_op(name, dtype, from_call):
    f, *xs = (OPS | MORE)[name]
    xs = [tf.cast(x, dtype) for x in xs]
    from_call(10**9)
    value, grads, seconds, tangents = f(*xs), first(f, xs), second(f, xs), forward(f, xs)
    from_call(2)
    for _ in range(3):
        first(f, xs)
    assert any(type(entry) is programs.Program for entry in programs._signatures.entries.values())
    np.testing.assert_array_equal(arrays([f(*xs)]), arrays([value]))
    for found, expected in zip(arrays(first(f, xs)), arrays(grads), strict=True):
        np.testing.assert_array_equal(found, expected)
    if dtype == "float32":
        expected = arrays([*seconds, *tangents])
        for _ in range(3):
            for found, each in zip(arrays([*second(f, xs), *forward(f, xs)]), expected, strict=True):
                np.testing.assert_allclose(found, each, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPS)
def test_python_calls(name, from_call):
    f, *xs = OPS[name]
    xs = [tf.cast(x, tf.float32) for x in xs]
    from_call(2)
    assert count_calls(f, *xs, warm=3) <= MOST_CALLS


def test_options_that_are_equal_but_not_the_same(from_call):
    from_call(1)
    f = programs.in_one_call(lambda x, option: tf.fill(tf.shape(x), str(option)))
    x = tf.zeros(1)
    for _ in range(3):
        for option in (0.0, -0.0, 0, False, 1, True, 1.0, None, "1", (1,), [1], (1.0,)):
            assert f(x, option).numpy()[0].decode() == str(option)
    for y in (x, tf.zeros(1, tf.int32), tf.zeros(2)):
        assert f(y, None).shape == y.shape


def test_values_that_are_wrong_raise_as_before(from_call):
    from_call(1)
    x, wrong = tf.zeros((2, 3)), tf.constant([[9]])
    for _ in range(3):
        for call in (
            lambda: mo.op_sparse_categorical_crossentropy(tf.constant([0, 3]), x, True),
            lambda: mo.op_take(x, tf.constant([2, 3]), 1),
            lambda: mo.op_take(x, 3, 1),
            lambda: mo.op_get_item(x, (0, tf.constant([3]))),
            lambda: mo.op_get_item(x, (0, 3)),
            lambda: mo.op_scatter_update(x, wrong, tf.zeros((1, 3))),
            lambda: mo.op_digitize(x, tf.constant([1.0, 0.0])),
            lambda: mo.op_layer_normalization(x, tf.zeros(2)),
        ):
            with pytest.raises(errors.ArgumentError):
                call()
    assert mo.op_take(tf.constant([[0.0, 1.0, 2.0]] * 2), -1, 1).numpy().tolist() == [2, 2]
    assert mo.op_scatter_update(x, [[-1]], tf.ones((1, 3))).numpy().tolist() == [[0, 0, 0], [1, 1, 1]]


def test_a_gradient_inside_its_tape_and_in_a_graph(from_call):
    from_call(1)
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = mo.op_gelu(x)
        slope = tape.gradient(y, x)
        again = tape.gradient(slope, x)
    inside = tf.function(lambda: tape.gradient(y, x))()
    np.testing.assert_allclose(inside, slope, rtol=1e-14)
    graph = tf.function(lambda x: second(lambda x: mo.op_gelu(x), [x]))(x)
    np.testing.assert_allclose(graph, second(lambda x: mo.op_gelu(x), [x]))
    hessian = mo.hessian(lambda x: mo.op_sum(mo.op_gelu(x)))(x[0])
    np.testing.assert_allclose(np.diag(hessian), again[0], rtol=1e-9)


def test_inside_a_custom_gradient_and_a_checkpoint(from_call):
    from_call(1)
    norm = lambda x: mo.op_layer_normalization(x)
    rule = mo.op_custom_gradient(lambda x: (norm(x), lambda u: norm(x) * u))
    x = tf.constant(X)
    for _ in range(3):
        np.testing.assert_allclose(first(rule, [x])[1], norm(x))
        expected = first(lambda x: norm(norm(x)), [x])[1]
        np.testing.assert_allclose(first(mo.checkpoint(lambda x: norm(norm(x))), [x])[1], expected)


def test_threads(from_call):
    from_call(1)
    x, found = tf.constant(X), []
    expected = first(lambda x: mo.op_normalize(x, order=3), [x])
    from_call(1)

    def run():
        with mo.use_backend("tensorflow"):
            found.extend(first(lambda x: mo.op_normalize(x, order=3), [x]) for _ in range(3))

    threads = [threading.Thread(target=run) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 18
    for each in found:
        np.testing.assert_array_equal(each, expected)


@pytest.mark.usefixtures("young_heap")
def test_what_is_kept(from_call):
    from_call(1)
    programs._signatures.most, most = 8, programs._signatures.most
    try:
        for n in range(2, 14):
            x = tf.zeros((2, n))
            mo.op_gelu(x)
        assert len(programs._signatures.entries) == 8
    finally:
        programs._signatures.most = most
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


COLORS = np.random.default_rng(0).uniform(size=(2, 3, 3)).astype("float32")
CORNERS = np.array([[0, 0], [0, 3], [3, 0], [3, 3]], "float32")
WITHOUT_EQUALITY = {  # ops that look for equal entries, which Python's == does not in a graph of TensorFlow 1
    "rgb_to_hsv": lambda: mo.op_image_rgb_to_hsv(tf.constant(COLORS), data_format="channels_last"),
    "sparsemax": lambda: mo.op_sparsemax(tf.constant([0.5, 1.0, -1.0])),
    "ctc_loss of a blank": lambda: mo.op_ctc_loss(
        tf.constant([[1, 0]]), tf.constant(COLORS[:1]), tf.constant([2]), tf.constant([3]), mask_index=0
    ),
    "perspective_transform to a line": lambda: mo.op_image_perspective_transform(
        tf.constant(COLORS),
        tf.constant(CORNERS),
        tf.constant(CORNERS * np.float32([1, 0])),
        data_format="channels_last",
    ),
    "lgamma at a pole": lambda: mo.op_lgamma(tf.constant([-1.0, 0.0, 2.5])),
}


@pytest.mark.parametrize("name", WITHOUT_EQUALITY)
def test_an_op_in_a_graph_of_version_1_is_that_of_a_function(name):
    expected = tf.function(WITHOUT_EQUALITY[name])().numpy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        np.testing.assert_array_equal(session.run(WITHOUT_EQUALITY[name]()), expected)
