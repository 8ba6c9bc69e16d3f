"""Decompositions beyond their rows: what is unique about vectors, degenerate matrices, errors, compiled singularity."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
import scipy.linalg

import multiop
from multiop import errors
from multiop.testing import _checks
from multiop.testing._case import call
from multiop.testing._problem import Problem
from multiop.testing._samplers import normal


def numpy(x):
    return np.asarray(multiop.op_convert_to_numpy(x))


def drawn(*shape, dtype="float64"):
    rng = np.random.default_rng(1)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("complex") else x).astype(dtype)


def adjoint(x):
    return multiop.op_conj(multiop.op_swapaxes(x, -1, -2))


def square(x):
    """Return squared absolute values, which do not depend on signs and phases."""
    return multiop.op_real(x * multiop.op_conj(x))


def projection(x):
    return multiop.op_matmul(x, adjoint(x))


def eigh(x):
    values, vectors = multiop.op_eigh(x)
    return values, square(vectors)


def eig(x):
    values, vectors = multiop.op_eig(x)  # in any order
    return multiop.op_sum(values * values), multiop.op_matmul(vectors * (values * values)[None], adjoint(vectors))


def svd(x):
    u, s, vh = multiop.op_svd(x, full_matrices=False)
    return s, square(u), square(vh), multiop.op_matmul(u[..., :1], vh[..., :1, :])


def svd_complete(x):
    u, s, vh = multiop.op_svd(x)
    k = s.shape[-1]
    return projection(u[..., k:]), projection(adjoint(vh)[..., k:]), square(u[..., :k])


def qr_complete(x):
    q, r = multiop.op_qr(x, "complete")
    return projection(q[..., r.shape[-1] :]), r


@pytest.fixture
def x64(multiop_x64):
    """Have float64 mean float64 on every backend."""


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (eigh, (3, 3)),
        (eig, (3, 3)),
        (svd, (3, 3)),
        (svd, (2, 4)),
        (svd, (2, 4, 2)),
        (svd_complete, (2, 4)),
        (svd_complete, (4, 2)),
        (qr_complete, (4, 2)),
    ],
    ids=lambda x: getattr(x, "__name__", "x".join(map(str, x)) if isinstance(x, tuple) else x),
)
def test_derivatives_of_what_is_unique(backend, f, shape, dtype, x64):
    problem = Problem(f, call(normal(*shape)), dtype=dtype, seed=1, whole=backend == "jax")  # its steps compile slowly
    _checks.check_gradient(problem)
    _checks.check_second_order(problem)
    _checks.check_forward_mode(problem)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 4), (3, 1), (0, 3), (3, 0)])
def test_svd_and_qr_give_the_matrix_back(backend, shape, dtype):
    x = drawn(*shape, dtype=dtype)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = map(numpy, multiop.op_svd(x, full_matrices=full))
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=1e-5)
        for basis in (u, np.swapaxes(vh, -1, -2)):
            assert basis.shape[-1] == (basis.shape[-2] if full else k)
            gram = np.conj(np.swapaxes(basis, -1, -2)) @ basis
            np.testing.assert_allclose(gram, np.broadcast_to(np.eye(basis.shape[-1]), gram.shape), atol=1e-5)
        q, r = map(numpy, multiop.op_qr(x, "complete" if full else "reduced"))
        assert q.shape[-1] == r.shape[-2] == (shape[-2] if full else k)
        np.testing.assert_allclose(q @ r, x, atol=1e-5)
        np.testing.assert_allclose(np.tril(r, -1), 0)
        gram = np.conj(np.swapaxes(q, -1, -2)) @ q
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(q.shape[-1]), gram.shape), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_eigenvectors(backend, dtype):
    x = drawn(2, 3, 3, dtype=dtype)
    values, vectors = map(numpy, multiop.op_eig(x))
    assert values.dtype == vectors.dtype == "complex64"
    np.testing.assert_allclose(x @ vectors, vectors * values[..., None, :], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
    values, vectors = map(numpy, multiop.op_eigh(x))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(x), atol=1e-5)
    lower = np.tril(x, -1)
    hermitian = lower + np.conj(np.swapaxes(lower, -1, -2)) + np.eye(3) * x.real
    np.testing.assert_allclose(hermitian @ vectors, vectors * values[..., None, :], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_lu_factors_and_pivots_give_the_matrix_back(backend, dtype, shape):
    x, k = drawn(2, *shape, dtype=dtype), min(shape)
    factors, pivots = map(numpy, multiop.op_lu_factor(x))
    assert factors.dtype == dtype and pivots.dtype == np.int32 and pivots.shape == (2, k)
    product = (np.tril(factors, -1)[..., :k] + np.eye(shape[0], k)) @ np.triu(factors)[..., :k, :]
    for rows, swaps, expected in zip(product, pivots, x, strict=True):
        for i in reversed(range(k)):
            rows[[i, swaps[i]]] = rows[[swaps[i], i]]
        np.testing.assert_allclose(rows, expected, atol=1e-5)


@pytest.mark.parametrize("op", ["op_eigh", "op_svd"])
def test_equal_values_have_vectors_without_a_gradient(backend, op):
    def vectors(x):
        found = getattr(multiop, op)(x)[1 if op == "op_eigh" else 0]
        return multiop.op_sum(multiop.op_multiply(found, np.float32([[1, 2], [3, 5]])))

    def values(x):
        return multiop.op_sum(getattr(multiop, op)(x)[0 if op == "op_eigh" else 1])

    x = multiop.op_convert_to_tensor(np.eye(2, dtype="float32"))
    assert np.isnan(numpy(multiop.grad(vectors)(x))).any()
    np.testing.assert_allclose(numpy(multiop.grad(values)(x)), np.eye(2), atol=1e-6)


def test_scale_does_not_matter_to_vectors(backend):
    x = np.diag([1.0, 2.0, 3.0]).astype("float32") + 0.1

    def f(x):
        return multiop.op_sum(multiop.op_multiply(square(multiop.op_eigh(x)[1])[0], np.float32([1, 2, 3])))

    grads = [numpy(multiop.grad(f)(multiop.op_convert_to_tensor(x * s))) * s for s in np.float32([1, 1e-12])]
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_a_singular_matrix_is_named_in_the_same_words(backend, batch):
    x = np.broadcast_to(np.array([[1.0, 2.0], [2.0, 4.0]], np.float32), (*batch, 2, 2))
    with pytest.raises(errors.ArgumentError, match="^op_inv: x is singular"):
        multiop.op_inv(x)
    for b in (np.ones((*batch, 2), np.float32), np.ones((*batch, 2, 3), np.float32)):
        with pytest.raises(errors.ArgumentError, match="^op_solve: a is singular"):
            multiop.op_solve(x, b)


@pytest.mark.parametrize("zeros", [1, 2])
def test_second_derivative_of_the_determinant_of_a_singular_matrix(backend, zeros, x64):
    rng = np.random.default_rng(3)
    u, v = (np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(2))
    x = u @ np.diag([3.0, 2.0, 1.0, 1.0, 0.5]) @ v
    x[:, :zeros] = 0
    x, t = multiop.op_convert_to_tensor(x), rng.normal(size=(5, 5))
    found = numpy(multiop.jvp(multiop.grad(multiop.op_det), (x,), (multiop.op_convert_to_tensor(t),))[1])

    def cofactors(x):
        x = np.asarray(x)
        return np.array(
            [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(5)] for i in range(5)]
        )

    np.testing.assert_allclose(numpy(multiop.grad(multiop.op_det)(x)), cofactors(numpy(x)), atol=1e-9)
    h = 1e-5
    expected = (cofactors(numpy(x) + h * t) - cofactors(numpy(x) - h * t)) / (2 * h)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("op_inv", ([[1.0, 2.0], [2.0, 4.0]],)),
        ("op_solve", ([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0])),
        ("op_solve_triangular", ([[1.0, 2.0], [0.0, 0.0]], [1.0, 1.0])),
        ("op_cholesky", ([[1.0, 2.0], [2.0, 1.0]],)),
        ("op_cholesky_inverse", ([[0.0, 0.0], [2.0, 1.0]],)),
        ("op_svd", ([[1.0, np.nan]],)),
        ("op_pinv", ([[1.0, np.nan]],)),
        ("op_eigh", ([[np.nan, 1.0], [1.0, 1.0]],)),
        ("op_eig", ([[np.nan, 1.0], [1.0, 1.0]],)),
        ("op_inv", ([[1.0, 2.0]],)),
        ("op_det", ([[1.0, 2.0]],)),
        ("op_slogdet", ([1.0, 2.0],)),
        ("op_logdet", ([1.0, 2.0],)),
        ("op_cholesky", ([[1.0, 2.0]],)),
        ("op_cholesky_inverse", ([1.0],)),
        ("op_eigh", ([[1.0, 2.0]],)),
        ("op_eig", ([[1.0, 2.0]],)),
        ("op_lu_factor", ([1.0],)),
        ("op_qr", ([1.0],)),
        ("op_svd", ([1.0],)),
        ("op_pinv", ([1.0],)),
        ("op_matrix_rank", ([1.0],)),
        ("op_solve", ([[1.0]], 1.0)),
        ("op_solve", ([[1.0]], [1.0, 2.0])),
        ("op_solve_triangular", ([[1.0, 0.0]], [1.0])),
        ("op_lstsq", ([[1.0]], [1.0, 2.0])),
        ("op_lstsq", ([1.0], [1.0])),
        ("op_cdist", ([1.0], [[1.0]])),
        ("op_cdist", ([[1.0]], [[1.0, 2.0]])),
        ("op_norm", ([1.0], "fro")),
        ("op_norm", ([[1.0]], 3)),
        ("op_norm", ([[1.0]], "max")),
        ("op_norm", ([1.0], None, 1)),
        ("op_norm", ([[[1.0]]], 1)),
    ],
)
def test_bad_matrices(backend, op, args):
    with pytest.raises(errors.ArgumentError):
        getattr(multiop, op)(*args)


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("op_cholesky", ([[1.0]],), {"upper": 1}),
        ("op_svd", ([[1.0]],), {"compute_uv": None}),
        ("op_pinv", ([[1.0]],), {"rcond": "small"}),
        ("op_norm", ([1.0],), {"ord": [1]}),
        ("op_norm", ([1.0],), {"keepdims": 1}),
    ],
)
def test_arguments_of_the_wrong_kind(backend, op, args, kwargs):
    with pytest.raises(errors.ArgumentTypeError, match=op):
        getattr(multiop, op)(*args, **kwargs)


OF_SQUARES = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "logdet",
    "logm",
    "slogdet",
    "sqrtm",
]


@pytest.mark.parametrize("op", OF_SQUARES)
@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (4, 2), (2, 5, 4)])
def test_what_is_not_square_is_refused(backend, op, shape):
    with pytest.raises(errors.ArgumentError, match=f"op_{op}.*square|square(.|\n)*op_{op}"):
        getattr(multiop, f"op_{op}")(np.ones(shape, np.float32))
    with pytest.raises(errors.ArgumentError, match="square"):
        multiop.grad(getattr(multiop, f"op_{op}"))(np.ones(shape, np.float32))


@pytest.mark.parametrize(
    "op", ["cholesky", "det", "slogdet", "inv", "pinv", "lu_factor", "qr", "svd", "eigh", "eig", "matrix_rank"]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_are_too_few(backend, op, dtype):
    with pytest.raises(errors.DTypeError, match=f"{dtype} is too short"):
        getattr(multiop, f"op_{op}")(multiop.op_cast([[1.0]], dtype))


@pytest.mark.traced
@pytest.mark.parametrize("name", ["op_cholesky", "op_solve"])
def test_compiled_or_mapped_singular_matrices_never_give_numbers(backend, name):
    """They give what is not finite, or TensorFlow's own error when it runs."""
    x = multiop.op_convert_to_tensor(np.float32([[[1, 2], [2, 1 if name == "op_cholesky" else 4]], [[4, 0], [0, 4]]]))

    def f(x):
        return multiop.op_cholesky(x) if name == "op_cholesky" else multiop.op_solve(x, x)

    for transform in (multiop.jit, multiop.vmap):
        if backend == "tensorflow" and name == "op_solve":
            with pytest.raises(Exception, match="not invertible|a is singular"):
                transform(f)(x)
            continue
        found = numpy(transform(f)(x))
        assert not np.isfinite(found[0]).all()
        assert np.isfinite(found[1]).all()


