"""Draws from the standard uniform, normal, exponential, Gumbel and Laplace distributions, from random words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiop._loading.registry import composite
from multiop.random import _host, _philox
from multiop.random._arithmetic import log, log_1_minus, polynomial, sqrt, times
from multiop.random._either import arithmetic_of, choose
from multiop.random._keys import Turn

# in every dtype, the first word holds the leading digits of a number, so a draw differs only in the number of digits
HIGH, LOW = 0, 1

_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24}


def computed_in(dtype: str) -> str:
    """Return the dtype in which random numbers of `dtype` are computed."""
    return "float64" if dtype == "float64" else "float32"


@composite
def standard_uniform(key: Any, shape: Any, dtype: str, stream: int = 0) -> Any:
    """Return numbers `k / 2**n` with `k` uniform below `2**n`, where `n` is the number of binary digits of `dtype`.

    The result has the dtype in which `dtype` is computed.
    """
    return _draw(_uniform_of, (dtype,), key, shape, dtype, stream)


def _uniform_of(dtype: str, high: Any, low: Any = None) -> Any:
    at = arithmetic_of(high)
    if low is None:
        kept = _philox.MASK - (1 << (32 - _DIGITS[dtype])) + 1
        return at.multiply(at.cast(at.bitwise_and(high, kept), "float32"), 2.0**-32)
    low = at.bitwise_and(low, _philox.MASK - 0x7FF)
    return at.add(at.multiply(at.cast(high, "float64"), 2.0**-32), at.multiply(at.cast(low, "float64"), 2.0**-64))


def inner_uniform(key: Any, shape: Any, dtype: str, stream: int = 0) -> Any:
    """Return uniform numbers in (0, 1) in the dtype in which `dtype` is computed, with full precision near 0."""
    return inner_uniform_of(*_words(key, shape, dtype, stream))


def inner_uniform_of(high: Any, low: Any) -> Any:
    """Return what `inner_uniform` returns, of given words: of one in float32, of two in float64."""
    at = arithmetic_of(high)
    if low is None:  # the last factor keeps the largest below 1
        return times(at.add(at.cast(high, "float32"), 0.5), 2.0**-32 * (1 - 2.0**-24))
    high, low = at.cast(high, "float64"), at.cast(low, "float64")
    found = at.add(at.multiply(high, 2.0**-32), times(at.add(low, 0.5), 2.0**-64 * (1 - 2.0**-20)))
    return at.maximum(found, 0.0)  # TensorFlow's graphs would subtract from one of the terms instead of their sum


@composite
def standard_normal(key: Any, shape: Any, dtype: str, share: float = 1.0, stream: int = 0) -> Any:
    """Return normal quantiles of uniform numbers, in the dtype in which `dtype` is computed.

    Args:
        key: Key.
        shape: Sizes.
        dtype: Name of a real dtype.
        share: Probability of the symmetric central part of the distribution to draw from.
        stream: Number of the key's stream.
    """
    return _draw(standard_normal_of, (share,), key, shape, dtype, stream)


def _draw(of: Callable[..., Any], options: Any, key: Any, shape: Any, dtype: str, stream: int = 0) -> Any:
    """Return what `of` makes of `options` and the words of numbers, each by itself; for a key of the host, an array."""
    if not isinstance(key, Turn):
        return of(*options, *_words(key, shape, dtype, stream))
    streams = (2 * stream + HIGH, 2 * stream + LOW) if dtype == "float64" else (2 * stream + HIGH,)
    found = _host.draw(of, options, key, shape, streams)
    return found if shape else _host.to_tensor(found)  # NumPy makes numbers of arrays without dimensions


def _words(key: Any, shape: Any, dtype: str, stream: int = 0) -> tuple[Any, Any]:
    """Return the first words of numbers, and the second ones, which only float64 has."""
    high = _philox.words(key, shape, 2 * stream + HIGH)
    return high, _philox.words(key, shape, 2 * stream + LOW) if dtype == "float64" else None


def standard_normal_of(share: float, high: Any, low: Any = None) -> Any:
    """Return what `standard_normal` returns, of given words: of one in float32, of two in float64."""
    return _symmetric(high, low, lambda middle, tail: _normal_size(middle, tail, low is not None, share))


def _normal_size(middle: Any, tail: Any, is_wide: bool, share: float) -> Any:
    if share != 1.0:
        middle = times(middle, share)
        tail = arithmetic_of(middle).subtract(1.0, middle)
    return (_wide_quantile if is_wide else _quantile)(middle, tail)


def _symmetric(high: Any, low: Any, size: Callable[[Any, Any], Any]) -> Any:
    """Return numbers whose first bit is their sign; `size` is of the probability of a smaller one and of a larger."""
    if low is None and type(high) is np.ndarray and high.dtype == np.uint32:  # of the host; those of ops are wider
        return _symmetric_of_array(high, size)
    at = arithmetic_of(high)
    is_upper = at.greater_equal(high, 2**31)
    inner = at.where(is_upper, at.bitwise_and(high, 0x7FFFFFFF), at.bitwise_xor(high, 0x7FFFFFFF))
    rest = None if low is None else at.where(is_upper, low, at.bitwise_xor(low, _philox.MASK))
    outer = at.bitwise_xor(inner, 0x7FFFFFFF), None if rest is None else at.bitwise_xor(rest, _philox.MASK)
    # the probability of a smaller absolute value, and its complement, both with full precision
    found = size(_half_share(inner, rest), _half_share(*outer))
    return at.where(is_upper, found, at.negative(found))


def _symmetric_of_array(high: Any, size: Callable[[Any, Any], Any]) -> Any:
    """Return what `_symmetric` returns, of an array of single words: an int of 32 bits says its sign by a shift."""
    signed = np.bitwise_xor(high, 1 << 31).view(np.int32)
    inner = np.bitwise_xor(signed, np.right_shift(signed, 31))
    found = size(_half_share(inner, None), _half_share(np.bitwise_xor(inner, 0x7FFFFFFF), None))
    bits = found.view(np.int32)
    np.bitwise_xor(bits, np.bitwise_and(signed, -(1 << 31)), bits)
    return found


@composite
def standard_exponential(key: Any, shape: Any, dtype: str) -> Any:
    """Return exponential numbers in the dtype in which `dtype` is computed, with full precision on both sides."""
    return _draw(_exponential_of, (), key, shape, dtype)


def _exponential_of(high: Any, low: Any = None) -> Any:
    at = arithmetic_of(high)
    shares = (high, low), [None if word is None else at.bitwise_xor(word, _philox.MASK) for word in (high, low)]
    return _exponential_size(*[inner_uniform_of(*words) for words in shares])


@composite
def standard_gumbel(key: Any, shape: Any, dtype: str) -> Any:
    """Return Gumbel numbers in the dtype in which `dtype` is computed."""
    return _draw(_gumbel_of, (), key, shape, dtype)


@composite
def standard_laplace(key: Any, shape: Any, dtype: str) -> Any:
    """Return Laplace numbers in the dtype in which `dtype` is computed."""
    return _draw(_laplace_of, (), key, shape, dtype)


def _laplace_of(high: Any, low: Any = None) -> Any:
    return _symmetric(high, low, _exponential_size)


def _gumbel_of(high: Any, low: Any = None) -> Any:
    return arithmetic_of(high).negative(log(_exponential_of(high, low)))


def _exponential_size(middle: Any, tail: Any) -> Any:
    """Return the size above which an exponential number is with the probability `tail`, which is `1 - middle`."""
    at = arithmetic_of(middle)
    return at.negative(log_1_minus(middle, tail))


def _half_share(high: Any, low: Any) -> Any:
    """Return `(k + 1/2) / 2**31` for words `k` below `2**31`, or `(k + 1/2) / 2**63` for pairs of words."""
    at = arithmetic_of(high)
    if low is None:
        return at.multiply(at.add(at.cast(high, "float32"), 0.5), 2.0**-31)
    high, low = at.cast(high, "float64"), at.cast(low, "float64")
    return at.add(at.multiply(high, 2.0**-31), at.multiply(at.add(low, 0.5), 2.0**-63))


# the quantile divided by `middle`, in powers of w - 3.125 where w = -log(1 - middle**2) < 6.25, else of w - 14.225;
# our own minimax fits in float32, with relative errors of 5e-9 and 1e-8
_CENTRAL = (
    9.019532898335569e-10, -6.559997878241575e-09, -3.423685157599721e-08, 6.028928396517585e-07,
    -1.9685141978698084e-06, -1.9645482097985223e-05, 0.0002641745959408581, -0.001047490630298853,
    -0.008532983250916004, 0.3396349549293518, 2.338620662689209,
)  # fmt: skip
_OUTER = (
    -3.288198841900139e-14, 4.2573838334933334e-13, 7.387073808554079e-13, -2.4658577263414472e-11,
    2.543498189844229e-10, -8.452349931076242e-09, 2.0922020382840856e-07, -4.626474492397392e-06,
    0.00011100042320322245, -0.003274729009717703, 0.1891249567270279, 5.104316711425781,
)  # fmt: skip


def _quantile(middle: Any, tail: Any) -> Any:
    """Return the `z` for which a standard normal number is between `-z` and `z` with the probability `middle`."""
    at = arithmetic_of(middle)
    w = at.negative(log(at.multiply(tail, at.subtract(2.0, tail))))
    found = choose(
        at.less(w, 6.25),
        lambda w: polynomial(at.subtract(w, 3.125), _CENTRAL),
        lambda w: polynomial(at.subtract(w, 14.225), _OUTER),
        w,
    )
    return at.multiply(middle, found)


# Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37 (1988): PPND16
_MIDDLE_OVER = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
    1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
_MIDDLE_UNDER = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
    5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
_TAIL_OVER = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
_TAIL_UNDER = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636165571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)  # fmt: skip
_FAR_OVER = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
)  # fmt: skip
_FAR_UNDER = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip


def _wide_quantile(middle: Any, tail: Any) -> Any:
    """Return what `_quantile` returns, in float64."""
    at = arithmetic_of(middle)
    q = at.multiply(middle, 0.5)
    r = at.subtract(0.180625, times(q, q))
    return choose(
        at.less(q, 0.425),
        lambda q, r, tail: at.multiply(q, at.divide(polynomial(r, _MIDDLE_OVER), polynomial(r, _MIDDLE_UNDER))),
        lambda q, r, tail: _wide_tail(sqrt(at.negative(log(at.multiply(tail, 0.5))))),
        q,
        r,
        tail,
    )


def _wide_tail(r: Any) -> Any:
    at = arithmetic_of(r)
    near, far = at.subtract(r, 1.6), at.subtract(r, 5.0)
    return at.where(
        at.less(r, 5.0),
        at.divide(polynomial(near, _TAIL_OVER), polynomial(near, _TAIL_UNDER)),
        at.divide(polynomial(far, _FAR_OVER), polynomial(far, _FAR_UNDER)),
    )
