"""Comparison, tests of values, logic and selection: what gives bools has no gradient."""

import numpy as np

from .conversion import Tensor, convert, promote, record
from .elementwise import real
from .shapes import sum_to


def op_equal(x1, x2):
    return compare(np.equal, *promote(x1, x2))


def op_not_equal(x1, x2):
    return compare(np.not_equal, *promote(x1, x2))


def op_less(x1, x2):
    return compare(np.less, *real(*promote(x1, x2)))


def op_less_equal(x1, x2):
    return compare(np.less_equal, *real(*promote(x1, x2)))


def op_greater(x1, x2):
    return compare(np.greater, *real(*promote(x1, x2)))


def op_greater_equal(x1, x2):
    return compare(np.greater_equal, *real(*promote(x1, x2)))


def op_isnan(x):
    return compare(np.isnan, convert(x))


def op_logical_not(x):
    return compare(np.logical_not, convert(x))


def op_where(condition, x1, x2):
    condition = convert(condition)
    x1, x2 = promote(x1, x2)
    return record(
        lambda *arrays: np.where(condition.array, *arrays),
        (x1, lambda u: sum_to(op_where(condition, u, 0), x1.shape)),
        (x2, lambda u: sum_to(op_where(condition, 0, u), x2.shape)),
    )


def op_nonzero(x):
    return tuple(Tensor(places.astype(np.int32)) for places in np.nonzero(convert(x).array))


def compare(function, *xs):
    return record(function, *((x, None) for x in xs))


Tensor.__eq__, Tensor.__ne__, Tensor.__hash__ = op_equal, op_not_equal, object.__hash__
Tensor.__lt__, Tensor.__le__, Tensor.__gt__, Tensor.__ge__ = op_less, op_less_equal, op_greater, op_greater_equal
