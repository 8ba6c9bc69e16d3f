"""Draws of integers, categories, permutations and dropout masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading import registry
from multiop._loading.registry import active, composite
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, DType, Shape, Tensor
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.frontends.bitwise import op_bitwise_and, op_bitwise_or, op_frexp, op_left_shift, op_right_shift
from multiop.frontends.conversion import op_cast, op_shape, op_view
from multiop.frontends.creation import op_arange, op_zeros, op_zeros_like
from multiop.frontends.elementwise import op_add, op_divide, op_ldexp, op_multiply, op_negative, op_subtract
from multiop.frontends.indexing import op_take, op_take_along_axis
from multiop.frontends.logical import op_equal, op_greater, op_greater_equal, op_less, op_where
from multiop.frontends.reduction import op_argmax, op_max
from multiop.frontends.shapes import op_expand_dims, op_pad, op_reshape
from multiop.frontends.sorting import op_argsort
from multiop.random import _arguments, _host, _normal, _philox
from multiop.random._arithmetic import log, log_1_minus
from multiop.random._keys import Seed, key_beside, key_of

_FEW = 2**10  # up to this many integers, one word gives equal probabilities, to 2**-22


@boundary
def randint(shape: Shape, minval: ArrayLike, maxval: ArrayLike, dtype: DType = "int32", seed: Seed = None) -> Tensor:
    """Draw integers from the uniform distribution on the half-open interval from `minval` to `maxval`.

    Random bits, read as a fraction in [0, 1), are multiplied by the size of the range, and the integer part is kept, so
    there is no modulo bias. A range of up to 1024 integers takes 32 bits per integer, and the probabilities of any two
    integers have a relative difference of less than `2**-22`. A larger range takes 64 bits (128 in `int64` and
    `uint64`), and the relative difference is less than `2**-32` (`2**-64`).

    Args:
        shape: An int, or a sequence of ints.
        minval: Inclusive lower bound: an int, or an integer tensor that broadcasts to `shape`.
        maxval: Exclusive upper bound: an int, or an integer tensor that broadcasts to `shape`. If both bounds are ints,
            it may be one more than the largest integer of `dtype`.
        dtype: Integer dtype.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of `shape` and `dtype`, the same on every backend. Where a bound is a tensor and `minval` is not below
        `maxval`, the entry is `minval`.

    Raises:
        ArgumentError: An int `minval` is not below an int `maxval`, an int bound does not fit in `dtype`, or a tensor
            does not broadcast to `shape`.
        ArgumentTypeError: A bound is not an integer.
        DTypeError: `dtype` is not an integer dtype.

    Example:
        >>> import multiop
        >>> x = multiop.random.randint((1000,), 1, 7, seed=1)
        >>> int(multiop.op_min(x)), int(multiop.op_max(x))
        (1, 6)
    """
    shape, name = _arguments.sizes(shape), _arguments.integer(dtype)
    low, high = _as_bound(minval, "minval", name), _as_bound(maxval, "maxval", name)
    are_ints = isinstance(low, int) and isinstance(high, int)
    least, greatest = dtypes.INTEGER_RANGE[name]
    if isinstance(low, int):
        _arguments.check(least <= low <= greatest, f"minval {low} does not fit in {name}")
    if isinstance(high, int):
        _arguments.check(least < high <= greatest + 1, f"maxval {high} is beyond the integers of {name}")
    _arguments.check(not are_ints or low < high, "minval must be below maxval, got ", minval, maxval)
    _arguments.fits(shape, minval=low, maxval=high)
    if not are_ints and isinstance(high, int) and high > greatest:
        raise errors.ArgumentError(f"maxval {high} does not fit in {name}, as it must beside a tensor minval")
    return _integers(key_of(seed, minval, maxval), shape, low, high, name)


def _as_bound(value: Any, name: str, dtype: str) -> Any:
    """Return a bound as a Python int, or a tensor of `dtype`."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, float) and value.is_integer():  # Keras takes floats
        return int(value)
    if isinstance(value, (bool, np.bool_, float, str)) or value is None:
        raise errors.ArgumentTypeError(f"{name} must be an int or an integer tensor, got {args.describe(value)}")
    tensor = active().convert(value)
    args.integers(active().dtype_name(tensor), name)
    return op_cast(tensor, dtype)


