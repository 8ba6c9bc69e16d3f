"""What autodiff costs, by counts: how Python calls grow, how often a function is traced. No time is measured."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import multiop as mo

X = np.array([0.5, -1.0, 2.0], np.float32)


@mo.op_custom_gradient
def times_one(x):
    return x * 1.0, lambda upstream: upstream * 1.0


@mo.op_custom_gradient
def ends(xs):
    return xs[0] * xs[-1], lambda upstream: [upstream] * len(xs)


def chain(x, n):
    for _ in range(n):
        x = times_one(x)
    return x


def chain_by_grad(n):
    return mo.grad(lambda x: chain(x, n))(mo.op_convert_to_tensor(2.0))


def chain_by_tape(n):
    with mo.GradientTape() as tape:
        x = tape.watch(mo.op_convert_to_tensor(2.0))
        y = chain(x, n)
    return tape.gradient(y, x)


def leaves_of_grad(n):
    return mo.grad(lambda xs: xs[0] * xs[-1])([mo.op_convert_to_tensor(2.0)] * n)[-1]


def leaves_of_custom_gradient(n):
    return mo.grad(ends)([mo.op_convert_to_tensor(1.0)] * n)[-1]


def leaves_of_tape(n):
    with mo.GradientTape() as tape:
        xs = tape.watch([mo.op_convert_to_tensor(2.0) for _ in range(n)])
        y = xs[0] * xs[-1]
    return tape.gradient(y, xs)[0]


SCALED = (chain_by_grad, chain_by_tape, leaves_of_grad, leaves_of_custom_gradient, leaves_of_tape)


def python_calls(fun):
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        fun()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("run", SCALED)
def test_python_calls_grow_linearly(backend, run):
    run(30), run(300)  # what is compiled or cached is so now
    # linear growth multiplies by ten at most, quadratic growth by up to a hundred
    assert python_calls(lambda: run(300)) <= 12 * python_calls(lambda: run(30))


@pytest.mark.parametrize("run", SCALED)
def test_no_recursion_limit(backend, run):
    before = sys.getrecursionlimit()  # what compiles may have raised it
    sys.setrecursionlimit(1000)
    try:
        assert float(run(1500)) in (1.0, 2.0)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.traced
def test_jit_traces_once_per_signature(backend):
    traces = []

    def f(x, y, mode=("a", 1)):
        traces.append(mode)
        return {"sum": x + y, "mode": mode}

    g = mo.jit(f, static_argnames="mode")
    x = mo.op_convert_to_tensor(X)

    def new_traces(*args, **kwargs):
        before = len(traces)
        g(*args, **kwargs)
        return len(traces) - before

    assert new_traces(x, x) == 1
    assert new_traces(x + 1, x * 2) == 0
    assert new_traces(X, X) == 0  # a NumPy array is a tensor of its dtype
    assert new_traces(x[:2], x[:2]) == 1
    assert new_traces(mo.op_cast(x, "int32"), mo.op_cast(x, "int32")) == 1
    assert new_traces(x, x) == new_traces(x[1:], x[1:]) == 0
    assert new_traces(x, x, mode=("b", int("2"))) == 1
    assert new_traces(x, x, mode=("b", int("2"))) == 0  # equal, not identical
    assert new_traces(x, y=x, mode=("b", int("2"))) == 1  # by keyword, it is another structure
    assert new_traces(x, y=x * 2, mode=("b", int("2"))) == 0


@pytest.mark.traced
def test_jit_traces_of_pytrees_and_numbers(backend):
    traces = []

    def f(p, s):
        traces.append(s)
        return p["w"] * p["b"][0] * s

    g, x = mo.jit(f), mo.op_convert_to_tensor(X)
    for k in range(1, 4):
        g({"w": x, "b": [x * k]}, mo.op_convert_to_tensor(float(k)))
    assert len(traces) == 1  # a number given as a tensor is not a value of the trace
    for s in (2.0, 3.0, 2.0, 3.0):
        g({"w": x, "b": [x]}, s)
    assert traces[1:] == [2.0, 3.0]  # a Python number is: once for each


@pytest.mark.traced
@pytest.mark.parametrize("outer", [lambda f: mo.jit(mo.value_and_grad(f)), lambda f: mo.value_and_grad(mo.jit(f))])
def test_jit_of_a_gradient_traces_once(backend, outer):
    traces = []

    def loss(p):
        traces.append(1)
        return mo.op_sum(chain(p["w"], 3) ** 2)

    step = outer(loss)
    x = mo.op_convert_to_tensor(X)
    step({"w": x})
    first = len(traces)
    for k in range(3):
        value, gradient = step({"w": x * k})
    assert len(traces) == first
    np.testing.assert_allclose(float(value), ((2 * X) ** 2).sum(), rtol=1e-6)
    np.testing.assert_allclose(mo.op_convert_to_numpy(gradient["w"]), 4 * X, rtol=1e-6)
