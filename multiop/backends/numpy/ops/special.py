"""Special functions."""

from __future__ import annotations

import scipy

from multiop._values import scipy_special

from ..conversion import of_reals

op_erf = of_reals(lambda x: scipy.special.erf(x))  # noqa: PLW0108  SciPy imports this part when it is named first
op_erfc = of_reals(lambda x: scipy.special.erfc(x))  # noqa: PLW0108
op_erfinv = of_reals(lambda x: scipy.special.erfinv(x))  # noqa: PLW0108
op_i0 = of_reals(scipy_special.i0)
