"""Derivatives of the ops of `conversion.py`."""

from .formula import zero

op_convert_to_numpy = op_dtype = op_shape = op_is_tensor = zero


def op_cast(u, x, dtype):
    return u
