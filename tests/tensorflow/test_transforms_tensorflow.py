"""multiop's transforms on TensorFlow: what they do to control flow, functions and checkpoints."""

from __future__ import annotations

import contextlib
import gc
import weakref

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.eager import context

import multiop
from multiop import errors
from multiop.backends.tensorflow import _internals


@multiop.op_custom_gradient
def ten(x):
    """x**3, with 10 x**2 for a derivative."""
    return x**3, lambda upstream: upstream * 10.0 * x * x


x = tf.constant(2.0)
one = tf.constant(1.0)
row = tf.constant([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("transform", "shape", "is_plain"),
    [
        (multiop.jit, (0, 3), True),
        (multiop.jit, (2, 3), False),
        (lambda f: multiop.jit(lambda x: f(x[:0])), (2, 3), True),
        (multiop.vmap, (2, 0), True),
        (multiop.vmap, (2, 3), False),
    ],
    ids=["jit", "jit, entries", "jit, empty inside", "vmap", "vmap, entries"],
)
def test_graphs_without_entries_run_as_they_are_written(transform, shape, is_plain, monkeypatch):
    """TensorFlow's optimizer of graphs divides by the size; the setting is the thread's, and is restored."""
    seen, guard = [], _internals.without_optimizer

    @contextlib.contextmanager
    def watched():
        with guard():
            seen.append(_options().graph_options.rewrite_options.disable_meta_optimizer)
            yield

    monkeypatch.setattr(_internals, "without_optimizer", watched)
    before = _options()
    mapped = transform(multiop.op_exp)
    for _ in range(2):
        assert multiop.op_size(mapped(tf.zeros(shape))) == (0 if is_plain else 6)
    assert seen == [True] * 2 * is_plain
    assert _options() == before


def _options():
    return tf.compat.v1.ConfigProto.FromString(context.context().function_call_options.config_proto_serialized)


@pytest.mark.parametrize(
    "make",
    [
        multiop.grad,
        multiop.jit,
        multiop.checkpoint,
        lambda f: multiop.op_custom_gradient(lambda x: (f(x), lambda u: u)),
    ],
    ids=["grad", "jit", "checkpoint", "rule"],
)
def test_tf_function_traces_what_a_transform_returns(make):
    seen = []

    def f(x):
        seen.append(tf.executing_eagerly())
        return x * x

    compiled = tf.function(make(f), autograph=False)
    for _ in range(2):
        compiled(x)
    assert not any(seen)
    assert compiled.experimental_get_tracing_count() == 1


def branched(x):
    return tf.cond(x > 1, lambda: ten(x), lambda: x)


def looped(x):
    return tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * x), (0, x))[1]


@pytest.mark.parametrize(
    "compiled", [multiop.jit, pytest.param(tf.function, marks=pytest.mark.rotating)], ids=["jit", "function"]
)
def test_forward_mode_through_control_flow(compiled):
    for f, derivative, second in ((branched, 40.0, 40.0), (looped, 32.0, 48.0)):

        def pushed(x, f=f):
            return multiop.jvp(compiled(f), (x,), (one,))[1]

        np.testing.assert_allclose(pushed(x), derivative, rtol=1e-6)
        np.testing.assert_allclose(multiop.grad(pushed)(x), second, rtol=1e-6)
        np.testing.assert_allclose(multiop.jvp(pushed, (x,), (one,))[1], second, rtol=1e-6)
        np.testing.assert_allclose(compiled(pushed)(x), derivative, rtol=1e-6)


def test_vmap_falls_back_where_there_is_no_vectorized_form():
    np.testing.assert_allclose(multiop.vmap(multiop.grad(branched))(row), [1.0, 40.0, 90.0], rtol=1e-6)
    np.testing.assert_allclose(multiop.vmap(multiop.grad(looped))(row), [4.0, 32.0, 108.0], rtol=1e-6)
    total = multiop.grad(lambda v: tf.reduce_sum(multiop.vmap(looped)(v)))
    np.testing.assert_allclose(total(row), [4.0, 32.0, 108.0], rtol=1e-6)


