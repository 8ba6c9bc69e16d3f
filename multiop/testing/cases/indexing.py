"""Rows of the ops that select entries by index."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._case import BOOLEAN, FLOATING, INTEGER, NUMERIC, REAL, call, pin, promote_dtypes, row, same
from .._samplers import booleans, distinct, integers, normal


def _scatter(indices, values, shape):
    return _scatter_entries(np.zeros(shape, values.dtype), indices, values, "max" if values.dtype == bool else "add")


def _scatter_entries(inputs, indices, updates, reduction=None):
    result = np.array(inputs)
    places = tuple(np.moveaxis(indices, -1, 0))
    if reduction is None:  # for repeated indices, NumPy keeps the last value
        result[places] = updates
        return result
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}[reduction]
    ufunc.at(result, places, updates)
    return result


def _set(x, key, value):
    result = np.array(x)
    result[key] = value
    return result


def _at(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return NumPy's update at places, with a copy of the array."""

    def update(x: Any, key: Any, value: Any) -> Any:
        result = np.array(x)
        ufunc.at(result, key, value)
        return result

    return update


def _update_slice(inputs, start_indices, updates):
    result = np.array(inputs)
    starts = np.where(np.asarray(start_indices) < 0, np.add(start_indices, inputs.shape), start_indices)
    result[tuple(slice(start, start + n) for start, n in zip(starts, updates.shape, strict=True))] = updates
    return result


def _block(inputs, start_indices, shape):
    starts = np.where(np.asarray(start_indices) < 0, np.add(start_indices, inputs.shape), start_indices)
    return inputs[tuple(slice(start, start + n) for start, n in zip(starts, shape, strict=True))]


def _one_hot(x, num_classes, axis=-1, **options):
    return np.moveaxis(x[..., None] == np.arange(num_classes), -1, axis).astype(np.float64)


def _multi_hot(inputs, num_classes=None, axis=-1, num_tokens=None, **options):
    found = (inputs[..., None] == np.arange(num_classes or num_tokens)).any(min(1, inputs.ndim - 1))
    return np.moveaxis(found, -1, axis).astype(np.float64)


ALL = slice(None)
INF, NAN = np.inf, np.nan
TWICE = np.array([0, 0], np.int32)

of_entries = functools.partial(row, dtypes=BOOLEAN + NUMERIC, returns=same)
of_indices = functools.partial(row, dtypes=INTEGER, differentiable=False)

