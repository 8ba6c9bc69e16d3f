"""TensorFlow of an unknown version: `test_versions_tensorflow.py` runs this file in processes of their own."""

from __future__ import annotations

import importlib
import os
import re
import threading
import warnings

import numpy as np
import pytest
import tensorflow as tf

from multiop._loading import registry, versions

# what is missing, or otherwise than it was, while multiop is imported; TensorFlow itself calls these parts too
PARTS = {
    "tensorflow.python.eager.record.could_possibly_record", "tensorflow.python.eager.record.VariableWatcher",
    "tensorflow.python.eager.record.record_operation_backprop_only", "tensorflow.python.framework.ops.uid",
    "tensorflow.python.autograph.core.config.DoNotConvert", "tensorflow.python.eager.backprop._gradient_function",
    "tensorflow.python.pywrap_tfe.TFE_Py_PackJVPs", "tensorflow.python.pywrap_tfe.TFE_Py_FastPathExecute",
}  # fmt: skip
CASE = os.environ["MULTIOP_TEST_PARTS"]
if CASE != "lacking":  # that is a version that was tested
    versions.VERSIONS["tensorflow"] = versions.Versions((2, 0), (2, 0), (2, 1))


def other(needed, *, also):
    """Stand for a part that takes other arguments."""
    raise AssertionError


def loaded():
    """Load the backend; return what it warned of."""
    held = []
    for path in PARTS if CASE != "all" else ():
        module, _, name = path.rpartition(".")
        holder = importlib.import_module(module)
        held.append((holder, name, getattr(holder, name)))
    tf.zeros([])  # which needs them
    for holder, name, _ in held:
        setattr(holder, name, other) if CASE == "other" else delattr(holder, name)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            registry.load("tensorflow")
    finally:
        for holder, name, part in held:
            setattr(holder, name, part)
    return [str(one.message) for one in caught]


WARNED = loaded()

import multiop
from multiop import errors, ops

X = tf.constant([0.3, -0.7, 1.1], tf.float64)
S = tf.sigmoid(X)
V = tf.Variable([0.5, 2.0, -1.0], dtype=tf.float64)
ROWS = tf.stack([X, S])
WRAPS = [lambda f: f, multiop.jit, tf.function]
NAMES = ["eager", "jit", "function"]


@multiop.op_custom_gradient
def log1pexp(x):
    e = ops.exp(x)
    return ops.log1p(e), lambda u: u * (1 - 1 / (1 + e))


@multiop.op_custom_gradient
def clipped(x):
    """The square, with a gradient that is at most 1."""
    return x * x, lambda u: ops.minimum(2 * x * u, 1.0)


def summed(f):
    return lambda *args: ops.sum(f(*args))


def with_rule(f, rule):
    """Return `f` with another gradient than its own."""
    return multiop.op_custom_gradient(lambda *xs: (f(*xs), rule))


def closed_over_by(y):
    return multiop.op_custom_gradient(lambda x: (x * y, lambda u: u * y))


def equal(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-12)


def refused():
    return pytest.raises(
        errors.UnsupportedError, match="not public.*" + re.escape(versions.tested_requirement("tensorflow"))
    )


def test_it_is_said_once():
    said = [message for message in WARNED if versions.tested_requirement("tensorflow") in message]
    assert len(said) == 1
    assert "reverse mode alone" in said[0]


def branches(x):
    if ops.sum(x) > 0:
        y = x * 2.0
    else:
        y = x * 3.0
    return y


def test_ops_and_transforms():
    f = summed(lambda x: x**3)
    equal(ops.softmax(X), tf.nn.softmax(X))
    equal(multiop.grad(f)(X), 3 * X**2)
    equal(multiop.jit(multiop.grad(f))(X), 3 * X**2)
    equal(tf.function(multiop.grad(f))(X), 3 * X**2)
    equal(multiop.grad(summed(multiop.grad(f)))(X), 6 * X)
    equal(multiop.hvp(f, (X,), (S,)), 6 * X * S)
    equal(multiop.jvp(f, (X,), (S,))[1], tf.reduce_sum(3 * X**2 * S))
    equal(multiop.jacrev(lambda x: x**3)(X), tf.linalg.diag(3 * X**2))
    equal(multiop.vmap(multiop.grad(f))(ROWS), 3 * ROWS**2)
    equal(multiop.grad(lambda x: multiop.checkpoint(f)(x))(X), 3 * X**2)
    equal(multiop.grad(summed(lambda x: x * multiop.op_stop_gradient(x)))(X), X)
    equal(multiop.grad(lambda x: ops.cond(True, lambda: f(x), lambda: ops.sum(x)))(X), 3 * X**2)
    equal(tf.function(lambda x: ops.softmax(branches(x)))(-X), tf.nn.softmax(-3 * X))