def test_vmap_passes_the_error_of_the_function_on():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        multiop.vmap(fails)(row)
    f = multiop.op_custom_gradient(lambda x: (x * 1.0, lambda upstream: None))
    with pytest.raises(errors.GradientRuleError, match="forgotten return"):
        multiop.vmap(multiop.grad(f))(row)


def test_vmap_over_axes_and_in_nests():
    matrix = tf.reshape(tf.range(6.0), [2, 3])
    np.testing.assert_allclose(multiop.vmap(tf.reduce_sum, in_axes=1)(matrix), [3.0, 5.0, 7.0])
    np.testing.assert_allclose(multiop.vmap(multiop.vmap(multiop.grad(ten)))(matrix), 10 * np.square(matrix), rtol=1e-6)
    both = multiop.vmap(lambda a, b: (a * b, tf.constant(3.0)), in_axes=(0, None))(row, x)
    np.testing.assert_allclose(both[0], [2.0, 4.0, 6.0])
    np.testing.assert_allclose(both[1], [3.0, 3.0, 3.0])
    assert multiop.vmap(lambda a: a * 2.0)(tf.zeros([0, 3])).shape == (0, 3)


def test_transforms_nest_in_any_order():
    pair = tf.constant([2.0, 3.0])

    def f(v):
        return ten(v[0]) * v[1]

    expected = [[120.0, 40.0], [40.0, 0.0]]
    for second in (
        multiop.hessian(f),
        multiop.jit(multiop.hessian(f)),
        multiop.hessian(multiop.jit(f)),
        multiop.jacrev(multiop.jacrev(f)),
        multiop.jacfwd(multiop.jacfwd(multiop.jit(f))),
        multiop.jacrev(multiop.jit(multiop.jacfwd(f))),
    ):
        found = np.array(second(pair))
        # the two mixed derivatives differ, since 10 x**2 is not the derivative of x**3
        np.testing.assert_allclose(np.sort(found.ravel()), np.sort(np.array(expected).ravel()), rtol=1e-5)
    mapped = lambda a, b: multiop.vmap(lambda a: multiop.jit(lambda p, q: ten(p) + ten(q))(a, b))(a)
    da, db = multiop.grad(lambda a, b: tf.reduce_sum(mapped(a, b)), argnums=(0, 1))(row, x)
    np.testing.assert_allclose(da, 10 * np.square(row), rtol=1e-6)
    np.testing.assert_allclose(db, 3 * 40.0, rtol=1e-6)


def test_jit_keeps_one_trace_per_signature():
    traces = []

    def f(x):
        traces.append(x.shape)
        return x * 2.0

    compiled = multiop.jit(f)
    for value in (row, row + 1, x, row):
        np.testing.assert_allclose(compiled(value), 2 * value.numpy())
    assert traces == [(3,), ()]


# checkpoint

factor = tf.constant(3.0)
variable = tf.Variable(5.0)


def plain(x):
    return tf.sin(x) * x * factor * variable


checkpointed = multiop.checkpoint(plain)
FORMS = {
    "eager": checkpointed,
    "function": tf.function(checkpointed, autograph=False),
    "xla": tf.function(checkpointed, autograph=False, jit_compile=True),
}


def gradients_of(f, sources):
    with tf.GradientTape() as tape:
        tape.watch([x, factor])
        y = f(x)
    return [float(g) for g in tape.gradient(y, sources)]


