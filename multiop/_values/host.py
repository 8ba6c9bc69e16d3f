"""Convert host values (Python scalars, lists, NumPy arrays) for every backend by one set of rules."""

from __future__ import annotations

import array as buffers
import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np

from multiop import config, errors
from multiop._values import dtypes as _dtypes
from multiop._values.foreign import refuse_tensor

SCALARS = (bool, int, float, complex)
_WITH_DIGITS = (list, tuple, *SCALARS)


class _MadeUp(threading.local):
    """Whether this thread asks for sizes by made-up values: a loop, which these may never end, makes one pass."""

    is_on = False


made_up = _MadeUp()


def is_scalar(x: Any) -> bool:
    """Say whether `x` is a Python scalar, weak in promotion. A NumPy scalar is not, though `np.float64` is a float."""
    return isinstance(x, SCALARS) and not isinstance(x, np.generic)


def any_integer(test: Callable[[Any], Any], x: Any) -> bool:
    """Say whether an integer of a host value passes a test: one that is known as a program is made."""
    if isinstance(x, (list, tuple)):
        return any(any_integer(test, y) for y in x)
    if isinstance(x, (int, np.integer)):  # PyTorch's compiler makes a tensor of what NumPy computes
        return bool(test(x))
    return isinstance(x, np.ndarray) and bool(np.any(test(x)))


def is_zero(x: Any) -> bool:
    """Say whether `x` is the Python number 0, and not -0.0."""
    return is_scalar(x) and x == 0 and math.copysign(1.0, x.real) == math.copysign(1.0, x.imag) == 1.0


def power_of_10(n: int) -> float:
    """Return `10.0 ** n`, or infinity if it overflows."""
    return float(f"1e{n}")


def decimal_scales(decimals: int, itemsize: int) -> tuple[float, ...]:
    """Return factors of `10 ** decimals` within the range of a float of `itemsize` bytes, whose reciprocals are normal.

    None where its numbers have no more decimals than that.
    """
    largest, most = (307, 323) if itemsize == 8 else (37, 45)
    if decimals > most:
        return ()
    half = decimals // 2 if decimals > largest else 0
    return (power_of_10(decimals - half), power_of_10(half)) if half else (power_of_10(decimals),)


UFUNCS = {  # of NumPy and SciPy, whose ops have other names
    "absolute": "abs", "remainder": "mod", "float_power": "power", "true_divide": "divide", "positive": "copy",
    "invert": "bitwise_invert", "expit": "sigmoid", "gammaln": "lgamma", "psi": "digamma", "degrees": "rad2deg",
    "radians": "deg2rad", "conjugate": "conj", "log_expit": "log_sigmoid", "_zeta": "zeta",
}  # fmt: skip


def name_of_ufunc(ufunc: Any) -> str:
    """Return the name of the op that computes a ufunc."""
    return UFUNCS.get(ufunc.__name__, ufunc.__name__)


def flat(x: Any) -> Iterator[Any]:
    """Yield the entries of nested lists and tuples."""
    for entry in x:
        if isinstance(entry, (list, tuple)):
            yield from flat(entry)
        else:
            yield entry


def with_digits(given: Any, tensors: list[Any], convert: Any, dtype_name: Any) -> list[Any]:
    """Return `tensors` made of `given`, those of lists and Python scalars with 64 bits if another tensor has them.

    By itself, a float of a list is `floatx`, in which 0.1 has lost digits that it has in `float64`.
    """
    for x in given:  # a third of the time of any()
        if isinstance(x, _WITH_DIGITS):
            break
    else:
        return tensors
    names = [None if is_scalar(x) else dtype_name(x) for x in tensors]
    if "float64" not in names and "complex128" not in names:
        return tensors
    return [
        convert(a, _dtypes.result_type(name, "float64"))
        if name in _dtypes.INEXACT and (is_scalar(a) or isinstance(a, (list, tuple)))
        else x
        for a, x, name in zip(given, tensors, names, strict=True)
    ]


