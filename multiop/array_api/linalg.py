"""The standard's extension for linear algebra."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from multiop import errors
from multiop._values import args, host
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.frontends.conversion import op_shape
from multiop.frontends.elementwise import op_conj, op_multiply, op_reciprocal
from multiop.frontends.linalg import (
    op_cholesky as cholesky,
    op_det as det,
    op_eig,
    op_eigh,
    op_eigvals as eigvals,
    op_eigvalsh as eigvalsh,
    op_inv as inv,
    op_matrix_power as matrix_power,
    op_matrix_rank,
    op_norm,
    op_pinv,
    op_qr,
    op_slogdet,
    op_solve,
    op_svd,
    op_svdvals as svdvals,
)
from multiop.frontends.logical import op_greater, op_where
from multiop.frontends.products import (
    op_cross,
    op_matmul as matmul,
    op_outer as outer,
    op_tensordot as tensordot,
)
from multiop.frontends.reduction import op_max, op_sum
from multiop.frontends.shapes import op_diagonal, op_expand_dims, op_moveaxis, op_ndim, op_reshape

from ._functions import matrix_transpose, vecdot

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """Compute the cross products of vectors of three entries along an axis."""
    product, sizes = op_cross(x1, x2, axis=axis), [op_shape(x)[axis] for x in (x1, x2)]
    if 2 in sizes:
        raise errors.ArgumentError(f"cross: axis {axis} must have three entries in both, not {sizes[0]} and {sizes[1]}")
    return product


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """Return a diagonal of each matrix."""
    return op_diagonal(x, offset, -2, -1)


def eig(x: ArrayLike, /) -> EigResult:
    """Return eigenvalues and eigenvectors of square matrices, both complex."""
    return EigResult(*op_eig(x))


def eigh(x: ArrayLike, /) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    return EighResult(*op_eigh(x))


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Compute the norm of each matrix."""
    return op_norm(x, ord, (-2, -1), keepdims)


def matrix_rank(x: ArrayLike, /, *, rtol: Any = None) -> Tensor:
    """Count the singular values above `rtol` times the largest."""
    if rtol is None:
        return op_matrix_rank(x)
    values = svdvals(x)
    return op_sum(op_greater(values, _least(values, rtol)), -1, dtype="int32")


def pinv(x: ArrayLike, /, *, rtol: Any = None) -> Tensor:
    """Compute pseudo-inverses, where singular values up to `rtol` times the largest count as 0."""
    if rtol is None or host.is_scalar(rtol):
        return op_pinv(x, rtol)
    u, s, vh = op_svd(x, False)
    is_kept = op_greater(s, _least(s, rtol))
    inverse = op_where(is_kept, op_reciprocal(op_where(is_kept, s, 1)), 0)
    return matmul(op_multiply(_adjoint(vh), op_expand_dims(inverse, -2)), _adjoint(u))


def _adjoint(x: Tensor) -> Tensor:
    return op_conj(matrix_transpose(x))


def _least(s: Tensor, rtol: ArrayLike) -> Tensor:
    """Return `rtol`, one for each matrix, times the largest of its singular values."""
    return op_multiply(op_max(s, -1, True, 0.0), op_expand_dims(rtol, -1))


def qr(x: ArrayLike, /, *, mode: str = "reduced") -> QRResult:
    """Return matrices with orthonormal columns and upper triangular ones whose products are `x`."""
    return QRResult(*op_qr(x, mode))


def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """Return the signs and the logarithms of the sizes of determinants."""
    return SlogdetResult(*op_slogdet(x))


def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Solve the linear systems `x1 @ x = x2`; an `x2` of one dimension is a vector, any other matrices."""
    is_stack = 1 < op_ndim(x2) == op_ndim(x1) - 1  # which op_solve takes for vectors
    return op_solve(x1, op_expand_dims(x2, 0) if is_stack else x2)


def svd(x: ArrayLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Return singular vectors and singular values."""
    return SVDResult(*op_svd(x, full_matrices))


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DType = None) -> Tensor:
    """Sum a diagonal of each matrix."""
    return op_sum(diagonal(x, offset=offset), -1, dtype=dtype)


def vector_norm(x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Compute the norm over axes, of `x` as a vector along them."""
    shape = op_shape(x)
    axes = args.axes(axis, len(shape))
    rest = [size for k, size in enumerate(shape) if k not in axes]
    last = op_moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else x
    y = op_norm(op_reshape(last, (*rest, math.prod(shape[k] for k in axes))), ord, -1)
    return op_reshape(y, [1 if k in axes else size for k, size in enumerate(shape)]) if keepdims else y
