"""Rows of the ops that pick entries by their indices."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, NUMERIC, call, pin, row, same
from .._samplers import integers, normal

ROWS = [
    row(
        "op_take",
        np.take,
        call(normal(4, 3), integers(2, 5, low=-4, high=4), axis=0),
        call(normal(4, 3), indices=integers(low=-12, high=12)),
        call(normal(2, 3, 4), integers(5, low=-3, high=3), 1),
        call(normal(3), integers(0, low=0, high=1)),
        call(normal(0, 3), integers(0, 2, low=0, high=1), axis=0),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
        pins=[pin([1.0, 2.0], np.array([0, 0, -1], np.int32), value=[1.0, 1.0, 2.0], gradient=[2.0, 1.0])],
    ),
    row(
        "op_take_along_axis",
        lambda x, indices, axis=None: np.take_along_axis(x, indices, axis),
        call(normal(4, 3), integers(2, 3, low=-4, high=4), axis=0),
        call(normal(2, 3, 4), indices=integers(2, 3, 5, low=-4, high=4), axis=-1),
        call(normal(2, 3, 4), integers(1, 3, 5, low=-4, high=4), -1),
        call(normal(2, 3), integers(5, low=-6, high=6)),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
    ),
]