COMPLEX = {
    "det": multiop.op_det,
    "sign": lambda x: multiop.op_slogdet(x)[0],
    "logabsdet": lambda x: multiop.op_slogdet(x)[1],
    "pinv": lambda x: multiop.op_pinv(x)[..., 0, 1],
}


@pytest.mark.parametrize(
    "f",
    [pytest.param(f, id=name, marks=[pytest.mark.tier("full")] * (name != "det")) for name, f in COMPLEX.items()],
)
def test_complex_gradients_outside_vmap_and_compiled(backend, multiop_x64, f):
    """Compare with central differences of the loss along a direction."""
    x, direction = drawn(3, 4, 4, dtype="complex128"), drawn(3, 4, 4, dtype="complex128")[::-1] * 1j
    weights = drawn(3, dtype="complex128")

    def loss(x):
        return multiop.op_sum(multiop.op_real(multiop.op_multiply(multiop.vmap(f)(x), weights)))

    at = [float(loss(multiop.op_convert_to_tensor(x + step * direction))) for step in (1e-6, -1e-6)]
    for grad in (multiop.grad(loss), multiop.jit(multiop.grad(loss))):
        found = numpy(grad(multiop.op_convert_to_tensor(x)))
        np.testing.assert_allclose((found * direction.conj()).real.sum(), (at[0] - at[1]) / 2e-6, rtol=1e-6)


