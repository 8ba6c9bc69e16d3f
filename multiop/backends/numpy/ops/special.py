"""Special functions."""

from __future__ import annotations

import numpy as np
import scipy

from ..conversion import of_reals


def i0(x):
    half = np.exp(np.abs(x) / 2)  # its square overflows before the result does
    return np.where(np.isinf(x), np.abs(x), scipy.special.i0e(x) * half * half)


@of_reals
def op_erf(x):
    return scipy.special.erf(x)  # SciPy imports this part when it is named first


@of_reals
def op_erfc(x):
    return scipy.special.erfc(x)


@of_reals
def op_erfinv(x):
    return scipy.special.erfinv(x)


op_i0 = of_reals(i0)
