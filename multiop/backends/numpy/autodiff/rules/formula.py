"""Rules that many ops share."""

from __future__ import annotations

import numpy as np

from ..._record import Owner, Traced, array_of, is_traced, ops, recorded
from .._walk import leaf, walk


def zero(u, *args):
    """Return no gradient: the op is piecewise constant."""
    return


passed = (lambda u, *_: u,)  # what is passed on as it is: the gradient fits itself to the operand


def by_slope(slope):
    """Return the rule of an op that is applied to each entry, from its derivative, a function of the op's arguments."""
    return (lambda u, _y, *args: times(u, slope(*args), args[0]),)


def by_result(slope):
    """Return the rule of an op that is applied to each entry, from its derivative, a function of the op's result."""
    return (lambda u, y, *_: times(u, slope(y), y),)


def times(u, slope, x):
    """Return `u * slope`, in the memory of the slope where that was made of `x` for this."""
    is_new = type(slope) is type(u) is np.ndarray and slope is not x and slope.base is None
    if is_new and slope.dtype is u.dtype and slope.shape == u.shape and slope.dtype.kind == "f":
        return np.multiply(u, slope, out=slope)
    return u * conj(slope)


def conj(x):
    """Return the conjugate of a tensor or a Python number, without a copy of real numbers."""
    if isinstance(x, (float, int)):  # a bool is an int
        return x
    return np.conj(x) if type(x) is complex or x.dtype.kind == "c" else x


def by_formula(formula):
    """Return the rule of an op that a formula computes too, which is made of other ops."""

    def rule(u, *args):
        with Owner() as owner:
            leaves = [leaf(x, owner) if isinstance(x, Traced) else x for x in args]
            y = formula(*leaves)
        ys, us = (y, u) if isinstance(y, tuple) else ([y], [u])
        grads = iter(walk(ys, us, [x for x in leaves if isinstance(x, Traced)]))
        return tuple([next(grads) if isinstance(x, Traced) else None for x in leaves])

    return rule


def sloped(value, slope, x):
    """Return `value` of an array, with the derivative `slope(x)`."""
    if not is_traced(x):
        return value(array_of(x))
    return recorded(lambda x: np.asarray(value(x)), by_slope(slope), (x,))  # of a number, NumPy makes no array


def is_complex(x):
    return np.iscomplexobj(array_of(x))


def reshape_gradient(x, shape):
    """Return `x` in another shape: of plain numbers, a view will do."""
    return ops.reshape(x, shape) if isinstance(x, Traced) else x.reshape(shape)
