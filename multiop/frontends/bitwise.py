"""Bits, shifts and divisors of integers, and the binary parts of floats."""

from __future__ import annotations

from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._rules.composed import with_rule
from multiop._values import dtypes
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import op_cast, op_dtype, op_view, real_operand
from multiop.frontends.creation import op_ones_like
from multiop.frontends.elementwise import op_abs, op_add, op_copysign, op_ldexp, op_multiply, op_negative, op_subtract
from multiop.frontends.logical import op_equal, op_isfinite, op_logical_and, op_not_equal, op_where


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
    if name not in dtypes.INTEGER:
        raise errors.DTypeError(f"x must be integers or bool, got {name}")
    return op_cast(_sums_of_bits(op_abs(x), dtypes.INTEGER_RANGE["u" * (name[0] != "u") + name][1]), "uint8")


@composite
def _sums_of_bits(x: Any, ones: int) -> Any:
    """Return the sums of the bits of integers of as many bits as `ones`, by those of halves; a sign is a bit, too."""
    width = 1
    while width < ones.bit_length():
        mask = ones // (2**width + 1)
        x = op_add(op_bitwise_and(x, mask), op_bitwise_and(op_right_shift(x, width), mask))
        width *= 2
    return x


@boundary
def op_frexp(x: ArrayLike) -> tuple[Tensor, Tensor]:
    """Return the mantissa and the exponent of each entry of `x`: `x = mantissa * 2**exponent`, exactly.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Two tensors of the shape of `x`: the mantissas, from 0.5 to 1 or from -1 to -0.5, and the `int32` exponents.
        0, infinity and NaN are their own mantissa, and have the exponent 0.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        `2**-exponent`, through the mantissas alone.

    Example:
        >>> import multiop
        >>> mantissa, exponent = multiop.op_frexp([6.0, -0.25])
        >>> multiop.op_convert_to_numpy(mantissa).tolist(), multiop.op_convert_to_numpy(exponent).tolist()
        ([0.75, -0.5], [3, -1])
    """
    x, dtype = real_operand(x)
    exponent = _binary_parts(active().stop_gradient(x))[1]
    slope = op_ldexp(op_ones_like(x), op_negative(exponent))

    def mantissa(x: Any) -> tuple[list[Any], Any]:
        return [op_cast(_binary_parts(x)[0], dtype)], lambda upstream: [op_multiply(upstream, slope)]

    return with_rule("op_frexp", mantissa, x)[0], exponent


# dtype of a float -> that of its bits, those without the sign, how many are the fraction, and the exponent of 0.5
_LAYOUTS = {"float32": ("int32", 2**31 - 1, 23, 126), "float64": ("int64", 2**63 - 1, 52, 1022)}


def _binary_parts(x: Any) -> tuple[Any, Any]:
    """Return the mantissas, 16-bit floats in `float32`, and the exponents, by bits: some kernels know no subnormals."""
    if op_dtype(x) == "bfloat16":  # the upper half of a float32
        x = op_view(op_left_shift(op_cast(op_view(x, "int16"), "int32"), 16), "float32")
    x = op_cast(x, "float32") if op_dtype(x) == "float16" else x
    integer, mask, digits, half = _LAYOUTS[op_dtype(x)]
    bits = op_bitwise_and(op_view(x, integer), mask)
    is_subnormal = op_equal(op_right_shift(bits, digits), 0)
    scaled = op_view(op_cast(bits, op_dtype(x)), integer)  # bits of the subnormal times 2**(half + digits)
    bits = op_where(is_subnormal, scaled, bits)
    exponent = op_subtract(op_right_shift(bits, digits), op_where(is_subnormal, 2 * half + digits, half))
    fraction = op_bitwise_or(op_bitwise_and(bits, 2**digits - 1), half << digits)
    has_parts = op_logical_and(op_isfinite(x), op_not_equal(bits, 0))
    mantissa = op_where(has_parts, op_copysign(op_view(fraction, op_dtype(x)), x), x)
    return mantissa, op_cast(op_where(has_parts, exponent, 0), "int32")