COINCIDING = {"2I": 2 * np.eye(3), "two of three": np.diag([1.0, 1.0, 2.0]), "zeros": np.zeros((3, 3))}
THROUGH_VECTORS = {
    "svd, left": lambda x: multiop.op_svd(x)[0],
    "svd, right": lambda x: multiop.op_svd(x)[2],
    "eigh": lambda x: multiop.op_eigh(x)[1],
    "eig": lambda x: multiop.op_eig(x)[1],
}
THROUGH_VALUES = {
    "svd": lambda x: multiop.op_svd(x)[1],
    "svd without vectors": lambda x: multiop.op_svd(x, compute_uv=False),
    "eigh": lambda x: multiop.op_eigh(x)[0],
    "eig": lambda x: multiop.op_real(multiop.op_eig(x)[0]),
}


def gradient_of_sum(f, x, dtype):
    x = multiop.op_convert_to_tensor(x.astype(dtype))
    return numpy(multiop.grad(lambda x: multiop.op_sum(f(x)))(x))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("complex64", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("f", THROUGH_VECTORS.values(), ids=THROUGH_VECTORS)
def test_gradients_through_vectors_of_equal_values_are_nan(backend, f, dtype):
    for x in COINCIDING.values():
        found = gradient_of_sum(lambda x: square(f(x))[..., :2], x, dtype)
        assert np.isnan(found[np.tril_indices(3)]).all(), x


def test_gradients_of_mapped_vectors_of_equal_values_are_nan(backend):
    batch = np.stack([2 * np.eye(3), np.diag([1.0, 2.0, 3.0])])
    found = gradient_of_sum(multiop.vmap(lambda x: square(multiop.op_eigh(x)[1])[:, :2]), batch, "float32")
    assert np.isnan(found[0][np.tril_indices(3)]).all()
    assert np.isfinite(found[1]).all()


@pytest.mark.parametrize("f", THROUGH_VALUES.values(), ids=THROUGH_VALUES)
def test_gradients_of_the_sum_of_equal_values(backend, f):
    for name, x in COINCIDING.items():
        if name != "zeros":  # there the sum of singular values has a kink
            np.testing.assert_allclose(gradient_of_sum(f, x, "float32"), np.eye(3), atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_gradients_of_norms_at_rank_one(backend, shape):
    left, right = np.arange(1.0, shape[0] + 1), np.ones(shape[1])
    x = np.outer(left, right)
    direction = x / np.linalg.norm(x)
    for order, expected in (("nuc", direction), (2, direction), (-2, 0 * x)):
        found = gradient_of_sum(lambda x, order=order: multiop.op_norm(x, order), x, "float32")
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=str(order))


NEAREST = {"op_pinv": np.linalg.pinv, "op_lstsq": lambda a: np.linalg.pinv(a) @ np.eye(len(a), 2)}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 2), pytest.param((2, 3), marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("op", NEAREST)
def test_second_derivatives_of_the_pseudoinverse_in_every_order_of_modes(backend, multiop_x64, op, shape, dtype):
    """Compare with central differences of the loss along two directions."""
    x, u, v = drawn(3, *shape, dtype=dtype)
    reference = NEAREST[op]
    weights = drawn(*reference(x).shape, dtype=dtype)

    def loss_of(y):
        return (y * weights).real.sum()

    def loss(x):
        y = multiop.op_pinv(x) if op == "op_pinv" else multiop.op_lstsq(x, np.eye(shape[0], 2).astype(dtype))
        return multiop.op_sum(multiop.op_real(multiop.op_multiply(y, weights)))

    def forward(f, direction):
        return lambda x: multiop.jvp(f, (x,), (multiop.op_convert_to_tensor(direction),))[1]

    def reverse(f, direction):
        slope = direction.conj()
        return lambda x: multiop.op_sum(multiop.op_real(multiop.op_multiply(multiop.grad(f)(x), slope)))

    step = 1e-4
    right = sum(
        s * t * loss_of(reference(x + step * (s * u + t * v))) / (4 * step**2) for s in (1, -1) for t in (1, -1)
    )
    for first, second in itertools.product((forward, reverse), repeat=2):
        found = float(second(first(loss, u), v)(multiop.op_convert_to_tensor(x)))
        assert found == pytest.approx(right, rel=1e-4, abs=1e-5)


def test_either_triangle_of_a_hermitian_matrix(backend):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2, 3, 3)) + 1j * rng.normal(size=(2, 3, 3))).astype(np.complex64)
    for triangle in ("L", "u"):
        expected = np.linalg.eigh(x, triangle.upper())
        values, vectors = multiop.op_eigh(x, UPLO=triangle)
        values, vectors = multiop.op_convert_to_numpy(values), multiop.op_convert_to_numpy(vectors)
        np.testing.assert_allclose(values, expected[0], 1e-4, 1e-5)
        again = (vectors * values[..., None, :]) @ vectors.conj().swapaxes(-1, -2)
        both = (expected[1] * expected[0][..., None, :]) @ expected[1].conj().swapaxes(-1, -2)
        np.testing.assert_allclose(again, both, 1e-4, 1e-5)
    x = multiop.op_convert_to_tensor([[1.0, 2.0], [5.0, 3.0]])
    slope = multiop.op_convert_to_numpy(multiop.grad(lambda x: multiop.op_eigh(x, "U")[0][0])(x))
    assert slope[1, 0] == 0 and slope[0, 1] != 0
    np.testing.assert_allclose(
        multiop.op_convert_to_numpy(multiop.op_pinv(x, hermitian=True)), np.linalg.inv([[1, 5], [5, 3]]), 1e-5
    )
    slope = multiop.op_convert_to_numpy(multiop.grad(lambda x: multiop.op_sum(multiop.op_pinv(x, hermitian=True)))(x))
    assert slope[0, 1] == 0 and slope[1, 0] != 0
    for bad in ("X", None):
        with pytest.raises(errors.ArgumentError, match="UPLO"):
            multiop.op_eigh(x, bad)
    with pytest.raises(errors.ArgumentError):
        multiop.op_pinv(np.ones((2, 3), np.float32), hermitian=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: multiop.op_lstsq(np.ones((2, 3)), np.ones(3)),
        lambda: multiop.op_lstsq(np.ones((2, 2, 3)), np.ones(2)),
        lambda: multiop.op_lstsq(np.ones((2, 2, 3)), np.ones((2, 3, 1))),
        lambda: multiop.op_lstsq(np.ones(2), np.ones(2)),
        lambda: multiop.op_lstsq(np.ones((2, 2)), np.ones(2), residuals=1),
        lambda: multiop.op_matrix_power(np.ones((2, 3)), 2),
        lambda: multiop.op_matrix_power(np.eye(2), 2.0),
        lambda: multiop.op_matrix_power(np.zeros((2, 2)), -1),
        lambda: multiop.op_matrix_power(np.ones((2, 2), bool), 2),
        lambda: multiop.op_expm(np.ones((2, 3))),
        lambda: multiop.op_expm(np.ones(2)),
        lambda: multiop.op_expm(np.ones((2, 2), np.float16)),
    ],
)
def test_bad_arguments_of_products_and_powers(backend, call, multiop_x64):
    with pytest.raises(errors.MultiopError):
        call()


