"""Derivatives of what is made of numbers, or like a tensor."""

from __future__ import annotations

import numpy as np

from ..._record import ops
from .formula import passed, zero

op_zeros = op_ones = op_zeros_like = op_ones_like = op_arange = op_eye = zero
op_full = op_full_like = (None, *passed)
op_copy = passed


def op_linspace(u, start, stop, num, endpoint, dtype, axis):
    samples, step = u
    parts = max(num - endpoint, 1)
    step = step / parts
    if samples is None:  # integers
        return -step, step
    rows = ops.moveaxis(samples, axis, -1)
    # by the weights of each end: less the other end's share, the sum of all keeps no digits beside a large row
    first = ops.sum(rows[..., :parts] * (np.arange(parts, 0, -1) / parts), -1, False)
    last = ops.sum(rows[..., 1:] * (np.arange(1, num) / parts), -1, False)
    return first - step, last + step