@composite
def _integers(key: Any, shape: Any, low: Any, high: Any, name: str) -> Any:
    is_wide = name in ("int64", "uint64")
    if isinstance(low, int) and isinstance(high, int):
        n = high - low
        if n == 2 ** (64 if is_wide else 32):  # the random words are the offset
            offset = [_word(key, shape, stream) for stream in range(1 + is_wide)][::-1]
        else:
            k = 1 if n <= _FEW else 2 + 2 * is_wide
            limbs = [n & _philox.MASK, n >> 32][: 1 + is_wide]
            offset = _shares([_word(key, shape, stream) for stream in range(k)], limbs)
    else:
        low, high = (active().on_device_of(key, active().convert(x, name)) for x in (low, high))
        limbs = [op_where(op_less(low, high), limb, 0) for limb in _difference(high, low, is_wide)]
        is_many = op_less(_FEW, limbs[0])
        if is_wide:
            is_many = op_where(op_equal(limbs[1], 0), is_many, True)
        first, *rest = [_word(key, shape, stream) for stream in range(2 + 2 * is_wide)]
        offset = _shares([first, *[op_where(is_many, one, 0) for one in rest]], limbs)
    return _from(offset, low, name)


def _word(key: Any, shape: Any, stream: int) -> Any:
    return op_cast(_philox.words(key, shape, stream), _philox.word())


def _shares(words: Any, n: Any) -> Any:
    """Return the integer part of `n` times the fraction in [0, 1) whose digits are `words`, in as many words as `n`.

    Args:
        words: The digits of the fraction in base 2**32, highest first.
        n: One word or two, lowest first: ints or tensors.
    """
    found = [0] * len(n)
    for digit in words[::-1]:
        if len(n) == 1 and _philox.word() == "int64":
            whole = op_add(op_multiply(digit, n[0]), found[0])  # below 2**64
            found = [op_bitwise_and(op_right_shift(whole, 32), _philox.MASK)]
            continue
        high, low = _philox.product(digit, n[0])
        carry = _carry(low, found[0])
        if len(n) == 1:
            found = [_philox.wrapped_add(high, carry)]
            continue
        higher, middle = _philox.product(digit, n[1])
        for more in (middle, found[1], carry):
            higher = _philox.wrapped_add(higher, _carry(high, more))
            high = _philox.wrapped_add(high, more)
        found = [high, higher]
    return found


def _carry(x: Any, y: Any) -> Any:
    """Return the carry of the sum of two words, 0 or 1."""
    if isinstance(y, int) and y == 0:
        return 0
    return op_cast(op_less(_philox.wrapped_add(x, y), x), _philox.word())


def _difference(high: Any, low: Any, is_wide: bool) -> list[Any]:
    """Return the words of `high - low`, lowest first."""
    if is_wide:
        n = op_subtract(op_view(high, "int64"), op_view(low, "int64"))
        limbs = [op_bitwise_and(one, _philox.MASK) for one in (n, op_right_shift(n, 32))]
        return [op_cast(limb, _philox.word()) for limb in limbs]
    return [op_subtract(*[_as_word(x) for x in (high, low)])]


def _as_word(x: Any) -> Any:
    """Return an integer tensor in the dtype of words; `uint32` wraps modulo 2**32."""
    if _philox.word() != "int64" and active().dtype_name(x) in dtypes.SIGNED:
        return op_view(op_cast(x, "int32"), "uint32")
    return op_cast(x, _philox.word())


def _from(offset: Any, low: Any, name: str) -> Any:
    """Return `low + offset`; `offset` holds words, lowest first."""
    if len(offset) == 2:
        joined = op_bitwise_or(op_left_shift(op_cast(offset[1], "int64"), 32), op_cast(offset[0], "int64"))
        if isinstance(low, int):
            low = (low + 2**63) % 2**64 - 2**63
        else:
            low = op_view(low, "int64")
        return op_view(op_add(joined, low), name)
    if _philox.word() == "int64":
        return op_cast(op_add(offset[0], low if isinstance(low, int) else op_cast(low, "int64")), name)
    total = op_add(offset[0], low & _philox.MASK if isinstance(low, int) else _as_word(low))
    return op_cast(total if name in dtypes.UNSIGNED else op_view(total, "int32"), name)