def test_an_exponential_of_large_matrices(backend, multiop_x64):
    for x in (np.diag([-700.0, 3.0]), [[0.0, 1e3], [-1e3, 0.0]], [[1.0, 1e5], [0.0, -1.0]], np.zeros((2, 0, 0))):
        found = multiop.op_convert_to_numpy(multiop.op_expm(np.asarray(x)))
        np.testing.assert_allclose(found, scipy.linalg.expm(np.asarray(x)), 1e-9, 1e-9)


def test_powers_of_integers_stay_integers(backend):
    x = np.array([[1, 1], [1, 0]], np.int32)
    power = multiop.op_matrix_power(x, 20)
    assert multiop.op_dtype(power) == "int32"
    assert multiop.op_convert_to_numpy(power).tolist() == np.linalg.matrix_power(x, 20).tolist()
    assert multiop.op_dtype(multiop.op_matrix_power(x, 0)) == "int32"
    assert multiop.op_dtype(multiop.op_matrix_power(x, -1)) == "float32"


@pytest.mark.parametrize("wrap", [lambda f: f, multiop.jit], ids=["eagerly", "compiled"])
@pytest.mark.parametrize("op", ["inv", "cholesky", "solve", "eigh", "qr", "slogdet"])
def test_empty_matrices_have_empty_gradients(backend, op, wrap):
    x = multiop.op_ones((2, 0, 0))
    rest = [x] if op == "solve" else []

    def total(x):
        ys = getattr(multiop, f"op_{op}")(x, *rest)
        return sum(multiop.op_sum(y) for y in (ys if isinstance(ys, (tuple, list)) else [ys]))

    assert multiop.op_shape(wrap(multiop.grad(total))(x)) == (2, 0, 0)