def test_complex_decompositions():
    """Their derivatives are rules of this package's own."""
    a = tf.constant([[2, 1j], [-1j, 5]], tf.complex128)

    def f(a):
        return ops.real(ops.det(a))

    def squares(a):
        return ops.eigh(a)[0] ** 2

    def hermitian(a):
        return (a + tf.linalg.adjoint(a)) / 2

    equal(multiop.grad(f)(a), [[5, -1j], [1j, 2]])
    equal(hermitian(multiop.grad(summed(squares))(a)), 2 * a)
    pair = tf.stack([a, 2 * a])
    equal(hermitian(multiop.vmap(multiop.grad(summed(squares)))(pair)), 2 * pair)
    mapped = multiop.vmap(squares)
    equal(hermitian(multiop.grad(summed(mapped))(pair)), 2 * pair)
    equal(hermitian(multiop.jit(multiop.grad(summed(mapped)))(pair)), 2 * pair)


@pytest.mark.parametrize("wrap", WRAPS, ids=NAMES)
def test_first_second_and_third_order(wrap):
    f, expected = summed(log1pexp), S
    for following in (S * (1 - S), S * (1 - S) * (1 - 2 * S), None):
        f = multiop.grad(f)
        equal(wrap(f)(X), expected)
        f, expected = summed(f), following


@pytest.mark.parametrize("wrap", WRAPS[1:], ids=NAMES[1:])
def test_orders_across_the_border_of_a_compiled_function(wrap):
    f, expected = summed(wrap(log1pexp)), S
    for following in (S * (1 - S), S * (1 - S) * (1 - 2 * S), None):
        f = multiop.grad(f)
        equal(f(X), expected)
        f, expected = summed(f), following


def test_a_rule_that_is_not_linear():
    x = tf.constant([0.25, 3.0], tf.float64)
    slopes = [0.5, 1.0]
    equal(multiop.grad(summed(clipped))(x), slopes)
    equal(multiop.jit(multiop.grad(summed(clipped)))(x), slopes)
    equal(multiop.grad(summed(multiop.jit(clipped)))(x), slopes)
    second = multiop.grad(summed(multiop.grad(summed(clipped))))
    equal(second(x), [2, 0])
    equal(multiop.jit(second)(x), [2, 0])
    with pytest.raises(errors.NonLinearRuleError, match="clipped"):
        multiop.grad(summed(multiop.grad(lambda x: ops.sum(multiop.jit(clipped)(x) ** 2))))(x)
    with pytest.raises(errors.NonLinearRuleError, match="clipped"):
        multiop.jvp(multiop.jit(clipped), (x,), (x,))


def test_what_is_infinite_in_a_function_or_its_own_derivative():
    hundred = tf.constant(100.0)
    for wrap in WRAPS:
        equal(wrap(multiop.grad(log1pexp))(hundred), 1)  # exp overflows

    @multiop.op_custom_gradient
    def root(x):
        twice = 2 * x
        return ops.sqrt(x), lambda u: u * twice * twice

    x = tf.constant(0.0, tf.float64)
    for wrap in WRAPS:
        equal(wrap(multiop.grad(root))(x), 0)
        equal(wrap(multiop.grad(lambda x: multiop.grad(root)(x)))(x), 0)


def test_an_operation_without_a_gradient():
    z = tf.constant([[2.0, 1.0], [1.0, 3.0]], tf.complex128)

    @multiop.op_custom_gradient
    def logarithm(z):
        y = tf.linalg.logm(z)
        return y * 1.0, lambda u: u * y

    def f(z):
        return ops.real(ops.sum(logarithm(z)))

    equal(multiop.grad(f)(z), tf.linalg.logm(z))
    equal(multiop.jit(multiop.grad(f))(z), tf.linalg.logm(z))
    with pytest.raises(errors.NoGradientError, match="MatrixLogarithm"):
        multiop.grad(lambda z: ops.real(ops.sum(multiop.grad(f)(z))))(z)


