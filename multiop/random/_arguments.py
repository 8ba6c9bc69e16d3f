"""Checks of the arguments of `multiop.random`."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from multiop import config, errors
from multiop._loading.built_in import hide_from_tracer
from multiop._loading.registry import active
from multiop._values import args, dtypes, host
from multiop.frontends.conversion import op_cast, op_shape
from multiop.frontends.elementwise import op_imag, op_real
from multiop.frontends.shapes import op_broadcast_to


def sizes(shape: Any) -> tuple[Any, ...]:
    """Return a shape as a tuple of ints; an entry may also be a traced tensor."""
    if "uint32" in str(getattr(shape, "dtype", "")):  # as in jax.random.normal(key, shape)
        raise errors.ArgumentTypeError(f"shape must hold ints, got {args.describe(shape)}: give a key as seed=")
    found = args.size(shape)
    return found if {int}.issuperset(map(type, found)) else tuple(map(_as_int, found))


def _as_int(entry: Any) -> Any:
    if not hasattr(entry, "dtype"):
        return entry
    try:
        found = operator.index(entry)
    except TypeError:  # a traced tensor
        return entry
    if found < 0:
        raise errors.ArgumentError(f"shape must hold no negative number, got {found}")
    return found


def floating(dtype: Any) -> str:
    """Return the name of a real floating dtype; `None` means `floatx`."""
    name = available(config.floatx() if dtype is None else dtype)
    if name not in dtypes.FLOATING:
        raise errors.DTypeError(f"dtype must be a real floating dtype, got {name}")
    return name


def inexact(dtype: Any) -> str:
    """Return the name of a real or complex floating dtype; `None` means `floatx`."""
    name = available(config.floatx() if dtype is None else dtype)
    if name not in dtypes.INEXACT:
        raise errors.DTypeError(f"dtype must be a floating or complex dtype, got {name}")
    return name


def integer(dtype: Any) -> str:
    """Return the name of an integer dtype."""
    name = available(dtype)
    if name not in dtypes.INTEGER:
        raise errors.DTypeError(f"dtype must be an integer dtype, got {name}")
    return name


def available(dtype: Any) -> str:
    """Return the name of the dtype that the backend makes where `dtype` is asked for, which decides what is drawn."""
    name = dtypes.name(dtype)
    return active().op_dtype(active().op_zeros((), name)) if name in dtypes.WIDE else name


def parameter(value: Any, name: str, dtype: str) -> Any:
    """Return a real parameter as a tensor of `dtype`, or as a Python float rounded to `dtype`."""
    if type(value) is not float and (isinstance(value, (bool, np.bool_, str)) or value is None):
        raise errors.ArgumentTypeError(f"{name} must be a real number or a tensor, got {args.describe(value)}")
    if isinstance(value, (int, float, np.integer, np.floating)):
        return +round_to_dtype(float(value), dtype)
    tensor = active().convert(value)
    if active().dtype_name(tensor) in (*dtypes.COMPLEX, "bool"):
        raise errors.DTypeError(f"{name} must be real, got {args.describe(tensor)}")
    return op_cast(tensor, dtype)


def parts(value: Any) -> tuple[Any, Any]:
    """Return the real and the imaginary part of a parameter."""
    if isinstance(value, (complex, np.complexfloating)):
        return float(value.real), float(value.imag)
    if value is None or isinstance(value, str) or host.is_scalar(value):
        return value, 0.0
    tensor = active().convert(value)
    return (op_real(tensor), op_imag(tensor)) if active().dtype_name(tensor) in dtypes.COMPLEX else (tensor, 0.0)


_LONG: dict[str, Any] = {"float32": np.float32, "float64": np.float64}


@hide_from_tracer
def round_to_dtype(value: float, dtype: str) -> float:
    """Return `value` rounded to `dtype`; PyTorch's compiler asks the type of `+` it alone."""
    if -256.0 <= value <= 256.0 and value.is_integer():  # a number of every dtype
        return value
    if -65504.0 <= value <= 65504.0:  # too large for no dtype
        return float((_LONG.get(dtype) or dtypes.to_numpy(dtype).type)(value))
    with np.errstate(over="ignore"):
        return float(dtypes.to_numpy(dtype).type(value))


@hide_from_tracer
def bounds(low: float, high: float, dtype: str) -> tuple[float, float]:
    """Return `high` in `dtype`, and the number before it; NaN unless `low` is below."""
    return _bounds(low, high, dtype)


@functools.lru_cache(64)
def _bounds(low: float, high: float, dtype: str) -> tuple[float, float]:
    with np.errstate(over="ignore"):
        below, above = map(dtypes.to_numpy(dtype).type, (low, high))
    return float(above), float(np.nextafter(above, below)) if below < above else math.nan


def are(first: Any, second: Any, wanted: int, other: int) -> bool:
    """Say whether two parameters are the numbers `wanted` and `other`."""
    return type(first) in _NUMBERS and type(second) in _NUMBERS and first == wanted and second == other


_NUMBERS = (int, float)


def beside(x: Any, *parameters: Any) -> list[Any]:
    """Return parameters, of which tensors are moved to where `x` lies."""
    backend = active()
    return [backend.on_device_of(x, one) if backend.op_is_tensor(one) else one for one in parameters]


def check(is_right: bool, message: str, *found: Any) -> None:
    """Raise an `ArgumentError` with `message` unless `is_right`; `found` ends it: a tensor's text takes its values."""
    if not is_right:
        raise errors.ArgumentError(message + " and ".join(map(str, found)))


def finite(value: Any, name: str) -> Any:
    """Check that a parameter is finite, unless it is a tensor."""
    if isinstance(value, float) and not math.isfinite(value):
        raise errors.ArgumentError(f"{name} must be finite, got {value}")
    return value


def check_whole(value: Any, name: str) -> Any:
    """Check that a parameter is a whole number that is not negative, unless it is a tensor."""
    is_right = not isinstance(value, float) or (0 <= value < math.inf and value.is_integer())
    check(is_right, f"{name} must be a whole number that is not negative, got ", value)
    return value


def positive(value: Any, name: str) -> Any:
    """Check that a parameter is finite and above 0, unless it is a tensor."""
    check(not isinstance(value, float) or 0 < value < math.inf, f"{name} must be positive, got ", value)
    return value


def fits(shape: tuple[Any, ...], **tensors: Any) -> None:
    """Check that the parameters that are tensors broadcast to `shape`."""
    for name, x in tensors.items():
        if host.is_scalar(x):
            continue
        found = op_shape(x)
        if len(found) > len(shape) or any(
            isinstance(n, int) and isinstance(m, int) and n not in (1, m)
            for n, m in zip(found[::-1], shape[::-1], strict=False)
        ):
            raise errors.ArgumentError(f"{name} has the shape {tuple(found)}, which does not broadcast to {shape}")


def spread(x: Any, shape: tuple[Any, ...], dtype: str, key: Any) -> Any:
    """Return a parameter as a tensor of `shape`, where the key lies."""
    return op_broadcast_to(active().on_device_of(key, active().convert(x, dtype)), shape)
