"""Draws from the binomial distribution.

Sources: Stadlober, "The ratio of uniforms approach for generating discrete random variates", Journal of Computational
and Applied Mathematics 31 (1990); Loader, "Fast and accurate computation of binomial probabilities" (2000).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multiop._boundary import boundary
from multiop._registry import active, composite
from multiop._types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.conversion import op_cast
from multiop.frontends.creation import op_zeros_like
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
from multiop.frontends.logical import op_equal, op_less, op_less_equal, op_logical_and, op_where
from multiop.frontends.shapes import op_reshape
from multiop.random import _arguments, _normal, _philox
from multiop.random._arithmetic import exp, log, log_1_minus, polynomial, sqrt, times
from multiop.random._keys import Seed, as_key
from multiop.random._rejection import first_accepted

_FEW = 5.0  # with a mean below, the distribution function is inverted term by term
_TERMS = {"float32": 27, "float64": 40}  # probability of more: below 2**-40 and 2**-70

# a candidate is rejected with a probability of at most 0.48, so 46 are rejected with a probability of 3e-15
_STAGES = (1, 1.0), (5, 0.48), (40, 0.48**6)


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
    n = _arguments.parameter(counts, "counts", exact)
    p = _arguments.parameter(probabilities, "probabilities", exact)
    if isinstance(n, float):
        is_right = 0 <= n < math.inf and n.is_integer()
        _arguments.check(is_right, f"counts must be a whole number that is not negative, got {counts}")
    _arguments.check(not isinstance(p, float) or 0 <= p <= 1, f"probabilities must be from 0 to 1, got {probabilities}")
    _arguments.fits(shape, counts=n, probabilities=p)
    sizes = "any"
    if isinstance(n, float) and isinstance(p, float):
        sizes = "few" if n * min(p, 1 - p) < _FEW - 0.01 else "many" if n * min(p, 1 - p) > _FEW + 0.01 else "any"
    n, p = (op_stop_gradient(_arguments.spread(one, shape, exact)) for one in (n, p))
    return op_cast(_draws(n, p, as_key(seed), exact, sizes), name)


@composite
def _draws(n: Any, p: Any, key: Any, dtype: str, sizes: str) -> Any:
    shape = tuple(n.shape)
    is_right = op_logical_and(op_less_equal(0.0, n), op_equal(op_floor(n), n))
    is_right = op_logical_and(is_right, op_logical_and(op_less_equal(0.0, p), op_less_equal(p, 1.0)))
    n, p = (_philox.hidden(op_where(is_right, one, 0.0), key, shape, dtype) for one in (n, p))
    rest = op_subtract(1.0, p)
    share = op_minimum(p, rest)
    is_few = op_less(op_multiply(n, share), _FEW)
    if sizes == "any":
        few = _few(op_where(is_few, n, 0.0), op_where(is_few, share, 0.0), key, dtype)
        found = op_where(is_few, few, _many(op_where(is_few, 16.0, n), op_where(is_few, 0.5, share), key, dtype))
    else:
        found = (_few if sizes == "few" else _many)(n, share, key, dtype)
    found = op_where(op_less(rest, p), op_subtract(n, found), found)
    return op_reshape(op_where(is_right, found, float("nan")), shape)


def _few(n: Any, p: Any, key: Any, dtype: str) -> Any:
    """Return how many of the probabilities of more than 0, 1, 2, ... successes are above a uniform number."""
    u = op_negative(_normal.inner_uniform(key, tuple(n.shape), dtype))
    odds = op_divide(p, op_subtract(1.0, p))
    terms = [exp(times(n, log_1_minus(p)))]
    for k in range(_TERMS[dtype]):
        terms.append(op_multiply(op_multiply(terms[-1], op_subtract(n, float(k))), op_divide(odds, float(k + 1))))
    tail, found = op_zeros_like(n), op_zeros_like(n)
    for term in terms[:0:-1]:  # differences, because TensorFlow's graphs reorder sums of sums
        tail = op_subtract(tail, times(term, 1.0))
        found = op_add(found, op_cast(op_less(tail, u), dtype))
    return found


def _many(n: Any, p: Any, key: Any, dtype: str) -> Any:
    """Return the first candidates that are accepted; the width of the region that they are in is that of the source."""
    shape = tuple(n.shape)
    count = _philox.count(shape)
    n, p = (op_reshape(one, (count,)) for one in (n, p))
    mean = times(n, p)
    spread = sqrt(op_add(times(mean, op_subtract(1.0, p)), 0.5))
    width = op_add(times(spread, 2 * math.sqrt(2 / math.e)), 3 - 2 * math.sqrt(3 / math.e))
    mode = op_floor(op_multiply(op_add(n, 1.0), p))
    parameters = [n, mean, width, _log_probability(mode, n, mean)]
    return op_reshape(first_accepted(_attempt, key, count, parameters, dtype, _STAGES), shape)


def _attempt(
    first: Any, low: Any, second: Any, lower: Any, n: Any, mean: Any, width: Any, largest: Any
) -> tuple[Any, Any]:
    u = _normal.inner_uniform_of(first, low)
    offset = op_divide(op_subtract(_normal.inner_uniform_of(second, lower), 0.5), u)
    k = op_floor(op_add(times(width, offset), op_add(mean, 0.5)))
    is_inside = op_logical_and(op_less_equal(0.0, k), op_less_equal(k, n))
    k = op_minimum(op_maximum(k, 0.0), n)
    excess = op_subtract(_log_probability(k, n, mean), largest)
    return k, op_logical_and(is_inside, op_less_equal(op_multiply(log(u), 2.0), excess))


def _log_probability(k: Any, n: Any, mean: Any) -> Any:
    """Return the logarithm of the probability of `k`, up to a constant, without large terms that cancel."""
    rest = op_subtract(n, k)
    found = op_subtract(op_negative(_log_factorial_rest(k)), _log_factorial_rest(rest))
    return op_subtract(op_subtract(found, _deviance(k, mean)), _deviance(rest, op_subtract(n, mean)))


# log(k!) - k log(k) + k for k below 16
_RESTS = np.array([math.lgamma(k + 1) - (k * math.log(k) if k else 0) + k for k in range(16)])


def _log_factorial_rest(k: Any) -> Any:
    """Return `log(k!) - k log(k) + k`."""
    name = active().dtype_name(k)
    table = active().on_device_of(k, active().convert(_RESTS.astype(name)))
    is_near = op_less(k, 16.0)
    near = op_take(table, op_cast(op_minimum(k, 15.0), "int32"))
    k = op_maximum(k, 16.0)
    inverse = op_divide(1.0, k)
    series = times(inverse, polynomial(times(inverse, inverse), (-1 / 1680, 1 / 1260, -1 / 360, 1 / 12)))
    far = op_add(times(log(op_multiply(k, 2 * math.pi)), 0.5), series)
    return op_where(is_near, near, far)


# the series of log((1 + s) / (1 - s)) / 2 without its first term, over s**3, in powers of s**2, for s below 1 / 4
_ATANH = {
    dtype: tuple(1 / k for k in range(terms, 2, -2)) for dtype, terms in (("float32", 13), ("float64", 27))
}  # fmt: skip


def _deviance(k: Any, mean: Any) -> Any:
    """Return `k * log(k / mean) + mean - k`."""
    e = op_divide(op_subtract(k, mean), mean)
    is_near = op_less(op_abs(e), 0.375)
    near = op_where(is_near, e, 0.0)
    s = op_divide(near, op_add(near, 2.0))
    square = times(s, s)
    cubes = times(times(s, square), polynomial(square, _ATANH[active().dtype_name(k)]))
    series = op_add(times(near, s), times(times(op_add(near, 1.0), cubes), 2.0))
    ratio = op_divide(k, mean)
    is_none = op_less_equal(k, 0.0)
    ratio_log = op_where(is_none, 0.0, log(op_where(is_none, 1.0, ratio)))
    far = op_subtract(times(ratio, ratio_log), e)
    return times(mean, op_where(is_near, series, far))
