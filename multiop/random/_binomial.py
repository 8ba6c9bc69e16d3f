"""Draws from the binomial distribution.

Sources: Hörmann, "The generation of binomial random variates", Journal of Statistical Computation and Simulation 46
(1993), algorithm BTRS; Loader, "Fast and accurate computation of binomial probabilities" (2000).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from multiop._call.boundary import boundary
from multiop._loading.built_in import hide_from_tracer
from multiop._loading.registry import active, composite
from multiop._values.types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.conversion import op_cast
from multiop.frontends.creation import op_arange, op_zeros_like
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_divide,
    op_floor,
    op_maximum,
    op_minimum,
    op_multiply,
    op_negative,
    op_subtract,
)
from multiop.frontends.indexing import op_take
from multiop.frontends.logical import op_equal, op_where
from multiop.frontends.shapes import op_broadcast_to, op_concatenate, op_reshape
from multiop.frontends.sorting import op_searchsorted
from multiop.random import _arguments, _normal, _philox
from multiop.random._arithmetic import exp, log, log_1_minus, polynomial, sqrt, times
from multiop.random._keys import Seed, key_of
from multiop.random._rejection import first_accepted, take_inside

FEW = 10.0  # with a mean below, the distribution function is inverted term by term
TERMS = {"float32": 39, "float64": 53}  # probability of more: below 2**-40 and 2**-70
_LEAST_SPREAD = math.sqrt(FEW / 2)  # the least standard deviation of a mean that is not below


@boundary
def binomial(
    shape: Shape, counts: ArrayLike, probabilities: ArrayLike, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw numbers from the binomial distribution: how many of `counts` independent trials succeed.

    Args:
        shape: An int, or a sequence of ints.
        counts: The number of trials, whole and not negative: a number, or a tensor that broadcasts to `shape`.
        probabilities: The probability that a trial succeeds, from 0 to 1: a number, or a tensor that broadcasts to
            `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype` that holds whole numbers, the same on every backend. Numbers with more digits than
        `dtype` has are rounded. An entry of a tensor parameter that is out of range gives NaN.

    Raises:
        ArgumentError: A parameter is out of range, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        None: the numbers are whole.

    Example:
        >>> import multiop
        >>> x = multiop.random.binomial((1000,), 10, 0.5, seed=1)
        >>> float(multiop.op_min(x)) >= 0.0, float(multiop.op_max(x)) <= 10.0
        (True, True)
    """
    shape, name = _arguments.sizes(shape), _arguments.floating(dtype)
    exact = _normal.computed_in(name)
    n = _arguments.check_whole(_arguments.parameter(counts, "counts", exact), "counts")
    p = _arguments.parameter(probabilities, "probabilities", exact)
    is_right = not isinstance(p, float) or 0 <= p <= 1
    _arguments.check(is_right, "probabilities must be from 0 to 1, got ", probabilities)
    _arguments.fits(shape, counts=n, probabilities=p)
    spread = None
    if isinstance(n, float) and isinstance(p, float):
        spread = _least_spread(n, min(p, 1 - p))
    key = key_of(seed, counts, probabilities)
    n, p = (op_stop_gradient(active().on_device_of(key, active().convert(one, exact))) for one in (n, p))
    return op_cast(draws(n, p, key, shape, exact, spread), name)


@hide_from_tracer
def _least_spread(n: float, p: float) -> float | None:
    """Return the power of 2 at or below the standard deviation; 0 for a small mean, `None` for one near the switch."""
    if abs(n * p - FEW) < 0.01:
        return None
    return 0.0 if n * p < FEW else 2.0 ** min(30, math.floor(math.log2(math.sqrt(n * p * (1 - p)))))


@composite
def draws(n: Any, p: Any, key: Any, shape: Any, dtype: str, spread: float | None) -> Any:
    """Return numbers in `dtype`; `spread` is a lower bound of the standard deviation, if the parameters are numbers."""
    size = 1 if not spread else _table_size(dtype, spread)
    count = _philox.count(shape)
    # parameters that are numbers are spread over a table instead of all entries, unless there are few entries
    is_shared = spread is not None and isinstance(count, int) and count >= 64 + 4 * size
    sizes = (size,) if is_shared else shape
    n, p = (op_broadcast_to(one, sizes) for one in (n, p))
    is_right = (n >= 0.0) & op_equal(op_floor(n), n)
    is_right = is_right & (p >= 0.0) & (p <= 1.0)
    n, p = (_philox.hidden(op_where(is_right, one, 0.0), key, sizes, dtype) for one in (n, p))
    rest = op_subtract(1.0, p)
    share = op_minimum(p, rest)
    if spread is not None:
        arguments = n, share, key, shape, dtype, is_shared
        found = _many(*arguments, spread) if spread else _few(*arguments)
    else:
        is_few = op_multiply(n, share) < FEW
        few = _few(op_where(is_few, n, 0.0), op_where(is_few, share, 0.0), key, shape, dtype)
        many = _many(op_where(is_few, 2 * FEW, n), op_where(is_few, 0.5, share), key, shape, dtype)
        found = op_where(is_few, few, many)
    if is_shared:
        n, p, rest, is_right = (one[0] for one in (n, p, rest, is_right))
    found = op_where(rest < p, op_subtract(n, found), found)
    return op_where(is_right, found, float("nan"))


