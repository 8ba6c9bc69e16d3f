"""Draws from the gamma and the beta distribution, with implicit gradients.

Sources: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); Figurnov, Mohamed
and Mnih, "Implicit reparameterization gradients", NeurIPS 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite
from multiop._values.types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.custom_gradient import op_custom_gradient
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.conversion import op_cast
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_divide,
    op_exp,
    op_log,
    op_log1p,
    op_maximum,
    op_multiply,
    op_negative,
    op_subtract,
)
from multiop.frontends.logical import op_where
from multiop.frontends.reduction import op_sum
from multiop.frontends.shapes import op_expand_dims, op_reshape
from multiop.frontends.special import expm1_minus, gauss
from multiop.random import _arguments, _normal, _philox
from multiop.random._arithmetic import exp, log, polynomial, sqrt, times
from multiop.random._keys import Seed, key_of, split
from multiop.random._rejection import first_accepted

# a candidate is rejected with a probability of at most 0.0484, so ten are rejected with a probability of 7e-14
_STAGES = (1, 1.0), (9, 0.0484)


@boundary
def gamma(shape: Shape, alpha: ArrayLike, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Draw numbers from the gamma distribution with scale 1.

    Args:
        shape: An int, or a sequence of ints.
        alpha: Shape parameter, which is also the mean, positive: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`, the same on every backend to within 2 units in the last place. Every number is
        positive: one below the smallest normal number of `dtype` (`2**-24` in `float16`), as are most for a small
        `alpha`, becomes that number. An entry of a tensor `alpha` that is not positive gives NaN.

    Raises:
        ArgumentError: `alpha` is not positive, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        Implicit with respect to `alpha`: how the number changes with it while its rank in the distribution stays the
        same. 0 for a number that became the smallest one.

    Example:
        >>> import multiop
        >>> x = multiop.random.gamma((1000,), 3.0, seed=1)
        >>> abs(float(multiop.op_mean(x)) - 3.0) < 0.3
        True
    """
    shape, name = _arguments.sizes(shape), _arguments.floating(dtype)
    key, alpha = _beside_key(seed, shape, name, alpha=alpha)
    least = _least(name)
    x = _draws(op_stop_gradient(alpha), key, _normal.computed_in(name), least)
    return op_cast(_of_rank(alpha, x, least), name)


