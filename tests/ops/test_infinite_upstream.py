"""Where an op has slope 0, its gradient is 0, even if the upstream one is infinite: `sqrt(maximum(x, 0))` at -1."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo

FLAT = {  # 0 with slope 0 at -0.4, and positive at 2
    "relu": mo.op_relu,
    "relu6": mo.op_relu6,
    "hard_tanh": lambda x: mo.op_hard_tanh(10 * x) + 1,
    "hard_sigmoid": lambda x: mo.op_hard_sigmoid(10 * x),
    "hard_silu": lambda x: mo.op_hard_silu(10 * x),
    "soft_shrink": mo.op_soft_shrink,
    "hard_shrink": mo.op_hard_shrink,
    "threshold": lambda x: mo.op_threshold(x, 0.5, 0.0),
    "sparse_plus": lambda x: mo.op_sparse_plus(10 * x),
    "sparse_sigmoid": lambda x: mo.op_sparse_sigmoid(10 * x),
    "clip": lambda x: mo.op_clip(x, 0.0, 5.0),
    "maximum with a number": lambda x: mo.op_maximum(x, 0.0),
    "maximum": lambda x: mo.op_maximum(x, mo.op_zeros_like(x)),
    "minimum": lambda x: -mo.op_minimum(-x, mo.op_zeros_like(x)),
    "fmax": lambda x: mo.op_fmax(x, 0.0),
    "where": lambda x: mo.op_where(x > 0, x, 0.0),
    "max_pool": lambda x: mo.op_max_pool(mo.op_stack([x, mo.op_zeros_like(x)], 1)[None], 2)[0],
    "segment_max": lambda x: mo.op_segment_max(mo.op_concatenate([x, mo.op_zeros_like(x)]), [0, 1, 0, 1], 2),
    "divide_no_nan": lambda x: mo.op_divide_no_nan(x, mo.op_where(x > 0, x, 0.0) * mo.op_where(x > 0, x, 0.0)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize("above", [mo.op_sqrt, mo.op_log])
def test_a_slope_of_0(backend, above, name, compiled):
    if compiled and backend == "torch":
        pytest.skip("its compiler takes minutes for all; tests/torch compiles gradients")

    def slope(x):
        return mo.grad(lambda x: mo.op_sum(above(FLAT[name](x))))(x)

    found = mo.op_convert_to_numpy((mo.jit(slope) if compiled else slope)(mo.op_convert_to_tensor([-0.4, 2.0])))
    assert found[0] == 0
    assert np.isfinite(found[1])