def test_native_tapes_and_graphs():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = log1pexp(X)
    equal(tape.gradient(y, X), S)
    equal(tape.gradient(y, X), S)
    equal(tape.jacobian(y, X), tf.linalg.diag(S))
    equal(tf.function(lambda x: tf.gradients(log1pexp(x), x)[0])(X), S)
    equal(tf.function(lambda x: multiop.gradients(log1pexp(x), [x])[0])(X), S)
    with tf.GradientTape() as tape:
        y = with_rule(lambda x: x * x, lambda u: u * 100)(V)
    equal(tape.gradient(y, V), [100, 100, 100])


def test_what_native_compilers_make_of_it():
    whole = tf.function(lambda x: multiop.grad(summed(log1pexp))(x), jit_compile=True)
    equal(whole(X), S)
    inside = tf.function(log1pexp, jit_compile=True)
    equal(multiop.grad(summed(inside))(X), S)

    @multiop.op_custom_gradient
    def f(x):
        if x > 0:  # for AutoGraph
            y = x * 2
        else:
            y = x * 3
        return y, lambda u: u * y

    x = tf.constant(-2.0)
    equal(tf.function(lambda x: multiop.grad(f)(x))(x), -6)


def test_control_flow():
    x = tf.constant(2.0, tf.float64)
    of_two = summed(lambda x: ops.cond(x > 1, lambda: log1pexp(x), lambda: x))
    equal(multiop.grad(of_two)(x), tf.sigmoid(x))
    equal(multiop.jit(multiop.grad(of_two))(x), tf.sigmoid(x))
    doubling = with_rule(lambda x: x * x, lambda u: u * 2)
    equal(multiop.jit(multiop.grad(lambda x: ops.fori_loop(0, 3, lambda k, x: doubling(x), x)))(x), 8)


def test_trees_integers_and_several_outputs():
    @multiop.op_custom_gradient
    def f(tree, k):
        x, y = tree["x"], tree["y"]
        return (x * y, ops.argmax(y)), lambda u, none: ({"x": u * y * 2, "y": None}, None)

    for wrap in WRAPS:
        found = wrap(multiop.grad(lambda tree: ops.sum(f(tree, tf.constant(3))[0])))({"x": X, "y": 2 * X})
        equal(found["x"], 4 * X)
        equal(found["y"], 0 * X)
    assert int(f({"x": X, "y": X}, 1)[1]) == 2
    assert int(multiop.op_custom_gradient(lambda x: (ops.argmax(x), lambda u: None))(X)) == 2


def test_complex():
    z = tf.constant(0.5 + 2j, tf.complex128)
    f = multiop.op_custom_gradient(lambda z: (z * z, lambda u: u * ops.conj(2 * z)))
    equal(multiop.grad(lambda z: ops.real(f(z)))(z), np.conj(2 * (0.5 + 2j)))


def test_an_output_that_is_an_input_or_a_constant():
    equal(multiop.grad(summed(with_rule(lambda x: x, lambda u: u * 5)))(X), [5, 5, 5])
    equal(with_rule(lambda x: S, lambda u: u * 5)(X), S)
    equal(multiop.grad(summed(with_rule(lambda x: S, lambda u: u * 5)))(X), [5, 5, 5])


def test_inner_and_outer_rules():
    """The outer rule is what counts; an inner one counts where the outer closes over what it gave."""
    inner = with_rule(lambda x: x * x, lambda u: u * 7)

    @multiop.op_custom_gradient
    def outer(x):
        y = inner(x)
        return y * 2, lambda u: u * y

    equal(multiop.grad(summed(outer))(X), X**2)
    equal(multiop.grad(summed(multiop.grad(summed(outer))))(X), [7, 7, 7])


@multiop.op_custom_gradient
def exponential(x):
    return ops.exp(x), lambda u: u * exponential(x) * 2


@pytest.mark.parametrize("wrap", WRAPS, ids=NAMES)
def test_a_rule_that_calls_its_own_function(wrap):
    f = exponential
    for k in (2, 4, 8):
        f = multiop.grad(summed(f))
        equal(wrap(f)(X), k * np.exp(X))


