"""Rows of the ops on bits."""

from __future__ import annotations

import numpy as np

from multiop import extend

from .._case import BOOLEAN, REAL, Returns, Row, call, floating, pin, promote_dtypes, row, same
from .._samplers import Sampler, integers, normal

INTEGER = extend.INTEGER


def counts(*shape: int) -> Sampler:
    """Draw numbers of bits to shift by, some of them too large."""
    return integers(*shape, low=0, high=70, dtype=None)


def binary(op: str, reference, other=normal, dtypes=BOOLEAN + INTEGER, **options) -> Row:
    """Make a row of an op with two operands."""
    return row(
        op,
        reference,
        call(normal(2, 3), other(2, 3)),
        call(normal(2, 3), other(3)),
        call(normal(), 1),
        call(normal(0, 3), other(3)),
        dtypes=dtypes,
        returns=promote_dtypes,
        differentiable=False,
        **options,
    )


def shift(op: str, reference, **options) -> Row:
    """Make a row of a shift."""
    return binary(op, reference, counts, dtypes=INTEGER, **options)


def of_one(op: str, reference, returns: Returns = same, **options) -> Row:
    """Make a row of an op with one operand."""
    return row(
        op,
        reference,
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        dtypes=BOOLEAN + INTEGER,
        returns=returns,
        differentiable=False,
        **options,
    )


LEFT = [
    pin([1, -1, 100, 5, -5], [7, 8, 1, -1, 127], value=[-128, 0, -56, 0, 0], dtype="int8"),
    pin([1, 1, 3], [31, 32, -1], value=[-(2**31), 0, 0], dtype="int32"),
]
RIGHT = [
    pin([1, -128, 127, 5, -5], [7, 8, 1, -1, 127], value=[0, -1, 63, 0, -1], dtype="int8"),
    pin([200, 200, 200], [7, 8, 255], value=[1, 0, 0], dtype="uint8"),
    pin([2**63, 2**64 - 1, 2**63, 1], [63, 1, 64, 0], value=[1, 2**63 - 1, 0, 1], dtype="uint64"),
]

ROWS = [
    binary("op_bitwise_and", np.bitwise_and, pins=[pin([-128, 127], [-1, -128], value=[-128, 0], dtype="int8")]),
    binary("op_bitwise_or", np.bitwise_or),
    binary("op_bitwise_xor", np.bitwise_xor),
    of_one("op_bitwise_invert", np.bitwise_not),
    shift("op_left_shift", np.left_shift, pins=LEFT),
    shift("op_right_shift", np.right_shift, pins=RIGHT),
    binary(
        "op_gcd",
        np.gcd,
        dtypes=tuple(dtype for dtype in INTEGER if dtype != "uint64"),
        pins=[
            pin(
                [0, -128, -128, 64, 0, 96, 12],
                [0, 0, 96, -128, -128, -128, -18],
                value=[0, -128, 32, 64, -128, 32, 6],
                dtype="int8",
            )
        ],
    ),
    binary(
        "op_lcm",
        np.lcm,
        dtypes=tuple(dtype for dtype in INTEGER if dtype != "uint64"),
        pins=[
            pin(
                [0, -128, -128, 64, -128, 100, 12],
                [0, 0, 96, -128, -128, 99, -18],
                value=[0, 0, -128, -128, -128, -84, 36],
                dtype="int8",
            )
        ],
    ),
    of_one("op_bitwise_not", np.bitwise_not),
    shift("op_bitwise_left_shift", np.left_shift),
    shift("op_bitwise_right_shift", np.right_shift),
    of_one(
        "op_bitwise_count",
        np.bitwise_count,
        returns="uint8",
        pins=[
            pin([0, 127, -128, -1, 85, -86], value=[0, 7, 1, 1, 4, 4], dtype="int8"),
            pin([255, 170], value=[8, 4], dtype="uint8"),
            pin([2**31 - 1, -(2**31), -3], value=[31, 1, 2], dtype="int32"),
            pin([2**64 - 1, 2**63, 0x123456789ABCDEF0], value=[64, 1, 32], dtype="uint64"),
            pin([-(2**63), 2**63 - 1], value=[1, 63], dtype="int64"),
        ],
    ),
    row(
        "op_frexp",
        np.frexp,
        call(normal(2, 3)),
        call(normal()),
        call(normal(0)),
        dtypes=BOOLEAN + REAL,
        returns=lambda dtypes: (floating(dtypes), "int32"),
        pins=[
            *(
                pin(
                    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, least, -most],
                    value=([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -0.75, 0.5, 2.0**-digits - 1], exponents),
                    dtype=dtype,
                )
                # the least subnormal, and the largest number
                for dtype, least, most, digits, exponents in (
                    ("float16", 2.0**-24, 65504.0, 11, [0, 0, 0, 0, 0, 1, 2, -23, 16]),
                    ("bfloat16", 2.0**-133, 2.0**128 - 2.0**120, 8, [0, 0, 0, 0, 0, 1, 2, -132, 128]),
                    ("float32", 2.0**-149, 2.0**128 - 2.0**104, 24, [0, 0, 0, 0, 0, 1, 2, -148, 128]),
                    ("float64", 2.0**-1074, np.finfo("float64").max, 53, [0, 0, 0, 0, 0, 1, 2, -1073, 1024]),
                )
            ),
            pin([0.0, 6.0, 2.0**-20], gradient=[1.0, 0.125, 2.0**19]),
        ],
    ),
]
