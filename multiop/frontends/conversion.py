"""Conversion between host values and tensors, and questions about tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._rules import doors
from multiop._values import dtypes, host
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.frontends.creation import op_copy


@boundary
def op_convert_to_tensor(
    x: ArrayLike, dtype: DType = None, sparse: bool | None = None, ragged: bool | None = None
) -> Tensor:
    """Return `x` as a tensor of the active backend.

    Args:
        x: Tensor, variable, NumPy array, Python scalar, or nested lists of them.
        dtype: Dtype of the result. By default a tensor keeps its own, Python ints become `int32` and floats `floatx`.
            NumPy arrays keep theirs, except that 64 bits become 32 while the 64-bit mode is off, with a warning for
            floats.
        sparse: `None` or `False`: multiop has dense tensors only.
        ragged: `None` or `False`.

    Returns:
        Tensor of the shape of `x`. A tensor that already has the dtype is returned unchanged, with its gradient.

    Raises:
        ForeignTensorError: `x` is a tensor of another framework.
        DTypeError: `dtype` is unknown, cannot hold `x` (a complex value in a real dtype), or is one of 64 bits on JAX
            with the 64-bit mode off.
        ArgumentError: An int does not fit, or nested lists have unequal lengths.
        ArgumentTypeError: `x` cannot be converted to a tensor.
        UnsupportedError: A sparse or ragged tensor was requested, or given.

    Gradient:
        1, also through a change of floating dtype.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([[1, 2], [3, 4]], dtype="float32")
        >>> multiop.op_dtype(x), multiop.op_shape(x)
        ('float32', (2, 2))
    """
    if sparse or ragged:
        raise errors.UnsupportedError("multiop has dense tensors only; leave sparse and ragged out")
    return active().op_convert_to_tensor(x, dtypes.name_or_none(dtype, dtypes.FLOAT8), sparse, ragged)


@boundary
def op_convert_to_numpy(x: ArrayLike) -> np.ndarray[Any, Any]:
    """Return `x` as a NumPy array.

    Args:
        x: Tensor on any device, or a host value.

    Returns:
        Array of the shape and dtype of `x`, a copy that may be changed; `bfloat16` and float8 are dtypes of
        `ml_dtypes`.
        (`np.asarray(x)` avoids the copy where the framework can.)

    Gradient:
        None: a tensor that `grad` or another transform differentiates is refused, but for the function of an
        `op_custom_gradient`, whose rule says the derivative. Take `op_stop_gradient` of it first, where its value is
        meant as a constant. Under a `GradientTape` it is read: the gradient is `None`, as in TensorFlow. A tensor of
        compiled code has no value.

    Raises:
        UnsupportedError: `x` is being differentiated.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ones((2, 3))).shape
        (2, 3)
    """
    doors.refuse(x, active())
    return active().op_convert_to_numpy(x)


@boundary
def op_cast(x: ArrayLike, dtype: DType) -> Tensor:
    """Convert the entries of `x` to `dtype`.

    Args:
        x: Tensor of any dtype and shape.
        dtype: Dtype of the result.

    Returns:
        Tensor of the shape of `x`. Floats lose their fraction when they become integers; a value that the integer
        dtype cannot hold, NaN included, becomes an unspecified integer. The dtype may also be `"float8_e4m3fn"`, where
        what rounds to more than 448 becomes NaN, or `"float8_e5m2"`: no op computes with these, cast them back first.
        Floats are rounded to the nearest, ties to even; on PyTorch and TensorFlow, `float64` becomes `float16` or
        `bfloat16`, and an integer `bfloat16`, through `float32`, and so may be rounded twice.

    Raises:
        DTypeError: `dtype` is unknown, `x` is complex and `dtype` real, or `dtype` has 64 bits on JAX with the 64-bit
            mode off.

    Gradient:
        That of the identity between floating dtypes, zero through an integer dtype or float8. (A gradient has the dtype
        of its tensor, and in float8 most gradients would vanish. For that of the identity, write the casts in a
        function with `op_custom_gradient` whose rule returns the upstream gradient.)

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cast([1.7, -1.7, 0.0], "int32")).tolist()
        [1, -1, 0]
        >>> multiop.op_convert_to_numpy(multiop.op_cast([2, 0], "bool")).tolist()
        [True, False]
    """
    return active().op_cast(x, dtypes.name(dtype, dtypes.FLOAT8))


@boundary
def op_view(x: ArrayLike, dtype: DType = None) -> Tensor:
    """Read the bits of `x` as entries of another dtype.

    Args:
        x: Tensor.
        dtype: Dtype of the result; by default that of `x`.

    Returns:
        Tensor of the shape of `x`, except that the last dimension grows or shrinks as the entries become smaller or
        larger. An entry read as bool is true if any bit is set.

    Raises:
        ArgumentError: The last dimension does not make whole entries, or `x` is a scalar and the sizes differ.
        DTypeError: `dtype` is unknown, or has 64 bits on JAX with the 64-bit mode off.

    Gradient:
        Zero, unless the dtype stays the same.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_view([1.0, -2.0], "int32")).tolist()
        [1065353216, -1073741824]
    """
    return active().op_view(x, dtypes.name_or_none(dtype))


@boundary
def op_view_as_complex(x: ArrayLike) -> Tensor:
    """Return the complex tensor whose real and imaginary parts are in the last dimension of `x`.

    Args:
        x: Tensor of shape `(..., 2)`, not complex; integers, bool and small floats become `float32` or `floatx`.

    Returns:
        Tensor of shape `x.shape[:-1]`, `complex128` for `float64`, else `complex64`. On PyTorch and NumPy it shares the
        memory of `x` where `x` is a float tensor with both parts beside each other.

    Raises:
        ArgumentError: The last dimension is not of size 2.
        DTypeError: `x` is complex.

    Gradient:
        Real and imaginary part of the upstream gradient, in the last dimension.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_view_as_complex([[1.0, 2.0]])).tolist()
        [(1+2j)]
    """
    return active().op_view_as_complex(x)


@boundary
def op_dtype(x: ArrayLike) -> str:
    """Return the name of the dtype of `x`.

    Args:
        x: Tensor, or a host value (the answer is then the dtype of its tensor).

    Returns:
        A name such as `"float32"`.

    Example:
        >>> import multiop
        >>> multiop.op_dtype([1, 2])
        'int32'
    """
    return active().op_dtype(x)


@boundary
def op_shape(x: ArrayLike) -> tuple[Any, ...]:
    """Return the shape of `x`.

    Args:
        x: Tensor of any dtype and shape.

    Returns:
        Tuple of ints. Inside `tf.function`, a dimension known only at run time is a scalar tensor.

    Example:
        >>> import multiop
        >>> multiop.op_shape([[1, 2, 3]])
        (1, 3)
    """
    return active().op_shape(x)


@boundary
def op_is_tensor(x: Any) -> bool:
    """Say whether `x` is a tensor of the active backend.

    Args:
        x: Anything.

    Returns:
        `True` for a tensor, variable or tracer of the framework; `False` for anything else.

    Example:
        >>> import multiop
        >>> multiop.op_is_tensor(multiop.op_zeros(3)), multiop.op_is_tensor([0.0])
        (True, False)
    """
    return active().op_is_tensor(x)


# parts of other ops


def operands(*xs: ArrayLike) -> list[Tensor]:
    """Return `xs` as tensors; host values go to the device of the first tensor among them."""
    convert = active().op_convert_to_tensor  # without its boundary: the user called another op
    tensors = [convert(x, None, None, None) for x in active().together(*xs)]
    return host.with_digits(xs, tensors, op_convert_to_tensor, op_dtype)


def real_operand(x: ArrayLike) -> tuple[Tensor, str]:
    """Return `x` as a tensor of a floating dtype, and the name of that dtype; raise an error for complex."""
    x = active().floating(x)
    dtype = active().dtype_name(x)
    if dtype in dtypes.COMPLEX:
        raise errors.DTypeError(f"{dtype} is not accepted: complex numbers have no order")
    return x, dtype


def widen_halves(x: Tensor) -> Tensor:
    """Return a tensor of 16-bit floats in 32 bits, any other as it is."""
    return op_cast(x, "float32") if active().dtype_name(x) in ("float16", "bfloat16") else x


def raised_to_0(x: Tensor) -> Tensor:
    """Return `x`, which only rounding errors make negative, without these, and with its own derivatives."""
    return active().op_subtract(x, active().stop_gradient(active().op_minimum(x, 0.0)))


def in_float32(compute: Callable[..., Tensor], *xs: Tensor) -> Tensor:
    """Compute 16-bit floats of one dtype in `float32`: sums and products would overflow, vanish or lose digits."""
    dtype = active().dtype_name(xs[0])
    return op_cast(compute(*map(widen_halves, xs)), dtype) if dtype in ("float16", "bfloat16") else compute(*xs)


def on_device_of(x: ArrayLike, made: Tensor) -> Tensor:
    """Return a tensor that an op has created on the device of its operand `x`."""
    return active().on_device_of(x, made)


# composites


@boundary
def op_view_as_real(x: ArrayLike) -> Tensor:
    """Return the real and imaginary parts of `x` in a new last dimension.

    Args:
        x: Complex tensor of any shape.

    Returns:
        Tensor of shape `(*x.shape, 2)`, `float64` for `complex128`, else `float32`. On PyTorch and NumPy it shares the
        memory of `x`.

    Raises:
        DTypeError: `x` is not complex.

    Gradient:
        The complex tensor made of the two parts of the upstream gradient.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_view_as_real([1 + 2j])).tolist()
        [[1.0, 2.0]]
    """
    backend = active()
    x = backend.convert(x)
    if op_dtype(x) not in dtypes.COMPLEX:
        raise errors.DTypeError(f"x must be complex, got {op_dtype(x)}")
    return backend.op_stack([backend.op_real(x), backend.op_imag(x)], -1)


@boundary
def op_saturate_cast(x: ArrayLike, dtype: DType) -> Tensor:
    """Convert the entries of `x` to `dtype`; an entry beyond its range becomes the nearest number of `dtype`.

    Args:
        x: Tensor of any dtype and shape.
        dtype: Dtype of the result.

    Returns:
        Tensor of the shape of `x`. Infinities become the largest finite number, unless `dtype` has the range of the
        dtype of `x`: then they stay. NaN stays NaN, but becomes 0 in an integer dtype.

    Raises:
        DTypeError: `dtype` is unknown, `x` is complex and `dtype` real, or `dtype` has 64 bits on JAX with the 64-bit
            mode off.

    Gradient:
        1 between floating dtypes, 0 beyond the range; zero through an integer dtype.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_saturate_cast([-1.5, 7.9, 300.0], "uint8")).tolist()
        [0, 7, 255]
    """
    backend, dtype = active(), dtypes.name(dtype)
    if dtype in ("float64", "complex128"):  # no number is beyond its range, and a host value keeps its digits
        return op_cast(x, dtype)
    x = backend.convert(x)
    given = backend.dtype_name(x)
    if dtype in dtypes.COMPLEX:
        part = dtypes.REAL_PART[dtype]
        if given not in dtypes.COMPLEX:
            return op_cast(op_saturate_cast(x, part), dtype)
        parts = [op_saturate_cast(backend.op_real(x), part), op_saturate_cast(backend.op_imag(x), part)]
        return backend.op_view_as_complex(backend.op_stack(parts, -1))
    y = backend.op_cast(x, dtype)
    limits = None if "bool" in (dtype, given) else dtypes.SATURATION[given, dtype]
    if limits is None:
        return y
    if dtype in dtypes.INTEGER and given in dtypes.FLOATING:
        y = backend.op_where(backend.op_isnan(x), backend.convert(0, dtype), y)
    (low, high), (least, largest) = limits, dtypes.EXTREMES[dtype]
    y = backend.op_where(backend.op_less(x, backend.convert(low, given)), backend.convert(least, dtype), y)
    return backend.op_where(backend.op_greater(x, backend.convert(high, given)), backend.convert(largest, dtype), y)


@boundary
def op_array(x: ArrayLike, dtype: DType = None) -> Tensor:
    """Return a new tensor of the active backend with the entries of `x`, as NumPy's `array` does.

    Args:
        x: Tensor, variable, NumPy array, Python scalar, or nested lists of them.
        dtype: Dtype of the result; by default as for `op_convert_to_tensor`.

    Returns:
        Tensor of the shape of `x` that shares no memory with it. `op_convert_to_tensor` makes no copy of a tensor.

    Raises:
        ForeignTensorError: `x` is a tensor of another framework.
        DTypeError: `dtype` is unknown or cannot hold `x`.
        ArgumentError: An int does not fit, or nested lists have unequal lengths.

    Gradient:
        1, also through a change of floating dtype.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_array([1, 2], dtype="float32")).tolist()
        [1.0, 2.0]
    """
    tensor = op_convert_to_tensor(x, dtype)
    return op_copy(tensor) if tensor is x or tensor is getattr(x, "value", None) else tensor  # that of a variable
