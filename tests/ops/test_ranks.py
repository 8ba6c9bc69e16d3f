"""Tensors of many dimensions: what a framework's kernels do not take is computed in another way, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import errors


def along(rank):
    """Return every second axis, which no neighbours can be merged with."""
    return tuple(range(0, rank, 2))


def spread(x, first):
    """Return `x` with one entry in every second dimension."""
    rank = len(x.shape)
    return mo.op_get_item(x, tuple(slice(0, 1) if place % 2 == first else slice(None) for place in range(rank)))


OPS = {
    "add": lambda x: mo.op_add(spread(x, 0), spread(x, 1)),
    "argmax": lambda x: mo.op_argmax(x, axis=2),
    "broadcast_to": lambda x: mo.op_broadcast_to(spread(x, 0), x.shape),
    "clip": lambda x: mo.op_clip(x, mo.op_minimum(spread(x, 0), -0.5), mo.op_maximum(spread(x, 1), 0.5)),
    "cumprod": lambda x: mo.op_cumprod(x, axis=1),
    "first entries": lambda x: mo.op_get_item(x, slice(0, 1)),
    "get_item": lambda x: mo.op_get_item(x, (slice(None, None, -1),) * (len(x.shape) - 1) + (0,)),
    "layer_normalization": lambda x: mo.op_layer_normalization(x, axis=tuple(range(1, len(x.shape), 2))),
    "group_normalization": lambda x: mo.op_group_normalization(x, 2, axis=1),
    "logsumexp": lambda x: mo.op_logsumexp(x, axis=along(len(x.shape))),
    "max": lambda x: mo.op_max(x, axis=along(len(x.shape))),
    "mean": lambda x: mo.op_mean(x, axis=along(len(x.shape))),
    "nonzero": lambda x: mo.op_stack(mo.op_nonzero(x > 0.5)),
    "pad": lambda x: mo.op_pad(x, [(1, 0)] * len(x.shape)),
    "prod": lambda x: mo.op_prod(x, axis=along(len(x.shape)), keepdims=True),
    "set_item": lambda x: mo.op_set_item(x, (slice(0, 1),) * len(x.shape), 3.0),
    "slice": lambda x: mo.op_slice(x, [0] * len(x.shape), [1] * len(x.shape)),
    "sort": lambda x: mo.op_sort(x, axis=2),
    "std": lambda x: mo.op_std(x, axis=along(len(x.shape))),
    "sum": lambda x: mo.op_sum(x, axis=along(len(x.shape))),
    "take_along_axis": lambda x: mo.op_take_along_axis(x, np.zeros(x.shape, "int32"), axis=1),
    "var": lambda x: mo.op_var(x, axis=along(len(x.shape))),
    "where": lambda x: mo.op_where(spread(x, 0) > 0, spread(x, 1), x),
}
WITHOUT_GRADIENT = {"argmax", "nonzero"}
IN_DEFAULT = ("add", "first entries", "prod", "std", "sum")


def value_and_slope(op, x):
    def total(x):
        return mo.op_sum(mo.op_sin(op(x)))

    return op(x), None if op in map(OPS.get, WITHOUT_GRADIENT) else mo.grad(total)(x)


def check(name, rank, compiled):
    x = np.random.default_rng(rank).permutation(2**rank).reshape([2] * rank).astype("float32") / 2**rank + 0.25
    op = OPS[name]
    with mo.use_backend("numpy"):
        expected = [None if y is None else mo.op_convert_to_numpy(y) for y in value_and_slope(op, x)]
    x = mo.op_convert_to_tensor(x)

    def both(x):
        return value_and_slope(op, x)

    for y, wanted in zip((mo.jit(both) if compiled else both)(x), expected, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(mo.op_convert_to_numpy(y), wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("rank", [6, 7, 9])
@pytest.mark.tier("full")
def test_an_op_takes_many_dimensions(backend, name, rank):
    for compiled in [False] if (backend, name) == ("jax", "nonzero") else [False, True]:  # JAX's sizes are known
        check(name, rank, compiled)


@pytest.mark.parametrize("name", IN_DEFAULT)
def test_tensorflow_takes_nine_dimensions(name):
    pytest.importorskip("tensorflow")
    with mo.use_backend("tensorflow"):
        check(name, 9 if name in ("first entries", "prod") else 6, compiled=False)


def test_what_tensorflow_cannot_compute_is_no_fault_of_the_caller():
    tf = pytest.importorskip("tensorflow")
    with mo.use_backend("tensorflow"):
        x = tf.reshape(tf.range(512.0), [2] * 9)
        with pytest.raises(errors.UnsupportedError, match=r"no kernel for so many dimensions .*op_reshape: https://"):
            mo.op_flip(x, axis=along(9))
        with pytest.raises(errors.UnsupportedError, match=r"no kernel for so many dimensions"):
            mo.jit(lambda x: mo.op_flip(x, axis=along(9)))(x)
