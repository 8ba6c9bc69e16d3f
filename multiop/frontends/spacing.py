"""Numbers that are evenly spaced on a logarithmic scale."""

from __future__ import annotations

import math

from multiop import errors
from multiop._call.boundary import boundary
from multiop._values import dtypes, host
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.frontends.conversion import in_float32, on_device_of, op_cast, op_dtype, op_shape
from multiop.frontends.creation import op_arange, op_linspace
from multiop.frontends.elementwise import log_of_all, op_log10, op_multiply, op_power, op_round, op_sign
from multiop.frontends.logical import op_equal, op_isclose, op_where
from multiop.frontends.shapes import op_moveaxis, op_reshape

# composites


@boundary
def op_logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10,
    dtype: DType = None,
    axis: int = 0,
) -> Tensor:
    """Return powers of `base` whose exponents are spaced evenly between `start` and `stop`.

    Exponents are rounded before they are raised: near the ends of the dtype, a power is up to 80 units in the last
    place from the exact one in float32, and 900 in float64, as NumPy's.

    Args:
        start: Tensor: the first exponent, or several.
        stop: Tensor whose shape broadcasts with that of `start`: the last exponent.
        num: How many numbers.
        endpoint: Whether `stop` is the last exponent; otherwise it would be the next one.
        base: Tensor that broadcasts with the result.
        dtype: Dtype of the result; by default that of the operands, `floatx` for integers.
        axis: Where the new dimension, of size `num`, is put.

    Returns:
        Tensor of the broadcast shape with a new dimension.

    Raises:
        ArgumentError: `num` is negative, `axis` is out of range, or the shapes do not broadcast.
        ArgumentTypeError: `num` is not an int, or `endpoint` is not a bool.

    Gradient:
        Infinite where a power times the logarithm of `base` overflows.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logspace(0, 3, 4, base=2)).tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    return _convert_spaced(op_power(base, op_linspace(start, stop, num, endpoint, False, _wide(dtype), axis)), dtype)


@boundary
def op_geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: DType = None, axis: int = 0
) -> Tensor:
    """Return numbers between `start` and `stop`, each a constant multiple of the one before.

    Args:
        start: Tensor, not complex and without 0: the first number, or several.
        stop: Tensor with the same signs as `start`, whose shape broadcasts: the last number.
        num: How many numbers.
        endpoint: Whether `stop` is the last of them; otherwise it would be the next one.
        dtype: Dtype of the result; by default that of the operands, `floatx` for integers.
        axis: Where the new dimension, of size `num`, is put.

    Returns:
        Tensor of the broadcast shape with a new dimension: NaN between ends of different signs, or if one end is 0.

    Raises:
        ArgumentError: `num` is negative, `axis` is out of range, `start` or `stop` is the number 0, or the shapes do
            not broadcast.
        ArgumentTypeError: `num` is not an int, or `endpoint` is not a bool.
        DTypeError: The operands are complex.

    Gradient:
        Flows to `start` and `stop`; the first number is `start` itself, and the last `stop` itself.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_geomspace(2, -1.0, 1)).tolist()
        [2.0]
    """
    for name, end in (("start", start), ("stop", stop)):
        if host.is_scalar(end) and end == 0:
            raise errors.ArgumentError(f"{name} must not be 0: nothing is a multiple of 0")
    ends = op_linspace(start, stop, 2, dtype=_wide(dtype))  # of one dtype and shape
    if op_dtype(ends) in dtypes.COMPLEX:
        raise errors.DTypeError(f"{op_dtype(ends)} is not accepted: give real numbers")
    first, last = ends[:1], ends[1:]
    index = on_device_of(ends, op_reshape(op_arange(num), (num, *[1] * (len(op_shape(ends)) - 1))))
    is_first = op_equal(index, 0)
    is_last = op_equal(index, num - 1 if endpoint and num > 1 else -1)

    def between(*ends: Tensor) -> Tensor:
        low, high = (log_of_all(op_log10, op_multiply(end, op_sign(ends[0])), math.log10(16)) for end in ends)
        spaced = op_linspace(low[0], high[0], num, endpoint)
        exponents = op_where(is_first | is_last, 0.0, spaced)  # the slope of an end may overflow
        return op_multiply(op_power(10, exponents), op_sign(ends[0]))

    numbers = op_where(is_first, first, op_where(is_last, last, in_float32(between, first, last)))
    return _convert_spaced(op_moveaxis(numbers, 0, axis), dtype)


def _wide(dtype: DType) -> str | None:
    """Return the name of a dtype whose digits its powers need; `None` for those that they are rounded to."""
    name = dtypes.name_or_none(dtype)
    return name if name in ("float64", "complex128") else None


def _convert_spaced(x: Tensor, dtype: DType) -> Tensor:
    """Return `x` in `dtype`; a power that is an integer up to rounding errors becomes that integer."""
    if dtype is None:
        return x
    if dtypes.name(dtype) in dtypes.INTEGER:
        whole = op_round(x)
        x = op_where(op_isclose(x, whole, 1e-12 if op_dtype(x) == "float64" else 1e-6, 0.0), whole, x)
    return op_cast(x, dtype)
