"""Reductions along axes."""

from __future__ import annotations

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite, mark_recomputed
from multiop._values import args, dtypes
from multiop._values.types import ArrayLike, Axis, DType, Tensor
from multiop.frontends.conversion import in_float32, op_cast, op_convert_to_tensor, op_dtype, op_shape
from multiop.frontends.elementwise import op_divide, op_multiply, op_subtract
from multiop.frontends.shapes import op_broadcast_to, op_ndim, op_reshape


@boundary
def op_sum(x: ArrayLike, axis: Axis = None, keepdims: bool = False, dtype: DType = None) -> Tensor:
    """Add up the entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.
        dtype: Dtype of the result, to which `x` is cast first.

    Returns:
        Tensor without the reduced axes. Bool and integers of fewer than 32 bits add up in `int32`, unsigned ones in
        `uint32`.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_sum([[1, 2], [3, 4]], axis=0)).tolist()
        [4, 6]
    """
    if dtype is not None:
        dtype = dtypes.name(dtype)
        return op_cast(active().op_sum(op_cast(x, dtype), axis, keepdims), dtype)
    return active().op_sum(x, axis, keepdims)


@boundary
def op_prod(x: ArrayLike, axis: Axis = None, keepdims: bool = False, dtype: DType = None) -> Tensor:
    """Multiply the entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.
        dtype: Dtype to multiply in; by default that of `x`, or 32 bits for smaller integers and bool.

    Returns:
        Tensor without the reduced axes.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        The product of the other entries, exact even if some are zero, to second order and beyond.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_prod([[1, 2], [3, 4]], axis=0)).tolist()
        [3, 8]
    """
    return active().op_prod(x, axis, keepdims, dtypes.name_or_none(dtype))


@boundary
def op_mean(x: ArrayLike, axis: Axis = None, keepdims: bool = False, dtype: DType = None) -> Tensor:
    """Average the entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.
        dtype: Floating or complex dtype of the result, to which `x` is cast first.

    Returns:
        Tensor without the reduced axes; integers and bool average to `floatx`, and 16-bit floats are added up in
        `float32`. NaN where there is nothing to average.

    Raises:
        ArgumentError: `axis` is out of range or named twice.
        DTypeError: `dtype` is an integer dtype or bool, which would truncate the average.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_mean([[1, 2], [3, 4]], axis=0)).tolist()
        [2.0, 3.0]
    """
    return active().op_mean(x if dtype is None else active().op_cast(x, dtypes.of_average(dtype)), axis, keepdims)


@boundary
def op_var(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Compute the variance of the entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Real tensor without the reduced axes: the mean squared distance from the mean (no degrees of freedom taken
        off).

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_var([1.0, 3.0])).tolist()
        1.0
    """
    return active().op_var(x, axis, keepdims)


@boundary
def op_std(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Compute the standard deviation of the entries of `x` along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Real tensor without the reduced axes: the square root of `op_var`.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        0 where all entries are equal.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_std([1.0, 3.0])).tolist()
        1.0
    """
    return active().op_std(x, axis, keepdims)


@boundary
def op_max(x: ArrayLike, axis: Axis = None, keepdims: bool = False, initial: ArrayLike | None = None) -> Tensor:
    """Return the largest entry of `x` along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.
        initial: Scalar that is compared too; the result if there is no entry.

    Returns:
        Tensor without the reduced axes, of the dtype of `x` (promoted with `initial`); NaN where an entry is NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice, or there is no entry and no `initial`.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the entry that is chosen, split evenly between those of a tie.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_max([[1, 5], [3, 4]], axis=0)).tolist()
        [3, 5]
    """
    return active().op_max(x, axis, keepdims, initial)


@boundary
def op_min(x: ArrayLike, axis: Axis = None, keepdims: bool = False, initial: ArrayLike | None = None) -> Tensor:
    """Return the smallest entry of `x` along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.
        initial: Scalar that is compared too; the result if there is no entry.

    Returns:
        Tensor without the reduced axes, of the dtype of `x` (promoted with `initial`); NaN where an entry is NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice, or there is no entry and no `initial`.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the entry that is chosen, split evenly between those of a tie.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_min([[1, 5], [3, 4]], axis=0)).tolist()
        [1, 4]
    """
    return active().op_min(x, axis, keepdims, initial)


@boundary
def op_argmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the largest entry of `x` along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis to search; by default `x` is searched as if it were flattened.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        `int32` tensor: the index of the first such entry, or of the first NaN if there is one.

    Raises:
        ArgumentError: `axis` is out of range, or there is no entry.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_argmax([[1, 5], [3, 2]], axis=0)).tolist()
        [1, 0]
    """
    return active().op_argmax(x, axis, keepdims)


@boundary
def op_argmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest entry of `x` along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis to search; by default `x` is searched as if it were flattened.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        `int32` tensor: the index of the first such entry, or of the first NaN if there is one.

    Raises:
        ArgumentError: `axis` is out of range, or there is no entry.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_argmin([[1, 5], [3, 2]], axis=0)).tolist()
        [0, 1]
    """
    return active().op_argmin(x, axis, keepdims)


@boundary
def op_all(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Say whether every entry of `x` is true along `axis`.

    Args:
        x: Tensor of any dtype; entries other than 0 are true, NaN included.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Bool tensor without the reduced axes; `True` where there is no entry.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_all([[True, True], [False, True]], axis=0)).tolist()
        [False, True]
    """
    return active().op_all(x, axis, keepdims)


@boundary
def op_any(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Say whether some entry of `x` is true along `axis`.

    Args:
        x: Tensor of any dtype; entries other than 0 are true, NaN included.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Bool tensor without the reduced axes; `False` where there is no entry.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_any([[True, True], [False, True]], axis=0)).tolist()
        [True, True]
    """
    return active().op_any(x, axis, keepdims)


