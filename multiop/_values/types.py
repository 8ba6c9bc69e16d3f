"""The types of public signatures: `Tensor`, `ArrayLike`, `PyTree`, `DType`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from multiop._loading import registry

if TYPE_CHECKING:
    from abc import ABCMeta as _ProtocolMeta
else:
    _ProtocolMeta = type(Protocol)

# module -> its tensor classes; a framework may be imported although its backend is not
_CLASSES: dict[str, tuple[str, ...]] = {"torch": ("Tensor",), "jax": ("Array",), "tensorflow": ("Tensor", "Variable")}
_TRACERS: dict[str, tuple[str, ...]] = {
    "jax.core": ("Tracer",)
}  # may represent an array: isinstance can tell, issubclass cannot


def _imported_classes(classes: dict[str, tuple[str, ...]]) -> tuple[type, ...]:
    """Return those of `classes` whose module is imported."""
    candidates = [getattr(sys.modules.get(module), name, None) for module, names in classes.items() for name in names]
    return tuple([cls for cls in candidates if cls is not None])


def _backends_to_ask() -> list[Any]:
    """Return the backends that say what a tensor is: third-party ones that are loaded, and NumPy while it is active."""
    active: Any = registry.active()
    is_numpy = not isinstance(active, registry._Unloaded) and active.name == "numpy"
    return [backend for name, backend in registry.loaded_backends().items() if name not in registry.BUILT_IN] + [
        active
    ] * is_numpy


class _NativeMeta(_ProtocolMeta):
    """Make `isinstance` and `issubclass` ask the frameworks that are imported, and import no other."""

    def __instancecheck__(cls, x: Any) -> bool:  # noqa: N805, a metaclass
        if cls is not Tensor:
            return super().__instancecheck__(x)
        return isinstance(x, _imported_classes(_CLASSES)) or any(backend.is_tensor(x) for backend in _backends_to_ask())

    def __subclasscheck__(cls, other: type) -> bool:  # noqa: N805
        if cls is not Tensor:
            return super().__subclasscheck__(other)
        native = (
            _imported_classes(_CLASSES),
            _imported_classes(_TRACERS),
            *[backend.Tensor for backend in _backends_to_ask()],
        )
        return other is Tensor or issubclass(other, native)


@runtime_checkable
class Tensor(Protocol, metaclass=_NativeMeta):  # noqa: PLW1641, some frameworks' are not hashable
    """A tensor of any framework: what ops return.

    To a type checker, anything with the attributes and operators below is a `Tensor`. The tensors of every framework
    have them, so a `torch.Tensor` and a `jax.Array` are `Tensor` too. At run time, `isinstance(x, multiop.Tensor)` is
    true for the tensors, variables and tracers of each framework that is imported, and false for lists and numbers; for
    NumPy arrays while the NumPy backend is active. It imports no framework.

    Example:
        >>> import multiop
        >>> isinstance(multiop.op_ones(3), multiop.Tensor), isinstance([1.0], multiop.Tensor)
        (True, False)
        >>> def area(width: multiop.Tensor, height: multiop.Tensor) -> multiop.Tensor:
        ...     return width * height
    """

    @property
    def shape(self) -> Any:
        """The sizes of its dimensions: a `torch.Size`, a tuple, a `tf.TensorShape`."""

    @property
    def dtype(self) -> Any:
        """The framework's own dtype."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __array__(self) -> np.ndarray[Any, Any]: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __index__(self) -> int: ...

    def __neg__(self) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __add__(self, other: Any, /) -> Tensor: ...
    def __radd__(self, other: Any, /) -> Tensor: ...
    def __sub__(self, other: Any, /) -> Tensor: ...
    def __rsub__(self, other: Any, /) -> Tensor: ...
    def __mul__(self, other: Any, /) -> Tensor: ...
    def __rmul__(self, other: Any, /) -> Tensor: ...
    def __truediv__(self, other: Any, /) -> Tensor: ...
    def __rtruediv__(self, other: Any, /) -> Tensor: ...
    def __floordiv__(self, other: Any, /) -> Tensor: ...
    def __rfloordiv__(self, other: Any, /) -> Tensor: ...
    def __mod__(self, other: Any, /) -> Tensor: ...
    def __rmod__(self, other: Any, /) -> Tensor: ...
    def __pow__(self, other: Any, /) -> Tensor: ...
    def __rpow__(self, other: Any, /) -> Tensor: ...
    def __matmul__(self, other: Any, /) -> Tensor: ...
    def __rmatmul__(self, other: Any, /) -> Tensor: ...
    def __and__(self, other: Any, /) -> Tensor: ...
    def __rand__(self, other: Any, /) -> Tensor: ...
    def __or__(self, other: Any, /) -> Tensor: ...
    def __ror__(self, other: Any, /) -> Tensor: ...
    def __xor__(self, other: Any, /) -> Tensor: ...
    def __rxor__(self, other: Any, /) -> Tensor: ...

    def __lt__(self, other: Any, /) -> Tensor: ...
    def __le__(self, other: Any, /) -> Tensor: ...
    def __gt__(self, other: Any, /) -> Tensor: ...
    def __ge__(self, other: Any, /) -> Tensor: ...
    def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]


class _Shaped(Protocol):
    """What the stubs of every framework say of a tensor, and NumPy's of an array or scalar."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


class _Convertible(Protocol):
    """What NumPy can convert to an array."""

    def __array__(self) -> np.ndarray[Any, Any]: ...


class _Nested(Protocol):
    """A list, tuple or range, but not a string, whose `__contains__` does not accept every object."""

    def __contains__(self, x: object, /) -> bool: ...
    def __getitem__(self, i: int, /) -> Any: ...
    def index(self, value: Any, /) -> int: ...


class _TorchDType(Protocol):
    @property
    def is_complex(self) -> bool: ...


class _TensorFlowDType(Protocol):
    @property
    def as_numpy_dtype(self) -> Any: ...


ArrayLike: TypeAlias = _Shaped | _Convertible | _Nested | bool | int | float | complex
"""A tensor of the active backend, a NumPy array, a Python scalar, or nested lists of them."""

DType: TypeAlias = str | type[Any] | np.dtype[Any] | _TorchDType | _TensorFlowDType | None
"""A dtype's name, or a dtype of NumPy or of a framework; `None` for the default, where there is one."""

PyTree: TypeAlias = Any
"""Tuples, lists, dicts and registered classes, with tensors or anything else as leaves: any object is one."""

Axis: TypeAlias = int | Sequence[int] | None
Shape: TypeAlias = int | Sequence[int]
