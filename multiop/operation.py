"""A class of functions of tensors, in the form that `keras.Operation` has."""

from __future__ import annotations

import re
from typing import Any

from multiop import errors
from multiop._call import keras_symbols
from multiop._loading import registry


class Operation:
    """A function of tensors with options, written as a class: `call` computes it.

    Args:
        name: The name of the operation. `None`: the name of its class, as in `"leaky_step"`.

    Raises:
        ArgumentError: `name` is no string, or has a slash.

    Example:
        >>> import multiop
        >>> class Scale(multiop.Operation):
        ...     def __init__(self, factor, name=None):
        ...         super().__init__(name)
        ...         self.factor = factor
        ...
        ...     def call(self, x):
        ...         return multiop.op_multiply(x, self.factor)
        >>> float(Scale(3.0)(2.0))
        6.0
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", type(self).__name__).lower()
        if not isinstance(name, str) or "/" in name:
            raise errors.ArgumentError(f"name must be a string without a slash, got {name!r}")
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the operation with tensors, or with symbolic tensors of Keras."""
        if not registry.is_compiling() and keras_symbols.is_in((args, kwargs)):
            return self.symbolic_call(*args, **kwargs)
        return self.call(*args, **kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the results. Each operation defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no call")

    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any:
        """Return the symbolic results, as one operation of Keras's graph."""
        return keras_symbols.call(self, *args, **kwargs)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return the symbolic results without an operation. Unless it is overridden, `call` is traced."""
        return keras_symbols.spec(self.call, *args, **kwargs)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Operation:
        """Make an operation from what its `get_config` returned, which a class that Keras is to save defines."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<Operation name={self.name}>"