EPS = 1e-14
TWICE, SKEW = np.diag([2.0, 2.0, 5.0]), np.eye(3) + np.triu(np.ones((3, 3)), 1) / 4  # one value occurs twice


def turned(values, rows=3, columns=3):
    """Return a matrix with these singular values, in bases that are not those of the axes."""
    u, v = (np.linalg.qr(drawn(n, n))[0] for n in (rows, columns))
    k = len(values)
    return (u[:, :k] * np.asarray(values)) @ v[:k]


def projection_by_eigh(x):
    """Return the projection onto all vectors of the least value, which occurs twice, and the sum of their values."""
    values, vectors = multiop.op_eigh(x, broadening=EPS)
    return projection(vectors[..., :2]) * multiop.op_sum(values[..., :2])


def projection_by_eig(x):
    """Return the same, of a matrix that is not symmetric, by the rows of the inverse."""
    values, vectors = multiop.op_eig(x, broadening=EPS)  # in any order
    near = multiop.op_cast(multiop.op_less(multiop.op_abs(values - 2.0), 1.0), "float64")[..., None, :]
    product = multiop.op_matmul(multiop.op_multiply(vectors, near), multiop.op_inv(vectors))
    return multiop.op_real(multiop.op_matmul(product, multiop.op_cast(x, "complex128")))


