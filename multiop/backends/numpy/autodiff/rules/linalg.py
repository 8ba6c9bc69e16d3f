"""Derivatives of matrix decompositions (Giles, 2008; Townsend, 2016), of real and complex matrices."""

from __future__ import annotations

import numpy as np

from multiop._values import args

from ..._record import array_of, ops, tells_unused
from .formula import by_formula
from .products import adjoint


def of_factor(u, y, _x, upper):
    back, u = (y, adjoint(u)) if upper else (adjoint(y), u)
    grad = ops.solve_triangular(back, adjoint(ops.solve_triangular(back, hermitian(back @ u), False)), False)
    return lower(grad) + diagonal(grad) / 2


op_cholesky = (of_factor,)


@by_formula
def op_det(x):
    """Compute in constant bases what a polynomial of the three least singular values is, of which some may be 0."""
    n = x.shape[-1]
    if n <= 3:
        return small_det(x)
    left, s, right = np.linalg.svd(np.nan_to_num(array_of(x)))
    is_zero = s[..., n - 4] <= n * np.finfo(s.dtype).eps * s[..., 0]  # then so are three derivatives
    turned = adjoint(left) @ x @ adjoint(right)
    block = ops.where(is_zero[..., None, None], np.eye(n - 3, dtype=x.dtype), turned[..., :-3, :-3])
    rest = turned[..., -3:, -3:] - turned[..., -3:, :-3] @ ops.solve(block, turned[..., :-3, -3:])
    det = ops.det(block) * small_det(rest) * (np.linalg.det(left) * np.linalg.det(right))
    return ops.where(is_zero, 0, det)


def op_slogdet(u, x):
    sign, logabsdet = ops.slogdet(x)
    weight = u[1]
    if x.dtype.kind == "c":  # the sign turns with the phase
        weight = weight - 1j * ops.imag(np.conj(u[0]) * sign)
    is_singular = ops.isneginf(logabsdet)[..., None, None]
    return weight[..., None, None] * adjoint(ops.inv(ops.where(is_singular, np.nan, x)))


op_inv = (lambda u, y, _x: -(adjoint(y) @ u @ adjoint(y)),)


def op_pinv(u, x, rcond):
    inverse = ops.pinv(x, rcond)
    turned, back = adjoint(inverse), adjoint(u)
    left, right = back - x @ (inverse @ back), back - (back @ inverse) @ x
    return left @ inverse @ turned + turned @ (inverse @ right) - turned @ u @ turned


def of_matrix(u, y, a, like, is_lower=None):
    grad = -(solved_back(u, a, like, is_lower) @ adjoint(as_columns(y, a, like)))
    return grad if is_lower is None else ops.where(triangle(grad, is_lower), grad, 0)


def of_right_side(u, _y, a, like, is_lower=None):
    grad = solved_back(u, a, like, is_lower)
    return grad[..., 0] if grad.ndim > u.ndim else grad


def solved_back(u, a, b, is_lower):
    back, u = adjoint(a), as_columns(u, a, b)
    return ops.solve(back, u) if is_lower is None else ops.solve_triangular(back, u, not is_lower)


def as_columns(x, a, b):
    return ops.expand_dims(x, -1) if args.is_vector_rhs(a.shape, b.shape) else x


op_solve = op_solve_triangular = (of_matrix, of_right_side)


def op_expm(u, x):
    size = np.max(np.abs(array_of(u)), (-2, -1), keepdims=True, initial=0)
    size, n, back = np.where(size == 0, 1, size), x.shape[-1], adjoint(x)
    rows = [back, u / size], [np.zeros(x.shape, x.dtype), back]
    return ops.expm(ops.concatenate([ops.concatenate(row, -1) for row in rows], -2))[..., :n, n:] * size


def op_lu_factor(u, x):
    factors, pivots = ops.lu_factor(x)
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    left, right = lower(factors[..., :k]) + np.eye(rows, k, dtype=x.dtype), regular(upper(factors[..., :k, :]))
    u_left, u_right = lower(u[0][..., :k]), upper(u[0][..., :k, :])
    left, below, right, beside = left[..., :k, :], left[..., k:, :], right[..., :k], right[..., k:]
    u_left, u_below, u_right, u_beside = u_left[..., :k, :], u_left[..., k:, :], u_right[..., :k], u_right[..., k:]
    u_below = adjoint(ops.solve_triangular(right, adjoint(u_below), False))
    u_beside = ops.solve_triangular(adjoint(left), u_beside, False)
    u_left, u_right = u_left - u_beside @ adjoint(beside), u_right - adjoint(below) @ u_below
    middle = lower(adjoint(left) @ u_left) + upper(u_right @ adjoint(right))
    half = ops.solve_triangular(adjoint(left), middle, False)
    grad = adjoint(ops.solve_triangular(right, adjoint(half), False))
    grad = ops.concatenate([grad, u_below], -2) if rows > columns else ops.concatenate([grad, u_beside], -1)
    return ops.take_along_axis(grad, np.argsort(order(pivots, rows), -1)[..., None], -2)


def order(pivots, rows):
    """Return which row stands where after all swaps."""
    found = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for k in range(pivots.shape[-1]):
        pair = np.stack([np.full(pivots.shape[:-1], k), pivots[..., k]], -1)
        np.put_along_axis(found, pair, np.take_along_axis(found, pair[..., ::-1], -1), -1)
    return found