def as_numpy(x: Any, dtype: str | None, backend: str, wide: bool = False) -> np.ndarray[Any, Any]:
    """Return host value `x` as a NumPy array of the dtype that its tensor has on every backend.

    Args:
        x: A Python scalar, a NumPy array or scalar, what is one by NumPy's protocols, DLPack or a buffer, or nested
            lists of them, or what has a length and entries as a list has.
        dtype: The name of the requested dtype. `None`: Python floats become `floatx`, Python ints `int32`, and NumPy
            arrays keep their dtype, except that 64 bits become 32 while the 64-bit mode is off.
        backend: Named in the error for a foreign tensor.
        wide: Whether the framework's own 64-bit mode is on, regardless of multiop's.
    """
    if is_scalar(x):
        return scalar(x, dtype or _dtypes.of_lone_scalar(x, wide))
    if isinstance(x, (list, tuple, range)):
        return _of_nested(x, dtype, backend, wide)
    refuse_tensor(x, backend)
    if isinstance(x, np.ma.MaskedArray):
        raise errors.ArgumentTypeError("a masked array would lose its mask; fill it first with x.filled(value)")
    if hasattr(x, "nnz"):
        raise errors.ArgumentTypeError(f"{type(x).__name__} is sparse; make it dense first, as x.toarray() does")
    if (array := _of_array(x)) is not None:
        own = name_of(array, x)
        kept = dtype or _narrow(own, wide)
        hint = "; " + config.how_to_enable_x64() if dtype is None and kept != own else ""
        return _cast(array, kept, hint)
    if (entries := _entries(x)) is not None:
        if not all(is_scalar(leaf) or isinstance(leaf, (np.ndarray, np.generic)) for leaf in flat(entries)):
            # tensors among them would lose their gradients here
            raise errors.ArgumentTypeError(f"{type(x).__name__} holds more than numbers; give a list of its entries")
        return _of_nested(entries, dtype, backend, wide)
    raise errors.ArgumentTypeError(
        f"cannot make a tensor of {type(x).__name__}; give a tensor, NumPy array, Python scalar or nested lists of them"
    )


def _of_array(x: Any) -> np.ndarray[Any, Any] | None:
    """Return what says by itself how it is an array, as one; `None` for anything else."""
    if isinstance(x, (str, bytes, bytearray, type)):
        return None
    if isinstance(x, (np.ndarray, np.generic, memoryview, buffers.array)):
        return np.asarray(x)
    if any(hasattr(x, protocol) for protocol in ("__array__", "__array_interface__", "__array_struct__")):
        return np.asarray(x)
    return np.from_dlpack(x) if hasattr(x, "__dlpack__") else None


def _entries(x: Any) -> list[Any] | None:
    """Return the entries of what has an order of them, as a list; `None` for a text, a set, a dict and others."""
    if isinstance(x, (KeysView, ValuesView)):
        return list(x)
    if isinstance(x, (str, bytes, bytearray, Mapping, type)) or not hasattr(x, "__getitem__"):
        return None
    return [x[k] for k in range(len(x))] if hasattr(x, "__len__") else None