def projection_by_svd(x):
    u, s, vh = multiop.op_svd(x, full_matrices=False, broadening=EPS)
    return multiop.op_matmul(u[..., 1:], vh[..., 1:, :]) * multiop.op_sum(s[..., 1:])


def leading_by_svd(x):
    """Return what the first singular value makes, where both others are 0."""
    u, s, vh = multiop.op_svd(x, full_matrices=False, broadening=EPS)
    return multiop.op_matmul(u[..., :1] * s[..., None, :1], vh[..., :1, :])


def spectral_projection(x):
    """Return the projection by the contour integral of the resolvent around 2, which no decomposition takes part in."""
    angles = 2j * np.pi * np.arange(64) / 64
    nodes = (2.0 + np.exp(angles))[:, None, None]
    resolvents = np.linalg.inv(nodes * np.eye(3) - x)
    return (resolvents * np.exp(angles)[:, None, None]).mean(0).real


def by_resolvent(x, scale=True):
    p = spectral_projection(x)
    return p * np.trace(p @ x) if scale else p @ x


def polar_of_twins(x):
    """Return the product of the factors of the singular values at 2, from the matrix twice as large, and their sum."""
    n, m = x.shape
    block = np.block([[np.zeros((n, n)), x], [x.T, np.zeros((m, m))]])
    angles = 2j * np.pi * np.arange(64) / 64
    resolvents = np.linalg.inv((2.0 + np.exp(angles))[:, None, None] * np.eye(n + m) - block)
    p = (resolvents * np.exp(angles)[:, None, None]).mean(0).real
    return 2 * p[:n, n:] * np.trace(p @ block)


