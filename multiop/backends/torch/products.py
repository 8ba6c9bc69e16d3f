"""Products of matrices and of tensors."""

from __future__ import annotations

import torch

from multiop import _args, errors

from .conversion import are_floats, promote, promote_all, widened


def op_matmul(x1, x2):
    if are_floats(x1, x2):
        return torch.matmul(x1, x2)
    x1, x2 = promote(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise errors.ArgumentError("x1 and x2 must have at least one dimension")
    return product(torch.matmul, x1, x2)


def op_einsum(subscripts, operands):
    if len(operands) == 2 and are_floats(*operands):
        return torch.einsum(subscripts, *operands)
    return product(lambda *xs: torch.einsum(subscripts, *xs), *promote_all(*operands))


def op_tensordot(x1, x2, axes):
    x1, x2 = promote_all(x1, x2)
    dims = _args.contracted(axes, x1.shape, x2.shape)
    return product(lambda x1, x2: torch.tensordot(x1, x2, dims), x1, x2)


def product(fn, *xs):
    if xs[0].dtype is torch.bool:  # NumPy's product of bools: any of all
        return fn(*[x.to(torch.int32) for x in xs]) != 0
    return widened(fn, *xs).to(xs[0].dtype)  # torch.einsum makes the trace of small integers int64
