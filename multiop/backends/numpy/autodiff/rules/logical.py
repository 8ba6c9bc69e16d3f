"""Derivatives of comparisons, which have none, and of choices."""

from __future__ import annotations

from ..._record import ops
from .formula import zero

op_equal = op_not_equal = op_less = op_less_equal = op_greater = op_greater_equal = zero
op_isnan = op_isinf = op_isfinite = op_isposinf = op_isneginf = op_isreal = op_signbit = op_isclose = zero
op_logical_and = op_logical_or = op_logical_xor = op_logical_not = op_nonzero = zero
op_where = (
    None,
    lambda u, _y, condition, _x1, _x2: ops.where(condition, u, 0),
    lambda u, _y, condition, _x1, _x2: ops.where(condition, 0, u),
)
