"""What the grid finds and the documents say: each entry names where docs/limits.md or an upstream issue says so."""

from __future__ import annotations

import math

KNOWN = [
    (
        ("op_silu", "op_gelu"),
        "gradient",
        lambda x: x == math.inf,
        "docs/limits.md: NaN at infinity, where the kernels take inf * 0",
    ),
    (
        ("op_power",),
        "gradient1",
        lambda x, y: x < 0 and abs(y) >= 2**24,
        "docs/limits.md: an exponent that has no digit for 1",
    ),
]


def known(op, what, row):
    """Say whether a disagreement of this class is documented."""
    return any(op in ops and what.startswith(part) and (x is None or x(*row)) for ops, part, x, _ in KNOWN)
