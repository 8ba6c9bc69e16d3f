"""The tape and `gradients` on TensorFlow, eagerly and in graphs."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop
from multiop import errors
from multiop.backends.tensorflow._internals import pywrap_tfe
from multiop.backends.tensorflow.autodiff import _threads

x = tf.constant(3.0)


def eagerly(build):
    """Run `build(x)` under a tape of multiop's."""
    with multiop.GradientTape(persistent=True) as tape:
        tape.watch(x)
        return build(x)


def in_function(build):
    return tf.function(build, autograph=False)(x)


def in_graph(build):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = build(tf.constant(3.0))
        return session.run([tf.zeros([]) * float("nan") if g is None else g for g in found])


ways = pytest.mark.parametrize("way", [eagerly, in_function, in_graph], ids=["eager", "function", "graph"])


@ways
def test_sums_repeats_intermediates_and_upstream_xs(way):
    def build(x):
        y = x * x
        z = y * y + y
        return multiop.gradients([z, y], [x, y, z, x], [tf.constant(1.0), tf.constant(10.0)])

    np.testing.assert_allclose(way(build), [4 * 27 + 6 + 60, 19 + 10, 1, 174])


@ways
def test_stopping_equals_stop_gradient_in_the_same_place(way):
    def stopped(x):
        a = x * x
        b = tf.sin(a) * x + a
        c = b * a * x + tf.exp(b / 10)
        return multiop.gradients(c, [x, a, b], stop_gradients=[a, b])

    def placed(x):
        a = x * x
        b = tf.sin(tf.stop_gradient(a)) * x + tf.stop_gradient(a)
        c = tf.stop_gradient(b) * tf.stop_gradient(a) * x + tf.exp(tf.stop_gradient(b) / 10)
        return multiop.gradients(c, [x])

    found = way(stopped)
    np.testing.assert_allclose(found[0], way(placed)[0], rtol=1e-6)
    a = 9.0
    b = np.sin(a) * 3 + a
    np.testing.assert_allclose(found, [a * b, b * 3, a * 3 + np.exp(b / 10) / 10], rtol=1e-6)


@ways
def test_partial_derivatives(way):
    def build(x):
        b = 2 * x
        return multiop.gradients(x + b, [x, b], stop_gradients=[x, b])

    np.testing.assert_allclose(way(build), [1.0, 1.0])


@ways
def test_stopping_at_ys_and_of_huge_beside_small(way):
    def build(x):
        y = x * x
        big = 1e12 * x * x
        return [
            *multiop.gradients(y, [y], stop_gradients=[y]),
            *multiop.gradients(big * big + x, [x], stop_gradients=[big]),
        ]

    np.testing.assert_allclose(way(build), [1.0, 1.0])


def test_stopping_where_the_stopped_part_has_no_finite_gradient():
    def build(x):
        root = tf.sqrt(x - 3.0)
        return multiop.gradients(root * 2.0 + x, [x], stop_gradients=[root])

    np.testing.assert_allclose(in_function(build), [1.0])
    np.testing.assert_allclose(eagerly(build), [1.0])

    def build_unsettled(x):
        log = tf.math.log(x - 3.0)
        return multiop.gradients(log * 2.0 + x, [x], stop_gradients=[log])

    np.testing.assert_allclose(in_function(build_unsettled), [1.0])
    with pytest.raises(errors.UnsupportedError, match="not finite"):
        eagerly(build_unsettled)


def test_what_is_connected_by_way_of_the_stopped_alone_is_unconnected():
    tenfold = multiop.op_custom_gradient(lambda x: (x * x, lambda upstream: upstream * 10.0))

    def build(x):
        a = x * x
        b = tf.sin(a * 3.0)
        picked = tf.gather(tf.stack([x, a]), [0, 0])
        custom = tenfold(x)
        squared = tf.function(lambda c: c * c)(custom)
        cases = [
            (b * 2.0, [a, b]), (b * 2.0 + a, [a]), (a + 0.0 * x, [a]), (a + x, [a]), (a, [a]),
            (tf.reduce_sum(tf.gather(picked, [0, 1, 1])), [picked]), (squared, [custom]),
            (squared + tenfold(x), [custom]),
        ]  # fmt: skip
        found = [multiop.gradients(y, [x], stop_gradients=stops)[0] for y, stops in cases]
        return [tf.constant(np.nan) if grad is None else grad for grad in found]

    expected = [np.nan, np.nan, 0.0, 1.0, np.nan, np.nan, np.nan, 10.0]
    np.testing.assert_array_equal(in_function(build), expected)  # TensorFlow's own
    np.testing.assert_array_equal(eagerly(build), expected)


