"""Elementary functions in `float32` and `float64` that give the same bits on every framework.

They use only sums, products and quotients, because the frameworks' logarithms, and even their square roots, differ in
the last digit. A compiler may round a product and the sum that follows once or twice; `times` forces it to round twice.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from multiop._loading.registry import random_part
from multiop.frontends.elementwise import op_add, op_multiply
from multiop.random._either import arithmetic_of, dtype_name

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
    if type(x) is np.ndarray:
        return np.multiply(x, y)
    product, rounded = op_multiply(x, y), random_part("rounded")
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
    return functools.reduce(lambda y, c: op_add(times(y, x), c), rest, op_add(times(x, first), second))


def _polynomial_of_array(x: Any, coefficients: tuple[float, ...]) -> Any:
    first, second, *rest = _as_arrays(x.dtype, coefficients)
    y = np.multiply(x, first, np.empty(x.shape, x.dtype))  # an array also where it has no dimensions
    np.add(y, second, y)
    for coefficient in rest:
        np.multiply(y, x, y)
        np.add(y, coefficient, y)
    return y


@functools.lru_cache(64)
def _as_arrays(dtype: Any, numbers: tuple[float, ...]) -> list[Any]:
    """Return numbers as arrays without dimensions, which NumPy reads sooner than numbers."""
    return [np.array(number, dtype) for number in numbers]


def log(x: Any) -> Any:
    """Return the logarithm of a positive number that is not subnormal."""
    return _log_of(*_parts(x))


def log_1_minus(x: Any, rest: Any = None) -> Any:
    """Return `log(1 - x)` for `0 < x < 1`, with full precision for small `x`, and near 1 if `rest` is `1 - x`."""
    at = arithmetic_of(x)
    exponent, fraction = _parts(at.subtract(1.0, x) if rest is None else rest)
    is_small = at.less(x, 0.25)
    return _log_of(at.where(is_small, 0.0, exponent), at.where(is_small, at.negative(x), fraction))


def _parts(x: Any) -> tuple[Any, Any]:
    """Return the exponent `e` as a float, and `f` from -1/3 to 1/3, such that `x = 2**e * (1 + f)`."""
    at = arithmetic_of(x)
    name = dtype_name(x)
    whole, digits, start, *_ = _LAYOUT[name]
    bits = at.view(x, whole)
    power = at.bitwise_and(at.subtract(bits, start), -(1 << digits))
    one = at.view(at.subtract(bits, power), name)
    return at.multiply(at.cast(power, name), 2.0**-digits), at.subtract(one, 1.0)


def _log_of(exponent: Any, fraction: Any) -> Any:
    at = arithmetic_of(exponent)
    name = dtype_name(exponent)
    *_, log_2, rest = _LAYOUT[name]
    if name == "float32":
        found = times(fraction, polynomial(fraction, _LOG))
    else:
        s = at.divide(fraction, at.add(fraction, 2.0))
        found = times(s, polynomial(times(s, s), _ATANH))
    # TensorFlow's graphs reorder sums of sums, but not differences
    return at.add(times(exponent, log_2), at.subtract(found, times(exponent, -rest)))


def exp(x: Any) -> Any:
    """Return `exp(x)`, or 0 for `x` below -87 in `float32` and below -708 in `float64`."""
    at = arithmetic_of(x)
    name = dtype_name(x)
    whole, digits, _, log_2, rest = _LAYOUT[name]
    least = -87.0 if name == "float32" else -708.0
    is_zero = at.less(x, least)
    x = at.where(is_zero, 0.0, x)
    exponent = at.round(at.multiply(x, 1.4426950408889634))
    fraction = at.subtract(at.subtract(x, times(exponent, log_2)), times(exponent, rest))
    power = at.multiply(at.cast(exponent, whole), 1 << digits)
    found = at.view(at.add(at.view(polynomial(fraction, _EXP[name]), whole), power), name)
    return at.where(is_zero, 0.0, found)


def sqrt(x: Any) -> Any:
    """Return the square root of a positive number, rounded; the frameworks' own may be off in the last digit."""
    at = arithmetic_of(x)
    name = dtype_name(x)
    whole, digits, *_ = _LAYOUT[name]
    root = at.square_root(x)
    high = at.view(at.bitwise_and(at.view(root, whole), -(1 << (digits // 2 + 1))), name)
    low = at.subtract(root, high)
    # the products of the two halves are exact, so the remainder is exact too
    left = at.subtract(at.subtract(x, at.multiply(high, high)), at.multiply(at.multiply(high, low), 2.0))
    left = at.subtract(left, at.multiply(low, low))
    return at.add(root, at.divide(left, at.multiply(root, 2.0)))
