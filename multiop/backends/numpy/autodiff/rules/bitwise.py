"""Derivatives of the ops of integers: none."""

from .formula import zero

op_bitwise_and = op_bitwise_or = op_bitwise_xor = op_bitwise_invert = zero
op_left_shift = op_right_shift = op_gcd = op_lcm = zero
