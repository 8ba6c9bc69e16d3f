"""Products by PyTorch's kernels."""

from __future__ import annotations

import torch

from .._kernels import LONG
from ..conversion import are_floats


def op_cross(x1, x2, axisa, axisb, axisc, axis, *, otherwise):
    are_last = axis is None and axisa == axisb == axisc == -1
    if not (are_last and are_floats(x1, x2) and x1.dtype in LONG and x1.ndim == x2.ndim > 0):
        return otherwise(x1, x2, axisa, axisb, axisc, axis)
    if not x1.shape[-1] == x2.shape[-1] == 3:
        return otherwise(x1, x2, axisa, axisb, axisc, axis)
    return torch.linalg.cross(x1, x2)
