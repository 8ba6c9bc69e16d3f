"""Rows of the windows."""

from __future__ import annotations

import numpy as np

from .._case import Row, call
from .creation import creation_row


def window(op: str, reference, *options: float) -> Row:
    """Make a row of a window."""
    calls = [call(n, *options) for n in (0, 1, 2, 5, 12)]
    return creation_row(op, reference, *calls, returns="float32", ulps=8.0)


def exact(op: str, reference) -> Row:
    """Make a row of a window whose ends are 0; NumPy's are off by about 1e-17."""
    return window(op, lambda x: np.where(np.arange(x) % max(x - 1, 1) == 0, x == 1, reference(x)))


ROWS = [
    creation_row(
        "op_kaiser",
        np.kaiser,
        *(call(n, beta) for n, beta in ((0, 1.0), (1, 2.0), (5, 14.0), (6, -3), (9, 0.0), (4, 300.0))),
        returns="float32",
        ulps=64.0,  # at beta = 300 the exponent is 17, which multiplies the error of the exponential by as much
    ),
    exact("op_bartlett", np.bartlett),
    exact("op_hanning", np.hanning),
    window("op_hamming", np.hamming),
    exact("op_blackman", np.blackman),
]
