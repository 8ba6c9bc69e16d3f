"""Draws from the Poisson distribution.

Source: Hörmann, "The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and
Economics 12 (1993), algorithm PTRS.
"""

from __future__ import annotations

import math
from typing import Any

from multiop._call.boundary import boundary
from multiop._loading.registry import composite
from multiop._values.types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.conversion import op_cast
from multiop.frontends.elementwise import (
    op_add,
    op_divide,
    op_maximum,
    op_multiply,
    op_negative,
    op_subtract,
)
from multiop.frontends.logical import op_where
from multiop.frontends.shapes import op_reshape
from multiop.random import _arguments, _normal, _philox
from multiop.random._arithmetic import exp, sqrt, times
from multiop.random._binomial import FEW, TERMS, candidate, deviance, inverse, log_factorial_rest, stages_of
from multiop.random._keys import Seed, key_of
from multiop.random._rejection import first_accepted

STAGES = stages_of(1 - 1 / (1.1352 + 1.1442 / (2.53 * math.sqrt(FEW) - 2.469)), (1, 4))


@boundary
def poisson(shape: Shape, mean: ArrayLike, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Draw numbers from the Poisson distribution: how many events happen that do so independently.

    Args:
        shape: An int, or a sequence of ints.
        mean: How many are expected, finite and not negative: a number, or a tensor that broadcasts to `shape`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype` that holds whole numbers, the same on every backend. Numbers with more digits than
        `dtype` has are rounded. An entry of a tensor `mean` that is out of range gives NaN.

    Raises:
        ArgumentError: `mean` is out of range, or does not broadcast to `shape`.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        None: the numbers are whole.

    Example:
        >>> import multiop
        >>> x = multiop.random.poisson((1000,), 4.0, seed=1)
        >>> abs(float(multiop.op_mean(x)) - 4.0) < 0.3
        True
    """
    shape, name = _arguments.sizes(shape), _arguments.floating(dtype)
    exact = _normal.computed_in(name)
    given, mean = mean, _arguments.parameter(mean, "mean", exact)
    is_right = not isinstance(mean, float) or 0 <= mean < math.inf
    _arguments.check(is_right, "mean must be finite and not negative, got ", mean)
    _arguments.fits(shape, mean=mean)
    key = key_of(seed, given)
    return op_cast(_draws(_arguments.spread(op_stop_gradient(mean), shape, exact, key), key, exact), name)


@composite
def _draws(mean: Any, key: Any, dtype: str) -> Any:
    shape = tuple(mean.shape)
    count = _philox.count(shape)
    is_right = (mean >= 0.0) & (mean < math.inf)
    mean = _philox.hidden(op_where(is_right, mean, 0.0), key, shape, dtype)
    is_few = mean < FEW
    few = op_where(is_few, mean, 0.0)
    terms = [exp(op_negative(few))]
    for k in range(TERMS[dtype]):
        terms.append(op_multiply(terms[-1], op_multiply(few, 1 / (k + 1))))
    hat = _hat(op_reshape(op_where(is_few, FEW, mean), (count,)))
    many = op_reshape(first_accepted(_attempt, key, count, hat, dtype, STAGES), shape)
    return op_where(is_right, op_where(is_few, inverse(terms, key, shape, dtype), many), float("nan"))


def _hat(mean: Any) -> list[Any]:
    """Return parameters of the distribution of the candidates, with the constants of the source, the mean, the height.

    The height is a hundredth above that of the source, which some chances exceed by 0.6 %. Some sums are differences,
    because TensorFlow's graphs reorder sums of sums.
    """
    b = op_subtract(times(sqrt(mean), 2.53), -0.931)
    a = op_subtract(times(b, 0.02483), 0.059)
    height = op_add(op_divide(1.1442, op_subtract(b, 3.4)), 1.1352)
    return [op_multiply(a, 4.0), b, op_subtract(mean, -0.43), mean, height]


def _attempt(
    first: Any, low: Any, second: Any, lower: Any, four_a: Any, b: Any, center: Any, mean: Any, height: Any
) -> tuple[Any, Any]:
    k, v, limit = candidate(first, low, second, lower, four_a, b, center)
    return k, v <= op_multiply(limit, chance(k, mean, height))


def chance(k: Any, mean: Any, height: Any) -> Any:
    """Return the probability of `k` over the height of the hat."""
    is_inside, k = k >= 0.0, op_maximum(k, 0.0)
    log_probability = op_subtract(op_negative(log_factorial_rest(k)), deviance(k, mean))
    return op_where(is_inside, op_divide(exp(log_probability), height), 0.0)
