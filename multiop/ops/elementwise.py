"""Elementwise arithmetic and functions."""

from __future__ import annotations

from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, Tensor


def op_add(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Add `x1` and `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_add([1.0, 2.0], 3.0)).tolist()
        [4.0, 5.0]
    """
    try:
        return active().op_add(x1, x2)
    except Exception as error:
        raise explain(error, "op_add", x1=x1, x2=x2)


def op_exp(x: ArrayLike) -> Tensor:
    """Compute the exponential of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_exp(0.0).item() if multiop.backend() != "tensorflow" else float(multiop.op_exp(0.0))
        1.0
    """
    try:
        return active().op_exp(x)
    except Exception as error:
        raise explain(error, "op_exp", x=x)
