"""Windows for the analysis of signals."""

from __future__ import annotations

import numpy as np
import scipy


def op_kaiser(triangle, beta):
    beta = triangle.dtype.type(beta)
    root = np.sqrt(triangle * (2 - triangle))
    below = np.square(1 - triangle) / (1 + root)  # 1 - root without cancellation
    # both functions are scaled by exp(-beta); unscaled, they would overflow
    return np.exp(-beta * below) * scipy.special.i0e(beta * root) / scipy.special.i0e(beta)
