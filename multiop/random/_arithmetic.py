"""Elementary functions in `float32` and `float64` that give the same bits on every framework.

They use only sums, products and quotients, because the frameworks' logarithms, and even their square roots, differ in
the last digit. A compiler may round a product and the sum that follows once or twice; `times` forces it to round twice.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from multiop._loading.registry import random_part
from multiop.random._either import (
    add,
    bitwise_and,
    cast,
    divide,
    dtype_name,
    less,
    multiply,
    negative,
    round_,
    square_root,
    subtract,
    view,
    where,
)

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
    product = multiply(x, y)
    if type(product) is np.ndarray:
        return product
    rounded = random_part("rounded")
    return product if rounded is None else rounded(product)


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Evaluate a polynomial by Horner's rule; `coefficients` start with the highest power."""
    if type(x) is np.ndarray:
        return _polynomial_of_array(x, coefficients)
    native = random_part("polynomial")
    found = None if native is None else native(x, coefficients)
    if found is not None:
        return found
    first, second, *rest = coefficients
    return functools.reduce(lambda y, c: add(times(y, x), c), rest, add(times(x, first), second))


def _polynomial_of_array(x: Any, coefficients: tuple[float, ...]) -> Any:
    first, second, *rest = coefficients
    y = x * first
    y += second
    for coefficient in rest:
        y *= x
        y += coefficient
    return y


def log(x: Any) -> Any:
    """Return the logarithm of a positive number that is not subnormal."""
    return _log_of(*_parts(x))


def log_1_minus(x: Any, rest: Any = None) -> Any:
    """Return `log(1 - x)` for `0 < x < 1`, with full precision for small `x`, and near 1 if `rest` is `1 - x`."""
    exponent, fraction = _parts(subtract(1.0, x) if rest is None else rest)
    is_small = less(x, 0.25)
    return _log_of(where(is_small, 0.0, exponent), where(is_small, negative(x), fraction))


def _parts(x: Any) -> tuple[Any, Any]:
    """Return the exponent `e` as a float, and `f` from -1/3 to 1/3, such that `x = 2**e * (1 + f)`."""
    name = dtype_name(x)
    whole, digits, start, *_ = _LAYOUT[name]
    bits = view(x, whole)
    power = bitwise_and(subtract(bits, start), -(1 << digits))
    one = view(subtract(bits, power), name)
    return multiply(cast(power, name), 2.0**-digits), subtract(one, 1.0)


def _log_of(exponent: Any, fraction: Any) -> Any:
    name = dtype_name(exponent)
    *_, log_2, rest = _LAYOUT[name]
    if name == "float32":
        found = times(fraction, polynomial(fraction, _LOG))
    else:
        s = divide(fraction, add(fraction, 2.0))
        found = times(s, polynomial(times(s, s), _ATANH))
    # TensorFlow's graphs reorder sums of sums, but not differences
    return add(times(exponent, log_2), subtract(found, times(exponent, -rest)))


def exp(x: Any) -> Any:
    """Return `exp(x)`, or 0 for `x` below -87 in `float32` and below -708 in `float64`."""
    name = dtype_name(x)
    whole, digits, _, log_2, rest = _LAYOUT[name]
    least = -87.0 if name == "float32" else -708.0
    is_zero = less(x, least)
    x = where(is_zero, 0.0, x)
    exponent = round_(multiply(x, 1.4426950408889634))
    fraction = subtract(subtract(x, times(exponent, log_2)), times(exponent, rest))
    power = multiply(cast(exponent, whole), 1 << digits)
    found = view(add(view(polynomial(fraction, _EXP[name]), whole), power), name)
    return where(is_zero, 0.0, found)


def sqrt(x: Any) -> Any:
    """Return the square root of a positive number, rounded; the frameworks' own may be off in the last digit."""
    name = dtype_name(x)
    whole, digits, *_ = _LAYOUT[name]
    root = square_root(x)
    high = view(bitwise_and(view(root, whole), -(1 << (digits // 2 + 1))), name)
    low = subtract(root, high)
    # the products of the two halves are exact, so the remainder is exact too
    left = subtract(subtract(x, multiply(high, high)), multiply(multiply(high, low), 2.0))
    left = subtract(left, multiply(low, low))
    return add(root, divide(left, multiply(root, 2.0)))
