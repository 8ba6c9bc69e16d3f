"""Statistics: averages that skip NaN, order statistics, correlation, integration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite, is_compiling, mark_recomputed
from multiop._values import args, dtypes, host
from multiop._values.types import ArrayLike, Axis, DType, Tensor
from multiop.frontends.conversion import (
    in_float32,
    on_device_of,
    op_cast,
    op_convert_to_tensor,
    op_dtype,
    op_shape,
    operands,
    widen_halves,
)
from multiop.frontends.creation import op_full
from multiop.frontends.elementwise import (
    op_abs,
    op_add,
    op_ceil,
    op_clip,
    op_conj,
    op_divide,
    op_floor,
    op_imag,
    op_maximum,
    op_multiply,
    op_real,
    op_round,
    op_sqrt,
    op_square,
    op_subtract,
)
from multiop.frontends.indexing import op_take, op_take_along_axis
from multiop.frontends.logical import (
    op_equal,
    op_greater_equal,
    op_isfinite,
    op_isnan,
    op_less_equal,
    op_logical_and,
    op_logical_not,
    op_where,
)
from multiop.frontends.products import op_matmul
from multiop.frontends.reduction import (
    op_all,
    op_any,
    op_argmax,
    op_argmin,
    op_cumprod,
    op_cumsum,
    op_diff,
    op_max,
    op_mean,
    op_min,
    op_prod,
    op_sum,
    op_var,
)
from multiop.frontends.shapes import (
    op_concatenate,
    op_expand_dims,
    op_flip,
    op_moveaxis,
    op_ndim,
    op_reshape,
    op_swapaxes,
    op_transpose,
)
from multiop.frontends.sorting import op_sort


@boundary
def op_correlate(x1: ArrayLike, x2: ArrayLike, mode: str = "valid") -> Tensor:
    """Correlate two vectors: entry `k` is the sum of `x1[n + k] * conj(x2[n])` over `n`.

    Args:
        x1: Vector that is not empty.
        x2: Vector that is not empty.
        mode: `"valid"`: only where the shorter vector lies within the longer one; `"same"`: as many entries as the
            longer one has; `"full"`: wherever the two overlap. Beyond their ends the vectors count as 0.

    Returns:
        Vector of the promoted dtype; 16-bit floats are added up in `float32`.

    Raises:
        ArgumentError: An operand is not a vector, or is empty, or `mode` is unknown.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_correlate([1, 2, 3], [0, 1], mode="full")).tolist()
        [1, 2, 3, 0]
    """
    args.choice(mode, ("valid", "same", "full"), "mode")
    x1, x2 = operands(x1, x2)
    n1, n2 = _length(x1, "x1"), _length(x2, "x2")
    dtype = dtypes.result_type(op_dtype(x1), op_dtype(x2))
    x1, x2 = widen_halves(op_cast(x1, dtype)), widen_halves(op_conj(op_cast(x2, dtype)))
    long, short = (x1, x2) if n1 >= n2 else (x2, x1)
    width = min(n1, n2)
    before = {"valid": 0, "same": width // 2, "full": width - 1}[mode]
    after = {"valid": 0, "same": width - 1 - width // 2, "full": width - 1}[mode]
    found = op_cast(active().op_correlate(long, short, before, after), dtype)
    return found if n1 >= n2 else op_flip(found)


# composites


@boundary
def op_convolve(x1: ArrayLike, x2: ArrayLike, mode: str = "full") -> Tensor:
    """Convolve two vectors: entry `k` is the sum of `x1[n] * x2[k - n]` over `n`.

    Args:
        x1: Vector that is not empty.
        x2: Vector that is not empty.
        mode: `"full"`: wherever the two overlap; `"same"`: as many entries as the longer one has, in the middle;
            `"valid"`: only where the shorter vector lies within the longer one. Beyond their ends the vectors count as
            0.

    Returns:
        Vector of the promoted dtype; 16-bit floats are added up in `float32`.

    Raises:
        ArgumentError: An operand is not a vector, or is empty, or `mode` is unknown.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_convolve([1, 2, 3], [0, 1])).tolist()
        [0, 1, 2, 3]
    """
    x1, x2 = operands(x1, x2)
    long, short = (x1, x2) if _length(x1, "x1") >= _length(x2, "x2") else (x2, x1)
    return op_correlate(long, op_conj(op_flip(short)), mode)


@boundary
@composite
@mark_recomputed
def op_nansum(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Add up the entries of `x` that are not NaN, along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, as `op_sum`; 0 where all are NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nansum([1.0, float('nan'), 3.0])).tolist()
        4.0
    """
    return op_sum(_fill_nan(x, 0), axis, keepdims)


