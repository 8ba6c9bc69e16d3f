"""A backend for einops, written once: `rearrange`, `reduce`, `repeat`, `pack` and `einsum` on the active backend.

einops asks each of its backends whether it knows a tensor. This one knows those of every framework that multiop has, in
the place of a class for each of them.

    pytest examples/einops_backend        its tests, on every backend that is installed

einops's own tests run on it too: `einops_tests.py` says how.
"""

from __future__ import annotations

import importlib
from typing import Any

from einops import _backends

import multiop
from multiop import ops


class Backend(_backends.AbstractBackend):
    """What einops needs of a framework."""

    framework_name = "multiop"  # einops uses a backend once the module of this name is imported

    def is_appropriate_type(self, tensor: Any) -> bool:
        """Say whether it is a tensor of the active backend."""
        return ops.is_tensor(tensor)

    def from_numpy(self, x: Any) -> Any:
        """Return the array as a tensor."""
        return ops.convert_to_tensor(x)

    def to_numpy(self, x: Any) -> Any:
        """Return the tensor as an array."""
        return ops.convert_to_numpy(x)

    def arange(self, start: int, stop: int) -> Any:
        """Return the whole numbers from `start` to `stop`."""
        return ops.arange(start, stop)

    def shape(self, x: Any) -> tuple[Any, ...]:
        """Return the sizes of the dimensions."""
        return ops.shape(x)

    def reshape(self, x: Any, shape: Any) -> Any:
        """Return the entries in another shape."""
        return ops.reshape(x, shape)

    def transpose(self, x: Any, axes: Any) -> Any:
        """Permute the dimensions."""
        return ops.transpose(x, axes)

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        """Reduce `axes` by `min`, `max`, `sum`, `mean`, `prod`, `any` or `all`."""
        return getattr(ops, operation)(x, axis=axes)

    def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
        """Join tensors along a new first dimension."""
        return ops.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        """Insert a dimension of size 1."""
        return ops.expand_dims(x, new_position)

    def tile(self, x: Any, repeats: Any) -> Any:
        """Repeat the tensor along each dimension."""
        return ops.tile(x, repeats)

    def concat(self, tensors: Any, axis: int) -> Any:
        """Join tensors along a dimension."""
        return ops.concatenate(tensors, axis)

    def is_float_type(self, x: Any) -> bool:
        """Say whether means are possible."""
        return "float" in ops.dtype(x)

    def einsum(self, pattern: str, *x: Any) -> Any:
        """Sum products of entries."""
        return ops.einsum(pattern, *x)

    def layers(self) -> Any:
        """Return einops's own layers, which are the framework's."""
        return importlib.import_module(f"einops.layers.{multiop.backend()}")


def install(backend: Backend | None = None) -> None:
    """Make einops ask `backend` before its own backends."""
    backend = Backend() if backend is None else backend
    others = dict(_backends._loaded_backends)
    _backends._type2backend.clear()  # which framework's own backend was found for a type
    _backends._loaded_backends.clear()
    _backends._loaded_backends.update({backend.framework_name: backend}, **others)


install()
