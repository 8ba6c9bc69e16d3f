"""The record of the NumPy backend: what it holds, for how long, and what NumPy's own functions do with it."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop.backends.numpy._record import Node

X = np.array([0.5, -1.0, 2.0], np.float32)


@mo.op_custom_gradient
def exponential(x):
    y = mo.op_exp(x)
    return y, lambda u: u * y


def nodes_with_a_past():
    return sum(isinstance(x, Node) and bool(x.inputs) for x in gc.get_objects())


def loss(x):
    return mo.op_sum(exponential(x) * mo.op_sin(x))


def by_tape(x):
    with mo.GradientTape() as tape:
        x = tape.watch(x)
        y = loss(x)
    return y, tape.gradient(y, x)


STEPS = {
    "tape": by_tape,
    "value_and_grad": mo.value_and_grad(loss),
    "jvp": lambda x: mo.jvp(loss, (x,), (x,)),
    "second order": lambda x: (loss(x), mo.grad(lambda x: mo.op_sum(mo.grad(loss)(x)))(x)),
    "checkpoint": lambda x: mo.value_and_grad(mo.checkpoint(loss))(x),
}


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("name", STEPS)
def test_a_loop_keeps_no_record(name):
    """Nothing waits for the cycle collector, though the losses are kept."""
    gc.collect()
    gc.disable()
    try:
        x, losses, before = X, [], nodes_with_a_past()
        for _ in range(20):
            value, gradient = STEPS[name](x)
            losses.append(value)
            x = x - 0.01 * gradient
            assert type(gradient) is np.ndarray
        assert nodes_with_a_past() == before
    finally:
        gc.enable()


def test_results_are_arrays_of_their_own():
    given, factor, ones = X.copy(), X.copy(), np.ones(3, np.float32)
    value, pullback = mo.vjp(lambda x, y: x * factor + y * x, given, given)
    for changed in (given, factor, value):
        changed += 10
    first, second = pullback(ones)
    np.testing.assert_allclose(first, 2 * X)
    np.testing.assert_allclose(second, X)
    first, second = mo.vjp(lambda x, y: x + y, X, X)[1](ones)
    first += 1
    assert second.tolist() == ones.tolist() == [1, 1, 1]


def test_what_a_running_transform_needs_is_recorded():
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(X)

        def inner(s):  # the tape is older than the transform
            return mo.op_sum(tape.gradient(x * s, x))

        assert float(mo.grad(inner)(2.0)) == 3
        g = tape.gradient(x * x * x, x)
    np.testing.assert_allclose(tape.gradient(g, x), 6 * X)
    with mo.GradientTape() as outer, mo.GradientTape() as tape:
        x = tape.watch(outer.watch(X))  # made while both record
        y = x * x * x
        g = tape.gradient(y, x)
    np.testing.assert_allclose(outer.gradient(g, x), 6 * X)


def test_functions_of_numpy():
    with mo.GradientTape() as tape:
        x = tape.watch(X)
        y = np.sin(x) + np.hypot(x, 1.0) + np.remainder(x, 0.75) + X * x
        for call in (
            np.spacing,
            np.trim_zeros,
            np.asarray,
            lambda x: np.array([x, x]),
            lambda x: np.add(x, x, where=x > 0),
        ):
            with pytest.raises(errors.UnsupportedError, match=r"np\.\w+ of an array that is differentiated: use an op"):
                call(x)
        with pytest.raises(AttributeError, match=r"multiop\.op_sort"):
            x.sort()
    np.testing.assert_allclose(tape.gradient(y, x), np.cos(X) + X / np.hypot(X, 1) + 1 + X, rtol=1e-6)
    assert np.sum(y) == y.sum()  # nothing differentiates it any more


def test_a_constant_output_that_the_rule_closes_over():
    """The second derivative is by the rule: the output is the function's, though no argument went into it."""
    wanted, box = np.array([2.0, 3.0]), []

    def f(x):
        y = np.array([2.0, 3.0])
        box[:] = [y]
        return y, lambda u: u * y * box[0]

    g = mo.op_custom_gradient(f)
    total = lambda f: lambda x: mo.op_sum(f(x))
    np.testing.assert_allclose(mo.grad(total(mo.grad(total(g))))(np.ones(2)), 2 * wanted**3)
    assert type(box[0]) is np.ndarray
    x = np.ones(2)
    h = mo.op_custom_gradient(lambda x: (x, lambda u: u * 5 * x))  # an input that is returned stays an input
    np.testing.assert_allclose(mo.grad(total(mo.grad(total(h))))(x), [5, 5])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_formula_in_16_bits(dtype):
    """Its operands are cast when the transform that recorded them is over."""
    x, y = mo.op_cast(X, dtype), mo.op_cast(0.25 * X * X, dtype)
    for f in (mo.op_divide_no_nan, lambda x, y: mo.op_clip(x, -1.5, y)):
        found = mo.grad(lambda *xs: mo.op_sum(f(*xs)), (0, 1))(x, y)
        wanted = mo.grad(lambda *xs: mo.op_sum(f(*xs)), (0, 1))(X, 0.25 * X * X)
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype.name == dtype and other.any()
            np.testing.assert_allclose(one.astype("float32"), other, rtol=2**-7)


def test_the_tape_says_that_an_array_cannot_record():
    """TensorFlow's idiom, in which the result of `watch` is not used, would give no gradient."""
    with mo.GradientTape() as tape:
        tape.watch(X)
        y = mo.op_sum(X * X)
    with pytest.raises(errors.TapeError, match=r"x = tape\.watch\(x\)"):
        tape.gradient(y, X)


# what the caller changes later

