"""The gradient in a narrow dtype is that in float64 at the same numbers: no step overflows where it does not."""

import numpy as np
import pytest

import multiop
from multiop.testing._problem import Problem
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
def test_narrow_gradient(op, dtype, multiop_backend, multiop_x64):
    largest = float(multiop.finfo(dtype).max)
    for n, call in enumerate(ROWS[op].calls):
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
