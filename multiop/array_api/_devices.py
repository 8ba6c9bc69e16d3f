"""Devices, where the standard's functions take one, and what the standard asks about a namespace."""

from __future__ import annotations

from typing import Any

from multiop import devices
from multiop._values.types import Tensor


def on(device: Any, x: Tensor) -> Tensor:
    """Return `x` on `device`; `None` is where it is."""
    return x if device is None else devices.to_device(x, device)
