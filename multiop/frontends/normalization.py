"""Normalization: scaling entries to a common size."""

from __future__ import annotations

import operator
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading import registry
from multiop._loading.registry import active, composite
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Axis, Tensor
from multiop.frontends.conversion import op_cast, op_dtype, op_shape, operands, widen_halves
from multiop.frontends.elementwise import op_add, op_multiply
from multiop.frontends.shapes import op_reshape, op_size
from multiop.frontends.statistics import op_moments


@boundary
def op_normalize(x: ArrayLike, axis: Axis = -1, order: int = 2, epsilon: float | None = None) -> Tensor:
    """Divide `x` by its norm along `axis`, or by `epsilon` where that is larger.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Axis or axes along which the norm is taken; `None` for all.
        order: Which norm: the `order`-th root of the sum of `abs(x)**order`; an int of at least 1.
        epsilon: Number above 0; 1e-7 by default.

    Returns:
        Tensor of the shape of `x`; 0 where all entries of `x` along `axis` are 0.

    Raises:
        ArgumentError: `axis` is out of range, `order` is below 1, or `epsilon` is not above 0.
        ArgumentTypeError: `order` is not an int, or `epsilon` is not a number.
        DTypeError: The operands are complex.

    Gradient:
        Where the norm is below `epsilon`, `1 / epsilon`: finite even where all of `x` is 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_normalize([1.0, 3.0], order=1)).tolist()
        [0.25, 0.75]
    """
    if isinstance(order, bool) or not hasattr(order, "__index__"):
        raise errors.ArgumentTypeError(f"order must be an int, got {order!r}")
    if order < 1:
        raise errors.ArgumentError(f"order must be at least 1, got {order}")
    smallest = args.EPSILON if epsilon is None else args.number(epsilon, "epsilon")
    if not smallest > 0:
        raise errors.ArgumentError(f"epsilon must be above 0, got {epsilon}")
    backend: Any = active() if registry.is_overridden else registry._backend
    return backend.op_normalize(x, axis, operator.index(order), smallest)


@boundary
def op_batch_normalization(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    axis: int,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    epsilon: float = 0.001,
) -> Tensor:
    """Compute `(x - mean) / sqrt(variance + epsilon) * scale + offset`, with vectors along `axis`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        mean: Vector of the size of `x` along `axis`.
        variance: Vector of the size of `x` along `axis`.
        axis: Dimension of `x` that the vectors belong to.
        offset: Vector of the size of `x` along `axis`, or `None` for 0.
        scale: Vector of the size of `x` along `axis`, or `None` for 1.
        epsilon: Number, not negative.

    Returns:
        Tensor of the shape of `x` and the promoted dtype.

    Raises:
        ArgumentError: `axis` is out of range, a vector does not fit it, or `epsilon` is negative.
        ArgumentTypeError: `epsilon` is not a number.
        DTypeError: The operands are complex.

    Example:
        >>> import multiop
        >>> y = multiop.op_batch_normalization([[1.0], [5.0]], [3.0], [4.0], axis=1, offset=[0.5], epsilon=0.0)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[-0.5], [1.5]]
    """
    args.check_given(x=x, mean=mean, variance=variance)
    backend: Any = active() if registry.is_overridden else registry._backend
    return backend.op_batch_normalization(x, mean, variance, axis, offset, scale, args.shift(epsilon))


