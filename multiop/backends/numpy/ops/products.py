"""Products of matrices and of tensors."""

from __future__ import annotations

import math

import numpy as np

from multiop import errors
from multiop._values import args

from .._record import is_traced, ops
from ..conversion import in_float32, promote, promote_all


def op_matmul(x1, x2):
    x1, x2 = without_int8(*promote(x1, x2))
    if x1.ndim == 0 or x2.ndim == 0:
        raise errors.ArgumentError("x1 and x2 must have at least one dimension")
    return in_float32(np.matmul, x1, x2)


def op_einsum(subscripts, operands):
    return in_float32(lambda *xs: np.einsum(subscripts, *xs, optimize=True), *without_int8(*promote_all(*operands)))


def op_tensordot(x1, x2, axes):
    x1, x2 = promote(x1, x2)
    dims1, dims2 = args.axes_to_contract(axes, x1.shape, x2.shape)
    return in_float32(lambda x1, x2: contract(x1, dims1, x2, dims2), x1, x2)


def contract(x1, dims1, x2, dims2):
    rest1, rest2 = ([k for k in range(x.ndim) if k not in dims] for x, dims in ((x1, dims1), (x2, dims2)))
    n = math.prod(x1.shape[k] for k in dims1)
    shape1, shape2 = [x1.shape[k] for k in rest1], [x2.shape[k] for k in rest2]
    rows = ops.reshape(ops.transpose(x1, [*rest1, *dims1]), (math.prod(shape1), n))
    columns = ops.reshape(ops.transpose(x2, [*dims2, *rest2]), (n, math.prod(shape2)))
    multiply = ops.matmul if is_traced((x1, x2)) else np.matmul  # int8 stays, which is not differentiated
    return ops.reshape(multiply(rows, columns), [*shape1, *shape2])


def without_int8(*xs):
    """Return `int8` as `int32`, in which sums of products are exact, as quantized code needs."""
    return [x.astype(np.int32) if x.dtype == np.int8 else x for x in xs]
