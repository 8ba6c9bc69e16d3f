"""Elementwise arithmetic and functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite, mark_recomputed
from multiop._rules.composed import with_rule
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.logical import op_isinf, op_isnan, op_signbit, op_where


@boundary
def op_add(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Add `x1` and `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. Two bools add up to a bool, their logical or.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_add([1.0, 2.0], 3.0)).tolist()
        [4.0, 5.0]
    """
    return active().op_add(x1, x2)


@boundary
def op_subtract(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Subtract `x2` from `x1`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are bool.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_subtract([1.0, 2.0], 3.0)).tolist()
        [-2.0, -1.0]
    """
    return active().op_subtract(x1, x2)


@boundary
def op_multiply(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Multiply `x1` by `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. Two bools multiply to a bool, their logical and.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_multiply([1.0, 2.0], 3.0)).tolist()
        [3.0, 6.0]
    """
    return active().op_multiply(x1, x2)


@boundary
def op_divide(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Divide `x1` by `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers divide to `floatx`. A division by 0 gives an infinity, or NaN for 0 /
        0.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_divide([1, 2], 4)).tolist()
        [0.25, 0.5]
    """
    return active().op_divide(x1, x2)


@boundary
def op_floor_divide(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Divide `x1` by `x2` and round down, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. Bools become `int32`.

    Raises:
        ArgumentError: The shapes do not broadcast, or an integer is divided by 0. Where only compiled or mapped
            code knows the divisor, which cannot raise an error, the entry is 0.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Zero.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_floor_divide([7, -7], 2)).tolist()
        [3, -4]
    """
    return active().op_floor_divide(x1, x2)


@boundary
def op_mod(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the remainder of `x1` divided by `x2`, with the sign of `x2`.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. Bools become `int32`.

    Raises:
        ArgumentError: The shapes do not broadcast, or an integer is divided by 0. Where only compiled or mapped
            code knows the divisor, which cannot raise an error, the entry is 0.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for `x1`, `-floor(x1 / x2)` for `x2`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_mod([7, -7], 3)).tolist()
        [1, 2]
    """
    return active().op_mod(x1, x2)


@boundary
def op_power(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Raise `x1` to the power `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. Bools become `int32`.

    Raises:
        ArgumentError: The shapes do not broadcast, or an integer is raised to a negative power. Where only compiled or
            mapped code knows the power, which cannot raise an error, the entry is 0.

    Gradient:
        For `x1`: 0 at `0 ** 0`. For `x2`: NaN where `x1` is negative, 0 where `x1` is 0 and `x2` is not negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_power([2.0, 3.0], 2)).tolist()
        [4.0, 9.0]
    """
    return active().op_power(x1, x2)


@boundary
def op_negative(x: ArrayLike) -> Tensor:
    """Negate each entry of `x`.

    Args:
        x: Tensor, not bool.

    Returns:
        Tensor of the shape and dtype of `x`; unsigned integers wrap.

    Raises:
        DTypeError: `x` is bool.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_negative([1, -2])).tolist()
        [-1, 2]
    """
    return active().op_negative(x)


@boundary
def op_reciprocal(x: ArrayLike) -> Tensor:
    """Compute `1 / x` for each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_reciprocal([2, 4])).tolist()
        [0.5, 0.25]
    """
    return active().op_reciprocal(x)


@boundary
def op_sign(x: ArrayLike) -> Tensor:
    """Return the sign of each entry of `x`: -1, 0 or 1.

    Args:
        x: Tensor, not bool.

    Returns:
        Tensor of the shape and dtype of `x`: `x / abs(x)` for complex numbers, NaN at NaN.

    Raises:
        DTypeError: `x` is bool.

    Gradient:
        Zero for real numbers.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sign([-2.0, 0.0, 5.0])).tolist()
        [-1.0, 0.0, 1.0]
    """
    return active().op_sign(x)


@boundary
def op_abs(x: ArrayLike) -> Tensor:
    """Compute the absolute value of each entry of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape and dtype of `x`; real for complex numbers.

    Gradient:
        The sign of `x`, which is 0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_abs([-2, 3])).tolist()
        [2, 3]
    """
    return active().op_abs(x)


@boundary
def op_square(x: ArrayLike) -> Tensor:
    """Multiply each entry of `x` by itself.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape and dtype of `x`; bool becomes `int32`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_square([-2, 3])).tolist()
        [4, 9]
    """
    return active().op_square(x)


@boundary
def op_sqrt(x: ArrayLike) -> Tensor:
    """Compute the square root of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`; NaN where a real entry is negative.

    Gradient:
        Infinite at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sqrt([1.0, 4.0])).tolist()
        [1.0, 2.0]
    """
    return active().op_sqrt(x)


@boundary
def op_rsqrt(x: ArrayLike) -> Tensor:
    """Compute `1 / sqrt(x)` for each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_rsqrt([1.0, 4.0])).tolist()
        [1.0, 0.5]
    """
    return active().op_rsqrt(x)


@boundary
def op_exp(x: ArrayLike) -> Tensor:
    """Compute the exponential of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_exp([0.0])).tolist()
        [1.0]
    """
    return active().op_exp(x)


@boundary
def op_exp2(x: ArrayLike) -> Tensor:
    """Compute `2 ** x` for each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_exp2([0.0, 3.0])).tolist()
        [1.0, 8.0]
    """
    return active().op_exp2(x)


@boundary
def op_expm1(x: ArrayLike) -> Tensor:
    """Compute `exp(x) - 1` for each entry of `x`, without loss of digits near 0.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_expm1([0.0])).tolist()
        [0.0]
    """
    return active().op_expm1(x)


@boundary
def op_log(x: ArrayLike) -> Tensor:
    """Compute the natural logarithm of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: `-inf` at 0, NaN where a real entry is negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log([1.0])).tolist()
        [0.0]
    """
    return active().op_log(x)


@boundary
def op_log2(x: ArrayLike) -> Tensor:
    """Compute the base-2 logarithm of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log2([1.0, 8.0])).tolist()
        [0.0, 3.0]
    """
    return active().op_log2(x)


@boundary
def op_log10(x: ArrayLike) -> Tensor:
    """Compute the base-10 logarithm of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log10([1.0])).tolist()
        [0.0]
    """
    return active().op_log10(x)


@boundary
def op_log1p(x: ArrayLike) -> Tensor:
    """Compute `log(1 + x)` for each entry of `x`, without loss of digits near 0.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log1p([0.0])).tolist()
        [0.0]
    """
    return active().op_log1p(x)


@boundary
def op_maximum(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Return the larger of `x1` and `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. NaN where either is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the operand that is chosen; a tie gives each 0.5.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_maximum([1.0, 5.0], 3.0)).tolist()
        [3.0, 5.0]
    """
    return active().op_maximum(x1, x2)


@boundary
def op_minimum(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Return the smaller of `x1` and `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. NaN where either is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the operand that is chosen; a tie gives each 0.5.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_minimum([1.0, 5.0], 3.0)).tolist()
        [1.0, 3.0]
    """
    return active().op_minimum(x1, x2)