def test_a_function_is_traced_once_and_runs_once():
    ran = []

    @multiop.op_custom_gradient
    def f(x):
        ran.append(hasattr(x, "numpy"))
        return x * 2, lambda u: u * x

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = f(X)
    equal(y, 2 * X)
    for _ in range(2):
        equal(tape.gradient(y, X), X)
    assert ran == [False, True]


def test_side_effects_happen_once():
    counter = tf.Variable(0, trainable=False)

    @multiop.op_custom_gradient
    def f(x):
        counter.assign_add(1)
        return x * 2, lambda u: u

    equal(multiop.grad(summed(f))(X), [1, 1, 1])
    assert int(counter) == 1


def test_a_rule_that_raises():
    def rule(u):
        raise KeyError("mine")

    f = with_rule(lambda x: x * x, rule)
    equal(f(X), X * X)
    equal(multiop.jit(f)(X), X * X)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    equal(y, X * X)
    with pytest.raises(KeyError, match="mine"):
        tape.gradient(y, X)
    with pytest.raises(errors.GradientRuleError, match="forgotten return"):
        multiop.grad(summed(with_rule(lambda x: x, lambda u: None)))(X)


# What a function closes over


LARGE = tf.cast(tf.linspace(-1.0, 1.0, 600), tf.float64)  # TensorFlow copies a small tensor into a compiled function


