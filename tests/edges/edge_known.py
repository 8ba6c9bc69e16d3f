"""What the grid finds and the documents say: each entry names where docs/limits.md or an upstream issue says so."""

from __future__ import annotations

import math

KNOWN = [
    (
        ("op_gelu",),
        "gradient",
        lambda x: abs(x) > 1e19,
        "docs/limits.md: a cube overflows in the kernel, and inf * 0 is NaN",
    ),
    (
        ("op_hard_silu",),
        "value",
        lambda x: x > 5e37,
        "docs/limits.md: the kernel multiplies by 6",
    ),
    (
        ("op_elu", "op_selu"),
        "value",
        lambda x: -0.1 < x < 0,
        "docs/limits.md: TensorFlow's kernel subtracts 1 from an exponential",
    ),
    (
        ("op_sigmoid",),
        "gradient",
        lambda x: x < -9.7,
        "docs/limits.md: in float16, a slope that is subnormal is 0 on JAX",
    ),
    (
        ("op_var", "op_std", "op_nanvar", "op_nanstd", "op_norm", "op_layer_normalization", "op_rms_normalization"),
        "",
        lambda *row: max(map(abs, row)) > 1e18 or max(map(abs, row)) < 1e-17,
        "docs/limits.md: squares overflow or vanish",
    ),
    (
        ("op_cumprod", "op_nancumprod", "op_categorical_crossentropy"),
        "",
        lambda *row: max(map(abs, row)) > 1e18 or (0 in row and max(map(abs, row)) > 4000),
        "docs/limits.md: products and sums of the entries overflow",
    ),
    (
        ("op_mod", "op_fmod"),
        "value",
        lambda x, y=1.0: math.isfinite(x) and math.isfinite(y) and (not y or abs(x) > 2.0**127 * abs(y)),
        "docs/limits.md: NaN on PyTorch where the quotient overflows",
    ),
    (
        ("op_power",),
        "gradient2",
        lambda x, y: x == 0 and y < 0,
        "the result is infinite: TensorFlow's slope in the exponent is NaN",
    ),
    (
        ("op_beta",),
        "gradient",
        lambda a, b: min(a, b) < 1e-37,
        "docs/limits.md: few digits beside what is subnormal",
    ),
    (
        ("op_zeta",),
        "gradient",
        lambda x, q: q < 1e-3,
        "docs/limits.md: NaN on TensorFlow in forward mode where the other slope overflows",
    ),
    (
        ("op_yv", "op_kv", "op_kve"),
        "gradient",
        lambda v, x: abs(v) > 0.3 and x < 1e-17,
        "docs/limits.md: slopes beyond the largest number may be NaN",
    ),
    (
        ("op_jv", "op_yv"),
        "gradient1",
        lambda v, x: v == 0 and x < 1e-7,
        "docs/limits.md: slopes in the order have fewer digits",
    ),
    (
        ("op_sparsemax",),
        "",
        lambda *row: math.inf in row or -math.inf in row,
        "docs/limits.md: which entries are NaN",
    ),
    (
        ("op_var", "op_std", "op_nanvar", "op_nanstd"),
        "",
        lambda *row: max(row) - min(row) <= 1e-14 * max(map(abs, row)),
        "the mean of numbers that differ in their last digits is rounded, which is as much as they differ",
    ),
]


# what the grid leaves out, and why
EXCLUDED = {
    **dict.fromkeys(("op_true_divide", "op_absolute", "op_conjugate", "op_amax", "op_amin"), "another name"),
    **dict.fromkeys(("op_hard_swish", "op_swish"), "another name"),
    **dict.fromkeys(("op_real", "op_imag", "op_conj", "op_fabs"), "nothing is computed of real numbers but their sign"),
    **dict.fromkeys(("op_argmax", "op_argmin", "op_nanargmax", "op_nanargmin"), "an index has no digits"),
    **dict.fromkeys(("op_all", "op_any", "op_count_nonzero"), "what is counted has no digits"),
    "op_ctc_decode": "an index has no digits",
    "op_nan_to_num": "its rows pin what it is for: NaN and infinities",
    "op_nextafter": "its rows pin the step, which is less than a rounding error",
    "op_ldexp": "tests/ops/test_elementwise.py holds every size and power",
    "op_copysign": "op_abs, and the signs of tests/ops/test_signed_zeros.py",
    "op_modf": "its row pins the signs of zeros; op_trunc, and what it leaves",
    "op_polar": "op_multiply of op_cos and op_sin",
    "op_psnr": "op_log10 of op_mean of op_square, of all entries at once",
    **dict.fromkeys(("op_moments", "op_corrcoef", "op_cov", "op_trapezoid"), "composites of op_mean, op_var, op_sum"),
    **dict.fromkeys(
        ("op_quantile", "op_percentile", "op_nanquantile", "op_nanpercentile"), "as op_median, op_nanmedian"
    ),
    **dict.fromkeys(("op_correlate", "op_convolve"), "op_sum of products"),
    "op_batch_normalization_with_moments": "op_batch_normalization with op_moments, or a kernel of both",
    "op_group_normalization": "op_layer_normalization of each group, or a kernel",
}


def known(op, what, row):
    """Say whether a disagreement of this class is documented."""
    return any(op in ops and what.startswith(part) and (x is None or x(*row)) for ops, part, x, _ in KNOWN)