@boundary
def op_clip(
    x: ArrayLike,
    x_min: ArrayLike | None = None,
    x_max: ArrayLike | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    min: ArrayLike | None = None,  # noqa: A002
    max: ArrayLike | None = None,  # noqa: A002
) -> Tensor:
    """Limit the entries of `x` to the interval from `x_min` to `x_max`.

    Args:
        x: Tensor of any dtype and shape.
        x_min: Tensor that broadcasts with `x`, or `None` for no bound.
        x_max: Tensor that broadcasts with `x`, or `None` for no bound. Where it is below `x_min`, `x_max` wins.
        a_min: NumPy's name of `x_min`.
        a_max: NumPy's name of `x_max`.
        min: NumPy's other name of `x_min`.
        max: NumPy's other name of `x_max`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        ArgumentError: The shapes do not broadcast, or a bound is given under two names.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for `x` inside the interval, its ends included; 0 outside, where it goes to the bound.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_clip([-1.0, 0.5, 2.0], 0.0, 1.0)).tolist()
        [0.0, 0.5, 1.0]
    """
    if a_min is a_max is min is max is None:
        return active().op_clip(x, x_min, x_max)
    low, high = _given_bound("x_min", x_min, a_min, min), _given_bound("x_max", x_max, a_max, max)
    return active().op_clip(x, low, high)


def log_of_all(log: Callable[..., Tensor], x: Tensor, log_of_16: float = math.log(16)) -> Tensor:
    """Return `log(x)`, from a 16th of a huge `x`: a slope of 1e-39 may be 0, whatever it is then multiplied by."""
    is_huge = x > 1e37
    y = log(op_where(is_huge, op_multiply(x, 1 / 16), x))
    return op_where(is_huge, op_add(y, log_of_16), y)


