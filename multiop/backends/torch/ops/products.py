"""Products of matrices and of tensors."""

from __future__ import annotations

import torch

from multiop import errors
from multiop._values import args

from ..conversion import are_autocast, are_inexact, directly, in_wider_dtype, promote, promote_all, without_int8


@directly(torch.matmul)
def op_matmul(x1, x2):
    if are_autocast(x1, x2):
        return torch.matmul(x1, x2)
    x1, x2 = promote(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise errors.ArgumentError("x1 and x2 must have at least one dimension")
    return product_of(torch.matmul, *without_int8(x1, x2))


def op_einsum(subscripts, operands):
    if (len(operands) == 2 and are_inexact(*operands)) or are_autocast(*operands):
        return torch.einsum(subscripts, *operands)
    return product_of(lambda *xs: torch.einsum(subscripts, *xs), *without_int8(*promote_all(*operands)))


def op_tensordot(x1, x2, axes):
    if are_inexact(x1, x2):
        return torch.tensordot(x1, x2, args.axes_to_contract(axes, x1.shape, x2.shape))
    x1, x2 = promote_all(x1, x2)
    dims = args.axes_to_contract(axes, x1.shape, x2.shape)
    return product_of(lambda x1, x2: torch.tensordot(x1, x2, dims), x1, x2)


def product_of(fn, *xs):
    if xs[0].dtype is torch.bool:  # NumPy's product of bools is `or` over `and`
        return product_of(fn, *[x.int() for x in xs]) != 0
    if len(xs) == 2 and not (xs[0].is_cpu or xs[0].is_floating_point() or xs[0].is_complex()):
        return product_of_parts(fn, *xs)
    y = in_wider_dtype(fn, *xs)
    return y if y.is_floating_point() else y.type(xs[0].dtype)  # torch.einsum returns int64 for a trace of integers


def product_of_parts(fn, x1, x2):
    """Return a product of integers as a sum of exact `float64` products of their parts: GPUs have no integer kernel."""
    dtype, size = x1.dtype, 8 * x1.element_size()
    width = 16 if max(x1.numel(), x2.numel()) < 2**21 else 8  # so that a sum of that many products has at most 53 bits
    number = -(-size // width)

    def parts(x):
        x = x.long()
        shifted = [torch.bitwise_right_shift(x, width * k) for k in range(number)]
        return [*[(y & (2**width - 1)).double() for y in shifted[:-1]], shifted[-1].double()]

    total, rows, columns = 0, parts(x1), parts(x2)
    for i in range(number):
        for k in range(number - i):  # higher parts wrap around
            total = total + torch.bitwise_left_shift(fn(rows[i], columns[k]).long(), width * (i + k))
    return total.type(dtype)
