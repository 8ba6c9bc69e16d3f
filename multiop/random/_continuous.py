"""Draws from continuous distributions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from multiop._call.boundary import boundary
from multiop._values import dtypes
from multiop._values.types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.conversion import op_cast, op_shape, op_view_as_complex
from multiop.frontends.elementwise import op_add, op_maximum, op_nextafter, op_subtract
from multiop.frontends.linalg import op_cholesky
from multiop.frontends.logical import op_where
from multiop.frontends.products import op_matmul
from multiop.frontends.shapes import op_expand_dims, op_squeeze, op_stack
from multiop.random import _arguments, _host, _normal
from multiop.random._arithmetic import times
from multiop.random._either import arithmetic_of
from multiop.random._keys import Seed, first_tensor, key_beside, key_of


@boundary
def uniform(
    shape: Shape, minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw numbers from the uniform distribution on the half-open interval from `minval` to `maxval`.

    Args:
        shape: An int, or a sequence of ints.
        minval: Inclusive lower bound: a number, or a tensor that broadcasts to `shape`.
        maxval: Exclusive upper bound: a number, or a tensor that broadcasts to `shape`.
        dtype: Floating or complex dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`, bit for bit the same on every backend. Between 0 and 1, the numbers are multiples
        of `2**-n`, where `n` is the number of binary digits of `dtype`: 11, 8 (`bfloat16`), 24 or 53. The
        real and the imaginary part of a complex number are two such numbers.

    Raises:
        ArgumentError: `minval` is not below `maxval`, or one of them does not broadcast to `shape`.
        DTypeError: `dtype` is neither a floating nor a complex dtype.

    Gradient:
        Pathwise with respect to `minval` and `maxval`: how the number changes with them while the random bits stay
        the same.

    Example:
        >>> import multiop
        >>> x = multiop.random.uniform((1000,), -1.0, 1.0, seed=1)
        >>> bool(multiop.op_all(x >= -1.0)), bool(multiop.op_all(x < 1.0))
        (True, True)
    """
    shape, name = _arguments.sizes(shape), _arguments.inexact(dtype)
    if name in dtypes.COMPLEX:
        key = key_of(seed, minval, maxval)
        return _complex_of(_uniform(shape, minval, maxval, dtypes.REAL_PART[name], key, stream) for stream in range(2))
    return _uniform(shape, minval, maxval, name, seed)


def _uniform(shape: Any, minval: Any, maxval: Any, name: str, seed: Any, stream: int = 0) -> Any:
    exact = _normal.computed_in(name)
    if _arguments.are(minval, maxval, 0, 1):
        return _as_tensor(_normal.standard_uniform(key_beside(None, seed), shape, name, stream), name, exact)
    low = _arguments.finite(_arguments.parameter(minval, "minval", exact), "minval")
    high = _arguments.finite(_arguments.parameter(maxval, "maxval", exact), "maxval")
    are_numbers = isinstance(low, float) and isinstance(high, float)
    if are_numbers:
        above, last = _arguments.bounds(low, high, name)
        above, last = +above, +last  # numbers, to a compiler that traces Python
        _arguments.check(last == last, "minval must be below maxval, got ", minval, maxval)
    else:
        _arguments.fits(shape, minval=low, maxval=high)
    key = key_beside(None if are_numbers else first_tensor(minval, maxval), seed)
    x = _normal.standard_uniform(key, shape, name, stream)
    if are_numbers:
        width = _arguments.finite(+_arguments.round_to_dtype(high - low, exact), "maxval - minval")
        at = arithmetic_of(x)
        y = at.add(times(x, width), low)
        if name == exact:
            return _host.to_tensor(at.where(at.less(y, above), y, last))
        y = _as_tensor(y, name, exact)
        return op_where(y < above, y, last)
    x = _host.to_tensor(x)
    low, high = _arguments.beside(x, low, high)
    y = op_cast(op_add(times(x, op_subtract(high, low)), low), name)
    above, below = _arguments.beside(x, op_cast(high, name), op_cast(low, name))
    last = op_stop_gradient(op_nextafter(above, below))
    rest = op_where(y < above, 0.0, op_subtract(last, y))
    return op_add(y, op_stop_gradient(rest))


