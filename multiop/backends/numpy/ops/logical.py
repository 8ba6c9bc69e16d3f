"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

import numpy as np

from multiop import errors

from ..conversion import HALVES, convert, promote, reject_complex


def op_equal(x1, x2):
    return np.equal(*promote(x1, x2))


def op_not_equal(x1, x2):
    return np.not_equal(*promote(x1, x2))


def op_less(x1, x2):
    return np.less(*reject_complex(*promote(x1, x2)))


def op_less_equal(x1, x2):
    return np.less_equal(*reject_complex(*promote(x1, x2)))


def op_greater(x1, x2):
    return np.greater(*reject_complex(*promote(x1, x2)))


def op_greater_equal(x1, x2):
    return np.greater_equal(*reject_complex(*promote(x1, x2)))


def op_isnan(x):
    return np.isnan(convert(x))


def op_isinf(x):
    return np.isinf(convert(x))


def op_isfinite(x):
    return np.isfinite(convert(x))


def op_logical_and(x1, x2):
    return np.logical_and(truth(x1), truth(x2))


def op_logical_or(x1, x2):
    return np.logical_or(truth(x1), truth(x2))


def op_logical_xor(x1, x2):
    return np.logical_xor(truth(x1), truth(x2))


def op_logical_not(x):
    return np.logical_not(truth(x))


def op_where(condition, x1, x2):
    return np.where(truth(condition), *promote(x1, x2))


def op_nonzero(x):
    x = convert(x)
    if not x.ndim:
        raise errors.ArgumentError("x must have at least one dimension")
    return tuple(index.astype(np.int32) for index in np.nonzero(x))


def op_isposinf(x):
    return np.equal(*reject_complex(convert(x)), np.inf)


def op_isneginf(x):
    return np.equal(*reject_complex(convert(x)), -np.inf)


def op_isreal(x):
    return np.isreal(convert(x))


def op_signbit(x):
    (x,) = reject_complex(convert(x))
    return x < 0 if x.dtype.kind in "biu" else np.signbit(x)


def op_isclose(x1, x2, rtol, atol, equal_nan):
    x1, x2 = promote(x1, x2)
    wide = np.float32 if x1.dtype in HALVES else np.float64 if x1.dtype.kind in "biu" else x1.dtype
    return np.isclose(x1.astype(wide), x2.astype(wide), rtol, atol, equal_nan)


def truth(x):
    return convert(x, "bool")
