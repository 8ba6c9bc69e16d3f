"""The work grows in proportion to leaves, operations and custom gradients: counted in calls, not in seconds."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import multiop as mo


@mo.op_custom_gradient
def doubled(x):
    return x * 1.0, lambda upstream: upstream * 2.0


@mo.op_custom_gradient
def ends(p):
    first, *_, last = p.values()
    return first * 1.0 + last, lambda upstream: dict.fromkeys(p, upstream * 2.0)


def chain(n):
    def f(x):
        for _ in range(n):
            x = doubled(x)
        return x

    return mo.grad(f)(1.0)


def parameters(n):
    return {f"p{k:05}": mo.op_convert_to_tensor(float(k)) for k in range(n)}


def leaves(n):
    p = parameters(n)
    return mo.grad(lambda p: p["p00000"] * 3.0 + p[f"p{n - 1:05}"])(p)


def leaves_of_a_rule(n):
    return mo.grad(ends)(parameters(n))


def recorded(n):
    with mo.GradientTape() as tape:
        x = y = tape.watch(mo.op_convert_to_tensor(1.0))
        for _ in range(n):
            y = mo.op_multiply(y, 1.5)
    return tape.gradient(y, x)


def calls(f, n):
    """Return how many functions are called, those written in C included, the second time that `f(n)` is evaluated."""
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        counted += event in ("call", "c_call")

    f(n)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        f(n)
    finally:
        sys.setprofile(before)
    return counted


@pytest.mark.parametrize("f", [chain, leaves, leaves_of_a_rule, recorded], ids=lambda f: f.__name__)
def test_work_is_linear(backend, f):
    few, many = calls(f, 100), calls(f, 500)
    assert many < 5.5 * few


def test_ten_thousand_leaves(backend):
    found = leaves(10_000)
    assert len(found) == 10_000
    assert [float(found[f"p{k:05}"]) for k in (0, 1, 9_999)] == [3.0, 0.0, 1.0]
    found = leaves_of_a_rule(10_000)
    assert {float(g) for g in found.values()} == {2.0}


def test_ten_thousand_custom_gradients(backend):
    @mo.op_custom_gradient
    def turned(x):
        return x * 1.0, lambda upstream: -upstream

    def f(x):
        for _ in range(9_999):
            x = turned(x)
        return x

    assert float(mo.grad(f)(1.0)) == -1.0  # no recursion limit


def test_ten_thousand_operations_on_a_tape(backend):
    with mo.GradientTape() as tape:
        x = y = tape.watch(mo.op_convert_to_tensor(np.float32(1.0)))
        for _ in range(10_000):
            y = mo.op_add(y, x)
    assert float(tape.gradient(y, x)) == 10_001.0
