"""Arithmetic with tensors, by ops, and with arrays of the host, by NumPy's own functions: the same bits, sooner.

A backend that draws on the host gives arrays, in which a draw of few numbers takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from multiop._loading.registry import active
from multiop.frontends.bitwise import op_bitwise_and, op_bitwise_xor
from multiop.frontends.conversion import op_cast, op_view
from multiop.frontends.elementwise import (
    op_add,
    op_divide,
    op_maximum,
    op_multiply,
    op_negative,
    op_round,
    op_sqrt,
    op_subtract,
)
from multiop.frontends.logical import op_greater_equal, op_less, op_where

Function = Callable[..., Any]


def _either(op: Function, of_arrays: Function) -> Function:
    def compute(*xs: Any) -> Any:
        for x in xs:
            if type(x) is np.ndarray:
                return of_arrays(*xs)
        return op(*xs)

    return compute


add, subtract = _either(op_add, np.add), _either(op_subtract, np.subtract)
multiply, divide = _either(op_multiply, np.multiply), _either(op_divide, np.divide)
negative, maximum = _either(op_negative, np.negative), _either(op_maximum, np.maximum)
round_, square_root = _either(op_round, np.rint), _either(op_sqrt, np.sqrt)
bitwise_and, bitwise_xor = _either(op_bitwise_and, np.bitwise_and), _either(op_bitwise_xor, np.bitwise_xor)
less, greater_equal = _either(op_less, np.less), _either(op_greater_equal, np.greater_equal)
where = _either(op_where, np.where)
cast, view = _either(op_cast, np.ndarray.astype), _either(op_view, np.ndarray.view)


def choose(condition: Any, first: Function, second: Function, *xs: Any) -> Any:
    """Return `first(*xs)` where a condition holds, else `second(*xs)`, which the host skips elsewhere."""
    if type(condition) is not np.ndarray:
        return op_where(condition, first(*xs), second(*xs))
    found, rest = first(*xs), ~condition
    if rest.any():
        found[rest] = second(*[x[rest] for x in xs])
    return found


def dtype_name(x: Any) -> str:
    """Return the name of the dtype of a tensor or an array."""
    return _NAMES[x.dtype] if type(x) is np.ndarray else active().dtype_name(x)


_NAMES = {np.dtype(name): name for name in ("float32", "float64")}  # NumPy makes the name anew, in six calls
