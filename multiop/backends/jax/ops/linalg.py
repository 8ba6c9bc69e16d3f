"""Matrix decompositions, and ops built on them."""

from __future__ import annotations

import cmath
import functools
from inspect import signature

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import args

from ..autodiff._held import custom_jvp, hold_operands
from ..conversion import dtype_name, floating, is_array, jit_inline, promote
from ..devices import is_at_hand

lax = jax.lax


def op_cholesky(x, upper):
    return check_finite(_cholesky(matrices(x, square=True), upper), "x is not positive definite")


def op_det(x):
    return _det(matrices(x, square=True))


def op_slogdet(x):
    return _slogdet(matrices(x, square=True))


def op_inv(x):
    x = matrices(x, square=True)
    return check_invertible(_inv(x), x, "x")


def op_pinv(x, rcond):
    x = matrices(x)
    if x.size == 0:
        return jnp.conj(x.mT)
    rtol = max(x.shape[-2:]) * jnp.finfo(x.dtype).eps if rcond is None else rcond
    return check_finite(jnp.linalg.pinv(x, rtol=rtol), "x must be finite")


def op_solve(a, b):
    a, b = map(reject_halves, map(floating, promote(a, b)))
    return check_invertible(_solve(a, b, args.is_vector_rhs(a.shape, b.shape)), a, "a")


def op_solve_triangular(a, b, lower):
    a, b = map(reject_halves, map(floating, promote(a, b)))
    vectors = args.is_vector_rhs(a.shape, b.shape)
    singular = jnp.any(jnp.diagonal(a, axis1=-2, axis2=-1) == 0, -1)
    if is_at_hand(singular) and bool(jnp.any(singular)):
        raise errors.ArgumentError("a is singular")
    return _solve(a, b, vectors, lower)


def op_expm(x):
    return _expm(matrices(x, square=True))


def op_lu_factor(x):
    factors, pivots, _ = lax.linalg.lu(matrices(x))
    return factors, pivots


def op_qr(x, mode):
    return _qr(matrices(x), mode == "complete")


def op_svd(x, full_matrices, compute_uv):
    x = matrices(x)
    if not compute_uv:
        return check_finite(jnp.linalg.svd(x, compute_uv=False), "x must be finite")
    u, s, vh = _svd(x, full_matrices)
    return u, check_finite(s, "x must be finite"), vh


def op_eigh(x):
    x = matrices(x, square=True)
    values, vectors = _eigh(x)
    return check_finite(values, "x must be finite"), vectors


def op_eig(x):
    x = matrices(x, square=True)
    values, vectors = _eig(x)
    return check_finite(values, "x must be finite"), vectors


if "enable_eigvec_derivs" in signature(lax.linalg.eig).parameters:
    _eig = functools.partial(lax.linalg.eig, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
else:
    from .._before_0_10 import eig as _eig


# compiled as one program, these take a fraction of the time of their separate calls


@functools.partial(jit_inline, static_argnums=1)
def _cholesky(x, upper):
    factor = lax.linalg.cholesky(hermitian(x), symmetrize_input=False)
    return jnp.conj(factor.mT) if upper else factor


@jit_inline
def _det(x):
    return small_det(x) if x.shape[-1] <= 3 else det(x)


def _with_a_1(x):
    """Return 2 x 2 matrices with a 1 at the end: JAX multiplies the entries of such, which may leave the range."""
    return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, 1)] * 2).at[..., 2, 2].set(1)


@jit_inline
def _slogdet(x):
    sign, logabsdet = jnp.linalg.slogdet(_with_a_1(x) if x.shape[-1] == 2 else x)
    change = jnp.sum(jnp.square(jnp.abs(x - lax.stop_gradient(x))), (-2, -1))
    regular = logabsdet != -np.inf
    none = jnp.sqrt(jnp.where(regular, 1, change)) - regular  # 0 with a gradient of NaN where x is singular
    return sign + none, logabsdet + none


_inv = jit_inline(jnp.linalg.inv)


