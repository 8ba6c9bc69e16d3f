"""Names for parts of a computation."""

from __future__ import annotations

import sys
from typing import Any

from multiop import errors
from multiop._loading import registry
from multiop._loading.built_in import of_keras


class name_scope:
    """A context that gives what is computed within it a name, in profiles and in the framework's graphs.

    It is `tf.name_scope`, `jax.named_scope` or `torch.profiler.record_function`. If Keras is imported and runs on the
    active backend, it is `keras.name_scope`, which also names the variables that are made within. PyTorch's compiler
    drops it.

    Args:
        name: The name, without a slash.
        caller: Whom Keras gives the scope to.
        deduplicate: Whether Keras opens no scope within one of the same caller and name.
        override_parent: The path that Keras puts in the place of the scopes around.

    Raises:
        ArgumentError: `name` is no string, or has a slash.

    Example:
        >>> import multiop
        >>> with multiop.name_scope("loss"):
        ...     loss = multiop.op_sum([1.0, 2.0])
    """

    def __init__(self, name: str, caller: Any = None, deduplicate: bool = True, override_parent: str | None = None):
        if not isinstance(name, str) or "/" in name:
            raise errors.ArgumentError(f"name must be a string without a slash, got {name!r}")
        self.name = name
        self._of_keras = {"caller": caller, "deduplicate": deduplicate, "override_parent": override_parent}
        self._entered: list[Any] = []

    def __enter__(self) -> name_scope:
        if not registry.is_compiling():
            scope = self._scope()
            scope.__enter__()
            self._entered.append(scope)
        return self

    def __exit__(self, *error: Any) -> None:
        if not registry.is_compiling():
            self._entered.pop().__exit__(*error)

    def _scope(self) -> Any:
        backend = registry.ready()
        keras: Any = sys.modules.get("keras")
        if of_keras(is_chosen=False) == backend.name and hasattr(keras, "name_scope"):
            return keras.name_scope(self.name, **self._of_keras)
        return backend.name_scope(self.name)
