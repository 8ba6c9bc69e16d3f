"""Products of matrices and of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite, mark_recomputed
from multiop._values import args
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import in_float32, op_cast, op_convert_to_tensor, op_shape
from multiop.frontends.creation import op_ones_like
from multiop.frontends.elementwise import op_conj, op_multiply, op_subtract
from multiop.frontends.reduction import op_cumprod, op_sum
from multiop.frontends.shapes import (
    op_broadcast_to,
    op_concatenate,
    op_diagonal,
    op_flip,
    op_moveaxis,
    op_ndim,
    op_pad,
    op_reshape,
    op_roll,
)


@boundary
def op_matmul(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Multiply matrices, or stacks of them.

    Args:
        x1: Tensor of at least one dimension; its last two are the rows and columns of matrices. A tensor of one
            dimension is a row vector.
        x2: Tensor of at least one dimension, of matrices like `x1`; a tensor of one dimension is a column vector.
            Leading dimensions broadcast with those of `x1`.

    Returns:
        Tensor of the promoted dtype, but `int32` for `int8`; the product of bools is bool. The result has no dimension
        for an operand that is a vector.

    Raises:
        ArgumentError: An operand is a scalar, or the shapes do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_matmul([[1, 2], [3, 4]], [5, 6])).tolist()
        [17, 39]
    """
    return active().op_matmul(x1, x2)


@boundary
def op_einsum(subscripts: str | ArrayLike, *operands: ArrayLike, **kwargs: Any) -> Tensor:
    """Sum products of entries, as the Einstein summation `subscripts` specifies.

    Args:
        subscripts: Such as `"ij,jk->ik"`: a letter for each dimension of each operand, and the letters of the result.
            Without `->`, these are the letters that occur once, in alphabetical order, after `...`, which is any number
            of dimensions that broadcast. Dimensions of one letter broadcast too, if one has the size 1.
        *operands: Tensors, one per term of `subscripts`. Or no subscripts and, as in NumPy, in turn a tensor and
            the list of ints for its dimensions, and a last list for the result: `op_einsum(x, [0, 1], y, [1], [0])`.
        **kwargs: Only `optimize` is accepted, as in NumPy; it concerns the order of the products, which multiop leaves
            to the framework.

    Returns:
        Tensor of the promoted dtype, but `int32` for `int8`.

    Raises:
        ArgumentError: The subscripts do not fit the operands.
        ArgumentTypeError: Another keyword is given.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_einsum("ij,j->i", [[1, 2], [3, 4]], [5, 6])).tolist()
        [17, 39]
    """
    if unknown := set(kwargs) - {"optimize"}:
        raise errors.ArgumentTypeError(f"unexpected keyword {min(unknown)!r}; only optimize is accepted")
    if not isinstance(subscripts, str) and operands:
        subscripts, operands = _with_letters((subscripts, *operands))
    if not isinstance(subscripts, str):
        raise errors.ArgumentTypeError(f"subscripts must be a string, got {args.describe(subscripts)}")
    return active().op_einsum(_with_output(subscripts, operands) if "..." in subscripts else subscripts, operands)


