"""Tensors made from shapes and numbers."""

from __future__ import annotations

from typing import Any

from multiop import config, errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import args, dtypes, host
from multiop._values.types import ArrayLike, DType, Shape, Tensor


@boundary
def op_zeros(shape: Shape, dtype: DType = None) -> Tensor:
    """Return a tensor of zeros.

    Args:
        shape: An int, or a sequence of ints.
        dtype: Dtype of the result; by default `floatx`.

    Returns:
        Tensor of `shape` and `dtype`.

    Raises:
        ArgumentError: `shape` has a negative entry.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_zeros((2, 2))).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    return active().op_zeros(args.size(shape), config.floatx() if dtype is None else dtypes.name(dtype))


@boundary
def op_ones(shape: Shape, dtype: DType = None) -> Tensor:
    """Return a tensor of ones.

    Args:
        shape: An int, or a sequence of ints.
        dtype: Dtype of the result; by default `floatx`.

    Returns:
        Tensor of `shape` and `dtype`.

    Raises:
        ArgumentError: `shape` has a negative entry.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ones((2, 2))).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    return active().op_ones(args.size(shape), config.floatx() if dtype is None else dtypes.name(dtype))


@boundary
def op_full(shape: Shape, fill_value: ArrayLike, dtype: DType = None) -> Tensor:
    """Return a tensor filled with `fill_value`.

    Args:
        shape: An int, or a sequence of ints.
        fill_value: Tensor that broadcasts to `shape`; most often a scalar.
        dtype: Dtype of the result; by default that of `fill_value`.

    Returns:
        Tensor of `shape`.

    Raises:
        ArgumentError: `shape` has a negative entry, or `fill_value` does not broadcast to it.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_full((2, 2), 7)).tolist()
        [[7, 7], [7, 7]]
    """
    return active().op_full(args.size(shape), fill_value, dtypes.name_or_none(dtype))


@boundary
def op_zeros_like(x: ArrayLike, dtype: DType = None) -> Tensor:
    """Return a tensor of zeros of the shape of `x`.

    Args:
        x: Tensor of any dtype and shape.
        dtype: Dtype of the result; by default that of `x`.

    Returns:
        Tensor of the shape of `x`, on its device.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_zeros_like([5, 6])).tolist()
        [0, 0]
    """
    return active().op_zeros_like(x, dtypes.name_or_none(dtype))


@boundary
def op_ones_like(x: ArrayLike, dtype: DType = None) -> Tensor:
    """Return a tensor of ones of the shape of `x`.

    Args:
        x: Tensor of any dtype and shape.
        dtype: Dtype of the result; by default that of `x`.

    Returns:
        Tensor of the shape of `x`, on its device.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ones_like([5, 6])).tolist()
        [1, 1]
    """
    return active().op_ones_like(x, dtypes.name_or_none(dtype))


@boundary
def op_full_like(x: ArrayLike, fill_value: ArrayLike, dtype: DType = None) -> Tensor:
    """Return a tensor of the shape of `x` filled with `fill_value`.

    Args:
        x: Tensor of any dtype and shape.
        fill_value: Tensor that broadcasts to the shape of `x`.
        dtype: Dtype of the result; by default that of `x`.

    Returns:
        Tensor of the shape of `x`, on its device.

    Gradient:
        Flows only to `fill_value`.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_full_like([5.0, 6.0], 2)).tolist()
        [2.0, 2.0]
    """
    return active().op_full_like(x, fill_value, dtypes.name_or_none(dtype))


@boundary
def op_arange(start: Any, stop: Any = None, step: Any = None, dtype: DType = None) -> Tensor:
    """Return evenly spaced values in the half-open interval from `start` to `stop`.

    Args:
        start: First value. If `stop` is left out, this is the end, and the first value is 0.
        stop: End of the interval, not included.
        step: Distance between values, 1 by default; not 0.
        dtype: Dtype of the result; by default the promoted dtype of the arguments (`int32` for Python ints, `int64` for
            larger ones in the 64-bit mode, `floatx` for floats).

    Returns:
        Tensor of shape `(max(0, ceil((stop - start) / step)),)`. Values are `start + i * step`, computed in 64 bits
        and rounded once (on JAX with the 64-bit mode off, in those of `dtype`).

    Raises:
        ArgumentError: `step` is 0, or a value does not fit in an integer dtype.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_arange(2, 8, 3)).tolist()
        [2, 5]
    """
    given = [_number_dtype(x, name) for name, x in (("start", start), ("stop", stop), ("step", step)) if x is not None]
    if start is None:
        raise errors.ArgumentError("start must be a number, got None")
    if host.is_scalar(step) and step == 0:
        raise errors.ArgumentError("step must not be 0")
    name = dtypes.result_type(dtypes.of_scalar(1), *given) if dtype is None else dtypes.name(dtype)
    start, stop, step = 0 if stop is None else start, start if stop is None else stop, 1 if step is None else step
    is_of_numbers = {type(start), type(stop), type(step)} <= {int, float}
    if is_of_numbers and (stop - start) / step >= 2**56:  # NumPy's length overflows, and its array is empty
        raise errors.ArgumentError("start, stop and step make more entries than a machine can hold")
    if name in dtypes.INTEGER and is_of_numbers:
        low, high = dtypes.INTEGER_RANGE[name]
        n = -((start - stop) // step)
        last = start + (n - 1) * step
        if n > 0 and not (low <= start <= high and low <= last <= high):  # frameworks wrap around
            extreme = last if low <= start <= high else start
            name = dtypes.of_lone_scalar(extreme) if dtype is None else name
            host.int_within(extreme, name)
    return active().op_arange(start, stop, step, name)


def _number_dtype(x: Any, name: str) -> str:
    """Return the dtype of a number, or of a tensor without dimensions."""
    if host.is_scalar(x):
        if x != x or isinstance(x, complex):
            raise errors.ArgumentError(f"{name} must be a real number, got {x!r}")
        return dtypes.of_scalar(x)
    if hasattr(x, "dimension_as_value"):  # a size that JAX will know later, such as that of Keras's batches
        return dtypes.of_scalar(1)
    if getattr(x, "shape", None) != () or not hasattr(x, "dtype"):
        raise errors.ArgumentTypeError(f"{name} must be a number, got {args.describe(x)}")
    return dtypes.name(x.dtype)


@boundary
def op_eye(N: int, M: int | None = None, k: int = 0, dtype: DType = None) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: Number of rows.
        M: Number of columns, `N` by default.
        k: Which diagonal: 0 is the main one, positive ones are above it, negative ones below.
        dtype: Dtype of the result; by default `floatx`.

    Returns:
        Tensor of shape `(N, M)`.

    Raises:
        ArgumentError: `N` or `M` is negative.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_eye(2, 3, k=1)).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return active().op_eye(  # type: ignore[call-arg]  # two sizes
        *args.size((N, N if M is None else M), "(N, M)"),
        k if type(k) is int else args.integer(k, "k"),
        config.floatx() if dtype is None else dtypes.name(dtype),
    )


