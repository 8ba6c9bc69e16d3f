"""Elementwise arithmetic and functions."""

import numpy as np

from .conversion import floating, promote, tensor


def op_add(x1, x2):
    return tensor(np.add(*promote(x1, x2)))


def op_multiply(x1, x2):
    return tensor(np.multiply(*promote(x1, x2)))


def op_exp(x):
    with np.errstate(over="ignore"):
        return tensor(np.exp(floating(x)))
