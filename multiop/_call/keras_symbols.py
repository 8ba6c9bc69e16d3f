"""Keras's symbolic tensors: an op that is given one becomes an operation of Keras's graph.

No op looks for them. An op that fails asks whether it was given one, so they cost other calls nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from multiop._values import tree as _tree

KNOWN = ("op_shape", "op_ndim", "op_size", "op_dtype")  # ops whose result is known without values
boundaries: set[CodeType] = set()  # the functions through which ops are called


def is_in(tree: Any) -> bool:
    """Say whether a leaf of `tree` is a symbolic tensor of Keras, without importing Keras."""
    kind = getattr(sys.modules.get("keras"), "KerasTensor", None)  # None while Keras is being imported
    return kind is not None and any(isinstance(leaf, kind) for leaf in _tree.leaves(tree))


def takes(arguments: dict[str, Any]) -> bool:
    """Say whether the op that failed with these arguments is the one to put into Keras's graph."""
    if not is_in(arguments):
        return False
    frame = sys._getframe(3)  # from the caller of the op on
    while frame is not None:
        if frame.f_code in boundaries and is_in(frame.f_locals):
            return False  # a composite op was called with a symbolic tensor, and is one operation as a whole
        frame = frame.f_back
    return True


def call(fun: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the symbolic results of an op, by its name, or of a function, as one operation of Keras's graph."""
    if fun in KNOWN:
        return _above().known(fun, *args, **kwargs)
    return _above().Op(fun).symbolic_call(*args, **kwargs)


def spec(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the symbolic results of a function, without an operation."""
    return _above().Op(fun).compute_output_spec(*args, **kwargs)


def _above() -> Any:
    return importlib.import_module("multiop.keras")  # by its name: it imports Keras, and stands above
