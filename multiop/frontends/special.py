"""Special functions."""

from __future__ import annotations

from multiop._boundary import boundary
from multiop._registry import active
from multiop._types import ArrayLike, Tensor


@boundary
def op_erf(x: ArrayLike) -> Tensor:
    """Compute the error function of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, from -1 to 1.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_erf([0.0])).tolist()
        [0.0]
    """
    return active().op_erf(x)


@boundary
def op_erfc(x: ArrayLike) -> Tensor:
    """Compute one minus the error function of each entry of `x`, without loss of digits where that is small.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, from 0 to 2.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_erfc([0.0])).tolist()
        [1.0]
    """
    return active().op_erfc(x)


@boundary
def op_erfinv(x: ArrayLike) -> Tensor:
    """Compute the inverse of the error function of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: infinite at -1 and 1, and NaN beyond.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Infinity at -1 and 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_erfinv([0.0])).tolist()
        [0.0]
    """
    return active().op_erfinv(x)


@boundary
def op_i0(x: ArrayLike) -> Tensor:
    """Compute the modified Bessel function of the first kind, of order 0, of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, at least 1.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_i0([0.0])).round(4).tolist()
        [1.0]
    """
    return active().op_i0(x)