def _given_bound(name: str, *given: ArrayLike | None) -> ArrayLike | None:
    """Return the bound that is given under one of its names."""
    bounds = [bound for bound in given if bound is not None]
    if len(bounds) > 1:
        raise errors.ArgumentError(f"{name} is given under two names")
    return bounds[0] if bounds else None


@boundary
def op_round(x: ArrayLike, decimals: int = 0) -> Tensor:
    """Round each entry of `x` to `decimals` decimals, and halves to the even neighbour.

    Args:
        x: Tensor of any dtype and shape.
        decimals: How many digits after the decimal point to keep; negative to round before the point.

    Returns:
        Tensor of the shape and dtype of `x`; bool becomes `int32`.

    Gradient:
        Zero.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_round([0.5, 1.5, 2.5])).tolist()
        [0.0, 2.0, 2.0]
    """
    return active().op_round(x, decimals)


@boundary
def op_floor(x: ArrayLike) -> Tensor:
    """Round each entry of `x` down to an integer.

    Args:
        x: Tensor, not complex; integers and bool are unchanged.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Zero.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_floor([-1.5, 1.5])).tolist()
        [-2.0, 1.0]
    """
    return active().op_floor(x)


@boundary
def op_ceil(x: ArrayLike) -> Tensor:
    """Round each entry of `x` up to an integer.

    Args:
        x: Tensor, not complex; integers and bool are unchanged.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Zero.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ceil([-1.5, 1.5])).tolist()
        [-1.0, 2.0]
    """
    return active().op_ceil(x)


@boundary
def op_trunc(x: ArrayLike) -> Tensor:
    """Round each entry of `x` towards 0 to an integer.

    Args:
        x: Tensor, not complex; integers and bool are unchanged.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Zero.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_trunc([-1.5, 1.5])).tolist()
        [-1.0, 1.0]
    """
    return active().op_trunc(x)


@boundary
def op_sin(x: ArrayLike) -> Tensor:
    """Compute the sine of each entry of `x`, in radians.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sin([0.0])).tolist()
        [0.0]
    """
    return active().op_sin(x)


@boundary
def op_cos(x: ArrayLike) -> Tensor:
    """Compute the cosine of each entry of `x`, in radians.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cos([0.0])).tolist()
        [1.0]
    """
    return active().op_cos(x)


@boundary
def op_tan(x: ArrayLike) -> Tensor:
    """Compute the tangent of each entry of `x`, in radians.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tan([0.0])).tolist()
        [0.0]
    """
    return active().op_tan(x)


@boundary
def op_arcsin(x: ArrayLike) -> Tensor:
    """Compute the inverse sine of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, in radians; NaN where a real entry is outside -1 to 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arcsin([0.0])).tolist()
        [0.0]
    """
    return active().op_arcsin(x)


@boundary
def op_arccos(x: ArrayLike) -> Tensor:
    """Compute the inverse cosine of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, in radians; NaN where a real entry is outside -1 to 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arccos([1.0])).tolist()
        [0.0]
    """
    return active().op_arccos(x)


@boundary
def op_arctan(x: ArrayLike) -> Tensor:
    """Compute the inverse tangent of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, in radians.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arctan([0.0])).tolist()
        [0.0]
    """
    return active().op_arctan(x)


