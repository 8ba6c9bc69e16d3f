"""Special functions of arrays of float64 on the host: SciPy's, which are right to a few units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

Array = np.ndarray[Any, Any]


def compute(name: str, *arrays: Any) -> Array:
    """Return the function `name` of SciPy, which imports this part when it is named first; `i0` is that below."""
    return i0(*arrays) if name == "i0" else np.asarray(getattr(scipy.special, name)(*arrays))


def i0(x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        half = np.exp(np.abs(x) / 2)  # its square overflows before the result does
        return np.where(np.isinf(x), np.abs(x), scipy.special.i0e(x) * half * half)