ROWS = [
    of_entries(
        "op_take",
        np.take,
        call(normal(4, 3), integers(2, 5, low=-4, high=4), axis=0),
        call(normal(4, 3), indices=integers(low=-12, high=12)),
        call(normal(2, 3, 4), integers(5, low=-3, high=3), 1),
        call(normal(3), integers(0, low=0, high=1)),
        call(normal(0, 3), integers(0, 2, low=0, high=1), axis=0),
        pins=[pin([1.0, 2.0], np.array([0, 0, -1], np.int32), value=[1.0, 1.0, 2.0], gradient=[2.0, 1.0])],
    ),
    of_entries(
        "op_take_along_axis",
        lambda x, indices, axis=None: np.take_along_axis(x, indices, axis),
        call(normal(4, 3), integers(2, 3, low=-4, high=4), axis=0),
        call(normal(2, 3, 4), indices=integers(2, 3, 5, low=-4, high=4), axis=-1),
        call(normal(2, 3, 4), integers(1, 3, 5, low=-4, high=4), -1),
        call(normal(2, 3), integers(5, low=-6, high=6)),
    ),
    of_entries(
        "op_get_item",
        lambda x, key: x[key],
        call(normal(5), 2),
        call(normal(4, 3), key=(slice(None, None, -2), None, -1)),
        call(normal(2, 3, 4), (..., slice(1, None, 2))),
        call(normal(2, 3, 4), (1, slice(2, 0, -1), integers(2, 2, low=-4, high=4))),
        call(normal(4, 3, 2), (integers(2, 1, low=-4, high=4), integers(5, low=-3, high=3))),
        call(normal(4, 2, 3), (integers(2, low=-4, high=4), ALL, [2, 0])),
        call(normal(3), integers(low=-3, high=3)),
        call(normal(3), ()),
        pins=[
            pin([1.0, 2.0, 3.0], np.array([0, 0, -1], np.int32), value=[1.0, 1.0, 3.0], gradient=[2.0, 0.0, 1.0]),
            pin([[1.0, 2.0], [3.0, 4.0]], np.array([[True, False], [True, True]]), value=[1.0, 3.0, 4.0]),
        ],
    ),
    of_entries(
        "op_slice",
        _block,
        call(normal(4, 3), (1, -2), (2, 2)),
        call(normal(4, 3), integers(2, low=0, high=2), (3, 2)),
        call(normal(4), start_indices=[2], shape=(0,)),
        call(normal(), (), ()),
    ),
    of_entries(
        "op_slice_update",
        _update_slice,
        call(normal(4, 3), (1, -2), normal(2, 2)),
        call(normal(4, 3), integers(2, low=0, high=2), normal(3, 2)),
        call(normal(4), start_indices=[2], updates=normal(0)),
        call(normal(), (), normal()),
    ),
    of_entries(
        "op_scatter",
        _scatter,
        call(integers(5, 1, low=-3, high=3), normal(5, 2), shape=(3, 2)),
        call([[0, 1], [1, 1], [0, 1]], normal(3), (2, 2)),
        returns=lambda dtypes: dtypes[-1],
        pins=[pin(np.array([[0], [0]], np.int32), [1.0, 2.0], (2,), value=[3.0, 0.0], gradient=[1.0, 1.0])],
    ),
    of_entries(
        "op_scatter_update",
        _scatter_entries,
        call(normal(3, 2), integers(5, 1, low=-3, high=3), normal(5, 2)),
        call(normal(3, 2), integers(2, 3, 2, low=-2, high=2), normal(2, 3), reduction="add"),
        call(distinct(3, 2), integers(5, 1, low=0, high=3), normal(5, 2), reduction="max"),
        call(distinct(4), integers(3, 1, low=0, high=4), normal(3), reduction="min"),
        call(normal(3), integers(5, 1, low=0, high=2), normal(), reduction="mul"),
        call(normal(3), integers(0, 1, low=0, high=3), updates=normal(0)),
        dtypes=("int32", "int64", *FLOATING),
        ulps=8,
        accumulates=True,
    ),
    of_entries(
        "op_set_item",
        _set,
        call(normal(4, 3, 2), (slice(None, None, -2), integers(2, low=-3, high=0), None, 1), normal(2, 1)),
        call(normal(4, 3), key=booleans(4, 3), value=normal()),
        call(normal(3, 4), (ALL, booleans(4)), normal(3, 1)),
        call(normal(4, 3), (slice(3, None, -2), 1), normal(2)),
        call(normal(4, 2, 3), (integers(2, low=-4, high=0), ALL, [2, 0]), normal(2, 2)),
        call(normal(4), integers(5, low=-4, high=4), normal(5)),
        call(normal(3), ..., normal(1, 3)),
        call(normal(), (), True),
        pins=[
            pin([9.0, 8.0], (TWICE,), [1.0, 2.0], value=[2.0, 8.0], gradient=([0, 1], [0, 1])),
            pin([1.0, NAN, INF], np.array([False, True, False]), 2.0, value=[1, 2, INF], gradient=([1, 0, 1], 1.0)),
        ],
    ),
    of_entries(
        "op_add_at",
        _at(np.add),
        call(normal(4, 3), integers(5, low=-4, high=4), normal(5, 3)),
        call(normal(4, 3), key=(slice(None, None, -2), 1), value=normal(2)),
        call(normal(4, 3), booleans(4), normal(3)),
        call(normal(3, 4), (ALL, integers(5, low=-4, high=4)), normal()),
        accumulates=True,
        pins=[pin([1.0, 2.0], TWICE, [3.0, 4.0], value=[8.0, 2.0], gradient=([1, 1], [1, 1]))],
    ),
    of_entries(
        "op_multiply_at",
        _at(np.multiply),
        call(normal(4, 3), (integers(5, low=-4, high=4), ALL), normal(5, 3)),
        call(normal(4, 3), key=booleans(4, 3), value=normal()),
        call(normal(4, 3), (slice(None, None, -2), 1), normal(2)),
        ulps=8,
        accumulates=True,
        pins=[
            pin([2.0, 3.0], TWICE, [4.0, 5.0], value=[40.0, 3.0], gradient=([20, 1], [10, 8])),
            pin([2.0, INF], np.array([True, False]), 3.0, value=[6.0, INF], gradient=([3, 1], 2.0)),
            pin([2.0, 3.0], np.array([True, False]), INF, value=[INF, 3.0], gradient=([INF, 1], 2.0)),
        ],
    ),
    *(
        of_entries(
            op,
            _at(ufunc),
            call(distinct(3, 4), integers(4, low=-3, high=3), normal(4, 4)),
            call(distinct(4, 3), key=booleans(4, 3), value=normal()),
            call(distinct(4, 3), (slice(None, None, -2), 1), normal(2)),
            dtypes=BOOLEAN + REAL,
            pins=[
                pin([2.0, 3.0], TWICE[:1], [2.0], value=[2.0, 3.0], gradient=([0.5, 1], [0.5])),
                pin([2.0, NAN], slice(None), 2.0, value=[2.0, NAN]),
                pin([2.0], slice(None), 2.0, value=[2.0], gradient=([0.5], 0.5)),
            ],
        )
        for op, ufunc in (("op_maximum_at", np.maximum), ("op_minimum_at", np.minimum))
    ),
    of_entries(
        "op_select",
        np.select,
        call([booleans(2, 3), booleans(3)], [normal(2, 3), normal(2, 1)], 0),
        call([booleans(3), booleans(3)], [normal(3), normal(3)], normal(2, 3)),
        returns=lambda dtypes: promote_dtypes(dtypes[2:]),
        pins=[pin(([0.0, 1.0],), ([3.0, 4.0],), value=[0.0, 4.0])],
    ),
    of_indices(
        "op_unravel_index",
        np.unravel_index,
        call(integers(2, 3, low=0, high=24, dtype=None), (2, 3, 4)),
        call(indices=integers(low=0, high=5, dtype=None), shape=5),
        returns="int32",
    ),
    of_indices(
        "op_ravel_multi_index",
        lambda multi_index, dims: np.asarray(np.ravel_multi_index(tuple(multi_index), dims)),
        call((integers(2, 3, low=0, high=2, dtype=None), integers(3, low=0, high=4, dtype=None)), (2, 4)),
        call([integers(low=0, high=5, dtype=None)], dims=(5,)),
        returns="int32",
    ),
    of_indices(
        "op_one_hot",
        _one_hot,
        call(integers(5, low=-1, high=4, dtype=None), 3),
        call(integers(2, 2, low=0, high=3, dtype=None), num_classes=3, axis=1, dtype="int32", sparse=False),
        call(integers(low=0, high=3, dtype=None), 3, 0, dtype="bool"),
        returns="float32",
        pins=[
            pin([0.0, 2.0, 0.5, NAN, INF], 3, value=[[1.0, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]),
            pin([1.0, -1.0], 2, value=[[0.0, 1.0], [0.0, 0.0]], dtype="float16"),
        ],
    ),
    of_indices(
        "op_multi_hot",
        _multi_hot,
        call(integers(3, 2, low=-1, high=4, dtype=None), 3),
        call(integers(2, low=0, high=3, dtype=None), num_classes=3, axis=0, dtype="int32", sparse=False),
        call(integers(2, 3, 2, low=0, high=3, dtype=None), axis=1, num_tokens=4),
        returns="float32",
    ),
    of_entries(
        "op_subset",
        lambda x, *indices: x[indices],
        call(normal(4, 3), slice(None, None, -2), integers(2, low=-3, high=3)),
        call(normal(2, 3, 4), 1, ..., None),
    ),
]
