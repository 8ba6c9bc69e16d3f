"""The gradient in a narrow dtype is that in float64 at the same numbers: no step overflows where it does not."""

import numpy as np
import pytest
from scipy import special

import multiop
from multiop.testing._problem import Problem
from multiop.testing._tiers import asked_tier
from multiop.testing._tolerances import eps
from multiop.testing.cases import rows

ALLOWED = 256  # units in the last place of the largest entry
NARROW = ("float32", "float16", "bfloat16")
ROWS = {op: row for op, row in rows().items() if row.differentiable and "float64" in row.dtypes}
pytestmark = [
    pytest.mark.tier("default"),
    *(pytest.mark.slow_on(multiop_backend=name) for name in ("jax", "tensorflow", "numpy")),
]


@pytest.mark.parametrize(("op", "dtype"), [(op, dtype) for op in ROWS for dtype in NARROW if dtype in ROWS[op].dtypes])
def test_narrow_gradient(op, dtype, multiop_backend, multiop_x64, pytestconfig):
    largest = float(multiop.finfo(dtype).max)
    calls = ROWS[op].calls if asked_tier(pytestconfig) == "full" else ROWS[op].calls[:1]
    for n, call in enumerate(calls):
        narrow, wide = (Problem(getattr(multiop, op), call, dtype=kind, seed=n) for kind in (dtype, "float64"))
        if not narrow.is_differentiable:
            continue
        wide.arrays = [x.astype(y.dtype) for x, y in zip(narrow.arrays, wide.arrays, strict=True)]
        for found, wanted in zip(narrow.gradient, wide.gradient, strict=True):
            found = found.astype(wanted.dtype)
            known = np.isfinite(wanted) & (np.abs(wanted) < largest)
            error = np.abs(found - wanted)[known]
            allowed = ALLOWED * eps(dtype) * np.abs(wanted[known]).max(initial=0.0)
            assert np.all(error <= allowed), f"call {n}: {found} is not {wanted}"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("op_rel_entr", (1e-10, 1e-30), (1 + 20 * np.log(10), -1e20)),
        ("op_kl_div", (1e-10, 1e-30), (20 * np.log(10), -1e20)),
        ("op_zeta", (1e5, 1.0), (0.0, -1e5)),
        *(("op_gamma", (x,), (special.gamma(x) * special.digamma(x),)) for x in (30.0, 32.0, 33.5, -28.5, -30.5)),
        ("op_betaln", (1.5e-8, 1e-19), (-1e-19 / 1.5e-8**2, -1e19)),
        ("op_beta", (1e-19, 20.0), (-1e38, -0.05127082)),
        ("op_betainc", (0.5, 1.0, 1e-20), (-4.605170e-9, 6.137058e-11, 5e9)),
        ("op_betainc", (30.0, 30.0, 1e-20), (0.0, 0.0, 0.0)),
    ],
)
def test_a_step_on_the_way_does_not_overflow_in_float32(name, arguments, expected, multiop_backend):
    op, tensors = getattr(multiop, name), [multiop.op_convert_to_tensor(np.float32(x)) for x in arguments]
    found = multiop.grad(lambda *xs: op(*xs), tuple(range(len(tensors))))(*tensors)
    np.testing.assert_allclose([float(g) for g in found], expected, rtol=1e-4)
