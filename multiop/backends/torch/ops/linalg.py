"""Matrix decompositions, and ops built on them."""

from __future__ import annotations

import cmath
import math

import torch

from multiop import errors
from multiop._values import args

from .._internals import is_autocast_on, is_forward_mode, is_lifted, is_tracked
from ..conversion import dtype_name, floating, promote
from ..devices import is_at_hand


def op_cholesky(x, upper):
    x = hermitian(matrices(x, square=True))
    factor, info = torch.linalg.cholesky_ex(x)
    factor = check_solved(factor, info, "x is not positive definite")
    return factor.mH if upper else factor


def op_det(x):
    x = matrices(x, square=True)
    if x.shape[-1] <= 3:
        return small_det(x)
    det = determinant(x)
    if not is_tracked(x):
        return det
    singular = det.detach() == 0  # there, the gradient of torch.linalg.det is 0
    masks = singular[..., None, None]
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    change = singular_det(torch.where(masks, x, eye))
    return torch.where(singular, change - change.detach(), determinant(torch.where(masks, eye, x)))


def op_slogdet(x):
    x = matrices(x, square=True)
    sign, logabsdet = log_determinant(x)
    if not is_tracked(x):
        return sign, logabsdet
    singular = logabsdet.detach() == -math.inf
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    sign, logabsdet = log_determinant(torch.where(singular[..., None, None], eye, x))
    change = (x - x.detach()).abs().square().sum((-2, -1))
    none = torch.sqrt(torch.where(singular, change, 1))  # 0 with a gradient of NaN
    return torch.where(singular, none.type(x.dtype), sign), torch.where(singular, none - math.inf, logabsdet)


def op_inv(x):
    inverse, info = torch.linalg.inv_ex(matrices(x, square=True))
    return check_solved(inverse, info, "x is singular")


def op_pinv(x, rcond):
    x = matrices(x)
    if x.numel() == 0:
        return x.mT.conj()
    if is_autocast_on(x):  # it would round the products, whose gradients then fail
        with torch.autocast(x.device.type, enabled=False):
            return op_pinv(x, rcond)
    rtol = max(x.shape[-2:]) * torch.finfo(x.dtype).eps if rcond is None else rcond
    if not x.is_complex():
        return torch.linalg.pinv(x, rtol=rtol)
    rows, columns = x.shape[-2:]  # in real blocks: compiled, the complex kernel is wrong (pytorch issue 198118)
    blocks = torch.cat([torch.cat([x.real, -x.imag], -1), torch.cat([x.imag, x.real], -1)], -2)
    inverse = torch.linalg.pinv(blocks, rtol=rtol)
    return torch.complex(inverse[..., :columns, :rows], inverse[..., columns:, :rows])


def op_solve(a, b):
    a, b = map(reject_halves, map(floating, promote(a, b)))
    vectors = args.is_vector_rhs(a.shape, b.shape)
    solution, info = system_solution(a, b[..., None] if vectors else b)
    solution = check_solved(solution, info, "a is singular")
    return solution[..., 0] if vectors else solution


def op_solve_triangular(a, b, lower):
    a, b = map(reject_halves, map(floating, promote(a, b)))
    vectors = args.is_vector_rhs(a.shape, b.shape)
    solution = torch.linalg.solve_triangular(a, b[..., None] if vectors else b, upper=not lower)
    solution = check_solved(solution, (torch.diagonal(a, dim1=-2, dim2=-1) == 0).any(-1), "a is singular")
    return solution[..., 0] if vectors else solution


def op_expm(x):
    x = matrices(x, square=True)
    if math.prod(x.shape[:-2]) != 1:
        return torch.linalg.matrix_exp(x)
    # one matrix alone may be given to a polynomial with a wrong coefficient: https://github.com/pytorch/pytorch/issues/196592
    return torch.linalg.matrix_exp(x.expand(2, *x.shape))[0]


def op_lu_factor(x):
    factors, pivots = torch.linalg.lu_factor_ex(matrices(x))[:2]
    return factors, pivots - 1


def op_qr(x, mode):
    x = matrices(x)
    rows, columns = x.shape[-2:]
    if mode == "reduced" or rows <= columns:
        return tuple(torch.linalg.qr(x))
    q, r = torch.linalg.qr(x)
    others = torch.linalg.qr(x.detach(), mode="complete").Q[..., columns:]
    return complete_basis(q, others), torch.cat([r, r.new_zeros(*r.shape[:-2], rows - columns, columns)], -2)


def op_svd(x, full_matrices, compute_uv):
    x = matrices(x)
    if not compute_uv:
        return torch.linalg.svdvals(x)
    u, s, vh = torch.linalg.svd(x, full_matrices=full_matrices)
    k = s.shape[-1]
    # the gradients of torch.linalg.svd ignore singular vectors without a singular value
    u = complete_basis(u[..., :k], u[..., k:].detach()) if u.shape[-1] > k else u
    vh = complete_basis(vh[..., :k, :].mH, vh[..., k:, :].detach().mH).mH if vh.shape[-2] > k else vh
    return u, s, vh


