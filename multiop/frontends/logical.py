"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._values import args
from multiop._values.types import ArrayLike, Tensor


@boundary
def op_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` is equal to `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape. NaN differs from everything.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_equal([1, 2, 3], 2)).tolist()
        [False, True, False]
    """
    return active().op_equal(x1, x2)


@boundary
def op_not_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` differs from `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape. NaN differs from everything.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_not_equal([1, 2, 3], 2)).tolist()
        [True, False, True]
    """
    return active().op_not_equal(x1, x2)


@boundary
def op_less(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` is less than `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape. `False` where either is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_less([1, 2, 3], 2)).tolist()
        [True, False, False]
    """
    return active().op_less(x1, x2)


@boundary
def op_less_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` is at most `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape. `False` where either is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_less_equal([1, 2, 3], 2)).tolist()
        [True, True, False]
    """
    return active().op_less_equal(x1, x2)


@boundary
def op_greater(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` is greater than `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape. `False` where either is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_greater([1, 2, 3], 2)).tolist()
        [False, False, True]
    """
    return active().op_greater(x1, x2)


@boundary
def op_greater_equal(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` is at least `x2`, entry by entry.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape. `False` where either is NaN.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_greater_equal([1, 2, 3], 2)).tolist()
        [False, True, True]
    """
    return active().op_greater_equal(x1, x2)


@boundary
def op_isnan(x: ArrayLike) -> Tensor:
    """Say which entries of `x` are NaN.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Bool tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isnan([float("nan"), float("inf"), 1.0])).tolist()
        [True, False, False]
    """
    return active().op_isnan(x)


@boundary
def op_isinf(x: ArrayLike) -> Tensor:
    """Say which entries of `x` are infinite.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Bool tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isinf([float("nan"), float("inf"), 1.0])).tolist()
        [False, True, False]
    """
    return active().op_isinf(x)


@boundary
def op_isfinite(x: ArrayLike) -> Tensor:
    """Say which entries of `x` are neither NaN nor infinite.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Bool tensor of the shape of `x`; a complex entry is finite if both its parts are.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isfinite([float("nan"), float("inf"), 1.0])).tolist()
        [False, False, True]
    """
    return active().op_isfinite(x)


@boundary
def op_logical_and(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where both `x1` and `x2` are true, entry by entry.

    Args:
        x1: Tensor of any dtype; entries other than 0 are true, NaN included.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logical_and([True, True], [True, False])).tolist()
        [True, False]
    """
    return active().op_logical_and(x1, x2)


@boundary
def op_logical_or(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where `x1` or `x2` is true, entry by entry.

    Args:
        x1: Tensor of any dtype; entries other than 0 are true, NaN included.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logical_or([True, True], [True, False])).tolist()
        [True, True]
    """
    return active().op_logical_or(x1, x2)


