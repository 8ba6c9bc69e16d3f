"""Integers: bits, shifts and divisors."""

from __future__ import annotations

import numpy as np

from multiop import errors

from ..conversion import bool_to_int32, convert, dtype_name, not_bool, promote


def op_bitwise_and(x, y):
    return np.bitwise_and(*reject_floats(*promote(x, y)))


def op_bitwise_or(x, y):
    return np.bitwise_or(*reject_floats(*promote(x, y)))


def op_bitwise_xor(x, y):
    return np.bitwise_xor(*reject_floats(*promote(x, y)))


def op_bitwise_invert(x):
    return np.bitwise_invert(*reject_floats(convert(x)))


def op_left_shift(x, y):
    return np.left_shift(*reject_floats(*bool_to_int32(*promote(x, y))))


def op_right_shift(x, y):
    return np.right_shift(*reject_floats(*bool_to_int32(*promote(x, y))))


def op_gcd(x1, x2):
    return np.gcd(*not_bool(*reject_floats(*promote(x1, x2))))


def op_lcm(x1, x2):
    return np.lcm(*not_bool(*reject_floats(*promote(x1, x2))))


def reject_floats(*xs):
    if xs[0].dtype.kind not in "biu":
        raise errors.DTypeError(f"{dtype_name(xs[0])} is not accepted: give integers")
    return xs
