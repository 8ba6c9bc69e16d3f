"""Linear algebra: decompositions, determinants, inverses, linear systems, norms."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._rules.composed import with_rule
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Axis, Tensor
from multiop.frontends.control_flow import op_cond, op_fori_loop
from multiop.frontends.conversion import in_float32, on_device_of, op_cast, op_convert_to_tensor, op_dtype, op_shape
from multiop.frontends.creation import op_eye, op_ones_like, op_zeros_like
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_conj,
    op_divide,
    op_imag,
    op_log,
    op_multiply,
    op_negative,
    op_power,
    op_real,
    op_sqrt,
    op_square,
    op_subtract,
)
from multiop.frontends.logical import op_equal, op_greater, op_less, op_not_equal, op_where
from multiop.frontends.products import op_matmul
from multiop.frontends.reduction import op_any, op_max, op_min, op_sum
from multiop.frontends.shapes import (
    op_broadcast_to,
    op_concatenate,
    op_diagonal,
    op_expand_dims,
    op_moveaxis,
    op_reshape,
    op_squeeze,
    op_swapaxes,
    op_tril,
)


@boundary
def op_cholesky(x: ArrayLike, upper: bool = False) -> Tensor:
    """Return the Cholesky factor of Hermitian, positive definite matrices.

    Args:
        x: Tensor of shape `(..., n, n)`, of which the lower triangle is read.
        upper: Whether to return the upper factor, the conjugate transpose of the lower one.

    Returns:
        Tensor of the shape and dtype of `x` (`floatx` for integers): `L` with `L @ L^H = x`.

    Raises:
        ArgumentError: The matrices are not square, or one is known not to be positive definite; inside a compiled or
            mapped function its factor is NaN instead.
        DTypeError: The dtype has 16 bits.

    Gradient:
        That of the entries that are read: zero above the diagonal.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cholesky([[4.0, 2.0], [2.0, 2.0]])).tolist()
        [[2.0, 0.0], [1.0, 1.0]]
    """
    return active().op_cholesky(x, upper)


@boundary
def op_det(x: ArrayLike) -> Tensor:
    """Return the determinants of matrices.

    Args:
        x: Tensor of shape `(..., n, n)`.

    Returns:
        Tensor of shape `(...)` and the dtype of `x` (`floatx` for integers); 1 where `n` is 0.

    Raises:
        ArgumentError: The matrices are not square.
        DTypeError: The dtype has 16 bits.

    Gradient:
        The cofactors, for singular matrices too, where derivatives up to the third are right.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_det([[2.0, 1.0], [1.0, 3.0]])).tolist()
        5.0
    """
    return active().op_det(x)


@boundary
def op_slogdet(x: ArrayLike) -> tuple[Tensor, Tensor]:
    """Return the signs of determinants and the logarithms of their absolute values.

    Args:
        x: Tensor of shape `(..., n, n)`.

    Returns:
        Two tensors of shape `(...)`: the signs, complex numbers of absolute value 1 for complex matrices, and the
        logarithms, which are real. They are 0 and `-inf` for a singular matrix.

    Raises:
        ArgumentError: The matrices are not square.
        DTypeError: The dtype has 16 bits.

    Gradient:
        NaN for a singular matrix.

    Example:
        >>> import multiop
        >>> sign, logabsdet = multiop.op_slogdet([[0.0, 1.0], [1.0, 0.0]])
        >>> multiop.op_convert_to_numpy(sign).tolist(), abs(multiop.op_convert_to_numpy(logabsdet).tolist())
        (-1.0, 0.0)
    """
    sign, logabsdet = active().op_slogdet(x)
    return sign, logabsdet


@boundary
def op_inv(x: ArrayLike) -> Tensor:
    """Return the inverses of matrices.

    Args:
        x: Tensor of shape `(..., n, n)`.

    Returns:
        Tensor of the shape and dtype of `x` (`floatx` for integers).

    Raises:
        ArgumentError: The matrices are not square, or one is known to be singular: to have a pivot of exactly 0.
            Inside a compiled or mapped function, the result is not finite instead, or TensorFlow raises at run time.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_inv([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return active().op_inv(x)


@boundary
def op_pinv(x: ArrayLike, rcond: float | None = None, hermitian: bool = False) -> Tensor:
    """Return the Moore-Penrose pseudoinverses of matrices.

    Args:
        x: Tensor of shape `(..., m, n)`.
        rcond: Singular values up to `rcond` times the largest count as 0; by default the larger of `m` and `n` times
            the distance from 1 to the next number of the dtype.
        hermitian: Whether the matrices are Hermitian; if so, only their lower triangle is read.

    Returns:
        Tensor of shape `(..., n, m)` and the dtype of `x` (`floatx` for integers).

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or is known not to be finite; or `hermitian` is set and the
            matrices are not square.
        DTypeError: The dtype has 16 bits.

    Gradient:
        The derivative among matrices of the same rank, since the pseudoinverse jumps where the rank changes. Only
        entries that are read have a gradient: with `hermitian`, it is zero above the diagonal.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_pinv([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    if hermitian:
        x = active().floating(x)
        args.matrices(op_shape(x), square=True)
        below = op_tril(x, -1)
        diagonal = op_cast(op_real(op_subtract(op_tril(x), below)), op_dtype(x))
        x = op_add(op_add(below, diagonal), _adjoint(below))
    return active().op_pinv(x, _tolerance(rcond, "rcond"))


@boundary
def op_solve(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Solve the linear systems `a @ x = b`.

    Args:
        a: Tensor of shape `(..., n, n)`.
        b: Tensor of shape `(..., n, k)`; or `(n,)`, or `(..., n)` if it has one dimension less than `a`. Leading
            dimensions broadcast with those of `a`.

    Returns:
        Tensor of the shape of `b`, broadcast, and the promoted dtype (`floatx` for integers).

    Raises:
        ArgumentError: The shapes do not fit, or `a` is known to be singular: to have a pivot of exactly 0. Inside a
            compiled or mapped function, the result is not finite instead, or TensorFlow raises at run time.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])).tolist()
        [1.0, 0.5]
    """
    return active().op_solve(a, b)


@boundary
def op_solve_triangular(a: ArrayLike, b: ArrayLike, lower: bool = False) -> Tensor:
    """Solve the linear systems `a @ x = b` of triangular matrices.

    Args:
        a: Tensor of shape `(..., n, n)`, of which one triangle is read.
        b: Tensor of shape `(..., n, k)`; or `(n,)`, or `(..., n)` if it has one dimension less than `a`. Leading
            dimensions broadcast with those of `a`.
        lower: Whether the lower triangle is read, instead of the upper one.

    Returns:
        Tensor of the shape of `b`, broadcast, and the promoted dtype (`floatx` for integers).

    Raises:
        ArgumentError: The shapes do not fit, or a number on the diagonal of `a` is known to be 0. Inside a compiled or
            mapped function, the result is not finite instead, or TensorFlow raises at run time.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_solve_triangular([[2.0, 2.0], [0.0, 4.0]], [2.0, 2.0])).tolist()
        [0.5, 0.5]
    """
    return active().op_solve_triangular(a, b, lower)


@boundary
def op_expm(x: ArrayLike) -> Tensor:
    """Return the exponentials of matrices, `I + x + x @ x / 2 + ...`.

    Args:
        x: Tensor of shape `(..., n, n)`.

    Returns:
        Tensor of the shape and dtype of `x` (`floatx` for integers). On JAX and TensorFlow, the result is NaN for
        matrices whose norm exceeds 3e5.

    Raises:
        ArgumentError: The matrices are not square.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_expm([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    return active().op_expm(x)


@boundary
def op_lu_factor(x: ArrayLike) -> tuple[Tensor, Tensor]:
    """Factorise matrices into a lower and an upper triangle, with row swaps.

    Args:
        x: Tensor of shape `(..., m, n)`. On TensorFlow, matrices that are not square take `min(m, n)` steps in Python.

    Returns:
        Two tensors: both triangles in one tensor of the shape and dtype of `x`, without the ones on the diagonal of the
        lower one; and the pivots, `int32` of shape `(..., min(m, n))`: row `i` was swapped with row `pivots[i]`, in
        order. Among complex numbers of similar size, frameworks may choose different pivots.

    Raises:
        ArgumentError: `x` has fewer than two dimensions.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> factors, pivots = multiop.op_lu_factor([[1.0, 2.0], [2.0, 2.0]])
        >>> multiop.op_convert_to_numpy(factors).tolist(), multiop.op_convert_to_numpy(pivots).tolist()
        ([[2.0, 2.0], [0.5, 1.0]], [1, 1])
    """
    factors, pivots = active().op_lu_factor(x)
    return factors, pivots


@boundary
def op_qr(x: ArrayLike, mode: str = "reduced", broadening: float | None = None) -> tuple[Tensor, Tensor]:
    """Factorise matrices into one with orthonormal columns and an upper triangle.

    Args:
        x: Tensor of shape `(..., m, n)`.
        mode: `"reduced"`: the factors have `k = min(m, n)` columns and rows; `"complete"`: `k = m` of them.
        broadening: `None`, or a positive number `eps` for a gradient that stays finite where the first `k` columns are
            linearly dependent. See Gradient.

    Returns:
        Two tensors of the dtype of `x` (`floatx` for integers): `q` of shape `(..., m, k)` and `r` of shape
        `(..., k, n)`, with `q @ r = x`.

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or `mode` is unknown.
        DTypeError: The dtype has 16 bits.

    Gradient:
        The columns of `q` from the `n`-th on are a free choice; their derivative is that of the least rotation. It is
        NaN or infinite where the first `k` columns are linearly dependent. With `broadening=eps`, the inverse of the
        triangle has `s / (s**2 + eps)` for `1 / s`, of each of its singular values: what `1 / s` contributes is too
        small by the share `eps / (s**2 + eps)`.

    Example:
        >>> import multiop
        >>> q, r = multiop.op_qr([[3.0], [4.0]])
        >>> abs(multiop.op_convert_to_numpy(r)).tolist()
        [[5.0]]
    """
    mode = args.choice(mode, ("reduced", "complete"), "mode")
    if (eps := _broadening(broadening)) is None:
        q, r = active().op_qr(x, mode)
    else:
        q, r = with_rule("op_qr", _broadened_qr(mode, eps), active().floating(x))
    return q, r


@boundary
def op_svd(
    x: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, broadening: float | None = None
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Return the singular value decompositions of matrices.

    Args:
        x: Tensor of shape `(..., m, n)`.
        full_matrices: Whether the bases are complete: `k` is `m` for `u` and `n` for `vh`, instead of the smaller one.
        compute_uv: Whether to return the bases too.
        broadening: `None`, or a positive number `eps` for a gradient that stays finite where singular values are equal
            or 0. See Gradient.

    Returns:
        `u` of shape `(..., m, k)`, the singular values `s`, real, largest first, and `vh` of shape `(..., k, n)`, with
        `x = (u * s) @ vh` for as many columns and rows as there are singular values; or only `s`. The signs of the
        vectors, and the phases of complex ones, are the framework's.

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or is known not to be finite.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Through the vectors, right for results that do not depend on signs, phases and the choice of a basis (PyTorch
        refuses those that depend on phases), and NaN where two singular values are equal. With `broadening=eps`, it has
        `d / (d**2 + eps)` for each `1 / d`, where `d` is a difference of two singular values, a sum of two, or one that
        is divided by: as for `op_eigh`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False)).tolist()
        [4.0, 3.0]
    """
    if (eps := _broadening(broadening)) is None or not compute_uv:
        return active().op_svd(x, full_matrices, compute_uv)
    u, s, vh = with_rule("op_svd", _broadened_svd(full_matrices, eps), active().floating(x))
    return u, s, vh


@boundary
def op_eigh(x: ArrayLike, UPLO: str = "L", broadening: float | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of Hermitian matrices.

    Args:
        x: Tensor of shape `(..., n, n)`; only one triangle is read.
        UPLO: The triangle to read: `"L"` for the lower or `"U"` for the upper.
        broadening: `None`, or a positive number `eps` for a gradient that stays finite where eigenvalues are equal. See
            Gradient.

    Returns:
        The eigenvalues, real, of shape `(..., n)`, smallest first, and orthonormal eigenvectors, the columns of a
        tensor of the shape and dtype of `x` (`floatx` for integers). Their signs, and the phases of complex ones, are
        the framework's.

    Raises:
        ArgumentError: The matrices are not square, or known not to be finite, or `UPLO` is unknown.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Only entries that are read have a gradient: it is zero in the other triangle. The gradient through the vectors
        is right for functions that do not depend on signs and phases (PyTorch refuses those that depend on phases), and
        NaN where two eigenvalues are equal.

        With `broadening=eps`, it has `d / (d**2 + eps)` for each `1 / d`, where `d` is a difference of two eigenvalues
        (Lorentzian broadening: Liao, Liu, Wang and Xiang, "Differentiable programming tensor networks", 2019). So what
        two vectors contribute by turning into each other is too small by the share `eps / (d**2 + eps)`, and 0 where
        their values are equal. This is right, to within that share, where these vectors may be replaced by any others
        of the same space: projections onto all vectors of a value, sums over all of them. It is wrong, and finite,
        where the values weigh such vectors: the gradient of `v @ f(values) @ v^H` loses what `f'` contributes there.
        Second derivatives multiply what rounding has left there by `1 / eps`.

    Example:
        >>> import multiop
        >>> values, vectors = multiop.op_eigh([[3.0, 0.0], [0.0, 2.0]])
        >>> multiop.op_convert_to_numpy(values).tolist()
        [2.0, 3.0]
    """
    UPLO = UPLO.upper() if isinstance(UPLO, str) else UPLO
    if args.choice(UPLO, ("L", "U"), "UPLO") == "U":
        x = op_convert_to_tensor(x)
        args.matrices(op_shape(x), square=True)
        x = _adjoint(x)
    if (eps := _broadening(broadening)) is None:
        values, vectors = active().op_eigh(x)
    else:
        values, vectors = with_rule("op_eigh", _broadened_eigh(eps), active().floating(x))
    return values, vectors


@boundary
def op_eig(x: ArrayLike, broadening: float | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of square matrices.

    Args:
        x: Tensor of shape `(..., n, n)`.
        broadening: `None`, or a positive number `eps` for a gradient that stays finite where eigenvalues are equal. See
            Gradient.

    Returns:
        The eigenvalues, of shape `(..., n)`, and eigenvectors of length 1, the columns of a tensor of the shape of `x`;
        both complex, whatever the dtype of `x`. The order, and the phases of the vectors, are the framework's.

    Raises:
        ArgumentError: The matrices are not square, or known not to be finite.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Right for results that do not depend on phases (PyTorch refuses those that do); NaN or infinite where two
        eigenvalues are equal. With `broadening=eps`, it has `d / (abs(d)**2 + eps)` for each `1 / conj(d)`, where `d`
        is a difference of two eigenvalues, as for `op_eigh`; and the inverse of the vectors has `s / (s**2 + eps)` for
        `1 / s`, of each of their singular values, which are 0 for a matrix that has too few vectors.

    Example:
        >>> import multiop
        >>> values, vectors = multiop.op_eig([[3.0, 0.0], [0.0, 2.0]])
        >>> sorted(multiop.op_convert_to_numpy(values).real.tolist())
        [2.0, 3.0]
    """
    if (eps := _broadening(broadening)) is None:
        values, vectors = active().op_eig(x)
    else:
        values, vectors = with_rule("op_eig", _broadened_eig(eps), active().floating(x))
    return values, vectors


def _tolerance(value: Any, name: str) -> float | None:
    """Return `value`, a tolerance, as a float."""
    return None if value is None else args.number(value, name)


# rules that stay finite (Liao, Liu, Wang and Xiang, 2019), of the upstream gradients of all results


def _broadening(value: Any) -> float | None:
    """Return `value` as a positive float, or `None`."""
    if value is None:
        return None
    eps = float(args.number(value, "broadening"))
    if not 0 < eps < math.inf:
        raise errors.ArgumentError(f"broadening must be positive and finite, got {value}")
    return eps


def _broadened_eigh(eps: float) -> Any:
    def eigh(x: Any) -> Any:
        values, vectors = active().op_eigh(active().stop_gradient(x))

        def rule(u_values: Any, u_vectors: Any) -> Any:
            back = _adjoint(vectors)
            inner = op_multiply(op_matmul(back, u_vectors), _over_gaps(values, eps))
            grad = op_matmul(op_matmul(vectors, op_add(inner, _on_diagonal(u_values))), back)
            strict = op_tril(op_add(grad, _adjoint(grad)), -1)
            return [op_add(strict, _on_diagonal(_real_diagonal(grad)))]

        return (values, vectors), rule

    return eigh


def _broadened_eig(eps: float) -> Any:
    def eig(x: Any) -> Any:
        is_real = op_dtype(x) not in dtypes.COMPLEX
        values, vectors = active().op_eig(active().stop_gradient(x))

        def rule(u_values: Any, u_vectors: Any) -> Any:
            back = _adjoint(vectors)
            turned = op_matmul(back, u_vectors)
            lengths = op_expand_dims(_real_diagonal(turned), -2)  # the vectors keep theirs
            turned = op_subtract(turned, op_multiply(op_matmul(back, vectors), lengths))
            inner = op_add(op_multiply(turned, _over_gaps(values, eps)), _on_diagonal(u_values))
            grad = _damped_solve(back, op_matmul(inner, back), eps)
            return [op_real(grad) if is_real else grad]

        return (values, vectors), rule

    return eig


def _broadened_svd(full_matrices: bool, eps: float) -> Any:
    def svd(x: Any) -> Any:
        u, s, vh = active().op_svd(active().stop_gradient(x), full_matrices, True)
        rows, columns = op_shape(x)[-2:]
        k = min(rows, columns)

        def rule(u_u: Any, u_s: Any, u_vh: Any) -> Any:
            v = _adjoint(vh)
            left, right = u[..., :k], v[..., :k]
            u_left, u_right = _of_leading(u_u, u, k), _of_leading(_adjoint(u_vh), v, k)
            a, b = op_matmul(_adjoint(left), u_left), op_matmul(_adjoint(right), u_right)
            a_skew, b_skew = op_subtract(a, _adjoint(a)), op_subtract(b, _adjoint(b))
            sums = op_add(op_expand_dims(s, -2), op_expand_dims(s, -1))
            together = op_multiply(op_add(a_skew, b_skew), _over_gaps(s, eps))
            apart = op_multiply(op_subtract(a_skew, b_skew), _broadened_reciprocal(sums, eps))
            inner = op_add(op_multiply(op_add(together, apart), 0.5), _on_diagonal(u_s))
            inverse = op_expand_dims(_broadened_reciprocal(s, eps), -2)
            grad = op_matmul(op_matmul(left, inner), _adjoint(right))
            if rows > k:
                outside = op_multiply(op_subtract(u_left, op_matmul(left, a)), inverse)
                grad = op_add(grad, op_matmul(outside, _adjoint(right)))
            if columns > k:
                outside = op_multiply(op_subtract(u_right, op_matmul(right, b)), inverse)
                grad = op_add(grad, op_matmul(left, _adjoint(outside)))
            return [grad]

        return (u, s, vh), rule

    return svd


def _broadened_qr(mode: str, eps: float) -> Any:
    def qr(x: Any) -> Any:
        q, r = active().op_qr(active().stop_gradient(x), mode)
        k = min(op_shape(x)[-2:])

        def rule(u_q: Any, u_r: Any) -> Any:
            first, u_q, u_r = q[..., :k], _of_leading(u_q, q, k), u_r[..., :k, :]
            triangle, beside = r[..., :k, :k], _adjoint(u_r[..., k:])
            u_q = op_add(u_q, op_matmul(x[..., k:], beside))  # what r has beside its triangle is q^H x
            middle = op_matmul(triangle, _adjoint(u_r[..., :k]))
            middle = op_subtract(middle, op_matmul(_adjoint(u_q), first))
            strict = op_tril(middle, -1)
            middle = op_add(op_add(strict, _adjoint(strict)), _on_diagonal(_real_diagonal(middle)))
            grad = _adjoint(_damped_solve(triangle, _adjoint(op_add(u_q, op_matmul(first, middle))), eps))
            return [op_concatenate([grad, op_matmul(first, _adjoint(beside))], -1)]

        return (q, r), rule

    return qr


def _broadened_reciprocal(x: Any, eps: float) -> Any:
    """Return `x / (abs(x)**2 + eps)`, which is close to the conjugate of `1 / x`, and 0 at 0."""
    return op_divide(x, op_add(op_real(op_multiply(x, op_conj(x))), eps))


def _over_gaps(values: Any, eps: float) -> Any:
    """Return matrices of `_broadened_reciprocal` differences of values; that of a value and itself is a constant."""
    eye = on_device_of(values, op_eye(op_shape(values)[-1], dtype="bool"))
    gaps = op_subtract(op_expand_dims(values, -2), op_expand_dims(values, -1))
    return op_where(eye, op_zeros_like(gaps), _broadened_reciprocal(op_where(eye, op_ones_like(gaps), gaps), eps))


def _damped_solve(a: Any, b: Any, eps: float) -> Any:
    """Return `(a^H a + eps)^-1 a^H b`, by a system that is not worse conditioned than `a`."""
    k = op_shape(a)[-1]
    eye = on_device_of(a, op_multiply(op_eye(k, dtype=op_dtype(a)), eps**0.5))
    eye = op_broadcast_to(eye, op_shape(a))
    rows = [op_concatenate([eye, a], -1), op_concatenate([_adjoint(a), op_negative(eye)], -1)]
    return op_solve(op_concatenate(rows, -2), op_concatenate([b, op_zeros_like(b)], -2))[..., k:, :]


def _of_leading(u: Any, basis: Any, k: int) -> Any:
    """Return the gradient of the first `k` columns of a basis: by the least rotation, the others stay orthogonal."""
    first, others = basis[..., :k], basis[..., k:]
    return op_subtract(u[..., :k], op_matmul(others, op_matmul(_adjoint(u[..., k:]), first)))


def _adjoint(x: Any) -> Any:
    return op_conj(op_swapaxes(x, -1, -2))


def _on_diagonal(entries: Any) -> Any:
    """Return matrices with vectors on the diagonal."""
    name = op_dtype(entries)
    return op_multiply(op_expand_dims(entries, -1), on_device_of(entries, op_eye(op_shape(entries)[-1], dtype=name)))


def _real_diagonal(x: Any) -> Any:
    return op_real(op_diagonal(x, 0, -2, -1))


# composites


@boundary
def op_eigvalsh(x: ArrayLike, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices.

    Args:
        x: Tensor of shape `(..., n, n)`.
        UPLO: Which triangle is read, `"L"` or `"U"`.

    Returns:
        Real tensor of shape `(..., n)`, in ascending order.

    Raises:
        ArgumentError: The matrices are not square, or known not to be finite; or `UPLO` is neither.
        DTypeError: The dtype has 16 bits.

    Gradient:
        As that of `op_eigh`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_eigvalsh([[2.0, 0.0], [0.0, 1.0]])).tolist()
        [1.0, 2.0]
    """
    return op_eigh(x, UPLO)[0]


@boundary
def op_eigvals(x: ArrayLike) -> Tensor:
    """Return the eigenvalues of square matrices.

    Args:
        x: Tensor of shape `(..., n, n)`.

    Returns:
        Complex tensor of shape `(..., n)`, in no particular order.

    Raises:
        ArgumentError: The matrices are not square, or known not to be finite.
        DTypeError: The dtype has 16 bits.

    Gradient:
        As that of `op_eig`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_eigvals([[2.0]])).tolist()
        [(2+0j)]
    """
    return op_eig(x)[0]


@boundary
def op_svdvals(x: ArrayLike) -> Tensor:
    """Return the singular values of matrices.

    Args:
        x: Tensor of shape `(..., m, n)`.

    Returns:
        Real tensor of shape `(..., min(m, n))`, in descending order.

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or is known not to be finite.
        DTypeError: The dtype has 16 bits.

    Gradient:
        As that of `op_svd`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_svdvals([[3.0, 0.0], [0.0, -4.0]])).tolist()
        [4.0, 3.0]
    """
    values = op_svd(x, compute_uv=False)
    assert not isinstance(values, tuple)
    return values


@boundary
def op_logdet(x: ArrayLike) -> Tensor:
    """Return the logarithms of the determinants of matrices.

    Args:
        x: Tensor of shape `(..., n, n)`.

    Returns:
        Tensor of shape `(...)` and the dtype of `x` (`floatx` for integers): NaN where the determinant of a real
        matrix is negative, `-inf` where it is 0; for complex matrices the principal value.

    Raises:
        ArgumentError: The matrices are not square.
        DTypeError: The dtype has 16 bits.

    Gradient:
        NaN for a singular matrix.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logdet([[1.0, 2.0], [0.0, 1.0]])).tolist()
        0.0
    """
    sign, logabsdet = op_slogdet(x)
    return op_add(op_log(sign), logabsdet)


@boundary
def op_cholesky_inverse(x: ArrayLike, upper: bool = False) -> Tensor:
    """Return the inverses of matrices given by their Cholesky factors.

    Args:
        x: Tensor of shape `(..., n, n)`: a factor, of which one triangle is read.
        upper: Whether the upper triangle is read, instead of the lower one.

    Returns:
        Tensor of the shape and dtype of `x` (`floatx` for integers): the inverse of `x @ x^H`, or of `x^H @ x` if
        `upper`.

    Raises:
        ArgumentError: The matrices are not square, or a number on the diagonal is known to be 0.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cholesky_inverse([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.25, 0.0], [0.0, 0.0625]]
    """
    x = op_convert_to_tensor(x)
    rows, _ = args.matrices(op_shape(x), square=True)
    lower = not upper
    eye = on_device_of(x, op_eye(rows, dtype=op_dtype(x)))
    inverse = op_solve_triangular(x, op_broadcast_to(eye, op_shape(x)), lower)
    conjugate = _adjoint(inverse)
    return op_matmul(inverse, conjugate) if upper else op_matmul(conjugate, inverse)


@boundary
def op_lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, residuals: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """Return the `x` for which `a @ x` comes closest to `b`, the shortest if there are several.

    Args:
        a: Tensor of shape `(..., m, n)`.
        b: Tensor of shape `(..., m, k)`, or `(..., m)` with one dimension fewer than `a`.
        rcond: Singular values of `a` up to `rcond` times the largest count as 0; by default the larger of `m` and `n`
            times the distance from 1 to the next number of the dtype.
        residuals: Whether to return the residuals too.

    Returns:
        Tensor of shape `(..., n, k)`, or `(..., n)`, and the promoted dtype (`floatx` for integers). With `residuals`,
        also the squared norm of each column of `b - a @ x`: a real tensor of shape `(..., k)`, or `(...)`. NumPy
        returns no residuals if `m <= n`, or if `a` does not have full rank.

    Raises:
        ArgumentError: The shapes do not fit, or `a` is known not to be finite.
        DTypeError: The dtype has 16 bits.

    Gradient:
        The derivative among matrices `a` of the same rank, since the solution jumps where the rank changes.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_lstsq([[1.0], [1.0]], [1.0, 2.0])).round(6).tolist()
        [1.5]
    """
    a, b = active().promote_floating(a, b)
    rows, columns = op_shape(a), op_shape(b)
    args.matrices(rows, name="a")
    is_vector = len(columns) == len(rows) - 1
    if not is_vector and len(columns) != len(rows):
        raise errors.ArgumentError(f"b must have {len(rows)} dimensions, or {len(rows) - 1}, not {len(columns)}")
    b = op_expand_dims(b, -1) if is_vector else b
    if rows[-2] != op_shape(b)[-2]:
        raise errors.ArgumentError(f"b must have {rows[-2]} rows like a, not {op_shape(b)[-2]}")
    x = op_matmul(op_pinv(a, rcond), b)
    found = op_squeeze(x, -1) if is_vector else x
    if not residuals:
        return found
    rest = op_subtract(b, op_matmul(a, x))
    squares = op_sum(op_real(op_multiply(rest, op_conj(rest))), -2)
    return found, op_squeeze(squares, -1) if is_vector else squares


@boundary
def op_matrix_power(x: ArrayLike, n: int) -> Tensor:
    """Raise matrices to the integer power `n`.

    Args:
        x: Tensor of shape `(..., m, m)` and any dtype but bool.
        n: The exponent: 0 gives the identity, and a negative `n` gives powers of the inverse.

    Returns:
        Tensor of the shape and dtype of `x`; powers of the inverse of integers have the dtype `floatx`.

    Raises:
        ArgumentError: The matrices are not square, or `n` is negative and one is known to be singular.
        ArgumentTypeError: `n` is not an int.
        DTypeError: The dtype is bool, or has 16 bits and `n` is negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_matrix_power([[1, 1], [0, 1]], 5)).tolist()
        [[1, 5], [0, 1]]
    """
    n = args.count(n, "n", -sys.maxsize)
    x = op_convert_to_tensor(x)
    rows, _ = args.matrices(op_shape(x), square=True)
    if op_dtype(x) == "bool":
        raise errors.DTypeError("bool is not accepted; cast it to an integer first")
    if n < 0:
        x, n = op_inv(x), -n
    found: Any = None
    while n:
        if n % 2:
            found = x if found is None else op_matmul(found, x)
        n //= 2
        x = op_matmul(x, x) if n else x
    if found is None:
        found = op_broadcast_to(on_device_of(x, op_eye(rows, dtype=op_dtype(x))), op_shape(x))
    return found


@boundary
def op_matrix_rank(x: ArrayLike, tol: float | None = None, hermitian: bool = False) -> Tensor:
    """Return the ranks of matrices: how many singular values are above `tol`.

    Args:
        x: Tensor of shape `(..., m, n)`.
        tol: Singular values up to this count as 0; by default the largest singular value times the larger of `m` and
            `n` times the distance from 1 to the next number of the dtype.
        hermitian: Whether the matrices are Hermitian; if so, only their lower triangle is read.

    Returns:
        `int32` tensor of shape `(...)`.

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or is known not to be finite; or `hermitian` is set and the
            matrices are not square.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_matrix_rank([[1.0, 2.0], [2.0, 4.0]])).tolist()
        1
    """
    s = op_abs(op_eigvalsh(x)) if hermitian else op_svd(x, compute_uv=False)
    return op_sum(op_cast(op_greater(s, _rank_tolerance(s, x) if tol is None else tol), "int32"), axis=-1)


def _rank_tolerance(s: Any, x: ArrayLike) -> Tensor:
    """Return the number up to which the singular values `s` of `x` count as 0."""
    largest = op_max(s, axis=-1, keepdims=True, initial=0.0)
    return op_multiply(largest, max(op_shape(x)[-2:]) * float(np.finfo(op_dtype(s)).eps))


@boundary
def op_norm(
    x: ArrayLike,
    ord: int | float | str | None = None,  # noqa: A002
    axis: Axis = None,
    keepdims: bool = False,
) -> Tensor:
    """Return norms of vectors or of matrices.

    Args:
        x: Tensor. If neither `ord` nor `axis` is given, the 2-norm of all entries is taken.
        ord: For vectors: 2 by default, `inf` and `-inf` (the largest and the smallest absolute value), 0 (how many
            entries are not 0), or any number `p`: the `p`-th root of the sum of the `p`-th powers. For matrices:
            `"fro"` by default, `"nuc"` (the sum of the singular values), `2` and `-2` (the largest and the smallest of
            them), `1` and `-1`, `inf` and `-inf` (the largest and the smallest sum of absolute values of a column, of a
            row).
        axis: An int: the axis of vectors; two: the axes of the rows and the columns of matrices. By default all axes of
            `x`, which must then have one or two.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Real tensor without the reduced axes (`floatx` for integers).

    Raises:
        ArgumentError: `axis` is out of range or has more than two entries, or there is no such norm.
        ArgumentTypeError: `ord` is neither a number nor a string.
        DTypeError: The norm needs singular values, and the dtype has 16 bits.

    Gradient:
        0 at an entry that is 0, and where all are 0; ties between entries or sums split evenly. Singular values that
        `op_matrix_rank` counts as 0 have none.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_norm([3.0, 4.0])).tolist()
        5.0
    """
    x = active().floating(x)
    ndim = len(op_shape(x))
    axes = args.axes(axis, ndim)
    if ord is None and axis is None:
        return in_float32(lambda x: _euclidean(x, axes, keepdims), x)
    if ord is not None and (isinstance(ord, bool) or not isinstance(ord, (int, float, str, np.number))):
        raise errors.ArgumentTypeError(f"ord must be a number, a string or None, got {ord!r}")
    if len(axes) == 1:
        return in_float32(lambda x: _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims), x)
    if len(axes) == 2 and ord in ("nuc", 2, -2):
        return _singular_norm(x, ord, axes, keepdims)
    if len(axes) == 2:
        return in_float32(lambda x: _matrix_norm(x, ord, axes, keepdims), x)
    raise errors.ArgumentError(f"axis must name one or two dimensions, not {len(axes)}")


def _euclidean(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    squares = op_square(x) if op_dtype(x) not in ("complex64", "complex128") else _squares(x)
    total = op_sum(squares, axes, keepdims)
    zero = op_equal(total, 0)  # there the gradient of the root is infinite
    return op_where(zero, 0.0, op_sqrt(op_where(zero, 1.0, total)))


def _squares(x: Tensor) -> Tensor:
    return op_add(op_square(op_real(x)), op_square(op_imag(x)))


def _vector_norm(x: Tensor, p: Any, axis: int, keepdims: bool) -> Tensor:
    if isinstance(p, str):
        raise errors.ArgumentError(f"{p!r} is a norm of matrices; axis names one dimension")
    if p == 2:
        return _euclidean(x, (axis,), keepdims)
    if p == 0:
        sizes = op_abs(x)
        return op_sum(op_cast(op_not_equal(sizes, 0), op_dtype(sizes)), axis, keepdims)
    x = op_abs(x)
    if p == math.inf:
        return op_max(x, axis, keepdims)
    if p == -math.inf:
        return op_min(x, axis, keepdims)
    if p == 1:
        return op_sum(x, axis, keepdims)
    zero, limit = op_equal(x, 0), 0.0 if p > 0 else math.inf  # at 0, powers below 1 are infinitely steep
    total = op_sum(op_where(zero, limit, op_power(op_where(zero, 1.0, x), float(p))), axis, keepdims)
    zero = op_equal(total, limit)  # and so is the root
    return op_where(zero, 0.0, op_power(op_where(zero, 1.0, total), 1.0 / float(p)))


def _matrix_norm(x: Tensor, p: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if p in (None, "fro"):
        return _euclidean(x, axes, keepdims)
    if p in (1, -1, math.inf, -math.inf):
        summed, compared = axes if p in (1, -1) else axes[::-1]
        norm = (op_max if p > 0 else op_min)(op_sum(op_abs(x), summed, True), compared, True)
        return norm if keepdims else op_squeeze(norm, axes)
    raise errors.ArgumentError(f"matrices have no norm of ord {p!r}")


def _singular_norm(x: Tensor, p: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    x = op_moveaxis(x, axes, (-2, -1))
    s = op_svd(x, compute_uv=False)
    # the subgradient of least norm: what rounding leaves of a singular value of 0 has no gradient
    s = op_where(s > _rank_tolerance(s, x), s, active().stop_gradient(s))
    norm = op_sum(s, -1) if p == "nuc" else op_max(s, -1) if p == 2 else op_min(s, -1)
    return op_expand_dims(norm, sorted(axes)) if keepdims else norm


@boundary
def op_cdist(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Return the Euclidean distance of each row of `x` from each row of `y`.

    Args:
        x: Tensor of shape `(..., m, d)`.
        y: Tensor of shape `(..., n, d)`; leading dimensions broadcast with those of `x`.

    Returns:
        Tensor of shape `(..., m, n)` and the promoted dtype (`floatx` for integers).

    Raises:
        ArgumentError: An operand has fewer than two dimensions, or the rows differ in length.

    Gradient:
        0 where two rows are equal.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[5.0, 0.0]]
    """
    x, y = active().promote_floating(x, y)
    lengths = [args.matrices(op_shape(z), name=name)[1] for z, name in ((x, "x"), (y, "y"))]
    if lengths[0] != lengths[1]:
        raise errors.ArgumentError(f"the rows of x have {lengths[0]} entries, those of y {lengths[1]}")
    return op_norm(op_subtract(op_expand_dims(x, -2), op_expand_dims(y, -3)), axis=-1)


