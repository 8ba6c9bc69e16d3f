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


STEEP = {  # 0 at 0, with the slope that is given
    "hard_silu": (mo.op_hard_silu, 0.5),
    "silu": (mo.op_silu, 0.5),
    "tanh": (mo.op_tanh, 1),
    "softsign": (mo.op_softsign, 1),
    "elu": (mo.op_elu, 1),
    "arctan": (mo.op_arctan, 1),
    "sinh": (mo.op_sinh, 1),
    "expm1": (mo.op_expm1, 1),
    "erf": (mo.op_erf, 1),
}


@pytest.mark.parametrize("beside", [1.0, np.inf])  # where all is finite, a kernel may compute it
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", STEEP)
def test_an_infinite_gradient_passes_where_the_slope_is_not_0(backend, name, compiled, beside):
    if compiled and backend == "torch":
        pytest.skip("its compiler takes minutes for all; tests/torch compiles gradients")
    if (backend, name) in (("torch", "softsign"), ("jax", "tanh"), ("tensorflow", "silu")):
        pytest.skip("its formula adds up infinities of both signs")
    f, slope = STEEP[name]
    x = mo.op_convert_to_tensor([0.0, -0.0, -0.5, beside])
    for upstream in (np.inf, -np.inf):

        def gradient(x, upstream=upstream):
            return mo.vjp(f, x)[1](mo.op_full_like(x, upstream))

        found = (mo.jit(gradient) if compiled else gradient)(x)
        found = mo.op_convert_to_numpy(found[0] if isinstance(found, (tuple, list)) else found)
        np.testing.assert_array_equal(found[:3], np.copysign(upstream, slope * np.ones(3) * upstream))


@pytest.mark.parametrize("compiled", [False, True])
def test_the_length_of_0_has_the_gradient_0(backend, compiled):
    if compiled and backend == "torch":
        pytest.skip("its compiler takes minutes for all; tests/torch compiles gradients")

    def gradient(x):
        return mo.grad(lambda x: mo.op_sum(mo.op_sqrt(mo.op_hypot(x, mo.op_zeros_like(x)))))(x)

    found = (mo.jit(gradient) if compiled else gradient)(mo.op_convert_to_tensor([0.0, -0.0]))
    np.testing.assert_array_equal(mo.op_convert_to_numpy(found), 0)
