"""Order: sorting and searching."""

from __future__ import annotations

from multiop import _args
from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, Tensor


def op_sort(x: ArrayLike, axis: int | None = -1) -> Tensor:
    """Sort the entries of `x` along `axis`, smallest first.

    Args:
        x: Tensor, not complex.
        axis: Dimension to sort along; `None` sorts `x` as if it were flat.

    Returns:
        Tensor of the shape and dtype of `x`; NaN comes last.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex, which have no order.

    Gradient:
        Goes to where each entry came from.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sort([3, 1, 2])).tolist()
        [1, 2, 3]
    """
    try:
        return active().op_sort(x, axis)
    except Exception as error:
        raise explain(error, "op_sort", x=x, axis=axis)


def op_argsort(x: ArrayLike, axis: int | None = -1) -> Tensor:
    """Return the indices that sort `x` along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Dimension to sort along; `None` sorts `x` as if it were flat.

    Returns:
        `int32` tensor of the shape of `x`. Equal entries keep their order; NaN comes last.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex, which have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_argsort([3, 1, 2])).tolist()
        [1, 2, 0]
    """
    try:
        return active().op_argsort(x, axis)
    except Exception as error:
        raise explain(error, "op_argsort", x=x, axis=axis)


def op_searchsorted(sorted_sequence: ArrayLike, values: ArrayLike, side: str = "left") -> Tensor:
    """Return where `values` would have to be put into a sorted vector.

    Args:
        sorted_sequence: Vector, sorted, smallest first, NaN last.
        values: Tensor of any shape; NaN counts as larger than anything else.
        side: `"left"`: before entries that are equal; `"right"`: after them.

    Returns:
        `int32` tensor of the shape of `values`.

    Raises:
        ArgumentError: `sorted_sequence` is no vector, or `side` is neither.
        DTypeError: The operands are complex, which have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_searchsorted([1, 3, 5], [3, 4])).tolist()
        [1, 2]
    """
    try:
        return active().op_searchsorted(sorted_sequence, values, _args.choice(side, ("left", "right"), "side"))
    except Exception as error:
        raise explain(error, "op_searchsorted", sorted_sequence=sorted_sequence, values=values, side=side)
