"""Indices of any integer dtype, and entries of any integer dtype, give what those of int32 give."""

from __future__ import annotations

import numpy as np
import pytest

import multiop
from multiop import errors, ops

X = np.arange(12.0).reshape(4, 3).astype("float32")
INDICES = [2, 0, 1, 2]
ROWS = [[0, 2], [1, 0], [2, 2], [0, 0]]
BY_INDICES = {
    "take": (lambda i: ops.take(X, i, axis=0), INDICES),
    "take from all": (lambda i: ops.take(X, i), INDICES),
    "take_along_axis": (lambda i: ops.take_along_axis(X, i, axis=1), ROWS),
    "get_item": (lambda i: ops.get_item(X, i), INDICES),
    "get_item of pairs": (lambda i: ops.get_item(X, (i, [0, 1, 2, 0])), INDICES),
    "set_item": (lambda i: ops.set_item(X, i, 1.0), INDICES),
    "add_at": (lambda i: ops.add_at(X, (i, 1), 1.0), INDICES),
    "multiply_at": (lambda i: ops.multiply_at(X, (i, [0, 1, 2, 0]), 2.0), INDICES),
    "maximum_at": (lambda i: ops.maximum_at(X, i, 5.0), INDICES),
    "scatter_update": (lambda i: ops.scatter_update(X, i, [1.0, 2.0]), [[2, 0], [0, 1]]),
    "scatter": (lambda i: ops.scatter(i, [1.0, 2.0], (4,)), [[2], [0]]),
    "segment_sum": (lambda i: ops.segment_sum(X, i, num_segments=3), [0, 0, 1, 2]),
    "segment_max": (lambda i: ops.segment_max(X, i, num_segments=3), [0, 0, 1, 2]),
    "one_hot": (lambda i: ops.one_hot(i, 3), INDICES),
    "multi_hot": (lambda i: ops.multi_hot(i, 3), INDICES),
    "unravel_index": (lambda i: ops.stack(ops.unravel_index(i, (2, 3))), [5, 0]),
    "slice": (lambda i: ops.slice(X, i, (2, 2)), [1, 1]),
    "slice_update": (lambda i: ops.slice_update(X, i, X[:2, :2]), [1, 1]),
    "in_top_k": (lambda i: ops.in_top_k(i, X, 2), [0, 2, 1, 1]),
    "crossentropy": (lambda i: ops.sparse_categorical_crossentropy(i, X, from_logits=True), [0, 2, 1, 1]),
    "isin": (lambda i: ops.isin(i, i[:1]), INDICES),
    "switch": (lambda i: ops.switch(i[0], [lambda: 1.0, lambda: 2.0, lambda: 3.0]), INDICES),
    "take, mapped": (lambda i: multiop.vmap(lambda row, i: ops.take(row, i))(X, i), ROWS),
}
MORE = ["int8", "int16", "uint16", "uint64"]
EAGERLY = {
    "repeat": (lambda i: ops.repeat(X, i, axis=0), INDICES),
    "bincount": (lambda i: ops.bincount(i, minlength=4), INDICES),
}
DTYPES = ["int64", "uint8", "uint32", *[pytest.param(d, marks=pytest.mark.tier("full")) for d in MORE]]


def values(y):
    return ops.convert_to_numpy(y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*BY_INDICES, *EAGERLY])
def test_indices(name, dtype, backend, multiop_x64):
    f, indices = (BY_INDICES | EAGERLY)[name]
    expected = values(f(ops.convert_to_tensor(indices, dtype="int32")))
    np.testing.assert_array_equal(values(f(ops.convert_to_tensor(indices, dtype=dtype))), expected)


