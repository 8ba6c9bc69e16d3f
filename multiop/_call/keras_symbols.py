"""Keras's symbolic tensors: an op that is given one becomes an operation of Keras's graph.

No op looks for them. An op that fails asks whether it was given one, so they cost other calls nothing. And what Keras
saves an op as: a name that is multiop's.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from multiop._loading import imports, registry as _registry
from multiop._values import tree as _tree

KNOWN = ("op_shape", "op_ndim", "op_size", "op_dtype")  # ops whose result is known without values
boundaries: set[CodeType] = set()  # the functions through which ops are called
_saved: list[Any] = []  # what Keras knows by a name of multiop's, as soon as it is imported
_keras: Any = None


def save_as_ours(function: Any) -> Any:
    """Have Keras save and load a function, or a class, under a name of multiop's.

    Keras saves the activation `relu` of any package by that name alone, and then loads its own.
    """
    _saved.append(function)
    if _keras is not None:
        _keras.saving.register_keras_serializable("multiop", function.__qualname__)(function)
    return function


def _meet_keras(keras: Any) -> None:
    global _keras
    _keras = keras
    for function in _saved:
        keras.saving.register_keras_serializable("multiop", function.__qualname__)(function)


imports.when_imported("keras", _meet_keras)


def is_in(tree: Any) -> bool:
    """Say whether a leaf of `tree` is a symbolic tensor of Keras, without importing Keras."""
    kind = getattr(sys.modules.get("keras"), "KerasTensor", None)  # None while Keras is being imported
    return kind is not None and any(isinstance(leaf, kind) for leaf in _tree.leaves(tree))


def takes(arguments: dict[str, Any]) -> bool:
    """Say whether the op that failed with these arguments is the one to put into Keras's graph."""
    if not is_in(arguments):
        return False
    is_bound = sys._getframe(2).f_code is _registry.run_on.__code__  # between an op of a namespace and `recover`
    frame: Any = sys._getframe(4 if is_bound else 3)  # from the caller of the op on
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


def saved_name(fun: Any) -> str:
    """Return the name under which Keras saves a function; raise if it is registered under none."""
    return _above().saved_name(fun)


def load_saved(name: str) -> Any:
    """Return the function that Keras has saved under a name."""
    return _above().load_saved(name)


def _above() -> Any:
    return importlib.import_module("multiop.keras")  # by its name: it imports Keras, and stands above