@jit_inline
@hold_operands
def _expm(x):
    # JAX scales to a norm of 4 or 5, where its rational approximation has lost up to 4 of 7 digits: scale by 8 more
    power = jax.scipy.linalg.expm(x / 8)
    for _ in range(3):
        power = jnp.matmul(power, power, precision="highest")
    return power


@functools.partial(jit_inline, static_argnums=(2, 3))
def _solve(a, b, vectors, lower=None):
    b = b[..., None] if vectors else b
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = jnp.broadcast_to(a, (*batch, *a.shape[-2:])), jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if lower is None:
        solution = jnp.linalg.solve(a, b)
    else:
        singular = jnp.any(jnp.diagonal(a, axis1=-2, axis2=-1) == 0, -1)[..., None, None]
        solution = jnp.where(singular, np.nan, lax.linalg.triangular_solve(a, b, left_side=True, lower=lower))
    return solution[..., 0] if vectors else solution


@functools.partial(jit_inline, static_argnums=1)
def _qr(x, complete):
    rows, columns = x.shape[-2:]
    # JAX before 0.10 differentiates this for as many columns as rows at most; the others only follow from `q`
    q, r = lax.linalg.qr(x[..., :rows], full_matrices=False)
    if rows < columns:
        others = jnp.matmul(jnp.conj(q.mT), x[..., rows:], precision="highest")
        return q, jnp.concatenate([r, others], -1)
    if complete and rows > columns:
        # for some matrices, lax.linalg.qr has NaN derivatives in the other columns
        others = lax.linalg.qr(lax.stop_gradient(x), full_matrices=True)[0][..., columns:]
        r = jnp.concatenate([r, jnp.zeros((*r.shape[:-2], rows - columns, columns), r.dtype)], -2)
        return complete_basis(q, others), r
    return q, r


@functools.partial(jit_inline, static_argnums=1)
def _svd(x, full_matrices):
    x, scale = scale_by_powers(x)
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    if full_matrices and x.shape[-2] > x.shape[-1]:
        u = complete_basis(u)
    if full_matrices and x.shape[-2] < x.shape[-1]:
        vh = jnp.conj(complete_basis(jnp.conj(vh.mT)).mT)
    return u, s * scale[..., 0], vh


@jit_inline
def _eigh(x):
    scaled_x, scale = scale_by_powers(hermitian(x))
    vectors, values = lax.linalg.eigh(scaled_x, symmetrize_input=False)
    finite = jnp.all(jnp.isfinite(jnp.tril(x)), axis=(-2, -1))[..., None]  # the kernel ignores some NaN
    return jnp.where(finite, values * scale[..., 0], np.nan), vectors


@jit_inline
def _is_finite(x):
    return jnp.all(jnp.isfinite(x))


# operands and results


def reject_halves(x):
    if x.dtype.itemsize == 2:
        raise errors.DTypeError(f"{dtype_name(x)} is too short for a decomposition; cast to float32 first")
    return x


def matrices(x, square=False):
    x = reject_halves(floating(x))
    args.matrices(x.shape, square)
    return x


def hermitian(x):
    """Return the Hermitian matrices given by the lower triangles of `x`."""
    strict = jnp.tril(x, -1)
    diagonal = jnp.where(jnp.eye(x.shape[-1], dtype=bool), jnp.real(x), 0).astype(x.dtype)
    return strict + jnp.conj(strict.mT) + diagonal


def scale_by_powers(x):
    """Return matrices divided by powers of 2, so that their entries are near 1, and these numbers.

    JAX adds 1 to eigenvalues and squares singular values where it differentiates their vectors, and loses the digits of
    large ones: https://github.com/jax-ml/jax/issues/40141
    """
    largest = jnp.max(jnp.abs(lax.stop_gradient(x)), (-2, -1), keepdims=True, initial=0)
    exponent = jnp.maximum(jnp.frexp(largest)[1] - 1, jnp.finfo(x.dtype).minexp)
    scale = jnp.ldexp(jnp.ones_like(largest), exponent)
    return x / scale, scale


