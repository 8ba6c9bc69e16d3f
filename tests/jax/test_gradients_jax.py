"""`gradients` of tensors on JAX: TensorFlow's `tf.gradients`, worked out by hand or by JAX's transforms."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax import lax

from multiop import errors
from multiop.backends.jax.autodiff._tape import Tape
from multiop.backends.jax.autodiff.gradients import gradients as of_tensors

X = jnp.array([0.3, 1.2, -0.7])
S = jnp.array(0.8)


def gradients(ys, xs, grad_ys=None, stop_gradients=None):
    return of_tensors(ys, xs, grad_ys, stop_gradients, None, False, False)


def test_sum_over_ys_and_weights():
    with Tape(False, True) as tape:
        x, s = tape.watch(X), tape.watch(S)
        y, z = x * x, jnp.sin(x) * s
    both = gradients([y, z], [x, s])
    np.testing.assert_allclose(both[0], 2 * X + jnp.cos(X) * S, rtol=1e-6)
    np.testing.assert_allclose(both[1], jnp.sum(jnp.sin(X)), rtol=1e-6)
    w = jnp.array([1.0, 0.0, 2.0])
    weighted = gradients([y, z], [x], [w, None])
    np.testing.assert_allclose(weighted[0], w * 2 * X + jnp.cos(X) * S, rtol=1e-6)


def test_inside_after_and_more_than_once():
    with Tape(False, True) as tape:
        x = tape.watch(S)
        y = x**3
        inside = gradients([y], [x])[0]
        z = y * x
    np.testing.assert_allclose(
        [inside, gradients([y], [x])[0], gradients([z], [x])[0]], [3 * S**2, 3 * S**2, 4 * S**3], rtol=1e-6
    )


def test_intermediate_repeated_nested_and_own_xs():
    with Tape(False, True) as tape:
        x = tape.watch(S)
        h = jnp.sin(x)
        k = h * x
        y = k * h
    found = gradients([y], [x, h, k, x, y])
    dk, dh = h, k + h * x
    wanted = [dh * jnp.cos(x) + dk * h, dh, dk, dh * jnp.cos(x) + dk * h, 1]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    # y among the xs of a sum: y + k
    np.testing.assert_allclose(gradients([y, k], [k, y]), [h + 1, 1], rtol=1e-6)


def test_unconnected_and_integer():
    with Tape(False, True) as tape:
        x, s = tape.watch(X), tape.watch(S)
        y, n = jnp.sum(x * x), jnp.argmax(x)
        stopped = lax.stop_gradient(x) * 2
    assert gradients([y], [s, n, jnp.ones(3)]) == [None, None, None]
    assert gradients([x], [y]) == [None]
    np.testing.assert_allclose(gradients([y, n, stopped], [x])[0], 2 * X)


@pytest.mark.parametrize("stops", [[], ["a"], ["b"], ["c"], ["a", "b"], ["x"], ["b", "c"], ["y"]])
@pytest.mark.parametrize("wanted", ["x", "a", "b", "c"])
def test_stop_gradients_is_stop_gradient_in_the_same_place(stops, wanted):
    def compute(x, offsets, is_stopped):
        """Compute `y`, with an offset to each value that its gradient is taken by, and stops behind it."""
        values = {}

        def name(key, value):
            if is_stopped and key in stops:
                value = lax.stop_gradient(value)
            values[key] = value = value + offsets.get(key, 0.0)
            return value

        x = name("x", x)
        a = name("a", jnp.sin(x))
        b = name("b", a * x)
        c = name("c", jnp.exp(a) + b)
        values["y"] = name("y", a * b * c)
        return values

    def by_jax(offset):
        return compute(S, {wanted: offset}, True)["y"]

    with Tape(False, True) as tape:
        x = tape.watch(S)
        values = compute(x, {}, False)
    found = gradients([values["y"]], [values[wanted]], None, [values[key] for key in stops])[0]
    np.testing.assert_allclose(0 if found is None else found, jax.grad(by_jax)(0.0), rtol=1e-5)


def test_partial_and_total_derivatives():
    # tf.gradients documents this pair
    with Tape(False, True) as tape:
        a = tape.watch(jnp.array(1.0))
        b = 2 * a
        y = a + b
    assert [float(g) for g in gradients([y], [a, b], None, [a, b])] == [1, 1]
    assert [float(g) for g in gradients([y], [a, b])] == [3, 1]


def test_gradients_of_gradients_to_the_fourth_order():
    x = 0.7
    with Tape(False, True) as tape:
        w = tape.watch(jnp.array(x))
        found = [jnp.sin(w) * jnp.exp(w)]
        for _ in range(4):
            found += gradients([found[-1]], [w])
    wanted = [2 ** (n / 2) * np.sin(x + n * np.pi / 4) * np.exp(x) for n in range(5)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_second_order_after_the_scope_of_the_second_tape():
    with Tape(False, True) as outer:
        x = outer.watch(S)
        with Tape(False, True) as inner:
            inner.watch(x)
            y = x**4
        (first,) = gradients([y], [x])
    np.testing.assert_allclose(gradients([first], [x])[0], 12 * S**2, rtol=1e-5)


def test_mixed_tapes():
    with Tape(False, True) as outer:
        x = outer.watch(S)
        h = x * x
        with Tape(False, True) as inner:
            h, s = inner.watch(h), inner.watch(jnp.array(3.0))
            y = h * s * x
    np.testing.assert_allclose(gradients([y], [x, s, h]), [9 * S**2, S**3, 3 * S], rtol=1e-5)


def test_rule_is_kept_where_tapes_nest():
    rule = jax.custom_vjp(lambda x: x * x)
    rule.defvjp(lambda x: (x * x, x), lambda x, g: (10 * g * x,))
    with Tape(False, True) as outer:
        x = outer.watch(S)
        with Tape(False, True) as inner:
            inner.watch(x)
            y = rule(x)
            (first,) = gradients([y], [x])
    np.testing.assert_allclose([first, gradients([y], [x])[0]], [10 * S, 10 * S], rtol=1e-6)


def test_control_flow():
    def fun(x):
        x = lax.cond(x > 0, lambda v: v * v, lambda v: -v, x)
        x = lax.scan(lambda c, e: (c * e, None), x, jnp.arange(1.0, 4.0))[0]
        return lax.fori_loop(0, 3, lambda _, c: jnp.sin(c), x)

    with Tape(False, True) as tape:
        x = tape.watch(S)
        y = fun(x)
        (first,) = gradients([y], [x])
    np.testing.assert_allclose(first, jax.grad(fun)(S), rtol=1e-5)
    np.testing.assert_allclose(gradients([first], [x])[0], jax.grad(jax.grad(fun))(S), rtol=1e-5)


def test_complex():
    z = jnp.array(3 + 4j)
    with Tape(False, True) as tape:
        w = tape.watch(z)
        y = w * w
        r = jnp.abs(w) ** 2
    np.testing.assert_allclose(gradients([y], [w], [jnp.array(1 + 0j)])[0], 6 - 8j, rtol=1e-6)
    np.testing.assert_allclose(gradients([r], [w])[0], 6 + 8j, rtol=1e-6)
    np.testing.assert_allclose(gradients([y], [w], [jnp.array(2j)])[0], 2j * (6 - 8j), rtol=1e-6)
    with pytest.raises(errors.DTypeError, match="grad_ys"):
        gradients([y], [w])


def test_weights_are_checked():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        y = x * x
    with pytest.raises(errors.ArgumentError, match="shape"):
        gradients([y], [x], [jnp.ones(2)])
    with pytest.raises(errors.DTypeError, match="complex64"):
        gradients([y], [x], [jnp.ones(3, jnp.complex64)])


def test_ys_without_a_tape():
    with Tape(False, True) as tape:
        x = tape.watch(X)
        assert gradients([lax.stop_gradient(x) * 2], [x]) == [None]  # a constant to the tape that is active
    assert gradients([jnp.sum(X * X)], [X]) is None
    with Tape(False, True) as tape:
        x = tape.watch(X)
    del tape
    assert gradients([x * x], [x]) is None


def test_weights_are_differentiated():
    with Tape(False, True) as tape:
        x, w = tape.watch(S), tape.watch(jnp.array(2.0))
        y = x**3
        (first,) = gradients([y], [x], [w])
    np.testing.assert_allclose(gradients([first], [x, w]), [12 * S, 3 * S**2], rtol=1e-6)


def test_in_jit_and_vmap():
    def second(x):
        with Tape(False, True) as tape:
            x = tape.watch(x)
            (first,) = gradients([jnp.sin(x) * x], [x])
            return gradients([first], [x])[0]

    wanted = 2 * jnp.cos(X) - X * jnp.sin(X)
    np.testing.assert_allclose(second(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(second)(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(second)(X), wanted, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(jax.grad(second))(X), -3 * jnp.sin(X) - X * jnp.cos(X), rtol=1e-5)