@boundary
@composite
@mark_recomputed
def op_nanprod(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Multiply the entries of `x` that are not NaN, along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, as `op_prod`; 1 where all are NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        0 at NaN; elsewhere the product of the others, exact even if some are zero.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanprod([1.0, float('nan'), 3.0])).tolist()
        3.0
    """
    return op_prod(_fill_nan(x, 1), axis, keepdims)


@boundary
@composite
def op_nancumsum(x: ArrayLike, axis: int | None = None, dtype: DType = None) -> Tensor:
    """Add up the entries of `x` from the first to each one, NaN counting as 0.

    Args:
        x: Tensor of any dtype and shape.
        axis: Dimension to go along; `None` goes along `x` as if it were flattened.
        dtype: Dtype to compute in; by default that of `x`, or 32 bits for smaller integers and bool.

    Returns:
        Tensor of the shape of `x`, or a vector if `axis` is `None`.

    Raises:
        ArgumentError: `axis` is out of range.

    Gradient:
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nancumsum([1.0, float('nan'), 3.0])).tolist()
        [1.0, 1.0, 4.0]
    """
    return op_cumsum(_fill_nan(x, 0), axis, dtype)


@boundary
@composite
def op_nancumprod(x: ArrayLike, axis: int | None = None, dtype: DType = None) -> Tensor:
    """Multiply the entries of `x` from the first to each one, NaN counting as 1.

    Args:
        x: Tensor of any dtype and shape.
        axis: Dimension to go along; `None` goes along `x` as if it were flattened.
        dtype: Dtype to compute in; by default that of `x`, or 32 bits for smaller integers and bool.

    Returns:
        Tensor of the shape of `x`, or a vector if `axis` is `None`.

    Raises:
        ArgumentError: `axis` is out of range.

    Gradient:
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nancumprod([1.0, float('nan'), 3.0])).tolist()
        [1.0, 1.0, 3.0]
    """
    return op_cumprod(_fill_nan(x, 1), axis, dtype)


@boundary
@composite
@mark_recomputed
def op_nanmean(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Average the entries of `x` that are not NaN, along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, as `op_mean`; NaN where there is nothing to average.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanmean([1.0, float('nan'), 3.0])).tolist()
        2.0
    """
    x = op_convert_to_tensor(x)
    dtype = op_dtype(x)
    if dtype not in dtypes.INEXACT:
        return op_mean(x, axis, keepdims)
    count = op_sum(op_logical_not(op_isnan(x)), axis, keepdims)
    mean = op_divide(op_sum(_fill_nan(widen_halves(x), 0), axis, keepdims), op_maximum(count, 1))
    none = complex(math.nan, math.nan) if dtype in dtypes.COMPLEX else math.nan
    return op_cast(op_where(op_equal(count, 0), none, mean), dtype)


@boundary
@composite
@mark_recomputed
def op_nanvar(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Compute the variance of the entries of `x` that are not NaN, along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Real tensor without the reduced axes: the mean squared distance from the mean, without a correction of the
        degrees of freedom; NaN where all are NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanvar([1.0, float('nan'), 3.0])).tolist()
        1.0
    """
    x = op_convert_to_tensor(x)
    if op_dtype(x) not in dtypes.INEXACT:
        return op_var(x, axis, keepdims)
    variance, none = _variance(x, axis, keepdims)
    return op_where(none, math.nan, variance)


@boundary
@composite
@mark_recomputed
def op_nanstd(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Compute the standard deviation of the entries of `x` that are not NaN, along `axis`.

    Args:
        x: Tensor of any dtype and shape.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Real tensor without the reduced axes: the square root of `op_nanvar`.

    Raises:
        ArgumentError: `axis` is out of range or named twice.

    Gradient:
        0 at NaN, and where all others are equal.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanstd([1.0, float('nan'), 3.0])).tolist()
        1.0
    """
    x = _floating(x)
    return in_float32(lambda x: _deviation(x, axis, keepdims), x)