@pytest.mark.parametrize(
    "dtype", ["uint32", *[pytest.param(d, marks=pytest.mark.tier("full")) for d in ("int8", "uint64")]]
)
@pytest.mark.parametrize("name", BY_INDICES)
def test_indices_that_are_traced(name, dtype, backend, multiop_x64):
    if backend == "torch":
        pytest.skip("each takes seconds to compile: the next test has them in one program")
    f, indices = BY_INDICES[name]
    expected = values(f(ops.convert_to_tensor(indices, dtype="int32")))
    found = values(multiop.jit(f)(ops.convert_to_tensor(indices, dtype=dtype)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.tier("full")
def test_indices_in_one_program(backend, multiop_x64):
    names = [
        "take",
        "take_along_axis",
        "get_item of pairs",
        "set_item",
        "multiply_at",
        "scatter",
        "segment_sum",
        "one_hot",
    ]

    def program(*indices):
        return [BY_INDICES[name][0](one) for name, one in zip(names, indices, strict=True)]

    given = [
        [ops.convert_to_tensor(BY_INDICES[name][1], dtype=dtype) for name in names] for dtype in ("int32", "uint32")
    ]
    for one, other in zip(program(*given[0]), multiop.jit(program)(*given[1]), strict=True):
        np.testing.assert_allclose(values(other), values(one), rtol=1e-6)


@pytest.mark.parametrize(("dtype", "number"), [("uint32", 2**32 - 1), ("uint64", 2**64 - 1), ("uint64", 2**63)])
@pytest.mark.parametrize("name", ["take", "get_item of pairs", "set_item", "multiply_at"])
def test_an_unsigned_index_does_not_become_negative(name, dtype, number, backend, multiop_x64):
    """In a signed dtype, it would count from the end."""
    f, indices = BY_INDICES[name]
    far = ops.convert_to_tensor(np.array([number, *indices[1:]], dtype))
    with pytest.raises(errors.ArgumentError, match="out of range"):
        f(far)
    if backend not in (
        "torch",
        "numpy",
    ):  # a compiler cannot raise: NaN where an entry is read, no change where one is written
        found = values(multiop.jit(f)(far))
        good = f(ops.convert_to_tensor(indices, dtype="int32"))
        if name in ("take", "get_item of pairs"):
            assert np.isnan(found[0]).all()
            np.testing.assert_array_equal(found[1:], values(good)[1:])
        else:
            assert np.isfinite(found).all()


PICKED = {
    "take": lambda x: ops.take(x, INDICES, axis=0),
    "take of pairs": lambda x: ops.take(x, [[0, 1], [2, 0]], axis=1),
    "take_along_axis": lambda x: ops.take_along_axis(x, [[0, 2, 1]] * 4, axis=1),
    "get_item": lambda x: ops.get_item(x, (INDICES, [0, 1, 2, 0])),
    "set_item": lambda x: ops.set_item(x, (slice(None, None, 2), 1), 7),
    "add_at": lambda x: ops.add_at(x, INDICES, x[0]),
    "maximum_at": lambda x: ops.maximum_at(x, INDICES, x[0]),
    "isin": lambda x: ops.isin(x, x[0]),
    "argpartition": lambda x: ops.sort(ops.take_along_axis(x, ops.argpartition(x, 1, 0), 0), 0),
    "repeat": lambda x: ops.repeat(x, [1, 2, 0, 1], axis=0),
    "sort": lambda x: ops.sort(x, axis=0),
    "top_k": lambda x: ops.top_k(x, 2)[0],
    "segment_max": lambda x: ops.segment_max(x, [0, 0, 1, 2], num_segments=3),
}


@pytest.mark.parametrize("dtype", ["uint16", *DTYPES[2:]])
@pytest.mark.parametrize("name", PICKED)
def test_entries(name, dtype, backend, multiop_x64):
    expected = values(PICKED[name](ops.convert_to_tensor(X, dtype="int32")))
    found = PICKED[name](ops.convert_to_tensor(X, dtype=dtype))
    assert ops.dtype(found) in (dtype, "bool")
    np.testing.assert_array_equal(values(found), expected)
