"""The contract of `gradients`: TensorFlow's `tf.gradients`, argument for argument, on each backend."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

construct = pytest.mark.construct
X = np.array([0.5, -1.0, 2.0], np.float32)


@pytest.fixture
def tape(backend):
    """A persistent tape that records during the test."""
    with mo.GradientTape(persistent=True) as tape:
        yield tape


def floats(gradients):
    return [None if g is None else float(g) for g in gradients]


def tensor(x, dtype="float32"):
    x = np.asarray(x)
    return mo.op_cast(x.astype(np.complex64 if x.dtype.kind == "c" else np.float32), dtype)


def take_rows(backend, table, rows):
    """Take rows with the framework's own gather, whose gradient may be indexed."""
    index = tensor(rows, "int32")
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.gather(table, index)
    return table[index]


@construct("gradients: the signature of tf.gradients")
def test_signature(backend):
    parameters = inspect.signature(mo.gradients).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    assert list(parameters) == [
        "ys", "xs", "grad_ys", "name", "colocate_gradients_with_ops", "gate_gradients", "aggregation_method",
        "stop_gradients", "unconnected_gradients",
    ]  # fmt: skip
    assert defaults == {
        "grad_ys": None, "name": None, "colocate_gradients_with_ops": False, "gate_gradients": False,
        "aggregation_method": None, "stop_gradients": None, "unconnected_gradients": "none",
    }  # fmt: skip


@construct("gradients: sums over ys")
def test_sum_over_ys(backend, tape, numpy):
    x = tape.watch(tensor(X))
    found = mo.gradients([x * x, 3 * x, {"z": x * x * x}], [x])
    assert isinstance(found, list)
    np.testing.assert_allclose(numpy(found[0]), 2 * X + 3 + 3 * X**2)


@construct("gradients: a lone x gives a list of one")
def test_lone(backend, tape, numpy):
    x = tape.watch(tensor(X))
    found = mo.gradients(x * x, x)
    assert isinstance(found, list)
    assert len(found) == 1
    np.testing.assert_allclose(numpy(found[0]), 2 * X)  # the sum over all entries of y


@construct("gradients: grad_ys weights")
def test_weights(backend, tape, numpy):
    x = tape.watch(tensor(X))
    w = np.array([1.0, 10.0, 100.0], np.float32)
    np.testing.assert_allclose(numpy(mo.gradients(x * x, x, grad_ys=tensor(w))[0]), 2 * X * w)
    np.testing.assert_allclose(numpy(mo.gradients([x * x, x], x, grad_ys=[w, None])[0]), 2 * X * w + 1)
    np.testing.assert_allclose(numpy(mo.gradients([x * x, x], x, grad_ys=[None, None])[0]), 2 * X + 1)


@construct("gradients: grad_ys are differentiable")
def test_weights_are_differentiable(backend, tape):
    x = tape.watch(tensor(3.0))
    w = tape.watch(tensor(5.0))
    (g,) = mo.gradients(x * x, x, grad_ys=w)  # 2 x w
    assert floats(mo.gradients(g, [x, w])) == [10.0, 6.0]


@construct("gradients: None for the unconnected, or zeros")
def test_unconnected(backend, tape, numpy):
    x, y = tape.watch(tensor(X)), tape.watch(tensor([1.0, 2.0]))
    assert mo.gradients(x * x, y) == [None]
    gx, gy = mo.gradients(x * x, [x, y], unconnected_gradients=mo.UnconnectedGradients.ZERO)
    np.testing.assert_allclose(numpy(gx), 2 * X)
    np.testing.assert_array_equal(numpy(gy), [0, 0])
    assert mo.gradients(mo.op_stop_gradient(x), [x]) == [None]


@construct("gradients: zero is not unconnected")
def test_zero_is_connected(backend, tape, numpy):
    x = tape.watch(tensor(X))
    np.testing.assert_array_equal(numpy(mo.gradients(x * 0.0, x)[0]), [0, 0, 0])


@construct("gradients: an x upstream of another")
def test_intermediate(backend, tape):
    a = tape.watch(tensor(3.0))
    b = a * a
    c = b * a + b
    assert floats(mo.gradients(c, [a, b])) == [3 * 9 + 2 * 3, 4.0]
    assert floats(mo.gradients(c, [b])) == [4.0]


