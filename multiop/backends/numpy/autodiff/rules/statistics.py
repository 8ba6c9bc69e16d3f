"""Derivatives of statistics."""

from __future__ import annotations

import numpy as np

from ..._record import ops


def op_correlate(u, x1, x2, before, after):
    width = x2.shape[0] - 1
    return (
        ops.correlate(u, np.conj(ops.flip(x2, 0)), width - before, width - after),
        ops.correlate(np.conj(x1), u, before, after),
    )