def leading(x):
    u, s, vh = np.linalg.svd(x)
    return s[0] * np.outer(u[:, 0], vh[0])


def slope(f, x, t, h=1e-5):
    """Return the derivative of `f` along `t`, by differences of fourth order."""
    return (8 * (f(x + h * t) - f(x - h * t)) - (f(x + 2 * h * t) - f(x - 2 * h * t))) / (12 * h)


def symmetric(x):
    return (x + x.T) / 2


COINCIDENT = {
    "eigh": (projection_by_eigh, by_resolvent, TWICE, symmetric),
    "eig": (projection_by_eig, lambda x: by_resolvent(x, False), SKEW @ TWICE @ np.linalg.inv(SKEW), lambda t: t),
    "svd": (projection_by_svd, polar_of_twins, turned([5.0, 2.0, 2.0], 4, 3), lambda t: t),
    "svd at 0": (leading_by_svd, leading, turned([3.0], 3, 4), lambda t: t),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.tier("full")) if name in ("eig", "svd") else name for name in COINCIDENT],
)
def test_broadened_gradients_are_right_where_values_coincide(backend, name, x64):
    f, reference, x, kind = COINCIDENT[name]
    rng = np.random.default_rng(4)
    t, weights = kind(rng.normal(size=x.shape)), rng.normal(size=reference(x).shape)
    tensor, tangent = multiop.op_convert_to_tensor(x), multiop.op_convert_to_tensor(t)

    def weighed(x):
        return multiop.op_sum(multiop.op_multiply(f(x), weights))

    found = numpy(multiop.grad(weighed)(tensor))
    assert np.isfinite(found).all()
    expected = (slope(reference, x, t) * weights).sum()
    np.testing.assert_allclose((found * t).sum(), expected, rtol=1e-7)
    np.testing.assert_allclose(numpy(multiop.jvp(f, (tensor,), (tangent,))[1]), slope(reference, x, t), atol=1e-7)
    second = multiop.jvp(multiop.grad(weighed), (tensor,), (tangent,))[1]
    assert np.isfinite(numpy(second)).all()


@pytest.mark.tier("full")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda x: (lambda w, v: (w, square(v)))(*multiop.op_eigh(x, broadening=EPS)), (2, 3, 3)),
        (lambda x: (lambda w, v: multiop.op_matmul(v * (w * w)[None], adjoint(v)))(*multiop.op_eig(x, EPS)), (3, 3)),
        (
            lambda x: (lambda u, s, vh: (s, projection(u[:, 2:]), square(u[:, :2])))(
                *multiop.op_svd(x, broadening=EPS)
            ),
            (4, 2),
        ),
        (lambda x: (lambda u, s, vh: (s, square(vh)))(*multiop.op_svd(x, broadening=EPS)), (2, 3)),
        (lambda x: (lambda q, r: (projection(q[..., 2:]), r))(*multiop.op_qr(x, "complete", EPS)), (4, 2)),
        (lambda x: multiop.op_qr(x, broadening=EPS), (2, 3)),
    ],
    ids=["eigh", "eig", "svd tall", "svd wide", "qr tall", "qr wide"],
)
def test_broadened_gradients_are_those_of_distinct_values(backend, f, shape, dtype, x64):
    problem = Problem(f, call(normal(*shape)), dtype=dtype, seed=1, whole=backend == "jax")
    _checks.check_gradient(problem)
    _checks.check_second_order(problem)
    _checks.check_forward_mode(problem)


@pytest.mark.parametrize("gap", [0.0, 1e-3, 1.0])
def test_the_error_of_a_broadened_gradient_is_the_one_that_is_documented(backend, gap, x64):
    eps, weights = 1e-6, np.array([[0.0, 1.0], [1.0, 0.0]])

    def exponential(x):
        values, vectors = multiop.op_eigh(x, broadening=eps)
        product = multiop.op_matmul(vectors * multiop.op_exp(values), adjoint(vectors))
        return multiop.op_sum(multiop.op_multiply(product, weights))

    values = np.array([1.0, 1.0 + gap])
    found = numpy(multiop.grad(exponential)(multiop.op_convert_to_tensor(np.diag(values))))
    whole = 2 * (np.expm1(gap) / gap if gap else 1.0) * np.e  # what the lower triangle has
    np.testing.assert_allclose(found, [[0, 0], [whole * gap**2 / (gap**2 + eps), 0]], rtol=1e-9, atol=1e-12)


