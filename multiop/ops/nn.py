"""Activations of neural networks."""

from __future__ import annotations

from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, Tensor


def op_relu(x: ArrayLike) -> Tensor:
    """Compute `max(x, 0)` for each entry of `x`.

    Args:
        x: Tensor, not complex; bool becomes `int32`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: The operands are complex, which have no order.

    Gradient:
        0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_relu([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    try:
        return active().op_relu(x)
    except Exception as error:
        raise explain(error, "op_relu", x=x)


def op_sigmoid(x: ArrayLike) -> Tensor:
    """Compute `1 / (1 + exp(-x))` for each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sigmoid([0.0])).tolist()
        [0.5]
    """
    try:
        return active().op_sigmoid(x)
    except Exception as error:
        raise explain(error, "op_sigmoid", x=x)


def op_softplus(x: ArrayLike) -> Tensor:
    """Compute `log(1 + exp(x))` for each entry of `x`, without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex, which have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_softplus([1000.0])).tolist()
        [1000.0]
    """
    try:
        return active().op_softplus(x)
    except Exception as error:
        raise explain(error, "op_softplus", x=x)


def op_softmax(x: ArrayLike, axis: int = -1) -> Tensor:
    """Compute `exp(x) / sum(exp(x))` along `axis`, without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension along which the entries are weighed against each other.

    Returns:
        Tensor of the shape of `x`, whose entries along `axis` add up to 1; NaN where the largest entry is infinite of
        either sign.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex, which have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_softmax([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """
    try:
        return active().op_softmax(x, axis)
    except Exception as error:
        raise explain(error, "op_softmax", x=x, axis=axis)


def op_log_softmax(x: ArrayLike, axis: int = -1) -> Tensor:
    """Compute the logarithm of the softmax of `x` along `axis`, without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension along which the entries are weighed against each other.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex, which have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log_softmax([5.0])).tolist()
        [0.0]
    """
    try:
        return active().op_log_softmax(x, axis)
    except Exception as error:
        raise explain(error, "op_log_softmax", x=x, axis=axis)