@boundary
def categorical(logits: ArrayLike, num_samples: int, dtype: DType = "int32", seed: Seed = None) -> Tensor:
    """Draw classes according to their log-probabilities.

    Each draw adds independent Gumbel noise to the logits and takes the class with the largest sum.

    Args:
        logits: Real tensor of shape `(batch, classes)`: log-probabilities, up to a constant for each row. A class with
            the logit `-inf` is never drawn, unless every logit of its row is `-inf`.
        num_samples: The number of draws for each row.
        dtype: Integer dtype.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of shape `(batch, num_samples)` and `dtype`, the same on every backend.

    Raises:
        ArgumentError: `logits` does not have two dimensions, or has no classes, or `num_samples` is negative.
        DTypeError: `logits` is complex, or `dtype` is not an integer dtype.

    Example:
        >>> import multiop
        >>> x = multiop.random.categorical(multiop.op_log([[0.5, 0.5, 0.0]]), 100, seed=1)
        >>> x.shape[1], int(multiop.op_max(x))
        (100, 1)
    """
    name = _arguments.integer(dtype)
    rows, logits = logits, active().floating(logits)
    given = active().dtype_name(logits)
    if given in dtypes.COMPLEX:
        raise errors.DTypeError(f"logits must be real, got {given}")
    sizes = op_shape(logits)
    _arguments.check(len(sizes) == 2, f"logits must have the shape (batch, classes), got {args.describe(logits)}")
    _arguments.check(not isinstance(sizes[1], int) or sizes[1] > 0, "logits must have at least one class")
    num_samples = args.count(num_samples, "num_samples")
    key = key_of(seed, rows)
    logits = active().on_device_of(key, op_cast(op_stop_gradient(logits), _normal.computed_in(given)))
    noise = _gumbel(key, (sizes[0], num_samples, sizes[1]), given)
    return op_cast(op_argmax(op_add(op_expand_dims(logits, 1), noise), -1), name)


@composite
def _gumbel(key: Any, shape: Any, dtype: str) -> Any:
    """Draw from the standard Gumbel distribution, in the dtype in which `dtype` is computed."""
    return op_negative(log(op_negative(log_1_minus(_normal.inner_uniform(key, shape, dtype)))))


@boundary
def choice(
    a: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    seed: Seed = None,
) -> Tensor:
    """Draw slices of a tensor, or integers.

    Args:
        a: Tensor of at least one dimension, or an int: then the integers from 0 up to, not including, `a`.
        shape: How many to draw: an int, or a sequence of ints.
        replace: Whether a slice can be drawn more than once.
        p: The weights of the slices, not negative; they need not add up to 1. By default all are equal. With `replace`,
            a draw takes some `log2(n)` numbers for `n` weights.
        axis: The dimension of `a` along which the slices lie.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of the dtype of `a` (`int32` for an int), with `shape` in the place of `axis`, the same on every backend.

    Raises:
        ArgumentError: `a` has no slices, `p` does not have one weight for each, or no weight is above 0, or more are to
            be drawn without replacement than there are, or than have a weight above 0 (in compiled or mapped code,
            which cannot raise an error, the index of such a draw is out of range).
        DTypeError: `p` is complex.

    Gradient:
        With respect to `a`, of what was drawn.

    Example:
        >>> import multiop
        >>> x = multiop.random.choice(5, (3,), replace=False, p=[1.0, 0.0, 1.0, 0.0, 1.0], seed=1)
        >>> sorted(multiop.op_convert_to_numpy(x).tolist())
        [0, 2, 4]
    """
    slices = a
    if isinstance(a, (int, np.integer)) and not isinstance(a, bool):
        a = op_arange(args.count(a, "a"), dtype="int32")
    a = active().convert(a)
    sizes, shape = op_shape(a), _arguments.sizes(shape)
    axis = args.single_axis(axis, len(sizes))
    n, count = sizes[axis], math.prod(shape)
    _arguments.check(isinstance(n, int) and isinstance(count, int), "the size of a and shape must be known")
    _arguments.check(n > 0 or count == 0, "a must have at least one slice")
    _arguments.check(replace or count <= n, f"without replacement, at most {n} can be drawn, not {count}")
    if p is not None:
        weights = active().floating(p)
        if (given := active().dtype_name(weights)) in dtypes.COMPLEX:
            raise errors.DTypeError(f"p must be real, got {given}")
        _arguments.check(op_shape(weights) == (n,), f"p must have the shape ({n},), got {args.describe(weights)}")
        weights = op_cast(op_stop_gradient(weights), _normal.computed_in(given))
        is_drawn = op_greater(weights, 0.0)
        weights = op_where(is_drawn, weights, 0.0)
    key = key_of(seed, slices, p)
    a = active().on_device_of(key, a)
    if p is not None:
        is_drawn, weights = (active().on_device_of(key, one) for one in (is_drawn, weights))
    if p is None and replace:
        index = randint((count,), 0, n, seed=key) if count else active().on_device_of(key, op_zeros((0,), "int32"))
    elif p is None:
        index = _order(key, (n,), 0)[:count]
    elif replace:
        index = _drawn(key, weights, count, given)
    else:
        logits = op_where(is_drawn, log(op_where(is_drawn, weights, 1.0)), -math.inf)
        noise = _gumbel(key, (n,), given)
        index = op_argsort(op_add(logits, noise), descending=True)[:count]
        index = op_where(op_take(is_drawn, index), index, n)
    return op_take(a, op_reshape(index, shape), axis)


