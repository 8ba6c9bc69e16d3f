"""Matrix decompositions, and ops built on them."""

from __future__ import annotations

import math

import numpy as np
import scipy

from multiop import errors
from multiop._values import args

from ..conversion import HALVES, dtype_name, floating, promote_floating


def op_cholesky(x, upper):
    factor = call_solver(np.linalg.cholesky, "x is not positive definite", matrices(x, square=True))
    return adjoint(factor) if upper else factor


def op_det(x):
    return np.linalg.det(matrices(x, square=True))


def op_slogdet(x):
    return tuple(np.linalg.slogdet(matrices(x, square=True)))


def op_inv(x):
    return call_solver(np.linalg.inv, "x is singular", matrices(x, square=True))


def op_pinv(x, rcond):
    x = matrices(x)
    return np.linalg.pinv(x, max(x.shape[-2:]) * np.finfo(x.dtype).eps if rcond is None else rcond)


def op_solve(a, b):
    a, b = map(reject_halves, promote_floating(a, b))
    vectors = args.is_vector_rhs(a.shape, b.shape)
    solution = call_solver(np.linalg.solve, "a is singular", a, b[..., None] if vectors else b)
    return solution[..., 0] if vectors else solution


def op_solve_triangular(a, b, lower):
    a, b = map(reject_halves, promote_floating(a, b))
    args.matrices(a.shape, square=True, name="a")
    return op_solve(np.tril(a) if lower else np.triu(a), b)


def op_expm(x):
    return scipy.linalg.expm(matrices(x, square=True))


def op_lu_factor(x):
    x = matrices(x)
    (factor,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))
    found = [factor(one) for one in x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])] if x.size else []
    pivots = np.array([one[1] for one in found], np.int32).reshape(*x.shape[:-2], min(x.shape[-2:]))
    return np.array([one[0] for one in found], x.dtype).reshape(x.shape), pivots


def op_qr(x, mode):
    return tuple(np.linalg.qr(matrices(x), mode))


def op_svd(x, full_matrices, compute_uv):
    found = np.linalg.svd(matrices(x), full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def op_eigh(x):
    x = matrices(x, square=True)
    if not np.isfinite(x).all():
        raise errors.ArgumentError("x must be finite")
    return tuple(np.linalg.eigh(x))


def op_eig(x):
    x = matrices(x, square=True)
    return tuple(y.astype(np.result_type(x, np.complex64)) for y in np.linalg.eig(x))


# operands and results


def reject_halves(x):
    if x.dtype in HALVES:
        raise errors.DTypeError(f"{dtype_name(x)} is too short for a decomposition; cast to float32 first")
    return x


def matrices(x, square=False):
    x = reject_halves(floating(x))
    args.matrices(x.shape, square)
    return x


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def call_solver(function, message, *xs):
    try:
        return function(*xs)
    except np.linalg.LinAlgError:
        raise errors.ArgumentError(message) from None