def _deviation(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    variance, none = _variance(x, axis, keepdims)
    constant = op_equal(variance, 0)  # there the gradient of the root is infinite, but that of the deviation is 0
    deviation = op_where(constant, 0, op_sqrt(op_where(constant, 1, variance)))
    return op_where(none, math.nan, deviation)


@boundary
@composite
@mark_recomputed
def op_nanmax(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest entry of `x` that is not NaN, along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, of the dtype of `x`; NaN where all are NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice, or there is nothing to choose from.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the entry that is chosen, in equal parts for those of a tie; 0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanmax([1.0, float('nan'), 3.0])).tolist()
        3.0
    """
    return _nan_extreme(op_max, -math.inf, x, axis, keepdims)


@boundary
@composite
@mark_recomputed
def op_nanmin(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest entry of `x` that is not NaN, along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, of the dtype of `x`; NaN where all are NaN.

    Raises:
        ArgumentError: `axis` is out of range or named twice, or there is nothing to choose from.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the entry that is chosen, in equal parts for those of a tie; 0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanmin([1.0, float('nan'), 3.0])).tolist()
        1.0
    """
    return _nan_extreme(op_min, math.inf, x, axis, keepdims)


@boundary
@composite
def op_nanargmax(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first largest entry of `x` that is not NaN, along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis to reduce; `None` gives the index into `x` as if it were flattened.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        `int32` tensor without the reduced axes; -1 where all are NaN (NumPy raises there).

    Raises:
        ArgumentError: `axis` is out of range, or there is nothing to choose from.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanargmax([1.0, float('nan'), 3.0])).tolist()
        2
    """
    return _nan_arg_extreme(op_argmax, op_max, -math.inf, x, axis, keepdims)


@boundary
@composite
def op_nanargmin(x: ArrayLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first smallest entry of `x` that is not NaN, along `axis`.

    Args:
        x: Tensor, not complex.
        axis: Axis to reduce; `None` gives the index into `x` as if it were flattened.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        `int32` tensor without the reduced axes; -1 where all are NaN (NumPy raises there).

    Raises:
        ArgumentError: `axis` is out of range, or there is nothing to choose from.
        DTypeError: The operands are complex; complex numbers have no order.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanargmin([1.0, float('nan'), 3.0])).tolist()
        0
    """
    return _nan_arg_extreme(op_argmin, op_min, math.inf, x, axis, keepdims)


@boundary
def op_quantile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the value below which a share `q` of the entries of `x` lie.

    Args:
        x: Tensor, not complex.
        q: Number from 0 to 1, or a vector of them.
        axis: Axis or axes to reduce; by default all of them.
        method: What to return between the entries below and above: `"linear"` interpolates, `"midpoint"` is their
            mean, `"lower"` and `"higher"` are one of them, `"nearest"` is the nearer one (of two equally near, the one
            of even rank).
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, after the axis of a vector `q`; integers and bool become `floatx`.
        NaN where an entry is NaN, or where there are none.

    Raises:
        ArgumentError: `axis` is out of range or named twice, `q` is out of range or not a vector, or `method` is
            unknown.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the two neighbours by their weights. For a tensor `q` it is the slope between them, 0 at an entry.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_quantile([1.0, 2.0, 4.0], 0.75)).tolist()
        3.0
    """
    return _quantile(x, q, 1, axis, method, keepdims, False)


@boundary
def op_percentile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the value below which `q` percent of the entries of `x` lie.

    Args:
        x: Tensor, not complex.
        q: Number from 0 to 100, or a vector of them.
        axis: Axis or axes to reduce; by default all of them.
        method: What to return between the entries below and above: `"linear"` interpolates, `"midpoint"` is their
            mean, `"lower"` and `"higher"` are one of them, `"nearest"` is the nearer one (of two equally near, the one
            of even rank).
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, after the axis of a vector `q`; integers and bool become `floatx`.
        NaN where an entry is NaN, or where there are none.

    Raises:
        ArgumentError: `axis` is out of range or named twice, `q` is out of range or not a vector, or `method` is
            unknown.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the two neighbours by their weights. For a tensor `q` it is the slope between them, 0 at an entry.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_percentile([1.0, 2.0, 4.0], 75)).tolist()
        3.0
    """
    return _quantile(x, q, 100, axis, method, keepdims, False)