@composite
def _drawn(key: Any, weights: Any, count: int, dtype: str) -> Any:
    """Return `count` indices of `weights`, drawn with replacement.

    A draw goes down a binary tree of sums, by a uniform number at each node. Pairs are added, since the order of a sum
    is the framework's, and the weights are scaled by a power of 2 first, so that no sum overflows.
    """
    (n,) = op_shape(weights)
    depth = (n - 1).bit_length()
    scaled = op_ldexp(weights, op_negative(op_frexp(op_max(weights))[1]))
    sums = [op_pad(scaled, (0, 2**depth - n))]
    for _ in range(depth):
        pairs = op_reshape(sums[0], (-1, 2))
        sums.insert(0, op_add(pairs[:, 0], pairs[:, 1]))
    uniform = _normal.inner_uniform(key, (depth, count), dtype)
    index = active().on_device_of(key, op_zeros((count,), "int32"))
    for k in range(depth):
        left = op_multiply(index, 2)
        limit = op_multiply(uniform[k], op_take(sums[k], index))
        index = op_add(left, op_cast(op_greater_equal(limit, op_take(sums[k + 1], left)), "int32"))
    return op_where(op_greater(sums[0][0], 0.0), index, n)  # out of range where there is nothing to draw


@boundary
def dropout(inputs: ArrayLike, rate: ArrayLike, noise_shape: Any = None, seed: Seed = None) -> Tensor:
    """Set randomly chosen entries of `inputs` to 0, and divide the others by the share that is kept on average.

    Args:
        inputs: Floating or complex tensor.
        rate: The probability of dropping an entry, from 0 to 1: a number, or a scalar tensor.
        noise_shape: Shape of the mask, which must broadcast to the shape of `inputs`. Along a dimension of size 1,
            entries are kept or dropped together. `None`, for the shape or for one entry, means the size in `inputs`.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of the shape and dtype of `inputs`. The mask is the same on every backend.

    Raises:
        ArgumentError: `rate` is not from 0 to 1, or `noise_shape` does not broadcast to the shape of `inputs`.
        DTypeError: `inputs` holds integers or bools.

    Gradient:
        With respect to `inputs` only.

    Example:
        >>> import multiop
        >>> x = multiop.random.dropout(multiop.op_ones(1000), 0.5, seed=1)
        >>> float(multiop.op_min(x)), float(multiop.op_max(x))
        (0.0, 2.0)
    """
    backend = active() if registry.is_overridden else registry._backend
    x = backend.convert(inputs)
    given = backend.dtype_name(x)
    if given not in dtypes.INEXACT:
        raise errors.DTypeError(f"inputs must be floating or complex, got {given}")
    rate = _arguments.parameter(rate, "rate", "float32")
    sizes = x.shape if isinstance(x.shape, tuple) else backend.op_shape(x)
    sizes = sizes if noise_shape is None else _noise_sizes(noise_shape, sizes)
    key = key_beside(x, seed)
    if isinstance(rate, float):
        if not 0.0 <= rate <= 1.0:
            raise errors.ArgumentError(f"rate must be from 0 to 1, got {rate}")
        if rate == 0.0:
            return op_reshape(x, op_shape(x))
        if rate == 1.0:
            return op_zeros_like(x)
        scale = 1.0 / (1.0 - rate)
    else:
        _arguments.check(op_shape(rate) == (), "rate must have no dimensions")
        rate = op_stop_gradient(rate)
        kept = op_subtract(1.0, rate)
        is_none = op_equal(kept, 0.0)
        scale = op_where(is_none, 0.0, op_divide(1.0, op_where(is_none, 1.0, kept)))
        scale = op_cast(scale, dtypes.REAL_PART.get(given, given))
    return _dropped(key, x, rate, scale, sizes)


