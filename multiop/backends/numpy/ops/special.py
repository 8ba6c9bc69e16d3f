"""Special functions."""

from __future__ import annotations

import numpy as np
import scipy

from ..conversion import of_reals


def i0(x):
    half = np.exp(np.abs(x) / 2)  # its square overflows before the result does
    return np.where(np.isinf(x), np.abs(x), scipy.special.i0e(x) * half * half)


op_erf = of_reals(scipy.special.erf)
op_erfc = of_reals(scipy.special.erfc)
op_erfinv = of_reals(scipy.special.erfinv)
op_i0 = of_reals(i0)
