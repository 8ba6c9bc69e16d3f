"""Derivatives of windows."""

from __future__ import annotations

import numpy as np

from ..._record import array_of, ops
from .formula import by_formula


@by_formula
def op_kaiser(triangle, beta):
    # Bessel's integral: of an entire function that is periodic, a sum has all digits
    n = 20 + int(5 * np.sqrt(array_of(beta)))
    falls = (-2 * np.square(np.sin(np.pi * (np.arange(n) + 0.5) / (2 * n)))).astype(triangle.dtype)
    root = np.sqrt(triangle * (2 - triangle))
    below = np.square(1 - triangle) / (1 + root)
    terms = np.exp(beta * (root[:, None] * falls))
    return np.exp(-beta * below) * (ops.mean(terms, -1, False) / ops.mean(np.exp(beta * falls), -1, False))
