"""Entries picked out by their indices."""

from __future__ import annotations

from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, Tensor


def op_take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Pick entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        indices: Integer tensor of any shape; negative ones count from the end.
        axis: Dimension to pick from; by default `x` is made flat first.

    Returns:
        Tensor of the dtype of `x`, with the dimensions of `indices` in place of `axis`.

    Raises:
        ArgumentError: An index or `axis` is out of range. In compiled or mapped code, where a bad index cannot be
            raised, the entry is NaN, or 0 for integers and bool.
        DTypeError: `indices` are no integers.

    Gradient:
        Adds up where an entry is picked more than once.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_take([5, 6, 7], [2, 0, -1])).tolist()
        [7, 5, 7]
    """
    try:
        return active().op_take(x, indices, axis)
    except Exception as error:
        raise explain(error, "op_take", x=x, indices=indices, axis=axis)


def op_take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Tensor:
    """Pick entries of `x` along `axis`, by an index of its own for each of the others.

    Args:
        x: Tensor of any dtype and shape.
        indices: Integer tensor of as many dimensions as `x`, which broadcasts with it but for `axis`; negative ones
            count from the end.
        axis: Dimension to pick from; by default `x` is made flat first, and `indices` is a vector.

    Returns:
        Tensor of the dtype of `x` and the broadcast shape.

    Raises:
        ArgumentError: An index or `axis` is out of range. In compiled or mapped code, where a bad index cannot be
            raised, the entry is NaN, or 0 for integers and bool.
        DTypeError: `indices` are no integers.

    Gradient:
        Adds up where an entry is picked more than once.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_take_along_axis([[5, 6], [7, 8]], [[1], [0]], axis=1)).tolist()
        [[6], [7]]
    """
    try:
        return active().op_take_along_axis(x, indices, axis)
    except Exception as error:
        raise explain(error, "op_take_along_axis", x=x, indices=indices, axis=axis)
