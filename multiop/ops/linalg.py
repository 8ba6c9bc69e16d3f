"""Products of matrices and of tensors."""

from __future__ import annotations

from typing import Any

from multiop import errors
from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, Tensor
from multiop.ops.reduction import op_sum
from multiop.ops.shapes import op_diagonal


def op_matmul(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Multiply matrices, or stacks of them.

    Args:
        x1: Tensor of at least one dimension; its last two are the rows and columns of matrices. One dimension alone
            is a row vector.
        x2: Tensor of at least one dimension, likewise; one dimension alone is a column vector. Leading dimensions
            broadcast with those of `x1`.

    Returns:
        Tensor of the promoted dtype; the dimension of a vector is left out. Bools multiply to bool.

    Raises:
        ArgumentError: An operand is a scalar, or the shapes do not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_matmul([[1, 2], [3, 4]], [5, 6])).tolist()
        [17, 39]
    """
    try:
        return active().op_matmul(x1, x2)
    except Exception as error:
        raise explain(error, "op_matmul", x1=x1, x2=x2)


def op_einsum(subscripts: str, *operands: ArrayLike, **kwargs: Any) -> Tensor:
    """Sum products of entries as the Einstein summation `subscripts` says.

    Args:
        subscripts: Such as `"ij,jk->ik"`: a letter for each dimension of each operand, and those of the result.
            Without `->`, the letters that occur once, in alphabetical order. `...` stands for dimensions that
            broadcast.
        *operands: Tensors, one per term of `subscripts`.
        **kwargs: `optimize` alone is accepted, as NumPy's: it concerns the order of the products, which multiop
            leaves to the framework.

    Returns:
        Tensor of the promoted dtype.

    Raises:
        ArgumentError: The subscripts do not fit the operands.
        ArgumentTypeError: Another keyword is given.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_einsum("ij,j->i", [[1, 2], [3, 4]], [5, 6])).tolist()
        [17, 39]
    """
    try:
        if unknown := set(kwargs) - {"optimize"}:
            raise errors.ArgumentTypeError(f"unexpected keyword {min(unknown)!r}; only optimize is accepted")
        return active().op_einsum(subscripts, operands)
    except Exception as error:
        raise explain(error, "op_einsum", subscripts=subscripts, operands=operands)


# composites


def op_trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Add up the entries of diagonals of `x`.

    Args:
        x: Tensor of at least two dimensions.
        offset: Which diagonal: 0 the main one, positive above it, negative below.
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