@composite
def _dropped(key: Any, x: Any, rate: Any, scale: Any, sizes: tuple[Any, ...]) -> Any:
    """Return 0 where a uniform number is below `rate`, else `x * scale`."""
    uniform = _normal.standard_uniform(key, sizes, "float32")
    if type(uniform) is np.ndarray and isinstance(rate, float):
        is_dropped = registry.random_part("from_host")(uniform < rate)
    else:
        is_dropped = op_less(_host.to_tensor(uniform), rate)
    return op_where(is_dropped, 0.0, op_multiply(x, scale))


def _noise_sizes(noise_shape: Any, sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    wanted = noise_shape if isinstance(noise_shape, (tuple, list)) else args.size(noise_shape, "noise_shape")
    if len(wanted) > len(sizes):
        raise errors.ArgumentError(f"noise_shape {tuple(wanted)} has more dimensions than inputs, {len(sizes)}")
    beside = sizes[len(sizes) - len(wanted) :]
    wanted = args.size(tuple(m if n is None else n for n, m in zip(wanted, beside, strict=True)), "noise_shape")
    if any(isinstance(n, int) and isinstance(m, int) and n not in (1, m) for n, m in zip(wanted, beside, strict=True)):
        raise errors.ArgumentError(f"noise_shape {wanted} does not broadcast to the shape of inputs, {tuple(sizes)}")
    return wanted


@boundary
def shuffle(x: ArrayLike, axis: int = 0, seed: Seed = None) -> Tensor:
    """Shuffle the slices of `x` along `axis`.

    Args:
        x: Tensor of any dtype, with at least one dimension.
        axis: Dimension along which to shuffle; the entries of a slice stay together.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of the shape and dtype of `x`, the same on every backend.

    Raises:
        ArgumentError: `axis` is out of range.

    Gradient:
        Goes back to the original position of each entry.

    Example:
        >>> import multiop
        >>> x = multiop.random.shuffle([1, 2, 3, 4], seed=1)
        >>> sorted(multiop.op_convert_to_numpy(x).tolist())
        [1, 2, 3, 4]
    """
    given, x = x, active().convert(x)
    sizes = op_shape(x)
    axis = args.single_axis(axis, len(sizes))
    key = key_of(seed, given)
    x = active().on_device_of(key, x)
    return op_take(x, _order(key, (sizes[axis],), 0), axis)


@boundary
def shuffle_along_axis(x: ArrayLike, axis: int = 0, seed: Seed = None) -> Tensor:
    """Shuffle the entries of `x` along `axis`, independently for each position in the other dimensions.

    Args:
        x: Tensor of any dtype, with at least one dimension.
        axis: Dimension along which to shuffle.
        seed: An int, a key or a `SeedGenerator`; by default the process-wide generator. See `multiop.random.key`.

    Returns:
        Tensor of the shape and dtype of `x`, the same on every backend.

    Raises:
        ArgumentError: `axis` is out of range.

    Gradient:
        Goes back to the original position of each entry.

    Example:
        >>> import multiop
        >>> x = multiop.random.shuffle_along_axis([[1, 2, 3], [4, 5, 6]], 1, seed=1)
        >>> multiop.op_convert_to_numpy(multiop.op_sum(x, 1)).tolist()
        [6, 15]
    """
    given, x = x, active().convert(x)
    sizes = op_shape(x)
    axis = args.single_axis(axis, len(sizes))
    key = key_of(seed, given)
    x = active().on_device_of(key, x)
    return op_take_along_axis(x, _order(key, sizes, axis), axis)


@composite
def _order(key: Any, shape: Any, axis: int) -> Any:
    """Return the indices along `axis` that sort entries by 64 random bits each."""
    low, high = (_word(key, shape, stream) for stream in (_normal.LOW, _normal.HIGH))
    order = op_argsort(low, axis)
    return op_take_along_axis(order, op_argsort(op_take_along_axis(high, order, axis), axis), axis)
