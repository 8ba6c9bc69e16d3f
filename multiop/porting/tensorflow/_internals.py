"""What TensorFlow and Keras promise nothing about, in one place: functions of graphs, gradients, handles, submodules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.python.framework import ops

RULE = "_gradient_op_type"  # the attribute of an operation that names its gradient
SHAPE = "_XlaShape"  # the one that the shape of a result depends on


def function_graph(node: Any, name: str) -> Any:
    """Return the graph of a function that an operation calls."""
    return node.graph._get_function(name).graph


def gradient_of(name: str) -> Any:
    """Return the gradient that was registered under a name; `None` for none."""
    try:
        return ops._gradient_registry.lookup(name)
    except LookupError:
        return None


def address(handle: Any) -> Any:
    """Return the number of a handle of a variable; `None` in a graph."""
    return getattr(handle, "_id", None)


def leaves(module: Any, predicate: Callable[[Any], bool]) -> list[tuple[tuple[Any, ...], Any]]:
    """Return what a `tf.Module` holds, at any depth, with its path."""
    return list(module._flatten(predicate=predicate, with_path=True))


def layers(layer: Any, *, recursive: bool = True, include_self: bool = False) -> list[Any]:
    """Return the layers of Keras in a layer."""
    return list(layer._flatten_layers(recursive=recursive, include_self=include_self))


def has_layers(module: Any) -> bool:
    """Say whether a module is a layer of Keras."""
    return hasattr(module, "_flatten_layers")


def children(layer: Any) -> list[Any]:
    """Return the layers of Keras that a layer holds itself."""
    return list(layer._layers)


def decays(optimizer: Any, variable: Any) -> bool:
    """Say whether an optimizer of Keras decays a variable, if it decays any."""
    return bool(optimizer._use_weight_decay(variable))


def has_schedule(optimizer: Any) -> bool:
    """Say whether the learning rate of an optimizer of Keras is a function."""
    return callable(optimizer._learning_rate)
