"""Windows for the analysis of signals."""

from __future__ import annotations

import math

from multiop import _args, config
from multiop._boundary import boundary
from multiop._registry import active
from multiop._types import Tensor
from multiop.frontends.conversion import op_cast
from multiop.frontends.creation import op_arange, op_ones
from multiop.frontends.elementwise import op_add, op_minimum, op_multiply, op_sin, op_square, op_subtract


@boundary
def op_kaiser(x: int, beta: float) -> Tensor:
    """Make the Kaiser window.

    Args:
        x: How many entries it has.
        beta: Shape of the window: 0 is a rectangle, and a larger number gives a narrower window.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric, 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not an int, or `beta` is not a real number.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_kaiser(3, 0.0)).tolist()
        [1.0, 1.0, 1.0]
    """
    return op_cast(active().op_kaiser(_triangle(x), abs(_args.number(beta, "beta"))), config.floatx())


# composites


@boundary
def op_bartlett(x: int) -> Tensor:
    """Make the Bartlett window, a triangle.

    Args:
        x: How many entries it has.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: it rises from 0 to 1 and falls back.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not an int.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bartlett(5)).tolist()
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return op_cast(_triangle(x), config.floatx())


@boundary
def op_hanning(x: int) -> Tensor:
    """Make the Hann window, a raised cosine.

    Args:
        x: How many entries it has.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: 0 at the ends and 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not an int.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hanning(3)).tolist()
        [0.0, 1.0, 0.0]
    """
    return op_cast(_raised(x), config.floatx())


@boundary
def op_hamming(x: int) -> Tensor:
    """Make the Hamming window, a cosine on a pedestal.

    Args:
        x: How many entries it has.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: 0.08 at the ends and 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not an int.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hamming(1)).tolist()
        [1.0]
    """
    return op_cast(op_add(op_multiply(_raised(x), 0.92), 0.08), config.floatx())


@boundary
def op_blackman(x: int) -> Tensor:
    """Make the Blackman window, a sum of two cosines.

    Args:
        x: How many entries it has.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: 0 at the ends and 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not an int.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_blackman(1)).tolist()
        [1.0]
    """
    return op_cast(_blackman(_raised(x)), config.floatx())


def _triangle(x: int) -> Tensor:
    """Return the Bartlett window, in at least 32 bits; a window of one entry is 1."""
    n = _args.count(x, "x")
    dtype = "float64" if config.floatx() == "float64" else "float32"
    if n < 2:
        return op_ones(n, dtype)
    index = op_arange(n, dtype=dtype)
    return op_multiply(op_minimum(index, op_subtract(n - 1, index)), 2 / (n - 1))


def _raised(x: int) -> Tensor:
    """Return `(1 - cos(t)) / 2` for `t` from 0 to 2 pi, as the square of a sine, which is exact at both ends."""
    return op_square(op_sin(op_multiply(_triangle(x), math.pi / 2)))


def _blackman(raised: Tensor) -> Tensor:
    """Return `0.42 - 0.5 cos(t) + 0.08 cos(2 t)`."""
    return op_multiply(raised, op_add(op_multiply(raised, 0.64), 0.36))
