"""How far two results may differ: in units in the last place of their dtype, never by a fixed absolute amount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
__tracebackhide__ = True  # pytest leaves out the frames of this module

# Two programs for one function may differ by this many units, at the scale of each entry's rounding errors
AGREEMENT_ULPS = 256.0


class Mismatch(AssertionError):
    """Two results that should be equal are not.

    Attributes:
        error: The largest relative difference; infinite if shapes, dtypes or anything else but numbers differ.
        allowed: How large it may be; `None` if nothing but equality is allowed.
    """

    def __init__(self, message: str, error: float = float("inf"), allowed: float | None = None) -> None:
        super().__init__(message)
        self.error, self.allowed = error, allowed


Mismatch.__module__ = "multiop.testing"  # the name that a traceback shows is the one to catch it by


def eps(dtype: Any) -> float:
    """Return the distance from 1 to the next larger number of `dtype`; 0 for integers and bool, which are exact."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return float(np.finfo(dtype).eps)
    return float(_finfo(dtype).eps) if dtype.kind in "fV" else 0.0


def _finfo(dtype: Any) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _wide(x: Array) -> Array:
    x = np.asarray(x)
    if x.dtype.kind == "V" or x.dtype.name == "bfloat16":
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x


def relative_error(found: Array, expected: Array, scale: Array | None = None, dtype: Any = None) -> float:
    """Return the largest difference between two arrays of one shape, each entry relative to its scale.

    NaN equals NaN, and an infinity equals itself; any other value in their place, or another shape, is infinitely
    wrong. Numbers below the dtype's smallest normal number count as zero, since processors may flush them.

    Args:
        found: The result.
        expected: What it should be.
        scale: The scale of rounding errors, where it is larger than the entry itself.
        dtype: The dtype whose range counts; by default that of `found`.
    """
    dtype = np.asarray(found).dtype if dtype is None else np.dtype(dtype)
    found, expected = _wide(found), _wide(expected)
    if found.shape != expected.shape:
        return float("inf")
    if found.size == 0:
        return 0.0
    if found.dtype.kind in "bui" and expected.dtype.kind in "bui":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    finite = np.isfinite(found) & np.isfinite(expected)
    if not np.array_equal(_parts(found, ~finite), _parts(expected, ~finite), equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    difference = np.abs(found[finite] - expected[finite])
    size = (
        np.abs(expected[finite])
        if scale is None
        else np.maximum(np.abs(expected[finite]), np.abs(_wide(scale)[finite]))
    )
    smallest = _smallest_normal(dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(difference <= smallest, 0.0, difference / np.maximum(size, smallest))
    return float(relative.max())


def _parts(x: Array, mask: Array) -> Array:
    return np.stack([x.real[mask], x.imag[mask]]) if x.dtype.kind == "c" else x[mask].astype(np.float64)


def _smallest_normal(dtype: Any) -> float:
    if dtype.kind == "c":
        return float(np.finfo(dtype).tiny)
    return float(_finfo(dtype).tiny) if eps(dtype) else 0.0


def noise(value: Array, perturbed: list[Array], inputs: float = 0.0) -> Array:
    """Return by how much each entry moves when the inputs move by one unit in the last place.

    A jump (an input on a kink or step) is not rounding noise and is not counted: the movement must be small compared
    with the result or, where terms cancel almost completely, within a few rounding errors of the inputs' size.
    """
    value = _wide(value)
    moved = np.zeros(value.shape)
    if value.dtype.kind in "bui":
        return moved
    size = np.abs(value[np.isfinite(value)]).max(initial=0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        for other in map(_wide, perturbed):
            if other.shape == value.shape:
                moved = np.fmax(moved, np.abs(other - value))
    plausible = max(np.sqrt(eps(np.float32)) * size, 1e4 * eps(value.dtype) * inputs)
    return np.where(moved < plausible, moved, 0.0)


def assert_equal(
    found: list[Array],
    expected: list[Array],
    what: str,
    *,
    ulps: float = AGREEMENT_ULPS,
    scales: Callable[[], list[Any]] | None = None,
) -> float:
    """Raise `Mismatch` unless two lists of arrays agree in number, shape, dtype and value; return the error.

    `scales` gives the scale of each array's rounding errors, and is called only where two arrays have unlike bits.
    """
    if len(found) != len(expected):
        raise Mismatch(f"{what}: {len(found)} results where {len(expected)} are expected")
    names = [what] if len(found) == 1 else [f"{what}, result {k}" for k in range(len(found))]
    for which, one, other in zip(names, found, expected, strict=True):
        if one.shape != other.shape:
            raise Mismatch(f"{which}: shape {one.shape} where {other.shape} is expected")
        if one.dtype != other.dtype:
            raise Mismatch(f"{which}: dtype {one.dtype} where {other.dtype} is expected")
    unlike = [k for k, (one, other) in enumerate(zip(found, expected, strict=True)) if one.tobytes() != other.tobytes()]
    rounding = scales() if scales is not None and unlike else [None] * len(found)
    errors = [assert_close(found[k], expected[k], names[k], ulps=ulps, scale=rounding[k]) for k in unlike]
    return max(errors, default=0.0)


def assert_close(
    found: Array, expected: Array, what: str, *, ulps: float, scale: Any = None, dtype: Any = None
) -> float:
    """Raise `Mismatch` unless `found` is within `ulps` units in the last place of `expected`; return the error."""
    error = relative_error(found, expected, scale, dtype)
    allowed = ulps * eps(found.dtype if dtype is None else dtype)
    if not error <= allowed:
        worst = worst_entry(found, expected, scale)
        both = f"\n  found    {short(found)}\n  expected {short(expected)}"
        raise Mismatch(f"{what}: relative error {error:.3g}, {allowed:.3g} is allowed{worst}{both}", error, allowed)
    return error


def worst_entry(found: Array, expected: Array, scale: Any = None) -> str:
    """Say which entry of two arrays of one shape differs most, if there are several."""
    one, other = _wide(found), _wide(expected)
    if one.shape != other.shape or one.size < 2:
        return ""
    size = np.abs(other) if scale is None else np.fmax(np.abs(other), np.abs(_wide(np.asarray(scale))))
    where = farthest(one, other, size)
    return f"; worst is entry {list(where)}: {one[where]:.9g} where {other[where]:.9g} is expected"


def farthest(found: Array, expected: Array, size: Any = 0.0) -> tuple[int, ...]:
    """Return where two arrays of one shape differ most, relative to the `size` of each entry (absolutely if it is 0).

    NaN equals NaN, and is infinitely far from anything else.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        unlike = ~((found == expected) | ((found != found) & (expected != expected)))
        apart = np.abs(found.astype(complex) - expected.astype(complex)) / np.where(size > 0, size, 1.0)
    place = int(np.argmax(np.where(unlike, np.nan_to_num(apart, nan=np.inf), -1.0)))
    return tuple(int(i) for i in np.unravel_index(place, found.shape))


def short(x: Array) -> str:
    """Return a few numbers as text, and the dtype and shape of an array of more."""
    if x.size > _SHOWN:
        return f"{x.dtype}{list(x.shape)}"
    return np.array2string(np.asarray(_wide(x)), precision=9).replace("\n", "\n           ")


_SHOWN = 8  # the size of the largest array whose numbers are shown