def _with_letters(given: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the subscripts and the operands that NumPy takes in turn, an operand and a list of its indices."""
    n = len(given) // 2
    operands, terms = list(given[: 2 * n : 2]), [*given[1 : 2 * n : 2], *given[2 * n :]]
    letters, spelled = "".join(map(chr, (*range(65, 91), *range(97, 123)))), []  # capitals first
    for term in terms:
        is_row = isinstance(term, (Sequence, np.ndarray))
        numbers = args.host_ints([k for k in term if k is not Ellipsis]) if is_row else None
        if numbers is None or not all(0 <= k < 52 for k in numbers):
            raise errors.ArgumentTypeError(
                f"beside a tensor, expected a list of ints from 0 to 51, got {args.describe(term)}"
            )
        spelled.append("".join(["..." if k is Ellipsis else letters[k] for k in term]))
    return "->".join([",".join(spelled[:n]), *spelled[n:]]), operands


def _with_output(subscripts: str, operands: Sequence[ArrayLike]) -> str:
    """Return `subscripts` with the result's, which NumPy gives an ellipsis where an operand has one."""
    terms, arrow, output = subscripts.replace(" ", "").partition("->")
    if not arrow:
        letters = terms.replace(",", "").replace(".", "")
        output = "..." + "".join(sorted(letter for letter in letters if letters.count(letter) == 1))
    elif "..." not in output:
        for term, x in zip(terms.split(","), operands, strict=False):
            if "..." in term and op_ndim(x) > len(term) - 3:
                raise errors.ArgumentError(f"subscripts: the result of {subscripts!r} needs the ellipsis of {term!r}")
    return f"{terms}->{output}"


@boundary
def op_tensordot(x1: ArrayLike, x2: ArrayLike, axes: int | Sequence[Any] = 2) -> Tensor:
    """Sum products of the entries of `x1` and `x2` over some axes of both.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor of any dtype and shape.
        axes: How many axes to sum over: the last ones of `x1` and the first ones of `x2`. Or two axes, or two sequences
            of axes: those of `x1`, and the corresponding ones of `x2`.

    Returns:
        Tensor of the promoted dtype: the other axes of `x1`, then those of `x2`.

    Raises:
        ArgumentError: `axes` is out of range, or the axes have different sizes.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tensordot([[1, 2], [3, 4]], [5, 6], axes=1)).tolist()
        [17, 39]
    """
    return active().op_tensordot(x1, x2, axes)


# composites


@boundary
def op_trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Add up the entries of diagonals of `x`.

    Args:
        x: Tensor of at least two dimensions.
        offset: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.
        axis1: Dimension of the rows.
        axis2: Dimension of the columns.

    Returns:
        Tensor with those two dimensions removed; small integers add up as in `op_sum`.

    Raises:
        ArgumentError: An axis is out of range, or both are the same.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_trace([[1, 2], [3, 4]])).tolist()
        5
    """
    return op_sum(op_diagonal(x, offset, axis1, axis2), -1)


@boundary
def op_dot(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Multiply `x1` and `x2` as NumPy's `dot` does.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor of any dtype and shape.

    Returns:
        Tensor of the promoted dtype: the product of matrices or of vectors, or with a number. For more dimensions, the
        sum of products over the last axis of `x1` and the second to last of `x2` (the last one of a vector).

    Raises:
        ArgumentError: The shapes do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_dot([1, 2], [3, 4])).tolist()
        11
    """
    ndim = op_ndim(x2)
    if ndim == 0 or op_ndim(x1) == 0:
        return op_multiply(x1, x2)
    if ndim <= 2:
        x1, x2 = active().promote(x1, x2)
        return _product(x1, x2)
    return op_tensordot(x1, x2, (-1, -2))