@boundary
def beta(shape: Shape, alpha: ArrayLike, beta: ArrayLike, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Draw numbers from the beta distribution: the share of one gamma number in the sum of two.

    Args:
        shape: An int, or a sequence of ints.
        alpha: First parameter, positive: a number, or a tensor that broadcasts to `shape`.
        beta: Second parameter, positive: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`, from 0 to 1, the same on every backend to within 2 units in the last place. For
        small parameters, many numbers are so close to 0 or 1 that they are rounded to it. An entry of a tensor
        parameter that is not positive gives NaN.

    Raises:
        ArgumentError: A parameter is not positive, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        Implicit with respect to `alpha` and `beta`: that of `multiop.random.gamma`, through both gamma numbers.

    Example:
        >>> import multiop
        >>> x = multiop.random.beta((1000,), 2.0, 2.0, seed=1)
        >>> abs(float(multiop.op_mean(x)) - 0.5) < 0.05
        True
    """
    shape, name = _arguments.sizes(shape), _arguments.floating(dtype)
    key, alpha, beta = _beside_key(seed, shape, name, alpha=alpha, beta=beta)
    keys, exact = split(key), _normal.computed_in(name)
    difference = op_subtract(_log_gamma(alpha, keys[0], exact), _log_gamma(beta, keys[1], exact))
    is_less = difference < 0.0
    ratio = _exp(op_where(is_less, difference, op_negative(difference)))
    return op_cast(op_divide(op_where(is_less, ratio, 1.0), op_add(ratio, 1.0)), name)


def _beside_key(seed: Any, shape: Any, dtype: str, **given: Any) -> list[Any]:
    """Return the key of `seed`, and parameters beside it: one that is refused takes no key of a generator."""
    exact = _normal.computed_in(dtype)
    values = {name: _arguments.positive(_arguments.parameter(x, name, exact), name) for name, x in given.items()}
    _arguments.fits(shape, **values)
    key = key_of(seed, *given.values())
    return [key, *(_arguments.spread(x, shape, exact, key) for x in values.values())]


def _least(dtype: str) -> float:
    """Return the smallest number that every framework keeps: some flush subnormal numbers to 0, but not in float16."""
    return 2.0**-24 if dtype == "float16" else float(np.finfo(_normal.computed_in(dtype)).tiny)


@op_custom_gradient
def _exp(x: Any) -> Any:
    y = exp(x)
    return y, lambda upstream: op_multiply(upstream, y)


@op_custom_gradient
def _of_rank(alpha: Any, x: Any, least: float | None) -> Any:
    """Return gamma numbers `x`, or logarithms of them, as the numbers of their rank, which depend on `alpha`.

    Numbers that were raised to `least` do not depend on it; without `least`, `x` are logarithms.
    """

    def gradient(upstream: Any) -> Any:
        moving = _of_rank(alpha, x, least)  # for derivatives of higher order
        if least is None:
            slope = _slope(alpha, moving)
        else:
            slope = op_multiply(moving, _slope(alpha, op_log(moving)))
            slope = op_where(x <= least, 0.0, slope)
        return op_multiply(upstream, slope), None, None

    return times(x, 1.0), gradient  # a compiler that saw through it would reorder the difference of two logarithms


def _log_gamma(alpha: Any, key: Any, dtype: str) -> Any:
    """Return the logarithms of gamma numbers, which may be far below that of the smallest number of `dtype`."""
    return _of_rank(alpha, _draws(op_stop_gradient(alpha), key, dtype, None), None)


@composite
def _draws(alpha: Any, key: Any, dtype: str, least: float | None) -> Any:
    """Return gamma numbers, none below `least`, or their logarithms where that is `None`."""
    shape = tuple(alpha.shape)
    n = _philox.count(shape)
    alpha = _philox.hidden(alpha, key, shape, dtype)
    is_small = alpha < 1.0  # then a number for alpha + 1 is multiplied by a power of a uniform number
    d = op_subtract(op_where(is_small, op_add(alpha, 1.0), alpha), 1 / 3)
    c = op_divide(1 / 3, sqrt(d))
    root = op_reshape(
        first_accepted(_attempt, key, n, [op_reshape(one, (n,)) for one in (d, c)], dtype, _STAGES), shape
    )
    u = _normal.inner_uniform(key, shape, dtype)
    power = op_where(is_small, op_divide(log(u), op_where(is_small, alpha, 1.0)), 0.0)
    is_right = alpha > 0.0
    if least is None:
        found = op_add(op_subtract(log(d), times(log(root), -3.0)), power)
    else:
        found = op_multiply(op_multiply(d, op_multiply(op_multiply(root, root), root)), exp(power))
        found = op_maximum(found, least)
    return op_where(is_right, found, float("nan"))


def _attempt(normal: Any, low: Any, uniform: Any, lower: Any, d: Any, c: Any) -> tuple[Any, Any]:
    """Return candidates for the cube root of a gamma number over `d`.

    The test is that of the source, in a form without large terms that cancel: `d` times what is left of the logarithm's
    series after three terms.
    """
    y = times(_normal.standard_normal_of(1.0, normal, low), c)
    root = op_add(y, 1.0)
    is_positive = root > 0.0
    root = op_where(is_positive, root, 1.0)
    is_near = op_abs(y) < 0.125
    near, square = op_where(is_near, y, 0.0), times(y, y)
    series = op_multiply(op_multiply(square, square), polynomial(near, _REST[active().dtype_name(y)]))
    three = times(y, polynomial(y, (1 / 3, -1 / 2, 1.0)))
    rest = op_where(is_near, series, op_subtract(log(root), three))
    is_accepted = log(_normal.inner_uniform_of(uniform, lower)) < op_multiply(times(rest, d), 3.0)
    return root, is_positive & is_accepted


# (log(1 + y) - y + y**2 / 2 - y**3 / 3) / y**4 in powers of y
_REST = {
    dtype: tuple((-1.0) ** (k + 1) / k for k in range(terms, 3, -1))
    for dtype, terms in (("float32", 11), ("float64", 20))
}


def _slope(alpha: Any, x: Any) -> Any:
    """Return the derivative with respect to `alpha` of the logarithm `x` of a gamma number whose rank stays the same.

    By the implicit function theorem it is minus the derivative of the distribution function over the density. The
    distribution function is a power series for numbers below 1, else an integral over the side where it is smaller.
    """
    name = active().dtype_name(alpha)
    # below these bounds all that is made of the number is 0 or 1, with a slope of 0: not 0 times infinity
    alpha, x = (op_maximum(one, bound) for one, bound in zip((alpha, x), _BOUNDS[name], strict=True))
    z = op_exp(x)
    is_small = z < 1.0
    digamma_of_next, log_over_digamma = _digamma(alpha)
    low = op_where(is_small, z, 0.0)
    total, slope, term, harmonic = 1.0, 0.0, 1.0, 0.0
    for k in range(1, 12 if name == "float32" else 20):
        inverse = op_divide(1.0, op_add(alpha, float(k)))
        term, harmonic = op_multiply(op_multiply(low, inverse), term), op_add(inverse, harmonic)
        total, slope = op_add(term, total), op_add(op_multiply(term, harmonic), slope)
    rank = op_subtract(digamma_of_next, op_where(is_small, x, 0.0))
    series = op_divide(op_add(op_multiply(total, rank), slope), alpha)
    return op_where(is_small, series, _integral(alpha, op_where(is_small, 1.0, z), log_over_digamma))


_BOUNDS = {"float32": (1e-18, -1e18), "float64": (1e-150, -1e150)}


def _integral(alpha: Any, z: Any, log_over_digamma: Any) -> Any:
    beyond = op_subtract(alpha, z)
    ratio = op_divide(beyond, alpha)  # 1 minus z / alpha
    is_near = op_abs(ratio) < 0.5
    near = op_log1p(op_negative(op_where(is_near, ratio, 0.0)))
    rank = op_add(op_where(is_near, near, op_subtract(op_log(z), op_log(alpha))), log_over_digamma)
    places, weights = gauss(alpha, z)
    sign = op_where(alpha < z, 1.0, -1.0)
    beyond, z, rank = (op_expand_dims(one, -1) for one in (beyond, z, rank))
    density = op_exp(op_subtract(op_multiply(beyond, places), op_multiply(z, expm1_minus(places))))
    return op_multiply(sign, op_sum(op_multiply(op_multiply(density, op_add(rank, places)), weights), -1))


def _digamma(x: Any) -> tuple[Any, Any]:
    """Return the digamma function of positive numbers plus 1, and what their logarithm exceeds their digamma by."""
    is_small = x < 10.0
    near = op_where(is_small, x, 1.0)
    below = 0.0
    for k in range(1, 10):
        below = op_add(op_divide(1.0, op_add(near, float(k))), below)
    y = op_where(is_small, op_add(x, 10.0), x)
    inverse = op_divide(1.0, y)
    square = op_multiply(inverse, inverse)
    series = 0.0
    for c in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = op_multiply(op_add(series, c), square)
    excess = op_add(op_multiply(inverse, 0.5), series)
    digamma = op_subtract(op_log(y), excess)
    of_next = op_where(is_small, op_subtract(digamma, below), op_add(digamma, inverse))
    beyond = op_subtract(op_add(op_log(near), op_divide(1.0, near)), of_next)  # the digamma of x is 1 / x smaller
    return of_next, op_where(is_small, beyond, excess)