@boundary
@composite
def op_batch_normalization_with_moments(
    x: ArrayLike,
    axis: int,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    epsilon: float = 0.001,
    moving_mean: ArrayLike | None = None,
    moving_variance: ArrayLike | None = None,
    momentum: float = 0.99,
    correction: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize `x` with its own mean and variance at each place along `axis`, as batch normalization does in training.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension of `x` that stays in the moments: the channels.
        offset: Vector of the size of `x` along `axis`, or `None` for 0.
        scale: Vector of the size of `x` along `axis`, or `None` for 1.
        epsilon: Number, not negative.
        moving_mean: Vector of the size of `x` along `axis`, from which the mean that is returned is moved.
        moving_variance: The same of the variance; given with `moving_mean`.
        momentum: The share of the moving moments that stays.
        correction: What the number of entries is reduced by in the variance that moves: 1, as PyTorch has it, or 0.

    Returns:
        The tensors `(y, mean, variance)`: `op_batch_normalization` of `x`, and the `op_moments` of `x` along the other
        axes, or the moving ones after this step. `y` has the shape of `x` and the promoted dtype; the moments are
        vectors of the dtype of `x`, or of the moving ones.

    Raises:
        ArgumentError: `axis` is out of range, a vector does not fit it, `epsilon` is negative, or `correction` is the
            number of entries.
        ArgumentTypeError: `epsilon` is not a number, or one moving moment is not given.
        DTypeError: The operands are complex.

    Gradient:
        Through the moments too, also where only `y` is used.

    Example:
        >>> import multiop
        >>> y, mean, variance = multiop.op_batch_normalization_with_moments([[1.0], [5.0]], axis=1, epsilon=0.0)
        >>> multiop.op_convert_to_numpy(y).tolist(), float(mean[0]), float(variance[0])
        ([[-1.0], [1.0]], 3.0, 4.0)
    """
    args.check_given(x=x)
    momentum, correction = args.number(momentum, "momentum"), args.integer(correction, "correction")
    if moving_mean is not None and moving_variance is not None:
        x, *moving = operands(x, moving_mean, moving_variance)
        y, *moments = op_batch_normalization_with_moments(x, axis, offset, scale, epsilon)
        mean, variance = _move(moving, moments, op_size(x), momentum, correction)
        return y, mean, variance
    if moving_mean is not None or moving_variance is not None:
        args.check_given(moving_mean=moving_mean, moving_variance=moving_variance)
    x, *vectors = operands(*[t for t in (x, offset, scale) if t is not None])
    rest = iter(vectors)
    offset, scale = (None if t is None else next(rest) for t in (offset, scale))
    axis = args.single_axis(axis, len(x.shape), "axis")
    smallest = args.shift(epsilon)
    wide = widen_halves(x)  # the variance of 16-bit floats may overflow
    mean, variance = op_moments(wide, [k for k in range(len(x.shape)) if k != axis])
    y = op_batch_normalization(wide, mean, variance, axis, offset, scale, smallest)
    dtype = dtypes.to_floating(op_dtype(x))
    promoted = dtypes.to_floating(dtypes.result_type(*map(op_dtype, (x, *vectors))))
    return op_cast(y, promoted), op_cast(mean, dtype), op_cast(variance, dtype)


def _move(moving: list[Tensor], moments: list[Tensor], size: Any, momentum: float, correction: int) -> list[Tensor]:
    """Return moving moments after a step, given the moments of `size` entries in it."""
    n, moved = size // op_size(moments[0]), []
    if correction and isinstance(n, int) and n <= correction:
        raise errors.ArgumentError(f"correction is {correction}, and the moments are those of {n} entries")
    n = n if isinstance(n, int) else op_cast(n, op_dtype(moments[0]))
    for old, new, part in zip(moving, moments, (1, n / (n - correction) if correction else 1), strict=True):
        args.same_shape(old.shape, new.shape, "a moving moment", "the moments")
        total = op_add(op_multiply(old, momentum), op_multiply(new, (1 - momentum) * part))
        moved.append(op_cast(total, dtypes.to_floating(op_dtype(old))))
    return moved


@boundary
def op_layer_normalization(
    x: ArrayLike,
    gamma: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    axis: Axis = -1,
    epsilon: float | None = None,
    **kwargs: Any,
) -> Tensor:
    """Compute `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, with the moments of `x` along `axis`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        gamma: Tensor of the shape of the dimensions `axis` of `x`, or of as many dimensions as `x`; `None` for 1.
        beta: The same; `None` for 0.
        axis: Axis or axes that are normalized together; `None` for all.
        epsilon: Number, not negative; 1e-7 by default.
        **kwargs: `rms_scaling=False`, Keras's deprecated option; for `True` see `op_rms_normalization`.

    Returns:
        Tensor of the shape of `x` and the promoted dtype.

    Raises:
        ArgumentError: `axis` is out of range, `gamma` or `beta` does not fit it, or `epsilon` is negative.
        ArgumentTypeError: `epsilon` is not a number, or another keyword is given.
        DTypeError: The operands are complex.

    Example:
        >>> import multiop
        >>> y = multiop.op_layer_normalization([1.0, 3.0], beta=[0.0, 10.0], epsilon=0.0)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [-1.0, 11.0]
    """
    return active().op_layer_normalization(x, gamma, beta, axis, args.shift(epsilon, **kwargs))


@boundary
@composite
def op_group_normalization(
    x: ArrayLike,
    groups: int,
    gamma: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    axis: int = -1,
    epsilon: float | None = None,
) -> Tensor:
    """Compute `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, with the moments of each group of channels.

    Args:
        x: Tensor of shape `(batch, ...)`, not complex; integers and bool become `floatx`.
        groups: How many groups of adjacent channels there are, of equal size. The moments are those of each element of
            the batch and each group, over all other dimensions.
        gamma: Vector of the size of `x` along `axis`, or `None` for 1.
        beta: Vector of the size of `x` along `axis`, or `None` for 0.
        axis: Dimension of the channels, not the first.
        epsilon: Number, not negative; 1e-7 by default.

    Returns:
        Tensor of the shape of `x` and the promoted dtype.

    Raises:
        ArgumentError: `groups` does not divide the number of channels or is below 1, `axis` is out of range or the
            first, `gamma` or `beta` does not fit it, or `epsilon` is negative.
        ArgumentTypeError: `groups` is not an int, or `epsilon` is not a number.
        DTypeError: The operands are complex.

    Example:
        >>> import multiop
        >>> y = multiop.op_group_normalization([[1.0, 3.0, 10.0, 50.0]], 2, beta=[0.0, 0.0, 0.0, 7.0], epsilon=0.0)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [[-1.0, 1.0, -1.0, 8.0]]
    """
    args.check_given(x=x)
    x, *vectors = operands(*[t for t in (x, gamma, beta) if t is not None])
    axis, n = args.single_axis(axis, len(x.shape)), args.count(groups, "groups", 1)
    if axis == 0:
        raise errors.ArgumentError("axis is 0, the batch, whose elements are normalized each by itself")
    shape = op_shape(x)
    channels = shape[axis]
    if isinstance(channels, int) and channels % n:
        raise errors.ArgumentError(f"groups must divide the number of channels, {channels}, got {n}")
    parts = [n, channels // n]

    def fit(name: str, vector: Tensor) -> Tensor:
        args.same_shape(vector.shape, x.shape[axis : axis + 1], name, "the channels of x")
        return op_reshape(vector, [1] * axis + parts + [1] * (len(shape) - axis - 1))

    names = [name for name, t in (("gamma", gamma), ("beta", beta)) if t is not None]
    given = dict(zip(names, map(fit, names, vectors), strict=True))
    y = op_reshape(x, [*shape[:axis], *parts, *shape[axis + 1 :]])
    y = op_layer_normalization(y, **given, axis=[k for k in range(1, len(shape) + 1) if k != axis], epsilon=epsilon)
    return op_reshape(y, shape)


@boundary
def op_rms_normalization(
    x: ArrayLike, scale: ArrayLike | None = None, axis: Axis = -1, epsilon: float | None = None
) -> Tensor:
    """Compute `x / sqrt(mean(x**2) + epsilon) * scale`, with the mean along `axis`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        scale: Tensor of the shape of the dimensions `axis` of `x`, or of as many dimensions as `x`; `None` for 1.
        axis: Axis or axes that are normalized together; `None` for all.
        epsilon: Number, not negative; 1e-7 by default.

    Returns:
        Tensor of the shape of `x` and the promoted dtype.

    Raises:
        ArgumentError: `axis` is out of range, `scale` does not fit it, or `epsilon` is negative.
        ArgumentTypeError: `epsilon` is not a number.
        DTypeError: The operands are complex.

    Example:
        >>> import multiop
        >>> y = multiop.op_rms_normalization([2.0, -2.0], scale=[1.0, 3.0], epsilon=0.0)
        >>> multiop.op_convert_to_numpy(y).tolist()
        [1.0, -3.0]
    """
    return active().op_rms_normalization(x, scale, axis, args.shift(epsilon))
