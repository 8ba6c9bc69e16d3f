"""Sparse derivatives: patterns, colours and values against dense derivatives, on each backend; and what is refused."""

from __future__ import annotations

import pickle
import re
import sys
from pathlib import Path

import coloring_table
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import multiop as mo
from multiop import errors, ops
from multiop.autodiff.sparse import _coloring

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))

from random_programs import INPUTS, SHAPES, compiled, draw

FULL = pytest.mark.tier("full")
N = 12
X = np.random.default_rng(0).normal(size=N)


@pytest.fixture(autouse=True)
def x64():
    before = mo.x64()
    mo.enable_x64()
    yield
    mo.enable_x64(before)


@pytest.fixture
def on_numpy(backend):
    """Run on NumPy alone what does not depend on the backend."""
    with mo.use_backend("numpy"):
        yield


def array(x):
    return ops.array(np.asarray(x, np.float64))


def host(x):
    return np.asarray(ops.convert_to_numpy(x))


def chain(x):
    return ops.concatenate([x[:1], x[1:-1] * x[:-2] + ops.sin(x[2:]), x[-1:] * x[0]])


def of_chain(x):
    """Return the Jacobian of `chain`, by hand."""
    J = np.zeros((N, N))
    J[0, 0] = 1
    for i in range(1, N - 1):
        J[i, i - 1], J[i, i], J[i, i + 1] = x[i], x[i - 1], np.cos(x[i + 1])
    J[-1, -1], J[-1, 0] = x[0], x[-1]
    return J


def energy(x):
    return ops.sum(ops.sin(x[1:] * x[:-1])) + ops.sum(x**3) + x[0] * x[5]


def of_energy(x):
    """Return the Hessian of `energy`, by hand."""
    H = np.diag(6 * x)
    p = x[1:] * x[:-1]
    for i in range(N - 1):
        H[i, i] -= np.sin(p[i]) * x[i + 1] ** 2
        H[i + 1, i + 1] -= np.sin(p[i]) * x[i] ** 2
        H[i, i + 1] += np.cos(p[i]) - np.sin(p[i]) * p[i]
        H[i + 1, i] = H[i, i + 1]
    H[0, 5] = H[5, 0] = 1
    return H


# patterns: what each kind of op mixes, for every value


def band(*offsets, n=N):
    return sum(np.eye(n, k=k) for k in offsets)


def both(i, j):
    found = np.zeros((N, N))
    found[i, j] = found[j, i] = 1
    return found


def in_place(x):
    y = x
    y += ops.roll(x, 1)
    return y * x


