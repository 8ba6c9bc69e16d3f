"""multiop's ops as operations of Keras's functional models.

An op that is given a symbolic tensor of Keras imports this module. Import it yourself before you load a saved model
that has such operations, so that Keras knows their class. A function of yours is saved under the name that you register
it under, with `keras.saving.register_keras_serializable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import multiop
from multiop import config, errors, extend, tree
from multiop.operation import Operation

__all__ = ["Op"]

# what the open sizes of a symbolic tensor are set to; a size of the result that differs between the two is open
_SIZES = (120, 180)


@keras.saving.register_keras_serializable("multiop")
class Op(keras.Operation):  # type: ignore[misc]  # Keras has no types
    """An operation of a Keras model that calls a function of tensors.

    A model with operations that call ops can be saved, and so can one whose functions are registered with
    `keras.saving.register_keras_serializable`: Keras saves the name of a function, not the function.

    Args:
        op: The name of an op, such as `"op_softmax"` or, of `multiop.random`, `"dropout"`; or a function that is
            written with ops.
        name: The name of the operation in the model. `None`: the name of the op, numbered.
    """

    def __init__(self, op: Any, name: str | None = None) -> None:
        called = getattr(op, "__name__", type(op).__name__)
        if isinstance(op, (str, Operation)):
            called = op if isinstance(op, str) else op.name
        called = called.strip("<>")  # of a lambda
        super().__init__(name or f"{called}_{keras.backend.get_uid(called)}")
        self.op = op
        if isinstance(op, str):
            op = getattr(multiop if op in dir(multiop) else multiop.random, op)
        self.function = op

    def get_config(self) -> dict[str, Any]:
        """Return what the operation is made again from."""
        if isinstance(self.op, Operation):
            saved_name(type(self.op))
        elif not isinstance(self.op, str):
            return {"op": saved_name(self.op), "name": self.name}
        return {"op": keras.saving.serialize_keras_object(self.op), "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Op:
        """Make the operation again from what `get_config` returned."""
        op = config["op"]
        if isinstance(op, dict):
            op = keras.saving.deserialize_keras_object(op)
        elif ">" in op:  # a name of the registry
            op = load_saved(op)
        return cls(op, name=config["name"])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with tensors."""
        return self.function(*args, **kwargs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return the symbolic results."""
        if keras.config.backend() != config.backend():
            raise errors.ForeignTensorError(
                f"a Keras KerasTensor was passed while Keras runs on {keras.config.backend()} and multiop on "
                f"{config.backend()}; set KERAS_BACKEND, or switch with multiop.set_backend"
            )
        if isinstance(self.op, Operation):
            return self.op.compute_output_spec(*args, **kwargs)
        leaves, structure = tree.flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, keras.KerasTensor)]
        symbols = [leaves[i] for i in places]
        seen = [leaf for leaf in keras.tree.flatten((args, kwargs)) if isinstance(leaf, keras.KerasTensor)]
        if len(seen) != len(symbols):
            raise errors.ArgumentTypeError("a KerasTensor must be an argument, or be in a list, tuple or dict")

        def function(*tensors: Any) -> Any:
            filled = list(leaves)
            for i, tensor in zip(places, tensors, strict=True):
                filled[i] = tensor
            args, kwargs = tree.unflatten(structure, filled)
            return self.call(*args, **kwargs)

        found, treedef = _spec(function, symbols, _SIZES[0])
        if not all(isinstance(leaf, keras.KerasTensor) for leaf in found):
            raise errors.ArgumentTypeError("a KerasTensor has no values, so results that are no tensors are not known")
        if any(None in x.shape for x in symbols):
            others, other = _spec(function, symbols, _SIZES[1])
            if treedef != other:
                raise errors.ArgumentError("how many results there are depends on a size that keras.Input leaves open")
            found = list(map(_common_symbol, found, others))
            try:  # the least size, of a slice or a diagonal that large sizes do not bound
                others, other = _spec(function, symbols, 1)
            except Exception:  # the op needs more
                others, other = found, treedef
            if treedef == other and all(len(x.shape) == len(y.shape) for x, y in zip(found, others, strict=True)):
                found = list(map(_common_symbol, found, others))
        return tree.unflatten(treedef, found)


def saved_name(fun: Any) -> str:
    """Return the name under which Keras saves a function or a class of operations; raise if it has none."""
    name = keras.saving.get_registered_name(fun) if hasattr(fun, "__name__") else ""
    if keras.saving.get_registered_object(name) is not fun or ">" not in name:
        called = getattr(fun, "__qualname__", None) or repr(fun)
        raise errors.UnsupportedError(
            f"Keras saves the name of a function, and knows none of {called}: register it, by "
            f"@keras.saving.register_keras_serializable('PACKAGE') above its definition and other decorators"
        )
    return str(name)


def load_saved(name: str) -> Any:
    """Return what Keras knows by a name; raise if it is not registered."""
    found = keras.saving.get_registered_object(name)
    if found is None:
        raise errors.UnsupportedError(
            f"the model was saved with a function {name!r} that Keras does not know here: import the module that "
            "registers it before you load the model"
        )
    return found


def known(op: str, x: Any) -> Any:
    """Return what `op`, one of `keras_symbols.KNOWN`, says of a symbolic tensor."""
    if op == "op_shape":
        return tuple(x.shape)
    if op == "op_ndim":
        return len(x.shape)
    if op == "op_dtype":
        return x.dtype
    if None in x.shape:
        raise errors.ArgumentError("the number of entries depends on a size that keras.Input leaves open")
    return math.prod(x.shape)


def _spec(function: Callable[..., Any], symbols: list[Any], size: int) -> tuple[list[Any], Any]:
    """Return the symbolic results of `function` where the open sizes of its arguments are `size`: leaves, structure."""
    raised: list[Exception] = []
    on_numpy = keras.config.backend() == "numpy"

    # Keras would trace every argument of `call`, options too
    class Static(keras.Operation):  # type: ignore[misc]
        def call(self, *tensors: Any) -> Any:
            if raised:  # on PyTorch, Keras tries again with ones, on whose values the sizes may depend
                raise raised[0]
            try:
                return _on_made_up(function, tensors) if on_numpy else function(*tensors)
            except Exception as error:
                raised.append(error)
                raise

    shapes = [tuple(size if n is None else n for n in x.shape) for x in symbols]
    filled = [keras.KerasTensor(shape, x.dtype) for shape, x in zip(shapes, symbols, strict=True)]
    try:
        return tree.flatten(Static().compute_output_spec(*filled))
    except Exception:
        if not raised:
            raise
    if any(None in x.shape for x in symbols):
        raised[0].add_note(f"a size that keras.Input leaves open was taken to be {size}")
    raise raised[0]  # as the op raised it


_FILLS: list[Callable[[Any], Any]] = [
    # the first index; a matrix with an inverse and roots
    lambda x: np.broadcast_to(np.eye(*x.shape[-2:]) if x.ndim > 1 and x.dtype.kind not in "iub" else 0, x.shape),
    lambda x: np.ones(x.shape),  # a length; a class that is no blank
    lambda x: np.arange(x.size).reshape(x.shape),
]


def _on_made_up(function: Callable[..., Any], arrays: tuple[Any, ...]) -> Any:
    """Return `function` of arrays like these, which hold what lies in memory: NumPy traces nothing, and ops check."""
    found, raised = [], []
    before, extend.made_up.is_on = extend.made_up.is_on, True
    try:
        with np.errstate(all="ignore"):
            for fill in _FILLS:
                try:
                    found.append(function(*[fill(x).astype(x.dtype) for x in arrays]))
                except Exception as error:
                    raised.append(error)
    finally:
        extend.made_up.is_on = before
    if not found:
        raise raised[0]
    first, *others = [tree.map(np.shape, y) for y in found]
    if any(other != first for other in others):
        raise errors.ArgumentError("the sizes of the results depend on values, which a KerasTensor has not")
    return found[0]


def _common_symbol(x: Any, y: Any) -> Any:
    """Return what two results have in common; sizes that differ are open."""
    return keras.KerasTensor([n if n == m else None for n, m in zip(x.shape, y.shape, strict=True)], x.dtype)