@boundary
def op_logical_xor(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Say where exactly one of `x1` and `x2` is true, entry by entry.

    Args:
        x1: Tensor of any dtype; entries other than 0 are true, NaN included.
        x2: Tensor whose shape broadcasts with that of `x1`.

    Returns:
        Bool tensor of the broadcast shape.

    Raises:
        ArgumentError: The shapes do not broadcast.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logical_xor([True, True], [True, False])).tolist()
        [False, True]
    """
    return active().op_logical_xor(x1, x2)


@boundary
def op_logical_not(x: ArrayLike) -> Tensor:
    """Say which entries of `x` are false.

    Args:
        x: Tensor of any dtype; entries other than 0 are true, NaN included.

    Returns:
        Bool tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logical_not([True, False])).tolist()
        [False, True]
    """
    return active().op_logical_not(x)


@boundary
def op_where(condition: ArrayLike, x1: ArrayLike | None = None, x2: ArrayLike | None = None) -> Any:
    """Choose `x1` where `condition` is true and `x2` elsewhere, entry by entry.

    Args:
        condition: Tensor of any dtype; entries other than 0 are true.
        x1: Tensor whose shape broadcasts with the others.
        x2: Tensor whose shape broadcasts with the others. Without `x1` and `x2`, the result is
            `op_nonzero(condition)`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype.

    Raises:
        ArgumentError: The shapes do not broadcast, or only one of `x1` and `x2` is given.

    Gradient:
        1 for the operand that is chosen and 0 for the other. If the derivative of how the other operand was computed is
        infinite or NaN, that 0 becomes NaN there: select the input instead, as in `log(where(x > 0, x, 1))`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_where([True, False], [1, 2], [3, 4])).tolist()
        [1, 4]
    """
    if x1 is None or x2 is None:
        if x1 is not x2:
            raise errors.ArgumentError("give both x1 and x2, or neither")
        return active().op_nonzero(condition)
    return active().op_where(condition, x1, x2)


@boundary
def op_nonzero(x: ArrayLike) -> tuple[Tensor, ...]:
    """Return the indices of the entries of `x` that are not zero.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tuple of one `int32` index tensor per dimension of `x`, in row-major order. The number of entries depends on
        values, so `jax.jit` raises an error.

    Example:
        >>> import multiop
        >>> [multiop.op_convert_to_numpy(i).tolist() for i in multiop.op_nonzero([[0, 1], [1, 0]])]
        [[0, 1], [1, 0]]
    """
    return active().op_nonzero(x)


@boundary
def op_isposinf(x: ArrayLike) -> Tensor:
    """Say which entries of `x` are positive infinity.

    Args:
        x: Tensor of any shape, not complex.

    Returns:
        Bool tensor of the shape of `x`.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isposinf([float("inf"), float("-inf"), 1.0])).tolist()
        [True, False, False]
    """
    return active().op_isposinf(x)


@boundary
def op_isneginf(x: ArrayLike) -> Tensor:
    """Say which entries of `x` are negative infinity.

    Args:
        x: Tensor of any shape, not complex.

    Returns:
        Bool tensor of the shape of `x`.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isneginf([float("inf"), float("-inf"), 1.0])).tolist()
        [False, True, False]
    """
    return active().op_isneginf(x)


@boundary
def op_isreal(x: ArrayLike) -> Tensor:
    """Say which entries of `x` have no imaginary part.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Bool tensor of the shape of `x`: all `True` where `x` is not complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isreal([1 + 1j, 2 + 0j])).tolist()
        [False, True]
    """
    return active().op_isreal(x)


@boundary
def op_signbit(x: ArrayLike) -> Tensor:
    """Say which entries of `x` have a minus sign.

    Args:
        x: Tensor of any shape, not complex.

    Returns:
        Bool tensor of the shape of `x`; for -0.0 and NaN too, it is the stored sign.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_signbit([-1.0, -0.0, 0.0])).tolist()
        [True, True, False]
    """
    return active().op_signbit(x)


@boundary
def op_isclose(
    x1: ArrayLike, x2: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Say where `x1` is close to `x2`: at most `atol + rtol * abs(x2)` away.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.
        rtol: The allowed difference relative to the absolute value of `x2`.
        atol: The allowed absolute difference, which is added to that.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        Bool tensor of the broadcast shape. An infinity is close only to itself.

    Raises:
        ArgumentError: The shapes do not broadcast, or `rtol` or `atol` is negative.
        ArgumentTypeError: `rtol` or `atol` is not a real number, or `equal_nan` is not a bool.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_isclose([1.0, 2.0], [1.000001, 2.1])).tolist()
        [True, False]
    """
    return active().op_isclose(
        x1,
        x2,
        args.not_negative(rtol, "rtol"),
        args.not_negative(atol, "atol"),
        equal_nan,
    )


# composites


@boundary
@composite
def op_allclose(
    x1: ArrayLike, x2: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Say whether all of `x1` is close to `x2`: see `op_isclose`.

    Args:
        x1: Tensor of any dtype and shape.
        x2: Tensor whose shape broadcasts with that of `x1`.
        rtol: The allowed difference relative to the absolute value of `x2`.
        atol: The allowed absolute difference, which is added to that.
        equal_nan: Whether NaN is close to NaN.

    Returns:
        Bool tensor without dimensions, `True` if there is no entry.

    Raises:
        ArgumentError: The shapes do not broadcast, or `rtol` or `atol` is negative.
        ArgumentTypeError: `rtol` or `atol` is not a real number, or `equal_nan` is not a bool.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_allclose([1.0, 2.0], [1.000001, 2.0])).tolist()
        True
    """
    return active().op_all(op_isclose(x1, x2, rtol, atol, equal_nan), None, False)
