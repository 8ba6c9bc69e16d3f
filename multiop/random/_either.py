"""Arithmetic with tensors, by ops, and with arrays of the host, by NumPy's own functions: the same bits, sooner.

A backend that draws on the host gives arrays, in which a draw of few numbers takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from multiop._loading.registry import active
from multiop.frontends.bitwise import op_bitwise_and, op_bitwise_xor
from multiop.frontends.conversion import op_cast, op_view
from multiop.frontends.elementwise import (
    op_add,
    op_divide,
    op_maximum,
    op_minimum,
    op_multiply,
    op_negative,
    op_round,
    op_sqrt,
    op_subtract,
)
from multiop.frontends.logical import op_greater_equal, op_less, op_where

Function = Callable[..., Any]


class Arithmetic(NamedTuple):
    """The functions that draws are made of."""

    add: Function
    subtract: Function
    multiply: Function
    divide: Function
    negative: Function
    maximum: Function
    minimum: Function
    round: Function
    square_root: Function
    bitwise_and: Function
    bitwise_xor: Function
    less: Function
    greater_equal: Function
    where: Function
    cast: Function
    view: Function


_OF_TENSORS = Arithmetic(
    op_add, op_subtract, op_multiply, op_divide, op_negative, op_maximum, op_minimum, op_round, op_sqrt,
    op_bitwise_and, op_bitwise_xor, op_less, op_greater_equal, op_where, op_cast, op_view,
)  # fmt: skip
_OF_ARRAYS = Arithmetic(
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.maximum, np.minimum, np.rint, np.sqrt,
    np.bitwise_and, np.bitwise_xor, np.less, np.greater_equal, np.where, np.ndarray.astype, np.ndarray.view,
)  # fmt: skip


def arithmetic_of(x: Any) -> Arithmetic:
    """Return the functions for tensors, or for arrays with a dimension, of which `x` is one."""
    return _OF_ARRAYS if type(x) is np.ndarray and x.ndim else _OF_TENSORS


def choose(condition: Any, first: Function, second: Function, *xs: Any) -> Any:
    """Return `first(*xs)` where a condition holds, else `second(*xs)`, which the host skips elsewhere."""
    if type(condition) is not np.ndarray:
        return op_where(condition, first(*xs), second(*xs))
    found = first(*xs)
    if not np.logical_and.reduce(condition, None):
        rest = ~condition
        found[rest] = second(*[x[rest] for x in xs])
    return found


def dtype_name(x: Any) -> str:
    """Return the name of the dtype of a tensor or an array."""
    return _NAMES[x.dtype] if type(x) is np.ndarray else active().dtype_name(x)


_NAMES = {np.dtype(name): name for name in ("float32", "float64")}  # NumPy makes the name anew, in six calls