@pytest.mark.tier("full")  # each compiles
@pytest.mark.parametrize("op", ["op_eigh", "op_eig", "op_svd", "op_qr"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_broadened_gradients_are_finite_compiled_and_mapped(backend, op, dtype):
    stack = np.stack([np.eye(3), np.zeros((3, 3)), np.ones((3, 3))]).astype(dtype)

    def f(x):
        return sum(
            multiop.op_sum(multiop.op_real(y * multiop.op_conj(y))) for y in getattr(multiop, op)(x, broadening=1e-6)
        )

    whole = numpy(multiop.grad(f)(multiop.op_convert_to_tensor(stack)))
    assert np.isfinite(whole).all()
    mapped = numpy(multiop.jit(multiop.vmap(multiop.grad(f)))(multiop.op_convert_to_tensor(stack)))
    np.testing.assert_allclose(mapped, whole, atol=1e-4)


@pytest.mark.parametrize("op", ["op_eigh", "op_eig", "op_svd", "op_qr"])
def test_broadening_is_positive(backend, op):
    for eps in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(errors.ArgumentError, match="^" + op + ": broadening must be positive and finite"):
            getattr(multiop, op)([[1.0]], broadening=eps)
    with pytest.raises(errors.ArgumentTypeError):
        getattr(multiop, op)([[1.0]], broadening="wide")


@pytest.mark.parametrize(("op", "order"), [("op_sqrtm", 0.5), ("op_logm", None)])
@pytest.mark.tier("full")
@pytest.mark.parametrize("name", ["identity", "graded", "Jordan", "rotation"])
def test_roots_and_logarithms_to_second_order(backend, op, order, name, x64):
    """Against series of 1 + t and differences, where eigenvalues are equal, far apart, defective, close to the cut."""
    function, reference = getattr(multiop, op), getattr(scipy.linalg, op.removeprefix("op_"))
    basis = np.linalg.qr(drawn(3, 3))[0]
    x = {
        "identity": np.eye(3),
        "graded": basis @ np.diag([1e-4, 1.0, 1e3]) @ basis.T,
        "Jordan": 2 * np.eye(3) + np.diag([1.0, 1.0], 1),
        "rotation": scipy.linalg.block_diag(scipy.linalg.expm(np.array([[0.0, -3.0], [3.0, 0.0]])), 1.0),
    }[name]
    t = np.random.default_rng(5).normal(size=(3, 3)) * 1e-4
    tensor, tangent = multiop.op_convert_to_tensor(x), multiop.op_convert_to_tensor(t)
    np.testing.assert_allclose(numpy(function(tensor)), reference(x), rtol=1e-9, atol=1e-9)

    def first(x):
        return multiop.jvp(function, (x,), (tangent,))[1]

    found, second = (numpy(y) for y in multiop.jvp(first, (tensor,), (tangent,)))
    if name == "identity":
        expected, expected_second = (t / 2, -t @ t / 4) if order else (t, -t @ t)
        np.testing.assert_allclose(second, expected_second, rtol=1e-6)
    else:  # the derivative in a block, which SciPy computes with the value
        expected = reference(np.block([[x, t], [np.zeros((3, 3)), x]]))[:3, 3:]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("op", ["op_sqrtm", "op_logm"])
def test_a_matrix_without_a_principal_root_is_never_a_number(backend, op):
    for x in (
        [[1.0, 0.0], [0.0, 0.0]],
        [[-1.0, 0.0], [0.0, -1.0]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[1.0, 0.0], [0.0, -4.0]],
    ):
        found = np.nan
        with contextlib.suppress(errors.ArgumentError):
            found = numpy(getattr(multiop, op)(x))
        assert np.isnan(found).all()


def test_a_sylvester_equation_names_what_does_not_fit(backend):
    a, b = np.eye(2, dtype="float32"), np.eye(3, dtype="float32")
    with pytest.raises(errors.ArgumentError, match="^op_solve_sylvester: q must be matrices of 2 rows and 3 columns"):
        multiop.op_solve_sylvester(a, b, np.ones((3, 2), "float32"))
    with pytest.raises(errors.ArgumentError, match="^op_solve_sylvester: an eigenvalue of a is one of -b"):
        multiop.op_solve_sylvester(a, -b, np.ones((2, 3), "float32"))