@boundary
def op_solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike) -> Tensor:
    """Solve the equations `a @ x + x @ b = q`.

    Each is a system of `m * n` linear equations, whose matrix is built: for matrices of up to some 30 rows.

    Args:
        a: Tensor of shape `(..., m, m)`.
        b: Tensor of shape `(..., n, n)`; leading dimensions broadcast with those of `a`.
        q: Tensor of shape `(..., m, n)`; leading dimensions broadcast with those of `a` and `b`.

    Returns:
        Tensor of the shape of `q`, broadcast, and the promoted dtype (`floatx` for integers).

    Raises:
        ArgumentError: The shapes do not fit, or there is no unique solution: an eigenvalue of `a` is one of `-b`, so
            that a pivot is known to be exactly 0. Inside a compiled or mapped function, the result is not finite
            instead, or TensorFlow raises at run time.
        DTypeError: The dtype has 16 bits.

    Example:
        >>> import multiop
        >>> x = multiop.op_solve_sylvester([[1.0, 0.0], [0.0, 3.0]], [[1.0]], [[2.0], [2.0]])
        >>> multiop.op_convert_to_numpy(x).tolist()
        [[1.0], [0.5]]
    """
    a, b, q = active().together(a, b, q)
    a, b = active().promote_floating(a, b)
    (a, q), (b, _) = active().promote_floating(a, q), active().promote_floating(b, q)
    m, n = (args.matrices(op_shape(x), square=True, name=name)[0] for x, name in ((a, "a"), (b, "b")))
    if args.matrices(op_shape(q), name="q") != (m, n):
        raise errors.ArgumentError(f"q must be matrices of {m} rows and {n} columns, got {args.describe(q)}")
    of_rows, of_columns = (on_device_of(q, op_eye(k, dtype=op_dtype(q))) for k in (m, n))
    left = op_multiply(op_expand_dims(a, (-3, -1)), op_expand_dims(of_columns, (0, 2)))
    right = op_multiply(op_expand_dims(of_rows, (1, 3)), op_expand_dims(op_swapaxes(b, -1, -2), (-4, -2)))
    system = op_add(left, right)
    system = op_reshape(system, (*op_shape(system)[:-4], m * n, m * n))
    few = (1,) * (len(op_shape(system)) - len(op_shape(q)))  # with fewer dimensions, op_solve takes it for vectors
    try:
        unknowns = op_solve(system, op_reshape(q, (*few, *op_shape(q)[:-2], m * n, 1)))
    except errors.ArgumentError as error:
        if "singular" not in str(error):
            raise
        raise errors.ArgumentError("an eigenvalue of a is one of -b, so that there is no unique solution") from None
    return op_reshape(unknowns, (*op_shape(unknowns)[:-2], m, n))


