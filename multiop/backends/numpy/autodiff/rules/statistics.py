"""Derivatives of statistics."""

from __future__ import annotations

import numpy as np

from ..._record import ops

op_correlate = (
    lambda u, _y, _x1, x2, before, after: ops.correlate(
        u, np.conj(ops.flip(x2, 0)), x2.shape[0] - 1 - before, x2.shape[0] - 1 - after
    ),
    lambda u, _y, x1, _x2, before, after: ops.correlate(np.conj(x1), u, before, after),
)