@pytest.mark.parametrize("f", FORMS.values(), ids=FORMS)
def test_checkpoint_keeps_every_gradient(f):
    sources = [x, factor, variable]
    np.testing.assert_allclose(gradients_of(f, sources), gradients_of(plain, sources), rtol=1e-5)

    def second(g):
        with tf.GradientTape() as tape:
            tape.watch([x, factor])
            with tf.GradientTape() as inner:
                inner.watch([x, factor])
                y = g(x)
            total = tf.add_n(inner.gradient(y, sources))
        return [float(g) for g in tape.gradient(total, sources)]

    np.testing.assert_allclose(second(f), second(plain), rtol=1e-5)
    for source in (x, factor):
        found = []
        for g in (f, plain):
            with tf.autodiff.ForwardAccumulator(source, one) as accumulator:
                y = g(x)
            found.append(float(accumulator.jvp(y)))
        np.testing.assert_allclose(*found, rtol=1e-5)
    np.testing.assert_allclose(multiop.jvp(f, (x,), (one,))[1], multiop.jvp(plain, (x,), (one,))[1], rtol=1e-5)


def test_checkpoint_composes():
    def pushed(f):
        def derivative(x):
            with tf.autodiff.ForwardAccumulator(x, one) as accumulator:
                y = f(x)
            return accumulator.jvp(y)

        return derivative

    np.testing.assert_allclose(multiop.grad(pushed(checkpointed))(x), multiop.grad(pushed(plain))(x), rtol=1e-5)
    np.testing.assert_allclose(
        multiop.vmap(multiop.grad(checkpointed))(row), [multiop.grad(plain)(z) for z in row], rtol=1e-5
    )
    np.testing.assert_allclose(multiop.grad(multiop.checkpoint(multiop.grad(ten)))(x), 40.0, rtol=1e-5)
    np.testing.assert_allclose(multiop.grad(multiop.checkpoint(checkpointed))(x), multiop.grad(plain)(x), rtol=1e-5)
    clipped = multiop.op_custom_gradient(lambda x: (x * 1.0, lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)))
    with pytest.raises(errors.NonLinearRuleError):
        multiop.jvp(multiop.checkpoint(clipped), (x,), (one,))


def test_checkpoint_lets_go_of_what_it_computes_again():
    references = []

    def f(x):
        a = tf.sin(x)
        b = a * variable
        references.extend([weakref.ref(a), weakref.ref(b)])
        return b * b

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = multiop.checkpoint(f)(x)
        assert [r() is not None for r in references] == [False, False]
        z = f(x)
        assert [r() is not None for r in references] == [False, False, True, True]
    np.testing.assert_allclose(tape.gradient(y, x), tape.gradient(z, x), rtol=1e-6)


def test_checkpoint_computes_again_under_xla():
    matrix = tf.constant(np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32))

    def f(x):
        return tf.reduce_sum(tf.tanh(tf.matmul(matrix, tf.tanh(tf.matmul(matrix, x)))))

    def products(f):
        compiled = tf.function(multiop.value_and_grad(f), autograph=False, jit_compile=True)
        return compiled.experimental_get_compiler_ir(matrix)(stage="optimized_hlo").count(" dot(")

    assert products(multiop.checkpoint(f)) == products(f) + 2


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_checkpoint_refuses_random_numbers_that_it_could_not_draw_again(wrap):
    for draw in (lambda: tf.random.uniform([]), lambda: tf.function(lambda: tf.random.normal([]))()):
        with pytest.raises(errors.UnsupportedError, match="random"):
            wrap(multiop.checkpoint(lambda x: x * draw()))(x)
        with pytest.raises(errors.UnsupportedError, match="random"):
            wrap(multiop.checkpoint(lambda x, k: multiop.op_switch(k, [draw, lambda: x])))(x, tf.constant(0))
    stateless = multiop.checkpoint(lambda x: x * tf.random.stateless_uniform([], [1, 2]))
    np.testing.assert_allclose(multiop.grad(stateless)(x), tf.random.stateless_uniform([], [1, 2]))


PICKS = {
    "take": lambda y: multiop.op_take(y, [2, 0, 0], axis=0),
    "tensor": lambda y: multiop.op_take(y, tf.constant([2, 0, 0]), axis=0),
    "item": lambda y: multiop.op_get_item(y, np.array([2, 0, 0])),
    "along": lambda y: multiop.op_take_along_axis(y, [2, 0, 0]),
}


