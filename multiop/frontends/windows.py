"""Windows for the analysis of signals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multiop import config, errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import args
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import on_device_of, op_cast, op_convert_to_numpy, op_shape, real_operand
from multiop.frontends.creation import op_arange, op_ones, op_ones_like
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_divide,
    op_minimum,
    op_multiply,
    op_sin,
    op_square,
    op_subtract,
)
from multiop.frontends.logical import op_equal, op_where


@boundary
def op_kaiser(x: ArrayLike, beta: ArrayLike) -> Tensor:
    """Make the Kaiser window.

    Args:
        x: The number of entries: an int, a bool, a float that is a whole number, or a scalar tensor of one of these.
        beta: Shape parameter: 0 gives a rectangle, and a larger `beta` a narrower window. A number, or a scalar
            floating tensor, which may be differentiated.

    Returns:
        Symmetric vector of `x` entries, 1 in the middle, of the dtype of `beta` if this is a tensor, else of `floatx`.

    Raises:
        ArgumentError: `x` is negative, or the tensor `beta` is not a scalar.
        ArgumentTypeError: `x` is not a whole number, or `beta` is neither a real number nor a tensor.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_kaiser(3, 0.0)).tolist()
        [1.0, 1.0, 1.0]
    """
    if not active().is_tensor(beta):
        return op_cast(active().op_kaiser(_triangle(x), abs(args.number(beta, "beta"))), config.floatx())
    beta, dtype = real_operand(beta)
    if op_shape(beta) != ():
        raise errors.ArgumentError(f"beta must be a scalar, got {args.describe(beta)}")
    wide = "float64" if dtype == "float64" else "float32"
    triangle = on_device_of(beta, _triangle(x, wide))
    beta = op_cast(beta, wide)
    flat = op_equal(beta, 0)  # at 0 the factors have a kink, but the window does not: it is a parabola there
    near = op_subtract(1, op_square(op_multiply(op_subtract(1, triangle), op_divide(beta, 2))))
    window = active().op_kaiser(triangle, op_where(flat, op_ones_like(beta), op_abs(beta)))
    return op_cast(op_where(flat, near, window), dtype)


# composites


@boundary
def op_bartlett(x: ArrayLike) -> Tensor:
    """Make the Bartlett window, a triangle.

    Args:
        x: The number of entries: an int, a bool, a float that is a whole number, or a scalar tensor of one of these.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: it rises from 0 to 1 and falls back.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not a whole number.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bartlett(5)).tolist()
        [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return op_cast(_triangle(x), config.floatx())


@boundary
def op_hanning(x: ArrayLike) -> Tensor:
    """Make the Hann window, a raised cosine.

    Args:
        x: The number of entries: an int, a bool, a float that is a whole number, or a scalar tensor of one of these.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: 0 at the ends and 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not a whole number.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hanning(3)).tolist()
        [0.0, 1.0, 0.0]
    """
    return op_cast(_raised_cosine(x), config.floatx())


@boundary
def op_hamming(x: ArrayLike) -> Tensor:
    """Make the Hamming window, a cosine on a pedestal.

    Args:
        x: The number of entries: an int, a bool, a float that is a whole number, or a scalar tensor of one of these.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: 0.08 at the ends and 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not a whole number.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hamming(1)).tolist()
        [1.0]
    """
    return op_cast(op_add(op_multiply(_raised_cosine(x), 0.92), 0.08), config.floatx())


@boundary
def op_blackman(x: ArrayLike) -> Tensor:
    """Make the Blackman window, a sum of two cosines.

    Args:
        x: The number of entries: an int, a bool, a float that is a whole number, or a scalar tensor of one of these.

    Returns:
        Vector of `x` entries, of dtype `floatx`, symmetric: 0 at the ends and 1 in the middle.

    Raises:
        ArgumentError: `x` is negative.
        ArgumentTypeError: `x` is not a whole number.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_blackman(1)).tolist()
        [1.0]
    """
    return op_cast(_blackman(_raised_cosine(x)), config.floatx())


def _triangle(x: ArrayLike, dtype: str | None = None) -> Tensor:
    """Return the Bartlett window, in at least 32 bits; a window of one entry is 1."""
    n = args.count(_as_int(x), "x")
    dtype = dtype or ("float64" if config.floatx() == "float64" else "float32")
    if n < 2:
        return op_ones(n, dtype)
    index = op_arange(n, dtype=dtype)
    return op_multiply(op_minimum(index, op_subtract(n - 1, index)), 2 / (n - 1))


def _as_int(x: Any) -> Any:
    """Return a bool, a whole float, or a scalar tensor of one of these, as an int; return anything else unchanged."""
    if getattr(x, "shape", None) == () and (isinstance(x, np.ndarray) or active().is_tensor(x)):
        x = op_convert_to_numpy(x).item()
    return int(x) if isinstance(x, (bool, np.bool_, float, np.floating)) and x == math.floor(x) else x


def _raised_cosine(x: ArrayLike) -> Tensor:
    """Return `(1 - cos(t)) / 2` for `t` from 0 to 2 pi, as the square of a sine, which is exact at both ends."""
    return op_square(op_sin(op_multiply(_triangle(x), math.pi / 2)))


def _blackman(raised: Tensor) -> Tensor:
    """Return `0.42 - 0.5 cos(t) + 0.08 cos(2 t)`."""
    return op_multiply(raised, op_add(op_multiply(raised, 0.64), 0.36))
