"""Comparison, tests of values, logic and selection."""

from __future__ import annotations

import numpy as np

from multiop import errors

from ..conversion import HALVES, convert, pipeline, promote, reject_complex, truths

op_equal = pipeline(promote, np.equal)
op_not_equal = pipeline(promote, np.not_equal)
op_less = pipeline(promote, reject_complex, np.less)
op_less_equal = pipeline(promote, reject_complex, np.less_equal)
op_greater = pipeline(promote, reject_complex, np.greater)
op_greater_equal = pipeline(promote, reject_complex, np.greater_equal)
op_isnan = pipeline(convert, np.isnan)
op_isinf = pipeline(convert, np.isinf)
op_isfinite = pipeline(convert, np.isfinite)
op_logical_and = pipeline(truths, np.logical_and)
op_logical_or = pipeline(truths, np.logical_or)
op_logical_xor = pipeline(truths, np.logical_xor)
op_logical_not = pipeline(truths, np.logical_not)


def op_where(condition, x1, x2):
    return np.where(*truths(condition), *promote(x1, x2))


def op_nonzero(x):
    x = convert(x)
    if not x.ndim:
        raise errors.ArgumentError("x must have at least one dimension")
    return tuple(index.astype(np.int32) for index in np.nonzero(x))


op_isposinf = pipeline(convert, reject_complex, lambda x: x == np.inf)
op_isneginf = pipeline(convert, reject_complex, lambda x: x == -np.inf)
op_isreal = pipeline(convert, np.isreal)
op_signbit = pipeline(convert, reject_complex, lambda x: x < 0 if x.dtype.kind in "biu" else np.signbit(x))


def op_isclose(x1, x2, rtol, atol, equal_nan):
    x1, x2 = promote(x1, x2)
    wide = np.float32 if x1.dtype in HALVES else np.float64 if x1.dtype.kind in "biu" else x1.dtype
    return np.isclose(x1.astype(wide), x2.astype(wide), rtol, atol, equal_nan)