@construct("gradients: ys among xs")
def test_y_among_xs(backend, tape):
    x = tape.watch(tensor(3.0))
    y = x * x
    assert floats(mo.gradients(y, [y, x])) == [1.0, 6.0]
    assert floats(mo.gradients(x, x)) == [1.0]
    assert floats(mo.gradients([y, x], [x, y])) == [7.0, 1.0]


@construct("gradients: repeated xs and ys")
def test_repeated(backend, tape):
    x = tape.watch(tensor(3.0))
    y = x * x
    assert floats(mo.gradients(y, [x, x])) == [6.0, 6.0]
    assert floats(mo.gradients([y, y], [x])) == [12.0]


@construct("gradients: nested xs")
def test_nested(backend, tape):
    a, b, c = (tape.watch(tensor(v)) for v in (1.0, 2.0, 3.0))
    y = a * b * c
    found = mo.gradients(y, [a, [b, {"c": c}]])
    assert [float(found[0]), float(found[1][0]), float(found[1][1]["c"])] == [6.0, 3.0, 2.0]
    found = mo.gradients(y, {"a": a, "rest": (b, None)})
    assert (float(found["a"]), float(found["rest"][0]), found["rest"][1]) == (6.0, 3.0, None)
    assert isinstance(mo.gradients(y, (a, b)), list)


