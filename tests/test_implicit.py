"""Solutions that are differentiated by their equation, against the derivatives of a direct solve and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import multiop
from multiop import ops

A = np.array([[4.0, 1.0], [-0.5, 3.0]])
B, V, W = np.array([1.0, 2.0]), np.array([[0.3, -0.2], [0.5, 0.1]]), np.array([0.7, -0.4])


@pytest.fixture(autouse=True)
def x64():
    before = multiop.x64()
    multiop.enable_x64()
    yield
    multiop.enable_x64(before)


def array(x):
    return ops.array(np.asarray(x, np.float64))


def product(x, a):
    return ops.matmul(a, x)


def richardson(matvec, b):
    return ops.fori_loop(0, 120, lambda i, x: x + 0.25 * (b - matvec(x)), ops.zeros_like(b))


def until_close(matvec, b):
    def step(x):
        return (x + 0.25 * (b - matvec(x)),)

    start = (ops.zeros_like(b),)
    return ops.while_loop(lambda x: ops.max(ops.abs(b - matvec(x))) > 1e-13, step, start, maximum_iterations=200)[0]


def implicit(solve):
    return lambda a, b: ops.sum(ops.sin(multiop.linear_solve(product, b, solve, args=(a,))))


def direct(a, b):
    return ops.sum(ops.sin(ops.solve(a, b)))


def first(f, a, b):
    return multiop.grad(f, (0, 1))(a, b)


def mapped(f, a, b):
    return multiop.vmap(multiop.grad(f, (0, 1)))(ops.stack([a, 2.0 * a]), ops.stack([b, b]))


def forward(f, a, b):
    return multiop.jvp(f, (a, b), (array(V), array(W)))[1]


def second(f, a, b):
    return multiop.hvp(f, (a, b), (array(V), array(W)))


def third(f, a, b):
    total = lambda g: lambda b: ops.sum(multiop.grad(g)(b) * array(W))
    return multiop.grad(total(total(lambda b: f(a, b))))(b)


def compiled(way):
    return lambda f, a, b: multiop.jit(lambda a, b: way(f, a, b))(a, b)


WAYS = {
    "value": lambda f, a, b: f(a, b),
    "grad": first,
    "vmap": mapped,
    "jvp": forward,
    "hvp": second,
    "third": third,
    "grad, compiled": compiled(first),
    "hvp, compiled": compiled(second),
}
FULL = pytest.mark.tier("full")
CASES = [pytest.param(None, way, id=f"formed-{way}", marks=FULL if way != "hvp" else ()) for way in WAYS]
CASES += [pytest.param(richardson, way, id=f"steps-{way}", marks=FULL) for way in ("grad", "jvp", "hvp")]
CASES += [pytest.param(until_close, way, id=f"loop-{way}", marks=FULL) for way in ("grad", "third")]


def close(x, y):
    for got, wanted in zip(multiop.tree.leaves(x), multiop.tree.leaves(y), strict=True):
        np.testing.assert_allclose(multiop.op_convert_to_numpy(got), multiop.op_convert_to_numpy(wanted), rtol=1e-7)


@pytest.mark.parametrize(("solve", "way"), CASES)
def test_a_linear_solve_has_the_derivatives_of_a_direct_one(solve, way, backend):
    a, b = array(A), array(B)
    close(WAYS[way](implicit(solve), a, b), WAYS[way](direct, a, b))


def test_the_transposed_system_has_the_solver_that_is_given_for_it(backend):
    called = []

    def transposed(matvec, b):
        called.append(ops.convert_to_numpy(matvec(array([1.0, 0.0]))))
        return ops.solve(array(A.T), b)

    f = lambda b: ops.sum(multiop.linear_solve(product, b, richardson, transposed, args=(array(A),)))
    close(multiop.grad(f)(array(B)), array(np.linalg.solve(A.T, np.ones(2))))
    np.testing.assert_allclose(called[0], A[0])


@FULL
def test_a_system_of_pytrees(backend):
    def matvec(x, scale):
        return {"u": 2.0 * scale * x["u"] + x["v"], "v": x["v"] - x["u"]}

    b = {"u": array([3.0]), "v": array([0.0])}
    f = lambda scale: ops.sum(multiop.linear_solve(matvec, b, args=(scale,))["u"])  # 3 / (2 scale + 1)
    close(multiop.value_and_grad(f)(array(1.0)), [array(1.0), array(-2 / 3)])


def newton(f, x):
    for _ in range(8):
        y, slope = multiop.jvp(f, (x,), (ops.ones_like(x),))
        x = x - y / slope
    return x


def cube_root(a):
    return ops.sum(multiop.root(lambda x, a: x * x * x - a, ops.ones_like(a), newton, args=(a,)))


@FULL
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_root_has_the_derivatives_of_the_inverse_function(is_compiled, backend):
    a, v = array([2.0, 4.0]), array([1.0, -3.0])
    jit = multiop.jit if is_compiled else lambda f: f
    x = np.cbrt([2.0, 4.0])
    slope, curvature = x**-2 / 3, -2 * x**-5 / 9
    close(jit(multiop.grad(cube_root))(a), array(slope))
    close(jit(lambda a: multiop.jvp(cube_root, (a,), (v,))[1])(a), array(slope @ [1.0, -3.0]))
    close(jit(lambda a: multiop.hvp(cube_root, (a,), (v,)))(a), array(curvature * [1.0, -3.0]))
    close(multiop.vmap(multiop.grad(cube_root))(a), array(slope))


def test_a_root_does_not_depend_on_where_the_solver_begins(backend):
    f = lambda x0: ops.sum(multiop.root(lambda x: x * x - 2.0, x0, newton))
    close(multiop.grad(f)(array([1.0])), array([0.0]))


def test_a_differentiable_value_that_the_equation_closes_over_is_refused(backend):
    with pytest.raises(multiop.errors.ClosedOverError):
        multiop.grad(lambda a: ops.sum(multiop.linear_solve(lambda x: product(x, a), array(B), richardson)))(array(A))
    with pytest.raises(multiop.errors.ClosedOverError):
        multiop.grad(lambda a: ops.sum(multiop.root(lambda x: x * x - a, array(B), newton)))(array(B))


def test_what_is_refused(backend):
    b = array(B)
    with pytest.raises(multiop.errors.ArgumentTypeError, match="linear_solve: args must be a tuple or list"):
        multiop.linear_solve(product, b, args=array(A))
    with pytest.raises(multiop.errors.ArgumentTypeError, match="root: solve must be callable"):
        multiop.root(lambda x: x, b, None)
    with pytest.raises(multiop.errors.ArgumentError, match=r"linear_solve: what solve returned has shape \(1,\)"):
        multiop.linear_solve(product, b, lambda matvec, b: b[:1], args=(array(A),))