@boundary
def op_median(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the middle entry of `x` along `axis`, or the mean of the two in the middle.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes; integers and bool become `floatx`.
        NaN where an entry is NaN, or where there are none.

    Raises:
        ArgumentError: `axis` is out of range or named twice.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the middle entry, or a half for each of two.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_median([1.0, 2.0, 4.0, 8.0])).tolist()
        3.0
    """
    return op_quantile(x, 0.5, axis, "linear", keepdims)


@boundary
def op_nanquantile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the value below which a share `q` of the entries of `x` lie, ignoring NaN.

    Args:
        x: Tensor, not complex.
        q: Number from 0 to 1, or a vector of them.
        axis: Axis or axes to reduce; by default all of them.
        method: What to return between the entries below and above: `"linear"` interpolates, `"midpoint"` is their
            mean, `"lower"` and `"higher"` are one of them, `"nearest"` is the nearer one (of two equally near, the one
            of even rank).
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, after the axis of a vector `q`; integers and bool become `floatx`.
        NaN where there are none.

    Raises:
        ArgumentError: `axis` is out of range or named twice, `q` is out of range or not a vector, or `method` is
            unknown.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the two neighbours by their weights. For a tensor `q` it is the slope between them, 0 at an entry.
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanquantile([1.0, 2.0, 4.0, float('nan')], 0.75)).tolist()
        3.0
    """
    return _quantile(x, q, 1, axis, method, keepdims, True)


@boundary
def op_nanpercentile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the value below which `q` percent of the entries of `x` lie, ignoring NaN.

    Args:
        x: Tensor, not complex.
        q: Number from 0 to 100, or a vector of them.
        axis: Axis or axes to reduce; by default all of them.
        method: What to return between the entries below and above: `"linear"` interpolates, `"midpoint"` is their
            mean, `"lower"` and `"higher"` are one of them, `"nearest"` is the nearer one (of two equally near, the one
            of even rank).
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes, after the axis of a vector `q`; integers and bool become `floatx`.
        NaN where there are none.

    Raises:
        ArgumentError: `axis` is out of range or named twice, `q` is out of range or not a vector, or `method` is
            unknown.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        Goes to the two neighbours by their weights. For a tensor `q` it is the slope between them, 0 at an entry.
        0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanpercentile([1.0, 2.0, 4.0, float('nan')], 75)).tolist()
        3.0
    """
    return _quantile(x, q, 100, axis, method, keepdims, True)


@boundary
def op_nanmedian(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the middle entry of `x` that is not NaN along `axis`, or the mean of the two in the middle.

    Args:
        x: Tensor, not complex.
        axis: Axis or axes to reduce; by default all of them.
        keepdims: Whether reduced axes stay, with size 1.

    Returns:
        Tensor without the reduced axes; integers and bool become `floatx`.
        NaN where there are none.

    Raises:
        ArgumentError: `axis` is out of range or named twice.
        DTypeError: The operands are complex; complex numbers have no order.

    Gradient:
        1 for the middle entry, or a half for each of two. 0 at NaN.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_nanmedian([1.0, float('nan'), 3.0])).tolist()
        2.0
    """
    return op_nanquantile(x, 0.5, axis, "linear", keepdims)