def op_qr(u, x, mode):
    (q, r), k = ops.qr(x, mode), min(x.shape[-2:])
    q, u_q, r, u_r = q[..., :k], of_leading(u[0], q, k), r[..., :k, :], u[1][..., :k, :]
    u_q = u_q + x[..., k:] @ adjoint(u_r[..., k:])  # what r has beside its triangle is q^H x
    middle = hermitian(r[..., :k] @ adjoint(u_r[..., :k]) - adjoint(u_q) @ q)
    grad = adjoint(ops.solve_triangular(regular(r[..., :k]), adjoint(u_q + q @ middle), False))
    return ops.concatenate([grad, q @ u_r[..., k:]], -1)


@tells_unused
def op_svd(u, x, full_matrices, compute_uv):
    left, s, right = ops.svd(x, full_matrices and compute_uv, True)
    right, k = adjoint(right), min(x.shape[-2:])
    first, last = left[..., :k], right[..., :k]
    if not compute_uv:
        return first * u[..., None, :] @ adjoint(last)
    of_values = np.zeros(s.shape, s.dtype) if u[1] is None else u[1]
    if u[0] is None and u[2] is None:
        return first * of_values[..., None, :] @ adjoint(last)
    u_left, u_right = (
        np.zeros(basis.shape, x.dtype) if upstream is None else of_leading(upstream, whole, k)
        for upstream, whole, basis in ((u[0], left, first), (u[2] if u[2] is None else adjoint(u[2]), right, last))
    )
    a, b = adjoint(first) @ u_left, adjoint(last) @ u_right
    share = s[..., None, :] / (s[..., None, :] + s[..., :, None])
    inner = ((a - adjoint(a)) * share + (b - adjoint(b)) * (1 - share)) * gaps(s) + on_diagonal(of_values)
    if x.dtype.kind == "c":  # the phases turn against each other
        inner = inner + on_diagonal(0.5j * ops.imag(entries(a) - entries(b)) / s)
    grad = first @ inner @ adjoint(last)
    if x.shape[-2] > k:
        grad = grad + (u_left - first @ a) / s[..., None, :] @ adjoint(last)
    if x.shape[-1] > k:
        grad = grad + first / s[..., None, :] @ adjoint(u_right - last @ b)
    return grad


@tells_unused
def op_eigh(u, x):
    values, vectors = ops.eigh(x)
    inner = np.zeros(x.shape, x.dtype) if u[0] is None else on_diagonal(u[0])
    if u[1] is not None:
        inner = inner + adjoint(vectors) @ u[1] * gaps(values)
    grad = vectors @ inner @ adjoint(vectors)
    return lower(grad) + lower(adjoint(grad)) + diagonal(grad)


@tells_unused
def op_eig(u, x):
    values, vectors = ops.eig(x)
    back = adjoint(vectors)
    inner = np.zeros(vectors.shape, vectors.dtype) if u[0] is None else on_diagonal(u[0])
    if u[1] is not None:
        change = back @ u[1]
        inner = inner + (change - back @ vectors * ops.real(entries(change))[..., None, :]) * np.conj(gaps(values))
    return ops.solve(back, inner @ back)


# parts of matrices


def triangle(x, is_lower):
    return (np.greater_equal if is_lower else np.less_equal).outer(*map(np.arange, x.shape[-2:]))


def lower(x):
    """Return the entries below the diagonal."""
    return ops.where(np.greater.outer(*map(np.arange, x.shape[-2:])), x, 0)


def upper(x):
    """Return the entries on the diagonal and above."""
    return ops.where(np.less_equal.outer(*map(np.arange, x.shape[-2:])), x, 0)


def diagonal(x):
    """Return the diagonal, which is real, in a matrix."""
    return ops.where(np.eye(x.shape[-1], dtype=bool), ops.real(x) if x.dtype.kind == "c" else x, 0)


def entries(x):
    return ops.diagonal(x, 0, -2, -1)


def on_diagonal(entries):
    """Return matrices with vectors on the diagonal."""
    return ops.where(np.eye(entries.shape[-1], dtype=bool), entries[..., None], 0)


def hermitian(x):
    """Return the Hermitian matrices given by the lower triangles of `x`."""
    below = lower(x)
    return below + adjoint(below) + diagonal(x)


def regular(x):
    """Return triangles, but NaN for those that are singular, where there is no derivative."""
    is_singular = (np.diagonal(array_of(x), 0, -2, -1) == 0).any(-1)[..., None, None]
    return ops.where(is_singular, np.nan, x)


def small_det(x):
    """Return determinants by the first row."""
    n = x.shape[-1]
    if n < 2:
        return x[..., 0, 0] if n else np.ones(x.shape[:-2], x.dtype)
    minors = [x[..., 1:, np.delete(np.arange(n), k)] for k in range(n)]
    return sum((-1) ** k * x[..., 0, k] * small_det(minor) for k, minor in enumerate(minors))


# vectors


def of_leading(u, basis, k):
    """Return the gradient of the first `k` columns of a basis: by the least rotation, the others stay orthogonal."""
    return u[..., :k] - basis[..., k:] @ (adjoint(u[..., k:]) @ basis[..., :k])


def gaps(values):
    """Return 1 over the differences of values; of equal ones, NaN."""
    gap = values[..., None, :] - values[..., :, None]
    is_zero = ops.equal(gap, 0)
    return ops.where(is_zero, np.where(np.eye(values.shape[-1]), 0, np.nan), 1 / ops.where(is_zero, 1, gap))
