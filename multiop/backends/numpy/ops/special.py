"""Special functions."""

from __future__ import annotations

import numpy as np
import scipy

from ..conversion import floating, in_float32, reject_complex


def op_erf(x):
    return in_float32(scipy.special.erf, *reject_complex(floating(x)))


def op_erfc(x):
    return in_float32(scipy.special.erfc, *reject_complex(floating(x)))


def op_erfinv(x):
    return in_float32(scipy.special.erfinv, *reject_complex(floating(x)))


def op_i0(x):
    return in_float32(i0, *reject_complex(floating(x)))


def i0(x):
    half = np.exp(np.abs(x) / 2)  # its square overflows before the result does
    return np.where(np.isinf(x), np.abs(x), scipy.special.i0e(x) * half * half)