@boundary
def op_moments(x: ArrayLike, axes: Axis, keepdims: bool = False, synchronized: bool = False) -> tuple[Tensor, Tensor]:
    """Compute mean and variance of the entries of `x` along `axes`.

    Args:
        x: Tensor of any dtype and shape.
        axes: Axis or axes to reduce; `None` for all of them.
        keepdims: Whether reduced axes stay, with size 1.
        synchronized: Must be `False`: multiop does not compute over the replicas of a distributed program.

    Returns:
        Two tensors: `op_mean` and `op_var` of `x`.

    Raises:
        ArgumentError: `axes` is out of range or named twice.
        UnsupportedError: `synchronized` is set.

    Example:
        >>> import multiop
        >>> mean, variance = multiop.op_moments([1.0, 3.0], axes=[0])
        >>> float(mean), float(variance)
        (2.0, 1.0)
    """
    if synchronized:
        reason = "multiop reduces within one program alone: https://keras.io/api/ops/nn/#moments-function"
        raise errors.UnsupportedError(f"synchronized: {reason}")
    return op_mean(x, axes, keepdims), op_var(x, axes, keepdims)


@boundary
@composite
@mark_recomputed
def op_corrcoef(x: ArrayLike) -> Tensor:
    """Compute the correlation coefficients of the rows of `x`.

    Args:
        x: Matrix with a row per variable and a column per observation, or the observations of one variable.

    Returns:
        Matrix with a row and a column per variable, a scalar for one; integers and bool become `floatx`. NaN for a
        variable that is constant.

    Raises:
        ArgumentError: `x` has another number of dimensions.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_corrcoef([[1.0, 2.0, 3.0], [3.0, 5.0, 7.0]])).round().tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    x = _floating(x)
    if op_ndim(x) not in (1, 2):
        raise errors.ArgumentError("x must have one or two dimensions")
    x = x[0] if op_ndim(x) == 2 and op_shape(x)[0] == 1 else x
    dtype = op_dtype(x)
    x = widen_halves(x)
    x = op_subtract(x, op_mean(x, -1, True))
    # scaled to about 1, so that no square overflows or vanishes; the scale cancels
    x = op_divide(x, active().stop_gradient(op_max(op_abs(x), -1, True, 0)))
    x = op_divide(x, op_sqrt(op_sum(_squares(x), -1, True)))
    found = op_matmul(x, op_conj(op_swapaxes(x, -1, -2) if op_ndim(x) == 2 else x))
    if dtype not in dtypes.COMPLEX:  # rounding must not exceed 1, and the clip must not change the derivatives
        found = op_subtract(found, active().stop_gradient(op_subtract(found, op_clip(found, -1, 1))))
    return op_cast(found, dtype)


@boundary
def op_cov(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Tensor:
    """Compute the covariances of the rows of `x`.

    Args:
        x: Matrix with a row per variable and a column per observation, or the observations of one variable.
        y: More variables, in the form of `x`.
        rowvar: Whether a row is a variable; otherwise a column is.
        bias: Whether to divide by the number of observations, instead of one less.
        ddof: What the number of observations is reduced by; overrides `bias`.
        fweights: Vector that says how often each observation occurs: integers.
        aweights: Vector of weights of the observations, not negative.

    Returns:
        Matrix with a row and a column per variable, a scalar for one; integers and bool become `floatx`. NaN or
        infinity where there are too few observations.

    Raises:
        ArgumentError: `x` or `y` has another number of dimensions, or the numbers of observations differ.
        DTypeError: `fweights` are not integers, or `aweights` are complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cov([[1.0, 2.0, 3.0], [3.0, 5.0, 7.0]])).tolist()
        [[1.0, 2.0], [2.0, 4.0]]
    """
    given = [one for one in (x, y, fweights, aweights) if one is not None]
    tensors = iter(operands(*given))
    x, y, counts, weights = (None if one is None else next(tensors) for one in (x, y, fweights, aweights))
    variables = [_variables(one, name, rowvar) for one, name in ((x, "x"), (y, "y")) if one is not None]
    if len({op_shape(one)[1] for one in variables}) > 1:
        raise errors.ArgumentError(f"x and y have {[op_shape(one)[1] for one in variables]} observations")
    dtype = dtypes.to_floating(dtypes.result_type(*map(op_dtype, variables)))
    x = widen_halves(op_concatenate([op_cast(one, dtype) for one in variables]))
    n, real = op_shape(x)[1], dtypes.REAL_PART.get(dtype, dtype)
    if counts is not None and op_dtype(counts) not in dtypes.INTEGER:
        raise errors.DTypeError(f"fweights must be integers, got {op_dtype(counts)}")
    if weights is not None and op_dtype(weights) in dtypes.COMPLEX:
        raise errors.DTypeError(f"aweights must be real, got {op_dtype(weights)}")
    for name, one in (("fweights", counts), ("aweights", weights)):
        if one is not None and op_shape(one) != (n,):
            raise errors.ArgumentError(f"{name} must be a vector of {n} entries, not of shape {op_shape(one)}")
    less = (0 if bias else 1) if ddof is None else args.integer(ddof, "ddof")
    factors = [widen_halves(op_cast(one, real)) for one in (counts, weights) if one is not None]
    if not factors:
        mean, share = op_mean(x, -1, True), max(n - less, 0)
        factor = None
    else:
        factor = factors[0] if len(factors) == 1 else op_multiply(*factors)
        total = op_sum(factor)
        mean = op_divide(op_sum(op_multiply(x, factor), -1, True), total)
        lost = (
            less if weights is None else op_divide(op_multiply(op_sum(op_multiply(factor, factors[-1])), less), total)
        )
        share = op_maximum(op_subtract(total, lost), 0)
    x = op_subtract(x, mean)
    other = op_conj(op_swapaxes(x if factor is None else op_multiply(x, factor), -1, -2))
    found = op_cast(op_divide(op_matmul(x, other), share), dtype)
    return found[0, 0] if op_shape(found) == (1, 1) else found


def _variables(x: Tensor, name: str, rowvar: bool) -> Tensor:
    """Return a matrix with a row per variable."""
    if op_ndim(x) not in (1, 2):
        raise errors.ArgumentError(f"{name} must have one or two dimensions, not {op_ndim(x)}")
    return op_expand_dims(x, 0) if op_ndim(x) == 1 else x if rowvar else op_swapaxes(x, 0, 1)


@boundary
@composite
@mark_recomputed
def op_trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Tensor:
    """Integrate `y` along `axis` by the trapezoidal rule.

    Args:
        y: Tensor of any dtype and shape: the values of the function.
        x: The points: a vector, or a tensor whose shape broadcasts with that of `y`; by default `dx` apart.
        dx: Distance between neighbouring points, used if there is no `x`.
        axis: Dimension to integrate along.

    Returns:
        Tensor without that axis; integers and bool become `floatx`.

    Raises:
        ArgumentError: `axis` is out of range, or `x` does not fit.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_trapezoid([1.0, 2.0, 4.0])).tolist()
        4.5
    """
    y, x = operands(y, x) if x is not None else (y, None)
    y = _floating(y)
    axis = args.single_axis(axis, op_ndim(y))
    y = op_moveaxis(op_multiply(y, 0.5), axis, -1)
    if x is not None:
        x = op_moveaxis(x, axis, -1) if op_ndim(x) > 1 else x
        n1, n2 = op_shape(x)[-1:], op_shape(y)[-1:]
        if not n1 or (isinstance(n1[0], int) and isinstance(n2[0], int) and n1 != n2):  # one distance would fit any y
            raise errors.ArgumentError(f"x is of size {n1}, y of size {n2}")
        exact = dtypes.result_type(op_dtype(y), "float32")  # differences of small integers may overflow
        dx = op_cast(op_diff(op_cast(x, exact)), op_dtype(y)) if op_dtype(x) in dtypes.INTEGER else op_diff(x)
    areas = op_add(y[..., 1:], y[..., :-1])
    return op_sum(areas if type(dx) in (int, float) and dx == 1 else op_multiply(areas, dx), -1)


# parts of the above


def _floating(x: ArrayLike) -> Tensor:
    """Return `x` as a tensor of floats: integers and bool become `floatx`."""
    x = op_convert_to_tensor(x)
    return op_cast(x, dtypes.to_floating(op_dtype(x)))


def _fill_nan(x: ArrayLike, number: float) -> Tensor:
    """Return `x` with `number` in place of NaN."""
    x = op_convert_to_tensor(x)
    return op_where(op_isnan(x), number, x) if op_dtype(x) in dtypes.INEXACT else x


def _length(x: Tensor, name: str) -> int:
    """Return the size of a vector."""
    shape = op_shape(x)
    if len(shape) != 1 or not isinstance(shape[0], int) or shape[0] == 0:
        raise errors.ArgumentError(f"{name} must be a vector of a known size that is not 0, not of shape {shape}")
    return shape[0]


def _squares(x: Tensor) -> Tensor:
    """Return the squared absolute values of `x`."""
    return op_add(op_square(op_real(x)), op_square(op_imag(x))) if op_dtype(x) in dtypes.COMPLEX else op_square(x)


def _variance(x: Tensor, axis: Axis, keepdims: bool) -> tuple[Tensor, Tensor]:
    """Return the variance of the entries that are not NaN, 0 where there are none, and a mask of these places."""
    dtype = op_dtype(op_real(x))
    nan, x = op_isnan(x), widen_halves(x)
    count = op_maximum(op_sum(op_logical_not(nan), axis, True), 1)
    x = _fill_nan(x, 0)
    centred = op_where(nan, 0, op_subtract(x, op_divide(op_sum(x, axis, True), count)))
    variance = op_sum(op_divide(_squares(centred), count), axis, keepdims)
    return op_cast(variance, dtype), op_all(nan, axis, keepdims)


def _nan_extreme(reduce: Callable[..., Tensor], worst: float, x: ArrayLike, axis: Axis, keepdims: bool) -> Tensor:
    x = op_convert_to_tensor(x)
    found = reduce(_fill_nan(x, worst), axis, keepdims)
    if op_dtype(x) not in dtypes.INEXACT:
        return found
    # where that is the replacement for NaN, the other entries, if any, are all equal to it
    return op_where(op_equal(found, worst), op_nanmean(x, axis, keepdims), found)


def _nan_arg_extreme(
    arg_reduce: Callable[..., Tensor],
    reduce: Callable[..., Tensor],
    worst: float,
    x: ArrayLike,
    axis: int | None,
    keepdims: bool,
) -> Tensor:
    x = op_convert_to_tensor(x)
    if op_dtype(x) not in dtypes.INEXACT:
        return arg_reduce(x, axis, keepdims)
    best = op_equal(x, reduce(_fill_nan(x, worst), axis, True))
    return op_where(op_any(best, axis, keepdims), op_argmax(best, axis, keepdims), -1)


def _quantile(
    x: ArrayLike, q: ArrayLike, whole: int, axis: Axis, method: str, keepdims: bool, skip_nan: bool
) -> Tensor:
    """Return the quantiles `q / whole`, of all entries or of those that are not NaN."""
    args.choice(method, ("linear", "lower", "higher", "midpoint", "nearest"), "method")
    if host.is_scalar(q):
        return _at_known_share(x, q, whole, axis, method, keepdims, skip_nan)
    if not isinstance(q, (list, tuple, np.ndarray)):
        x, q = operands(x, q)
    return _at_share(x, q, whole, axis, method, keepdims, skip_nan)


def _at_share(
    x: ArrayLike, q: ArrayLike, whole: int, axis: Axis, method: str, keepdims: bool, skip_nan: bool
) -> Tensor:
    x = _floating(x)
    shares, scalar = _shares(q, whole)
    shape, dtype = op_shape(x), op_dtype(x)
    axes = args.axes(axis, len(shape))
    kept = [dim for dim in range(len(shape)) if dim not in axes]
    rest, n = [shape[dim] for dim in kept], math.prod([shape[dim] for dim in axes])
    if not isinstance(n, int):
        raise errors.ArgumentError("axis must be of a size that is known")
    x = op_sort(op_reshape(op_transpose(x, (*kept, *axes)), (*rest, n)))
    if n == 0:
        x, n = on_device_of(x, op_full((*rest, 1), math.nan, dtype)), 1

    count = op_sum(op_logical_not(op_isnan(x)), -1, True) if skip_nan else None
    wide = "float64" if dtype == "float64" else "float32"
    ranks, weight = _ranks(shares, count, n, method, wide)
    found = _take_ranks(x, ranks[0])
    if len(ranks) == 2:
        weight = on_device_of(x, op_cast(weight, wide))
        between = in_float32(lambda x1, x2: _between(x1, x2, weight), found, _take_ranks(x, ranks[1]))
        found = op_where(on_device_of(x, op_equal(*ranks)), found, between)  # a weight of 0 would make NaN of infinity
    last = x[..., -1:]  # NaN is sorted there, if there is any
    found = op_where(op_isnan(last), last, found) if count is None else op_where(op_equal(count, 0), math.nan, found)

    found = found[..., 0] if scalar else op_moveaxis(found, -1, 0)
    return op_expand_dims(found, [dim + (not scalar) for dim in axes]) if keepdims else found


_at_known_share = composite(_at_share)  # a share in a tensor is looked at, which one program could not do


def _shares(q: Any, whole: int) -> tuple[Any, bool]:
    """Return `q / whole` as a list of floats if it is known, else as a vector; and whether it is a single number."""
    if isinstance(q, (np.ndarray, np.generic)) and not is_compiling():
        q = q.tolist()
    scalar = not isinstance(q, (list, tuple))
    numbers = [q] if scalar else list(q)
    if all(host.is_scalar(one) for one in numbers):
        shares = [one / whole for one in numbers]
        if not all(0 <= share <= 1 for share in shares):
            raise errors.ArgumentError(f"q must be from 0 to {whole}, got {q!r}")
        return shares, scalar
    q = widen_halves(op_divide(q, whole))
    if op_ndim(q) > 1:
        raise errors.ArgumentError(f"q must have at most one dimension, not {op_ndim(q)}")
    return op_reshape(q, -1), op_ndim(q) == 0


def _ranks(shares: Any, count: Tensor | None, n: int, method: str, dtype: str) -> tuple[list[Any], Any]:
    """Return the ranks, one or two for each share, that a quantile is made of, and the weight of the second.

    The ranks are among `n` entries, or among the number of entries in `count`.
    """
    kinds = {"lower": [0], "higher": [1], "nearest": [2]}.get(method, [0, 1])
    ranks: list[Any]
    if not isinstance(shares, list):
        last = n - 1 if count is None else op_maximum(op_subtract(count, 1), 0)
        inside = op_logical_and(op_greater_equal(shares, 0), op_less_equal(shares, 1))
        position = op_where(inside, op_multiply(shares, last), n)  # out of range, like q
        ranks = [op_cast((op_floor, op_ceil, op_round)[kind](position), "int32") for kind in kinds]
        weight = op_subtract(position, op_floor(position))
    elif count is None:
        positions = [share * (n - 1) for share in shares]
        ranks = [[(math.floor, math.ceil, round)[kind](one) for one in positions] for kind in kinds]
        weight = [one - math.floor(one) for one in positions]
    else:  # computed for each number of entries in float64, which may not be available for tensors
        table = np.maximum(np.arange(n + 1) - 1, 0)[:, None] * np.array(shares)
        tables = [(np.floor, np.ceil, np.round)[kind](table).astype("int32") for kind in kinds]
        ranks = [op_take(one, count[..., 0], 0) for one in tables]
        weight = op_take(on_device_of(count, op_cast(table - np.floor(table), dtype)), count[..., 0], 0)
    return ranks, 0.5 if method == "midpoint" else weight


def _between(x1: Tensor, x2: Tensor, weight: Tensor) -> Tensor:
    """Return `x1` moved towards `x2` by a share of their distance, or, where that is not finite, their weighted mean.

    XLA makes `(x1 + x2) * 0.5` of the mean, which may overflow where both are large.
    """
    distance = op_subtract(x2, x1)
    moved = op_add(x1, op_multiply(distance, weight))
    mean = op_add(op_multiply(x1, op_subtract(1, weight)), op_multiply(x2, weight))
    return op_where(op_isfinite(distance), moved, mean)


def _take_ranks(x: Tensor, rank: Any) -> Tensor:
    """Return the entries at `rank` of the last axis: a list of ints, a vector, or a tensor that fits `x`."""
    if isinstance(rank, list):
        return op_concatenate([x[..., one : one + 1] for one in rank], -1) if rank else x[..., :0]
    return op_take_along_axis(x, rank, -1) if op_ndim(rank) == op_ndim(x) else op_take(x, rank, -1)
