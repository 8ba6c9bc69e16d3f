"""Rows of the ops that rearrange entries."""

from __future__ import annotations

import functools

import numpy as np
import scipy

from .._case import BOOLEAN, NUMERIC, Row, call, promote_dtypes, row, same
from .._samplers import normal
from .creation import creation_row

EVERY = BOOLEAN + NUMERIC


def arrangement(op: str, reference, *calls, **options) -> Row:
    """Make a row of an op whose result consists of entries of its operands."""
    return row(
        op, reference, *calls, dtypes=EVERY, returns=options.pop("returns", same), analytic=True, ulps=0, **options
    )


def open_dtype(dtypes):
    """Leave the dtype open, for an op that returns several tensors, or whose operands do not determine it."""


row_without_tensor = functools.partial(
    row, dtypes=("float32",), returns=None, differentiable=False, vmap=False, jit=False
)


def _pad(x, pad_width, mode="constant", constant_values=None):
    options = {"constant_values": constant_values} if constant_values is not None else {}
    return np.pad(x, pad_width, mode, **options)


def _tile(x, repeats):
    return np.tile(x, repeats)


def _unstack(x, num=None, axis=0):
    return list(np.moveaxis(x, axis, 0))


def _array_split(x, indices_or_sections, axis=0):
    return np.array_split(x, indices_or_sections, axis)


def _hsplit(x, indices_or_sections):
    return np.hsplit(x, indices_or_sections)


def _vsplit(x, indices_or_sections):
    return np.vsplit(x, indices_or_sections)


def _dsplit(x, indices_or_sections):
    return np.dsplit(x, indices_or_sections)


def _meshgrid(*x, indexing="xy"):
    return list(np.meshgrid(*x, indexing=indexing))


def _reshape(x, newshape):
    return np.reshape(x, newshape)


def _split(x, indices_or_sections, axis=0):
    return np.split(x, indices_or_sections, axis)


