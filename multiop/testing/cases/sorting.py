"""Rows of sorting and searching."""

from __future__ import annotations

import functools

import numpy as np

from .._case import BOOLEAN, FLOATING, OPEN, REAL, call, pin, row, same
from .._samplers import distinct, integers, normal, uniform

INF, NAN = np.inf, np.nan


def _argsort(x, axis=-1, descending=False):
    return np.argsort(-x.astype(float) if descending else x, axis, stable=True)


def _searchsorted(sorted_sequence, values, side="left"):
    if np.ndim(sorted_sequence) < 2:
        return np.searchsorted(sorted_sequence, values, side)
    return np.stack([_searchsorted(*row, side) for row in zip(sorted_sequence, values, strict=True)])


def _bincount(x, weights=None, minlength=0, sparse=False):
    if x.ndim < 2:
        return np.bincount(x, weights, minlength)
    minlength = max(minlength, x.max(initial=-1) + 1)
    weights = [None] * len(x) if weights is None else weights
    return np.stack([np.bincount(*row, minlength) for row in zip(x, weights, strict=True)])


def _top_k(x, k, **options):
    order = np.argsort(-x.astype(float), -1, stable=True)[..., :k]
    return np.take_along_axis(x, order, -1), order


def _in_top_k(targets, predictions, k):
    inside = (targets >= 0) & (targets < predictions.shape[-1])
    own = np.take_along_axis(predictions, np.where(inside, targets, 0)[..., None], -1)
    return inside & ((predictions > own).sum(-1) < k)


def _unique(x, axis=None, size=None, fill_value=0, **options):
    options.pop("sorted", None)
    found = np.unique(x, axis=axis, **options)
    found = list(found) if isinstance(found, tuple) else [found]
    if axis is not None:  # NumPy 2.0.0 has a second axis in the inverse
        found[1:] = [positions.reshape(-1) for positions in found[1:]]
    if size is not None:
        missing = max(size - len(found[0]), 0)
        found = [
            np.pad(one[:size], (0, missing), constant_values=fill)
            for one, fill in zip(found, [fill_value, 0], strict=False)
        ]
    return tuple(found)


positions = functools.partial(row, dtypes=BOOLEAN + REAL, returns="int32", differentiable=False)
# no numerical derivatives: if equal entries move apart, the shape changes; tests/ops/test_indexing.py has op_unique's
of_sets = functools.partial(row, dtypes=REAL, differentiable=False, vmap=False, jit=False)