def is_spoilt(result):
    """Say whether it is known that not all of `result` is finite."""
    if not is_at_hand(result):
        return False
    if is_array(result) and result.is_fully_addressable:  # NumPy's look takes a quarter of the time of a program
        entries = np.asarray(result).reshape(-1)
        if cmath.isfinite(np.dot(entries, entries)):
            return False
    return not np.asarray(_is_finite(result))


def check_finite(result, message):
    """Return `result`; raise if it is known and not finite."""
    if is_spoilt(result):
        raise errors.ArgumentError(message)
    return result


def check_invertible(result, x, name):
    """Return `result`; raise if `x` is known to be singular."""
    if is_spoilt(result) and bool(jnp.any(jnp.diagonal(lax.linalg.lu(x)[0], axis1=-2, axis2=-1) == 0)):
        raise errors.ArgumentError(f"{name} is singular")
    return result


def complete_basis(thin, others=None):
    """Complete orthonormal columns `thin` by constant columns `others`, rotated to stay orthogonal to `thin`.

    `others` follow the reflection that takes the current value of `thin` to `thin`, which is exact to all orders.
    """
    first = lax.stop_gradient(thin)
    if others is None:
        others = lax.linalg.qr(first, full_matrices=True)[0][..., first.shape[-1] :]
    within = jnp.eye(thin.shape[-1], dtype=thin.dtype) + jnp.conj(thin.mT) @ first
    turned = others - (thin + first) @ jnp.linalg.solve(within, jnp.conj(thin.mT) @ others)
    return jnp.concatenate([thin, turned], -1)


@hold_operands
def small_det(x):
    """Return determinants of matrices with at most three rows as polynomials, whose derivatives are exact."""
    n = x.shape[-1]
    if n == 0:
        return jnp.ones(x.shape[:-2], x.dtype)
    if n == 1:
        return x[..., 0, 0]
    if n == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    return jnp.sum(x[..., 0, :] * jnp.cross(x[..., 1, :], x[..., 2, :]), -1)


@custom_jvp
def det(x):
    return jnp.linalg.det(x)


@det.defjvp
def det_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    y = det(x)
    return y, jnp.sum(cofactors(x, lax.stop_gradient(y) == 0) * tangent, (-2, -1))


@jax.jit
def cofactors(x, singular):
    """Return the derivatives of determinants: JAX would compile the transpose of a `cond` anew for each gradient."""
    masks, eye = singular[..., None, None], jnp.eye(x.shape[-1], dtype=x.dtype)

    def some_singular(x):  # there, the gradient of jnp.linalg.det is wrong for some matrices
        regular = jnp.linalg.det(jnp.where(masks, eye, x))
        return jnp.where(singular, singular_det(jnp.where(masks, x, eye)), regular)

    def derivative(f):
        return lambda x: jax.vjp(f, x)[1](jnp.ones(singular.shape, x.dtype))[0]

    return lax.cond(jnp.any(singular), derivative(some_singular), derivative(jnp.linalg.det), x)


def singular_det(x):
    """Return determinants whose derivatives up to the third are right where they are 0.

    In constant bases of singular vectors, the block of all but the last three singular values is invertible wherever
    these derivatives are nonzero; the rest is a polynomial.
    """
    n = x.shape[-1]
    u, s, vh = jnp.linalg.svd(lax.stop_gradient(x))
    constant = s[..., n - 4] <= n * jnp.finfo(x.dtype).eps * s[..., 0]
    turned = jnp.conj(u.mT) @ x @ jnp.conj(vh.mT)
    block = jnp.where(constant[..., None, None], jnp.eye(n - 3, dtype=x.dtype), turned[..., : n - 3, : n - 3])
    below = turned[..., n - 3 :, : n - 3] @ jnp.linalg.solve(block, turned[..., : n - 3, n - 3 :])
    det = jnp.linalg.det(block) * small_det(turned[..., n - 3 :, n - 3 :] - below)
    return jnp.where(constant, 0, det * jnp.linalg.det(u) * jnp.linalg.det(vh))
