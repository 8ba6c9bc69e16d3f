"""Elementary functions in `float32` and `float64` that give the same bits on every framework.

They use only sums, products and quotients, because the frameworks' logarithms, and even their square roots, differ in
the last digit. A compiler may round a product and the sum that follows once or twice; `times` forces it to round twice.
"""

from __future__ import annotations

import functools
from typing import Any

from multiop._loading.registry import active, random_part
from multiop.frontends.bitwise import op_bitwise_and
from multiop.frontends.conversion import op_cast, op_view
from multiop.frontends.elementwise import op_add, op_divide, op_multiply, op_negative, op_round, op_sqrt, op_subtract
from multiop.frontends.logical import op_where

# dtype -> the integer dtype of its size, number of fraction bits, bit pattern of 2/3, and log(2) in two parts; the
# product of the first part and a small integer is exact
_LAYOUT = {
    "float32": ("int32", 23, 0x3F2AAAAB, 0.693359375, -2.12194440e-4),
    "float64": ("int64", 52, 0x3FE5555555555555, 0.6931471803691238, 1.9082149292705877e-10),
}

# log(1 + x) / x for abs(x) <= 1/3, highest power first: our own minimax fit in float32, with an error of 3e-8
_LOG = (
    0.14055928587913513, -0.15403197705745697, 0.13987691700458527, -0.164127916097641, 0.20011942088603973,
    -0.25008028745651245, 0.3333316743373871, -0.4999993145465851, 1.0,
)  # fmt: skip
_ATANH = tuple(2.0 / (2 * k + 1) for k in range(13, -1, -1))  # log((1 + s) / (1 - s)) / s in powers of s**2

# exp(x) for abs(x) <= log(2) / 2
_EXP = {
    "float32": (
        0.0013836842263117433, 0.008374815806746483, 0.04166822507977486, 0.16666419804096222, 0.49999991059303284, 1.0,
        1.0,
    ),
    "float64": tuple(
        1.0 / functools.reduce(lambda x, y: x * y, range(1, k + 1), 1) for k in range(13, -1, -1)
    ),
}  # fmt: skip


def times(x: Any, y: Any) -> Any:
    """Return a product that is rounded before it is added to anything."""
    rounded = random_part("rounded")
    product = op_multiply(x, y)
    return product if rounded is None else rounded(product)


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Evaluate a polynomial by Horner's rule; `coefficients` start with the highest power."""
    native = random_part("polynomial")
    found = None if native is None else native(x, coefficients)
    if found is not None:
        return found
    first, second, *rest = coefficients
    return functools.reduce(lambda y, c: op_add(times(y, x), c), rest, op_add(times(x, first), second))


def log(x: Any) -> Any:
    """Return the logarithm of a positive number that is not subnormal."""
    return _log_of(*_parts(x))


def log_1_minus(x: Any, rest: Any = None) -> Any:
    """Return `log(1 - x)` for `0 < x < 1`, with full precision for small `x`, and near 1 if `rest` is `1 - x`."""
    exponent, fraction = _parts(op_subtract(1.0, x) if rest is None else rest)
    is_small = x < 0.25
    return _log_of(op_where(is_small, 0.0, exponent), op_where(is_small, op_negative(x), fraction))


def _parts(x: Any) -> tuple[Any, Any]:
    """Return the exponent `e` as a float, and `f` from -1/3 to 1/3, such that `x = 2**e * (1 + f)`."""
    name = active().dtype_name(x)
    whole, digits, start, *_ = _LAYOUT[name]
    bits = op_view(x, whole)
    power = op_bitwise_and(op_subtract(bits, start), -(1 << digits))
    one = op_view(op_subtract(bits, power), name)
    return op_multiply(op_cast(power, name), 2.0**-digits), op_subtract(one, 1.0)


def _log_of(exponent: Any, fraction: Any) -> Any:
    name = active().dtype_name(exponent)
    *_, log_2, rest = _LAYOUT[name]
    if name == "float32":
        found = times(fraction, polynomial(fraction, _LOG))
    else:
        s = op_divide(fraction, op_add(fraction, 2.0))
        found = times(s, polynomial(times(s, s), _ATANH))
    # TensorFlow's graphs reorder sums of sums, but not differences
    return op_add(times(exponent, log_2), op_subtract(found, times(exponent, -rest)))


def exp(x: Any) -> Any:
    """Return `exp(x)`, or 0 for `x` below -87 in `float32` and below -708 in `float64`."""
    name = active().dtype_name(x)
    whole, digits, _, log_2, rest = _LAYOUT[name]
    least = -87.0 if name == "float32" else -708.0
    is_zero = x < least
    x = op_where(is_zero, 0.0, x)
    exponent = op_round(op_multiply(x, 1.4426950408889634))
    fraction = op_subtract(op_subtract(x, times(exponent, log_2)), times(exponent, rest))
    power = op_multiply(op_cast(exponent, whole), 1 << digits)
    found = op_view(op_add(op_view(polynomial(fraction, _EXP[name]), whole), power), name)
    return op_where(is_zero, 0.0, found)


def sqrt(x: Any) -> Any:
    """Return the square root of a positive number, rounded; the frameworks' own may be off in the last digit."""
    name = active().dtype_name(x)
    whole, digits, *_ = _LAYOUT[name]
    root = op_sqrt(x)
    high = op_view(op_bitwise_and(op_view(root, whole), -(1 << (digits // 2 + 1))), name)
    low = op_subtract(root, high)
    # the products of the two halves are exact, so the remainder is exact too
    left = op_subtract(op_subtract(x, op_multiply(high, high)), op_multiply(op_multiply(high, low), 2.0))
    left = op_subtract(left, op_multiply(low, low))
    return op_add(root, op_divide(left, op_multiply(root, 2.0)))