def _few(n: Any, p: Any, key: Any, shape: Any, dtype: str, is_shared: bool = False) -> Any:
    """Return the numbers of a uniform number's rank."""
    odds = op_divide(p, op_subtract(1.0, p))
    terms = [exp(times(n, log_1_minus(p)))]
    for k in range(TERMS[dtype]):
        terms.append(op_multiply(op_multiply(terms[-1], op_subtract(n, float(k))), op_multiply(odds, 1 / (k + 1))))
    return inverse(terms, key, shape, dtype, is_shared)


def inverse(terms: list[Any], key: Any, shape: Any, dtype: str, is_shared: bool = False) -> Any:
    """Return how many of the probabilities of more than 0, 1, 2, ... are above a uniform number, given theirs."""
    u = op_negative(_normal.inner_uniform(key, shape, dtype))
    tails = [op_zeros_like(terms[0])]
    for term in terms[:0:-1]:  # differences, because TensorFlow's graphs reorder sums of sums
        tails.append(op_subtract(tails[-1], times(term, 1.0)))
    if is_shared:
        return op_cast(op_searchsorted(op_concatenate(tails[:0:-1]), u), dtype)
    return functools.reduce(op_add, [op_cast(tail < u, dtype) for tail in tails[1:]])


def _many(
    n: Any, p: Any, key: Any, shape: Any, dtype: str, is_shared: bool = False, spread: float = _LEAST_SPREAD
) -> Any:
    """Return the first candidates that are accepted."""
    count = _philox.count(shape)
    if not is_shared:
        hat, law = _hat_and_law(*[op_reshape(one, (count,)) for one in (n, p)])
        return op_reshape(first_accepted(_attempt, key, count, [*hat, *law], dtype, _stages(spread, (1, 4))), shape)
    hat, law = _hat_and_law(n, p)
    size = n.shape[0]
    least = op_maximum(op_subtract(op_floor(law[1]), float(size // 2)), -1.0)
    table = _chance(op_add(active().on_device_of(key, op_arange(size, dtype=dtype)), least), *law)
    hat, least = [one[0] for one in hat], least[0]

    def attempt(*words: Any) -> tuple[Any, Any]:
        k, v, limit = candidate(*words, *hat)
        place = op_minimum(op_maximum(op_subtract(k, least), 0.0), float(size - 1))
        return k, v <= op_multiply(limit, take_inside(table, op_cast(place, "int32")))

    return op_reshape(first_accepted(attempt, key, count, [], dtype, _stages(spread, (2, 4))), shape)


def _hat_and_law(n: Any, p: Any) -> tuple[list[Any], list[Any]]:
    """Return parameters of the distribution of the candidates, with the constants of the source, and of the wanted one.

    Some sums are differences, because TensorFlow's graphs reorder sums of sums.
    """
    mean = times(n, p)
    deviation = sqrt(times(mean, op_subtract(1.0, p)))
    b = op_subtract(times(deviation, 2.53), -1.15)
    a = op_subtract(times(b, 0.0248), op_subtract(0.0873, times(p, 0.01)))
    height = times(deviation, op_add(op_divide(5.1, b), 2.83))
    largest = _log_probability(op_floor(op_multiply(op_add(n, 1.0), p)), n, mean)
    return [op_multiply(a, 4.0), b, op_subtract(mean, -0.5)], [n, mean, largest, height]


def _attempt(first: Any, low: Any, second: Any, lower: Any, *parameters: Any) -> tuple[Any, Any]:
    k, v, limit = candidate(first, low, second, lower, *parameters[:3])
    return k, v <= op_multiply(limit, _chance(k, *parameters[3:]))


def candidate(first: Any, low: Any, second: Any, lower: Any, four_a: Any, b: Any, center: Any) -> tuple[Any, Any, Any]:
    """Return a candidate and two numbers: it is accepted if the first is at most the second times its chance."""
    u, v = _normal.inner_uniform_of(first, low), _normal.inner_uniform_of(second, lower)
    half = op_divide(0.5, op_minimum(u, op_subtract(1.0, u)))  # TensorFlow's graphs do not round 1 / x correctly
    slope = times(half, four_a)
    place = times(op_add(slope, b), op_subtract(u, 0.5))
    return op_floor(op_add(place, center)), v, op_add(times(slope, half), b)


def _stages(spread: float, first: tuple[int, int]) -> list[tuple[int, float]]:
    """Return stages for standard deviations of at least `spread`, after which 1e-14 of the entries are left."""
    return stages_of(1 - 2.5 / (2.83 + 5.1 / (1.15 + 2.53 * spread)), first)


def stages_of(rejected: float, first: tuple[int, int]) -> list[tuple[int, float]]:
    """Return stages for a probability that a candidate is rejected."""
    counts = [*first, math.ceil(math.log(1e-14) / math.log(rejected)) - sum(first)]
    return [(count, rejected ** sum(counts[:i])) for i, count in enumerate(counts)]


def _table_size(dtype: str, spread: float) -> int:
    """Return the number of places around the mean that hold all whose relative probability `exp` does not round to 0.

    Bernstein's inequality for standard deviations up to twice `spread`.
    """
    exponent = (87 if dtype == "float32" else 708) + math.log(6 * spread)
    reach = exponent / 3 + math.sqrt(exponent**2 / 9 + 8 * exponent * spread**2)
    return 2 * math.ceil(reach) + 6


def _chance(k: Any, n: Any, mean: Any, largest: Any, height: Any) -> Any:
    """Return the probability of `k` over the largest one, whose logarithm is given, and over the height of the hat."""
    is_inside = (k >= 0.0) & (k <= n)
    k = op_minimum(op_maximum(k, 0.0), n)
    found = op_divide(exp(op_subtract(_log_probability(k, n, mean), largest)), height)
    return op_where(is_inside, found, 0.0)


def _log_probability(k: Any, n: Any, mean: Any) -> Any:
    """Return the logarithm of the probability of `k`, up to a constant, without large terms that cancel."""
    rest = op_subtract(n, k)
    found = op_subtract(op_negative(log_factorial_rest(k)), log_factorial_rest(rest))
    return op_subtract(op_subtract(found, deviance(k, mean)), deviance(rest, op_subtract(n, mean)))


# log(k!) - k log(k) + k for k below 16
_RESTS = np.array([math.lgamma(k + 1) - (k * math.log(k) if k else 0) + k for k in range(16)])


def log_factorial_rest(k: Any) -> Any:
    """Return `log(k!) - k log(k) + k`."""
    name = active().dtype_name(k)
    table = active().on_device_of(k, active().convert(_RESTS.astype(name)))
    is_near = k < 16.0
    near = op_take(table, op_cast(op_minimum(k, 15.0), "int32"))
    k = op_maximum(k, 16.0)
    half = op_divide(0.5, k)  # TensorFlow's graphs do not round 1 / k correctly
    series = times(half, polynomial(times(half, half), (-128 / 1680, 32 / 1260, -8 / 360, 2 / 12)))
    far = op_add(times(log(op_multiply(k, 2 * math.pi)), 0.5), series)
    return op_where(is_near, near, far)


# the series of log((1 + s) / (1 - s)) without its first term, over s**3, in powers of s**2, for s below 1 / 4
_ATANH = {
    dtype: tuple(2 / k for k in range(terms, 2, -2)) for dtype, terms in (("float32", 13), ("float64", 27))
}  # fmt: skip


def deviance(k: Any, mean: Any) -> Any:
    """Return `k * log(k / mean) + mean - k`."""
    e = op_divide(op_subtract(k, mean), mean)
    is_near = op_abs(e) < 0.375
    near = op_where(is_near, e, 0.0)
    s = op_divide(near, op_add(near, 2.0))
    square = times(s, s)
    cubes = times(times(s, square), polynomial(square, _ATANH[active().dtype_name(k)]))
    series = op_add(times(near, s), times(op_add(near, 1.0), cubes))
    ratio = op_divide(k, mean)
    is_none = k <= 0.0
    ratio_log = op_where(is_none, 0.0, log(op_where(is_none, 1.0, ratio)))
    far = op_subtract(times(ratio, ratio_log), e)
    return times(mean, op_where(is_near, series, far))
