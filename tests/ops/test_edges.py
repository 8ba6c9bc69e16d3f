"""Every function of one or two numbers on a grid of edge values, in all backends: a search for divergences.

Compared is what is pinned: derivatives where operands and result are finite, activations at finite operands, other
values everywhere.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math

import numpy as np
import pytest

import multiop
from multiop._loading import registry
from multiop.frontends import activations as frontend
from multiop.testing._case import samplers
from multiop.testing.cases import activations, elementwise, special

EDGES = np.array([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 3.0, -2.0, np.inf, -np.inf, np.nan])


def ops(n):
    """Return the differentiable ops whose arguments are `n` tensors and no more."""
    names = {1: ["x"], 2: ["x1", "x2"]}[n]
    return sorted(
        row.op
        for row in elementwise.ROWS + activations.ROWS + special.ROWS
        if row.differentiable
        and all(sampler.dtype is None for sampler in samplers(list(row.calls[0].args)))
        and list(inspect.signature(getattr(multiop, row.op)).parameters) == names
    )


def answers(op, xs, i):
    """Return the value, the gradient and the tangent with respect to operand `i`, entry by entry, in each backend."""
    found = {}
    for name in multiop.available_backends():
        with multiop.use_backend(name):
            tensors = [multiop.op_convert_to_tensor(x) for x in xs]

            def f(x, tensors=tensors):
                y = getattr(multiop, op)(*tensors[:i], x, *tensors[i + 1 :])
                return functools.reduce(multiop.op_add, y) if isinstance(y, tuple) else y

            ones = multiop.op_ones_like(tensors[i])
            y, tangent = multiop.jvp(f, (tensors[i],), (ones,))
            _, pullback = multiop.vjp(f, tensors[i])
            (gradient,) = pullback(multiop.op_ones_like(y))
            found[name] = [multiop.op_convert_to_numpy(z) for z in (y, gradient, tangent)]
    return found


def equal(a, b):
    """Say where two answers are the same number, infinity or NaN, apart from the sign of 0 and digits below 1e-16."""
    with np.errstate(invalid="ignore"):
        return (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & (np.abs(a - b) <= 1e-12 * np.abs(b) + 1e-16))


def check(op, xs, i):
    found = answers(op, xs, i)
    assert {*found} == {*registry.BUILT_IN}
    value, gradient, _ = found["torch"]
    finite = np.isfinite(xs).all(0)
    number = finite & np.isfinite(value)
    pinned = finite if hasattr(frontend, op) else np.True_
    for name, answer in found.items():
        assert np.all(equal(answer[0], value) | ~pinned), f"values of {op} on {name}"
        for kind, slopes in zip(["gradient", "tangent"], answer[1:], strict=False):
            differs = number & ~equal(slopes, gradient)
            points = [tuple(x[k] for x in xs) for k in np.flatnonzero(differs)]
            assert not points, f"{kind} of {op} with respect to operand {i} on {name} at {points}"


@pytest.mark.rotating
@pytest.mark.cross
@pytest.mark.parametrize("op", ops(1))
def test_functions_of_one_number(op, multiop_x64):
    check(op, [EDGES], 0)


@pytest.mark.cross
@pytest.mark.parametrize(("op", "i"), list(itertools.product(ops(2), (0, 1))))
def test_functions_of_two_numbers(op, i, multiop_x64):
    x1, x2 = (x.ravel() for x in np.meshgrid(EDGES, EDGES))
    check(op, [x1, x2], i)


SECOND = {  # the function, and its second derivative at numbers of Python
    "hypot": (lambda x: multiop.op_hypot(x, multiop.op_stop_gradient(x)), lambda x: 8**-0.5 / x),
    "divide": (lambda x: multiop.op_divide(1.0, x), lambda x: 2 / x**3),
    "sinc": (multiop.op_sinc, lambda x: -math.pi * math.sin(math.pi * x) / x - 2 * (math.cos(math.pi * x)) / x**2),
}


@pytest.mark.parametrize(("name", "x"), [*((name, 24.0) for name in SECOND), ("hypot", 1e-3), ("hypot", 300.0)])
def test_second_derivatives_in_half_precision(backend, name, x):
    f, expected = SECOND[name]
    found = multiop.grad(multiop.grad(f))(multiop.op_convert_to_tensor(x, "float16"))
    assert float(multiop.op_convert_to_numpy(found)) == pytest.approx(expected(x), rel=0.01, abs=1e-6)