ROWS = [
    row(
        "op_sort",
        np.sort,
        call(distinct(2, 3)),
        call(distinct(4, 3), axis=0),
        call(distinct(2, 3), axis=None),
        call(distinct(0)),
        dtypes=BOOLEAN + REAL,
        returns=same,
        pins=[
            pin([1.0, NAN, 3.0, -INF, 3.0, INF], value=[-INF, 1.0, 3.0, 3.0, INF, NAN]),
            pin([2.0, INF, NAN, 1.0], value=[1.0, 2.0, INF, NAN], gradient=[1.0, 1.0, OPEN, 1.0]),
        ],
    ),
    positions(
        "op_lexsort",
        lambda keys, axis=-1: np.lexsort(tuple(keys), axis),
        call([integers(20, low=0, high=3, dtype=None), integers(20, low=0, high=3, dtype=None)]),
        call((normal(3, 4), integers(3, 4, low=0, high=2), integers(3, 4, low=0, high=2)), axis=0),
        call(integers(3, 9, low=0, high=3, dtype=None)),
    ),
    positions(
        "op_argsort",
        _argsort,
        call(distinct(2, 3)),
        call(distinct(4, 3), axis=0),
        call(distinct(2, 3), axis=None),
        call(integers(40, low=0, high=3, dtype=None)),
        call(integers(3, 20, low=0, high=3, dtype=None), descending=True),
        call(integers(3, 4, low=0, high=3, dtype=None), None, True),
        call(normal()),
        call(normal(), 0, descending=True),
        pins=[
            pin([NAN, INF, 1.0, NAN, INF, -INF], value=[5, 2, 1, 4, 0, 3]),
            pin([NAN, INF, 1.0, NAN, INF, -INF], descending=True, value=[0, 3, 1, 4, 2, 5]),
        ],
    ),
    positions(
        "op_searchsorted",
        _searchsorted,
        call([0, 1, 2, 3], integers(2, 3, low=-1, high=5, dtype=None)),
        call([0, 1, 1, 3], integers(5, low=-1, high=5, dtype=None), side="right"),
        call([0.5, 2.5], normal()),
        call([[0, 1, 2, 2], [-3, 1, 5, 7]], integers(2, 3, low=-1, high=5, dtype=None)),
        call(np.array([[[0], [2]], [[1], [3]]]), integers(2, 2, 3, low=-1, high=5, dtype=None), "right"),
        dtypes=("int32", "int64", "float16", "float32", "float64"),
        pins=[
            pin([1.0, 2.0], [NAN, 1.0, 3.0], value=[2, 0, 2]),
            pin([1.0, INF, NAN, NAN], [NAN, 1.0, 3.0, INF], value=[2, 0, 1, 1]),
            pin([[1.0, NAN], [1.0, 2.0]], [[NAN, INF], [NAN, INF]], value=[[1, 1], [2, 2]]),
            pin([[1.0, NAN], [1.0, 2.0]], [[NAN, INF], [NAN, INF]], "right", value=[[2, 1], [2, 2]]),
            pin([1.0, INF, NAN, NAN], [NAN, 1.0, 3.0, INF], "right", value=[4, 1, 1, 2]),
        ],
    ),
    row(
        "op_top_k",
        _top_k,
        call(distinct(2, 5), 3),
        call(distinct(4), k=4, sorted=False, is_stable=True),
        call(distinct(3, 2), 0),
        dtypes=BOOLEAN + REAL,
        returns=lambda dtypes: (dtypes[0], "int32"),
        pins=[
            pin([1.0, NAN, -0.0, 0.0, INF, NAN], 6, value=([NAN, NAN, INF, 1.0, -0.0, 0.0], [1, 5, 4, 0, 2, 3])),
            pin([1.0, 2.0, 2.0, 2.0], 2, value=([2.0, 2.0], [1, 2]), gradient=[0.0, 1.0, 1.0, 0.0]),
            pin([-INF, -1.0, -2.0], 2, value=([-1.0, -2.0], [1, 2])),
        ],
    ),
    positions(
        "op_digitize",
        np.digitize,
        call(normal(2, 3), bins=[-1.5, 0.0, 2.0]),
        call(integers(2, 3, low=-1, high=5, dtype=None), np.array([0, 1, 1, 3], np.int32)),
        call(normal(), [0.5]),
        call(normal(2), np.zeros(0)),
        dtypes=REAL,
        pins=[pin([NAN, INF, -INF, 1.0], [1.0, 2.0], value=[2, 2, 0, 1])],
    ),
    row(
        "op_bincount",
        _bincount,
        call(integers(6, low=0, high=4), minlength=2),
        call(integers(3, low=0, high=4), minlength=7, sparse=False),
        call(integers(6, low=0, high=4), normal(6)),
        call(integers(0, low=0, high=1)),
        call(integers(3, 4, low=0, high=6), normal(3, 4)),
        call(integers(3, 4, low=0, high=6), minlength=9),
        call(integers(2, 0, low=0, high=1), minlength=1),
        dtypes=("int32", "int64", *FLOATING),
        returns=lambda dtypes: dtypes[1] if len(dtypes) > 1 else "int32",
        accumulates=True,
        vmap=False,
        jit=False,
    ),
    row(
        "op_in_top_k",
        _in_top_k,
        call(integers(4, low=-1, high=6), normal(4, 5), 2),
        call(targets=integers(2, 3, low=0, high=3), predictions=integers(2, 3, 3, low=0, high=2, dtype=None), k=1),
        call(integers(low=0, high=3), normal(3), 7),
        dtypes=REAL,
        returns="bool",
        differentiable=False,
        pins=[
            pin(
                np.array([0, 1, 2], np.int32),
                [[NAN, 1.0, 2.0], [NAN, 1.0, 0.0], [INF, 1.0, 1.0]],
                2,
                value=[False, True, True],
            )
        ],
    ),
    positions(
        "op_argpartition",
        lambda x, kth, axis=-1: np.argsort(x, axis, stable=True),
        call(distinct(2, 3), 1),
        call(distinct(4, 3), kth=(0, -1), axis=0),
        call(distinct(2, 3), 5, axis=None),
    ),
    of_sets(
        "op_unique",
        _unique,
        call(integers(2, 4, low=-2, high=3, dtype=None), return_index=True),
        call(integers(2, 4, low=-2, high=3, dtype=None), return_inverse=True),
        call(integers(6, low=0, high=3, dtype=None), sorted=False, size=5, fill_value=7, return_counts=True),
        call(integers(6, low=0, high=9, dtype=None), size=2, return_index=True),
        call(integers(5, 3, low=0, high=2, dtype=None), axis=0, return_inverse=True),
        call(distinct(2, 3), axis=-1, return_counts=True),
        call(normal(0), size=2, return_index=True),
        returns=lambda dtypes: (dtypes[0], "int32"),
        pins=[
            pin([NAN, 2.0, NAN, -0.0, 0.0], value=[-0.0, 2.0, NAN]),
            pin(
                [[NAN, 1.0], [0.0, NAN]],
                return_index=True,
                return_inverse=True,
                return_counts=True,
                value=([0.0, 1.0, NAN], [2, 1, 0], [[2, 1], [0, 2]], [1, 1, 2]),
            ),
            pin([NAN, NAN], axis=0, size=3, fill_value=7.0, return_counts=True, value=([NAN, 7.0, 7.0], [2, 0, 0])),
            pin(
                [[NAN, 1.0], [NAN, 1.0], [0.0, 1.0]],
                axis=0,
                return_counts=True,
                value=([[0.0, 1.0], [NAN, 1.0], [NAN, 1.0]], [1, 1, 1]),
            ),
        ],
    ),
    row(
        "op_isin",
        np.isin,
        call(integers(2, 5, low=0, high=9, dtype=None), integers(2, 3, low=0, high=9, dtype=None)),
        call(normal(3), np.zeros(0, np.int32), assume_unique=True),
        call(integers(5, low=0, high=9, dtype=None), [2, 7, 5], invert=True),
        dtypes=BOOLEAN + REAL,
        returns="bool",
        differentiable=False,
        pins=[pin([NAN, -0.0, INF], [INF, NAN, 0.0], value=[False, True, True])],
    ),
    row(
        "op_histogram",
        np.histogram,
        call(uniform(12, low=1.0, high=4.0), 4),
        call(uniform(12, low=1.0, high=4.0), bins=3, range=(1.5, 3)),
        call(normal(0), 2),
        returns=lambda dtypes: ("int32", dtypes[0]),
        pins=[
            pin([2.0, 2.0], 2, value=([0, 2], [1.5, 2.0, 2.5])),
            pin([0.0, 1.0, NAN, 3.0, 5.0], 3, (0.0, 3.0), value=([1, 1, 1], [0.0, 1.0, 2.0, 3.0])),
            pin([0.0, NAN], 2, value=([0, 0], [NAN, NAN, NAN])),
            pin([0.0, INF], 2, value=([0, 0], [NAN, NAN, NAN])),
        ],
    ),
    of_sets(
        "op_setdiff1d",
        np.setdiff1d,
        call(integers(2, 5, low=0, high=9, dtype=None), integers(2, 3, low=0, high=9, dtype=None)),
        call(distinct(7), integers(4, low=0, high=5, dtype=None), assume_unique=True),
        call(normal(0), normal(2)),
        call(normal(2), normal(0)),
        returns=same,
        pins=[
            pin([NAN, 1.0, NAN, -0.0], [NAN, 0.0], value=[1.0, NAN]),
            pin([3.0, 1.0, 3.0], [1.0], True, value=[3.0, 3.0], gradient=([1.0, 0.0, 1.0], [0.0])),
        ],
    ),
    of_sets(
        "op_union1d",
        np.union1d,
        call(integers(2, 5, low=0, high=9, dtype=None), integers(3, low=0, high=9, dtype=None)),
        call(normal(0), normal(2)),
        call(normal(0), normal(0)),
        pins=[
            pin([NAN, 2.0], [1.0, NAN, 2.0], value=[1.0, 2.0, NAN]),
            pin([3.0, 1.0, 3.0], [2.0, 3.0, 2.0], value=[1.0, 2.0, 3.0], gradient=([1.0, 1.0, 0.0], [1.0, 0.0, 0.0])),
        ],
    ),
    of_sets(
        "op_intersect1d",
        np.intersect1d,
        call(integers(2, 5, low=0, high=9, dtype=None), integers(6, low=0, high=9, dtype=None)),
        call(distinct(5), distinct(5), assume_unique=True),
        call(normal(0), normal(2)),
        pins=[
            pin([NAN, 2.0, 1.0], [NAN, 1.0], value=[1.0], gradient=([0.0, 0.0, 1.0], [0.0, 0.0])),
            pin([3.0, 1.0, 3.0], [2.0, 3.0, 1.0], return_indices=True, value=([1.0, 3.0], [1, 0], [2, 1])),
        ],
    ),
]
