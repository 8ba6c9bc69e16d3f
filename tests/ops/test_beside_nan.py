"""What else is in an array changes no entry: not its value, nor a derivative.

Where all is finite, a native kernel may compute it; beside a NaN, a formula does.
"""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo

X = [0.0, -0.0, 1.0, -1.0, 0.5, 6.0, 2.5, -3.0, -7.5, 1e-3, 40.0]
Y = [0.5, 0.0, 1.0, 2.0, -0.5, 6.0, -2.5, 3.0, 0.25, -1e-3, 1.0]
RNG = np.random.default_rng(0)


def of_one(names):
    return {name: lambda x, y, name=name: getattr(mo, f"op_{name}")(x) for name in names.split()}


def of_two(names):
    return {name: lambda x, y, name=name: getattr(mo, f"op_{name}")(x, y) for name in names.split()}


ENTRIES = {
    **of_one("abs sign relu relu6 silu gelu leaky_relu elu selu softsign hard_sigmoid hard_silu sinh expm1 cosh i0"),
    **of_two("logaddexp logaddexp2 maximum minimum"),
    "gelu by erf": lambda x, y: mo.op_gelu(x, approximate=False),
    "lgamma": lambda x, y: mo.op_lgamma(x + 8),
    "mod": lambda x, y: mo.op_mod(x, y + 8.3),
    "binary_crossentropy": lambda x, y: mo.op_binary_crossentropy(mo.op_sigmoid(y), x, from_logits=True),
    "clip": lambda x, y: mo.op_clip(x, -1.0, 1),
    "clip from below": lambda x, y: mo.op_clip(x, 0.5, None),
    "clip to tensors": lambda x, y: mo.op_clip(x, y - 1, y + 1),
    "maximum with a number": lambda x, y: mo.op_maximum(0.5, x),
    "minimum with a number": lambda x, y: mo.op_minimum(x, -1),
    "hypot": lambda x, y: mo.op_hypot(x, y + 8),
    "hypot at 0": lambda x, y: mo.op_hypot(x, y),
    "arctan2": lambda x, y: mo.op_arctan2(x, y + 8),
    "arctan2 at 0": lambda x, y: mo.op_arctan2(x, y),
    "power": lambda x, y: mo.op_power(x + 8, y + 0.3),
    "power at 0": lambda x, y: mo.op_power(mo.op_abs(x), mo.op_abs(y) + 2),
}
ROWS = {
    "logsumexp": lambda x, y: mo.op_logsumexp(x, 1),
    "norm": lambda x, y: mo.op_norm(x, axis=1),
    "norm at 0": lambda x, y: mo.op_norm(mo.op_relu(x[:, :2]), axis=1),
    "normalize": lambda x, y: mo.op_normalize(x, 1),
    "prod": lambda x, y: mo.op_prod(x + 8, 1),
    "cumprod": lambda x, y: mo.op_cumprod(x + 8, 1),
    "cumprod at 0": lambda x, y: mo.op_cumprod(x, 1),
    "std": lambda x, y: mo.op_std(x, 1),
    "sort": lambda x, y: mo.op_sort(x, 1),
    "top_k": lambda x, y: mo.op_top_k(x, 3)[0],
    "masked attention": lambda x, y: mo.op_dot_product_attention(
        heads(x), heads(y), heads(x + y), bias=[[[[0.5, 1.0, -1.0]]]], mask=np.tri(3, dtype=bool)[None, None]
    ),
    "cdist": lambda x, y: mo.op_cdist(x[:, None], y[:, None] + 3),
    "layer_normalization": lambda x, y: mo.op_layer_normalization(x + y, X[:1] + Y, Y + X[:1], epsilon=1e-3),
    "group_normalization": lambda x, y: mo.op_group_normalization(x + y, 3, X[:1] + Y, Y + X[:1], epsilon=1e-3),
    "layer_normalization of equal entries": lambda x, y: mo.op_layer_normalization(x * 0 + y[:, :1]),
    "attention": lambda x, y: mo.op_dot_product_attention(heads(x), heads(y), heads(x + y)),
    "causal attention": lambda x, y: mo.op_dot_product_attention(heads(x), heads(y), heads(x), is_causal=True),
    "sparse_categorical_crossentropy": lambda x, y: mo.op_sparse_categorical_crossentropy(
        [3] * len(x), x + y, from_logits=True
    ),
    "max_pool": lambda x, y: mo.op_max_pool(mo.op_reshape(x, (-1, 2, 6, 1)), 2),
}


def heads(x):
    return mo.op_reshape(x, (-1, 3, 2, 2))


def answers(f, x, y, dtype):
    """Return the value, two gradients, and a product with the Hessian, as NumPy arrays."""
    x, y = mo.op_convert_to_tensor(x, dtype), mo.op_convert_to_tensor(y, dtype)

    def weighted(x, y):
        z = mo.op_reshape(f(x, y), (-1,))
        return mo.op_sum(z * mo.op_cast(mo.op_arange(1, 1 + len(z)), dtype))

    def slope(x, y):
        first = mo.op_reshape(mo.grad(weighted)(x, y), (-1,))
        return mo.op_sum(first * mo.op_cast(mo.op_arange(1, 1 + len(first)), dtype))

    found = f(x, y), *mo.grad(weighted, (0, 1))(x, y), *mo.grad(slope, (0, 1))(x, y)
    return list(map(mo.op_convert_to_numpy, found))


def check(f, x, y, extra, dtype):
    """Compare the answers for `x` with those for `x` and one more row, of which NaN is a part."""
    alone = answers(f, x, y, dtype)
    beside = answers(f, np.concatenate([x, extra]), np.concatenate([y, np.ones_like(extra)]), dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for one, other in zip(alone, beside, strict=True):
        other = other[: len(one)]
        assert not np.isnan(one).any()
        scale = np.abs(one).max(initial=1e-30)
        np.testing.assert_allclose(one, other, rtol=10 * tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry(backend, name, dtype, multiop_x64):
    check(ENTRIES[name], np.array(X), np.array(Y), np.array([np.nan]), dtype)


@pytest.mark.parametrize("name", ROWS)
def test_a_row(backend, name):
    x, y = RNG.normal(size=(2, 4, 12)).round(1)
    check(ROWS[name], x, y, np.full((1, 12), np.nan), "float32")