@boundary
def op_copy(x: ArrayLike) -> Tensor:
    """Return a copy of `x` that shares no memory with it.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tensor of the shape and dtype of `x`, a different object; gradients pass through.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_copy([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """
    return active().op_copy(x)


@boundary
def op_linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DType = None,
    axis: int = 0,
) -> Any:
    """Return numbers that are spaced evenly between `start` and `stop`.

    Args:
        start: Tensor: the first number, or several.
        stop: Tensor whose shape broadcasts with that of `start`: the last number.
        num: How many numbers.
        endpoint: Whether `stop` is the last of them; otherwise it would be the next one.
        retstep: Whether to return the spacing as well.
        dtype: Dtype of the result, rounded down to integers; by default that of the operands, `floatx` for integers.
            With 64 bits, the ends and the spacing have them too.
        axis: Where the new dimension, of size `num`, is put.

    Returns:
        Tensor of the broadcast shape with a new dimension; with `retstep`, a tuple of it and the spacing, which is
        NaN where there is none.

    Raises:
        ArgumentError: `num` is negative, `axis` is out of range, or the shapes do not broadcast.
        ArgumentTypeError: `num` is not an int, or `endpoint` or `retstep` is not a bool.

    Gradient:
        Flows to `start` and `stop`, unless `dtype` is an integer dtype.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_linspace(0, 10, 5)).tolist()
        [0.0, 2.5, 5.0, 7.5, 10.0]
    """
    num, dtype = args.count(num, "num"), None if dtype is None else dtypes.name(dtype)
    if dtype in ("float64", "complex128"):  # in their own dtype, the ends would lack digits; one promotes the other
        if host.is_scalar(start) and not host.is_scalar(stop):
            stop = active().convert(stop, dtype)
        else:
            start = active().convert(start, dtype)
    samples, step = active().op_linspace(start, stop, num, endpoint, dtype, axis)
    return (samples, active().convert(step)) if retstep else samples


# composites


@boundary
def op_empty(shape: Shape, dtype: DType = None) -> Tensor:
    """Return a tensor whose entries have no particular value: zeros, on every backend.

    Args:
        shape: An int, or a sequence of ints.
        dtype: Dtype of the result; by default `floatx`.

    Returns:
        Tensor of `shape` and `dtype`.

    Raises:
        ArgumentError: `shape` has a negative entry.

    Example:
        >>> import multiop
        >>> multiop.op_shape(multiop.op_empty((2, 2)))
        (2, 2)
    """
    return op_zeros(shape, dtype)


@boundary
def op_empty_like(x: ArrayLike, dtype: DType = None) -> Tensor:
    """Return a tensor of the shape of `x` whose entries have no particular value: zeros, on every backend.

    Args:
        x: Tensor of any dtype and shape.
        dtype: Dtype of the result; by default that of `x`.

    Returns:
        Tensor of the shape of `x`.

    Example:
        >>> import multiop
        >>> multiop.op_shape(multiop.op_empty_like([1, 2, 3]))
        (3,)
    """
    return op_zeros_like(x, dtype)


@boundary
def op_identity(n: int, dtype: DType = None) -> Tensor:
    """Return the identity matrix.

    Args:
        n: Number of rows and columns.
        dtype: Dtype of the result; by default `floatx`.

    Returns:
        Tensor of shape `(n, n)`.

    Raises:
        ArgumentTypeError: `n` is not an int.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_identity(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    if len(getattr(n, "shape", ())):
        raise errors.ArgumentTypeError(f"n must be an int, got {args.describe(n)}; what tf.identity does is op_copy(x)")
    return op_eye(n, dtype=dtype)