@pytest.mark.parametrize("x", [X, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("of", [lambda w: w + 0, lambda w: w * 2], ids=["leaf", "intermediate"])
def test_what_is_closed_over(of, x):
    w = x + 0
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(w)
        y = of(w)
        z = closed_over_by(y)(x)
    with pytest.raises(errors.ClosedOverError, match="'y'"):
        tape.gradient(z, w)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = closed_over_by(y)(x)
    equal(tape.gradient(z, x), y)
    with pytest.raises(errors.ClosedOverError, match="'y'"):
        multiop.grad(lambda x: ops.sum(closed_over_by(x)(x)))(x)
    with pytest.raises(errors.ClosedOverError, match="'y'"):
        multiop.jit(multiop.grad(lambda w: ops.sum(closed_over_by(w)(x))))(w)
    equal(multiop.jit(multiop.grad(lambda x: ops.sum(closed_over_by(y)(x))))(x), y)
    equal(multiop.grad(lambda x: ops.sum(closed_over_by(multiop.op_stop_gradient(x))(x)))(x), x)


@pytest.mark.parametrize("x", [X, LARGE], ids=["small", "large"])
def test_what_is_closed_over_in_a_compiled_function(x):
    """TensorFlow makes one gradient for every use, with no place for an error: it is NaN, the others are right."""
    for compiled in (multiop.jit, tf.function):
        f = compiled(lambda x, y: closed_over_by(y)(x))
        equal(multiop.grad(summed(f))(x, 2 * x), 2 * x)
        assert np.isnan(multiop.grad(summed(f), 1)(x, 2 * x)).all()
        both = multiop.grad(lambda x: ops.sum(f(x, 2 * x)))(x)
        assert np.isnan(both).all()
        second = multiop.grad(
            lambda x: ops.sum(multiop.grad(lambda x, y: ops.sum(f(x, y) ** 2))(x, 3.0 * ops.ones_like(x)))
        )
        equal(second(x), 18 * np.ones(x.shape))
        mixed = multiop.grad(lambda x: ops.sum(multiop.grad(summed(f), 1)(x, x[::-1])))(x)
        assert np.isnan(mixed).all()
        w = x + 1
        of_w = compiled(lambda x: closed_over_by(w)(x))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            z = of_w(x)
        equal(tape.gradient(z, x), w)
        assert np.isnan(tape.gradient(z, w)).all()


def test_variables_that_are_closed_over():
    with pytest.raises(errors.ClosedOverError, match="Variable"):
        closed_over_by(V)(X)
    with pytest.raises(errors.ClosedOverError, match="Variable"):
        tf.function(closed_over_by(V))(X)
    fixed = tf.Variable(V, trainable=False)
    equal(multiop.grad(summed(closed_over_by(fixed)))(X), fixed)
    with tf.GradientTape() as tape:
        tape.watch(fixed)
        y = closed_over_by(fixed)(X)
    with pytest.raises(errors.ClosedOverError, match="'y'"):
        tape.gradient(y, fixed)


@pytest.mark.parametrize("wrap", WRAPS, ids=NAMES)
def test_variables_in_the_order_of_their_use(wrap):
    v = tf.Variable(V * 10)

    @multiop.op_custom_gradient
    def f(x):
        y = x * v + V

        def rule(u, variables):
            assert [w is v for w in variables] == [True, False]
            return u * v, [u * 3, u * x]

        return y, rule

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(X)
        y = wrap(f)(X)
        first = tape.gradient(y, [X, v, V])
    for found, expected in zip(first, [V * 10, [3, 3, 3], X], strict=True):
        equal(found, expected)
    equal(tape.gradient(first[0], v), [1, 1, 1])
    equal(tape.gradient(first[2], X), [1, 1, 1])


def test_a_rule_may_close_over_more_than_its_primals():
    w = S + 0

    @multiop.op_custom_gradient
    def f(x):
        return x * 1.0, lambda u: u * w * w

    for wrap in WRAPS:
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = wrap(f)(X)
            g = tape.gradient(y, X)
        equal(g, w**2)
        equal(outer.gradient(g, w), 2 * w)
        equal(
            multiop.grad(lambda w: ops.sum(multiop.grad(summed(with_rule(lambda x: x, lambda u: u * w)))(X)))(w),
            [1, 1, 1],
        )


def test_what_an_inner_rule_alone_closes_over_is_not_the_outer_functions():
    w = S + 0
    inner = with_rule(lambda x: x * 2, lambda u: u * w)
    outer = with_rule(lambda x: inner(x) * 3, lambda u: u * 5)
    with tf.GradientTape() as tape:
        tape.watch([X, w])
        y = outer(X)
    equal(tape.gradient(y, X), [5, 5, 5])
    outer = with_rule(lambda x: closed_over_by(w)(x), lambda u: u)
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = outer(X)
    with pytest.raises(errors.ClosedOverError):
        tape.gradient(y, w)


def test_variables_of_a_function_that_closes_over_none():
    def rule(u, variables):
        assert variables == []
        return u * 10, []

    equal(multiop.grad(summed(with_rule(lambda x: x * 2, rule)))(X), [10, 10, 10])


@pytest.mark.parametrize("wrap", WRAPS, ids=NAMES)
def test_what_a_branch_closes_over(wrap):
    def f(x, w):
        inner = multiop.op_custom_gradient(lambda x: (ops.cond(x > 0, lambda: x * w, lambda: x), lambda u: u))
        return inner(x)

    one, two = tf.constant(1.0, tf.float64), tf.constant(2.0, tf.float64)
    equal(wrap(multiop.grad(f))(one, two), 1)
    with pytest.raises(errors.ClosedOverError, match="'w'"):
        wrap(multiop.grad(f, 1))(one, two)

    def within(x, w):
        """Only the rule closes over a value from outside of the branch."""
        return ops.cond(x > 0, lambda: with_rule(lambda x: x * 2, lambda u: u * w)(x), lambda: x)

    equal(wrap(multiop.grad(within))(one, two), 2)
    equal(wrap(multiop.grad(lambda w: multiop.grad(within)(one, w)))(two), 1)


# Mapped


def test_vmap():
    equal(multiop.vmap(log1pexp)(ROWS), tf.math.softplus(ROWS))
    equal(multiop.vmap(multiop.grad(summed(log1pexp)))(ROWS), tf.sigmoid(ROWS))
    equal(multiop.grad(summed(multiop.vmap(log1pexp)))(ROWS), tf.sigmoid(ROWS))
    f = with_rule(lambda x, y: x * y, lambda u: (u * 100, None))
    mapped = summed(multiop.vmap(f, in_axes=(0, None)))
    equal(multiop.grad(mapped)(X, X[0]), [100, 100, 100])
    equal(multiop.jit(multiop.grad(mapped))(X, X[0]), [100, 100, 100])
    nested = multiop.vmap(multiop.vmap(with_rule(lambda x: x * x, lambda u: u * 100)))
    equal(multiop.grad(summed(nested))(ROWS), 100 * np.ones((2, 3)))
    equal(multiop.jacrev(log1pexp)(X), tf.linalg.diag(S))
    equal(multiop.hessian(summed(log1pexp))(X), tf.linalg.diag(S * (1 - S)))


def test_native_maps():
    f = with_rule(lambda x: x * x, lambda u: u * 100)

    def mapped(x):
        return tf.vectorized_map(f, x)

    equal(mapped(X), X**2)
    equal(tf.map_fn(f, X), X**2)
    for call in (mapped, tf.function(mapped), lambda x: tf.vectorized_map(tf.function(f), x)):
        with tf.GradientTape() as tape, refused():
            tape.watch(X)
            tape.gradient(call(X), X)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.map_fn(f, X)
    equal(tape.gradient(y, X), [100, 100, 100])
    equal(tf.vectorized_map(lambda x: multiop.grad(f)(x), X), [100, 100, 100])
    for wrap in WRAPS:
        with refused():
            wrap(multiop.grad(lambda x: ops.sum(tf.vectorized_map(f, x))))(X)

    def of_unknown_size(x):
        return multiop.vmap(f)(x)

    with refused():
        tf.function(of_unknown_size, input_signature=[tf.TensorSpec([None], tf.float64)])(X)


def test_native_maps_over_what_the_rule_alone_closes_over():
    x = tf.constant(2.0, tf.float64)
    with tf.GradientTape() as tape, refused():
        tape.watch(x)
        y = tf.vectorized_map(lambda c: with_rule(lambda x: x * 1, lambda u: u * c)(x), X)
        tape.gradient(y, x)

    def summed_gradients(c):
        return multiop.grad(with_rule(lambda x: x * 1, lambda u: u * c))(x)

    equal(tf.vectorized_map(summed_gradients, X), X)
    equal(multiop.vmap(summed_gradients)(X), X)


# What is refused


@pytest.mark.parametrize("wrap", WRAPS, ids=NAMES)
def test_forward_mode(wrap):
    with refused():
        wrap(lambda x: multiop.jvp(log1pexp, (x,), (x,))[1])(X)
    equal(multiop.hvp(summed(log1pexp), (X,), (X,)), S * (1 - S) * X)
    equal(multiop.jvp(multiop.jit(log1pexp), (X,), (X,))[1], S * X)  # the rule is seen to be linear


def test_forward_accumulators():
    f = with_rule(lambda x: x * x, lambda u: u * 100)
    with tf.autodiff.ForwardAccumulator(X, X), pytest.raises(LookupError, match="forward mode"):
        f(X)
    for wrap in WRAPS[1:]:
        with tf.autodiff.ForwardAccumulator(X, X) as accumulator:
            y = wrap(f)(X)
        equal(accumulator.jvp(y), 100 * X)  # the rule is seen to be linear
    with tf.autodiff.ForwardAccumulator(X, X), pytest.raises(errors.NonLinearRuleError):
        tf.function(clipped)(X)


def test_tapes_and_gradients_of_tensors():
    with refused(), multiop.GradientTape():
        pass
    with refused():
        multiop.gradients(summed(log1pexp), [X])
    with refused():
        multiop.gradients([X * X], [X])


def test_a_function_that_reads_values():
    def f(x):
        return (x * 2 if x[0] > 0 else x), lambda u: u

    with refused():
        multiop.op_custom_gradient(f)(X)
    with refused():
        multiop.op_custom_gradient(lambda x: (tf.constant(x.numpy()), lambda u: u))(X)
    with refused():
        multiop.op_custom_gradient(lambda x: (tf.constant(np.asarray(x)), lambda u: u))(X)
    with refused():
        multiop.op_custom_gradient(lambda x: (ops.convert_to_numpy(x), lambda u: u))(X)


# Elsewhere


def test_half_precision_and_threads():
    found = {}

    def run(k):
        with multiop.use_backend("tensorflow"):
            found[k] = multiop.grad(summed(log1pexp))(tf.cast(X, tf.float16) * k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for k, g in found.items():
        assert g.dtype is tf.float16
        np.testing.assert_allclose(g.numpy(), tf.sigmoid(X * k).numpy(), rtol=4e-3)


def test_attached_gradients():
    f = summed(lambda x: multiop.op_attach_gradient(ops.sin(x), 5 * x, x))
    equal(multiop.grad(f)(X), 5 * X)
    equal(multiop.jit(multiop.grad(f))(X), 5 * X)


def test_unknown_shapes():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float64)])
    def f(x):
        return multiop.grad(summed(log1pexp))(x)

    equal(f(X), S)
    equal(f(LARGE), tf.sigmoid(LARGE))
