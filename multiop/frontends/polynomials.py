"""Polynomials, as vectors of their coefficients, that of the highest power first."""

from __future__ import annotations

import math
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._rules.composed import with_rule
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import (
    on_device_of,
    op_cast,
    op_dtype,
    op_shape,
    operands,
    widen_halves,
)
from multiop.frontends.creation import op_eye, op_ones, op_ones_like, op_zeros, op_zeros_like
from multiop.frontends.elementwise import (
    op_add,
    op_conj,
    op_divide,
    op_multiply,
    op_negative,
    op_real,
    op_sqrt,
    op_subtract,
)
from multiop.frontends.linalg import op_eigvals, op_inv, op_lstsq
from multiop.frontends.logical import op_equal, op_where
from multiop.frontends.products import op_matmul, op_outer, op_vander
from multiop.frontends.reduction import op_sum
from multiop.frontends.shapes import op_concatenate, op_expand_dims, op_pad, op_reshape, op_stack, op_swapaxes

# composites


@boundary
@composite
def op_polyval(p: ArrayLike, x: ArrayLike) -> Tensor:
    """Evaluate a polynomial at each entry of `x`, by Horner's rule.

    Args:
        p: Vector of coefficients, that of the highest power first.
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape of `x` and the promoted dtype; 16-bit floats are computed in `float32`. As in NumPy, NaN
        where `x` is infinite.

    Raises:
        ArgumentError: `p` is not a vector.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_polyval([3, 0, 1], [2, 5])).tolist()
        [13, 76]
    """
    p, x = operands(p, x)
    n = _vector(p, "p")
    dtype = dtypes.result_type(op_dtype(p), op_dtype(x))
    p, x = widen_halves(op_cast(p, dtype)), widen_halves(op_cast(x, dtype))
    if not n or dtype not in dtypes.INEXACT:
        return op_cast(_horner(p, x, 0), dtype)
    return op_cast(_taylor_coefficient(p, x, 0), dtype)


@boundary
def op_poly(x: ArrayLike) -> Tensor:
    """Return the polynomial with given roots, or the characteristic polynomial of a matrix.

    Args:
        x: Vector of roots, or square matrix, of which the roots are the eigenvalues.

    Returns:
        Vector of one coefficient more than there are roots: 1, and those of lower powers. It has the dtype of `x`,
        `floatx` for integers and bool; NumPy makes that of complex roots real where it can.

    Raises:
        ArgumentError: `x` is neither a vector nor a square matrix, or a matrix that is known not to be finite.
        DTypeError: `x` is a matrix, and its dtype has 16 bits.

    Gradient:
        For a matrix that of `op_eigvals`: NaN or infinite where two eigenvalues are equal.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_poly([1.0, 2.0])).tolist()
        [1.0, -3.0, 2.0]
    """
    x = active().floating(x)
    dtype, shape = op_dtype(x), op_shape(x)
    if len(shape) == 2:
        args.matrices(shape, square=True)
        coefficients = op_poly(op_eigvals(x))
        return coefficients if dtype in dtypes.COMPLEX else op_real(coefficients)
    roots = widen_halves(x)
    coefficients = on_device_of(x, op_ones((1,), op_dtype(roots)))
    for k in range(_vector(x, "x")):
        lower = op_pad(op_multiply(coefficients, roots[k]), [(1, 0)])
        coefficients = op_subtract(op_pad(coefficients, [(0, 1)]), lower)
    return op_cast(coefficients, dtype)


@boundary
def op_roots(p: ArrayLike) -> Tensor:
    """Return the roots of a polynomial, as the eigenvalues of its companion matrix.

    Args:
        p: Vector of coefficients, that of the highest power first, which is not 0.

    Returns:
        Complex vector of one entry less than `p` has, in no particular order. NumPy leaves out leading zeros of `p`;
        here they are an error, as the shape does not depend on values.

    Raises:
        ArgumentError: `p` is not a vector, or is known to be not finite, or 0 in its first entry. In compiled or mapped
            code, which cannot raise an error, the roots are NaN then, or the framework raises.
        DTypeError: The dtype has 16 bits.

    Gradient:
        Infinite or NaN where a root is multiple.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_roots([2.0, -6.0])).tolist()
        [(3+0j)]
    """
    p = active().floating(p)
    n = _vector(p, "p") - 1
    if n < 1:
        dtype = "complex128" if op_dtype(p) in ("float64", "complex128") else "complex64"
        return on_device_of(p, op_zeros((0,), dtype))
    first = op_negative(op_divide(p[1:], p[:1]))
    others = on_device_of(p, op_eye(n - 1, n, dtype=op_dtype(p)))
    try:
        return op_eigvals(op_concatenate([op_expand_dims(first, 0), others], 0))
    except errors.ArgumentError:
        raise errors.ArgumentError("p must be finite, and not 0 in its first entry") from None


