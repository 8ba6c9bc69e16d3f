"""Dtypes by name, and the one promotion table (the lattice that JAX documents), which every backend uses.

Source: https://docs.jax.dev/en/latest/type_promotion.html
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from multiop import config, errors

BOOLEAN = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATING = ("bfloat16", "float16", "float32", "float64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")  # tensors of them are cast and read, but no op computes with them
COMPLEX = ("complex64", "complex128")
INTEGER = SIGNED + UNSIGNED
INEXACT = FLOATING + COMPLEX
ALL = BOOLEAN + INTEGER + INEXACT
REAL_PART = {"complex64": "float32", "complex128": "float64"}
WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}

INTEGER_RANGE = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in INTEGER}

DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53, "float8_e4m3fn": 4, "float8_e5m2": 3}
"""How many binary digits a number of each dtype of floats has."""

NORMAL = {"bfloat16": -126, "float16": -14, "float32": -126, "float64": -1022, "float8_e4m3fn": -6, "float8_e5m2": -14}
"""The exponent of the smallest normal number of each dtype of floats."""

LARGEST = {name: float(2 ** (2 - least) - 2 ** (2 - least - DIGITS[name])) for name, least in NORMAL.items()}
LARGEST["float8_e4m3fn"] = 448.0  # the next one is NaN
"""The largest finite number of each dtype of floats."""

# dtype -> the next larger ones; "int*", "float*", "complex*" are the weak types of Python scalars
_LATTICE: dict[str, tuple[str, ...]] = {
    "bool": ("int*",),
    "int*": ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "uint16": ("int32", "uint32"),
    "uint32": ("int64", "uint64"),
    "uint64": ("float*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("float*",),
    "float*": ("complex*", "bfloat16", "float16"),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "complex*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
}


@functools.cache
def _above(dtype: str) -> set[str]:
    return {dtype}.union(*(_above(larger) for larger in _LATTICE[dtype]))


def _join(dtype1: str, dtype2: str) -> str:
    common = _above(dtype1) & _above(dtype2)
    return next(dtype for dtype in common if common <= _above(dtype))


# computed once, because a compiler that traces Python can read a dict, but not a cache
_JOIN = {dtype1: {dtype2: _join(dtype1, dtype2) for dtype2 in _LATTICE} for dtype1 in _LATTICE}


def join(first: str, *rest: str) -> str:
    """Return the least dtype of the lattice that can hold all the given ones (names, weak ones included)."""
    for dtype in rest:
        refuse_float8(first, dtype)
        first = _JOIN[first][dtype]
    return first


def refuse_float8(*dtypes: str) -> None:
    """Raise an error for a dtype that nothing is computed in."""
    for dtype in dtypes:
        if dtype in FLOAT8:
            raise errors.DTypeError(f"no op computes in {dtype}; cast it first")


def strong(dtype: str) -> str:
    """Return the dtype that a weak one becomes where no tensor decides."""
    if dtype == "int*":
        return "int32"
    if dtype == "float*":
        return config.floatx()
    if dtype == "complex*":
        return "complex128" if config.floatx() == "float64" else "complex64"
    return dtype


def result_type(*dtypes: str) -> str:
    """Return the dtype of an operation between operands of `dtypes` (names, weak ones included)."""
    return strong(join(*dtypes))


def of_average(dtype: Any) -> str:
    """Return the name of the dtype in which an average is asked for."""
    found = name(dtype)
    if found not in INEXACT:
        raise errors.DTypeError(f"dtype must be floating or complex for an average, got {found}")
    return found


def to_floating(dtype: str) -> str:
    """Return the dtype in which a function of real numbers computes `dtype`: integers and bool become `floatx`."""
    if dtype in INEXACT:
        return dtype
    refuse_float8(dtype)
    return config.floatx()


def of_scalar(x: object) -> str:
    """Return the weak dtype of a Python scalar."""
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int):
        return "int*"
    return "float*" if isinstance(x, float) else "complex*"


def of_lone_scalar(x: Any, wide: bool = False) -> str:
    """Return the dtype of a Python scalar where no tensor decides: an int has 64 bits if it needs and may have them."""
    weak = of_scalar(x)
    if weak == "int*" and not -(2**31) <= x < 2**31 and (wide or config.x64()):
        return "int64"
    return strong(weak)


def name(dtype: Any, others: tuple[str, ...] = ()) -> str:
    """Return the name, in `ALL` or `others`, of a dtype given as a name, a NumPy or native dtype or a Python type."""
    if isinstance(dtype, str) and dtype in ALL:
        return dtype
    if dtype is float:
        return config.floatx()
    if dtype is int:
        return "int32"
    if dtype is complex:
        return strong("complex*")
    if isinstance(dtype, str):
        text = {"float": config.floatx(), "int": "int32", "half": "float16", "double": "float64"}.get(dtype, dtype)
    elif isinstance(dtype, (np.dtype, type)):
        try:
            text = np.dtype(dtype).name
        except TypeError:
            text = str(dtype)
    else:
        text = getattr(dtype, "name", None) or str(dtype)  # tf.float32.name; str(torch.float32) is 'torch.float32'
    text = str(text).rpartition(".")[2]
    if text in FLOAT8 and not others:
        raise errors.DTypeError(f"no op computes in {text}; only op_cast and op_convert_to_tensor take it")
    if text not in ALL and text not in others:
        hint = "; sizes are one tuple, as in op_reshape(x, (2, 3))" if isinstance(dtype, (int, tuple)) else ""
        raise errors.DTypeError(f"unknown dtype {dtype!r}; known dtypes: {', '.join((*ALL, *others))}{hint}")
    return text


def name_or_none(dtype: Any, others: tuple[str, ...] = ()) -> str | None:
    """Return the name of a dtype, or `None` for `None`."""
    return None if dtype is None else name(dtype, others)


def to_numpy(dtype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of the name `dtype`, `bfloat16` and `FLOAT8` included."""
    if dtype not in ("bfloat16", *FLOAT8):
        return np.dtype(dtype)
    import ml_dtypes  # here, because it takes a tenth of the time to import multiop

    return np.dtype(getattr(ml_dtypes, dtype))


def _saturation(source: str, target: str) -> tuple[float, float] | None:
    (least, largest), (low, high) = EXTREMES[source], EXTREMES[target]
    if low <= least and largest <= high and not (source in FLOATING and target in INTEGER):  # no integer is infinite
        return None
    return _inward(max(low, least), source), _inward(min(high, largest), source)


def _inward(bound: float, dtype: str) -> float:
    """Return `bound`, a whole number, rounded towards zero to a number of `dtype`."""
    if dtype in INTEGER:
        return int(bound)
    size = abs(int(bound))
    dropped = max(size.bit_length() - DIGITS[dtype], 0)
    return float((size >> dropped << dropped) * (1 if bound > 0 else -1))


# computed once, as above

EXTREMES: dict[str, tuple[float, float]] = {
    **INTEGER_RANGE,
    **{name: (-LARGEST[name], LARGEST[name]) for name in FLOATING},
}
"""The least and the largest finite number of each real dtype."""

IDENTITY: dict[str, tuple[float, float]] = {
    **INTEGER_RANGE,
    **dict.fromkeys(FLOATING, (-float("inf"), float("inf"))),
}
"""The maximum and the minimum of an empty set in each real dtype."""

SATURATION = {(source, target): _saturation(source, target) for source in EXTREMES for target in EXTREMES}
"""The least and the largest number of one dtype that another can hold; `None` if it can hold them all."""