@boundary
def op_logsumexp(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Compute `log(sum(exp(x)))` along `axis` without overflow.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes; `-inf` where there is no entry, or all are `-inf`.

    Raises:
        ArgumentError: `axis` is out of range or named twice.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        The softmax of `x`. It is 0 where all entries are `-inf`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_logsumexp([1000.0])).tolist()
        1000.0
    """
    return active().op_logsumexp(x, axis, keepdims)


@boundary
def op_cumsum(x: ArrayLike, axis: int | None = None, dtype: DType = None) -> Tensor:
    """Add up the entries of `x` along `axis`, keeping the sum so far.

    Args:
        x: Tensor of any dtype and shape.
        axis: Dimension to go along; by default `x` is flattened first.
        dtype: Dtype to accumulate in; by default that of `x`, or 32 bits for smaller integers and bool.

    Returns:
        Tensor of the shape of `x`; 16-bit floats are added up in `float32`.

    Raises:
        ArgumentError: `axis` is out of range.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cumsum([1, 2, 3])).tolist()
        [1, 3, 6]
    """
    return active().op_cumsum(x, axis, dtypes.name_or_none(dtype))


@boundary
def op_cumprod(x: ArrayLike, axis: int | None = None, dtype: DType = None) -> Tensor:
    """Multiply the entries of `x` along `axis`, keeping the product so far.

    Args:
        x: Tensor of any dtype and shape.
        axis: Dimension to go along; by default `x` is flattened first.
        dtype: Dtype to accumulate in; by default that of `x`, or 32 bits for smaller integers and bool.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `axis` is out of range.

    Gradient:
        Exact even where entries are zero, to second order and beyond.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cumprod([1, 2, 3])).tolist()
        [1, 2, 6]
    """
    return active().op_cumprod(x, axis, dtypes.name_or_none(dtype))


# composites


@boundary
def op_amax(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest entry of `x` along `axis`: another name for `op_max`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, of the dtype of `x`.

    Gradient:
        1 for the entry that is chosen, split evenly between those of a tie.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_amax([1, 5])).tolist()
        5
    """
    return op_max(x, axis, keepdims)


@boundary
def op_amin(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest entry of `x` along `axis`: another name for `op_min`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, of the dtype of `x`.

    Gradient:
        1 for the entry that is chosen, split evenly between those of a tie.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_amin([1, 5])).tolist()
        1
    """
    return op_min(x, axis, keepdims)


@boundary
@composite
def op_count_nonzero(x: ArrayLike, axis: Axis = None) -> Tensor:
    """Count the entries of `x` that are not zero along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.

    Returns:
        `int32` tensor without the reduced axes; NaN counts.

    Raises:
        ArgumentError: `axis` is out of range.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_count_nonzero([0, 1, 2])).tolist()
        2
    """
    return op_sum(op_cast(x, "bool"), axis)


@boundary
@composite
@mark_recomputed
def op_ptp(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the difference between the largest and the smallest entry of `x` along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, of the dtype of `x`.

    Raises:
        ArgumentError: `axis` is out of range.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ptp([1, 5, 3])).tolist()
        4
    """
    return op_subtract(op_max(x, axis, keepdims), op_min(x, axis, keepdims))


@boundary
def op_average(x: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None) -> Tensor:
    """Average the entries of `x` along `axis`, by weight.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        weights: Tensor of the shape of `x`, or of its shape along `axis`; by default all weights are equal.

    Returns:
        Tensor without the reduced axes; NaN or an infinity where the weights add up to 0.

    Raises:
        ArgumentError: `axis` is out of range, or `weights` does not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_average([1.0, 3.0], weights=[3.0, 1.0])).tolist()
        1.5
    """
    if weights is None:
        return op_mean(x, axis)
    x, weights = active().promote_floating(x, weights)  # before integers are multiplied, which may overflow
    shape = op_shape(x)
    if axis is not None and op_ndim(weights) < len(shape):
        axes = args.axes(axis, len(shape))
        weights = op_reshape(weights, [n if d in axes else 1 for d, n in enumerate(shape)])

    def average(x: Tensor, weights: Tensor) -> Tensor:
        total = op_sum(op_broadcast_to(weights, shape), axis)
        return op_divide(op_sum(op_multiply(x, weights), axis), total)

    return in_float32(average, x, weights)


@boundary
@composite
@mark_recomputed
def op_diff(a: ArrayLike, n: int = 1, axis: int = -1) -> Tensor:
    """Return the differences of neighbouring entries of `a` along `axis`.

    Args:
        a: Tensor; as in NumPy, the difference of two bools is whether they are unequal.
        n: The number of times the entries are differenced.
        axis: Dimension along which to take differences.

    Returns:
        Tensor of the dtype of `a`, smaller by `n` along `axis`.

    Raises:
        ArgumentError: `axis` is out of range, or `n` is negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_diff([1, 4, 9])).tolist()
        [3, 5]
    """
    if n < 0:
        raise errors.ArgumentError("n must not be negative")
    a = op_convert_to_tensor(a)
    dim = args.single_axis(axis, op_ndim(a))
    before = (slice(None),) * dim
    later, earlier = (*before, slice(1, None)), (*before, slice(None, -1))
    difference = active().op_not_equal if op_dtype(a) == "bool" else op_subtract
    for _ in range(n):
        if op_shape(a)[dim] == 0:
            break
        a = difference(a[later], a[earlier])
    return a
