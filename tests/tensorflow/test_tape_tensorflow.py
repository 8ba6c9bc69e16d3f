"""The tape and `gradients` on TensorFlow, eagerly and in graphs."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop
from multiop import errors

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


def own_gradient(x):
    with multiop.GradientTape() as tape:
        x = tape.watch(x)
        y = x * x * own
    return tape.gradient(y, x)


COMPUTED = {
    "operators": lambda x: x * x - own,
    "an op": multiop.op_sin,
    "a compiled function": tf.function(lambda x: tf.sin(x) * own, autograph=False),
    "a gradient": own_gradient,
    "a transform": lambda x: multiop.grad(lambda x: tf.reduce_sum(x * x * x))(x),
    "a custom gradient": multiop.op_custom_gradient(lambda x: (x * x, lambda upstream: upstream * 7.0)),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_a_tape_records_its_own_thread_as_that_of_tensorflow_does(name):
    found = []
    for make in (tf.GradientTape, multiop.GradientTape):
        for run in (lambda fun, *args: fun(*args), elsewhere):
            with make(persistent=True) as tape:
                x0 = tf.constant([1.5, 0.5, -1.0])
                tape.watch(x0)
                part = run(COMPUTED[name], x0 * 2.0)
                y = part * 3.0 + x0 * unread
            found.append([*tape.gradient(y, [x0, unread]), *tape.gradient(part, [x0, own]), *tape.watched_variables()])
    native, ours = found[:2], found[2:]
    for n, m in zip(native, ours, strict=True):
        assert [grad is None for grad in n] == [grad is None for grad in m]
        assert all(a is None or np.array_equal(a, b) for a, b in zip(n, m, strict=True))
    assert ours[1][2:4] == [None, None] and np.array_equal(ours[1][0], unread)


def test_a_second_order_is_recorded_where_the_first_is_taken_alone():
    """A transform takes its tape for the only one: it must see one of TensorFlow's that is entered in the function."""
    compiled = tf.function(lambda x: x * x * x, autograph=False)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compiled(x)
        return tape.gradient(y, x)

    for fun in (slope, multiop.grad(compiled)):
        output, pullback = multiop.vjp(fun, x)
        np.testing.assert_allclose([output, pullback(tf.constant(1.0))[0], pullback(tf.constant(2.0))[0]], [27, 18, 36])


def test_an_enumeration_of_tensorflow_says_what_an_unconnected_source_gets():
    x = tf.constant(2.0)
    with multiop.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient(tf.constant(1.0), x, unconnected_gradients=tf.UnconnectedGradients.ZERO).numpy() == 0.0
    kinds = [tf.UnconnectedGradients.NONE, tf.UnconnectedGradients.ZERO]
    found = [multiop.gradients(lambda x: tf.constant(1.0), x, unconnected_gradients=kind)[0] for kind in kinds]
    assert found[0] is None
    assert found[1].numpy() == 0.0
    with pytest.raises(ValueError, match="one of 'none', 'zero'"):
        multiop.gradients(lambda x: x, x, unconnected_gradients=tf.VariableAggregation.SUM)


FIRST_TRACED = """
@tf.function
def f(x):
    return multiop.op_one_hot(x, 3)

assert f(tf.constant([0, 2])).numpy().tolist() == [[1, 0, 0], [0, 0, 1]]
"""


@pytest.mark.parametrize(
    "order",
    [
        "import multiop, tensorflow as tf",
        pytest.param("import tensorflow as tf, multiop", marks=pytest.mark.tier("full")),
    ],
)
def test_autograph_leaves_an_op_alone_that_is_the_first_to_be_called(tmp_path, order):
    (tmp_path / "first.py").write_text(order + FIRST_TRACED)
    run = functools.partial(subprocess.run, env=os.environ | {"MULTIOP_BACKEND": "tensorflow"}, cwd=tmp_path)
    found = run([sys.executable, "first.py"], capture_output=True, text=True, check=False)
    assert found.returncode == 0 and "AutoGraph" not in found.stderr, found.stderr
