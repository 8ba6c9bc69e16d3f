"""Devices: there is one."""

from .conversion import convert


def device(x):
    return "cpu"


def to_device(x, device):
    return convert(x)


def on_device_of(x, made):
    return made