@boundary
def op_arctan2(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the angle of the point `(x2, x1)`, entry by entry.

    Args:
        x1: Tensor, not complex: the vertical coordinate. Integers and bool become `floatx`.
        x2: Tensor whose shape broadcasts with that of `x1`: the horizontal coordinate.

    Returns:
        Tensor of the broadcast shape: angles in radians from -pi to pi.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        NaN at the origin.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arctan2([0.0], [1.0])).tolist()
        [0.0]
    """
    return active().op_arctan2(x1, x2)


@boundary
def op_sinh(x: ArrayLike) -> Tensor:
    """Compute the hyperbolic sine of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sinh([0.0])).tolist()
        [0.0]
    """
    return active().op_sinh(x)


@boundary
def op_cosh(x: ArrayLike) -> Tensor:
    """Compute the hyperbolic cosine of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cosh([0.0])).tolist()
        [1.0]
    """
    return active().op_cosh(x)


@boundary
def op_tanh(x: ArrayLike) -> Tensor:
    """Compute the hyperbolic tangent of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tanh([0.0])).tolist()
        [0.0]
    """
    return active().op_tanh(x)


@boundary
def op_arcsinh(x: ArrayLike) -> Tensor:
    """Compute the inverse hyperbolic sine of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arcsinh([0.0])).tolist()
        [0.0]
    """
    return active().op_arcsinh(x)


@boundary
def op_arccosh(x: ArrayLike) -> Tensor:
    """Compute the inverse hyperbolic cosine of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`; NaN where a real entry is below 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arccosh([1.0])).tolist()
        [0.0]
    """
    return active().op_arccosh(x)


@boundary
def op_arctanh(x: ArrayLike) -> Tensor:
    """Compute the inverse hyperbolic tangent of each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`; NaN where a real entry is outside -1 to 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arctanh([0.0])).tolist()
        [0.0]
    """
    return active().op_arctanh(x)


@boundary
def op_hypot(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute `sqrt(x1 ** 2 + x2 ** 2)` without overflow, entry by entry.

    Args:
        x1: Tensor, not complex. Integers and bool become `floatx`.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at (0, 0).

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hypot([3.0, 0.0], [4.0, 0.0])).tolist()
        [5.0, 0.0]
    """
    return active().op_hypot(x1, x2)


