"""Products of matrices."""

import numpy as np

from multiop import errors

from .conversion import op_cast, promote, record
from .elementwise import op_conj
from .shapes import op_expand_dims, op_squeeze, op_swapaxes, sum_to


def op_matmul(x1, x2):
    x1, x2 = promote(x1, x2)
    if x1.dtype == np.int8:  # a sum of products of bytes does not fit in a byte
        x1, x2 = op_cast(x1, "int32"), op_cast(x2, "int32")
    if x1.ndim == 0 or x2.ndim == 0:
        raise errors.ArgumentError("x1 and x2 must have at least one dimension")
    if x1.ndim == 1:
        return op_squeeze(op_matmul(op_expand_dims(x1, 0), x2), -2 if x2.ndim > 1 else -1)
    if x2.ndim == 1:
        return op_squeeze(op_matmul(x1, op_expand_dims(x2, 1)), -1)

    def run(a, b):
        wide = np.float32 if a.dtype.itemsize == 2 else a.dtype  # halves add up badly
        return np.matmul(a.astype(wide), b.astype(wide)).astype(a.dtype)

    return record(
        run,
        (x1, lambda u: sum_to(op_matmul(u, adjoint(x2)), x1.shape)),
        (x2, lambda u: sum_to(op_matmul(adjoint(x1), u), x2.shape)),
    )


def adjoint(x):
    return op_conj(op_swapaxes(x, -1, -2))
