"""Integers: bits, shifts and divisors."""

from __future__ import annotations

import torch

from ..conversion import (
    bool_to_int32,
    convert,
    in_wider_dtype,
    not_bool,
    promote,
    reject_floats,
    reject_uint64,
)


def op_bitwise_and(x, y):
    return in_wider_dtype_off_cpu(torch.bitwise_and, *reject_floats(*promote(x, y)))


def op_bitwise_or(x, y):
    return in_wider_dtype_off_cpu(torch.bitwise_or, *reject_floats(*promote(x, y)))


def op_bitwise_xor(x, y):
    return in_wider_dtype_off_cpu(torch.bitwise_xor, *reject_floats(*promote(x, y)))


def op_bitwise_invert(x):
    return in_wider_dtype(torch.bitwise_not, *reject_floats(convert(x)))


def op_left_shift(x, y):
    return in_wider_dtype(torch.bitwise_left_shift, *reject_floats(*bool_to_int32(*promote(x, y))))


def op_right_shift(x, y):
    x, y = reject_floats(*bool_to_int32(*promote(x, y)))
    return unsigned_right_shift(x, y) if x.dtype is torch.uint64 else in_wider_dtype(torch.bitwise_right_shift, x, y)


def op_gcd(x1, x2):
    return in_wider_dtype(gcd, *divisible(x1, x2))


def op_lcm(x1, x2):
    return in_wider_dtype(lcm, *divisible(x1, x2))


def in_wider_dtype_off_cpu(fn, x, y):
    """Call `fn`, which only has kernels for unsigned integers on the CPU."""
    return fn(x, y) if x.is_cpu else in_wider_dtype(fn, x, y)


def divisible(x1, x2):
    x1, x2 = not_bool(*reject_floats(*promote(x1, x2)))
    reject_uint64(x1)
    return x1, x2


def unsigned_right_shift(x, y):
    """Shift `uint64` as `int64`, and clear the copies of the sign bit."""
    x, y = x.long(), y.long()
    signs = torch.bitwise_left_shift(torch.bitwise_right_shift(torch.iinfo(torch.int64).min, y), 1)
    return torch.where((y >= 0) & (y < 64), torch.bitwise_right_shift(x, y) & ~signs, 0).type(torch.uint64)


def gcd(x1, x2):
    return torch.abs(torch.gcd(x1, x2))  # torch.gcd of the most negative integer may be negative


def lcm(x1, x2):
    common = gcd(x1, x2)  # torch.lcm takes the absolute value after it has wrapped
    return torch.div(torch.abs(x1), torch.where(common == 0, 1, common), rounding_mode="trunc") * torch.abs(x2)