ROW = np.ones((1, N))
ALIKE = np.kron(np.eye(3), np.ones((4, 4)))  # entries of a (3, 4) tensor in one row
ACROSS = np.kron(np.ones((3, 3)), np.eye(4))
INDEX = np.array([2, 0, 0])
TRIANGLES = np.stack([np.tri(4)] * 3)
EXACT = {  # a function, and its pattern
    "elementwise": (lambda x: ops.exp(x) * x / 2, np.eye(N)),
    "a constant": (lambda x: ops.round(x) + ops.floor(x), np.zeros((N, N))),
    "broadcast": (lambda x: x * x[:1], np.eye(N) + np.eye(N)[:, :1] @ np.eye(1, N) + np.ones((N, 1)) @ np.eye(1, N)),
    "slices": (lambda x: x[1:] - x[:-1] ** 2, (np.eye(N) + np.eye(N, k=1))[:-1]),
    "roll": (lambda x: ops.roll(x, 1) * x, band(0, -1, N - 1)),
    "both branches of where": (lambda x: ops.where(x > 0, x, ops.roll(x, 1)), band(0, -1, N - 1)),
    "a mask": (lambda x: ops.where((x > 1) & ~(x > 3), x, ops.roll(x, 1)), band(0, -1, N - 1)),
    "gated halves": (lambda x: ops.glu(ops.reshape(x, (3, 4)), 1), np.kron(np.eye(3), np.ones((2, 4)))),
    "in place": (in_place, band(0, -1, N - 1)),
    "a known where": (lambda x: ops.where(np.arange(N) < 3, x, 0.0), np.diag(np.arange(N) < 3)),
    "pad": (lambda x: ops.pad(x, (1, 1)), np.eye(N + 2, N, k=-1)),
    "take": (lambda x: ops.take(x, INDEX), np.eye(N)[INDEX]),
    "take by an unknown index": (lambda x: ops.take(x, ops.argsort(x)), np.ones((N, N))),
    "take_along_axis": (lambda x: ops.take_along_axis(x, ops.argsort(x)[:3]), np.ones((3, N))),
    "scatter": (lambda x: ops.scatter_update(x, [[1]], x[:1]), np.eye(N)[[0, 0, *range(2, N)]]),
    "segments": (lambda x: ops.segment_sum(x, np.arange(N) // 4, 3), np.kron(np.eye(3), np.ones((1, 4)))),
    "sum": (lambda x: ops.sum(x), ROW),
    "an axis": (lambda x: ops.max(ops.reshape(x, (3, 4)), 1), np.kron(np.eye(3), np.ones((1, 4)))),
    "softmax": (lambda x: ops.softmax(ops.reshape(x, (3, 4))), ALIKE),
    "sort": (lambda x: ops.sort(ops.reshape(x, (3, 4)), 0), ACROSS),
    "cumsum": (lambda x: ops.cumsum(x), np.tri(N)),
    "matmul": (lambda x: ops.matmul(ops.reshape(x, (3, 4)), np.ones((4, 2))), np.kron(np.eye(3), np.ones((2, 4)))),
    "matmul by zeros": (lambda x: ops.matmul(ops.eye(N, k=1, dtype="float64"), x), np.eye(N, k=1)),
    "einsum": (
        lambda x: ops.einsum("ij,k->jk", ops.reshape(x, (3, 4)), np.ones(2)),
        np.kron(np.kron(np.ones((1, 3)), np.eye(4)), np.ones((2, 1))),
    ),
    "convolution": (lambda x: ops.conv(ops.reshape(x, (1, N, 1)), np.ones((3, 1, 1)), padding="same"), band(-1, 0, 1)),
    "pooling": (lambda x: ops.max_pool(ops.reshape(x, (1, N, 1)), 4), np.kron(np.eye(3), np.ones((1, 4)))),
    "both branches of cond": (lambda x: ops.cond(x[0] > 0, lambda: x, lambda: ops.roll(x, 1)), band(0, -1, N - 1)),
    "a scan": (
        lambda x: ops.scan(lambda c, r: (c + r, c * r), ops.zeros((), "float64"), x)[1],
        np.tri(N) - both(0, 0),  # it begins with a zero that stays one
    ),
    "a loop until": (
        lambda x: ops.while_loop(lambda y: y[0] < 9, lambda y: (ops.concatenate([y[:1], y[:-1]]),), (x,), 20)[0],
        np.tri(N),
    ),
    "map": (lambda x: ops.map(lambda r: r * ops.sum(r), ops.reshape(x, (3, 4))), ALIKE),
    "vmap": (lambda x: mo.vmap(lambda r: ops.cumsum(r))(ops.reshape(x, (3, 4))), np.kron(np.eye(3), np.tri(4))),
    "a gradient": (mo.grad(energy), band(-1, 0, 1) + both(0, 5)),
    "vjp": (lambda x: mo.vjp(lambda y: y * y, x)[1](ops.roll(x, 1))[0], band(0, -1, N - 1)),
    "jvp of what is linear": (lambda x: mo.jvp(lambda y: y[::-1], (x,), (x**2,))[1], np.eye(N)[::-1]),
    "jit and checkpoint": (mo.jit(mo.checkpoint(lambda x: ops.tanh(x))), np.eye(N)),
    "stop_gradient": (lambda x: x * ops.stop_gradient(ops.sum(x)), np.eye(N)),
    "inverse": (lambda x: ops.inv(ops.reshape(x[:8], (2, 2, 2))), np.kron(np.eye(2, 3), np.ones((4, 4)))),
    "rfft": (lambda x: ops.rfft(ops.reshape(x, (3, 4)))[0], np.kron(np.eye(3), np.ones((3, 4)))),
    "take rows by an unknown index": (lambda x: ops.take(ops.reshape(x, (3, 4)), ops.argsort(x[:3]), 0), ACROSS),
    "an unknown index in known rows": (
        lambda x: ops.reshape(x, (3, 4))[np.arange(3), ops.argsort(x[:3])],
        np.kron(np.eye(3), np.ones((1, 4))),
    ),
    "scatter at an unknown index": (
        lambda x: ops.scatter_update(x, ops.argsort(x[:2])[:, None], x[-2:], "add"),
        np.eye(N) + (np.arange(N) >= N - 2),
    ),
    "segments that are not known": (
        lambda x: ops.segment_sum(ops.reshape(x, (3, 4)), ops.argsort(x[:3]), 2),
        np.kron(np.ones((2, 3)), np.eye(4)),
    ),
    "solve": (lambda x: ops.solve(2 - np.eye(4), ops.reshape(x, (4, 3))), np.kron(np.ones((4, 4)), np.eye(3))),
    "solve a batch of vectors": (lambda x: ops.solve(TRIANGLES + np.eye(4), ops.reshape(x, (3, 4))), ALIKE),
    "solve a lower triangle": (
        lambda x: ops.solve_triangular(TRIANGLES, ops.reshape(x, (3, 4)), lower=True),
        np.kron(np.eye(3), np.tri(4)),
    ),
    "solve an upper triangle": (
        lambda x: ops.solve_triangular(TRIANGLES[0].T, ops.reshape(x, (4, 3))),
        np.kron(np.tri(4).T, np.eye(3)),
    ),
    "solve by an unknown triangle": (
        lambda x: ops.solve_triangular(ops.reshape(x[:9], (3, 3)), x[9:], lower=True),
        np.hstack([np.repeat(np.tri(3), 3, 1) * np.tri(3).ravel(), np.tri(3)]),
    ),
}  # fmt: skip


@pytest.mark.once
def test_patterns_of_ops_are_exact(on_numpy):
    wrong = []
    for name, (f, wanted) in EXACT.items():
        J = mo.sparse_jacobian(f, array(np.abs(X) + 0.1))
        if not np.array_equal(J.pattern.toarray(), np.asarray(wanted) != 0):
            wrong.append((name, J.pattern.toarray().astype(int)))
    assert wrong == []


def pairs(*groups):
    H = np.zeros((N, N), bool)
    for group in groups:
        H[np.ix_(group, group)] = True
    return H


SECOND = {  # a scalar function, and the pattern of its Hessian
    "linear": (lambda x: ops.sum(x) + ops.max(x), np.zeros((N, N))),
    "a sum of squares": (lambda x: ops.sum(x * x), np.eye(N)),
    "a dot product": (lambda x: ops.dot(x[:6], x[6:]), band(-6, 6)),
    "an outer product": (
        lambda x: ops.sum(ops.matmul(x[:1, None], x[None, 1:])),
        sum(both(0, k) for k in range(1, N)),
    ),
    "terms apart": (lambda x: ops.sum(ops.exp(x[::2] + x[1::2])), pairs(*((2 * k, 2 * k + 1) for k in range(6)))),
    "groups": (lambda x: ops.sum(ops.logsumexp(ops.reshape(x, (3, 4)), 1)), ALIKE),
    "a convolution by a part": (
        lambda x: ops.sum(ops.conv(ops.reshape(x[:6], (1, 6, 1)), ops.reshape(x[6:8], (2, 1, 1)))),
        sum(both(k, 6) for k in range(5)) + sum(both(k, 7) for k in range(1, 6)),
    ),
    "a quotient": (lambda x: x[0] / x[1], both(0, 1) + both(1, 1)),
    "what is not used": (lambda x: ops.sum(ops.sin(x)[:2]), np.diag(np.arange(N) < 2)),
    "a solve, in its right-hand side": (lambda x: ops.sum(ops.solve_triangular(np.tri(N), x * x, True)), np.eye(N)),
    "a sum at an unknown index": (lambda x: ops.scatter(ops.argsort(x)[:, None], x * x, (N,))[0], np.eye(N)),
    "energy": (energy, of_energy(X) != 0),
}  # fmt: skip


@pytest.mark.once
def test_patterns_of_second_derivatives_are_exact(on_numpy):
    wrong = []
    for name, (f, wanted) in SECOND.items():
        found = mo.sparse_hessian(f, array(X)).pattern.toarray()
        if not np.array_equal(found, np.asarray(wanted) != 0):
            wrong.append((name, found.astype(int)))
    assert wrong == []


@pytest.mark.once
@pytest.mark.parametrize("steps", [5, 14])
def test_products_reach_whatever_a_loop_of_unknown_length_brings_them_to(on_numpy, steps):
    def f(x):  # each product waits in a queue of four
        body = lambda out, queue, v: (queue[0], ops.concatenate([queue[1:], v[:1] * v[1:2]]), ops.roll(v, -1))
        first = ops.sum(x), ops.broadcast_to(ops.sum(x), (4,)), x
        return ops.while_loop(lambda out, queue, v: out < 1e9, body, first, steps)[0]

    found = mo.sparse_hessian(f, array(X))(array(X)).toarray()
    np.testing.assert_array_equal(found, both((steps - 5) % N, (steps - 4) % N))


def program_of(seed):
    """Return a random program as a function of one vector."""
    program = draw(seed, size=(2, 8))
    run, sizes = compiled(program.source), [int(np.prod(SHAPES[shape])) for shape in INPUTS.values()]

    def f(x):
        parts, at = [], 0
        for shape, size in zip(INPUTS.values(), sizes, strict=True):
            parts.append(ops.reshape(x[at : at + size], SHAPES[shape]))
            at += size
        ys = run(*parts)
        return ops.concatenate([ops.reshape(y, (-1,)) for y in (ys if isinstance(ys, tuple) else (ys,))])

    return f, sum(sizes), program.source


def lacking(seeds, second):
    """Return the programs with a derivative outside of the pattern, or a wrong value; and the share that is exact."""
    wrong, exact, n_exact = [], 0, 0
    for seed in seeds:
        f, n, source = program_of(seed)
        x = array(np.random.default_rng(seed).normal(size=n))
        try:
            dense = host(mo.jacrev(f)(x))
        except errors.NoGradientError:  # a loop on JAX
            continue
        J = mo.sparse_jacobian(f, x)
        found = J.pattern.toarray()
        exact, n_exact = exact + 1, n_exact + np.array_equal(found, dense != 0)
        if (dense[~found] != 0).any() or not np.allclose(J(x).toarray(), dense, 1e-9, 1e-11):
            wrong.append((seed, source))
        if second:
            g = lambda x, f=f: ops.sum(ops.sin(f(x)))
            try:
                dense = host(mo.hessian(g)(x))
            except (errors.NonLinearRuleError, errors.NoGradientError):  # a mapped call on TensorFlow
                continue
            H = mo.sparse_hessian(g, x)
            if np.abs(dense[~H.pattern.toarray()]).max(initial=0) > 1e-13 or not np.allclose(
                H(x).toarray(), dense, 1e-7, 1e-9
            ):
                wrong.append((seed, "hessian", source))
    return wrong, n_exact / exact


@pytest.mark.once
def test_patterns_of_random_programs_contain_each_derivative(on_numpy):
    wrong, share = lacking(range(8), False)
    assert wrong == []
    assert share > 0.3


@FULL
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("start", range(0, 500, 50))
def test_patterns_of_500_random_programs_contain_each_derivative(backend, start):
    seeds = range(start, start + (50 if backend == "numpy" else 10))
    assert lacking(seeds, second=True)[0] == []


# values


@pytest.mark.parametrize("mode", [pytest.param("auto", marks=FULL), "forward", "reverse", "both"])
def test_values_are_those_of_the_dense_jacobian(backend, mode):
    J = mo.sparse_jacobian(chain, array(X), mode=mode, chunk_size=2 if mode == "forward" else None)
    assert J.n_products == (4 if mode == "both" else 3)
    assert J.shape == (N, N) and len(J.rows) == len(J.cols) == J.nnz == 3 * (N - 2) + 3
    np.testing.assert_allclose(J(array(2 * X)).toarray(), of_chain(2 * X), rtol=1e-12)
    np.testing.assert_allclose(host(J.values(array(X))), of_chain(X)[J.rows, J.cols], rtol=1e-12)


@pytest.mark.parametrize("mode", ["symmetric", "acyclic", "forward"])
def test_values_are_those_of_the_dense_hessian(backend, mode):
    H = mo.sparse_hessian(energy, array(X), mode=mode)
    assert H.n_products == {"symmetric": 4, "acyclic": 3, "forward": 4}[mode]
    np.testing.assert_allclose(H(array(X)).toarray(), of_energy(X), rtol=1e-10, atol=1e-12)


def cubes(x):
    return ops.sum(x[1:] ** 3 * x[:-1])  # H[i, i] = 6 x[i] x[i - 1], H[i, i + 1] = 3 x[i + 1]²


def test_differences_of_entries_are_differentiated_and_compiled(backend):
    H = mo.sparse_hessian(cubes, array(X), mode="acyclic")
    assert H.n_products == 2
    i, j = H.rows, H.cols
    wanted = np.where(i == j, 6 * X[i] * np.where(i > 0, X[i - 1], 0.0), 3 * X[np.maximum(i, j)] ** 2)
    np.testing.assert_allclose(host(mo.jit(H.values)(array(X))), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(host(mo.vmap(H.values)(array([X, X])))[1], wanted, rtol=1e-10, atol=1e-12)
    gradient = np.zeros(N)  # of the sum of all entries
    gradient[1:] += 6 * X[:-1] + 12 * X[1:]
    gradient[:-1] += 6 * X[1:]
    np.testing.assert_allclose(host(mo.grad(lambda x: ops.sum(H.values(x)))(array(X))), gradient, rtol=1e-10)


def test_values_are_differentiated_and_compiled(backend):
    J = mo.sparse_jacobian(chain, array(X))
    total = lambda x: ops.sum(J.values(x) ** 2)
    gradient = np.zeros(N)  # of the sum of squares of the entries of `of_chain`
    gradient[1:-1] += 2 * X[1:-1]
    gradient[:-2] += 2 * X[:-2]
    gradient[2:] -= 2 * np.cos(X[2:]) * np.sin(X[2:])
    gradient[[0, -1]] += 2 * X[[0, -1]]
    np.testing.assert_allclose(host(mo.grad(total)(array(X))), gradient, rtol=1e-10)
    np.testing.assert_allclose(host(mo.jit(mo.grad(total))(array(X))), gradient, rtol=1e-10)
    values = mo.jit(J.values)(array(X))
    np.testing.assert_allclose(J.matrix(values).toarray(), of_chain(X), rtol=1e-12)
    mapped = mo.vmap(J.values)(array([X, 2 * X]))
    np.testing.assert_allclose(host(mapped)[1], of_chain(2 * X)[J.rows, J.cols], rtol=1e-12)


def test_it_is_prepared_within_transforms(backend):
    values = lambda w: mo.sparse_jacobian(lambda x: x**3 * w, w).values(w)  # 3 w³
    wanted = 3 * X**3
    np.testing.assert_allclose(host(mo.jit(values)(array(X))), wanted, rtol=1e-10)
    np.testing.assert_allclose(host(mo.vmap(values)(array([X, X])))[1], wanted, rtol=1e-10)
    np.testing.assert_allclose(host(mo.grad(lambda w: ops.sum(values(w)))(array(X))), 9 * X**2, rtol=1e-10)


def test_indices_and_masks_of_a_transform_are_not_known(backend):
    def dense(index, w):
        f = lambda x: ops.where(w > 0, ops.take(x, index) ** 2, x)
        J = mo.sparse_jacobian(f, array(X))
        return ops.scatter_update(ops.zeros(N * N, "float64"), (J.rows * N + J.cols)[:, None], J.values(array(X)))

    index = np.roll(np.arange(N), 3)
    wanted = np.where(X[:, None] > 0, np.eye(N)[index] * 2 * X, np.eye(N))
    found = mo.jit(dense)(ops.array(index), array(X))
    np.testing.assert_allclose(host(found).reshape(N, N), wanted, rtol=1e-12)


def test_a_function_without_reverse_mode_is_taken_by_columns(backend):
    loop = lambda x: ops.while_loop(lambda y: y[0] < 9.0, lambda y: (y * 2.0,), (x,))[0]  # which has none on JAX
    J = mo.sparse_jacobian(lambda x: ops.sum(loop(x)) + x[:1], array(np.abs(X)))  # a row, and 12 columns
    assert J.shape == (1, N) and J.n_products in (1, N)
    power = 2 ** np.ceil(np.log2(9 / abs(X[0])))
    np.testing.assert_allclose(J(array(np.abs(X))).toarray(), [power + (np.arange(N) == 0)], rtol=1e-12)


def test_hessians_of_a_rule_without_forward_mode_are_taken_by_rows(backend):
    @mo.op_custom_gradient
    def cube(x):
        return x**3, lambda upstream: ops.minimum(upstream, 2.0) * 3 * x**2

    H = mo.sparse_hessian(lambda x: ops.sum(cube(x)), array(X))
    np.testing.assert_allclose(H(array(X)).toarray(), np.diag(6 * X))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_values_have_the_dtype_of_the_function(backend, dtype):
    x = ops.cast(array(X), dtype)
    J = mo.sparse_jacobian(chain, x)
    assert ops.dtype(J.values(x)) == dtype
    rtol, atol = (1e-5, 1e-6) if dtype == "float32" else (0.05, 0.02)
    np.testing.assert_allclose(J(x).toarray(), of_chain(X), rtol=rtol, atol=atol)


@pytest.mark.parametrize(("given", "wanted"), [("float32", "float64"), ("float64", "float32"), ("float16", "float32")])
def test_values_have_the_dtype_of_the_output_in_each_mode(backend, given, wanted):
    x = ops.cast(array(np.abs(X)), given)
    f = lambda x: ops.cast(chain(x), wanted)
    made = [mo.sparse_jacobian(f, x, mode=mode) for mode in ("forward", "reverse", "both", "auto")]
    made.append(mo.sparse_jacobian(lambda x: ops.cast(ops.floor(x), wanted), x))  # without entries
    assert [ops.dtype(J.values(x)) for J in made] == [wanted] * 5
    assert ops.dtype(mo.jit(made[1].values)(x)) == wanted
    for J in made[:-1]:
        np.testing.assert_allclose(J(x).toarray(), of_chain(np.abs(X)), rtol=0.01, atol=0.005)
    mixed = mo.sparse_jacobian(lambda x: (chain(x), f(x)), x, mode="reverse")
    assert ops.dtype(mixed.values(x)) == max(given, wanted, key=lambda name: int(name[5:]))
    g = lambda x: ops.cast(ops.sum(x**3), wanted)
    hessians = [mo.sparse_hessian(g, x, mode=mode) for mode in ("symmetric", "forward", "reverse")]
    assert [ops.dtype(H.values(x)) for H in hessians] == [given] * 3  # that of the gradient
    assert ops.dtype(mo.jacfwd(lambda x: f(x)[:4])(x)) == wanted
    assert ops.dtype(mo.jacfwd(f)(x)) == wanted


def test_pytrees_are_their_leaves_in_order(backend):
    f = lambda p: {"y": p["a"] * p["b"][0], "z": [ops.sum(p["b"])]}
    p = {"a": array([1.0, 2.0]), "b": array([3.0, 4.0, 5.0])}
    J = mo.sparse_jacobian(f, p)
    wanted = [[3, 0, 1, 0, 0], [0, 3, 2, 0, 0], [0, 0, 1, 1, 1]]
    assert J.pattern.toarray().tolist() == (np.array(wanted) != 0).tolist()
    assert J(p).toarray().tolist() == wanted


def test_tensors_that_are_closed_over_are_parameters(backend):
    w, zeros = array(X), {"w": ops.zeros((N, N), "float64")}
    f = lambda x: w * x + x / w - ops.exp(w) * x
    np.testing.assert_array_equal(mo.sparse_jacobian(f, array(X)).pattern.toarray(), np.eye(N, dtype=bool))
    J = mo.sparse_jacobian(lambda x: ops.matmul(zeros["w"], x), array(X))  # a weight that is 0 is not always so
    zeros["w"] = zeros["w"] + 2.0
    np.testing.assert_array_equal(J(array(X)).toarray(), np.full((N, N), 2.0))


def test_custom_gradients_have_the_pattern_and_values_of_their_rule(backend):
    @mo.op_custom_gradient
    def round_through(x):
        return ops.round(x), lambda upstream: upstream

    @mo.op_custom_gradient
    def clipped(x):
        return x * 1.0, lambda upstream: ops.clip(upstream, -1.0, 1.0) * x

    J = mo.sparse_jacobian(lambda x: 2.0 * round_through(x), array(X))
    assert J(array(X)).toarray().tolist() == (2 * np.eye(N)).tolist()
    J = mo.sparse_jacobian(clipped, array(X))  # a rule without forward mode: by rows
    np.testing.assert_allclose(J(array(X)).toarray(), np.diag(X))

    @mo.op_custom_gradient
    def product(x, y):
        return x * y, lambda upstream: (upstream * y, upstream * 0 * x)

    f = lambda x: ops.sum(product(x[:6], x[6:]))  # whose second derivative is not symmetric
    for pattern in (None, band(-6, 6)):
        H = mo.sparse_hessian(f, array(X), pattern)
        np.testing.assert_allclose(H(array(X)).toarray(), np.eye(N, k=6))
    f = lambda x: ops.sum(product(x[:-1], x[1:]))
    for mode in ("symmetric", "acyclic"):
        with pytest.raises(errors.ArgumentError, match="not symmetric: give mode='forward'"):
            mo.sparse_hessian(f, array(X), mode=mode)


def halves(x):
    """Return a function of a rule that closes over its own output."""
    y = ops.floor(x) + 0.5
    return y, lambda upstream: upstream * y


def constant(x):
    y = ops.ones(N, "float64")
    return y, lambda upstream: upstream * y


def one_sided(x, y):
    return x * y, lambda upstream: (upstream * y, None)


def with_variables(x):
    w = x[6:] * 2.0

    @mo.op_custom_gradient
    def product(y):
        return y * w, lambda upstream, variables=None: (upstream * w, [upstream * y for _ in variables])

    return product(x[:6])


OF_RULES = {
    "its output": mo.op_custom_gradient(halves),
    "the gradient of its output": mo.grad(lambda x: ops.sum(mo.op_custom_gradient(halves)(x))),
    "a constant output": mo.op_custom_gradient(constant),
    "another argument, in a tangent": lambda x: mo.jvp(
        lambda x: mo.op_custom_gradient(one_sided)(x, ops.roll(x, 3)), (x,), (ops.roll(x, 1),)
    )[1],
    "a variable": with_variables,
}


@pytest.mark.once
@pytest.mark.parametrize("name", OF_RULES)
def test_what_a_rule_closes_over_is_in_the_pattern(on_numpy, name):
    f, x = OF_RULES[name], array(X)
    np.testing.assert_allclose(mo.sparse_jacobian(f, x)(x).toarray(), host(mo.jacrev(f)(x)), rtol=1e-12)
    total = lambda x: ops.sum(f(x) * np.arange(1, 1 + len(f(x))))
    np.testing.assert_allclose(mo.sparse_hessian(total, x)(x).toarray(), host(mo.hessian(total)(x)), rtol=1e-12)


@pytest.mark.once
def test_a_custom_gradient_that_leaves_for_the_host_mixes_its_arguments(on_numpy):
    @mo.op_custom_gradient
    def on_host(x):
        value = np.sin(host(ops.stop_gradient(x)))
        return ops.array(value), lambda upstream: upstream * ops.array(np.cos(host(ops.stop_gradient(x))))

    f = lambda x: ops.concatenate([on_host(x[:3]), x[3:] ** 2])
    J = mo.sparse_jacobian(f, array(X), mode="reverse")
    wanted = np.diag(np.arange(N) >= 3)
    wanted[:3, :3] = True
    np.testing.assert_array_equal(J.pattern.toarray(), wanted)
    np.testing.assert_allclose(J.values(array(X)).shape, (18,))


def assert_compared(form, mode):
    """Compare what a pattern that is given makes with the Jacobian; and name the entry that one lacks."""
    wanted = of_chain(X) != 0
    J = mo.sparse_jacobian(chain, array(X), form(wanted), mode=mode)
    np.testing.assert_allclose(J(array(X)).toarray(), of_chain(X), rtol=1e-12)
    wanted[4, 5] = False
    with pytest.raises(errors.ArgumentError, match="lacks an entry: that of row 4 and column 5 is"):
        mo.sparse_jacobian(chain, array(X), wanted, mode=mode)


FORMS = {"an array": np.array, "a matrix of SciPy": scipy.sparse.csc_matrix, "all": np.ones_like}


@pytest.mark.once
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
@pytest.mark.parametrize("form", FORMS)
def test_patterns_may_be_given_in_several_forms(on_numpy, form, mode):
    assert_compared(FORMS[form], mode)


@pytest.mark.parametrize("mode", ["forward", pytest.param("reverse", marks=FULL)])
def test_a_pattern_that_is_given_is_compared(backend, mode):
    assert_compared(np.array, mode)


@pytest.mark.once
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr", "dia", "lil", "dok"])
def test_patterns_of_each_class_of_scipy_are_read_and_left_alone(on_numpy, form, kind):
    given = getattr(scipy.sparse, f"{form}_{kind}")((of_chain(X) != 0).astype(float))
    before = given.toarray()
    J = mo.sparse_jacobian(chain, array(X), given)
    np.testing.assert_array_equal(given.toarray(), before)
    given *= 0
    np.testing.assert_allclose(J(array(X)).toarray(), of_chain(X), rtol=1e-12)


@pytest.mark.once
@pytest.mark.parametrize("twice", [[1, 1], [1, -1], [True, True], [np.nan, 1]])
def test_an_entry_of_a_pattern_that_is_there_twice_counts_once(on_numpy, twice):
    data, rows = np.array([*twice, *[twice[1]] * (N - 1)]), [0, 0, *range(N - 1)]
    given = scipy.sparse.csr_array((data, [1, 1, *range(N - 1)], [0, 3, *range(4, N + 2)]), (N - 1, N))
    f = lambda x: ops.concatenate([x[:1] * x[1], x[1:-1]])
    for pattern in (given, scipy.sparse.coo_array((data, (rows, given.indices)), given.shape)):
        J = mo.sparse_jacobian(f, array(X), pattern)
        assert J.nnz == N and len(pattern.data) == N + 1  # it is left as it was
        np.testing.assert_allclose(J(array(X)).toarray(), host(mo.jacrev(f)(array(X))), rtol=1e-12)


def test_a_pattern_is_given_for_scalars(backend):
    J = mo.sparse_jacobian(lambda x: ops.sum(x * x), array(X), np.ones((1, N)))
    np.testing.assert_allclose(J(array(X)).toarray(), [2 * X], rtol=1e-12)
    H = mo.sparse_hessian(lambda x: x * x * x, array(2.0), [[1]])
    assert H(array(2.0)).toarray().tolist() == [[12.0]]


@pytest.mark.once
def test_many_products_of_many_entries_are_indexed_without_overflow(on_numpy):
    n = 60_000  # a full row, and a diagonal: as many products by columns
    pattern = scipy.sparse.csr_array(scipy.sparse.eye(n, dtype=bool, format="csr"))
    full = scipy.sparse.csr_array(scipy.sparse.vstack([np.ones((1, n), bool), pattern[1:]]))
    colored = _coloring.color_jacobian(full, "forward")
    J = mo.SparseDerivative(chain, full, colored, [((n,), "float64")], [((n,), "float64")], False, None, "a tensor")
    assert J._sources.min() == 0 and J._sources.max() == n * n - 1


# how the run that finds a pattern may take another way than the function does


def test_a_function_that_takes_another_way_on_tensors_is_noticed(backend):
    kind, seen = type(array(X)), []
    by_type = lambda x: ops.cumsum(x) if isinstance(x, kind) else x * 1.0
    if backend in ("torch", "tensorflow"):  # on the others, the type is another one where it is differentiated, too
        with pytest.raises(errors.ArgumentError, match="the pattern lacks an entry: that of row"):
            mo.sparse_jacobian(by_type, array(X))
    with pytest.raises(errors.UnsupportedError, match="f returns other shapes where its pattern is looked for"):
        mo.sparse_jacobian(lambda x: x * 1.0 if isinstance(x, kind) else x[1:], array(X))
    with pytest.raises(errors.ArgumentError, match="the pattern lacks an entry"):
        mo.sparse_jacobian(lambda x: ops.take(x, np.roll(np.arange(N), seen.append(0) or len(seen))), array(X))
    by_name = lambda x: ops.cumsum(x) if mo.backend() == backend else x
    np.testing.assert_array_equal(mo.sparse_jacobian(by_name, array(X)).pattern.toarray(), np.tri(N))


def test_a_sparse_derivative_has_sparse_derivatives(backend):
    J = mo.sparse_jacobian(chain, array(X))
    for values in (J.values, lambda x: mo.sparse_jacobian(chain, x).values(x)):
        K = mo.sparse_jacobian(values, array(X))
        np.testing.assert_allclose(K(array(X)).toarray(), host(mo.jacrev(J.values)(array(X))), rtol=1e-12)
        assert K.n_products == 3
    np.testing.assert_allclose(J(array(X)).toarray(), of_chain(X), rtol=1e-12)


def test_what_a_sparse_derivative_closes_over_is_differentiated(backend):
    def total(w):
        J = mo.sparse_jacobian(lambda x: w * x**2 + w / 2 + ops.multiply(w, x), array(X))
        return ops.sum(J.values(array(X)))

    for gradient in (mo.grad(total), mo.jit(mo.grad(total))):
        np.testing.assert_allclose(host(gradient(array(X))), 2 * X + 1, rtol=1e-10)


@pytest.mark.once
def test_a_rule_may_call_its_own_function(on_numpy):
    @mo.op_custom_gradient
    def exp(x):
        return ops.exp(x), lambda upstream: upstream * exp(x)

    x = array(X / 9)
    np.testing.assert_array_equal(mo.sparse_jacobian(exp, x).pattern.toarray(), np.eye(N))
    H = mo.sparse_hessian(lambda x: ops.sum(exp(x)), x)
    assert H.nnz == N
    np.testing.assert_allclose(H(x).toarray(), np.diag(np.exp(X / 9)), rtol=1e-10)
    solve = lambda b: mo.linear_solve(lambda y: 2.0 * y, b)
    np.testing.assert_allclose(mo.sparse_jacobian(solve, x)(x).toarray(), np.eye(N) / 2, atol=1e-6)


@pytest.mark.once
def test_zeros_count_in_what_nobody_can_write_to(on_numpy):
    frozen, base = np.eye(N), np.eye(N)
    frozen.flags.writeable = False
    view = base[:]
    view.flags.writeable = False
    assert mo.sparse_jacobian(lambda x: ops.matmul(frozen, x), array(X)).nnz == N
    made = [mo.sparse_jacobian(f, array(X)) for f in (lambda x: view @ x, lambda x: ops.matmul(ops.negative(view), x))]
    base[:] = 1.0
    for J in made:
        np.testing.assert_array_equal(abs(J(array(X)).toarray()), np.ones((N, N)))


@pytest.mark.once
def test_a_number_in_the_closure_is_a_parameter(on_numpy):
    for start, make in (
        (0.0, lambda s: ops.full(N, s, "float64")),
        (0, lambda s: ops.multiply(ops.ones(N, "float64"), s)),
        (1.0, lambda s: ops.subtract(s, ops.ones(N, "float64"))),
    ):
        held = [start]
        J = mo.sparse_jacobian(lambda x, held=held, make=make: make(held[0]) * x, array(X))
        held[0] = 3.0
        np.testing.assert_array_equal(J(array(X)).toarray(), np.diag(host(make(3.0))))


@pytest.mark.once
def test_what_cannot_be_traced_has_the_pattern_that_is_given(on_numpy):
    less = of_energy(X) != 0
    less[0, 5] = less[5, 0] = False
    with pytest.raises(errors.ArgumentError, match=r"row (0|5) and column (5|0) is 1 at x"):
        mo.sparse_hessian(energy, array(X), less)
    native = lambda x: chain(x) if float(ops.stop_gradient(x[0])) > -9 else x
    J = mo.sparse_jacobian(native, array(X), of_chain(X) != 0)
    np.testing.assert_allclose(J(array(X)).toarray(), of_chain(X), rtol=1e-12)


@pytest.mark.once
def test_it_is_saved_and_drawn(on_numpy, tmp_path):
    for made, f in (
        (mo.sparse_jacobian(chain, array(X), mode="both"), chain),
        (mo.sparse_hessian(energy, array(X), mode="acyclic"), energy),
    ):
        made.save(tmp_path / "made.npz")
        again = pickle.loads(pickle.dumps(mo.SparseDerivative.load(tmp_path / "made", f)))
        np.testing.assert_array_equal(again(array(X)).toarray(), made(array(X)).toarray())
        assert repr(again) == repr(made)
    assert repr(made).splitlines()[0].startswith("<sparse Hessian of energy: 12 x 12, 36 entries")
    assert re.fullmatch("[ ▀▄█]*", repr(made).splitlines()[3])
    assert made._repr_html_().count("<rect") == made.nnz
    np.savez(tmp_path / "array.npz", x=X)
    for name, content in {"empty.npz": b"", "text.npz": b"text", "zip.npz": b"PK\x03\x04", "array.npz": None}.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(errors.ArgumentError, match="holds no prepared derivative"):
            mo.SparseDerivative.load(tmp_path / name, chain)


REFUSED = {
    "no function": (lambda: mo.sparse_jacobian(3, array(X)), errors.ArgumentTypeError, "sparse_jacobian: f must be"),
    "integers": (lambda: mo.sparse_jacobian(chain, np.arange(N)), errors.DTypeError, "int"),
    "complex": (lambda: mo.sparse_jacobian(chain, X * 1j), errors.DTypeError, "sparse derivatives are of real numbers"),
    "a complex output": (
        lambda: mo.sparse_jacobian(lambda x: ops.multiply(x, 1j), array(X)),
        errors.DTypeError,
        "output of f holds",
    ),
    "an integer output": (
        lambda: mo.sparse_jacobian(lambda x: ops.argsort(x), array(X)),
        errors.DTypeError,
        "leave it out",
    ),
    "an empty array": (lambda: mo.sparse_jacobian(ops.sin, array(X[:0])), errors.ArgumentError, "has no entries"),
    "an empty output": (lambda: mo.sparse_jacobian(lambda x: x[:0], array(X)), errors.ArgumentError, "has no entries"),
    "another shape": (
        lambda: mo.sparse_jacobian(ops.sin, array(X))(array(X[1:])),
        errors.ArgumentError,
        "prepared for",
    ),
    "another structure": (
        lambda: mo.sparse_jacobian(lambda p: ops.sin(next(iter(p.values()))), {"a": array(X)})({"b": array(X)}),
        errors.ArgumentError,
        "'b'.*it was prepared for.*'a'",
    ),
    "no tensors": (lambda: mo.sparse_jacobian(lambda p: p["a"], {}), errors.ArgumentError, "x has no entries: nothing"),
    "a ragged pattern": (
        lambda: mo.sparse_jacobian(chain, array(X), [[1], [1, 2]]),
        errors.ArgumentError,
        "pattern must be a matrix",
    ),
    "other values": (
        lambda: mo.sparse_jacobian(ops.sin, array(X)).matrix(array(X[1:])),
        errors.ArgumentError,
        r"shape \(11,\); there are 12 entries",
    ),
    "a mode": (lambda: mo.sparse_jacobian(chain, array(X), mode="backward"), errors.ArgumentError, "mode"),
    "a chunk": (lambda: mo.sparse_jacobian(chain, array(X), chunk_size=0), errors.ArgumentError, "chunk_size"),
    "a pattern's shape": (lambda: mo.sparse_jacobian(chain, array(X), np.eye(3)), errors.ArgumentError, r"\(3, 3\)"),
    "not symmetric": (
        lambda: mo.sparse_hessian(energy, array(X), np.tri(N), mode="symmetric"),
        errors.ArgumentError,
        "symmetric",
    ),
    "no scalar": (lambda: mo.sparse_hessian(chain, array(X)), errors.ArgumentError, "must return a scalar"),
    "values in Python": (lambda: mo.sparse_jacobian(lambda x: x * float(x[0]), array(X)), errors.MultiopError, ""),
    "a condition": (
        lambda: mo.sparse_jacobian(lambda x: x if x[0] > -99 else -x, array(X)),
        errors.UnsupportedError,
        "pattern of f cannot be found.*give its pattern",
    ),
    "a size of values": (
        lambda: mo.sparse_jacobian(lambda x: x * ops.cast(ops.sum(ops.nonzero(x)[0]), "float64"), array(X)),
        errors.UnsupportedError,
        "decide a shape",
    ),
}


def test_a_pattern_of_objects_is_read_as_truth(on_numpy):
    pattern = np.where(np.eye(N, dtype=bool), "x", None)
    assert mo.sparse_jacobian(ops.sin, array(X), pattern.tolist()).nnz == N


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_sparse_derivative_is_refused(backend, name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=f"(?s){message}"):
        call()


def test_an_output_of_another_shape_is_refused(backend):
    sizes = iter([N, N, 4])

    def f(x):
        return x[: next(sizes)] * 2.0

    J = mo.sparse_jacobian(f, array(X))
    with pytest.raises(errors.ArgumentError, match="f returned .*; it was prepared for"):
        J(array(X))


# colours


def test_products_are_those_of_the_page():
    _, _, after = coloring_table.PAGE.read_text(encoding="utf-8").partition(coloring_table.HEAD)
    rows = [line.strip("| ").split(" | ") for line in after.partition("\n\n")[0].splitlines()[1:]]
    told = {name: (int(jacobian), int(star), int(acyclic)) for name, jacobian, _, star, _, acyclic in rows}
    assert told == coloring_table.counts()


@pytest.mark.once
@pytest.mark.parametrize("name", coloring_table.MATRICES)
def test_each_entry_is_read_from_its_colour(on_numpy, name):
    pattern = coloring_table.patterns()[name]
    rng = np.random.default_rng(0)
    values = scipy.sparse.csr_array(pattern.multiply(rng.normal(size=pattern.shape)))
    symmetric = scipy.sparse.csr_array(values + values.T)
    for mode in ("auto", "forward", "reverse", "both"):
        assert_read(values.toarray(), pattern, _coloring.color_jacobian(pattern, mode), False)
    assert_read(symmetric.toarray(), pattern, _coloring.color_hessian(pattern), True)
    A = symmetric.toarray()
    f = lambda x: ops.sum(x * ops.matmul(A, x)) / 2
    H = mo.sparse_hessian(f, ops.zeros(len(A), "float64"), pattern, "acyclic")
    np.testing.assert_allclose(H(ops.ones(len(A), "float64")).toarray(), A, atol=1e-12)


@pytest.mark.once
def test_colours_are_not_looked_for_where_there_can_be_no_fewer(on_numpy, monkeypatch):
    ring = scipy.sparse.csr_array(scipy.linalg.circulant(np.arange(37) % 36 < 5)[:, :35]) != 0
    symmetric = scipy.sparse.csr_array(scipy.linalg.toeplitz(np.arange(40) < 2)) != 0
    tried = []
    for name in ("_color_both", "_star", "turn"):
        whole = getattr(_coloring, name)
        monkeypatch.setattr(
            _coloring, name, lambda *args, name=name, whole=whole: (tried.append(name), whole(*args))[1]
        )
    assert _coloring.color_jacobian(ring, "auto").size > 3  # its lines are all about as full
    assert _coloring.color_hessian(symmetric).size == 3
    assert tried == ["_star"]  # in one order; the rows of the ring have no fewer either


def assert_read(dense, pattern, colored, symmetric):
    """Compare what products of the colours give with a matrix."""
    m = len(dense)
    n_columns, n_rows = map(_coloring.count, (colored.columns, colored.rows))
    forward = dense @ (colored.columns[:, None] == np.arange(n_columns)) if n_columns else None
    reverse = dense.T @ (colored.rows[:, None] == np.arange(n_rows)) if n_rows else None
    rows = np.repeat(np.arange(m), np.diff(pattern.indptr))
    for k, (i, j) in enumerate(zip(rows, pattern.indices, strict=True)):
        color = colored.color[k]
        read = forward[i, color] if colored.is_column[k] else forward[j, color] if symmetric else reverse[j, color]
        assert abs(read - dense[i, j]) < 1e-12


@pytest.mark.once
def test_a_large_chain_takes_three_products(on_numpy):
    x = array(np.linspace(0, 1, 100_000))
    f = lambda x: x[1:-1] * x[:-2] + ops.sin(x[2:])
    assert mo.sparse_jacobian(f, x).n_products == 3
    assert mo.sparse_hessian(lambda x: ops.sum(x[1:] * x[:-1] ** 2), x).n_products == 3


# what is prepared beside


def test_many_tangents_take_one_call(backend):
    x, units, J = array(X), ops.eye(N, dtype="float64"), of_chain(X)
    close = lambda x, y: np.testing.assert_allclose(host(x), y, rtol=1e-12)
    _, pull = mo.vjp(chain, x, batched=True)
    close(pull(units)[0], J)
    _, tangents = mo.jvp(chain, (x,), (units,), batched=True)
    close(tangents, J.T)
    y, push = mo.linearize(chain, x, batched=True)
    close(push(units), J.T)
    close(mo.linearize(chain, x)[1](array(X)), J @ X)
    close(y, host(chain(x)))
    close(mo.jit(lambda x: mo.linearize(chain, x, batched=True)[1](units))(x), J.T)
    f = lambda p: {"a": p["a"] * p["b"], "k": ops.argsort(p["a"])}
    p = {"a": array([1.0, 2.0]), "b": array([3.0, 4.0])}
    _, push = mo.linearize(f, p, batched=True)
    pushed = push({"a": ops.ones((3, 2), "float64"), "b": None})
    assert pushed["k"] is None and host(pushed["a"]).tolist() == [[3.0, 4.0]] * 3
    grads = mo.vjp(f, p, batched=True)[1]({"a": ops.ones((3, 2), "float64"), "k": None})[0]
    assert host(grads["b"]).tolist() == [[1.0, 2.0]] * 3
    with pytest.raises(errors.ArgumentError, match="linearize: 2 tangents were given for 1 primals"):
        push(p, p)
    with pytest.raises(errors.ArgumentError, match=r"jvp: tangent 0 has shape \(12,\)"):
        mo.jvp(lambda x: x[0] * x, (array([[1.0, 2.0]]),), (x,), batched=True)


def assert_alike_in_chunks(chunk_size):
    x = array(X)
    for transform in (mo.jacrev, mo.jacfwd, mo.jacobian):
        np.testing.assert_allclose(host(transform(chain, chunk_size=chunk_size)(x)), of_chain(X), rtol=1e-12)
    H = mo.hessian(energy, chunk_size=chunk_size)(x)
    np.testing.assert_allclose(host(H), of_energy(X), rtol=1e-10, atol=1e-12)
    f = lambda z: ops.sum(ops.real(z) ** 2 * ops.imag(z)) * ops.ones(3, "float64")  # two units for each entry
    z = ops.array(X[:4] + 1j * X[4:8])
    np.testing.assert_allclose(host(mo.jacrev(f, chunk_size=chunk_size)(z)), host(mo.jacfwd(f)(z)), rtol=1e-12)


@pytest.mark.once
@pytest.mark.parametrize("chunk_size", [1, 5, 100])
def test_jacobians_in_chunks_are_the_same(on_numpy, chunk_size):
    assert_alike_in_chunks(chunk_size)


@FULL
@pytest.mark.parametrize("chunk_size", [1, 5, 100])
def test_jacobians_in_chunks_are_the_same_on_each_backend(backend, chunk_size):
    assert_alike_in_chunks(chunk_size)


def test_jacobians_take_chunks(backend):
    for transform in (mo.jacrev, mo.jacfwd):  # 12 products, of which the last two are a chunk of their own
        np.testing.assert_allclose(host(transform(chain, chunk_size=5)(array(X))), of_chain(X), rtol=1e-12)


def test_jacobian_takes_the_mode_of_fewer_products(backend, monkeypatch):
    taken = []
    for name in ("_by_rows", "_by_columns"):
        there = getattr(mo.autodiff.transforms, name)
        spy = lambda flat, chunk_size=None, there=there, name=name: (taken.append(name), there(flat, chunk_size))[1]
        monkeypatch.setattr(mo.autodiff.transforms, name, spy)
    x = array(X)
    assert host(mo.jacobian(lambda x: x[:2] * 2.0)(x)).shape == (2, N)
    assert host(mo.jacobian(lambda x: ops.concatenate([x, x]))(x)).shape == (2 * N, N)
    assert taken == ["_by_rows", "_by_columns"]

    @mo.op_custom_gradient
    def clipped(x):
        return x * 1.0, lambda upstream: ops.clip(upstream, -1.0, 1.0) * x

    np.testing.assert_allclose(host(mo.jacobian(clipped)(x)), np.diag(X))
