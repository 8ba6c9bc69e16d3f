"""The dtypes of the standard, as objects of the active backend's framework, and what is asked about them."""

from __future__ import annotations

from typing import Any

from multiop import dtypes, errors
from multiop._values import dtypes as _dtypes, host
from multiop._values.types import ArrayLike, DType, Tensor
from multiop.dtypes import FloatInfo, IntegerInfo, dtype_object
from multiop.frontends.conversion import op_array, op_cast, op_convert_to_tensor

from ._devices import on

KINDS = {
    "bool": _dtypes.BOOLEAN,
    "signed integer": _dtypes.SIGNED,
    "unsigned integer": _dtypes.UNSIGNED,
    "integral": _dtypes.INTEGER,
    "real floating": ("float32", "float64"),
    "complex floating": _dtypes.COMPLEX,
    "numeric": (*_dtypes.INTEGER, "float32", "float64", *_dtypes.COMPLEX),
}
NAMES = (*_dtypes.BOOLEAN, *KINDS["numeric"])


def astype(x: ArrayLike, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return `x` in another dtype; with `copy=False`, `x` itself if it has that dtype and is on `device`."""
    if copy and dtypes.dtype_name(dtype) == dtypes.dtype_name(op_convert_to_tensor(x)):
        return on(device, op_array(x))
    return on(device, op_cast(x, dtype))


def isdtype(dtype: DType, kind: Any) -> bool:
    """Say whether a dtype is of a kind: a name such as `"real floating"`, a dtype, or a tuple of these."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, entry) for entry in kind)
    name = dtypes.dtype_name(dtype)
    if not isinstance(kind, str):
        return name == dtypes.dtype_name(kind)
    if kind not in KINDS:
        raise errors.ArgumentError(f"isdtype: kind must be a dtype, or one of {', '.join(KINDS)}; got {kind!r}")
    more = {"real floating": ("float16", "bfloat16"), "numeric": ("float16", "bfloat16")}
    return name in (*KINDS[kind], *more.get(kind, ()))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the dtype of an operation between tensors, dtypes and Python scalars, of which the last are weak."""
    if not arrays_and_dtypes:
        raise errors.ArgumentError("result_type: give at least one tensor or dtype")
    if all(map(host.is_scalar, arrays_and_dtypes)):
        raise errors.ArgumentError("result_type: Python scalars alone have no dtype; give a tensor or dtype with them")
    return dtype_object(_dtypes.result_type(*map(_weak, arrays_and_dtypes)))


def _weak(x: Any) -> str:
    return _dtypes.of_scalar(x) if host.is_scalar(x) else dtypes.dtype_name(x)


def can_cast(from_: Any, to: DType, /) -> bool:
    """Say whether a dtype, or that of a tensor, becomes another one by promotion."""
    target = dtypes.dtype_name(to)
    return _dtypes.result_type(dtypes.dtype_name(from_), target) == target


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a dtype of floats or complex numbers, or of the dtype of a tensor."""
    limits = dtypes.finfo(type)
    return FloatInfo(dtype_object(limits.dtype), *limits[1:])


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of a dtype of integers, or of the dtype of a tensor."""
    limits = dtypes.iinfo(type)
    return IntegerInfo(dtype_object(limits.dtype), *limits[1:])
