"""Draws from the multinomial distribution: binomial numbers, which halve the classes again and again."""

from __future__ import annotations

import math
from typing import Any

from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values.types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.control_flow import op_fori_loop
from multiop.frontends.conversion import op_cast
from multiop.frontends.elementwise import op_add, op_divide, op_subtract
from multiop.frontends.indexing import op_take
from multiop.frontends.logical import op_equal, op_where
from multiop.frontends.reduction import op_all
from multiop.frontends.shapes import op_broadcast_to, op_expand_dims, op_pad, op_reshape, op_stack
from multiop.random import _arguments, _normal
from multiop.random._arithmetic import times
from multiop.random._binomial import draws
from multiop.random._keys import Seed, fold_in, key_of


@boundary
def multinomial(
    shape: Shape, counts: ArrayLike, probabilities: ArrayLike, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Draw vectors from the multinomial distribution: how many of `counts` independent trials end in each class.

    Args:
        shape: How many vectors: an int, or a sequence of ints.
        counts: The number of trials, whole and not negative: a number, or a tensor that broadcasts to `shape`.
        probabilities: The probability of each of `n` classes, or weights in proportion to it, not negative: a tensor of
            shape `(..., n)` that broadcasts to `(*shape, n)`.
        dtype: Real floating dtype; by default `floatx`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of shape `(*shape, n)` and `dtype` that holds whole numbers whose sum is `counts`, the same on every
        backend: those of a binomial number for each half of the classes, of each half of a half, and so on. `counts`
        beyond the digits of `dtype` are rounded. A vector with a parameter that is out of range, or with weights that
        are all 0, is NaN.

    Raises:
        ArgumentError: `counts` is out of range, there are no classes, or a shape does not fit.
        DTypeError: `dtype` is not a real floating dtype.

    Gradient:
        None: the numbers are whole.

    Example:
        >>> import multiop
        >>> x = multiop.random.multinomial((2,), 10, [0.5, 0.25, 0.25], seed=1)
        >>> multiop.op_convert_to_numpy(multiop.op_sum(x, -1)).tolist()
        [10.0, 10.0]
    """
    sizes, name = _arguments.sizes(shape), _arguments.floating(dtype)
    exact = _normal.computed_in(name)
    given = counts, probabilities
    counts = _arguments.check_whole(_arguments.parameter(counts, "counts", exact), "counts")
    _arguments.fits(sizes, counts=counts)
    weights = op_stop_gradient(active().convert(_arguments.parameter(probabilities, "probabilities", exact), exact))
    n = weights.shape[-1] if len(weights.shape) else 0
    _arguments.check(n > 0, "probabilities must have at least one class")
    _arguments.fits((*sizes, n), probabilities=weights)
    key = key_of(seed, *given)
    counts = op_stop_gradient(_arguments.spread(counts, sizes, exact, key))
    weights = op_broadcast_to(active().on_device_of(key, weights), (*sizes, n))
    depth = math.ceil(math.log2(n))
    levels = [_pad_width(weights, 2**depth)]
    for level in range(depth):  # the weights of twos, of fours, ..., and of all
        pairs = op_reshape(levels[-1], (*sizes, 2 ** (depth - level - 1), 2))
        levels.append(times(op_add(pairs[..., 0], pairs[..., 1]), 1.0))
    total = levels[-1]
    is_right = (total > 0.0) & (total < math.inf)
    is_right = is_right & op_all(weights >= 0.0, -1, keepdims=True)
    found = op_where(is_right, op_expand_dims(counts, -1), math.nan)
    if depth == 0:
        return op_cast(found, name)
    half = 2 ** (depth - 1)  # the nodes of each level, all at one place, so that one program does
    shares = op_stack(
        [_pad_width(_share(*both, sizes), half) for both in zip(levels[-2::-1], levels[:0:-1], strict=True)]
    )

    def divide(level: Any, found: Any) -> Any:
        nodes = found[..., :half]
        left = draws(nodes, op_take(shares, level, 0), fold_in(key, level), (*sizes, half), exact, None)
        return op_reshape(op_stack([left, op_subtract(nodes, left)], -1), (*sizes, 2 * half))

    return op_cast(op_fori_loop(0, depth, divide, _pad_width(found, 2 * half))[..., :n], name)


def _share(parts: Any, whole: Any, sizes: Any) -> Any:
    """Return the share of the first of two parts in the whole; that in nothing is nothing."""
    first = op_reshape(parts, (*sizes, whole.shape[-1], 2))[..., 0]
    return op_divide(first, op_where(op_equal(whole, 0.0), 1.0, whole))


def _pad_width(x: Any, width: int) -> Any:
    return op_pad(x, [(0, 0)] * (len(x.shape) - 1) + [(0, width - x.shape[-1])])
