"""Devices: there is one."""

import contextlib

from .conversion import convert


def device(x):
    return "cpu"


def to_device(x, device):
    return convert(x)


def on_device_of(x, made):
    return made


def is_at_hand(x):
    return True


@contextlib.contextmanager
def name_scope(name):
    yield
