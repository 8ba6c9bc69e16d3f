"""Derivatives of comparisons, which have none, and of choices."""

from __future__ import annotations

from ..._record import ops
from .formula import zero

op_equal = op_not_equal = op_less = op_less_equal = op_greater = op_greater_equal = zero


def op_where(u, condition, x1, x2):
    return None, ops.where(condition, u, 0), ops.where(condition, 0, u)
