"""What the standard asks about a namespace."""

from __future__ import annotations

from typing import Any

from multiop import config, devices, errors
from multiop.dtypes import dtype_object
from multiop.frontends.creation import op_zeros

from ._data_types import KINDS, NAMES


class Info:
    """Answers about dtypes and devices of the active backend, by the standard's names."""

    def capabilities(self) -> dict[str, Any]:
        """Return what the namespace does that the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        """Return the device on which tensors are created, as `x.device` gives it; `None` in what is compiled."""
        return _device_of(op_zeros(()))

    def devices(self) -> tuple[Any, ...]:
        """Return the default device and the CPU; there may be more, which have names as `"cuda:1"`."""
        return tuple(dict.fromkeys([self.default_device(), _device_of(devices.to_device(op_zeros(()), "cpu"))]))

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of what is created without one."""
        found = {"real floating": config.floatx(), "integral": "int32", "indexing": "int32"}
        found["complex floating"] = "complex128" if config.floatx() == "float64" else "complex64"
        return {kind: dtype_object(name) for kind, name in found.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes that there are, by name, or those of a kind or of a tuple of kinds."""
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = list(NAMES) if kind is None else [name for entry in kinds for name in KINDS[entry]]
        wide = config.backend() != "jax" or config.x64()
        return {
            name: dtype_object(name)
            for name in names
            if wide or not name.endswith(("64", "128")) or name == "complex64"
        }


def _device_of(x: Any) -> Any:
    """Return the framework's own object, which compares equal to `x.device`, and which functions take as `device`."""
    try:
        devices.device(x)
    except errors.UnsupportedError:
        return None
    return x.device


def __array_namespace_info__() -> Info:  # noqa: N807  the standard's name
    """Return answers about dtypes and devices."""
    return Info()
