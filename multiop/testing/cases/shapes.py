"""Rows of the ops that arrange entries."""

from __future__ import annotations

import numpy as np

from .._case import BOOLEAN, NUMERIC, Row, call, promoted, row, same
from .._samplers import normal

EVERY = BOOLEAN + NUMERIC


def arrangement(op: str, reference, *calls, **options) -> Row:
    """Make a row of an op whose entries are those of its operands."""
    return row(
        op, reference, *calls, dtypes=EVERY, returns=options.pop("returns", same), analytic=True, ulps=0, **options
    )


def _reshape(x, newshape):
    return np.reshape(x, newshape)


def _split(x, indices_or_sections, axis=0):
    return np.split(x, indices_or_sections, axis)


ROWS = [
    arrangement(
        "op_reshape",
        _reshape,
        call(normal(2, 3), (3, -1)),
        call(normal(2, 3), newshape=-1),
        call(normal(1), ()),
        call(normal(0, 3), (3, 0)),
    ),
    arrangement(
        "op_transpose", np.transpose, call(normal(2, 3)), call(normal(2, 3, 4), axes=(1, -1, 0)), call(normal())
    ),
    arrangement("op_swapaxes", np.swapaxes, call(normal(2, 3, 4), 0, -1), call(normal(2, 3), axis1=1, axis2=0)),
    arrangement(
        "op_moveaxis",
        np.moveaxis,
        call(normal(2, 3, 4), 0, -1),
        call(normal(2, 3, 4), source=(0, 1), destination=(-1, 0)),
    ),
    arrangement(
        "op_expand_dims", np.expand_dims, call(normal(2, 3), -1), call(normal(2, 3), axis=(0, 2)), call(normal(), 0)
    ),
    arrangement(
        "op_squeeze", np.squeeze, call(normal(1, 3, 1)), call(normal(1, 3, 1), axis=-1), call(normal(1, 1), axis=(0, 1))
    ),
    arrangement(
        "op_concatenate",
        np.concatenate,
        call([normal(2, 3), normal(1, 3)]),
        call((normal(2, 3), normal(2, 0), normal(2, 1)), axis=-1),
        returns=promoted,
    ),
    arrangement(
        "op_stack",
        np.stack,
        call([normal(2, 3), normal(2, 3)]),
        call((normal(3), normal(3), normal(3)), axis=-1),
        call(normal(2, 3), axis=1),
        returns=promoted,
    ),
    arrangement(
        "op_split",
        _split,
        call(normal(4, 3), 2),
        call(normal(2, 6), indices_or_sections=[1, 4], axis=-1),
        call(normal(3), [2, 2, 9]),
        returns=lambda dtypes: None,
    ),
    arrangement(
        "op_broadcast_to",
        np.broadcast_to,
        call(normal(3), (2, 3)),
        call(normal(2, 1), shape=(4, 2, 3)),
        call(normal(), 2),
    ),
    arrangement(
        "op_flip", np.flip, call(normal(2, 3)), call(normal(2, 3), axis=-1), call(normal(2, 3, 4), axis=(0, 2))
    ),
    arrangement("op_ravel", np.ravel, call(normal(2, 3)), call(normal()), call(normal(0, 2))),
]