@pytest.mark.parametrize("pick", PICKS.values(), ids=PICKS)
def test_second_derivatives_pass_through_what_is_picked(pick):
    z = tf.constant([0.1, 0.2, 0.3])

    def f(x):
        return multiop.op_sum(multiop.op_square(pick(multiop.op_tanh(x))))

    t = np.tanh([0.1, 0.2, 0.3])
    first, second = 1 - t**2, -2 * t * (1 - t**2)
    expected = np.diag([2, 0, 1] * (2 * first**2 + 2 * t * second))
    np.testing.assert_allclose(multiop.hessian(f)(z), expected, rtol=1e-5)
    np.testing.assert_allclose(multiop.hvp(f, (z,), (z,)), expected @ [0.1, 0.2, 0.3], rtol=1e-5)


OF_OUTSIDE = {  # what keeps the tensors that it was given for its gradient
    "a length": lambda x: multiop.op_hypot(x, x + 1),
    "a power": lambda x: multiop.op_power(x + 1, x),
    "kernels": lambda x: multiop.op_lgamma(multiop.op_erf(multiop.op_normalize(x)) + multiop.op_arctan2(x, x + 2)),
    "a decomposition": lambda x: multiop.op_pinv(x),
    "a complex one": lambda x: multiop.op_abs(multiop.op_svd(multiop.op_cast(x, "complex64"))[0]),
    "a checkpoint": lambda x: multiop.checkpoint(lambda a: multiop.op_sin(a * a))(x),
}
BRANCHES = {
    "op_cond": lambda x, f: multiop.op_cond(x[0, 0] > 0, lambda: f(x), lambda: -x),
    "op_switch": lambda x, f: multiop.op_switch(multiop.op_cast(x[0, 0] > 0, "int32"), [lambda: -x, lambda: f(x)]),
    "nested": lambda x, f: BRANCHES["op_cond"](x, lambda x: BRANCHES["op_cond"](x, f)),
}


@pytest.mark.parametrize("name", OF_OUTSIDE)
@pytest.mark.parametrize("branches", ["op_cond", "op_switch", pytest.param("nested", marks=pytest.mark.tier("full"))])
def test_a_branch_computes_with_a_tensor_from_outside(name, branches):
    f, x = OF_OUTSIDE[name], tf.constant([[0.9, 0.4], [-0.3, 1.2]])

    def gradient(of):
        return multiop.grad(lambda x: multiop.op_sum(multiop.op_sin(of(x))))

    compiled = multiop.jit(gradient(lambda x: BRANCHES[branches](x, f)))
    np.testing.assert_allclose(compiled(x), gradient(f)(x), rtol=1e-5, atol=1e-6)


def test_a_nested_branch_is_differentiated_after_something_was_closed_over():
    """A guard, once made, has every compiled function looked through, and what its branches call."""

    @tf.function
    def closes_over(x):
        y = x * 2
        return multiop.op_custom_gradient(lambda a: (a * y, lambda upstream: upstream))(x)

    closes_over(tf.ones([2]))
    test_a_branch_computes_with_a_tensor_from_outside("a length", "nested")


@pytest.mark.parametrize("name", ["op_cond", "op_switch"])
def test_a_rule_in_a_branch_closes_over_a_tensor_from_outside(name):
    def f(x):
        mask = multiop.op_stop_gradient(x) * 2

        @multiop.op_custom_gradient
        def masked(a):
            return a * a, lambda upstream: upstream * mask

        return BRANCHES[name](x, masked)

    gradient, x = multiop.grad(lambda x: multiop.op_sum(f(x))), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(multiop.jit(gradient)(x), 2 * x)
    with pytest.raises(errors.UnsupportedError, match=f"{name}: .*closes over a tensor.*as an argument"):
        multiop.jit(multiop.grad(lambda x: multiop.op_sum(gradient(x))))(x)


