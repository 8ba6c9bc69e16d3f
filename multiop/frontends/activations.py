"""Activations of neural networks."""

from __future__ import annotations

import math
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite, mark_recomputed
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Axis, Tensor
from multiop.frontends.conversion import op_cast, op_convert_to_tensor, op_dtype, op_shape, real_operand
from multiop.frontends.creation import op_ones_like
from multiop.frontends.elementwise import op_abs, op_clip, op_maximum, op_sqrt, op_square
from multiop.frontends.logical import op_equal, op_where
from multiop.frontends.reduction import op_cumsum, op_max, op_sum
from multiop.frontends.shapes import op_flip, op_moveaxis, op_ndim, op_reshape
from multiop.frontends.sorting import op_sort


@boundary
def op_relu(x: ArrayLike) -> Tensor:
    """Compute `max(x, 0)` for each entry of `x`.

    Args:
        x: Tensor, not complex; bool becomes `int32`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_relu([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return active().op_relu(x)


@boundary
def op_sigmoid(x: ArrayLike) -> Tensor:
    """Compute `1 / (1 + exp(-x))` for each entry of `x`.

    Args:
        x: Tensor; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sigmoid([0.0])).tolist()
        [0.5]
    """
    return active().op_sigmoid(x)


@boundary
def op_softplus(x: ArrayLike) -> Tensor:
    """Compute `log(1 + exp(x))` for each entry of `x`, without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_softplus([1000.0])).tolist()
        [1000.0]
    """
    return active().op_softplus(x)


@boundary
def op_softmax(x: ArrayLike, axis: Axis = -1) -> Tensor:
    """Compute `exp(x) / sum(exp(x))` along `axis`, without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension, or tuple of dimensions, over which to normalize; `None` for all dimensions.

    Returns:
        Tensor of the shape of `x`, whose entries along `axis` add up to 1; NaN where the largest entry is infinity or
        -infinity.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_softmax([1.0, 1.0])).tolist()
        [0.5, 0.5]
    """
    if axis is None or isinstance(axis, (tuple, list)):
        return _together(active().op_softmax, x, axis)
    return active().op_softmax(x, axis)


@boundary
def op_log_softmax(x: ArrayLike, axis: Axis = -1) -> Tensor:
    """Compute the logarithm of the softmax of `x` along `axis`, without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension, or tuple of dimensions, over which to normalize; `None` for all dimensions.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log_softmax([5.0])).tolist()
        [0.0]
    """
    if axis is None or isinstance(axis, (tuple, list)):
        return _together(active().op_log_softmax, x, axis)
    return active().op_log_softmax(x, axis)


@boundary
def op_relu6(x: ArrayLike) -> Tensor:
    """Compute `min(max(x, 0), 6)` for each entry of `x`.

    Args:
        x: Tensor, not complex; bool becomes `int32`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at 0 and at 6.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_relu6([-1.0, 2.0, 9.0])).tolist()
        [0.0, 2.0, 6.0]
    """
    return active().op_relu6(x)


@boundary
def op_leaky_relu(x: ArrayLike, negative_slope: float = 0.2) -> Tensor:
    """Compute `x` where it is positive, `negative_slope * x` elsewhere.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        negative_slope: Number.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentTypeError: `negative_slope` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        `negative_slope` at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_leaky_relu([-2.0, 2.0], 0.25)).tolist()
        [-0.5, 2.0]
    """
    return active().op_leaky_relu(x, args.number(negative_slope, "negative_slope"))


@boundary
def op_elu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    """Compute `x` where it is positive, `alpha * (exp(x) - 1)` elsewhere.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        alpha: Number; the result tends to `-alpha` as `x` falls.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentTypeError: `alpha` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        `alpha` at 0, and the second derivative is 0 there.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_elu([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return active().op_elu(x, args.number(alpha, "alpha"))


@boundary
def op_celu(x: ArrayLike, alpha: float = 1.0) -> Tensor:
    """Compute `x` where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        alpha: Number, not 0.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `alpha` is 0.
        ArgumentTypeError: `alpha` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 at 0, and the second derivative is 0 there.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_celu([0.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    rate = args.number(alpha, "alpha")
    if rate == 0:
        raise errors.ArgumentError("alpha must not be 0")
    return active().op_celu(x, rate)


@boundary
def op_selu(x: ArrayLike) -> Tensor:
    """Compute the scaled exponential linear unit of each entry of `x`.

    That is `1.0507... * x` where `x` is positive, `1.7580... * (exp(x) - 1)` elsewhere.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1.7580... at 0, and the second derivative is 0 there.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_selu([0.0])).tolist()
        [0.0]
    """
    return active().op_selu(x)


@boundary
def op_silu(x: ArrayLike) -> Tensor:
    """Compute `x * sigmoid(x)` for each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_silu([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return active().op_silu(x)


@boundary
def op_gelu(x: ArrayLike, approximate: bool = True) -> Tensor:
    """Compute `x` times the cumulative distribution function of the standard normal distribution at `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        approximate: Whether to compute that function as `(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2`, with an
            error of up to 0.0003; otherwise as `(1 + erf(x / sqrt(2))) / 2`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentTypeError: `approximate` is not a bool.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_gelu([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return active().op_gelu(x, approximate)


@boundary
def op_glu(x: ArrayLike, axis: int = -1) -> Tensor:
    """Multiply one half of `x` by the sigmoid of the other half.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension to split into halves.

    Returns:
        Tensor of half the size of `x` along `axis`.

    Raises:
        ArgumentError: `axis` is out of range, or its size is odd.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_glu([3.0, 0.0])).tolist()
        [1.5]
    """
    return active().op_glu(x, axis)


@boundary
def op_log_sigmoid(x: ArrayLike) -> Tensor:
    """Compute the logarithm of the sigmoid of each entry of `x`, without underflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_log_sigmoid([-1000.0])).tolist()
        [-1000.0]
    """
    return active().op_log_sigmoid(x)


@boundary
def op_softsign(x: ArrayLike) -> Tensor:
    """Compute `x / (1 + abs(x))` for each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 at 0, where the second derivative is 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_softsign([-1.0, 3.0])).tolist()
        [-0.5, 0.75]
    """
    return active().op_softsign(x)


@boundary
def op_soft_shrink(x: ArrayLike, threshold: float = 0.5) -> Tensor:
    """Move each entry of `x` towards 0 by `threshold`, and no further than 0.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        threshold: Number, not negative.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `threshold` is negative.
        ArgumentTypeError: `threshold` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at `-threshold` and `threshold`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_soft_shrink([-2.0, 0.25, 2.0])).tolist()
        [-1.5, 0.0, 1.5]
    """
    return active().op_soft_shrink(x, args.not_negative(threshold, "threshold"))


@boundary
def op_hard_shrink(x: ArrayLike, threshold: float = 0.5) -> Tensor:
    """Set the entries of `x` from `-threshold` to `threshold` to 0.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        threshold: Number; if it is negative, every entry is kept.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `threshold` is NaN.
        ArgumentTypeError: `threshold` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at `-threshold` and `threshold`, where the function jumps.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hard_shrink([-2.0, 0.25, 2.0])).tolist()
        [-2.0, 0.0, 2.0]
    """
    threshold = args.number(threshold, "threshold")
    if math.isnan(threshold):
        raise errors.ArgumentError("threshold must not be NaN")
    return active().op_hard_shrink(x, threshold)


@boundary
def op_tanh_shrink(x: ArrayLike) -> Tensor:
    """Compute `x - tanh(x)` for each entry of `x`.

    Near 0, where the two cancel, the error is small relative to `x`, but not relative to the result.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_tanh_shrink([0.0, -100.0])).tolist()
        [0.0, -99.0]
    """
    return active().op_tanh_shrink(x)


@boundary
def op_threshold(x: ArrayLike, threshold: float, default_value: float) -> Tensor:
    """Set the entries of `x` that are not above `threshold` to `default_value`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        threshold: Number.
        default_value: Number.

    Returns:
        Tensor of the shape of `x`; NaN stays NaN.

    Raises:
        ArgumentTypeError: `threshold` or `default_value` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at `threshold`, where the function jumps.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_threshold([-2.0, 1.0, 3.0], 1.0, 5.0)).tolist()
        [5.0, 5.0, 3.0]
    """
    return active().op_threshold(x, args.number(threshold, "threshold"), args.number(default_value, "default_value"))


@boundary
def op_hard_sigmoid(x: ArrayLike) -> Tensor:
    """Compute `min(max(x / 6 + 1 / 2, 0), 1)` for each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at -3 and 3.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hard_sigmoid([-4.0, 0.0, 4.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    return active().op_hard_sigmoid(x)


@boundary
def op_hard_silu(x: ArrayLike) -> Tensor:
    """Compute `x * hard_sigmoid(x)` for each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at -3, 1 at 3.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hard_silu([-1.5, 0.0, 4.0])).tolist()
        [-0.375, 0.0, 4.0]
    """
    return active().op_hard_silu(x)


def _together(op: Any, x: ArrayLike, axis: Any) -> Tensor:
    """Apply `op`, which takes a single axis, to several dimensions of `x` as if they were flattened into one."""
    x = op_convert_to_tensor(x)
    shape = op_shape(x)
    axes = args.axes(axis, len(shape))
    last = tuple(range(len(shape) - len(axes), len(shape)))
    moved = op_moveaxis(x, axes, last)
    sizes = op_shape(moved)
    rows = op_reshape(moved, (*sizes[: len(shape) - len(axes)], math.prod(sizes[len(shape) - len(axes) :])))
    return op_moveaxis(op_reshape(op(rows, len(shape) - len(axes)), sizes), last, axes)


# composites


@boundary
@composite
@mark_recomputed
def op_sparse_plus(x: ArrayLike) -> Tensor:
    """Compute `(x + 1)**2 / 4` from -1 to 1, 0 below, `x` above.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        The second derivative is 0 at -1 and 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sparse_plus([-2.0, 0.0, 2.0])).tolist()
        [0.0, 0.25, 2.0]
    """
    x, _ = real_operand(x)
    bent = op_abs(x) < 1
    return op_where(bent, op_square(op_where(bent, x + 1, 0)) / 4, op_where(x <= -1, 0, x))


@boundary
@composite
@mark_recomputed
def op_sparse_sigmoid(x: ArrayLike) -> Tensor:
    """Compute `min(max((x + 1) / 2, 0), 1)` for each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at -1 and 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sparse_sigmoid([-2.0, 0.0, 2.0])).tolist()
        [0.0, 0.5, 1.0]
    """
    x, _ = real_operand(x)
    return op_where(x <= -1, 0, op_where(x >= 1, 1, (x + 1) / 2))


@boundary
@composite
@mark_recomputed
def op_squareplus(x: ArrayLike, b: float = 4) -> Tensor:
    """Compute `(x + sqrt(x**2 + b)) / 2` for each entry of `x`, without overflow or cancellation.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        b: Number, not negative: the larger, the smoother the bend at 0.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `b` is negative.
        ArgumentTypeError: `b` is not a number.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1/2 at 0 if `b` is 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_squareplus([0.0, 1.5])).tolist()
        [1.0, 2.0]
    """
    b = args.not_negative(b, "b")
    x, dtype = real_operand(x)
    working = dtypes.join(dtype, "float32")
    x = op_cast(x, working)
    size = op_abs(x)
    bent = (size < dtypes.EXTREMES[working][1] ** 0.25) & (size + b > 0)  # elsewhere the root is the size of x
    root = op_where(bent, op_sqrt(op_square(op_where(bent, x, 1)) + b), size)
    return op_cast(op_where(x < 0, b / 2 / (root - op_where(x < 0, x, -1)), (x + root) / 2), dtype)


@boundary
@composite
def op_sparsemax(x: ArrayLike, axis: int = -1) -> Tensor:
    """Project `x` along `axis` onto the vectors that are not negative and add up to 1.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Dimension to normalize along.

    Returns:
        Tensor of the shape of `x`, 0 where an entry is far below the largest.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        That of the projection with the entries of the result that are 0 held at 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sparsemax([0.5, 1.0, -1.0])).tolist()
        [0.25, 0.75, 0.0]
    """
    x, dtype = real_operand(x)
    axis = args.single_axis(axis, op_ndim(x))
    if x.shape[axis] == 0:
        return x
    x, constant = op_cast(x, dtypes.join(dtype, "float32")), active().stop_gradient
    x = x - constant(op_max(x, axis, keepdims=True))
    top = op_flip(op_sort(constant(x), axis), axis)
    rank, sums = op_cumsum(op_ones_like(top), axis), op_cumsum(top, axis)
    count = op_sum(op_cast(1 + rank * top > sums, op_dtype(x)), axis, keepdims=True)
    level = (op_sum(op_where(op_equal(rank, op_maximum(count, 1)), sums, 0), axis, keepdims=True) - 1) / count
    outside = constant(x) <= level  # false for NaN
    level = (op_sum(op_where(outside, 0, x), axis, keepdims=True) - 1) / count
    return op_cast(op_where(outside, 0, x - level), dtype)


@boundary
def op_hard_tanh(x: ArrayLike) -> Tensor:
    """Compute `min(max(x, -1), 1)` for each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 at -1 and 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hard_tanh([-4.0, 0.5, 4.0])).tolist()
        [-1.0, 0.5, 1.0]
    """
    return op_clip(x, -1.0, 1.0)


@boundary
def op_hard_swish(x: ArrayLike) -> Tensor:
    """Compute `x * hard_sigmoid(x)` for each entry of `x`: another name for `op_hard_silu`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        0 at -3, 1 at 3.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_hard_swish([-1.5, 0.0, 4.0])).tolist()
        [-0.375, 0.0, 4.0]
    """
    return op_hard_silu(x)


@boundary
def op_swish(x: ArrayLike) -> Tensor:
    """Compute `x * sigmoid(x)` for each entry of `x`: another name for `op_silu`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_swish([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    return op_silu(x)