@boundary
def op_real(x: ArrayLike) -> Tensor:
    """Return the real part of each entry of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape of `x`, of the real dtype.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_real([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    return active().op_real(x)


@boundary
def op_imag(x: ArrayLike) -> Tensor:
    """Return the imaginary part of each entry of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape of `x`, of the real dtype; zeros where `x` is real.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_imag([1.0, 2.0])).tolist()
        [0.0, 0.0]
    """
    return active().op_imag(x)


@boundary
def op_conj(x: ArrayLike) -> Tensor:
    """Return the complex conjugate of each entry of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape and dtype of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_conj([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    return active().op_conj(x)


@boundary
def op_divide_no_nan(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Divide `x1` by `x2`, entry by entry, with 0 where `x2` is 0.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers divide to `floatx`.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Gradient:
        0 for both operands where `x2` is 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_divide_no_nan([1.0, 2.0], [0.0, 4.0])).tolist()
        [0.0, 0.5]
    """
    return active().op_divide_no_nan(x1, x2)


@boundary
def op_logaddexp(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the logarithm of `exp(x1) + exp(x2)`, entry by entry, without overflow.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers become `floatx`.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        The share of each operand in the sum.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logaddexp([0.0], [float("-inf")])).tolist()
        [0.0]
    """
    return active().op_logaddexp(x1, x2)


@boundary
def op_logaddexp2(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the base-2 logarithm of `2**x1 + 2**x2`, entry by entry, without overflow.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers become `floatx`.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        The share of each operand in the sum.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logaddexp2([3.0, 100.0], [3.0, 100.0])).tolist()
        [4.0, 101.0]
    """
    return active().op_logaddexp2(x1, x2)


@boundary
def op_nan_to_num(x: ArrayLike, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Replace NaN and the infinities by numbers.

    Args:
        x: Tensor of any dtype and shape.
        nan: What NaN becomes.
        posinf: What infinity becomes; by default the largest number of the dtype.
        neginf: What -infinity becomes; by default the lowest number of the dtype.

    Returns:
        Tensor of the shape and dtype of `x`; both parts of a complex number are replaced.

    Raises:
        ArgumentTypeError: `nan`, `posinf` or `neginf` is not a real number.

    Gradient:
        0 where an entry is replaced.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0)).tolist()
        [1.0, 0.0, 9.0]
    """
    return active().op_nan_to_num(
        x,
        args.number(nan, "nan"),
        None if posinf is None else args.number(posinf, "posinf"),
        None if neginf is None else args.number(neginf, "neginf"),
    )


@boundary
def op_cbrt(x: ArrayLike) -> Tensor:
    """Compute the cube root of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`; negative entries have negative roots.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Infinity at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cbrt([8.0, -1.0])).tolist()
        [2.0, -1.0]
    """
    return active().op_cbrt(x)


@boundary
def op_fmod(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the remainder of `x1` divided by `x2`, with the sign of `x1`.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. Bools become `int32`.

    Raises:
        ArgumentError: The shapes do not broadcast, or an integer is divided by 0. Where only compiled or mapped
            code knows the divisor, which cannot raise an error, the entry is 0.
        DTypeError: The operands are complex.
        UnsupportedError: The operands are `uint64`, on PyTorch.

    Gradient:
        1 for `x1`, and minus the quotient, rounded towards 0, for `x2`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fmod([7, -7], 3)).tolist()
        [1, -1]
    """
    return active().op_fmod(x1, x2)


@boundary
def op_heaviside(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the step function: 0 where `x1` is negative, 1 where it is positive, `x2` where it is 0.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers become `floatx`. NaN where `x1` is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        1 for `x2` where `x1` is 0; 0 otherwise.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_heaviside([-2.0, 0.0, 3.0], 0.5)).tolist()
        [0.0, 0.5, 1.0]
    """
    return active().op_heaviside(x1, x2)


@boundary
def op_ldexp(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute `x1 * 2**x2`, entry by entry, exactly.

    Args:
        x1: Tensor, not complex; integers and bool become `floatx`.
        x2: Tensor of integers whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the dtype of `x1`. It overflows only where the result does not fit.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: `x1` is complex, or `x2` does not hold integers.

    Gradient:
        Flows only to `x1`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ldexp([0.75, 1.5], [1, 2])).tolist()
        [1.5, 6.0]
    """
    return active().op_ldexp(x1, x2)


@boundary
def op_nextafter(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Return the next number of the dtype after `x1` in the direction of `x2`.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers become `floatx`.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        1 for `x1` and 0 for `x2`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nextafter([1.0], 2.0)).tolist()
        [1.0000001192092896]
    """
    return active().op_nextafter(x1, x2)


@boundary
def op_polar(abs_: ArrayLike, angle: ArrayLike) -> Tensor:
    """Make complex numbers from their absolute values and angles.

    Args:
        abs_: Tensor, not complex, of any shape.
        angle: Tensor of radians whose shape broadcasts with that of `abs_`.

    Returns:
        Complex tensor of the broadcast shape: `complex128` for `float64`, `complex64` for anything else.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_polar([2.0], 0.0)).tolist()
        [(2+0j)]
    """
    return active().op_polar(abs_, angle)


# composites


@boundary
def op_true_divide(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Divide `x1` by `x2`, entry by entry: another name for `op_divide`.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape; integers divide to `floatx`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_true_divide([1, 2], 4)).tolist()
        [0.25, 0.5]
    """
    return op_divide(x1, x2)


@boundary
def op_absolute(x: ArrayLike) -> Tensor:
    """Compute the absolute value of each entry of `x`: another name for `op_abs`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape and dtype of `x`; real for complex numbers.

    Gradient:
        The sign of `x`, which is 0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_absolute([-2, 3])).tolist()
        [2, 3]
    """
    return op_abs(x)


@boundary
def op_conjugate(x: ArrayLike) -> Tensor:
    """Return the complex conjugate of each entry of `x`: another name for `op_conj`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape and dtype of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_conjugate([1.0])).tolist()
        [1.0]
    """
    return op_conj(x)


@boundary
def op_fabs(x: ArrayLike) -> Tensor:
    """Compute the absolute value of each entry of `x`, as a float.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Gradient:
        The sign of `x`, which is 0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fabs([-2])).tolist()
        [2.0]
    """
    return op_abs(op_multiply(x, 1.0))


@boundary
def op_deg2rad(x: ArrayLike) -> Tensor:
    """Convert angles from degrees to radians.

    Args:
        x: Tensor of angles in degrees.

    Returns:
        Tensor of the shape of `x`, in radians.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_deg2rad([0.0])).tolist()
        [0.0]
    """
    return op_multiply(x, math.pi / 180)


@boundary
def op_rad2deg(x: ArrayLike) -> Tensor:
    """Convert angles from radians to degrees.

    Args:
        x: Tensor of angles in radians.

    Returns:
        Tensor of the shape of `x`, in degrees.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_rad2deg([0.0])).tolist()
        [0.0]
    """
    return op_multiply(x, 180 / math.pi)


@boundary
@composite
@mark_recomputed
def op_angle(x: ArrayLike) -> Tensor:
    """Return the angle of each entry of `x` in the complex plane.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Real tensor of the shape of `x`: radians from -pi to pi.

    Gradient:
        0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_angle([1.0])).tolist()
        [0.0]
    """
    return op_arctan2(op_imag(x), op_real(x))


@boundary
@composite
@mark_recomputed
def op_fmax(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Choose the larger of `x1` and `x2`, entry by entry, skipping NaN.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype: NaN where both are NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        Ties split evenly; an entry that is skipped gets 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fmax([2.0, float("nan")], [1.0, 4.0])).tolist()
        [2.0, 4.0]
    """
    x1, x2 = active().together(x1, x2)
    return op_maximum(op_where(op_isnan(x1), x2, x1), op_where(op_isnan(x2), x1, x2))