def scalar(x: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Return Python scalar `x` as a NumPy array of `dtype`, which must be able to hold it."""
    array = np.asarray(number(x, dtype))
    with np.errstate(over="ignore"):
        if dtype in _dtypes.FLOAT8:
            array = _rounded_to_odd(array)
        elif dtype == "bfloat16":
            array = _cut_to_odd(array)
        return array.astype(_dtypes.to_numpy(dtype))


def number(x: Any, dtype: str) -> bool | int | float | complex:
    """Return Python scalar `x` as the kind of Python number that matches `dtype`, which must be able to hold it."""
    if isinstance(x, complex) and dtype not in (*_dtypes.COMPLEX, "bool"):
        raise errors.DTypeError(f"{x} cannot become {dtype} without losing its imaginary part")
    if dtype in _dtypes.INTEGER:
        return int_within(x, dtype)
    try:
        return bool(x) if dtype == "bool" else complex(x) if dtype in _dtypes.COMPLEX else float(x)
    except OverflowError:
        raise errors.ArgumentError(f"an int of {x.bit_length()} bits does not fit in {dtype}") from None


def int_within(x: Any, dtype: str) -> int:
    """Return Python scalar `x` as an int that `dtype` can hold."""
    try:
        integer = int(x)
    except (OverflowError, ValueError):
        raise errors.ArgumentError(f"{x} is not an integer, and does not fit in {dtype}") from None
    low, high = _dtypes.INTEGER_RANGE[dtype]
    if not low <= integer <= high:
        wider = "; ask for a wider integer with dtype=, or cast to a float" if dtype == "int32" else ""
        raise errors.ArgumentError(f"{integer} does not fit in {dtype}{wider}")
    return integer


def _of_nested(x: Any, dtype: str | None, backend: str, wide: bool) -> np.ndarray[Any, Any]:
    leaves = list(flat(x))
    for leaf in leaves:
        refuse_tensor(leaf, backend)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise errors.ArgumentError(f"nested lists of unequal lengths do not make a tensor: {error}") from None
    if array.dtype == object and leaves and all(is_scalar(leaf) for leaf in leaves):
        raise errors.ArgumentError("an int in the list does not fit in 64 bits")
    if array.dtype.name not in _dtypes.ALL:
        kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves}))
        raise errors.ArgumentTypeError(f"cannot make a tensor of a list that holds {kinds}")
    hint = ""
    if dtype is None:
        dtypes = {
            _dtypes.of_scalar(leaf) if is_scalar(leaf) else _narrow(name_of(np.asarray(leaf)), wide) for leaf in leaves
        }
        dtype = _dtypes.result_type(*dtypes) if dtypes else config.floatx()
        if dtype == "int32" and array.size and array.dtype == np.int64:
            dtype = _dtypes.of_lone_scalar(max(int(array.max()), ~int(array.min())), wide)
        hint = "; ask for a wider integer with dtype=, or cast to a float"
    return _cast(array, dtype, hint)


# NumPy takes a microsecond to spell one; bfloat16 would be imported for it
_NAMES = {np.dtype(name): name for name in _dtypes.ALL if name != "bfloat16"}


def name_of(array: np.ndarray[Any, Any], given: Any = None) -> str:
    """Return the name of the dtype of `array`, made of `given`, or raise if no tensor has it."""
    if (known := _NAMES.get(array.dtype)) is not None:
        return known
    name = array.dtype.name  # without the byte order
    if name not in _dtypes.ALL and name not in _dtypes.FLOAT8:
        module, cls = type(given).__module__.partition(".")[0], type(given).__name__
        what = "NumPy array" if module in ("builtins", "numpy") else f"{module}.{cls}"
        raise errors.DTypeError(f"a {what} of dtype {getattr(given, 'dtype', array.dtype)} does not make a tensor")
    return name


def _narrow(dtype: str, wide: bool) -> str:
    """Return the dtype that NumPy input keeps: its own, or the 32-bit one while the 64-bit mode is off."""
    if wide or config.x64() or dtype not in _dtypes.WIDE:
        return dtype
    narrow = _dtypes.WIDE[dtype]
    if dtype in _dtypes.INEXACT:
        warn_of_precision(
            f"{dtype} NumPy input becomes {narrow}: the 64-bit mode is off; {config.how_to_enable_x64()}, or cast the "
            "input yourself"
        )
    return narrow


def warn_of_precision(message: str) -> None:
    """Warn the caller of this package that digits are lost."""
    warnings.warn(message, errors.PrecisionWarning, stacklevel=_caller())


def _caller() -> int:
    """Return the `stacklevel` of the first frame outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "multiop":
        level, frame = level + 1, frame.f_back
    return level


def _cast(array: np.ndarray[Any, Any], dtype: str, hint: str) -> np.ndarray[Any, Any]:
    """Cast `array` to `dtype`, refusing ints that do not fit and complex numbers that would lose a part."""
    target = _dtypes.to_numpy(dtype)
    if array.dtype == target:
        return array
    if array.dtype.kind in "iu" and dtype in _dtypes.INTEGER and array.size:
        low, high = _dtypes.INTEGER_RANGE[dtype]
        smallest, largest = int(array.min()), int(array.max())
        if smallest < low or largest > high:
            raise errors.ArgumentError(f"{smallest if smallest < low else largest} does not fit in {dtype}{hint}")
    if array.dtype.kind == "c" and dtype not in (*_dtypes.COMPLEX, "bool"):
        raise errors.DTypeError(
            f"a complex value cannot become {dtype} without losing its imaginary part; take op_real first"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype in _dtypes.FLOAT8 and array.dtype == np.float64:
            array = _rounded_to_odd(array)
        elif dtype == "bfloat16" and array.dtype.kind in "iuf" and array.dtype.itemsize > 2:
            array = _cut_to_odd(array)
        return array.astype(target)


def _cut_to_odd(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers of which float32 holds each, and which ml_dtypes thus rounds to bfloat16 as it would those of `x`.

    What is cut off leaves an odd last digit: then rounding that is no tie, and goes to the nearer side.
    """
    if x.dtype.itemsize == 8 and x.dtype.kind in "iu":  # float64 holds what is left
        low = x.dtype.type(0xFFFF)
        is_large = x >= 2**53 if x.dtype.kind == "u" else (x >= 2**53) | (x <= -(2**53))
        x = np.where(is_large, (x & ~low) | ((x & low) != 0) * (low + x.dtype.type(1)), x)
    if x.dtype == np.float32:
        return x
    bits = np.asarray(x, np.float64).view(np.int64)
    low = np.int64(2**29 - 1)
    return ((bits & ~low) | ((bits & low) != 0) * (low + 1)).view(np.float64)


def _rounded_to_odd(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a `float64` array in `float32`, where each inexact entry is odd, so that rounding it again is right."""
    y = x.astype(np.float32)  # ml_dtypes rounds float64 to it on the way to float8
    y = np.where(np.abs(y) > np.abs(x), np.nextafter(y, np.float32(0)), y)
    return (y.view(np.uint32) | (y != x)).view(np.float32)