@boundary
def op_polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Fit a polynomial to points: the sum of the squares of what it misses is as small as can be.

    Args:
        x: Vector of the places, not empty.
        y: Vector of the values there, or a matrix with a column for each polynomial.
        deg: The highest power.
        rcond: As for `op_lstsq`, which fits powers of `x` that are scaled to the same size.
        w: Vector of weights, which what is missed is multiplied by; by default 1.
        cov: Whether to return the covariances of the coefficients too; `"unscaled"` for those of values that are known
            with the standard deviations `1 / w`.

    Returns:
        Vector of `deg + 1` coefficients, that of the highest power first, or a matrix of such columns, of the promoted
        dtype (`floatx` for integers). With `cov` also their covariances: a matrix, or with `y` a matrix a tensor of
        shape `(deg + 1, deg + 1, columns)`, or `(deg + 1, deg + 1, 1)` if they are unscaled.

    Raises:
        ArgumentError: `deg` is negative, the shapes do not fit, `cov` is unknown, or covariances are to be scaled for
            fewer than `deg + 2` points.
        DTypeError: The dtype has 16 bits.

    Gradient:
        That of `op_lstsq`; flows to the weights as well.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1)).round(4).tolist()
        [2.0, 1.0]
    """
    if cov not in (False, True, "unscaled"):
        raise errors.ArgumentError(f'cov must be a bool or "unscaled", got {cov!r}')
    columns = args.count(deg, "deg") + 1
    given = operands(x, y) if w is None else operands(x, y, w)
    dtype = dtypes.to_floating(dtypes.result_type(*map(op_dtype, given)))
    x, y, *weights = (op_cast(tensor, dtype) for tensor in given)
    if (n := _vector(x, "x")) == 0:
        raise errors.ArgumentError("x must not be empty")
    shape = op_shape(y)
    if len(shape) not in (1, 2) or shape[0] != n:
        raise errors.ArgumentError(f"y must be a vector of {n} entries, or a matrix of {n} rows, not of shape {shape}")
    values = op_reshape(y, (n, -1)) if shape[1:] != (0,) else y
    powers = op_vander(x, columns)
    if weights:
        if op_shape(weights[0]) != (n,):
            raise errors.ArgumentError(f"w must be a vector of {n} entries, not of shape {op_shape(weights[0])}")
        factor = op_expand_dims(weights[0], -1)
        powers, values = op_multiply(powers, factor), op_multiply(values, factor)
    size = op_sqrt(op_sum(op_real(op_multiply(powers, op_conj(powers))), 0))
    scale = active().stop_gradient(op_where(op_equal(size, 0), op_ones_like(size), size))  # it cancels
    powers = op_divide(powers, scale)
    found, residuals = op_lstsq(powers, values, rcond, residuals=True)
    coefficients = op_reshape(op_divide(found, op_expand_dims(scale, -1)), (columns, *shape[1:]))
    if cov is False:
        return coefficients
    covariance = op_inv(op_matmul(op_conj(op_swapaxes(powers, 0, 1)), powers))
    covariance = op_divide(covariance, op_outer(scale, scale))
    if len(shape) == 2:
        covariance = op_expand_dims(covariance, -1)
    if cov is True:
        if n <= columns:
            raise errors.ArgumentError(f"cov: {n} points are too few to scale covariances of {columns} coefficients")
        residuals = op_reshape(residuals, shape[1:])
        covariance = op_multiply(covariance, op_divide(residuals, float(n - columns)))
    return coefficients, covariance


def _taylor_coefficient(p: Any, x: Any, order: int) -> Any:
    """Return a derivative of a polynomial, over the factorial of its order.

    The derivatives of Horner's rule as it is written would multiply what is 0 by a power of `x` that overflows.
    """

    def polynomial(p: Any, x: Any) -> tuple[list[Any], Any]:
        def rule(upstream: Any) -> list[Any]:
            slope = op_multiply(_taylor_coefficient(p, x, order + 1), order + 1.0)
            return [_sums_of_powers(upstream, op_conj(x), op_shape(p)[0], order), op_multiply(upstream, op_conj(slope))]

        return [_horner(p, x, order)], rule

    return with_rule("op_polyval", polynomial, p, x)[0]


def _sums_of_powers(weights: Any, x: Any, n: int, order: int) -> Any:
    """Return the derivatives of a weighted sum of `_taylor_coefficient` in each of `n` coefficients of `p`."""

    def sums(weights: Any, x: Any) -> tuple[list[Any], Any]:
        def rule(upstream: Any) -> list[Any]:
            conjugate = op_conj(x)
            slope = op_multiply(_taylor_coefficient(upstream, conjugate, order + 1), order + 1.0)
            return [_taylor_coefficient(upstream, conjugate, order), op_multiply(op_conj(weights), slope)]

        found, term = [op_zeros_like(op_sum(weights))] * min(order, n), weights
        for power in range(n - order):
            found.append(op_multiply(op_sum(term), float(math.comb(order + power, order))))
            term = op_multiply(term, x)
        return [op_stack(found[::-1])], rule

    return with_rule("op_polyval", sums, weights, x)[0]


def _horner(p: Any, x: Any, order: int) -> Any:
    """Return a derivative of a polynomial, over the factorial of its order, by Horner's rule."""
    parts = [op_multiply(op_zeros_like(x), x)]  # as in NumPy, NaN where x is infinite
    for k in range(op_shape(p)[0]):
        lower = [p[k], *parts[:order]]
        products = [op_multiply(part, x) if k else part for part in parts]
        parts = [op_add(product, part) for product, part in zip(products, lower, strict=False)] + lower[len(parts) :]
    return parts[order] if len(parts) > order else op_zeros_like(x)


def _vector(x: Any, name: str) -> int:
    """Return the size of a vector."""
    shape = op_shape(x)
    if len(shape) != 1 or not isinstance(shape[0], int):
        raise errors.ArgumentError(f"{name} must be a vector of a known size, not of shape {shape}")
    return shape[0]
