"""Names for the kinds of argument that public signatures speak of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

Tensor: TypeAlias = Any
"""A tensor of the active backend's framework."""

ArrayLike: TypeAlias = Any
"""A tensor of the active backend, a NumPy array, a Python scalar, or nested lists of them."""

Axis: TypeAlias = int | Sequence[int] | None
DType: TypeAlias = Any
"""A dtype's name, or a dtype of NumPy or of the active backend's framework."""

Shape: TypeAlias = int | Sequence[int]
PyTree: TypeAlias = Any
