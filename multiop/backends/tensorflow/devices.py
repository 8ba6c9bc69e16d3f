"""Devices by name."""

from __future__ import annotations

import tensorflow as tf

from multiop import errors

from .conversion import convert

_KINDS = {"GPU": "cuda"}  # PyTorch's name for NVIDIA and AMD GPUs


def device(x):
    x = convert(x)
    if not x.device or not hasattr(x, "numpy"):
        raise errors.UnsupportedError("x is traced: it lies on no device yet")
    return name_of(x.device)


def to_device(x, device):
    x = convert(x)
    place = device_name(device)
    if hasattr(x, "numpy") and x.device and name_of(x.device) == name_of(place):
        return x
    with tf.device(place):
        return tf.identity(x)


def device_name(name):
    """Return TensorFlow's name for a device."""
    if not isinstance(name, str):
        raise errors.ArgumentTypeError(f"device must be a name, got {name!r}")
    places = {name_of(one.name): one.name for one in tf.config.list_logical_devices()}
    wanted = name_of(name) if "/" in name else short(*name.partition(":")[::2])
    if wanted not in places:
        raise errors.ArgumentError(f"there is no device {name!r} here; there is {', '.join(places)}")
    return places[wanted]


def name_of(place):
    """Return our name of a device from TensorFlow's, such as `/job:localhost/replica:0/task:0/device:GPU:0`."""
    return short(*place.rpartition("/")[2].removeprefix("device:").partition(":")[::2])


def short(kind, number):
    kind, number = _KINDS.get(kind.upper(), kind.lower()), number or "0"
    return kind if (kind, number) == ("cpu", "0") else f"{kind}:{number}"


def is_known(x):
    """Say whether the values of `x` can be read, which they cannot inside a compiled or mapped function."""
    return hasattr(x, "numpy")


def is_at_hand(x):
    """Say whether the values of `x` can be read without waiting for an accelerator."""
    return hasattr(x, "numpy") and "CPU:" in x.device
