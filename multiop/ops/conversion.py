"""Conversion between host values and tensors, and what a tensor is."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiop._args import explain
from multiop._registry import active
from multiop._types import ArrayLike, DType, Tensor


def op_convert_to_numpy(x: ArrayLike) -> np.ndarray[Any, Any]:
    """Return `x` as a NumPy array."""
    try:
        return active().op_convert_to_numpy(x)
    except Exception as error:
        raise explain(error, "op_convert_to_numpy", x=x)


def op_convert_to_tensor(x: ArrayLike, dtype: DType = None, sparse: bool | None = None, ragged: bool | None = None) -> Tensor:
    """Return `x` as a tensor."""
    try:
        return active().op_convert_to_tensor(x, dtype, sparse, ragged)
    except Exception as error:
        raise explain(error, "op_convert_to_tensor", x=x, dtype=dtype, sparse=sparse, ragged=ragged)