@ways
def test_stopped_gradients_differentiate(way):
    def build(x):
        a = x * x
        first = multiop.gradients(a * a * x, [x], stop_gradients=[a])[0]
        return multiop.gradients(first, [x])

    np.testing.assert_allclose(way(build), [4 * 27.0], rtol=1e-6)


@ways
def test_gradients_of_gradients_to_the_fourth_order(way):
    def build(x):
        found, y = [], x**5
        for _ in range(4):
            y = multiop.gradients(y, x)[0]
            found.append(y)
        return found

    np.testing.assert_allclose(way(build), [405.0, 540.0, 540.0, 360.0], rtol=1e-5)


@ways
def test_indexed_and_dense_contributions_are_added_up(way):
    def build(x):
        table = tf.stack([x, x * 2, x * 3])
        y = tf.reduce_sum(tf.gather(table, [0, 0, 2])) + tf.reduce_sum(table * table)
        return multiop.gradients(y, [table])

    np.testing.assert_allclose(way(build)[0], [2 + 6, 12, 1 + 18])


def test_options_act_on_graphs():
    of = multiop.AggregationMethod
    for method in (None, of.ADD_N, of.EXPERIMENTAL_TREE, of.EXPERIMENTAL_ACCUMULATE_N):

        def build(x, method=method):
            y = x * x + x * 2 + x
            options = {"gate_gradients": True, "colocate_gradients_with_ops": True}
            return multiop.gradients(y, x, aggregation_method=method, **options)

        np.testing.assert_allclose(in_function(build), [9.0])


def test_tapes_nest_and_gradients_finds_the_one_that_knows():
    y = tf.constant(2.0)
    with multiop.GradientTape() as outer:
        outer.watch(x)
        a = x * y
        with multiop.GradientTape() as inner:
            inner.watch(y)
            z = a * x * y
            np.testing.assert_allclose(multiop.gradients(z, [x, y]), [2 * 3 * 4.0, 9 * 2.0])
            np.testing.assert_allclose(multiop.gradients(z, [x, y]), [2 * 3 * 4.0, 9 * 2.0])
    with pytest.raises(ValueError, match="GradientTape"):
        multiop.gradients(z, [x])


def test_persistent_tapes_answer_after_their_block():
    with multiop.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_allclose(multiop.gradients(y, x), [6.0])
    del tape
    with pytest.raises(ValueError, match="GradientTape"):
        multiop.gradients(y, x)


def test_variables_and_unconnected_sources():
    v, frozen = tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with multiop.GradientTape(persistent=True) as tape:
        y = v * frozen
        tape.watch(frozen)
        z = v * frozen
    assert tape.gradient(y, [v, frozen, x])[1:] == [None, None]
    np.testing.assert_allclose(tape.gradient(z, [v, frozen]), [3.0, 2.0])
    assert tape.watched_variables() == (v, frozen)
    with multiop.GradientTape(watch_accessed_variables=False) as tape:
        y = v * 1.0
    assert tape.gradient(y, v) is None


def test_gradients_of_embeddings_are_dense():
    table = tf.Variable(tf.ones([4, 2]))
    with multiop.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 1, 3]))
    np.testing.assert_allclose(tape.gradient(y, table), [[0, 0], [2, 2], [0, 0], [1, 1]])


def test_what_was_recorded_is_freed_with_the_tape():
    gc.disable()
    try:
        with multiop.GradientTape() as tape:
            tape.watch(x)
            hidden = tf.exp(x)
            reference = weakref.ref(hidden)
            y = hidden * hidden
            del hidden
        assert reference() is not None
        tape.gradient(y, x)
        del y
        assert reference() is None
    finally:
        gc.enable()


def test_tapes_of_another_thread_are_not_asked():
    found = []

    def work():
        with multiop.use_backend("tensorflow"):
            try:
                multiop.gradients(y, x)
            except ValueError as error:
                found.append(error)

    with multiop.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(found) == 1


# other threads


def elsewhere(fun, *args):
    def work():
        with multiop.use_backend("tensorflow"):
            return fun(*args)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


