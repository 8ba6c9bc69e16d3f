"""Shifts by TensorFlow's kernels, which are right within the number of bits."""

from __future__ import annotations

import tensorflow as tf

from ..ops.bitwise import bits, shiftable
from ..ops.indexing import are_known_inside


def op_left_shift(x, y, *, otherwise):
    x, y = shiftable(x, y)
    return tf.raw_ops.LeftShift(x=x, y=y) if are_known_inside(y, bits(x)) else otherwise(x, y)


def op_right_shift(x, y, *, otherwise):
    x, y = shiftable(x, y)
    return tf.raw_ops.RightShift(x=x, y=y) if are_known_inside(y, bits(x)) else otherwise(x, y)