def op_eigh(x):
    x = matrices(x, square=True)
    # torch.linalg.eigh reads the lower triangle; the gradient of a Hermitian matrix is one, too
    x = hermitian(x) if (is_differentiated := is_tracked(x)) or x.is_complex() else x
    # torch.linalg.eigh returns finite numbers for some; a sum, which may overflow, takes a third of the time
    values = x.detach() if is_differentiated else x
    if is_at_hand(values) and not cmath.isfinite(values.sum().item()) and not bool(values.tril().isfinite().all()):
        raise errors.ArgumentError("x must be finite")
    return tuple(torch.linalg.eigh(x))


def op_eig(x):
    return tuple(torch.linalg.eig(matrices(x, square=True)))


# operands and results


def reject_halves(x):
    if x.dtype in (torch.float16, torch.bfloat16):
        raise errors.DTypeError(f"{dtype_name(x)} is too short for a decomposition; cast to float32 first")
    return x


def matrices(x, square=False):
    x = reject_halves(floating(x))
    args.matrices(x.shape, square)
    return x


def hermitian(x):
    """Return the Hermitian matrices given by the lower triangles of `x`."""
    strict = torch.tril(x, -1)
    if not x.is_complex():
        return torch.tril(x) + strict.mT
    return strict + strict.mH + torch.diag_embed(torch.diagonal(x, dim1=-2, dim2=-1).real).type(x.dtype)


def check_solved(result, failed, message):
    """Return `result`; where `failed`, raise, or return NaN if only the compiled program knows."""
    if is_at_hand(failed):
        if bool(failed.any() if failed.ndim else failed):  # which takes a tenth of the time
            raise errors.ArgumentError(message)
        return result
    return torch.where((failed != 0)[..., None, None], math.nan, result)


def complete_basis(thin, others):
    """Complete orthonormal columns `thin` by constant columns `others`, rotated to stay orthogonal to `thin`.

    `others` follow the reflection that takes the current value of `thin` to `thin`, which is exact to all orders.
    """
    first = thin.detach()
    within = torch.eye(thin.shape[-1], dtype=thin.dtype, device=thin.device) + thin.mH @ first
    return torch.cat([thin, others - (thin + first) @ system_solution(within, thin.mH @ others)[0]], -1)


# When differentiating forward mode, PyTorch treats the factors that its kernels save as constants
# (https://github.com/pytorch/pytorch/issues/192540); the factors of lu_factor have derivatives of any order


def system_solution(a, b):
    """Return the solutions of `a @ solution = b`, and for each the index of the pivot that is 0, if any."""
    if b.ndim < a.ndim:  # PyTorch may take matrices for vectors
        b = b[(None,) * (a.ndim - b.ndim)]
    if not is_forward_mode():
        return torch.linalg.solve_ex(a, b)
    factors, pivots, info = torch.linalg.lu_factor_ex(a)
    return torch.linalg.lu_solve(factors, pivots, b), info


def determinant(x):
    is_narrow = torch.finfo(x.dtype).bits < torch.finfo(torch.get_default_dtype()).bits  # its gradient fails there
    if not (is_narrow or is_lifted()):  # torch.func would add NaN (https://github.com/pytorch/pytorch/issues/192521)
        return torch.linalg.det(x)
    diagonal, parity = pivots(x)
    return diagonal.prod(-1) * parity


def log_determinant(x):
    """Return the signs of determinants and the logarithms of their magnitudes."""
    if not is_forward_mode():
        return torch.linalg.slogdet(x)
    diagonal, parity = pivots(x)
    return torch.sgn(diagonal).prod(-1) * parity, torch.log(diagonal.abs()).sum(-1)


def pivots(x):
    """Return the pivots of matrices, and the signs of the row permutations."""
    factors, rows = torch.linalg.lu_factor_ex(x)[:2]
    parity = 1 - 2 * ((rows != torch.arange(1, x.shape[-1] + 1, device=x.device)).sum(-1) % 2)
    return torch.diagonal(factors, dim1=-2, dim2=-1), parity.type(x.dtype)


def small_det(x):
    """Return determinants of matrices with at most three rows as polynomials, whose derivatives are exact."""
    n = x.shape[-1]
    if n == 0:
        return torch.ones(x.shape[:-2], dtype=x.dtype, device=x.device)
    if n == 1:
        return x[..., 0, 0]
    if n == 2:
        return x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0]
    return (x[..., 0, :] * torch.linalg.cross(x[..., 1, :], x[..., 2, :])).sum(-1)


def singular_det(x):
    """Return determinants whose derivatives up to the third are right where they are 0.

    In constant bases of singular vectors, the block of all but the last three singular values is invertible wherever
    these derivatives are nonzero; the rest is a polynomial.
    """
    n = x.shape[-1]
    u, s, vh = torch.linalg.svd(x.detach())
    constant = s[..., n - 4] <= n * torch.finfo(x.dtype).eps * s[..., 0]
    turned = u.mH @ x @ vh.mH
    eye = torch.eye(n - 3, dtype=x.dtype, device=x.device)
    block = torch.where(constant[..., None, None], eye, turned[..., : n - 3, : n - 3])
    below = turned[..., n - 3 :, : n - 3] @ system_solution(block, turned[..., : n - 3, n - 3 :])[0]
    det = determinant(block) * small_det(turned[..., n - 3 :, n - 3 :] - below)
    return torch.where(constant, 0, det * torch.linalg.det(u) * torch.linalg.det(vh))