def _product(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the product of tensors of one dtype in that dtype, also for `int8`, for which `op_matmul` has `int32`."""
    y = op_matmul(x1, x2)
    return op_cast(y, "int8") if active().dtype_name(x1) == "int8" else y


@boundary
def op_inner(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Sum products of the entries of `x1` and `x2` over the last axis of both.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor of any dtype and shape.

    Returns:
        Tensor of the promoted dtype: the other axes of `x1`, then those of `x2`; the product if one is a number.

    Raises:
        ArgumentError: The last axes have different sizes.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_inner([[1, 2], [3, 4]], [5, 6])).tolist()
        [17, 39]
    """
    if op_ndim(x1) == 0 or op_ndim(x2) == 0:
        return op_multiply(x1, x2)
    return op_tensordot(x1, x2, (-1, -1))


@boundary
@composite
@mark_recomputed
def op_outer(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Multiply each entry of `x1` by each of `x2`.

    Args:
        x1: Tensor of any dtype and shape, taken as if it were flattened.
        x2: Tensor of any dtype and shape, taken as if it were flattened.

    Returns:
        Matrix of the promoted dtype, with a row for each entry of `x1`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_outer([1, 2], [3, 4])).tolist()
        [[3, 4], [6, 8]]
    """
    x1, x2 = active().promote(x1, x2)
    return op_multiply(op_reshape(x1, (-1, 1)), op_reshape(x2, (1, -1)))


@boundary
def op_vdot(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Sum products of the entries of the conjugate of `x1` and those of `x2`.

    Args:
        x1: Tensor of any dtype and shape, taken as if it were flattened.
        x2: Tensor with as many entries, taken as if it were flattened.

    Returns:
        Scalar of the promoted dtype.

    Raises:
        ArgumentError: The numbers of entries differ.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_vdot([[1, 2]], [[3], [4]])).tolist()
        11
    """
    x1, x2 = active().promote(x1, x2)
    return _product(op_conj(op_reshape(x1, -1)), op_reshape(x2, -1))


@boundary
def op_kron(x1: ArrayLike, x2: ArrayLike, *more: ArrayLike) -> Tensor:
    """Replace each entry of `x1` by `x2` times that entry: the Kronecker product.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor of any dtype and shape; the one with fewer dimensions gets leading ones of size 1.
        *more: Further tensors; the product of the first two is multiplied by the third, and so on.

    Returns:
        Tensor of the promoted dtype, whose sizes are the products of the operands'.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_kron([[1, 2]], [[1, 1]])).tolist()
        [[1, 1, 2, 2]]
    """
    x1, x2 = active().promote(x1, x2)
    shape1, shape2 = op_shape(x1), op_shape(x2)
    ndim = max(len(shape1), len(shape2))
    shape1, shape2 = (1,) * (ndim - len(shape1)) + shape1, (1,) * (ndim - len(shape2)) + shape2
    blocks = op_multiply(
        op_reshape(x1, [size for n in shape1 for size in (n, 1)]),
        op_reshape(x2, [size for n in shape2 for size in (1, n)]),
    )
    product = op_reshape(blocks, [n1 * n2 for n1, n2 in zip(shape1, shape2, strict=True)])
    return op_kron(product, *more) if more else product


@boundary
@composite
@mark_recomputed
def op_cross(
    x1: ArrayLike, x2: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Compute the cross product of vectors.

    Args:
        x1: Tensor of vectors with two or three components; a missing third one is 0.
        x2: Tensor of vectors, like `x1`; its other axes broadcast with those of `x1`.
        axisa: Axis of the components in `x1`.
        axisb: Axis of the components in `x2`.
        axisc: Axis of the components in the result.
        axis: All three of these at once.

    Returns:
        Tensor of the promoted dtype. For two components in both operands, only the third component of the product.

    Raises:
        ArgumentError: An axis is out of range, or there are neither two nor three components.
        DTypeError: The operands are bool.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cross([1, 0, 0], [0, 1, 0])).tolist()
        [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = active().promote(x1, x2)
    return in_float32(lambda x1, x2: _cross(x1, x2, axisa, axisb, axisc), x1, x2)


def _cross(x1: Tensor, x2: Tensor, axisa: int, axisb: int, axisc: int) -> Tensor:
    a, b = op_moveaxis(x1, axisa, -1), op_moveaxis(x2, axisb, -1)
    sizes = op_shape(a)[-1], op_shape(b)[-1]
    if not set(sizes) <= {2, 3}:
        raise errors.ArgumentError(f"vectors must have two or three components, not {sizes[0]} and {sizes[1]}")
    if sizes == (2, 2):
        return op_subtract(op_multiply(a[..., 0], b[..., 1]), op_multiply(a[..., 1], b[..., 0]))
    a, b = (op_pad(x, [(0, 0)] * (op_ndim(x) - 1) + [(0, 3 - n)]) for x, n in zip((a, b), sizes, strict=True))
    turned = op_subtract(op_multiply(a, op_roll(b, -1, -1)), op_multiply(op_roll(a, -1, -1), b))
    return op_moveaxis(op_roll(turned, -1, -1), -1, axisc)


@boundary
@composite
@mark_recomputed
def op_vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Tensor:
    """Make the Vandermonde matrix of `x`: the powers of its entries.

    Args:
        x: Vector of any dtype.
        N: Number of columns; by default as many as rows.
        increasing: Whether the powers increase from left to right, instead of from right to left.

    Returns:
        Matrix with a row for each entry: its powers 0 to `N` - 1. Bool and integers of fewer than 32 bits become
        `int32`, unsigned ones `uint32`.

    Raises:
        ArgumentError: `x` is not a vector, or `N` is negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_vander([2, 3], N=3)).tolist()
        [[4, 2, 1], [9, 3, 1]]
    """
    x = op_convert_to_tensor(x)
    shape = op_shape(x)
    columns = N if N is not None else (*shape, 0)[0]
    if len(shape) != 1 or columns < 0:
        raise errors.ArgumentError("x must have one dimension, and N must not be negative")
    x = op_reshape(x, (-1, 1))
    factors = op_concatenate([op_ones_like(x), op_broadcast_to(x, (shape[0], max(columns - 1, 0)))], 1)
    powers = op_cumprod(factors[:, :columns], 1)
    return powers if increasing else op_flip(powers, 1)