@boundary
def op_polar_decomposition(x: ArrayLike, side: str = "right") -> tuple[Tensor, Tensor]:
    """Return the factors of the polar decompositions of matrices: `x = u @ p`, of a unitary and a positive one.

    Args:
        x: Tensor of shape `(..., m, n)`.
        side: Where the positive factor stands: `"right"` for `u @ p`, `"left"` for `p @ u`.

    Returns:
        `u` of the shape and dtype of `x` (`floatx` for integers), whose columns are orthonormal, or whose rows where it
        has fewer rows, and the Hermitian `p`, without negative eigenvalues, of shape `(..., n, n)`, or `(..., m, m)`
        for the left side. `u` is the nearest such matrix to `x`.

    Raises:
        ArgumentError: `x` has fewer than two dimensions, or is known not to be finite, or `side` is unknown.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Right for equal singular values, too; not finite where one of the smaller dimension is 0, as `u` is not unique.

    Example:
        >>> import multiop
        >>> u, p = multiop.op_polar_decomposition([[0.0, -2.0], [3.0, 0.0]])
        >>> multiop.op_convert_to_numpy(p).round(6).tolist()
        [[3.0, 0.0], [0.0, 2.0]]

    Source: Higham, "Functions of Matrices: Theory and Computation", 2008, chapter 8.
    """
    if side not in ("right", "left"):
        raise errors.ArgumentError(f'side must be "right" or "left", got {side!r}')
    x = active().floating(x)
    m, n = args.matrices(op_shape(x))
    u = _adjoint(_unitary_factor(_adjoint(x))) if m < n else _unitary_factor(x)
    return u, _hermitian(op_matmul(_adjoint(u), x) if side == "right" else op_matmul(x, _adjoint(u)))


