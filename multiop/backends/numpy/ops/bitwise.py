"""Integers: bits, shifts and divisors."""

from __future__ import annotations

import numpy as np

from ..conversion import bool_to_int32, convert, not_bool, pipeline, promote, reject_floats

op_bitwise_and = pipeline(promote, reject_floats, np.bitwise_and)
op_bitwise_or = pipeline(promote, reject_floats, np.bitwise_or)
op_bitwise_xor = pipeline(promote, reject_floats, np.bitwise_xor)
op_bitwise_invert = pipeline(convert, reject_floats, np.bitwise_invert)
op_left_shift = pipeline(promote, bool_to_int32, reject_floats, np.left_shift)
op_right_shift = pipeline(promote, bool_to_int32, reject_floats, np.right_shift)
op_gcd = pipeline(promote, reject_floats, not_bool, np.gcd)
op_lcm = pipeline(promote, reject_floats, not_bool, np.lcm)
