"""Ask for the limits of a dtype, its name, and the framework's own object for it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, ready
from multiop._values import dtypes
from multiop._values.types import ArrayLike, DType


class FloatInfo(NamedTuple):
    """The limits of a dtype of floats, as Python numbers."""

    dtype: str
    bits: int
    eps: float
    epsneg: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float
    tiny: float
    resolution: float
    precision: int


class IntegerInfo(NamedTuple):
    """The limits of a dtype of integers, as Python ints."""

    dtype: str
    bits: int
    min: int
    max: int


def _float_info(dtype: str) -> FloatInfo:
    digits, largest, normal = dtypes.DIGITS[dtype], dtypes.LARGEST[dtype], 2.0 ** dtypes.NORMAL[dtype]
    bits = digits + (2 - dtypes.NORMAL[dtype]).bit_length()  # the sign takes the place of the digit that is always 1
    eps = 2.0 ** (1 - digits)
    precision = max(math.floor(-math.log10(eps)), 1)
    fraction, power = math.frexp(10.0**-precision)
    resolution = math.ldexp(round(fraction * 2**digits), power - digits)
    limits = eps, eps / 2, largest, -largest, normal, normal * eps, normal, resolution
    return FloatInfo(dtype, bits, *limits, precision)


# by formulas: a compiler that traces Python can read a dict, but not NumPy's finfo, and ml_dtypes takes time to import
_FLOATS = {name: _float_info(name) for name in dtypes.DIGITS}
_INTEGERS = {
    dtype: IntegerInfo(dtype, np.dtype(dtype).itemsize * 8, *dtypes.INTEGER_RANGE[dtype]) for dtype in dtypes.INTEGER
}


@boundary
def finfo(dtype: DType | ArrayLike) -> FloatInfo:
    """Return the limits of a dtype of floats.

    Args:
        dtype: Name, or dtype of NumPy, `ml_dtypes` or a framework, of a dtype of floats, `"float8_e4m3fn"` and
            `"float8_e5m2"` included; or a tensor or array of it. For a complex dtype, that of its parts counts.

    Returns:
        Tuple with NumPy's names: `dtype` (a name), `bits`, `eps`, `epsneg`, `max`, `min`, `smallest_normal`,
        `smallest_subnormal`, `tiny`, `resolution` and `precision`, all but the first Python numbers.

    Raises:
        DTypeError: `dtype` is unknown, or not of floats.

    Example:
        >>> import multiop
        >>> multiop.finfo("bfloat16").eps, multiop.finfo(multiop.op_zeros(3)).bits
        (0.0078125, 32)
    """
    name = _name(dtype)
    name = dtypes.REAL_PART.get(name, name)
    if name not in _FLOATS:
        raise errors.DTypeError(f"{name} is not a float dtype; see multiop.iinfo for integers")
    return _FLOATS[name]


@boundary
def iinfo(dtype: DType | ArrayLike) -> IntegerInfo:
    """Return the limits of a dtype of integers.

    Args:
        dtype: Name, or dtype of NumPy or a framework, of a dtype of integers; or a tensor or array of it.

    Returns:
        Tuple with NumPy's names: `dtype` (a name), `bits`, `min` and `max`.

    Raises:
        DTypeError: `dtype` is unknown, or not of integers.

    Example:
        >>> import multiop
        >>> multiop.iinfo("uint8").max
        255
    """
    name = _name(dtype)
    if name not in _INTEGERS:
        raise errors.DTypeError(f"{name} is not an integer dtype; see multiop.finfo for floats")
    return _INTEGERS[name]


@boundary
def dtype_name(dtype: DType | ArrayLike) -> str:
    """Return the name of a dtype.

    Args:
        dtype: Name, or dtype of NumPy, `ml_dtypes` or a framework, or Python's `float`, `int`, `complex` or `bool`; or
            a tensor or array.

    Returns:
        A name such as `"float32"`, the same on every backend.

    Raises:
        DTypeError: `dtype` is unknown.

    Example:
        >>> import multiop
        >>> multiop.dtype_name(multiop.native_dtype("bfloat16"))
        'bfloat16'
    """
    return _name(dtype)


@boundary
def native_dtype(dtype: DType) -> Any:
    """Return the dtype of the active backend's framework.

    Args:
        dtype: Name, or dtype of NumPy or any framework.

    Returns:
        A `torch.dtype`, a `tf.DType`, or for JAX a `numpy.dtype`.

    Raises:
        DTypeError: `dtype` is unknown, or has 64 bits on JAX with the 64-bit mode off.

    Example:
        >>> import multiop
        >>> with multiop.use_backend("torch"):
        ...     multiop.native_dtype("float16")
        torch.float16
    """
    backend = active()
    made: Any = backend.op_cast(backend.convert(0), dtypes.name(dtype, dtypes.FLOAT8))
    return made.dtype


def dtype_object(name: str) -> Any:
    """Return the active backend's object for the dtype of a name, as `multiop.ops.float32`."""
    ready()  # what a compiler calls while it traces may not load a backend within an op
    try:
        return native_dtype(name)
    except errors.DTypeError:  # JAX without its 64-bit mode: the dtype can be compared with, and is refused where asked
        return dtypes.to_numpy(name)


def _name(dtype: Any) -> str:
    """Return the name of a dtype, or of the dtype of a tensor or array."""
    of_tensor = hasattr(dtype, "shape") and not isinstance(dtype, (type, np.dtype))
    return dtypes.name(dtype.dtype if of_tensor else dtype, dtypes.FLOAT8)
