"""Indexing by PyTorch's kernels, where a look shows that all indices are inside."""

from __future__ import annotations

import torch
from torch.compiler import is_dynamo_compiling

from multiop._values import args

from .._kernels import is_readable
from ..conversion import TO_NATIVE, to_index_integers

_FEW = 1 << 10  # entries of a result, which the comparison of the op makes sooner than a look at the indices


def op_one_hot(x, num_classes, axis, dtype, *, otherwise):
    if is_dynamo_compiling() or type(n := x.numel()) is not int or n * num_classes < _FEW or not is_readable(x):
        return otherwise(x, num_classes, axis, dtype)
    x = to_index_integers(x)
    least, most = torch.aminmax(x)
    if least.item() < 0 or most.item() >= num_classes:
        return otherwise(x, num_classes, axis, dtype)
    axis = args.single_axis(axis, x.ndim + 1)
    shape = (*x.shape[:axis], num_classes, *x.shape[axis:])
    return x.new_zeros(shape, dtype=TO_NATIVE[dtype]).scatter_(axis, x.unsqueeze(axis), 1)
