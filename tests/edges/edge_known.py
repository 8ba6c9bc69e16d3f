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
        ("op_var", "op_std", "op_norm", "op_layer_normalization", "op_rms_normalization"),
        "",
        lambda *row: max(map(abs, row)) > 1e18 or max(map(abs, row)) < 1e-17,
        "docs/limits.md: squares overflow or vanish",
    ),
    (
        ("op_cumprod", "op_categorical_crossentropy"),
        "",
        lambda *row: max(map(abs, row)) > 1e18 or (0 in row and max(map(abs, row)) > 4000),
        "docs/limits.md: products and sums of the entries overflow",
    ),
    (
        ("op_sparsemax",),
        "",
        lambda *row: math.inf in row or -math.inf in row,
        "docs/limits.md: which entries are NaN",
    ),
    (
        ("op_var", "op_std"),
        "",
        lambda *row: max(row) - min(row) <= 1e-14 * max(map(abs, row)),
        "the mean of numbers that differ in their last digits is rounded, which is as much as they differ",
    ),
]


def known(op, what, row):
    """Say whether a disagreement of this class is documented."""
    return any(op in ops and what.startswith(part) and (x is None or x(*row)) for ops, part, x, _ in KNOWN)