def test_an_assertion_of_a_branch_is_its_own():
    def branch():
        raise AssertionError

    with pytest.raises(AssertionError):
        multiop.jit(lambda x: multiop.op_cond(x > 0, branch, lambda: x))(tf.ones([]))


def test_autograph_does_not_warn_of_two_functions_in_one_line_or_of_functions_without_source(log_records):
    namespace = {"ops": multiop.ops}
    exec("def choose(x): return ops.cond(ops.sum(x) > 0, lambda: x * 2, lambda: x * 3)", namespace)
    in_one_line = lambda x: multiop.ops.cond(multiop.ops.sum(x) > 0, lambda: x * 2, lambda: x * 3)
    for fun in (namespace["choose"], in_one_line):
        assert fun(tf.ones(2)).numpy().tolist() == [2.0, 2.0]  # the other branch is traced
        assert multiop.jit(fun)(-tf.ones(2)).numpy().tolist() == [-3.0, -3.0]
    assert not [record for record in log_records if "AutoGraph" in record.getMessage()]


def test_autograph_still_reads_functions_of_their_own():
    def halved(x):
        if multiop.ops.sum(x) > 0:
            x = x / 2
        return x

    def chosen(x):
        def half():
            return halved(x)

        return multiop.ops.cond(multiop.ops.sum(x) > -1, half, lambda: x)

    assert tf.function(chosen)(tf.constant([2.0, 4.0])).numpy().tolist() == [1.0, 2.0]
    assert chosen(tf.constant([-2.0, -4.0])).numpy().tolist() == [-2.0, -4.0]


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize(
    "body",
    [
        multiop.op_det,
        pytest.param(lambda x: multiop.op_hypot(x, 2 * x), marks=pytest.mark.rotating),
        pytest.param(lambda x: multiop.op_eigh(x)[0], marks=pytest.mark.tier("full")),
        pytest.param(lambda x: multiop.op_svd(x)[1], marks=pytest.mark.rotating),
    ],
    ids=["det", "hypot", "eigh", "svd"],
)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_an_eager_loop_keeps_no_graph_of_what_it_maps(body, mode):
    square = tf.constant(np.diag([4.0, 3.0, 2.0, 1.0]) + 0.1)

    def step():  # whose functions are new at each call
        def loss(x):
            return multiop.op_sum(multiop.vmap(lambda y: body(y))(x[None]))

        multiop.jvp(loss, (square,), (square,)) if mode == "forward" else multiop.grad(loss)(square)

    step()
    gc.collect()
    before = {id(graph) for graph in gc.get_objects() if isinstance(graph, tf.Graph)}
    step()
    gc.collect()
    assert {id(graph) for graph in gc.get_objects() if isinstance(graph, tf.Graph)} <= before


def test_few_eager_products_of_a_linear_map_are_traced_by_nothing(monkeypatch):
    x = tf.constant(np.arange(1.0, 10.0))
    f, unit = lambda x: x[1:] * x[:-1], np.eye(9)
    wanted = unit[1:] * x.numpy()[:-1, None] + unit[:-1] * x.numpy()[1:, None]
    J = multiop.sparse_jacobian(f, x)
    many = multiop.jacrev(lambda x: tf.concat([f(x), f(x), f(x)], 0))(x)
    assert multiop.vjp(f, x, batched=True)[1](tf.zeros((0, 8), x.dtype))[0].shape == (0, 9)
    monkeypatch.setattr(tf, "vectorized_map", lambda *given, **options: pytest.fail("it is traced"))
    np.testing.assert_array_equal(J(x).toarray(), wanted)
    np.testing.assert_array_equal(multiop.jacrev(f)(x), wanted)
    np.testing.assert_array_equal(many, np.concatenate([wanted] * 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(J.values(x) ** 2)
    np.testing.assert_allclose(tape.gradient(total, x), 2 * np.r_[x[0], 2 * x[1:-1], x[-1]])