def _hermitian(x: Any) -> Any:
    return op_divide(op_add(x, _adjoint(x)), 2.0)


def _unitary_factor(x: Any) -> Any:
    """Return `u` of `x = u @ p` for matrices with as many rows as columns or more.

    With `k = u^H @ dx`, `du` is `u @ y + (dx - u @ k) / p`, where `p @ y + y @ p = k - k^H`; a map that is its own
    transpose.
    """

    def factor(x: Any) -> tuple[list[Any], Any]:
        left, _, right = op_svd(x, full_matrices=False)
        u = op_matmul(left, right)

        def rule(upstream: Any) -> list[Any]:
            p, k = _hermitian(op_matmul(_adjoint(u), x)), op_matmul(_adjoint(u), upstream)
            change = op_matmul(u, _solve_of_positive(p, op_subtract(k, _adjoint(k))))
            if op_shape(x)[-2] != op_shape(x)[-1]:
                beside = op_subtract(upstream, op_matmul(u, k))
                change = op_add(change, _adjoint(op_solve(p, _adjoint(beside))))
            return [change]

        return [u], rule

    return with_rule("op_polar_decomposition", factor, x)[0]


def _solve_of_positive(p: Any, q: Any) -> Any:
    """Return `y` of `p @ y + y @ p = q` for positive definite `p`, without the large system of `op_solve_sylvester`."""

    def solve(p: Any, q: Any) -> tuple[list[Any], Any]:
        values, vectors = op_eigh(p)
        sums = op_add(op_expand_dims(values, -1), op_expand_dims(values, -2))
        turned = op_matmul(op_matmul(_adjoint(vectors), q), vectors)
        y = op_matmul(op_matmul(vectors, op_divide(turned, sums)), _adjoint(vectors))

        def rule(upstream: Any) -> list[Any]:
            of_q = _solve_of_positive(p, upstream)
            across = _adjoint(y)
            return [op_negative(op_add(op_matmul(of_q, across), op_matmul(across, of_q))), of_q]

        return [y], rule

    return with_rule("op_polar_decomposition", solve, p, q)[0]


