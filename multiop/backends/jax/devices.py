"""Devices by name."""

from __future__ import annotations

import functools

import jax

from multiop import errors

from .conversion import convert, is_array

_PLATFORMS = {"gpu": "cuda"}  # PyTorch's name for NVIDIA and AMD GPUs


def device(x):
    x = convert(x)
    if not is_array(x):
        try:
            devices = x.devices()
        except (AttributeError, jax.errors.ConcretizationTypeError):
            raise errors.UnsupportedError("x is traced: it lies on no device yet") from None
    else:
        devices = x.devices()
    return name_of(next(iter(devices))) if len(devices) == 1 else x.sharding


def to_device(x, device):
    x = convert(x)
    if not isinstance(device, (jax.Device, jax.sharding.Sharding)):
        device = find_device(device)
    return jax.device_put(x, device)


def find_device(name):
    if not isinstance(name, str):
        raise errors.ArgumentTypeError(f"device must be a name, a jax.Device or a sharding, got {name!r}")
    platform, _, number = name.partition(":")
    try:
        return jax.devices(platform)[int(number or 0)]
    except (RuntimeError, ValueError, IndexError):
        raise errors.ArgumentError(f"there is no device {name!r} here; there is {', '.join(available())}") from None


def name_of(device):
    platform = _PLATFORMS.get(device.platform, device.platform)
    number = [one.id for one in jax.devices(device.platform)].index(device.id)
    return platform if platform == "cpu" and number == 0 else f"{platform}:{number}"


def available():
    found = jax.devices()
    return [name_of(one) for one in (found if found[0].platform == "cpu" else [*jax.devices("cpu"), *found])]


def is_known(x):
    """Say whether the values of `x` can be read, which they cannot inside a compiled or mapped function."""
    return not isinstance(x, jax.core.Tracer)


def is_at_hand(x):
    """Say whether the values of `x` can be read without waiting for an accelerator."""
    if not is_known(x):
        return False
    return is_cpu_default() or not isinstance(x, jax.Array) or all(device.platform == "cpu" for device in x.devices())


def is_readable(x):
    """Say whether NumPy can look at all of `x`, an array, without waiting for an accelerator or another process."""
    return (is_array(x) and is_alone()) or (is_at_hand(x) and getattr(x, "is_fully_addressable", True))


@functools.cache
def is_alone():
    """Say whether there is one process, whose default device is the CPU."""
    return is_cpu_default() and jax.process_count() == 1


@functools.cache
def is_cpu_default():
    """Say whether the CPU is JAX's default device; others are then only used if named."""
    return jax.default_backend() == "cpu"