@boundary
def normal(
    shape: Shape, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw numbers from the normal distribution.

    Args:
        shape: An int, or a sequence of ints.
        mean: Mean: a number, or a tensor that broadcasts to `shape`; a complex one only where `dtype` is complex.
        stddev: Standard deviation, not negative: a number, or a tensor that broadcasts to `shape`.
        dtype: Floating or complex dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`. Each number is the quantile of 32 random bits, or 64 in `float64`. It is the same
        on every backend to within 2 units in the last place of the larger of `mean` and `stddev` times the standard
        normal number. The real and the imaginary part of a complex number each have half of the variance.

    Raises:
        ArgumentError: `stddev` is negative, or `mean` or `stddev` does not broadcast to `shape`.
        DTypeError: `dtype` is neither a floating nor a complex dtype.

    Gradient:
        Pathwise with respect to `mean` and `stddev`.

    Example:
        >>> import multiop
        >>> x = multiop.random.normal((3,), 10.0, 0.1, seed=1)
        >>> bool(multiop.op_all(multiop.op_abs(x - 10.0) < 1.0))
        True
    """
    name = _arguments.inexact(dtype)
    if name not in dtypes.COMPLEX:
        return _draw_scaled(_normal.standard_normal, shape, mean, stddev, name, seed, **_OF_NORMAL)
    key, part = key_of(seed, mean, stddev), dtypes.REAL_PART[name]
    return _complex_of(
        _draw_scaled(functools.partial(_half_normal, stream), shape, center, stddev, part, key, **_OF_NORMAL)
        for stream, center in enumerate(_arguments.beside(key, *_arguments.parts(mean)))
    )


def _half_normal(stream: int, key: Any, shape: Any, dtype: str) -> Any:
    """Return normal numbers of half the variance."""
    x = times(_normal.standard_normal(key, shape, dtype, stream=stream), math.sqrt(0.5))
    return op_maximum(x, -99.0)  # below all: TensorFlow's graphs would make one product of this and of the deviation's


def _complex_of(parts: Iterable[Any]) -> Any:
    return op_view_as_complex(op_stack(list(parts), -1))


@boundary
def multivariate_normal(
    shape: Shape, mean: ArrayLike, cov: ArrayLike, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw vectors from the multivariate normal distribution.

    Args:
        shape: How many vectors: an int, or a sequence of ints.
        mean: Tensor of shape `(..., n)` that broadcasts to `(*shape, n)`.
        cov: Covariance matrices, positive definite: tensor of shape `(..., n, n)` that broadcasts to `(*shape, n, n)`;
            the lower triangle is read.
        dtype: Floating or complex dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of shape `(*shape, n)` and `dtype`: the product of the Cholesky factor of `cov` and standard normal
        numbers, which are those of `multiop.random.normal`, plus `mean`.

    Raises:
        ArgumentError: `cov` does not hold square matrices, or is known not to be positive definite; or the shapes do
            not fit.
        DTypeError: `dtype` is neither a floating nor a complex dtype, or has 16 bits; or an operand alone is complex.

    Gradient:
        Pathwise with respect to `mean` and `cov`.

    Example:
        >>> import multiop
        >>> multiop.random.multivariate_normal((3,), [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], seed=1).shape == (3, 2)
        True
    """
    dtype, sizes = _arguments.inexact(dtype), _arguments.sizes(shape)
    given, mean, cov = (mean, cov), op_cast(mean, dtype), op_cast(cov, dtype)
    factor = op_cholesky(cov)
    n = op_shape(factor)[-1]
    _arguments.fits((*sizes, n), mean=mean)
    _arguments.fits((*sizes, n, n), cov=cov)
    standard = normal((*sizes, n), dtype=dtype, seed=key_of(seed, *given))
    factor, mean = _arguments.beside(standard, factor, mean)
    return op_add(op_squeeze(op_matmul(factor, op_expand_dims(standard, -1)), -1), mean)


_WITHIN_2 = math.erf(math.sqrt(2.0))  # probability of being within two standard deviations of the mean


@boundary
def truncated_normal(
    shape: Shape, mean: ArrayLike = 0.0, stddev: ArrayLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw numbers from the normal distribution, truncated to within two standard deviations of the mean.

    Args:
        shape: An int, or a sequence of ints.
        mean: Mean: a number, or a tensor that broadcasts to `shape`.
        stddev: Standard deviation before truncation, not negative: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`. Except for rounding, no entry is further from `mean` than `2 * stddev`. The
        entries are the same on every backend to within 2 units in the last place, as for `multiop.random.normal`.

    Raises:
        ArgumentError: `stddev` is negative, or `mean` or `stddev` does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        Pathwise with respect to `mean` and `stddev`.

    Example:
        >>> import multiop
        >>> x = multiop.random.truncated_normal((1000,), seed=1)
        >>> bool(multiop.op_all(multiop.op_abs(x) <= 2.0))
        True
    """
    return _draw_scaled(_within_2, shape, mean, stddev, _arguments.floating(dtype), seed, **_OF_NORMAL)


def _within_2(key: Any, shape: Any, dtype: str) -> Any:
    x = _normal.standard_normal(key, shape, dtype, _WITHIN_2)
    at = arithmetic_of(x)
    return at.minimum(at.maximum(x, -2.0), 2.0)


@boundary
def exponential(shape: Shape, scale: ArrayLike = 1.0, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Draw numbers from the exponential distribution.

    Args:
        shape: An int, or a sequence of ints.
        scale: Mean, the inverse of the rate, not negative: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`. Each number is the quantile of 32 random bits, or 64 in `float64`, and the same
        on every backend. An entry of a tensor `scale` that is negative gives NaN.

    Raises:
        ArgumentError: `scale` is negative or infinite, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        Pathwise with respect to `scale`.

    Example:
        >>> import multiop
        >>> x = multiop.random.exponential((1000,), 3.0, seed=1)
        >>> abs(float(multiop.op_mean(x)) - 3.0) < 0.3
        True
    """
    return _draw_scaled(_normal.standard_exponential, shape, 0.0, scale, _arguments.floating(dtype), seed)


@boundary
def gumbel(
    shape: Shape, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw numbers from the Gumbel distribution, of the largest of many numbers.

    Args:
        shape: An int, or a sequence of ints.
        loc: Most frequent number: a number, or a tensor that broadcasts to `shape`.
        scale: Scale, not negative: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`. Each number is the quantile of 32 random bits, or 64 in `float64`, and the same
        on every backend. An entry of a tensor `scale` that is negative gives NaN.

    Raises:
        ArgumentError: `scale` is negative, a parameter is infinite, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        Pathwise with respect to `loc` and `scale`.

    Example:
        >>> import multiop
        >>> x = multiop.random.gumbel((1000,), 3.0, seed=1)
        >>> abs(float(multiop.op_mean(x)) - 3.5772) < 0.2
        True
    """
    return _draw_scaled(_normal.standard_gumbel, shape, loc, scale, _arguments.floating(dtype), seed)


@boundary
def laplace(
    shape: Shape, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw numbers from the Laplace distribution, which is an exponential one on both sides of its mean.

    Args:
        shape: An int, or a sequence of ints.
        loc: Mean: a number, or a tensor that broadcasts to `shape`.
        scale: Mean distance to `loc`, not negative: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`. Each number is the quantile of 32 random bits, or 64 in `float64`, and the same
        on every backend. An entry of a tensor `scale` that is negative gives NaN.

    Raises:
        ArgumentError: `scale` is negative, a parameter is infinite, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        Pathwise with respect to `loc` and `scale`.

    Example:
        >>> import multiop
        >>> x = multiop.random.laplace((1000,), 3.0, seed=1)
        >>> abs(float(multiop.op_mean(x)) - 3.0) < 0.2
        True
    """
    return _draw_scaled(_normal.standard_laplace, shape, loc, scale, _arguments.floating(dtype), seed)


_OF_NORMAL: Any = {"names": ("mean", "stddev"), "nan_below_zero": False}  # a negative deviation mirrors


def _draw_scaled(
    standard: Callable[[Any, Any, str], Any],
    shape: Any,
    loc: Any,
    scale: Any,
    name: str,
    seed: Any,
    names: tuple[str, str] = ("loc", "scale"),
    nan_below_zero: bool = True,
) -> Any:
    shape, exact = _arguments.sizes(shape), _normal.computed_in(name)
    if _arguments.are(loc, scale, 0, 1):
        return _as_tensor(standard(key_beside(None, seed), shape, name), name, exact)
    given, (of_loc, of_scale) = (loc, scale), names
    loc = _arguments.finite(_arguments.parameter(loc, of_loc, exact), of_loc)
    scale = _arguments.finite(_arguments.parameter(scale, of_scale, exact), of_scale)
    _arguments.check(not isinstance(scale, float) or scale >= 0, f"{of_scale} must not be negative, got ", scale)
    are_numbers = isinstance(loc, float) and isinstance(scale, float)
    if not are_numbers:
        _arguments.fits(shape, **{of_loc: loc, of_scale: scale})
    if nan_below_zero and not isinstance(scale, float):
        scale = op_where(scale < 0.0, math.nan, scale)
    x = standard(key_beside(None if are_numbers else first_tensor(*given), seed), shape, name)
    if not are_numbers:
        x = _host.to_tensor(x)
        loc, scale = _arguments.beside(x, loc, scale)
    if not (isinstance(scale, float) and scale == 1.0):
        x = times(x, scale)
    if not (isinstance(loc, float) and loc == 0.0):
        x = arithmetic_of(x).add(x, loc)
    return _as_tensor(x, name, exact)


def _as_tensor(x: Any, name: str, exact: str) -> Any:
    x = _host.to_tensor(x)
    return x if name == exact else op_cast(x, name)