def set_diag(x, diagonal):
    """Entry by entry."""
    y, k = np.array(x), min(x.shape[-2:])
    y[..., range(k), range(k)] = diagonal
    return y


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
        returns=promote_dtypes,
    ),
    arrangement(
        "op_stack",
        np.stack,
        call([normal(2, 3), normal(2, 3)]),
        call((normal(3), normal(3), normal(3)), axis=-1),
        call(normal(2, 3), axis=1),
        returns=promote_dtypes,
    ),
    arrangement(
        "op_split",
        _split,
        call(normal(4, 3), 2),
        call(normal(2, 6), indices_or_sections=[1, 4], axis=-1),
        call(normal(3), [2, 2, 9]),
        returns=open_dtype,
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
    arrangement("op_tile", _tile, call(normal(2, 3), 2), call(normal(2, 3), (2, 1, 3)), call(normal(3), repeats=(0,))),
    arrangement(
        "op_repeat",
        np.repeat,
        call(normal(2, 3), 2),
        call(normal(2, 3), repeats=[1, 0, 2], axis=-1),
        call(normal(2, 3), 3, 0),
    ),
    arrangement(
        "op_roll",
        np.roll,
        call(normal(2, 3), 1),
        call(normal(2, 3), shift=-2, axis=-1),
        call(normal(2, 3), (1, -1), (0, 1)),
        call(normal(2, 3), 4, (0, 1)),
        call(normal(2, 3), (1,), (0,)),
        call(normal(2, 3), (1,), (0, 1)),
        call(normal(2, 3), (1, 1), 1),
        call(normal(2, 3), [2, 1]),
    ),
    arrangement(
        "op_pad",
        _pad,
        call(normal(2, 3), 1),
        call(normal(2, 3), ((0, 1), (2, 0)), constant_values=1),
        call(normal(3, 4), pad_width=(1, 2), mode="reflect"),
        call(normal(3, 4), (5, 7), "symmetric"),
        call(normal(3), 2, "edge"),
        call(normal(3), 4, "wrap"),
        call(normal(0), 2),
    ),
    arrangement(
        "op_unstack",
        _unstack,
        call(normal(2, 3)),
        call(normal(2, 3), num=3, axis=-1),
        returns=open_dtype,
    ),
    arrangement(
        "op_diagonal",
        np.diagonal,
        call(normal(3, 4)),
        call(normal(3, 4), offset=1),
        call(normal(2, 3, 4), -1, axis1=2, axis2=0),
        call(normal(2, 3), 3),
    ),
    row_without_tensor("op_ndim", np.ndim, call(normal(2, 3)), call(normal())),
    row_without_tensor("op_size", np.size, call(normal(2, 3)), call(normal()), call(normal(0, 2))),
    arrangement(
        "op_hstack",
        np.hstack,
        call([normal(2), normal(3)]),
        call([normal(2, 1), normal(2, 2)]),
        call([normal(), normal()]),
    ),
    arrangement(
        "op_column_stack",
        np.column_stack,
        call([normal(3), normal(3, 2)]),
        call([normal(2), normal(2)]),
        call([normal(), normal()]),
    ),
    arrangement("op_vstack", np.vstack, call([normal(3), normal(3)]), call([normal(2, 3), normal(3)])),
    arrangement(
        "op_dstack",
        np.dstack,
        call([normal(3), normal(3)]),
        call([normal(2, 3), normal(2, 3)]),
        call([normal(2, 3, 1), normal(2, 3, 2)]),
    ),
    arrangement(
        "op_append",
        np.append,
        call(normal(2, 3), normal(4)),
        call(normal(2, 3), normal(1, 3), axis=0),
        returns=promote_dtypes,
    ),
    arrangement(
        "op_array_split",
        _array_split,
        call(normal(7, 2), 3),
        call(normal(2, 5), indices_or_sections=[1, 3], axis=-1),
        call(normal(2), 3),
        returns=open_dtype,
    ),
    arrangement("op_hsplit", _hsplit, call(normal(2, 4), 2), call(normal(4), [1]), returns=open_dtype),
    arrangement("op_vsplit", _vsplit, call(normal(4, 2), 2), call(normal(4, 1), [1]), returns=open_dtype),
    arrangement("op_dsplit", _dsplit, call(normal(1, 2, 4), 2), call(normal(1, 1, 4), [1]), returns=open_dtype),
    arrangement("op_fliplr", np.fliplr, call(normal(2, 3))),
    arrangement("op_flipud", np.flipud, call(normal(2, 3)), call(normal(3))),
    arrangement(
        "op_rot90",
        np.rot90,
        call(normal(2, 3)),
        call(normal(2, 3, 4), k=-1, axes=(2, 0)),
        call(normal(2, 3), 2),
        call(normal(2, 3), 4),
    ),
    arrangement(
        "op_meshgrid",
        _meshgrid,
        call(normal(2), normal(3)),
        call(normal(2), normal(3), normal(4), indexing="ij"),
        call(normal(), normal(2)),
        call(normal(3)),
        returns=open_dtype,
    ),
    row(
        "op_broadcast_arrays",
        lambda *xs: tuple(np.broadcast_arrays(*xs)),
        call(normal(2, 1), normal(3)),
        call(normal(), normal(2), normal(4, 1)),
        call(normal(0)),
        returns=open_dtype,
    ),
    row_without_tensor(
        "op_broadcast_shapes",
        np.broadcast_shapes,
        call((2, 1), (3,)),
        call((4, 1, 1), (), (1, 3)),
        call((0,), (1,)),
    ),
    *(
        creation_row(op, reference, call(3), call(2, 1, m=4), call(3, k=-1), returns="int32")
        for op, reference in (("op_tril_indices", np.tril_indices), ("op_triu_indices", np.triu_indices))
    ),
    arrangement(
        "op_block_diag",
        scipy.linalg.block_diag,
        call(normal(2, 3), normal(1, 2)),
        call(normal(2), normal(), normal(2, 1)),
        call(normal(0, 2), normal(2, 0)),
    ),
    row(
        "op_set_diag",
        set_diag,
        call(normal(3, 3), normal(3)),
        call(normal(2, 2, 3), normal(2, 1)),
        call(normal(2, 4, 2), diagonal=normal(2)),
        call(normal(2, 3), 1.0),
    ),
    arrangement(
        "op_diag",
        np.diag,
        call(normal(3)),
        call(normal(3), k=1),
        call(normal(2), -2),
        call(normal(3, 4)),
        call(normal(3, 4), -1),
    ),
    arrangement("op_diagflat", np.diagflat, call(normal(2, 2)), call(normal(3), k=-1)),
    creation_row(
        "op_tri",
        lambda N, M=None, k=0, dtype=None: np.tri(N, M, k),
        call(3),
        call(2, M=4, k=1),
        call(3, 2, -1, dtype="int32"),
        returns=open_dtype,
    ),
    arrangement("op_tril", np.tril, call(normal(3, 4)), call(normal(2, 3, 3), k=-1)),
    arrangement("op_triu", np.triu, call(normal(3, 4)), call(normal(2, 3, 3), k=1)),
]
