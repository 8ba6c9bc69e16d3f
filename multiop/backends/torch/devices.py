"""Devices by name."""

from __future__ import annotations

import torch

from multiop import errors

from ._internals import all_levels, is_tracing, is_tracked
from .conversion import convert, is_compiling


def device(x):
    return str(convert(x).device)


def to_device(x, device):
    place = device if isinstance(device, torch.device) else find_device(device)
    return convert(x, device=place).to(place)


def find_device(name):
    if not isinstance(name, str):
        raise errors.ArgumentTypeError(f"device must be a name or a torch.device, got {name!r}")
    try:
        place = torch.device("cuda" + name.removeprefix("gpu") if name.startswith("gpu") else name)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError):  # AssertionError comes from a build without CUDA
        raise errors.ArgumentError(f"there is no device {name!r} here; there is {', '.join(available())}") from None
    return place


def available():
    """Return the names of the available devices."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if accelerator is None:
        return ["cpu"]
    return ["cpu", *(f"{accelerator.type}:{i}" for i in range(torch.accelerator.device_count()))]


def is_known(x):
    """Say whether the values of `x` can be read, which they cannot inside a compiled or mapped function."""
    if type(x) is torch.Tensor and not x.is_meta and not is_tracked(x):  # plain values, the usual case
        return True
    if is_compiling():
        return False
    try:
        bool(x.any())
    except RuntimeError:
        return False
    return not is_tracing()


def is_concrete(x):
    """Say whether `x` has values that can be read, and belongs to no transform."""
    return is_known(x) and len(all_levels(x)) == 1


def is_at_hand(x):
    """Say whether the values of `x` can be read without waiting for an accelerator."""
    return x.is_cpu and ((type(x) is torch.Tensor and not is_tracked(x)) or is_known(x))
