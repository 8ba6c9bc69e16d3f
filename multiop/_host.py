"""Host values (Python scalars, lists, NumPy arrays) made ready for any backend, by one rule."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np

from multiop import _dtypes, config, errors

SCALARS = (bool, int, float, complex)

# top-level module of a tensor's class -> the backend that owns it
_OWNERS = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow", "keras": "keras"}


def is_scalar(x: Any) -> bool:
    """Say whether `x` is a Python scalar: weak in promotion. NumPy scalars are not, though `np.float64` is a float."""
    return isinstance(x, SCALARS) and not isinstance(x, np.generic)


def owner(x: Any) -> str | None:
    """Return the name of the framework whose tensor `x` is, or `None`."""
    for cls in type(x).__mro__:
        found = _OWNERS.get((cls.__module__ or "").partition(".")[0])
        if found is not None and hasattr(x, "shape") and hasattr(x, "dtype"):
            return found
    return None


def as_numpy(x: Any, dtype: str | None, backend: str, wide: bool = False) -> np.ndarray[Any, Any]:
    """Return host value `x` as a NumPy array of the dtype that a tensor of it has on every backend.

    Args:
        x: A Python scalar, a NumPy array or scalar, or nested lists of them.
        dtype: The dtype asked for by name, or `None`: Python floats are `floatx`, Python ints `int32`, NumPy arrays
            keep theirs, but for 64 bits while the 64-bit mode is off.
        backend: Named in the error for a foreign tensor.
        wide: Whether the framework's own 64-bit mode is on, whatever multiop's is.
    """
    if (framework := owner(x)) not in (None, backend):  # JAX has array-like literals that are not jax.Array
        raise errors.ForeignTensorError(
            f"a {framework} tensor was passed while the {backend} backend is active; convert it "
            f"(multiop.op_convert_to_numpy under use_backend({framework!r})), or switch with "
            f"multiop.set_backend({framework!r})"
        )
    if is_scalar(x):
        return _checked(
            np.asarray(x, _python_dtype(x, dtype) if not isinstance(x, int) else None),
            dtype or _dtypes.strong(_dtypes.of_scalar(x)),
        )
    if isinstance(x, (list, tuple)):
        return _of_nested(x, dtype, backend, wide)
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__array__"):
        array = np.asarray(x)
        return _checked(array, dtype or _narrow(array, wide))
    raise errors.ArgumentTypeError(
        f"cannot make a tensor of {type(x).__name__}; give a tensor, a NumPy array, a Python scalar or nested lists of them"
    )


def _python_dtype(x: Any, dtype: str | None) -> np.dtype[Any]:
    return np.dtype(bool) if isinstance(x, bool) else np.dtype(complex if isinstance(x, complex) else float)


def _of_nested(x: Any, dtype: str | None, backend: str, wide: bool) -> np.ndarray[Any, Any]:
    flat = list(_flat(x))
    for leaf in flat:
        if owner(leaf) is not None:
            as_numpy(leaf, None, backend)  # raises
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise errors.ArgumentError(f"nested lists of unequal lengths do not make a tensor: {error}") from None
    if array.dtype == object or array.dtype.kind in "USV":
        if array.dtype == object and flat and all(isinstance(leaf, int) for leaf in flat):
            raise errors.ArgumentError("an int in the list does not fit in 64 bits")
        raise errors.ArgumentTypeError(
            f"cannot make a tensor of a list that holds {type(flat[0]).__name__ if flat else 'nothing'}"
        )
    if dtype is None:
        weak = [is_scalar(leaf) for leaf in flat]
        if all(weak):
            dtype = _dtypes.result_type(*{_dtypes.of_scalar(leaf) for leaf in flat}) if flat else config.floatx()
        else:
            dtype = _dtypes.result_type(
                *{
                    _dtypes.of_scalar(leaf) if scalar else _narrow(np.asarray(leaf), wide)
                    for leaf, scalar in zip(flat, weak, strict=True)
                }
            )
    return _checked(array, dtype)


def _flat(x: Any) -> Any:
    for entry in x:
        if isinstance(entry, (list, tuple)):
            yield from _flat(entry)
        else:
            yield entry


def _narrow(array: np.ndarray[Any, Any], wide: bool) -> str:
    """Return the dtype that NumPy input keeps: its own, or the 32-bit one while the 64-bit mode is off."""
    if array.dtype == ml_dtypes.bfloat16:
        return "bfloat16"
    if array.dtype.name not in _dtypes.ALL:
        raise errors.DTypeError(f"a NumPy array of dtype {array.dtype} does not make a tensor")
    dtype = array.dtype.name
    if wide or config.x64() or dtype not in _dtypes.WIDE:
        return dtype
    narrow = _dtypes.WIDE[dtype]
    if dtype in _dtypes.INEXACT:
        warnings.warn(
            f"{dtype} NumPy input becomes {narrow}: the 64-bit mode is off; turn it on with multiop.enable_x64() "
            f"or MULTIOP_X64=1, or cast the input yourself",
            errors.PrecisionWarning,
            stacklevel=2,
        )
    return narrow


def _checked(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """Cast `array` to `dtype`, refusing ints that do not fit."""
    target = _dtypes.to_numpy(dtype)
    if array.dtype == target:
        return array
    if array.dtype.kind in "iu" and dtype in _dtypes.INTEGER and array.size:
        info = np.iinfo(target)
        low, high = int(array.min()), int(array.max())
        if low < info.min or high > info.max:
            raise errors.ArgumentError(
                f"{low if low < info.min else high} does not fit in {dtype}"
                + (
                    "; turn the 64-bit mode on with multiop.enable_x64() or MULTIOP_X64=1"
                    if dtype in ("int32", "uint32")
                    else ""
                )
            )
    if array.dtype.kind == "c" and dtype not in _dtypes.COMPLEX:
        raise errors.DTypeError(
            f"a complex value cannot become {dtype} without losing its imaginary part; take op_real first"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(target)
