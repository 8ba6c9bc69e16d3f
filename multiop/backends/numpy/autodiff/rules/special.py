"""Derivatives of special functions."""

from __future__ import annotations

import math

import numpy as np
import scipy

from ..._record import array_of, is_traced, ops, recorded
from .formula import by_slope

op_erf = by_slope(lambda x: np.exp(-np.square(x)) * (2 / math.sqrt(math.pi)))
op_erfc = by_slope(lambda x: np.exp(-np.square(x)) * (-2 / math.sqrt(math.pi)))
op_erfinv = by_slope(lambda x: np.exp(np.square(ops.erfinv(x))) * (math.sqrt(math.pi) / 2))


def i1(x):
    return recorded(i1_value, i1_rule, (x,)) if is_traced(x) else i1_value(array_of(x))


def i1_value(x):
    half = np.exp(np.abs(x) / 2)  # its square overflows before the result does
    return np.where(np.isinf(x), x, scipy.special.i1e(x) * half * half)


@by_slope
def i1_rule(x):
    near = ops.less(abs(x), 1e-4)
    return ops.where(near, 0.5 + np.square(x) * 0.1875, ops.i0(x) - i1(x) / ops.where(near, 1, x))


op_i0 = by_slope(i1)