@boundary
def op_sqrtm(x: ArrayLike) -> Tensor:
    """Return the principal square roots of matrices: those whose eigenvalues have positive real parts.

    Args:
        x: Tensor of shape `(..., n, n)`, without eigenvalues that are 0 or negative real numbers.

    Returns:
        Tensor of the shape and dtype of `x` (`floatx` for integers); NaN where an iteration has not found a root. A
        negative eigenvalue has an imaginary root, which real matrices cannot hold: SciPy's result is complex then.

    Raises:
        ArgumentError: The matrices are not square, or an eigenvalue is known to be 0 or a negative real number.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Right for equal eigenvalues, too, and for matrices that have too few eigenvectors.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sqrtm([[4.0, 4.0], [0.0, 4.0]])).round(6).tolist()
        [[2.0, 1.0], [0.0, 2.0]]

    Source: Cheng, Higham, Kenney and Laub, "Approximating the logarithm of a matrix to specified accuracy", 2001.
    """
    return _function_of_matrices(_root, x)


@boundary
def op_logm(x: ArrayLike) -> Tensor:
    """Return the principal logarithms of matrices: those whose eigenvalues have imaginary parts between -pi and pi.

    Args:
        x: Tensor of shape `(..., n, n)`, without eigenvalues that are 0 or negative real numbers.

    Returns:
        Tensor of the shape and dtype of `x` (`floatx` for integers); NaN where its exponential is not `x`, as for a
        negative eigenvalue, whose logarithm is complex.

    Raises:
        ArgumentError: The matrices are not square, or an eigenvalue is known to be 0 or a negative real number.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Right for equal eigenvalues, too, and for matrices that have too few eigenvectors.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logm([[1.0, 1.0], [0.0, 1.0]])).round(6).tolist()
        [[0.0, 1.0], [0.0, 0.0]]

    Source: Cheng, Higham, Kenney and Laub, "Approximating the logarithm of a matrix to specified accuracy", 2001.
    """
    return _function_of_matrices(_logarithm, x)


