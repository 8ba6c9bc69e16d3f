"""Tensors made from shapes and numbers."""

import numpy as np

from .conversion import Tensor, convert, dtype_name, native, record


def op_zeros(shape, dtype):
    return Tensor(np.zeros(shape, native(dtype)))


def op_ones(shape, dtype):
    return Tensor(np.ones(shape, native(dtype)))


def op_zeros_like(x, dtype):
    x = convert(x)
    return op_zeros(x.shape, dtype or dtype_name(x))


def op_ones_like(x, dtype):
    x = convert(x)
    return op_ones(x.shape, dtype or dtype_name(x))


def op_copy(x):
    return record(np.copy, (convert(x), lambda u: u))