@construct("gradients: stop_gradients")
def test_stop_gradients(backend, tape):
    """The example of tf.gradients: partial instead of total derivatives."""
    a = tape.watch(tensor(0.0))
    b = 2 * a
    assert floats(mo.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert floats(mo.gradients(a + b, [a, b])) == [3.0, 1.0]


@construct("gradients: stop_gradients equals op_stop_gradient in the same place")
def test_stop_gradients_in_place(backend, tape):
    x = tape.watch(tensor(3.0))

    def chain(stop):
        b = x * x
        b_used = mo.op_stop_gradient(b) if stop else b
        c = b_used * x
        return b, c * b_used

    b, y = chain(False)
    _, expected = chain(True)
    assert floats(mo.gradients(y, [x], stop_gradients=b)) == floats(mo.gradients(expected, [x])) == [81.0]
    # a stopped tensor that is an x too gets the partial derivative
    assert floats(mo.gradients(y, [x, b], stop_gradients=[b])) == [81.0, 2 * 9.0 * 3.0]


@construct("gradients: a y among stop_gradients")
def test_stopped_y(backend, tape):
    x = tape.watch(tensor(3.0))
    y = x * x
    assert floats(mo.gradients([y, x * 5], [x], stop_gradients=[y])) == [5.0]


@construct("gradients: integer xs and ys")
def test_integers(backend, tape, numpy):
    x, k = tape.watch(tensor(X)), tensor([1, 2, 3], "int32")
    y = x * mo.op_cast(k, "float32")
    gx, gk = mo.gradients(y, [x, k])
    np.testing.assert_allclose(numpy(gx), [1, 2, 3])
    assert gk is None
    assert mo.gradients(mo.op_cast(x, "int32"), [x]) == [None]
    gx, gk = mo.gradients([y, mo.op_cast(x, "int32")], [x, k], unconnected_gradients="zero")
    np.testing.assert_allclose(numpy(gx), [1, 2, 3])
    assert mo.op_dtype(gk) == "int32"
    np.testing.assert_array_equal(numpy(gk), [0, 0, 0])


@construct("gradients: dense and indexed contributions add up")
def test_indexed(backend, tape, numpy):
    table = tape.watch(tensor(np.arange(6.0).reshape(3, 2)))
    rows = take_rows(backend, table, [0, 2, 0])
    expected = np.array([[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_allclose(numpy(mo.gradients(rows, table)[0]), expected)
    np.testing.assert_allclose(numpy(mo.gradients([rows, table * 5], table)[0]), expected + 5)


@construct("gradients: complex ys need grad_ys")
def test_complex(backend, tape, numpy):
    z = tape.watch(tensor(np.array([3 + 4j, 1 - 2j]), "complex64"))
    w = np.array([1 + 1j, 2j], np.complex64)
    np.testing.assert_allclose(numpy(mo.gradients(z * z, z, grad_ys=w)[0]), w * np.conj(2 * numpy(z)), rtol=1e-6)
    with pytest.raises(errors.DTypeError, match=r"ys\[0\] has dtype complex64.*grad_ys"):
        mo.gradients(z * z, z)
    loss = mo.op_sum(mo.op_real(z * mo.op_conj(z)))
    np.testing.assert_allclose(numpy(mo.gradients(loss, z)[0]), 2 * numpy(z), rtol=1e-6)


@construct("gradients: to the fourth order")
def test_orders(backend, tape):
    x = tape.watch(tensor(2.0))
    y = x * x * x * x
    found = []
    for _ in range(4):
        (y,) = mo.gradients(y, x)
        found.append(float(y))
    assert found == [32.0, 48.0, 48.0, 24.0]


@construct("gradients: through Python control flow on values")
def test_control_flow(backend, tape):
    x = tape.watch(tensor(1.5))
    y = x
    while y < 100:
        y = y * x if y > 3 else y * y
    # 1.5 -> 2.25 -> 5.0625 -> x⁵, x⁶, ... until 100
    n = int(np.ceil(np.log(100) / np.log(1.5)))
    np.testing.assert_allclose(float(y), 1.5**n, rtol=1e-5)
    np.testing.assert_allclose(floats(mo.gradients(y, x)), [n * 1.5 ** (n - 1)], rtol=1e-5)


@construct("gradients: through the framework's cond and loops")
def test_native_control_flow(backend, tape):
    x = tape.watch(tensor(2.0))
    if backend == "jax":
        import jax

        y = jax.lax.cond(x > 1, lambda x: x * x, lambda x: x, x)
        z = jax.lax.scan(lambda carry, _: (carry * x, None), x * 1.0, None, length=3)[0]
    elif backend == "tensorflow":
        import tensorflow as tf

        y = tf.function(lambda x: tf.cond(x > 1, lambda: x * x, lambda: x))(x)
        z = tf.function(lambda x: tf.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * x), (0, x * 1.0))[1])(x)
    elif backend == "numpy":  # Python's
        y, z = x * x if x > 1 else x, x * 1.0
        for _ in range(3):
            z *= x
    else:
        import torch

        y = torch.where(x > 1, x * x, x)
        z = x * 1.0
        for _ in range(3):
            z = z * x
    assert floats(mo.gradients(y, x)) == [4.0]
    assert floats(mo.gradients(z, x)) == [32.0]


@construct("gradients: custom gradients hold")
def test_custom_gradient(backend, tape):
    tenfold = mo.op_custom_gradient(lambda x: (x * x, lambda u: u * 10 * x))
    x = tape.watch(tensor(3.0))
    (g,) = mo.gradients(tenfold(x), x)
    assert float(g) == 30.0
    assert floats(mo.gradients(g, x)) == [10.0]


@construct("gradients: aggregation, gating, colocation and name are accepted")
@pytest.mark.parametrize("method", ["ADD_N", "DEFAULT", "EXPERIMENTAL_TREE", "EXPERIMENTAL_ACCUMULATE_N"])
def test_options(backend, tape, method):
    x = tape.watch(tensor(3.0))
    y = x + x + x + x
    options = {"aggregation_method": getattr(mo.AggregationMethod, method), "gate_gradients": True}
    assert floats(mo.gradients(y, x, name="g", colocate_gradients_with_ops=True, **options)) == [4.0]


@construct("AggregationMethod: TensorFlow's values")
def test_aggregation_values(backend):
    a = mo.AggregationMethod
    assert (a.ADD_N, a.DEFAULT, a.EXPERIMENTAL_TREE, a.EXPERIMENTAL_ACCUMULATE_N) == (0, 0, 1, 2)


@construct("gradients: ys a function of xs")
def test_callable(backend, numpy):
    assert floats(mo.gradients(lambda x: x * x, 3.0)) == [6.0]
    assert floats(mo.gradients(lambda a, b: [a * b, a], [2.0, 5.0])) == [6.0, 2.0]
    found = mo.gradients(lambda p: p["a"] * p["b"], {"a": 2.0, "b": 5.0})
    assert {k: float(g) for k, g in found.items()} == {"a": 5.0, "b": 2.0}
    np.testing.assert_allclose(numpy(mo.gradients(lambda x: x * x, tensor(X), grad_ys=X)[0]), 2 * X * X)
    assert floats(mo.gradients(lambda a, b: a, [1.0, 2.0])) == [1.0, None]
    assert floats(mo.gradients(lambda a, b: a, [1.0, 2.0], unconnected_gradients="zero")) == [1.0, 0.0]


@construct("gradients: functions of functions, for higher orders")
def test_callable_orders(backend):
    f = lambda x: x * x * x * x
    for expected in (32.0, 48.0, 48.0, 24.0):
        f = lambda x, f=f: mo.gradients(f, x)[0]
        assert float(f(tensor(2.0))) == expected


@construct("gradients under the compiler")
def test_compiled(backend, numpy):
    f = mo.jit(lambda x: mo.gradients(lambda x: x * x * x, [x])[0])
    np.testing.assert_allclose(numpy(f(tensor(X))), 3 * X**2, rtol=1e-6)


@construct("gradients in a TensorFlow graph, with its options", only="tensorflow")
def test_graph():
    tf = pytest.importorskip("tensorflow")
    with mo.use_backend("tensorflow"):

        @tf.function
        def f(x):
            y = x * x
            z = y * x + y
            partial = mo.gradients(z, [x, y], stop_gradients=[y], gate_gradients=True, aggregation_method=2)
            (g,) = mo.gradients(z, x, name="g", colocate_gradients_with_ops=True)
            return partial, g, mo.gradients(g, x)[0]

        partial, g, h = f(tf.constant(3.0))
    assert [float(p) for p in partial] == [9.0, 4.0]
    assert (float(g), float(h)) == (33.0, 20.0)


@construct("gradients of tracked tensors without a tape", only="torch")
def test_tracked():
    torch = pytest.importorskip("torch")
    with mo.use_backend("torch"):
        x = torch.tensor(3.0, requires_grad=True)
        assert floats(mo.gradients(x * x, x)) == [6.0]
        assert x.grad is None
        (g,) = mo.gradients(x * x * x, x)
        assert floats(mo.gradients(g, x)) == [18.0]


@construct("gradients: no gradient there", error=True)
def test_lookup_error(backend, tape):
    """An operation between ys and xs without a gradient is a LookupError."""
    x = tape.watch(tensor(X))
    if backend == "tensorflow":
        import tensorflow as tf

        y = tf.raw_ops.Bincount(arr=tf.constant([0, 1, 1]), size=3, weights=x)
        message = "Bincount|DenseBincount"
    elif backend == "jax":
        import jax

        y = jax.pure_callback(lambda x: np.asarray(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        message = "callback"
    elif backend == "numpy":
        pytest.skip("each op of multiop has a derivative on NumPy, and nothing else is recorded")
    else:
        import torch

        class NoGradient(torch.autograd.Function):
            @staticmethod
            def forward(x):
                return x * 1

            @staticmethod
            def setup_context(ctx, inputs, output):
                pass

        y, message = NoGradient.apply(x), "NoGradient|backward"
    with pytest.raises(LookupError, match=message) as caught:
        mo.gradients(y, x)
    assert isinstance(caught.value, errors.NoGradientError)


@construct("gradients: bad arguments", error=True)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, y: mo.gradients(y, x, grad_ys=[y, y]), errors.ArgumentError, "2 grad_ys were given for 1 ys"),
        (lambda x, y: mo.gradients(y, x, grad_ys=y[:2]), errors.ArgumentError, r"grad_ys\[0\] has shape \(2,\)"),
        (
            lambda x, y: mo.gradients(y, x, grad_ys=mo.op_cast(y, "float16")),
            errors.DTypeError,
            r"grad_ys\[0\] has dtype float16",
        ),
        (
            lambda x, y: mo.gradients(y, x, unconnected_gradients="nil"),
            errors.ArgumentError,
            "unconnected_gradients must be one of 'none', 'zero'",
        ),
        (
            lambda x, y: mo.gradients(y, x, aggregation_method=7),
            errors.ArgumentError,
            "aggregation_method must be one of",
        ),
        (
            lambda x, y: mo.gradients(y, x, gate_gradients="yes"),
            errors.ArgumentTypeError,
            "gate_gradients must be a bool",
        ),
        (
            lambda x, y: mo.gradients(y, x, colocate_gradients_with_ops=2),
            errors.ArgumentTypeError,
            "colocate_gradients_with_ops",
        ),
        (lambda x, y: mo.gradients(y, x, name=3), errors.ArgumentTypeError, "name must be a string"),
        (lambda x, y: mo.gradients(y, 3.0), errors.ArgumentTypeError, r"xs\[0\] must be a tensor, got 3.0"),
        (lambda x, y: mo.gradients(y, [x, "w"]), errors.ArgumentTypeError, r"xs\[1\] must be a tensor, got 'w'"),
        (lambda x, y: mo.gradients(3.0, x), errors.ArgumentTypeError, r"ys\[0\] must be a tensor, got 3.0"),
        (lambda x, y: mo.gradients(None, x), errors.ArgumentTypeError, "ys must be tensors or a function"),
        (lambda x, y: mo.gradients([], x), errors.ArgumentTypeError, "ys must be tensors or a function"),
        (lambda x, y: mo.gradients(lambda x: None, x), errors.ArgumentTypeError, "forgotten return"),
        (
            lambda x, y: mo.gradients(y, x, stop_gradients=3.0),
            errors.ArgumentTypeError,
            r"stop_gradients\[0\] must be a tensor",
        ),
    ],
)
def test_bad_arguments(backend, tape, call, error, message):
    x = tape.watch(tensor(X))
    with pytest.raises(error, match=f"(?s)^gradients: .*{message}"):
        call(x, x * x)


@pytest.mark.parametrize("error", [RuntimeError, ValueError, TypeError, IndexError])
def test_error_of_a_rule(backend, error):
    """It comes out as what it is: no argument of `gradients` is to blame."""

    @mo.op_custom_gradient
    def f(x):
        def grad(upstream):
            raise error("of the rule")

        return x * 1, grad

    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(mo.op_convert_to_tensor(1.0))
        y = f(x)
        with pytest.raises(error, match="of the rule") as caught:
            mo.gradients(y, x)
        assert not isinstance(caught.value, mo.errors.MultiopError)
    with pytest.raises(error, match="of the rule") as caught:
        tape.gradient(y, x)
    assert not isinstance(caught.value, mo.errors.MultiopError)


@pytest.mark.construct("gradients: after the block of a persistent tape")
def test_gradients_after_a_persistent_tape(backend):
    with mo.GradientTape(persistent=True) as tape:
        given = mo.op_convert_to_tensor([3.0, 1.0])
        x = tape.watch(given)
        y = x * x
        z = y * y
    for _ in range(2):
        np.testing.assert_allclose(mo.op_convert_to_numpy(mo.gradients(z, [x])[0]), [108.0, 4.0])
        dx, dy = mo.gradients(z, [x, y], stop_gradients=y)
        assert dx is None
        np.testing.assert_allclose(mo.op_convert_to_numpy(dy), [18.0, 2.0])
        if backend != "numpy":  # where it is no tensor that is recorded
            np.testing.assert_allclose(mo.op_convert_to_numpy(mo.gradients(z, given)[0]), [108.0, 4.0])
        np.testing.assert_allclose(mo.op_convert_to_numpy(tape.gradient(z, x)), [108.0, 4.0])


@construct("gradients of what nothing recorded", error=True)
@pytest.mark.parametrize("options", [{}, {"unconnected_gradients": "zero"}], ids=["none", "zero"])
def test_nothing_recorded(backend, options):
    x = tensor(X)
    with mo.GradientTape(persistent=True) as tape:  # another tape may still be there
        watched = tape.watch(tensor(X))
        y = watched * watched
    for unknown in (x * 2, watched * 2):
        with pytest.raises(errors.ArgumentError, match=r"gradients: nothing recorded ys.*GradientTape.*function of xs"):
            mo.gradients(unknown, [x, watched], **options)
    assert mo.gradients(y, [x])[0] is None
    dx, dwatched = mo.gradients([x * 2, y], [x, watched])
    assert dx is None
    np.testing.assert_allclose(mo.op_convert_to_numpy(dwatched), 2 * X)