def _function_of_matrices(function: Any, x: Any) -> Any:
    x = active().floating(x)
    if args.matrices(op_shape(x), square=True)[0] == 0:
        return x
    try:
        return function(x)
    except errors.ArgumentError as error:
        if "singular" not in str(error):
            raise
        raise errors.ArgumentError("x has an eigenvalue that is 0 or a negative real number") from None


def _nan_where_wrong(found: Any, x: Any, back: Any) -> Any:
    """Return `found`, or NaN where `back`, which would be `x`, is not."""
    wrong, size = (op_max(op_abs(y), (-2, -1), keepdims=True) for y in (op_subtract(back, x), x))
    allowed = op_multiply(size, float(np.finfo(op_dtype(size)).eps) ** 0.5)
    return op_where(wrong <= allowed, found, math.nan)


@composite
def _root(x: Any) -> Any:
    """Return principal square roots, by Newton's iteration as a product, scaled by norms.

    The derivative of the iteration converges with it: both are the iteration of a block (Higham, 2008).
    """
    n = op_shape(x)[-1]
    eye = on_device_of(x, op_eye(n, dtype=op_dtype(x)))

    enough = float(np.finfo(op_dtype(op_real(x))).eps) * n * 4

    def step(root: Any, product: Any) -> Any:
        inverse = op_inv(product)
        large, small = (op_max(op_abs(active().stop_gradient(y)), (-2, -1), keepdims=True) for y in (product, inverse))
        scale = op_power(op_divide(small, large), 0.25)
        product, inverse = op_multiply(product, op_square(scale)), op_divide(inverse, op_square(scale))
        root = op_multiply(op_matmul(root, op_add(eye, inverse)), op_multiply(scale, 0.5))
        return root, op_add(op_multiply(op_add(product, inverse), 0.25), op_multiply(eye, 0.5))

    def step_if_far(_: Any, state: Any) -> Any:
        is_far = op_any(op_less(enough, op_abs(op_subtract(active().stop_gradient(state[1]), eye))))
        return op_cond(is_far, lambda: step(*state), lambda: state)

    # near 1, each step doubles the order of the derivatives that have converged
    root, _ = step(*step(*op_fori_loop(0, _STEPS, step_if_far, (x, x))))
    return _nan_where_wrong(root, x, op_matmul(root, root))


