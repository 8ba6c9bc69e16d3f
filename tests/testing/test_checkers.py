"""Each checker passes on what is right, and fails on a fault planted for it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import multiop
from multiop.testing import Mismatch, normal, positive
from multiop.testing._case import call, has_gradient, pin
from multiop.testing._checks import (
    NoEstimate,
    check_agreement,
    check_compiled,
    check_forward_mode,
    check_gradient,
    check_pin,
    check_primal,
    check_second_order,
    check_values,
    check_vmap,
)
from multiop.testing._problem import Problem

pytestmark = pytest.mark.usefixtures("multiop_x64")

TWO = call(normal(2, 3), positive(3))


def product(x, y):
    return x * x * y


def with_rule(rule):
    """Return `product` with the gradient `rule(upstream, x, y)`."""

    @multiop.op_custom_gradient
    def product(x, y):
        return x * x * y, lambda upstream: rule(upstream, x, y)

    return product


def summed(x):
    return multiop.op_sum(x, axis=0)


right = with_rule(lambda u, x, y: (2 * u * x * y, summed(u * x * x)))


def test_right_passes_every_check(backend):
    for f in (product, right):
        problem = Problem(f, TWO)
        assert check_values(problem, product, "float64") < 1e-15
        assert check_gradient(problem, product) < 1e-10
        assert check_gradient(problem, product, analytic=True) < 1e-14
        assert check_gradient(problem) < 1e-8
        assert check_primal(problem) == 0.0
        assert check_second_order(problem) < 1e-8
        assert check_forward_mode(problem) < 1e-13
        assert check_vmap(problem) < 1e-13


def test_forward_mode_of_a_sum_that_cancels(backend):
    def nothing(x, y):
        return multiop.op_sum(x * y - multiop.op_mean(x * y, axis=-1, keepdims=True), axis=-1)

    for seed in range(8):
        check_forward_mode(Problem(nothing, TWO, dtype="float32", seed=seed))


def test_right_passes_compiled(backend):
    problem = Problem(right, TWO)
    assert check_compiled(problem) < 1e-13
    assert check_compiled(problem, Problem(product, call(normal(), positive(2)))) < 1e-13


def test_wrong_value(backend):
    with pytest.raises(Mismatch, match="relative error"):
        check_values(Problem(lambda x, y: product(x, y) * (1 + 1e-14), TWO), product, "float64")


def test_wrong_dtype(backend):
    with pytest.raises(Mismatch, match="dtype float32, float64 is expected"):
        check_values(Problem(lambda x, y: multiop.op_cast(product(x, y), "float32"), TWO), product, "float64")


def test_wrong_shape(backend):
    with pytest.raises(Mismatch, match="shape"):
        check_values(Problem(lambda x, y: summed(product(x, y)), TWO), product, "float64")


def test_wrong_number_of_results(backend):
    with pytest.raises(Mismatch, match="2 results, the reference has 1"):
        check_values(Problem(lambda x, y: (x, y), TWO), product)


@pytest.mark.parametrize(
    "rule",
    [
        lambda u, x, y: (2 * u * x * y * (1 + 1e-8), summed(u * x * x)),
        lambda u, x, y: (2 * u * x * y, -summed(u * x * x)),
        lambda u, x, y: (u * x * y, summed(u * x * x)),
        lambda u, x, y: (2 * u * x * y, None),
    ],
)
def test_wrong_gradient(backend, rule):
    problem = Problem(with_rule(rule), TWO)
    with pytest.raises(Mismatch, match="gradient of product"):
        check_gradient(problem, product)
    with pytest.raises(Mismatch, match="gradient of product"):
        check_gradient(problem)


def test_gradient_of_another_dtype(backend, monkeypatch):
    right = multiop.vjp

    def faulty(fun, *primals):
        output, pullback = right(fun, *primals)
        return output, lambda upstream: [multiop.op_cast(g, "float32") for g in pullback(upstream)]

    monkeypatch.setattr(multiop, "vjp", faulty)
    with pytest.raises(Mismatch, match=r"float32.* where float64.* is expected"):
        check_gradient(Problem(product, TWO), product)


def test_kink_is_no_estimate(backend):
    with pytest.raises(NoEstimate, match="kink"):
        check_gradient(Problem(multiop.op_sqrt, call(np.zeros(2))), np.sqrt)


@pytest.mark.parametrize("dropped", ["x", "y"])
def test_dropped_second_order_term(backend, dropped):
    stop = multiop.op_stop_gradient
    stopped = {
        "x": lambda u, x, y: (2 * u * stop(x) * y, summed(u * x * x)),
        "y": lambda u, x, y: (2 * u * x * stop(y), summed(u * x * x)),
    }
    problem = Problem(with_rule(stopped[dropped]), TWO)
    assert check_gradient(problem, product) < 1e-10
    with pytest.raises(Mismatch, match="second order of product"):
        check_second_order(problem)


@pytest.mark.parametrize("factor", [2.0, 1 + 1e-9, 0.0])
def test_wrong_forward_rule(backend, monkeypatch, factor):
    right = multiop.jvp

    def faulty(fun, primals, tangents):
        output, tangent = right(fun, primals, tangents)
        return output, [t * factor for t in tangent]

    monkeypatch.setattr(multiop, "jvp", faulty)
    with pytest.raises(Mismatch, match="forward mode of product"):
        check_forward_mode(Problem(product, TWO))


def test_forward_tangent_of_another_shape(backend, monkeypatch):
    right = multiop.jvp
    monkeypatch.setattr(multiop, "jvp", lambda *args: (None, [summed(t) for t in right(*args)[1]]))
    with pytest.raises(Mismatch, match="a tangent float64"):
        check_forward_mode(Problem(product, TWO))


def test_wrong_vmap(backend, monkeypatch):
    right = multiop.vmap
    monkeypatch.setattr(multiop, "vmap", lambda fun: lambda *xs: [multiop.op_flip(y, axis=0) for y in right(fun)(*xs)])
    with pytest.raises(Mismatch, match="vmap of the value"):
        check_vmap(Problem(product, TWO))


def test_vmap_that_loses_the_rule(backend, monkeypatch):
    lossy = Problem(product, TWO)
    assert lossy.cotangents  # from the value, which has to be computed outside of any tracing
    problem = Problem(with_rule(lambda u, x, y: (u * x * y, None)), TWO)
    right = multiop.vmap

    def faulty(fun):
        return right(lambda *xs: [*lossy.outputs(*xs), *lossy.gradient_tensors(*xs)])

    monkeypatch.setattr(multiop, "vmap", faulty)
    with pytest.raises(Mismatch, match="vmap of the gradient"):
        check_vmap(problem)


def test_compiled_that_differs(backend, monkeypatch):
    monkeypatch.setattr(multiop, "jit", lambda fun: lambda *xs: [y * (1 + 1e-10) for y in fun(*xs)])
    with pytest.raises(Mismatch, match="compiled value of"):
        check_compiled(Problem(product, TWO))


def test_wrong_pinned_answer(backend):
    assert (
        check_pin(
            multiop.op_exp, pin([0.0, np.inf, np.nan], value=[1.0, np.inf, np.nan], gradient=[1.0, np.inf, np.nan])
        )
        == 0
    )
    for wrong in (
        pin([0.0], value=[1.0001]),
        pin([0.0], value=[np.nan]),
        pin([0.0], gradient=[0.0]),
        pin([0.0], gradient=([1.0], [1.0])),
        pin(0.0, value=[1.0]),
    ):
        assert has_gradient(wrong) or wrong.value is not None
        with pytest.raises(Mismatch):
            check_pin(multiop.op_exp, wrong)


@pytest.mark.cross
def test_backends_that_disagree(backend):
    others = [name for name in multiop.available_backends() if name != backend]
    if not others:
        pytest.skip("one backend has none to be compared with")

    def odd_one_out(x, y):
        return product(x, y) * (1.0 + 1e-9 * (multiop.backend() == backend))

    with pytest.raises(Mismatch, match=f"(on|against) {backend}"):
        check_agreement(lambda: Problem(odd_one_out, TWO), [backend, *others])


def test_a_value_that_changes_while_it_is_differentiated_fails(backend):
    calls = itertools.count()  # the first evaluation is that of the differentiated function
    problem = Problem(lambda x, y: product(x, y) if next(calls) else 2 * product(x, y), TWO)
    with pytest.raises(Mismatch, match="differentiated"):
        check_primal(problem)
