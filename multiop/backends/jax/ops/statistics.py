"""Statistics: the ops that are not composed of others."""

from __future__ import annotations

import numpy as np

from .convolution import convolve


def op_correlate(x1, x2, before, after):
    if x1.dtype == bool:  # NumPy's product of bools is `or` over `and`
        return op_correlate(x1.astype(np.int32), x2.astype(np.int32), before, after) != 0
    layout = ("NCW", "OIW", "NCW")
    return convolve(x1[None, None], x2[None, None], (1,), [(before, after)], dimension_numbers=layout)[0, 0]
