"""Special functions of arrays of float64 on the host: SciPy's, which are right to a few units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

Array = np.ndarray[Any, Any]


def digamma(x: Array) -> Array:
    return np.asarray(scipy.special.digamma(x))  # SciPy imports this part when it is named first


def polygamma(n: int, x: Array) -> Array:
    """Return the polygamma function of positive numbers."""
    return np.asarray(scipy.special.polygamma(n, x))


def gammainc(a: Array, x: Array) -> Array:
    return np.asarray(scipy.special.gammainc(a, x))


def gammaincc(a: Array, x: Array) -> Array:
    return np.asarray(scipy.special.gammaincc(a, x))


def erf(x: Array) -> Array:
    return np.asarray(scipy.special.erf(x))


def xlogy(x: Array, y: Array) -> Array:
    return np.asarray(scipy.special.xlogy(x, y))


def xlog1py(x: Array, y: Array) -> Array:
    return np.asarray(scipy.special.xlog1py(x, y))


def erfinv(x: Array) -> Array:
    return np.asarray(scipy.special.erfinv(x))


def i0(x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        half = np.exp(np.abs(x) / 2)  # its square overflows before the result does
        return np.where(np.isinf(x), np.abs(x), scipy.special.i0e(x) * half * half)
