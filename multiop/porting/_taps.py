"""Named places in a function whose values can be seen, perturbed and replaced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from multiop import errors, tree

T = TypeVar("T")

_recorder: Recorder | None = None


def tap(name: str, x: T) -> T:
    """Return `x`, and let `compare` see it under a name.

    It costs nothing outside `compare`. Inside, the value is recorded, differentiated, and, for the comparison of
    single steps, replaced by that of the reference.

    Args:
        name: The name of the layer of the reference that computes the same. A name that occurs again is numbered:
            `name#2`.
        x: Tensor, or a pytree of tensors, which are numbered: `name.0`, `name.1`.

    Returns:
        `x` itself.

    Example:
        >>> from multiop import porting
        >>> porting.tap("fc", 3.0)
        3.0
    """
    return x if _recorder is None else _recorder.see(name, x)


class Recorder:
    """What becomes of the values at the taps while a function runs.

    Attributes:
        values: The values by name, in the order in which they were computed.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def see(self, name: str, x: Any) -> Any:
        """Record a value, or the values in a pytree, and return what takes its place."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        name = name if count == 1 else f"{name}#{count}"
        leaves, structure = tree.flatten(x)
        return tree.unflatten(
            structure, [self._see(name if len(leaves) == 1 else f"{name}.{n}", y) for n, y in enumerate(leaves)]
        )

    def _see(self, name: str, x: Any) -> Any:
        if name in self.values:
            raise errors.ArgumentError(f"two taps have the name {name}")
        return self.place(name, x)

    def place(self, name: str, x: Any) -> Any:
        """Record one tensor."""
        self.values[name] = x
        return x


class Perturbed(Recorder):
    """Adds something to the values: the gradient with respect to it is that with respect to the value."""

    def __init__(self, perturbations: Mapping[str, Any]) -> None:
        super().__init__()
        self.perturbations = perturbations

    def place(self, name: str, x: Any) -> Any:
        """Record one tensor, and return the perturbed one."""
        self.values[name] = x + self.perturbations[name] if name in self.perturbations else x
        return self.values[name]


class Replaced(Recorder):
    """Puts other values in the place of those that were computed."""

    def __init__(self, by: Mapping[str, Any]) -> None:
        super().__init__()
        self.by = by

    def place(self, name: str, x: Any) -> Any:
        """Record one tensor, and return the one in its place."""
        self.values[name] = x
        return self.by.get(name, x)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Make the taps use a recorder."""
    global _recorder
    if _recorder is not None:
        raise errors.ArgumentError("compare is running already: it cannot be called inside a function that it compares")
    _recorder = recorder
    try:
        yield recorder
    finally:
        _recorder = None
