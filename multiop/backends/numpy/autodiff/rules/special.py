"""Derivatives of special functions."""

from __future__ import annotations

import math

import numpy as np
import scipy

from ..._record import array_of, ops
from .formula import by_slope, sloped


def bell(x):
    """Return `exp(-x**2)`: the square of the rounded `x` is exact, that of `x` would lose digits."""
    near = np.clip(np.rint(array_of(x) * 16) / 16, -50, 50)
    return np.exp(-np.square(near)) * np.exp(-(x - near) * (x + near))


op_erf, op_erfc = (by_slope(lambda x, n=n: bell(x) * (n / math.sqrt(math.pi))) for n in (2, -2))
op_erfinv = by_slope(lambda x: np.exp(np.square(ops.erfinv(x))) * (math.sqrt(math.pi) / 2))


@by_slope
def op_i0(x):
    half = np.exp(abs(x) / 2)  # its square overflows before the result does
    return ops.where(ops.isinf(x), x, ive(1, x) * half * half)


def ive(order, x):
    """Return the modified Bessel function of an order, times `exp(-abs(x))`."""

    def value(x):
        beyond = np.maximum(np.abs(x), 1e8) / 1e8  # there, it falls as this root does, and SciPy's may be NaN
        near = np.clip(x, -1e8, 1e8)  # of the first order, `ive` has few digits at small arguments
        near = scipy.special.i1e(near) if order == 1 else scipy.special.ive(order, near)
        return np.asarray(near / np.sqrt(beyond))

    return sloped(value, lambda x: (ive(order - 1, x) + ive(order + 1, x)) / 2 - ops.sign(x) * ive(order, x), x)
