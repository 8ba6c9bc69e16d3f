"""Integers: bits, shifts and divisors."""

from __future__ import annotations

import numpy as np

from ..conversion import bool_to_int32, convert, not_bool, pipeline, promote, reject_floats

op_bitwise_and, op_bitwise_or, op_bitwise_xor = (
    pipeline(promote, reject_floats, fn) for fn in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
)
op_bitwise_invert = pipeline(convert, reject_floats, np.bitwise_invert)
op_left_shift, op_right_shift = (
    pipeline(promote, bool_to_int32, reject_floats, fn) for fn in (np.left_shift, np.right_shift)
)
op_gcd, op_lcm = (pipeline(promote, reject_floats, not_bool, fn) for fn in (np.gcd, np.lcm))