own = tf.Variable([1.0, 2.0, 3.0])
unread = tf.Variable([2.0, 1.0, 0.5])
still = tf.Variable([2.0, 1.0, 0.5], trainable=False)


@tf.custom_gradient
def native_rule(x):
    return x * x * unread, lambda upstream, variables=None: (upstream * 7.0, [upstream * 5.0])


RAW = {
    "an operator": lambda x: x * x - 1.0,
    "a function": lambda x: tf.sin(x) + x[::-1],
    "lists": lambda x: tf.concat([unread, x], 0) * tf.stack([x, own])[0, 0],
    "a call without a fast path": lambda x: tf.raw_ops.AddN(inputs=[x, [1.0, 2.0, 3.0], x]),
    "a variable in an operator": lambda x: x * unread,
    "a variable as an operand": lambda x: tf.square(own) * x,
    "a gather": lambda x: tf.gather(unread, [2, 0, 0]) * x,
    "a variable that is not trainable": lambda x: x * still,
    "a compiled function": tf.function(lambda x: tf.sin(x) * own, autograph=False),
    "a rule of TensorFlow's": native_rule,
    "a loop": lambda x: tf.map_fn(lambda row: row * row, x),
    "a Python function": lambda x: tf.py_function(lambda x: x * x, [x], tf.float32),
    "vectorized": lambda x: tf.vectorized_map(lambda row: row * row, x),
    "a tape of TensorFlow's": lambda x: native_gradient(x),
}


def native_gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    return tape.gradient(y, x)


@pytest.mark.parametrize("name", RAW)
def test_what_tensorflow_computes_in_another_thread_is_recorded_as_in_the_tapes(name):
    fun, found = RAW[name], []
    for run in (lambda fun, *args: fun(*args), elsewhere):
        with multiop.GradientTape() as tape:
            x0 = tape.watch(tf.constant([1.5, 0.5, -1.0]))
            tape.watch(still)
            y = run(fun, x0 * 2.0) * 3.0
        found.append(tape.gradient(y, [x0, own, unread, still]))
    for here, there in zip(*found, strict=True):
        assert (here is None) == (there is None)
        assert here is None or np.array_equal(here, there)


def test_variables_of_other_threads():
    def train():
        with multiop.GradientTape() as tape:
            y = tf.reduce_sum(own * unread)
        return tape.watched_variables(), tape.gradient(y, unread)

    with multiop.GradientTape(watch_accessed_variables=False) as tape:
        y = elsewhere(lambda: tf.square(own) * unread)
    assert tape.gradient(y, own) is None
    with multiop.GradientTape() as tape:
        y = own * 2.0
        variables, grad = elsewhere(train)
        z = y * elsewhere(lambda: tf.square(still))
    assert tape.watched_variables() == (own,)
    assert variables == (own, unread)
    np.testing.assert_array_equal(grad, own)
    np.testing.assert_array_equal(tape.gradient(z, own), 2.0 * np.square(still))


def test_tensorflow_is_as_before_when_no_tape_records():
    with multiop.GradientTape():
        with multiop.GradientTape(), pytest.raises(tf.errors.InvalidArgumentError):
            elsewhere(lambda: tf.reshape(tf.zeros(3), [2]))
        during = pywrap_tfe.TFE_Py_FastPathExecute
    assert during is not pywrap_tfe.TFE_Py_FastPathExecute
    assert all(value is getattr(pywrap_tfe, name) for name, value in _threads._OWN.items())
    assert elsewhere(pywrap_tfe.TFE_Py_TapeSetIsEmpty)


@pytest.mark.parametrize("within", ["a transform", "a tape"])
def test_native_forward_mode_beside_another_thread_is_right_or_refused(within):
    def directional(x, computes_elsewhere):
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            if computes_elsewhere:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(lambda: tf.exp(tf.ones(3)) + 1).result()
            y = x * x * x
        return accumulator.jvp(y)

    def gradient(computes_elsewhere):
        if within == "a transform":
            return multiop.grad(lambda x: directional(x, computes_elsewhere))(x)
        with multiop.GradientTape() as tape:
            tape.watch(x)
            z = directional(x, computes_elsewhere)
        return tape.gradient(z, x)

    np.testing.assert_allclose(gradient(False), 18.0)
    with pytest.raises(errors.UnsupportedError, match="another thread computed"):
        gradient(True)
    np.testing.assert_allclose(gradient(False), 18.0)
