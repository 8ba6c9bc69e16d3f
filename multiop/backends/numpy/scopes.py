"""Names for parts of a computation: NumPy keeps none."""

import contextlib


def name_scope(name):
    return contextlib.nullcontext()