@boundary
@composite
@mark_recomputed
def op_fmin(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Choose the smaller of `x1` and `x2`, entry by entry, skipping NaN.

    Args:
        x1: Tensor of any shape, not complex.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype: NaN where both are NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        Ties split evenly; an entry that is skipped gets 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_fmin([2.0, float("nan")], [1.0, 4.0])).tolist()
        [1.0, 4.0]
    """
    x1, x2 = active().together(x1, x2)
    return op_minimum(op_where(op_isnan(x1), x2, x1), op_where(op_isnan(x2), x1, x2))


@boundary
@composite
@mark_recomputed
def op_copysign(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Return the absolute values of `x1` with the signs of `x2`, entry by entry.

    Args:
        x1: Tensor, not complex; integers and bool become `floatx`.
        x2: Tensor like `x1`, whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. The sign of -0.0, and of NaN, is the one that is stored.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex.

    Gradient:
        For `x1`, 1 where the sign stays, -1 where it changes, and 0 where `x1` is 0. Zero for `x2`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_copysign([1.0, -2.0], [-0.0, 3.0])).tolist()
        [-1.0, 2.0]
    """
    x1, x2 = active().promote_floating(x1, x2)
    if (name := active().dtype_name(x1)) in dtypes.COMPLEX:
        raise errors.DTypeError(f"x1 and x2 must be real, got {name}")
    size = op_abs(x1)
    return op_where(op_signbit(x2), op_negative(size), size)


@boundary
def op_modf(x: ArrayLike) -> tuple[Tensor, Tensor]:
    """Return what each entry of `x` has behind the point, and what it has before it, both with its sign.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Two tensors of the shape of `x`: the fractions, between -1 and 1, and the whole numbers, as floats. The
        fraction of an infinity is a zero.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        1 through the fractions, for whole numbers too; zero through the whole numbers.

    Example:
        >>> import multiop
        >>> fraction, whole = multiop.op_modf([1.5, -2.25])
        >>> multiop.op_convert_to_numpy(fraction).tolist(), multiop.op_convert_to_numpy(whole).tolist()
        ([0.5, -0.25], [1.0, -2.0])
    """
    x = active().floating(x)
    if (name := active().dtype_name(x)) in dtypes.COMPLEX:
        raise errors.DTypeError(f"x must be real, got {name}")
    return with_rule("op_modf", _fraction, x)[0], op_trunc(x)


def _fraction(x: Tensor) -> tuple[list[Tensor], Any]:
    # the difference of equal numbers is a zero that has lost its sign
    fraction = op_copysign(op_where(op_isinf(x), 0.0, op_subtract(x, op_trunc(x))), x)
    return [fraction], lambda upstream: [upstream]


# the series of sin(pi x) / (pi x) in the square of pi x, highest power first
_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9, -1, -1)]


@boundary
@composite
@mark_recomputed
def op_sinc(x: ArrayLike) -> Tensor:
    """Compute `sin(pi * x) / (pi * x)` of each entry of `x`, which is 1 at 0.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: exactly 0 at integers other than 0.

    Gradient:
        0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sinc([0.0, 0.5])).round(4).tolist()
        [1.0, 0.6366000175476074]
    """
    x = active().floating(x)
    near = op_abs(active().stop_gradient(x)) < 0.25
    far = op_where(near, 0.5, x)
    whole = op_round(active().stop_gradient(op_real(far)))  # sin(pi x) is exact in the remainder
    wave = op_divide(
        op_multiply(1 - 2 * (whole % 2), op_sin(op_multiply(op_subtract(far, whole), math.pi))),
        op_multiply(far, math.pi),
    )
    small, series = op_multiply(op_where(near, x, 0), math.pi), _SINC[0]
    square = small * small
    for coefficient in _SINC[1:]:  # near 0, the derivatives of the quotient lose digits
        series = op_add(op_multiply(series, square), coefficient)
    return op_where(near, series, wave)
