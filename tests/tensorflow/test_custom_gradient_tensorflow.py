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


@wrapped
@pytest.mark.parametrize(("modes", "expected"), ORDERS.values(), ids=ORDERS)
def test_orders_and_modes_nest(wrap, modes, expected):
    derivative = ten
    for mode in reversed(modes):
        derivative = mode(derivative)
    found = wrap(derivative)(tf.constant(2.0))
    np.testing.assert_allclose(0.0 if found is None else found, expected, rtol=1e-5)


@wrapped
@pytest.mark.parametrize("order", ["r", "f", "rr", "fr", "ff", "rrr", "frr"])
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


def test_a_closed_over_argument_of_a_compiled_function_has_no_usable_gradient():
    @tf.function
    def masked(x, mask):
        return multiop.op_custom_gradient(lambda x: (x * mask, lambda upstream: upstream * mask))(x)

    assert float(reverse(lambda x: masked(x, outside))(x)) == 3.0
    assert float(forward(lambda x: masked(x, outside))(x)) == 3.0
    with tf.GradientTape() as tape:
        tape.watch([x, outside])
        y = masked(x, outside)
    dx, dmask = tape.gradient(y, [x, outside])
    assert float(dx) == 3.0
    assert np.isnan(dmask)
    with Accumulator(outside, tf.constant(1.0)) as accumulator:
        y = masked(x, outside)
    assert np.isnan(accumulator.jvp(y))


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


def test_variables_come_in_order_of_creation():
    many = [tf.Variable(float(k)) for k in range(20)]
    seen = []

    @multiop.op_custom_gradient
    def total(x):
        def grad(upstream, variables=None):
            seen.append(list(variables))
            return upstream, [upstream * k for k in range(len(variables))]

        return x + tf.add_n([v * 1.0 for v in reversed(many)]), grad

    with tf.GradientTape() as tape:
        y = total(x)
    assert [float(g) for g in tape.gradient(y, many)] == list(range(20))
    assert all(a is b for a, b in zip(seen[0], many, strict=True))


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
