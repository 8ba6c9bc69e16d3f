"""Special functions."""

from __future__ import annotations

import scipy

from multiop._values import scipy_special

from ..conversion import of_reals


@of_reals
def op_erf(x):
    return scipy.special.erf(x)  # SciPy imports this part when it is named first


@of_reals
def op_erfc(x):
    return scipy.special.erfc(x)


@of_reals
def op_erfinv(x):
    return scipy.special.erfinv(x)


op_i0 = of_reals(scipy_special.i0)
