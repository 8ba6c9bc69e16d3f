"""`op_custom_gradient` under TensorFlow's own tapes, accumulators, compilers and maps."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop
from multiop import errors

Accumulator = tf.autodiff.ForwardAccumulator


@multiop.op_custom_gradient
def ten(x):
    """x**3, with 10 x**2 for a derivative: apart from the true one at every order."""
    y = x**3
    e = y * 1.0

    def grad(upstream):
        return upstream * 10.0 * e / x

    return y, grad


@multiop.op_custom_gradient
def clipped(x):
    return x * 1.0, lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)


def reverse(f):
    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return derivative


def forward(f):
    def derivative(x):
        with Accumulator(x, tf.ones_like(x)) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    return derivative


WRAPPERS = {
    "eager": lambda f: f,
    "function": tf.function,
    "xla": lambda f: tf.function(f, jit_compile=True),
}
wrapped = pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)

ORDERS = {
    "r": ((reverse,), 40.0),
    "f": ((forward,), 40.0),
    "rr": ((reverse, reverse), 40.0),
    "fr": ((forward, reverse), 40.0),
    "ff": ((forward, forward), 40.0),
    "rf": ((reverse, forward), 40.0),
    "rrr": ((reverse, reverse, reverse), 20.0),
    "fff": ((forward, forward, forward), 20.0),
    "frr": ((forward, reverse, reverse), 20.0),
    "rrrr": ((reverse, reverse, reverse, reverse), 0.0),
}


@pytest.mark.rotating
@wrapped
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.slow_on(wrap=WRAPPERS["eager"], order="fff")  # TensorFlow traces each step of each accumulator
@pytest.mark.slow_on(wrap=WRAPPERS["xla"], order="fff")
@pytest.mark.slow_on(wrap=WRAPPERS["xla"], order="rrrr")
def test_orders_and_modes_nest(wrap, order):
    (modes, expected), derivative = ORDERS[order], ten
    for mode in reversed(modes):
        derivative = mode(derivative)
    found = wrap(derivative)(tf.constant(2.0))
    np.testing.assert_allclose(0.0 if found is None else found, expected, rtol=1e-5)


@pytest.mark.rotating
@pytest.mark.parametrize("wrap", [WRAPPERS["function"], WRAPPERS["xla"]], ids=["function", "xla"])
@pytest.mark.parametrize("order", ["r", "f", "rr", "fr", "ff", "rrr", "frr"])
@pytest.mark.slow_on(wrap=WRAPPERS["xla"], order="ff")
@pytest.mark.slow_on(wrap=WRAPPERS["xla"], order="frr")
@pytest.mark.slow_on(wrap=WRAPPERS["xla"], order="rrr")
def test_orders_and_modes_around_a_compiled_function(wrap, order):
    modes, expected = ORDERS[order]
    derivative = wrap(ten)
    for mode in reversed(modes):
        derivative = mode(derivative)
    np.testing.assert_allclose(derivative(tf.constant(2.0)), expected, rtol=1e-5)


def test_vectorized_map_of_and_under_gradients():
    x = tf.constant([2.0, 3.0])

    def mapped(f):
        return lambda v: tf.vectorized_map(f, v)

    for derivative, expected in (
        (mapped(reverse(ten)), [40.0, 90.0]),
        (reverse(mapped(ten)), [40.0, 90.0]),
        (forward(mapped(ten)), [40.0, 90.0]),
        (mapped(forward(ten)), [40.0, 90.0]),
        (reverse(mapped(reverse(ten))), [40.0, 60.0]),
        (mapped(reverse(reverse(ten))), [40.0, 60.0]),
        (reverse(reverse(mapped(ten))), [40.0, 60.0]),
        (reverse(mapped(tf.function(ten))), [40.0, 90.0]),
        (reverse(lambda v: tf.map_fn(ten, v)), [40.0, 90.0]),
    ):
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-5)


def test_vectorized_map_of_a_rule_that_closes_over_the_mapped_value():
    def scaled(c):
        return multiop.op_custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * c))(tf.constant(1.0) * x)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(scaled, tf.constant([1.0, 2.0, 3.0]))
    assert float(tape.gradient(y, x)) == 6.0


def test_vectorized_map_of_a_function_that_calls_on_an_unmapped_value_raises():
    inner = tf.function(lambda a, b: ten(a) + ten(b))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape, pytest.raises(errors.UnsupportedError, match="ten"):
        tape.watch(x)
        y = tf.vectorized_map(lambda a: inner(a, x), tf.constant([1.0, 2.0]))
        tape.gradient(y, x)


@pytest.mark.parametrize("use_pfor", [True, False])
def test_jacobian(use_pfor):
    x = tf.constant([2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ten(x)
    found = tape.jacobian(y, x, experimental_use_pfor=use_pfor)
    np.testing.assert_allclose(found, [[40.0, 0.0], [0.0, 90.0]], rtol=1e-5)


@wrapped
def test_control_flow(wrap):
    def looped(x):
        return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + ten(x)), (0, 0.0), maximum_iterations=2)[1]

    def branched(x):
        return tf.cond(x > 0, lambda: ten(x), lambda: x)

    x = tf.constant(2.0)
    np.testing.assert_allclose(wrap(reverse(looped))(x), 80.0, rtol=1e-5)
    np.testing.assert_allclose(reverse(wrap(branched))(x), 40.0, rtol=1e-5)
    np.testing.assert_allclose(wrap(reverse(reverse(branched)))(x), 40.0, rtol=1e-5)


def test_autograph_converts_what_the_function_does():
    @multiop.op_custom_gradient
    def chosen(x):
        if x > 0:
            y = x * 2.0
        else:
            y = x * 3.0
        return y, lambda upstream: upstream * 7.0

    np.testing.assert_allclose(reverse(tf.function(chosen))(tf.constant(2.0)), 7.0)
    np.testing.assert_allclose(tf.function(chosen)(tf.constant(-2.0)), -6.0)


def positive_part(x):
    if x > 0:
        y = x * 2.0
    else:
        y = x * 0.0
    return y


@multiop.op_custom_gradient
def custom_part(x):
    return positive_part(x), lambda upstream: upstream * 2.0


CALLERS = {
    "grad": (lambda x: multiop.grad(positive_part)(x), 2.0),
    "jvp": (lambda x: multiop.jvp(positive_part, (x,), (tf.constant(1.0),))[1], 2.0),
    "checkpoint": (lambda x: multiop.grad(multiop.checkpoint(positive_part))(x), 2.0),
    "custom": (lambda x: custom_part(x), 4.0),
    "cond": (lambda x: multiop.op_cond(x < 100.0, true_fn=lambda: positive_part(x), false_fn=lambda: x), 4.0),
    "map": (lambda x: multiop.op_map(positive_part, x[None])[0], 4.0),
    "fori_loop": (lambda x: multiop.op_fori_loop(0, 2, lambda i, y: positive_part(y), x), 8.0),
    "jit": (lambda x: multiop.jit(positive_part)(x), 4.0),
    "gradients": (lambda x: multiop.gradients(positive_part, x)[0], 2.0),
}


@pytest.mark.parametrize(("call", "expected"), CALLERS.values(), ids=CALLERS)
def test_autograph_converts_users_functions(call, expected):
    assert float(tf.function(call)(tf.constant(2.0))) == expected


def test_autograph_leaves_the_package_alone(monkeypatch):
    from tensorflow.python.autograph.impl import api

    converted, convert = [], api._convert_actual
    monkeypatch.setattr(api, "_convert_actual", lambda f, ctx: converted.append(f) or convert(f, ctx))
    monkeypatch.setenv("AUTOGRAPH_STRICT_CONVERSION", "1")  # what it cannot convert is an error

    @tf.function
    def program(x):
        y = multiop.op_sum(multiop.op_take(ten(x), [0, 1])) + multiop.op_max(x, axis=0) + multiop.op_softmax(x)[0]
        z = multiop.op_vectorize(multiop.op_tanh)(x) + multiop.vmap(multiop.grad(multiop.op_tanh))(x)
        return multiop.op_cond(y > 0, lambda: z, lambda: -z)

    assert program(tf.constant([1.0, 2.0])).shape == (2,)
    assert converted
    assert [f for f in converted if f.__module__.startswith("multiop.") and not hasattr(f, "__wrapped__")] == []


@pytest.mark.parametrize("rule", ["linear", "not linear"])
@pytest.mark.parametrize("trained", [False, True])
def test_a_saved_model_keeps_the_gradient(tmp_path, rule, trained):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def __call__(self, x):
            def f(x):
                e = tf.exp(x)

                def grad(upstream):
                    return upstream * 7.0 * e if rule == "linear" else tf.clip_by_value(upstream, -1.0, 1.0) * 7.0 * e

                return e * 1.0, grad

            return multiop.checkpoint(multiop.op_custom_gradient(f))(x) * 3.0

    model, x = Model(), tf.constant([0.0, 1.0])
    if trained:
        reverse(model)(x)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(model, str(tmp_path), options=options)
    loaded = tf.saved_model.load(str(tmp_path))
    expected = (21.0 if rule == "linear" else 7.0) * np.exp([0.0, 1.0])
    np.testing.assert_allclose(loaded(x), 3.0 * np.exp([0.0, 1.0]), rtol=1e-6)
    np.testing.assert_allclose(reverse(loaded)(x), expected, rtol=1e-6)
    if rule == "linear":
        np.testing.assert_allclose(reverse(lambda x: reverse(loaded)(x))(x), expected, rtol=1e-6)


@wrapped
def test_symbolic_gradients(wrap):
    @wrap
    def orders(x):
        y = ten(x)
        first = tf.gradients(y, x)[0]
        second = tf.gradients(first, x)[0]
        return first, second, tf.gradients(second, x)[0]

    if wrap is WRAPPERS["eager"]:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            found = session.run(orders(tf.constant(2.0)))
    else:
        found = orders(tf.constant(2.0))
    np.testing.assert_allclose(found, [40.0, 40.0, 20.0], rtol=1e-5)


def test_functions_run_eagerly():
    tf.config.run_functions_eagerly(True)
    try:
        np.testing.assert_allclose(reverse(tf.function(ten))(tf.constant(2.0)), 40.0, rtol=1e-5)
    finally:
        tf.config.run_functions_eagerly(False)


def test_recompute_grad_and_persistent_tapes():
    x = tf.constant(2.0)
    np.testing.assert_allclose(reverse(tf.recompute_grad(ten))(x), 40.0, rtol=1e-5)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ten(x)
    np.testing.assert_allclose([tape.gradient(y, x), tape.gradient(y, x)], [40.0, 40.0], rtol=1e-5)


# outputs and upstreams


@multiop.op_custom_gradient
def several(x, n):
    e = tf.exp(x)

    def grad(de, dn, dx):
        assert dn is None
        return de * e * 3.0 + dx * 5.0, None

    return (e, n + 1, x * 2.0), grad


SIGNATURES = {
    "eager": None,
    "rank": [tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)],
    "nothing": [tf.TensorSpec(None, tf.float32), tf.TensorSpec([], tf.int32)],
}


@pytest.mark.parametrize("signature", SIGNATURES.values(), ids=SIGNATURES)
def test_unused_and_integer_outputs_of_known_and_unknown_shape(signature):
    f = several if signature is None else tf.function(lambda x, n: several(x, n), input_signature=signature)
    x = tf.constant([0.0, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        e, n, y = f(x, tf.constant(1))
    assert int(n) == 2
    np.testing.assert_allclose(tape.gradient(e, x), 3 * np.exp([0.0, 1.0]), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), [5.0, 5.0])
    np.testing.assert_allclose(tape.gradient([e, y], x), 3 * np.exp([0.0, 1.0]) + 5, rtol=1e-6)
    with Accumulator(x, tf.constant([1.0, 2.0])) as accumulator:
        e, _, y = f(x, tf.constant(1))
    np.testing.assert_allclose(accumulator.jvp(e), 3 * np.exp([0.0, 1.0]) * [1, 2], rtol=1e-6)
    np.testing.assert_allclose(accumulator.jvp(y), [5.0, 10.0])


@wrapped
def test_indexed_upstreams_are_dense(wrap):
    factor = tf.constant([5.0, 6.0, 7.0])

    @multiop.op_custom_gradient
    def f(x):
        def grad(upstream):
            assert isinstance(upstream, tf.Tensor)
            return upstream * factor

        return x * 2.0, grad

    found = reverse(wrap(lambda x: tf.gather(f(x), [0, 0, 2])))(tf.constant([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, [10.0, 0.0, 7.0])


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float64, tf.complex64, tf.complex128])
def test_dtypes_follow_the_native_rule(dtype):
    x = tf.cast([1.0, 2.0], dtype)
    upstream = tf.ones_like(x)
    if dtype.is_complex:
        x, upstream = x * tf.cast(1 + 2j, dtype), upstream * tf.cast(1 - 3j, dtype)
    square = multiop.op_custom_gradient(lambda x: (x * x, lambda upstream: upstream * 2 * tf.math.conj(x)))
    found = []
    for f in (square, lambda x: x * x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        with Accumulator(x, upstream) as accumulator:
            z = f(x)
        found.append([tape.gradient(y, x, upstream).numpy(), accumulator.jvp(z).numpy()])
    np.testing.assert_array_equal(np.asarray(found[0], np.complex128), np.asarray(found[1], np.complex128))
    assert found[0][0].dtype == dtype.as_numpy_dtype


def test_compute_gradient():
    @multiop.op_custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    x = tf.constant([[-1.0, 0.5], [2.0, 0.0]], tf.float64)
    for f in (log1pexp, reverse(log1pexp), reverse(reverse(log1pexp))):
        theoretical, numerical = tf.test.compute_gradient(f, [x])
        np.testing.assert_allclose(theoretical, numerical, atol=1e-6)


# forward mode


def test_a_rule_that_is_not_linear_raises_in_forward_mode_alone():
    x = tf.constant(2.0)
    assert float(reverse(clipped)(x)) == 1.0
    assert float(reverse(tf.function(clipped))(x)) == 1.0
    assert float(reverse(reverse(lambda x: clipped(x * x)))(x)) == 2.0
    assert float(tf.function(reverse(reverse(lambda x: clipped(x * x))))(x)) == 2.0
    compiled = tf.function(clipped), tf.function(clipped, jit_compile=True)
    for f in (forward(clipped), tf.function(forward(clipped)), *map(forward, compiled)):
        with pytest.raises(errors.NonLinearRuleError, match="clipped"):
            f(x)
    with pytest.raises(errors.NonLinearRuleError):
        multiop.jvp(tf.function(clipped), (x,), (x,))
    with pytest.raises(errors.NonLinearRuleError):
        multiop.jvp(clipped, (x,), (x,))


@pytest.mark.parametrize(
    "rule",
    [
        lambda u: u * 2.0 + 1.0,
        lambda u: tf.constant([3.0, 4.0]),
        lambda u: u * u,
        lambda u: tf.abs(u),
        lambda u: tf.stop_gradient(u) * 2.0,
        lambda u: tf.cast(tf.cast(u, tf.int32), tf.float32),
        lambda u: tf.where(u > 0, u, 0.0),
        lambda u: tf.concat([u[:1], tf.ones_like(u[1:])], 0),
        lambda u: tf.function(tf.nn.relu)(u),
        lambda u: tf.cond(tf.reduce_sum(u) > 0, lambda: u, lambda: 2 * u),
        lambda u: u / tf.norm(u),
        lambda u: tf.sort(u),
        lambda u: u * 2.0 if tf.executing_eagerly() and float(tf.reduce_sum(u)) > 0 else u * u,
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_what_is_not_linear_is_found(rule, wrap):
    f = multiop.op_custom_gradient(lambda x: (x * 1.0, rule))
    with pytest.raises(errors.NonLinearRuleError):
        wrap(forward(f))(tf.constant([1.0, 2.0]))


@pytest.mark.parametrize(
    ("rule", "matrix"),
    [
        (lambda u: u * 2.0 + tf.zeros_like(u), [[2, 0], [0, 2]]),
        (lambda u: tf.where([True, False], u, 0.0), [[1, 0], [0, 0]]),
        (lambda u: tf.concat([u[1:], tf.zeros([1])], 0), [[0, 1], [0, 0]]),
        (lambda u: tf.linalg.matvec(tf.constant([[1.0, 2.0], [3.0, 4.0]]), u), [[1, 2], [3, 4]]),
        (lambda u: tf.einsum("ij,j->i", tf.constant([[1.0, 2.0], [3.0, 4.0]]), u), [[1, 2], [3, 4]]),
        (lambda u: tf.function(lambda v: v * 3.0 - tf.reverse(v, [0]))(u), [[3, -1], [-1, 3]]),
        (lambda u: tf.cond(tf.constant(True), lambda: u, lambda: 2 * u), [[1, 0], [0, 1]]),
        (lambda u: tf.cumsum(u), [[1, 0], [1, 1]]),
        (lambda u: tf.scatter_nd([[1], [0]], u, [2]), [[0, 1], [1, 0]]),
        (lambda u: tf.tile(tf.reduce_sum(u, keepdims=True), [2]), [[1, 1], [1, 1]]),
        (lambda u: tf.cast(tf.cast(u, tf.float64) / 2, tf.float32), [[0.5, 0], [0, 0.5]]),
        (lambda u: multiop.op_take(u, [1, 0]), [[0, 1], [1, 0]]),
        (lambda u: multiop.op_take(u, tf.constant([1, 1]), axis=0), [[0, 1], [0, 1]]),
        (lambda u: multiop.op_take_along_axis(u, [-1, 0]), [[0, 1], [1, 0]]),
        (lambda u: multiop.op_get_item(u, np.array([1, 0])), [[0, 1], [1, 0]]),
        (lambda u: multiop.op_slice(multiop.op_concatenate([u, u]), tf.constant([1]), (2,)), [[0, 1], [1, 0]]),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_a_linear_rule_is_transposed(rule, matrix, wrap):
    f = multiop.op_custom_gradient(lambda x: (x * 1.0, rule))
    x, tangent = tf.constant([1.0, 2.0]), tf.constant([5.0, 7.0])

    @wrap
    def pushed(x, tangent):
        with Accumulator(x, tangent) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    np.testing.assert_allclose(pushed(x, tangent), np.transpose(matrix) @ [5.0, 7.0], rtol=1e-6)
    np.testing.assert_allclose(multiop.jvp(wrap(f), (x,), (tangent,))[1], np.transpose(matrix) @ [5.0, 7.0], rtol=1e-6)


# closed-over values

x = tf.constant(2.0)
outside = tf.constant(3.0)
variable = tf.Variable(5.0, name="weight")


@multiop.op_custom_gradient
def uses_outside(x):
    return x * outside, lambda upstream: upstream * outside


@multiop.op_custom_gradient
def uses_variable(x):
    return x * variable, lambda upstream: upstream * variable


@multiop.op_custom_gradient
def routes_variable(x):
    def grad(upstream, variables=None):
        assert [v is variable for v in variables] == [True]
        return upstream * variable, [upstream * x * 7.0]

    return x * variable + 0.0 * variable, grad


@wrapped
def test_a_followed_tensor_that_is_closed_over_raises(wrap):
    assert float(reverse(wrap(uses_outside))(x)) == 3.0
    with tf.GradientTape() as tape, pytest.raises(errors.ClosedOverError, match="uses_outside closes over 'outside'"):
        tape.watch([x, outside])
        wrap(lambda x: uses_outside(x))(x)
    with Accumulator(outside, tf.constant(1.0)), pytest.raises(errors.ClosedOverError, match="'outside'"):
        wrap(lambda x: uses_outside(x))(x)


def test_the_argument_itself_in_the_closure_raises():
    f = multiop.op_custom_gradient(lambda y: (y * x, lambda upstream: upstream * x))
    with pytest.raises(errors.ClosedOverError, match="'x'"):
        reverse(f)(x)


def test_the_argument_itself_in_the_closure_is_a_constant_to_a_tape_within():
    @multiop.op_custom_gradient
    def f(y):
        with tf.GradientTape() as tape:
            tape.watch(y)
            z = y * x
        return tape.gradient(z, y), lambda upstream: upstream

    np.testing.assert_array_equal(f(x), x)  # where nothing around it records, too


def test_a_stopped_or_unfollowed_value_may_be_closed_over():
    f = multiop.op_custom_gradient(lambda x: (x * tf.stop_gradient(outside), lambda upstream: upstream * 4.0))
    with tf.GradientTape() as tape:
        tape.watch([x, outside])
        y = f(x)
    assert float(tape.gradient(y, x)) == 4.0
    f = multiop.op_custom_gradient(lambda x: (x * multiop.op_stop_gradient(variable), lambda upstream: upstream * 4.0))
    assert float(reverse(f)(x)) == 4.0


def test_a_nested_rule_that_reaches_a_followed_value_raises():
    rounded = multiop.op_custom_gradient(lambda c, x: (tf.round(c) * x, lambda upstream: (upstream, upstream)))
    f = multiop.op_custom_gradient(lambda x: (rounded(outside, x), lambda upstream: upstream))
    with tf.GradientTape() as tape, pytest.raises(errors.ClosedOverError, match="'outside'"):
        tape.watch(outside)
        f(x)


@pytest.mark.parametrize("name", ["op_cond", "op_switch"])
def test_a_tensor_of_the_graph_that_is_closed_over_through_a_branch_raises(name):
    def scaled(c, k):
        branches = [lambda: c * 2.0, lambda: c * 3.0]
        return multiop.op_switch(k, branches) if name == "op_switch" else multiop.op_cond(k > 0, *branches)

    @tf.function(autograph=False)
    def through(c, k):
        f = multiop.op_custom_gradient(lambda x: (x * scaled(c, k), lambda upstream: upstream * scaled(c, k)))
        return tf.gradients(f(x), c)

    with pytest.raises(errors.ClosedOverError, match="'c'"):
        through(x, tf.constant(1))


def test_a_closed_over_tensor_of_the_graph_raises_where_its_gradient_is_asked_for():
    @tf.function
    def through(x):
        c = x * 2.0
        f = multiop.op_custom_gradient(lambda x: (x * c, lambda upstream: upstream * c))
        return tf.gradients(f(x), x)

    with pytest.raises(errors.ClosedOverError, match="'c'"):
        through(x)

    @tf.function
    def beside(x):
        c = tf.constant(3.0) * 2.0
        f = multiop.op_custom_gradient(lambda x: (x * c, lambda upstream: upstream * c))
        return tf.gradients(f(x), x)

    assert float(beside(x)[0]) == 6.0


def masked(x, mask):
    return multiop.op_custom_gradient(lambda x: (x * mask, lambda upstream: upstream * 3.0))(x)


compiled_masked = tf.function(masked, autograph=False)
CALLS_MASKED = {
    "compiled": masked,
    "within a compiled function": lambda x, mask: compiled_masked(x, mask * 1.0),
    "behind operations": lambda x, mask: masked(x, tf.sin(mask) * 1.0) + x,
    "in a branch": lambda x, mask: tf.cond(x > 0.0, lambda: masked(x, mask), lambda: x),
    "in a loop": lambda x, mask: tf.while_loop(lambda k, _: k < 2, lambda k, y: (k + 1, masked(y, mask)), [0, x])[1],
    "by multiop.jit": multiop.jit(masked),
}


@pytest.mark.parametrize("name", CALLS_MASKED)
def test_a_closed_over_argument_of_a_compiled_function_raises_where_it_is_watched(name):
    call = CALLS_MASKED[name]
    call = call if name == "by multiop.jit" else tf.function(call, autograph=False)
    right = reverse(lambda x: call(x, outside))(x)  # traced where nothing is wrong, and called again where it is
    assert np.isfinite(float(right))
    for source in (outside, x):
        with tf.GradientTape() as tape:
            tape.watch(source)
            scaled = source * 1.0
            y = call(x, outside) if source is x else None
            if source is outside:
                for operand in (outside, scaled):
                    with pytest.raises(errors.ClosedOverError, match="<lambda> closes over 'mask'"):
                        call(x, operand)
    assert float(tape.gradient(y, x)) == float(right)
    with Accumulator(outside, tf.constant(1.0)), pytest.raises(errors.ClosedOverError):
        call(x, outside)


def test_a_closed_over_argument_is_refused_in_a_graph_and_in_multiop_transforms():
    @tf.function(autograph=False)
    def around(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(mask)
            y = compiled_masked(x, mask)
        return tape.gradient(y, mask)

    with pytest.raises(errors.ClosedOverError, match="'mask'"):
        around(x, outside)
    for call in CALLS_MASKED.values():
        call = tf.function(call, autograph=False)

        def gradients(x, mask, of, stop=False, call=call):
            scaled = mask * 1.0
            y = call(x, scaled)
            compiled_masked(x, mask)  # unused
            return multiop.gradients(y, [x, mask][:of], stop_gradients=[scaled] if stop else None)

        assert float(tf.function(lambda x, mask: gradients(x, mask, 1), autograph=False)(x, outside)[0]) > 0
        assert float(tf.function(lambda x, mask: gradients(x, mask, 2, True)[0], autograph=False)(x, outside)) > 0
        with pytest.raises(errors.ClosedOverError, match="'mask'"):
            tf.function(lambda x, mask: gradients(x, mask, 2), autograph=False)(x, outside)
    for transform in (multiop.grad, multiop.hessian, lambda fun: lambda m: multiop.jvp(fun, (m,), (m,))):
        with pytest.raises(errors.ClosedOverError, match="'mask'"):
            transform(lambda mask: compiled_masked(x, mask))(outside)


@wrapped
def test_a_variable_raises_or_is_routed(wrap):
    with pytest.raises(errors.ClosedOverError, match="uses_variable closes over weight"):
        wrap(lambda x: uses_variable(x))(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(routes_variable)(x)
    assert [float(g) for g in tape.gradient(y, [x, variable])] == [5.0, 14.0]
    with Accumulator(variable, tf.constant(3.0)) as accumulator:
        y = wrap(routes_variable)(x)
    assert float(accumulator.jvp(y)) == 42.0


COMPILERS = {"function": tf.function, "xla": WRAPPERS["xla"], "jit": multiop.jit}


@pytest.mark.parametrize("compiled", COMPILERS.values(), ids=COMPILERS)
def test_a_followed_tensor_that_a_compiled_function_closes_over_raises(compiled):
    helper = compiled(lambda x: x * outside)
    f = multiop.op_custom_gradient(lambda x: (tf.sin(helper(x)), lambda upstream: upstream * 4.0))
    with tf.GradientTape() as tape, pytest.raises(errors.ClosedOverError, match="'outside'|float32"):
        tape.watch([x, outside])
        f(x)
    with Accumulator(outside, tf.constant(1.0)), pytest.raises(errors.ClosedOverError):
        f(x)
    assert float(reverse(f)(x)) == float(forward(f)(x)) == 4.0  # nothing follows `outside`


def test_a_compiled_function_may_stop_what_it_closes_over():
    @tf.function
    def nested(x):
        return x * 2.0, x * tf.stop_gradient(outside)

    @tf.function
    def helper(x):
        y = tf.cond(x > 0, lambda: nested(x)[1], lambda: x * tf.stop_gradient(outside))
        return x * outside, y + tf.cast(tf.cast(outside, tf.int32), tf.float32) * nested(x)[1]

    f = multiop.op_custom_gradient(lambda x: (helper(x)[1], lambda upstream: upstream * 4.0))
    with tf.GradientTape() as tape:
        tape.watch([x, outside])
        y = f(x)
    assert [dy is None for dy in tape.gradient(y, [x, outside])] == [False, True]
    f = multiop.op_custom_gradient(lambda x: (helper(x)[0], lambda upstream: upstream * 4.0))
    with tf.GradientTape() as tape, pytest.raises(errors.ClosedOverError):
        tape.watch(outside)
        f(x)


def test_the_tangent_of_what_a_compiled_function_is_called_on_is_not_closed_over():
    helper = tf.function(lambda x: x * 3.0)
    f = multiop.op_custom_gradient(lambda x: (helper(x), lambda upstream: upstream * 4.0))
    tangent = tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch(tangent)
        with Accumulator(x, tangent) as accumulator:
            y = f(x)
        pushed = accumulator.jvp(y)
    assert float(tape.gradient(pushed, tangent)) == 4.0


def test_checkpoint_keeps_the_gradient_of_what_a_compiled_function_closes_over():
    frozen = tf.Variable(5.0, trainable=False)
    helper = tf.function(lambda x: x * outside * frozen)
    f = multiop.checkpoint(lambda x: tf.sin(helper(x)) + frozen)
    found = []
    for g in (f, lambda x: tf.sin(x * outside * frozen) + frozen):
        with tf.GradientTape() as tape:
            tape.watch([x, outside, frozen])
            y = g(x)
        found.append([float(dy) for dy in tape.gradient(y, [x, outside, frozen])])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


# a variable that is not trainable is followed where it is watched by hand

frozen = tf.Variable(3.0, trainable=False, name="frozen")
READS = {
    "product": lambda x: x * frozen,
    "value": lambda x: x * frozen.read_value(),
    "list": lambda x: tf.add_n([x, x, frozen, -x]) + x * 2.0 + (frozen - 3.0) * (x - 1.0),
    "gather": lambda x: x * tf.gather(frozen[None], [0])[0],
    "function": tf.function(lambda x: x * frozen),
    "cond": lambda x: tf.cond(x > 0, lambda: x * frozen, lambda: x),
}
reads = pytest.mark.parametrize("read", READS.values(), ids=READS)


@wrapped
@reads
def test_a_watched_variable_that_is_not_trainable_raises_or_is_routed(wrap, read):
    dropping = multiop.op_custom_gradient(lambda x: (read(x), lambda upstream: upstream * 3.0))

    @multiop.op_custom_gradient
    def routing(x):
        def grad(upstream, variables=None):
            return upstream * 3.0, [upstream * x * 7.0 for _ in variables]

        return read(x), grad

    for new_tape in (tf.GradientTape, multiop.GradientTape):
        with new_tape() as tape, pytest.raises(errors.ClosedOverError, match="frozen"):
            tape.watch(frozen)
            wrap(lambda x: dropping(x))(x)
        with new_tape() as tape:
            tape.watch(x)
            tape.watch(frozen)
            y = wrap(routing)(x) + frozen
        assert [float(g) for g in tape.gradient(y, [x, frozen])] == [3.0, 15.0]
    if read is READS["cond"] and wrap is not WRAPPERS["eager"]:
        return  # TensorFlow's accumulator fails by itself on a variable that a compiled tf.cond reads
    with Accumulator(frozen, tf.constant(1.0)), pytest.raises(errors.ClosedOverError, match="frozen"):
        wrap(lambda x: dropping(x))(x)
    with Accumulator(frozen, tf.constant(2.0)) as accumulator:
        y = wrap(routing)(x) + frozen
    assert float(accumulator.jvp(y)) == 30.0


@wrapped
@reads
def test_an_unwatched_variable_that_is_not_trainable_is_a_constant(wrap, read):
    seen = []

    @multiop.op_custom_gradient
    def f(x):
        def grad(upstream, variables=None):
            seen.append(variables)
            return upstream * 4.0, []

        return read(x), grad

    assert float(reverse(wrap(f))(x)) == float(forward(wrap(f))(x)) == 4.0
    assert not any(seen)


def test_a_variable_that_is_watched_after_the_trace_raises():
    f = tf.function(multiop.op_custom_gradient(lambda x: (x * frozen, lambda upstream: upstream * 3.0)))
    assert float(reverse(f)(x)) == 3.0
    with tf.GradientTape() as tape:
        tape.watch([x, frozen])
        with pytest.raises(errors.ClosedOverError, match="frozen"):
            f(x)


def test_a_watched_variable_may_be_stopped():
    f = multiop.op_custom_gradient(
        lambda x: (x * multiop.op_stop_gradient(frozen) + tf.stop_gradient(frozen), lambda upstream: upstream * 4.0)
    )
    with tf.GradientTape() as tape:
        tape.watch([x, frozen])
        y = f(x)
    assert float(tape.gradient(y, x)) == 4.0


many = [tf.Variable(float(k), name=f"v{k}", trainable=k != 4) for k in range(6)]
chosen = [3, 1, 5, 0, 4, 2]


def summed(x):
    return tf.add_n([x, *(many[k] * 1.0 for k in chosen)])


USES = {
    "operators": lambda x: x * many[3] + many[1] * many[5] + many[0] + many[4] + many[2],
    "list": lambda x: tf.add_n([x, *(many[k] for k in chosen)]),
    "function": tf.function(summed),
    "then": lambda x: tf.function(lambda x: many[3] + x + many[1])(x) + tf.function(summed)(x),
    "cond": lambda x: tf.cond(x > 0, lambda: summed(x), lambda: x + many[2]),
}


@pytest.mark.parametrize("wrap", [WRAPPERS["eager"], WRAPPERS["function"]], ids=["eager", "function"])
@pytest.mark.parametrize("body", USES.values(), ids=USES)
def test_variables_come_in_order_of_use(wrap, body):
    @multiop.op_custom_gradient
    def f(x):
        def grad(upstream, variables=None):
            return upstream, [upstream * place for place in range(len(variables))]

        return body(x), grad

    for order in ([3, 1, 5, 0, 4, 2], [3, 1, 5, 0, 2]):
        with tf.GradientTape() as tape:
            tape.watch([v for v in many if len(order) == 6 and not v.trainable])
            y = wrap(f)(x)
        found = tape.gradient(y, [many[k] for k in order])
        assert [float(g) for g in found] == list(range(len(order)))


def test_a_variable_of_a_nested_module_is_found():
    class Inner(tf.Module):
        def __init__(self):
            self.w = tf.Variable(2.0, name="deep")

        def __call__(self, x):
            return x * self.w

    class Outer(tf.Module):
        def __init__(self):
            self.layers = [{"a": Inner()}]

    module = Outer()
    f = multiop.op_custom_gradient(lambda x: (module.layers[0]["a"](x), lambda upstream: upstream))
    with pytest.raises(errors.ClosedOverError, match="deep"):
        f(x)


@wrapped
def test_what_the_rule_alone_closes_over_differentiates_at_second_order(wrap):
    f = multiop.op_custom_gradient(lambda x: (x * 1.0, lambda upstream: upstream * outside * outside))
    with tf.GradientTape() as tape:
        tape.watch(outside)
        dx = reverse(wrap(f))(x)
    assert float(dx) == 9.0
    assert float(tape.gradient(dx, outside)) == 6.0


# memory and threads


def test_residuals_live_as_long_as_the_tape():
    references = []

    @multiop.op_custom_gradient
    def f(x):
        kept, dropped = tf.exp(x), tf.sin(x)
        references.extend([weakref.ref(kept), weakref.ref(dropped)])
        return kept + dropped, lambda upstream: upstream * kept

    gc.disable()  # no cycle may be needed to free them
    try:
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        assert [r() is not None for r in references] == [True, False]
        del tape, y
        assert [r() is not None for r in references] == [False, False]
        f(x)
        assert [r() is not None for r in references] == [False] * 4
    finally:
        gc.enable()


@pytest.mark.usefixtures("young_heap")
def test_graphs_are_freed():
    graphs = []

    @tf.function(autograph=False)
    def f(x):
        graphs.append(weakref.ref(tf.compat.v1.get_default_graph()))
        return ten(x)

    reverse(f)(x)
    del f
    gc.collect()
    assert [graph() for graph in graphs] == [None]


def test_two_threads():
    wrong = []

    def work(k):
        z, w = tf.constant(float(k)), tf.constant(1.0)
        scaled = multiop.op_custom_gradient(lambda x: (x**3, lambda upstream: upstream * k * x * x))
        for _ in range(20):
            if float(reverse(reverse(scaled))(z)) != 2.0 * k * k or float(forward(scaled)(z)) != k**3:
                wrong.append(k)
            with multiop.use_backend("tensorflow"), tf.GradientTape() as tape:
                tape.watch(w)
                try:
                    multiop.op_custom_gradient(lambda x: (x * w, lambda upstream: upstream))(z)
                    wrong.append("closed over")
                except errors.ClosedOverError:
                    pass

    def run(k):
        with multiop.use_backend("tensorflow"):
            work(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# stop_gradient


@wrapped
def test_stop_gradient_is_zero_in_both_modes(wrap):
    f = wrap(lambda x: x * multiop.op_stop_gradient(x * variable))
    assert float(reverse(f)(x)) == 10.0
    assert float(forward(f)(x)) == 10.0
    with tf.GradientTape() as tape:
        y = wrap(lambda x: x * multiop.op_stop_gradient(variable))(x)
    assert tape.gradient(y, variable) is None
    with Accumulator(variable, tf.constant(1.0)) as accumulator:
        y = wrap(lambda x: x * multiop.op_stop_gradient(variable))(x)
    assert not accumulator.jvp(y, tf.UnconnectedGradients.ZERO)


def test_reverse_over_forward_of_residuals_whose_tangents_are_dropped():
    @multiop.op_custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    @multiop.op_custom_gradient
    def once(x):
        e = tf.exp(x)
        return e * 1.0, lambda upstream: upstream * e

    s = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(reverse(forward(log1pexp))(x), s * (1 - s), rtol=1e-5)
    for derivative in (forward(once), reverse(forward(once)), forward(forward(forward(once)))):
        np.testing.assert_allclose(derivative(x), np.exp(2.0), rtol=1e-5)


def _by_gradients(f):
    def derivative(x):
        z = x * 1.0
        return tf.gradients(f(z), [z])[0]

    return tf.function(derivative)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: reverse(tf.function(f)),
        lambda f: reverse(lambda x: tf.function(lambda: f(x))()),
        lambda f: tf.function(reverse(f)),
        _by_gradients,
    ],
    ids=["of a compiled function", "of one that closes over it", "compiled", "tf.gradients"],
)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_custom_gradient_of_what_a_custom_gradient_computed(derivative, depth):
    """What is computed inside, in a graph, is not taken for a value closed over."""
    product = multiop.op_custom_gradient(lambda a, b: (a * b, lambda u: (u * b, u * a)))
    for _ in range(depth - 1):
        inner = product
        product = multiop.op_custom_gradient(
            lambda a, b, f=inner: (f(a, b + 0.0), lambda u, f=inner: (f(u, b), f(u, a)))
        )
    sevenfold = multiop.op_custom_gradient(lambda x: (product(tf.sin(x), tf.cos(x)), lambda u: 7 * u))
    f = derivative(lambda x: sevenfold(x) * product(x, x + 1.0))
    expected = 7 * (x * x + x) + tf.sin(x) * tf.cos(x) * (2 * x + 1)
    np.testing.assert_allclose(f(x), expected, rtol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_forward_mode_of_a_rule_that_differentiates_a_branch_of_many_steps(compiled):
    """What the branch adds up in its gradient is zero in all terms but one, which many steps lead to."""

    def chosen(x):
        def long():
            return multiop.op_hypot(x, x) * 0.7

        return multiop.op_cond(multiop.op_sum(x) > 0, long, lambda: x)

    f = multiop.op_custom_gradient(lambda x: (chosen(x), lambda upstream: multiop.vjp(chosen, x)[1](upstream)))
    x, t = tf.constant([0.3, -0.2, 0.5]), tf.constant([1.0, 2.0, -1.0])
    tangent = (multiop.jit(multiop.jvp, static_argnums=0) if compiled else multiop.jvp)(f, (x,), (t,))[1]
    np.testing.assert_allclose(tangent, 0.7 * 2**0.5 * np.sign(x) * t, rtol=1e-6)
