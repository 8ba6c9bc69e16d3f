"""Python's operators on TensorFlow's tensors as ops, for `multiop.enable_tensorflow_numpy`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from multiop._loading import registry

COMPARISONS = {
    "__lt__": "op_less", "__le__": "op_less_equal", "__gt__": "op_greater", "__ge__": "op_greater_equal",
    "__eq__": "op_equal", "__ne__": "op_not_equal",
}  # fmt: skip
ARITHMETIC = {
    "__add__": "op_add", "__sub__": "op_subtract", "__mul__": "op_multiply", "__truediv__": "op_divide",
    "__floordiv__": "op_floor_divide", "__mod__": "op_mod", "__pow__": "op_power", "__matmul__": "op_matmul",
    "__and__": "op_bitwise_and", "__or__": "op_bitwise_or", "__xor__": "op_bitwise_xor",
}  # fmt: skip
_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic)


def promote(tensorflow: Any) -> None:
    """Let the operators of TensorFlow's tensors and variables promote as ops do; `tensorflow` is its module."""
    tensors = (tensorflow.Tensor, tensorflow.Variable)
    for cls in tensors:
        for name, op in (COMPARISONS | ARITHMETIC).items():
            _replace(cls, name, op, tensors)
        for name, op in ARITHMETIC.items():
            _replace(cls, name.replace("__", "__r", 1), op, tensors, is_reflected=True)


def _replace(cls: Any, name: str, op: str, tensors: tuple[Any, Any], is_reflected: bool = False) -> None:
    own: Callable[[Any, Any], Any] = getattr(cls, name)
    if hasattr(own, "multiop_op"):
        return
    is_equality = op in ("op_equal", "op_not_equal")  # TensorFlow's own is False for shapes that differ
    has_other_values = op in ("op_floor_divide", "op_mod", "op_power")

    @functools.wraps(own)
    def operator(x1: Any, x2: Any) -> Any:
        dtype = x1.dtype
        is_inexact = dtype.is_floating or dtype.is_complex
        is_plain = is_inexact and not has_other_values
        if not (is_inexact or dtype.is_integer or dtype.is_bool):  # of texts and the like
            is_own = True
        elif isinstance(x2, tensors):
            is_own = dtype is x2.dtype and (is_plain or is_equality)
        else:
            is_own = (type(x2) is float and is_plain) or not isinstance(x2, _NUMBERS)
        if is_own:
            return own(x1, x2)
        function = getattr(registry.load("tensorflow"), op)
        return function(x2, x1) if is_reflected else function(x1, x2)

    operator.multiop_op = op  # type: ignore[attr-defined]
    setattr(cls, name, operator)
