"""Functions of the standard that create tensors."""

from __future__ import annotations

from typing import Any

from multiop import devices, errors
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.dtypes import dtype_name
from multiop.frontends.conversion import op_array, op_convert_to_tensor, op_is_tensor
from multiop.frontends.creation import (
    op_arange,
    op_empty,
    op_empty_like,
    op_eye,
    op_full,
    op_full_like,
    op_linspace,
    op_ones,
    op_ones_like,
    op_zeros,
    op_zeros_like,
)

from ._devices import on
from ._exchange import adopt


def asarray(obj: Any, /, *, dtype: DType = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return `obj` as a tensor: a copy, `obj` itself (`copy=False`), or whichever is cheaper (`None`)."""
    if copy:
        return on(device, op_array(obj, dtype))
    is_right = op_is_tensor(obj) and (dtype is None or dtype_name(dtype) == dtype_name(obj))
    x = on(device, obj if is_right else op_convert_to_tensor(obj, dtype))
    if copy is False and x is not obj:
        raise errors.ArgumentError("asarray: without a copy, obj does not become a tensor of this dtype and device")
    return x


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array of any library that has `__dlpack__` as a tensor, without its gradient.

    It is a copy (`copy=True`), shares memory (`copy=False`), or shares it where a write on one side may show on the
    other, or neither side can write (`None`).
    """
    y = adopt(x, copy)
    moved = on(device, y)
    if copy is False and device is not None and devices.device(moved) != devices.device(y):
        raise errors.ArgumentError(f"from_dlpack: without a copy, x does not go to device {device!r}")
    return moved


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return numbers from `start`, or 0, to `stop`, without it."""
    return on(device, op_arange(start, stop, step, dtype))


def empty(shape: Any, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return a tensor whose entries are not specified."""
    return on(device, op_empty(shape, dtype))


def empty_like(x: ArrayLike, /, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return a tensor of the shape of `x`, whose entries are not specified."""
    return on(device, op_empty_like(x, dtype))


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType = None, device: Any = None) -> Tensor:
    """Return a matrix with ones on its `k`-th diagonal."""
    return on(device, op_eye(n_rows, n_cols, k, dtype))


def full(shape: Any, fill_value: Any, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return a tensor with one value in all entries."""
    return on(device, op_full(shape, fill_value, dtype))


def full_like(x: ArrayLike, /, fill_value: Any, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return a tensor of the shape of `x` with one value in all entries."""
    return on(device, op_full_like(x, fill_value, dtype))


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: DType = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """Return `num` evenly spaced numbers."""
    return on(device, op_linspace(start, stop, num, endpoint, False, dtype))


def ones(shape: Any, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return ones."""
    return on(device, op_ones(shape, dtype))


def ones_like(x: ArrayLike, /, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return ones in the shape of `x`."""
    return on(device, op_ones_like(x, dtype))


def zeros(shape: Any, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return zeros."""
    return on(device, op_zeros(shape, dtype))


def zeros_like(x: ArrayLike, /, *, dtype: DType = None, device: Any = None) -> Tensor:
    """Return zeros in the shape of `x`."""
    return on(device, op_zeros_like(x, dtype))