C = np.array([2.0, 3.0])


@mo.op_custom_gradient
def times(x, c):
    return x * c, lambda u: (u * c, u * x)


@mo.op_custom_gradient
def times_of_keras(x, c):
    def grad(*args, upstream=None):
        return upstream * args[1], upstream * args[0]

    return x * c, grad


@mo.op_custom_gradient
def times_of_tree(x, d):
    return x * d["c"], lambda u: (u * d["c"], {"c": u * x})


@mo.op_custom_gradient
def times_by_name(x, *, c):
    return x * c, lambda u: (u * c, u * x)


LATER = {
    "a rule": times,
    "a rule of Keras": times_of_keras,
    "a rule of trees": lambda x, c: times_of_tree(x, {"c": c}),
    "a rule of keywords": lambda x, c: times_by_name(x, c=c),
    "a rule in jit": lambda x, c: mo.jit(times)(x, c),
    "a rule within a rule": lambda x, c: mo.grad(lambda z: mo.op_sum(times(z, c)))(x) * x,
    "a checkpoint": lambda x, c: mo.checkpoint(lambda x, c: x * c)(x, c),
    "a checkpoint of a rule": lambda x, c: mo.checkpoint(times)(x, c),
    "attach_gradient": lambda x, c: mo.op_attach_gradient(x * 2, c, x),
    "an op": lambda x, c: x * c,
    "an op of views": lambda x, c: mo.op_multiply(*mo.op_broadcast_arrays(x, c)),
    "scan": lambda x, c: mo.op_scan(lambda s, r: (s * r, s), x, np.stack([c, np.ones(2)]))[0],
    "while_loop": lambda x, c: mo.op_while_loop(lambda s, _: mo.op_sum(s) < 4, lambda s, d: (s * d, d), (x, c))[0],
    "branches": lambda x, c: mo.op_cond(True, lambda: c * x, lambda: x),
    "vmap": lambda x, c: mo.vmap(lambda a, b: a * b)(x, c),
    "a dropout of nothing": lambda x, c: mo.random.dropout(c, 0.0) * x,
    "a number kept by the function": lambda x, c: kept_output(c)(x) * x + (c - kept_output(c)(x)) * 0,
}


def kept_output(c):
    @mo.op_custom_gradient
    def constant(x):
        return c, lambda u: u * 0

    return constant


@pytest.mark.parametrize("name", LATER)
def test_what_is_changed_after_the_call_changes_no_gradient(name):
    c = C.copy()
    _, pull = mo.vjp(lambda x: LATER[name](x, c), np.ones(2))
    c[:] = -5
    np.testing.assert_allclose(pull(np.ones(2))[0], C)


WRITES = {
    "fill": lambda y: y.fill(0),
    "put": lambda y: y.put([0], 9),
    "sort": lambda y: y.sort(),
    "flat": lambda y: y.flat.__setitem__(0, 9),
    "view": lambda y: y.view().__setitem__(0, 9),
    "real": lambda y: y.real.__setitem__(0, 9),
    "copyto": lambda y: np.copyto(y, 0),
    "ravel": lambda y: np.ravel(y).__setitem__(0, 9),
    "out": lambda y: np.add(1.0, 1.0, out=y),
    "at": lambda y: np.add.at(y, [0], 9.0),
    "a copy": lambda y: np.asarray(y).fill(0),
    "a tensor": lambda y: mo.op_convert_to_numpy(y).fill(0),
    "what is stopped": lambda y: mo.op_stop_gradient(y).fill(0),
}


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_written_into_what_a_tape_keeps(name):
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(np.array([2.0, 1.0]))
        y = mo.op_exp(x)
        z = mo.op_sum(y * y)
    with contextlib.suppress(ValueError, errors.UnsupportedError):
        WRITES[name](y)
    np.testing.assert_allclose(tape.gradient(z, x), 2 * np.exp([4.0, 2.0]))


def test_a_dropout_of_nothing_shares_no_memory():
    assert not np.shares_memory(mo.random.dropout(X, 0.0), X)


@mo.op_custom_gradient
def cube(x):
    return x * x * x, lambda u: u * 3 * x * x


def test_a_rule_that_runs_on_plain_arrays_is_differentiated_where_it_is_needed_again():
    def slope(x):
        return mo.op_sum(mo.gradients(cube(x) * x, [x])[0])  # within the one transform that is open

    np.testing.assert_allclose(mo.grad(slope)(X), 12 * X**2)
    np.testing.assert_allclose(mo.grad(lambda x: mo.op_sum(cube(x) * x))(X), 4 * X**3)
    np.testing.assert_allclose(mo.hessian(lambda x: mo.op_sum(cube(x) * x))(X), np.diag(12 * X**2))


def test_a_function_with_a_rule_cannot_write_into_what_is_recorded():
    @mo.op_custom_gradient
    def cleared(x):
        x[...] = 0
        return x * 2, lambda u: u

    with pytest.raises((ValueError, errors.UnsupportedError), match="writ|read-only"):
        mo.grad(lambda x: mo.op_sum(cleared(x * x)))(X)


def test_what_a_function_with_a_rule_writes_into_a_constant_changes_nothing_that_another_step_keeps():
    constant = np.arange(2000.0)

    @mo.op_custom_gradient
    def counted(x, c):
        y = x * c
        c += 1
        return y, lambda u: (u * (c - 1), None)

    gradient = mo.grad(lambda x: mo.op_sum(constant * x + counted(x, constant)))(np.ones(2000))
    np.testing.assert_array_equal(gradient, 2 * np.arange(2000.0))
    np.testing.assert_array_equal(constant, np.arange(2000.0))
