"""The contract of `GradientTape`: TensorFlow's tape on each backend."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

construct = pytest.mark.construct
X = np.array([0.5, -1.0, 2.0], np.float32)


def tensor(x, dtype="float32"):
    x = np.asarray(x)
    return mo.op_cast(x.astype(np.complex64 if x.dtype.kind == "c" else np.float32), dtype)


@construct("tape: gradient after the scope")
def test_gradient(backend, numpy):
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X))
        y = x * x * x
    np.testing.assert_allclose(numpy(y), X**3)
    np.testing.assert_allclose(numpy(tape.gradient(y, x)), 3 * X**2)  # of the sum of y


@construct("tape: gradient inside the scope")
def test_gradient_inside(backend, numpy):
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X))
        np.testing.assert_allclose(numpy(tape.gradient(x * x, x)), 2 * X)
        z = x * 5  # after its only use a tape does not record
    with pytest.raises(errors.TapeError, match="persistent=True"):
        tape.gradient(z, x)


@construct("tape: any number of gradients of a persistent tape, inside and after")
def test_persistent(backend, numpy):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(X))
        y = x * x
        np.testing.assert_allclose(numpy(tape.gradient(y, x)), 2 * X)
        z = y * y
        np.testing.assert_allclose(numpy(tape.gradient(z, [x, y])[0]), 4 * X**3)
    for _ in range(3):
        np.testing.assert_allclose(numpy(tape.gradient(z, x)), 4 * X**3)
        np.testing.assert_allclose(numpy(tape.gradient(z, y)), 2 * X**2)
        assert tape.gradient(y, z) is None


@construct("tape: second order of one persistent tape")
def test_gradient_of_gradient(backend, numpy):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(X))
        y = x * x * x
        g = tape.gradient(y, x)  # inside the scope, so it is recorded
    np.testing.assert_allclose(numpy(tape.gradient(g, x)), 6 * X)


@construct("tape: nested for higher orders")
@pytest.mark.parametrize("order", [2, 3, 4])
def test_nested(backend, order):
    def derivative(f):
        def differentiated(x):
            with mo.GradientTape() as tape:
                x = tape.watch(x)
                y = f(x)
            return tape.gradient(y, x)

        return differentiated

    f = lambda x: x * x * x * x
    for _ in range(order):
        f = derivative(f)
    assert float(f(tensor(2.0))) == {2: 48.0, 3: 48.0, 4: 24.0}[order]


@construct("tape: two tapes over the same code")
def test_two_tapes(backend):
    with mo.GradientTape() as outer:
        x = outer.watch(tensor(2.0))
        y = outer.watch(tensor(5.0))
        with mo.GradientTape() as inner:
            x2 = inner.watch(x)
            z = x2 * x2 * y
        g = inner.gradient(z, x2)  # 2 x y
        w = g * y
    gx, gy = outer.gradient(w, [x, y])  # w = 2 x y²
    assert (float(g), float(gx), float(gy)) == (20.0, 50.0, 40.0)


@construct("tape: watches pytrees, and host values")
def test_watch_pytree(backend, numpy):
    with mo.GradientTape() as tape:
        p = tape.watch({"w": X, "b": [2.0, None], "k": np.array([1, 2, 3], np.int32)})
        y = mo.op_sum(p["w"] * p["w"]) * p["b"][0]
    g = tape.gradient(y, p)
    np.testing.assert_allclose(numpy(g["w"]), 4 * X)
    np.testing.assert_allclose(float(g["b"][0]), (X**2).sum())
    assert g["b"][1] is None
    assert g["k"] is None


@construct("tape: what is not watched is not differentiated")
def test_not_watched(backend, numpy):
    other = tensor(X)
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X))
        y = x * other
    gx, gother = tape.gradient(y, [x, other])
    np.testing.assert_allclose(numpy(gx), X)
    assert gother is None


@construct("tape: what is computed before watching is not differentiated")
def test_watch_late(backend):
    x = tensor(3.0)
    with mo.GradientTape() as tape:
        before = x * x
        x = tape.watch(x)
        y = before * x
    assert float(tape.gradient(y, x)) == 9.0


@construct("tape: what is computed outside the scope is not recorded")
def test_outside(backend):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(3.0))
        y = x * x
    z = y * y
    assert float(tape.gradient(y, x)) == 6.0
    assert tape.gradient(z, x) is None


@construct("tape: intermediates as sources")
def test_intermediates(backend):
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(3.0))
        y = x * x
        z = y * x
    assert [float(g) for g in tape.gradient(z, [x, y])] == [27.0, 3.0]


@construct("tape: nested targets are added up, with output_gradients")
def test_targets(backend, numpy):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(X))
        a, b = x * x, x * 3
    np.testing.assert_allclose(numpy(tape.gradient([a, {"b": b}], x)), 2 * X + 3)
    u = np.array([1.0, 10.0, 100.0], np.float32)
    np.testing.assert_allclose(numpy(tape.gradient(a, x, output_gradients=tensor(u))), 2 * X * u)
    np.testing.assert_allclose(numpy(tape.gradient([a, b], x, output_gradients=[tensor(u), None])), 2 * X * u + 3)
    np.testing.assert_allclose(
        numpy(tape.gradient({"a": a, "b": b}, x, output_gradients={"a": None, "b": u})), 2 * X + 3 * u
    )


@construct("tape: output_gradients are differentiable")
def test_output_gradients_are_differentiable(backend):
    with mo.GradientTape() as outer:
        u = outer.watch(tensor(5.0))
        with mo.GradientTape() as tape:
            x = tape.watch(tensor(3.0))
            y = x * x
        g = tape.gradient(y, x, output_gradients=u)
    assert float(outer.gradient(g, u)) == 6.0


@construct("tape: unconnected_gradients")
def test_unconnected(backend, numpy):
    with mo.GradientTape(persistent=True) as tape:
        x, y = tape.watch(tensor(X)), tape.watch(tensor([1.0, 2.0]))
        z = x * x
    assert tape.gradient(z, y) is None
    gx, gy = tape.gradient(z, [x, y], unconnected_gradients="zero")
    np.testing.assert_allclose(numpy(gx), 2 * X)
    np.testing.assert_array_equal(numpy(gy), [0, 0])


@construct("tape: integer targets and sources")
def test_integers(backend):
    with mo.GradientTape(persistent=True) as tape:
        x, k = tape.watch(tensor(X)), tape.watch(tensor([1, 2, 3], "int32"))
        y = x * mo.op_cast(k, "float32")
        n = mo.op_cast(x, "int32")
    assert tape.gradient(y, k) is None
    assert tape.gradient(n, x) is None
    assert mo.op_dtype(tape.gradient(y, k, unconnected_gradients="zero")) == "int32"


@construct("tape: Python control flow on values")
def test_control_flow(backend):
    def collatz_like(x):
        steps = 0
        while x < 50:
            x = x * x if steps % 2 else x * 3
            steps += 1
        return x

    with mo.GradientTape() as tape:
        x = tape.watch(tensor(1.5))
        y = collatz_like(x)  # 4.5, 20.25, 60.75 = 3 (3 x)²
    assert float(y) == 60.75
    assert float(tape.gradient(y, x)) == 81.0


@construct("tape: plain framework code, not only multiop's ops")
def test_native_code(backend, numpy):
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X))
        if backend == "jax":
            import jax
            import jax.numpy as jnp

            z = jax.jit(jnp.sin)(jnp.dot(a, x)) + jax.nn.softplus(x[0])
            y = jax.vmap(lambda v: v * v)(z)[::-1].sum()
        elif backend == "torch":
            import torch

            z = torch.sin(torch.tensor(a) @ x) + torch.nn.functional.softplus(x[0])
            y = z.pow(2).flip(0).sum()
        elif backend == "numpy":
            z = np.sin(a @ x) + np.logaddexp(x[0], 0.0)
            y = mo.op_sum((z * z)[::-1])
        else:
            import tensorflow as tf

            z = tf.function(tf.sin)(tf.linalg.matvec(a, x)) + tf.nn.softplus(x[0])
            y = tf.reduce_sum(tf.reverse(tf.square(z), [0]))
    ax = a.astype(np.float64) @ X
    z = np.sin(ax) + np.log1p(np.exp(X[0]))
    expected = a.T @ (2 * z * np.cos(ax))
    expected[0] += 2 * z.sum() / (1 + np.exp(-X[0]))
    np.testing.assert_allclose(numpy(tape.gradient(y, x)), expected, rtol=1e-4)


@construct("tape: custom gradients and stop_gradient hold")
def test_custom_gradient(backend):
    tenfold = mo.op_custom_gradient(lambda x: (x * x, lambda u: u * 10 * x))
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(3.0))
        y = tenfold(x)
        z = x * mo.op_stop_gradient(x)
    assert (float(tape.gradient(y, x)), float(tape.gradient(z, x))) == (30.0, 3.0)


@construct("tape: multiop's transforms inside, and the tape inside them")
def test_with_transforms(backend):
    f = lambda x: x * x * x

    def taped(x):
        with mo.GradientTape() as tape:
            x = tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    with mo.GradientTape() as tape:
        x = tape.watch(tensor(2.0))
        g = mo.grad(f)(x)
    assert float(tape.gradient(g, x)) == 12.0
    assert float(mo.grad(taped)(2.0)) == 12.0
    assert float(mo.jit(taped)(tensor(2.0))) == 12.0
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(2.0))
        y = mo.jit(f)(x)
    assert float(tape.gradient(y, x)) == 12.0
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X))
        y = mo.vmap(f)(x)
    np.testing.assert_allclose(mo.op_convert_to_numpy(tape.gradient(y, x)), 3 * X**2)


def used_itself(x):
    """Return the derivative of `x * x`, which a tape takes of the tensor itself and of what stands for it."""
    with mo.GradientTape() as tape:
        y = x * tape.watch(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("around", [lambda f, x: f(x), lambda f, x: mo.vjp(f, x)[0], "tape"], ids=["", "vjp", "tape"])
def test_a_watched_tensor_may_be_used_itself(backend, around, host_arrays):
    x = tensor(3.0)
    if around == "tape":
        with mo.GradientTape() as tape:
            z = used_itself(tape.watch(x))
    else:
        z = around(used_itself, x)
    assert float(z) == 6


def used_beside(x):
    before = mo.op_sin(x)
    with mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = before * watched * watched + x * watched
    return tape.gradient(y, watched)


def used_before(x):
    before = mo.op_sin(x)
    with mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = before * watched * watched
    return tape.gradient(y, watched)


def test_a_gradient_of_a_tape_over_the_tensor_itself(backend, host_arrays):
    x = tensor(3.0)
    value, gradient = mo.value_and_grad(used_before)(x)  # 2 x sin(x), and its derivative
    np.testing.assert_allclose(float(value), 6 * np.sin(3), rtol=1e-6)
    np.testing.assert_allclose(float(gradient), 2 * np.sin(3) + 6 * np.cos(3), rtol=1e-6)
    assert float(mo.grad(used_itself)(x)) == 2
    if backend == "torch":  # whose graph does not tell them apart
        with pytest.raises(mo.errors.TapeError, match="before and after it was watched"):
            mo.grad(used_beside)(x)
    else:
        value, gradient = mo.value_and_grad(used_beside)(x)
        np.testing.assert_allclose(float(value), 6 * np.sin(3) + 6, rtol=1e-6)
        np.testing.assert_allclose(float(gradient), 2 * np.sin(3) + 6 * np.cos(3) + 2, rtol=1e-6)


@construct("tape: inside jvp and vmap", error=("torch",))
def test_inside_jvp_and_vmap(backend, numpy):
    def taped(x):
        with mo.GradientTape() as tape:
            x = tape.watch(x)
            y = x * x * x
        return tape.gradient(y, x)

    push = lambda: mo.jvp(taped, (2.0,), (1.0,))[1]
    mapped = lambda: mo.vmap(taped)(X)
    if backend == "torch":
        for call in (push, mapped):
            with pytest.raises(errors.UnsupportedError, match=r"(?s)tape.*torch.func.*multiop.grad.*https://"):
                call()
        return
    assert float(push()) == 12.0
    np.testing.assert_allclose(numpy(mapped()), 3 * X**2)


@construct("tape: jacobian")
@pytest.mark.parametrize("together", [True, False])
def test_jacobian(backend, numpy, together):
    a = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(X))
        b = tape.watch(tensor([1.0]))
        y = mo.op_matmul(a, x * x)
        s = mo.op_sum(x)
    gx, gb = tape.jacobian(y, [x, b], experimental_use_pfor=together)
    np.testing.assert_allclose(numpy(gx), numpy(a) * 2 * X)
    assert gb is None
    gx, gb = tape.jacobian(y, (x, b), unconnected_gradients="zero", experimental_use_pfor=together)
    np.testing.assert_array_equal(numpy(gb), np.zeros((2, 1)))
    np.testing.assert_allclose(numpy(tape.jacobian(s, x, experimental_use_pfor=together)), [1, 1, 1])


@construct("tape: jacobian of a tape that is not persistent")
def test_jacobian_once(backend, numpy):
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X))
        y = x * x
    np.testing.assert_allclose(numpy(tape.jacobian(y, x)), np.diag(2 * X))
    with pytest.raises(errors.TapeError, match="persistent"):
        tape.jacobian(y, x)


@construct("tape: jacobian for second order")
def test_hessian(backend, numpy):
    with mo.GradientTape() as outer:
        x = outer.watch(tensor(X))
        with mo.GradientTape() as inner:
            x2 = inner.watch(x)
            y = mo.op_sum(x2 * x2 * x2)
        g = inner.gradient(y, x2)
    np.testing.assert_allclose(numpy(outer.jacobian(g, x)), np.diag(6 * X))


@construct("tape: jacobian of an empty tensor")
def test_jacobian_empty(backend, numpy):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(np.zeros((0, 2))))
        y = x * x
        z = mo.op_sum(x)[None]
    assert numpy(tape.jacobian(y, x)).shape == (0, 2, 0, 2)
    assert numpy(tape.jacobian(z, x)).shape == (1, 0, 2)


@pytest.mark.parametrize("together", [True, False])
def test_jacobian_of_integers(backend, together):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(X))
        y = mo.op_argsort(x)
    assert tape.jacobian(y, x, experimental_use_pfor=together) is None
    assert tape.jacobian(y, [x, x], experimental_use_pfor=together) == [None, None]


@construct("tape: batch_jacobian")
@pytest.mark.parametrize("together", [True, False])
def test_batch_jacobian(backend, numpy, together):
    x0 = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    with mo.GradientTape(persistent=True) as tape:
        x, b = tape.watch(tensor(x0)), tape.watch(tensor([[1.0], [2.0]]))
        y = mo.op_stack([x[:, 0] * x[:, 1], x[:, 2] * x[:, 2]], 1)
    found = numpy(tape.batch_jacobian(y, x, experimental_use_pfor=together))
    expected = np.array([[[r[1], r[0], 0], [0, 0, 2 * r[2]]] for r in x0])
    np.testing.assert_allclose(found, expected)
    assert tape.batch_jacobian(y, b) is None
    np.testing.assert_array_equal(numpy(tape.batch_jacobian(y, b, unconnected_gradients="zero")), np.zeros((2, 2, 1)))


@construct("tape: stop_recording")
def test_stop_recording(backend):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(3.0))
        with tape.stop_recording():
            y = x * x
        z = x * y
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(z, x)) == 9.0


@construct("tape: reset")
def test_reset(backend):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(3.0))
        y = x * x
        tape.reset()
        x = tape.watch(x)
        z = x * x * x
    assert tape.gradient(y, x) is None
    assert float(tape.gradient(z, x)) == 27.0


@construct("tape: entered again, it goes on recording")
def test_enter_again(backend):
    tape = mo.GradientTape(persistent=True)
    with tape:
        x = tape.watch(tensor(3.0))
        y = x * x
    with tape:
        z = y * x
    assert float(tape.gradient(z, x)) == 27.0


@construct("tape: an exception ends the recording")
def test_exception(backend):
    tape = mo.GradientTape()
    with pytest.raises(KeyError), tape:
        x = tape.watch(tensor(3.0))
        y = x * x
        raise KeyError("mine")
    assert float(tape.gradient(y, x)) == 6.0
    z = x * x  # nothing records any more
    assert float(z) == 9.0


@construct("tape: variables are watched when they are read")
def test_variables(backend, native):
    if backend == "jax":
        pytest.skip("JAX has no variables")
    weight, other = native.variable(3.0), native.variable(5.0)
    with mo.GradientTape() as tape:
        y = weight * weight * mo.op_convert_to_tensor(2.0)
    gw, gother = tape.gradient(y, [weight, other])
    assert float(gw) == 12.0
    assert gother is None
    assert len(tape.watched_variables()) == 1
    assert tape.watched_variables()[0] is weight


@construct("tape: watch_accessed_variables=False")
def test_variables_by_hand(backend, native):
    if backend == "jax":
        pytest.skip("JAX has no variables")
    weight, other = native.variable(3.0), native.variable(5.0)
    with mo.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        w = tape.watch(weight)
        y = w * w * other
    assert float(tape.gradient(y, w)) == 30.0
    assert tape.gradient(y, other) is None


@construct("tape: complex values, the conjugate convention")
def test_complex(backend, numpy):
    with mo.GradientTape(persistent=True) as tape:
        z = tape.watch(tensor(np.array([3 + 4j, 1 - 2j]), "complex64"))
        square = z * z
        loss = mo.op_sum(mo.op_real(z * mo.op_conj(z)))
    np.testing.assert_allclose(numpy(tape.gradient(loss, z)), 2 * numpy(z), rtol=1e-6)
    np.testing.assert_allclose(numpy(tape.gradient(square, z)), np.conj(2 * numpy(z)), rtol=1e-6)
    u = np.array([1 + 1j, 2j], np.complex64)
    np.testing.assert_allclose(
        numpy(tape.gradient(square, z, output_gradients=u)), u * np.conj(2 * numpy(z)), rtol=1e-6
    )


@pytest.mark.usefixtures("x64")
@construct("tape: dtypes")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_dtypes(backend, numpy, dtype):
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(X, dtype))
        y = x * x
    g = tape.gradient(y, x)
    assert mo.op_dtype(g) == dtype
    np.testing.assert_allclose(numpy(g), 2 * X)


@construct("tape: a tape that is used up frees what it recorded")
@pytest.mark.usefixtures("no_gc")
def test_memory(backend):
    with mo.GradientTape() as tape:
        x = tape.watch(tensor(np.ones(1000)))
        intermediate = mo.op_exp(x)
        y = mo.op_sum(intermediate * intermediate)
    ref = weakref.ref(intermediate)
    del intermediate
    tape.gradient(y, x)
    del y
    assert ref() is None


@construct("tape: used in a way that its state does not allow", error=True)
def test_states(backend):
    tape = mo.GradientTape()
    for call in (
        lambda: tape.watch(tensor(1.0)),
        lambda: tape.gradient(tensor(1.0), tensor(1.0)),
        lambda: tape.reset(),
    ):
        with pytest.raises(errors.TapeError, match="GradientTape"):
            call()
    with pytest.raises(errors.TapeError, match="not recording"), tape.stop_recording():
        pass
    with tape:
        x = tape.watch(tensor(3.0))
        y = x * x
        with pytest.raises(errors.TapeError, match="still recording"):
            tape.__enter__()
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.gradient(y, x)
    with mo.GradientTape() as once:
        x = once.watch(tensor(X))
        y = x * x
    with pytest.raises(errors.TapeError, match="persistent=True"):
        once.jacobian(y, x, experimental_use_pfor=False)


@construct("tape: bad arguments", error=True)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t, x, y: t.gradient(None, x), errors.ArgumentTypeError, "gradient: target must be a tensor"),
        (lambda t, x, y: t.gradient(3.0, x), errors.ArgumentTypeError, "gradient: target must hold tensors, got 3.0"),
        (lambda t, x, y: t.gradient(y, 3.0), errors.ArgumentTypeError, "gradient: sources must hold tensors, got 3.0"),
        (
            lambda t, x, y: t.gradient(y, ["x"]),
            errors.ArgumentTypeError,
            "gradient: sources must hold tensors, got 'x'",
        ),
        (lambda t, x, y: t.gradient(y, x, [y, y]), errors.ArgumentError, "2 output_gradients were given for 1 targets"),
        (lambda t, x, y: t.gradient(y, x, y[:2]), errors.ArgumentError, r"output_gradients\[0\] has shape \(2,\)"),
        (
            lambda t, x, y: t.gradient(y, x, mo.op_cast(y, "float16")),
            errors.DTypeError,
            r"output_gradients\[0\] has dtype float16",
        ),
        (
            lambda t, x, y: t.gradient(y, x, unconnected_gradients="nil"),
            errors.ArgumentError,
            "unconnected_gradients must be one of",
        ),
        (lambda t, x, y: t.jacobian([y], x), errors.ArgumentTypeError, "jacobian: target must hold tensors"),
        (
            lambda t, x, y: t.jacobian(mo.op_cast(y, "complex64"), x),
            errors.DTypeError,
            "jacobian: target is complex.*real and imaginary",
        ),
        (
            lambda t, x, y: t.jacobian(y, x, experimental_use_pfor="no"),
            errors.ArgumentTypeError,
            "experimental_use_pfor must be a bool",
        ),
        (
            lambda t, x, y: t.batch_jacobian(y, x[:2]),
            errors.ArgumentError,
            r"batch_jacobian: the first dimensions of target \(3,\) and source \(2,\)",
        ),
        (lambda t, x, y: t.batch_jacobian(y, [x]), errors.ArgumentTypeError, "batch_jacobian: source must be a tensor"),
        (lambda t, x, y: t.watch("x"), errors.ArgumentTypeError, "watch: x must hold tensors, got 'x'"),
        (lambda t, x, y: t.watch([x, object]), errors.ArgumentTypeError, "watch: x must hold tensors"),
        (lambda t, x, y: mo.GradientTape(persistent=1), errors.ArgumentTypeError, "persistent must be a bool"),
        (
            lambda t, x, y: mo.GradientTape(watch_accessed_variables="no"),
            errors.ArgumentTypeError,
            "watch_accessed_variables",
        ),
    ],
)
def test_bad_arguments(backend, call, error, message):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(tensor(X))
        y = x * x
        with pytest.raises(error, match=rf"(?s)^GradientTape[.:].*{message}"):
            call(tape, x, y)


STEPS = {
    "round": mo.op_round,
    "round to decimals": lambda x: mo.op_round(x, 1),
    "sign": mo.op_sign,
    "floor": mo.op_floor,
    "ceil": mo.op_ceil,
    "trunc": mo.op_trunc,
    "floor_divide": lambda x: mo.op_floor_divide(x, 2.0),
    "modf": lambda x: mo.op_modf(x)[1],
    "heaviside": lambda x: mo.op_heaviside(x, 0.5),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_is_piecewise_constant_has_a_gradient_of_zeros(backend, name):
    with mo.GradientTape() as tape:
        x = tape.watch(mo.op_convert_to_tensor([1.3, -2.6]))
        y = STEPS[name](x)
    assert mo.op_convert_to_numpy(tape.gradient(y, x)).tolist() == [0.0, 0.0]


def test_what_is_constant_has_none(backend):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(mo.op_convert_to_tensor([1.3, -2.6]))
        ys = [mo.op_convert_to_tensor([1.0, 2.0]) * 2, mo.op_zeros_like(x), mo.op_stop_gradient(x)]
        for y in ys:
            (zeros,) = mo.gradients(y, [x], unconnected_gradients="zero")
            assert mo.op_convert_to_numpy(zeros).tolist() == [0.0, 0.0]
            assert mo.gradients(y, [x]) == [None]
    assert tape.gradient(ys, x) is None


def test_a_variable_of_the_kind_of_keras_is_a_source(backend):
    if backend == "numpy":
        pytest.skip("Keras holds an array of NumPy there, which cannot record")

    class Variable:
        def __init__(self, value):
            self.value, self.shape, self.dtype = value, value.shape, "float32"

        def assign(self, value):
            self.value = value

    Variable.__module__ = "keras.src.backend"
    with mo.GradientTape(persistent=True) as tape:
        variable = Variable(tape.watch(mo.op_convert_to_tensor([1.0, 2.0])))
        y = mo.op_sum(mo.op_square(variable))
        (found,) = mo.gradients(y, [variable])
    for gradient in (found, tape.gradient(y, variable), tape.gradient(y, [variable])[0]):
        np.testing.assert_array_equal(mo.op_convert_to_numpy(gradient), [2.0, 4.0])