_STEPS = 16  # enough for condition numbers of 1e16, and for angles of 1e-3 from the negative axis
_ROOTS = 10  # enough for matrices as large as 1e200
_TERMS = 12


def _logarithm(x: Any) -> Any:
    """Return principal logarithms: those of roots that are close to 1, by Gauss's rule for an integral."""
    from multiop._values.quadrature import GAUSS

    eye = on_device_of(x, op_eye(op_shape(x)[-1], dtype=op_dtype(x)))

    def root_if_far(_: Any, state: Any) -> Any:
        near, power = state
        columns = op_sum(op_abs(op_subtract(active().stop_gradient(near), eye)), -2, keepdims=True)
        is_far = op_less(0.5, op_max(columns, -1, keepdims=True))

        def take_root() -> Any:
            return op_where(is_far, _root(near), near), op_where(is_far, op_multiply(power, 2.0), power)

        return op_cond(op_any(is_far), take_root, lambda: (near, power))

    near, power = op_fori_loop(0, _ROOTS, root_if_far, (x, op_ones_like(op_real(x[..., :1, :1]))))
    distance = op_subtract(near, eye)
    shape = (-1, *[1] * len(op_shape(x)))
    nodes, weights = GAUSS[_TERMS]
    t, w = (on_device_of(x, op_cast(y.reshape(shape) / 2, op_dtype(power))) for y in (1 + nodes, weights))
    terms = op_solve(op_add(eye, op_multiply(distance, t)), op_broadcast_to(distance, (_TERMS, *op_shape(x))))
    found = op_multiply(op_sum(op_multiply(terms, w), 0), power)
    return _nan_where_wrong(found, x, op_expm(active().stop_gradient(found)))
