"""Bits, shifts and divisors of integers."""

from __future__ import annotations

from typing import Any

from multiop import _dtypes, errors
from multiop._boundary import boundary
from multiop._registry import active, composite
from multiop._types import ArrayLike, Tensor
from multiop.frontends.conversion import op_cast
from multiop.frontends.elementwise import op_abs, op_add


@boundary
def op_bitwise_and(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute the bitwise and of `x` and `y`, entry by entry.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: Tensor of integers or bool whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; two bools give a bool.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_and([5, 6], 3)).tolist()
        [1, 2]
    """
    return active().op_bitwise_and(x, y)


@boundary
def op_bitwise_or(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute the bitwise or of `x` and `y`, entry by entry.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: Tensor of integers or bool whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; two bools give a bool.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_or([5, 6], 3)).tolist()
        [7, 7]
    """
    return active().op_bitwise_or(x, y)


@boundary
def op_bitwise_xor(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute the bitwise exclusive or of `x` and `y`, entry by entry.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: Tensor of integers or bool whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; two bools give a bool.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_xor([5, 6], 3)).tolist()
        [6, 5]
    """
    return active().op_bitwise_xor(x, y)


@boundary
def op_bitwise_invert(x: ArrayLike) -> Tensor:
    """Invert each bit of `x`.

    Args:
        x: Tensor of integers or bool, of any shape.

    Returns:
        Tensor of the shape and dtype of `x`: the logical not of a bool.

    Raises:
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_invert([0, 5])).tolist()
        [-1, -6]
    """
    return active().op_bitwise_invert(x)


@boundary
def op_left_shift(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Shift the bits of `x` to the left by `y`, entry by entry.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: How many bits to shift by: a tensor whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, `int32` for bools. What is shifted out is lost: a shift by
        the number of bits or more, or by a negative number, gives 0.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_left_shift([1, 3], 2)).tolist()
        [4, 12]
    """
    return active().op_left_shift(x, y)


@boundary
def op_right_shift(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Shift the bits of `x` to the right by `y`, entry by entry.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: How many bits to shift by: a tensor whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, `int32` for bools. The sign is kept: a shift by the number
        of bits or more, or by a negative number, gives 0, or -1 for a negative `x`.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_right_shift([8, -8], 2)).tolist()
        [2, -2]
    """
    return active().op_right_shift(x, y)


@boundary
def op_gcd(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the greatest common divisor of `x1` and `x2`, entry by entry.

    Args:
        x1: Tensor of integers, of any shape.
        x2: Tensor of integers whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype. The divisor of 0 and a number is the absolute value of the
        number; for the most negative integer, whose absolute value does not fit, it is that integer itself.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats, complex or bool.
        UnsupportedError: The operands are `uint64`, on PyTorch.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_gcd([12, 7, 0], 8)).tolist()
        [4, 1, 8]
    """
    return active().op_gcd(x1, x2)


@boundary
def op_lcm(x1: ArrayLike, x2: ArrayLike) -> Tensor:
    """Compute the least common multiple of `x1` and `x2`, entry by entry.

    Args:
        x1: Tensor of integers, of any shape.
        x2: Tensor of integers whose shape broadcasts with that of `x1`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype: 0 where either is 0. A multiple that does not fit wraps
        around.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats, complex or bool.
        UnsupportedError: The operands are `uint64`, on PyTorch.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_lcm([12, 7, 0], 8)).tolist()
        [24, 56, 0]
    """
    return active().op_lcm(x1, x2)


# composites


@boundary
def op_bitwise_not(x: ArrayLike) -> Tensor:
    """Invert each bit of `x`: another name for `op_bitwise_invert`.

    Args:
        x: Tensor of integers or bool, of any shape.

    Returns:
        Tensor of the shape and dtype of `x`: the logical not of a bool.

    Raises:
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_not([0, 5])).tolist()
        [-1, -6]
    """
    return op_bitwise_invert(x)


@boundary
def op_bitwise_left_shift(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Shift the bits of `x` to the left by `y`: another name for `op_left_shift`.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: How many bits to shift by: a tensor whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, `int32` for bools. What is shifted out is lost: a shift by
        the number of bits or more, or by a negative number, gives 0.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_left_shift([1, 3], 2)).tolist()
        [4, 12]
    """
    return op_left_shift(x, y)


@boundary
def op_bitwise_right_shift(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Shift the bits of `x` to the right by `y`: another name for `op_right_shift`.

    Args:
        x: Tensor of integers or bool, of any shape.
        y: How many bits to shift by: a tensor whose shape broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, `int32` for bools. The sign is kept: a shift by the number
        of bits or more, or by a negative number, gives 0, or -1 for a negative `x`.

    Raises:
        ArgumentError: The shapes do not broadcast.
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_right_shift([8, -8], 2)).tolist()
        [2, -2]
    """
    return op_right_shift(x, y)


@boundary
def op_bitwise_count(x: ArrayLike) -> Tensor:
    """Count the bits of the absolute value of each entry of `x` that are 1.

    Args:
        x: Tensor of integers or bool, of any shape.

    Returns:
        `uint8` tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are floats or complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_bitwise_count([0, 5, -7])).tolist()
        [0, 2, 3]
    """
    x = active().convert(x)
    name = active().dtype_name(x)
    if name == "bool":
        return op_cast(x, "uint8")
    if name not in _dtypes.INTEGER:
        raise errors.DTypeError(f"x must be integers or bool, got {name}")
    return op_cast(_sums_of_bits(op_abs(x), _dtypes.INTEGER_RANGE["u" * (name[0] != "u") + name][1]), "uint8")


@composite
def _sums_of_bits(x: Any, ones: int) -> Any:
    """Return the sums of the bits of integers of as many bits as `ones`, by those of halves; a sign is a bit, too."""
    width = 1
    while width < ones.bit_length():
        mask = ones // (2**width + 1)
        x = op_add(op_bitwise_and(x, mask), op_bitwise_and(op_right_shift(x, width), mask))
        width *= 2
    return x
