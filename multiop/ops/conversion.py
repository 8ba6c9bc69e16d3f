"""Conversion between host values and tensors, and what a tensor is."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiop import _dtypes, errors
from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, DType, Tensor


def op_convert_to_tensor(
    x: ArrayLike, dtype: DType = None, sparse: bool | None = None, ragged: bool | None = None
) -> Tensor:
    """Return `x` as a tensor of the active backend.

    Args:
        x: Tensor, variable, NumPy array, Python scalar, or nested lists of them.
        dtype: Dtype of the result. By default a tensor keeps its own, Python ints become `int32` and floats `floatx`,
            NumPy arrays keep theirs, but for 64 bits while the 64-bit mode is off: those become 32 bits, with a
            warning for floats.
        sparse: `None` or `False`: multiop has dense tensors only.
        ragged: `None` or `False`.

    Returns:
        Tensor of the shape of `x`. A tensor that already has the dtype comes back as it is, and keeps its gradient.

    Raises:
        ForeignTensorError: `x` is a tensor of another framework.
        DTypeError: `dtype` is unknown, cannot hold `x` (a complex value in a real dtype), or is one of 64 bits on JAX
            with the 64-bit mode off.
        ArgumentError: An int does not fit, or nested lists have unequal lengths.
        ArgumentTypeError: `x` is nothing a tensor can be made of.
        UnsupportedError: A sparse or ragged tensor was asked for, or given.

    Gradient:
        1, through a change of floating dtype too.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([[1, 2], [3, 4]], dtype="float32")
        >>> multiop.op_dtype(x), multiop.op_shape(x)
        ('float32', (2, 2))
    """
    try:
        if sparse or ragged:
            raise errors.UnsupportedError("multiop has dense tensors only; leave sparse and ragged out")
        return active().op_convert_to_tensor(x, _dtypes.name_or_none(dtype), sparse, ragged)
    except Exception as error:
        raise explain(error, "op_convert_to_tensor", x=x, dtype=dtype, sparse=sparse, ragged=ragged)


def op_convert_to_numpy(x: ArrayLike) -> np.ndarray[Any, Any]:
    """Return `x` as a NumPy array.

    Args:
        x: Tensor on any device, or a host value.

    Returns:
        Array of the shape and dtype of `x`; `bfloat16` is that of `ml_dtypes`. Treat it as read-only: it may share
        memory with `x`.

    Gradient:
        None: the array is cut off from the graph. A traced tensor has no value, and raises the framework's own error.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_ones((2, 3))).shape
        (2, 3)
    """
    try:
        return active().op_convert_to_numpy(x)
    except Exception as error:
        raise explain(error, "op_convert_to_numpy", x=x)


def op_cast(x: ArrayLike, dtype: DType) -> Tensor:
    """Convert the entries of `x` to `dtype`.

    Args:
        x: Tensor of any dtype and shape.
        dtype: Dtype of the result.

    Returns:
        Tensor of the shape of `x`. Floats lose their fraction on the way to integers; a value that the integer type
        cannot hold, NaN included, becomes an unspecified integer.

    Raises:
        DTypeError: `dtype` is unknown, `x` is complex and `dtype` real, or `dtype` has 64 bits on JAX with the 64-bit
            mode off.

    Gradient:
        That of the identity between floating dtypes, zero through an integer dtype.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_cast([1.7, -1.7, 0.0], "int32")).tolist()
        [1, -1, 0]
        >>> multiop.op_convert_to_numpy(multiop.op_cast([2, 0], "bool")).tolist()
        [True, False]
    """
    try:
        return active().op_cast(x, _dtypes.name(dtype))
    except Exception as error:
        raise explain(error, "op_cast", x=x, dtype=dtype)


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
    try:
        return active().op_dtype(x)
    except Exception as error:
        raise explain(error, "op_dtype", x=x)


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
    try:
        return active().op_shape(x)
    except Exception as error:
        raise explain(error, "op_shape", x=x)


def op_is_tensor(x: Any) -> bool:
    """Say whether `x` is a tensor of the active backend.

    Args:
        x: Anything.

    Returns:
        `True` for a tensor or variable of the framework, traced ones included; `False` for anything else.

    Example:
        >>> import multiop
        >>> multiop.op_is_tensor(multiop.op_zeros(3)), multiop.op_is_tensor([0.0])
        (True, False)
    """
    try:
        return active().op_is_tensor(x)
    except Exception as error:
        raise explain(error, "op_is_tensor", x=x)
