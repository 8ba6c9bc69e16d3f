"""The usual case of the usual ops: arrays of one dtype that is known, on which NumPy's own function is the op.

Whatever else there is (a list, a dtype that is promoted or widened, a traced array, a bad axis) goes on to the op.
"""

from __future__ import annotations

import contextvars

import numpy as np
from numpy import asarray, ndarray

from multiop._values import dtypes as _dtypes

QUIET = contextvars.Context()
QUIET.run(np.seterr, all="ignore")  # a copy of it costs a thirtieth of np.errstate
REAL = frozenset({np.dtype("float32"), np.dtype("float64")})
NUMBERS = REAL | {_dtypes.to_numpy(name) for name in _dtypes.INTEGER + _dtypes.COMPLEX}
KNOWN = {_dtypes.to_numpy(name) for name in _dtypes.ALL}
PAIRS = {  # of two dtypes, one of which is real
    (one, other): _dtypes.to_numpy(_dtypes.join(one.name, other.name))
    for one in KNOWN
    for other in KNOWN
    if one is not other and _dtypes.join(one.name, other.name) in ("float32", "float64")
}


def of_one(fn, dtypes=REAL):
    """Return the kernel of a function of each entry."""

    def kernel(x, *, otherwise):
        if type(x) is ndarray and x.dtype in dtypes:
            y = QUIET.copy().run(fn, x)
            return y if type(y) is ndarray else asarray(y)
        return otherwise(x)

    return kernel


def of_two(fn, dtypes=REAL, pairs=PAIRS):
    """Return the kernel of a function of two entries each; `pairs` tells the dtype to compute two others in."""

    def kernel(x1, x2, *, otherwise):
        if type(x1) is ndarray:
            if type(x2) is ndarray:
                if x1.dtype is x2.dtype:
                    if x1.dtype in dtypes:
                        y = QUIET.copy().run(fn, x1, x2)
                        return y if type(y) is ndarray else asarray(y)
                elif (dtype := pairs.get((x1.dtype, x2.dtype))) is not None:
                    return asarray(QUIET.copy().run(fn, x1, x2, dtype=dtype))
            elif is_small(x2) and x1.dtype in REAL:
                y = QUIET.copy().run(fn, x1, x2)
                return y if type(y) is ndarray else asarray(y)
        elif type(x2) is ndarray and is_small(x1) and x2.dtype in REAL:
            y = QUIET.copy().run(fn, x1, x2)
            return y if type(y) is ndarray else asarray(y)
        return otherwise(x1, x2)

    return kernel


def is_small(x):
    """Say whether `x` is a Python number that NumPy, too, gives the dtype of an array of floats."""
    return type(x) is float or (type(x) is int and -(2**52) < x < 2**52)


def along(fn):
    """Return the kernel of a reduction."""

    def kernel(x, axis, keepdims, *, otherwise):
        if type(x) is ndarray and x.dtype in REAL and (axis is None or is_axis(axis, x)):
            y = QUIET.copy().run(fn, x, axis, keepdims)
            return y if type(y) is ndarray else asarray(y)
        return otherwise(x, axis, keepdims)

    return kernel


def extremum(fn):
    """Return the kernel of a largest or smallest entry."""

    def kernel(x, axis, keepdims, initial, *, otherwise):
        if initial is None and type(x) is ndarray and x.dtype in REAL and (axis is None or is_axis(axis, x)):
            y = QUIET.copy().run(fn.reduce, x, axis, None, None, keepdims)
            return y if type(y) is ndarray else asarray(y)
        return otherwise(x, axis, keepdims, initial)

    return kernel


def is_axis(axis, x):
    return type(axis) is int and -x.ndim <= axis < x.ndim


def total(x, axis, keepdims):
    return np.add.reduce(x, axis, None, None, keepdims)


def average(x, axis, keepdims):
    return np.true_divide(total(x, axis, keepdims), x.size if axis is None else x.shape[axis])


def variance(x, axis, keepdims):
    n = x.size if axis is None else x.shape[axis]
    distance = x - np.true_divide(np.add.reduce(x, axis, None, None, True), n)
    return np.true_divide(np.add.reduce(np.square(distance), axis, None, None, keepdims), n)


op_sum = along(total)
op_mean = along(average)
op_var = along(variance)
op_std = along(lambda x, axis, keepdims: np.sqrt(variance(x, axis, keepdims)))
op_max = extremum(np.maximum)
op_min = extremum(np.minimum)
op_argmax = along(lambda x, axis, keepdims: x.argmax(axis, keepdims=keepdims).astype(np.int32))
op_argmin = along(lambda x, axis, keepdims: x.argmin(axis, keepdims=keepdims).astype(np.int32))

op_negative = of_one(np.negative, NUMBERS)
op_reciprocal = of_one(np.reciprocal)
op_sign = of_one(np.sign)
op_abs = of_one(np.abs, NUMBERS)
op_square = of_one(np.square, NUMBERS)
op_sqrt = of_one(np.sqrt)
op_rsqrt = of_one(lambda x: np.reciprocal(np.sqrt(x)))
op_exp = of_one(np.exp)
op_exp2 = of_one(np.exp2)
op_expm1 = of_one(np.expm1)
op_log = of_one(np.log)
op_log2 = of_one(np.log2)
op_log10 = of_one(np.log10)
op_log1p = of_one(np.log1p)
op_floor = of_one(np.floor)
op_ceil = of_one(np.ceil)
op_trunc = of_one(np.trunc)
op_sin = of_one(np.sin)
op_cos = of_one(np.cos)
op_tan = of_one(np.tan)
op_arcsin = of_one(np.arcsin)
op_arccos = of_one(np.arccos)
op_arctan = of_one(np.arctan)
op_sinh = of_one(np.sinh)
op_cosh = of_one(np.cosh)
op_tanh = of_one(np.tanh)
op_arcsinh = of_one(np.arcsinh)
op_arccosh = of_one(np.arccosh)
op_arctanh = of_one(np.arctanh)
op_cbrt = of_one(np.cbrt)
op_isnan = of_one(np.isnan)
op_isinf = of_one(np.isinf)
op_isfinite = of_one(np.isfinite)
op_relu = of_one(lambda x: np.maximum(x, 0))
op_sigmoid = of_one(lambda x: 1 / (1 + np.exp(-x)))
op_softplus = of_one(lambda x: np.logaddexp(x, 0))

op_add = of_two(np.add, NUMBERS)
op_subtract = of_two(np.subtract, NUMBERS)
op_multiply = of_two(np.multiply, NUMBERS)
op_divide = of_two(np.true_divide)
op_maximum = of_two(np.maximum)
op_minimum = of_two(np.minimum)
op_arctan2 = of_two(np.arctan2)
op_hypot = of_two(np.hypot)
op_logaddexp = of_two(np.logaddexp)
op_equal = of_two(np.equal, NUMBERS, {})
op_not_equal = of_two(np.not_equal, NUMBERS, {})
op_less = of_two(np.less, pairs={})
op_less_equal = of_two(np.less_equal, pairs={})
op_greater = of_two(np.greater, pairs={})
op_greater_equal = of_two(np.greater_equal, pairs={})


def op_power(x1, x2, *, otherwise):
    """Leave powers of one half, for which NumPy may take a root, to the op."""
    is_root = (x2 == 0.5).any() if type(x2) is ndarray else x2 == 0.5 if is_small(x2) else True
    return otherwise(x1, x2) if is_root else power(x1, x2, otherwise=otherwise)


power = of_two(np.power)


def op_matmul(x1, x2, *, otherwise):
    if type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in REAL and x1.ndim and x2.ndim:
        y = QUIET.copy().run(np.matmul, x1, x2)
        return y if type(y) is ndarray else asarray(y)
    return otherwise(x1, x2)


def op_where(condition, x1, x2, *, otherwise):
    if type(condition) is ndarray and condition.dtype == bool:
        if type(x1) is ndarray and is_small(x2) and x1.dtype in REAL:
            return np.where(condition, x1, x1.dtype.type(x2))
        if type(x2) is ndarray and is_small(x1) and x2.dtype in REAL:
            return np.where(condition, x2.dtype.type(x1), x2)
        if type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in KNOWN:
            return np.where(condition, x1, x2)
    return otherwise(condition, x1, x2)


def op_clip(x, x_min, x_max, *, otherwise):
    """Clip between numbers that are not 0, whose sign NumPy's `clip` may change."""
    if type(x) is ndarray and x.dtype in REAL and is_small(x_min) and is_small(x_max) and x_min and x_max:
        return asarray(QUIET.copy().run(x.clip, x_min, x_max))
    return otherwise(x, x_min, x_max)


def op_round(x, decimals, *, otherwise):
    if type(x) is ndarray and x.dtype in REAL and not decimals:
        return asarray(np.rint(x))
    return otherwise(x, decimals)


def op_reshape(x, newshape, *, otherwise):
    if type(x) is ndarray and x.dtype in KNOWN:
        y = x.reshape(newshape)
        return y if y.base is None else y.copy()
    return otherwise(x, newshape)


def op_transpose(x, axes, *, otherwise):
    if axes is None and type(x) is ndarray and x.dtype in KNOWN:
        return x.T.copy()
    return otherwise(x, axes)


def op_expand_dims(x, axis, *, otherwise):
    if type(x) is ndarray and x.dtype in KNOWN and type(axis) is int and -x.ndim - 1 <= axis <= x.ndim:
        axis += x.ndim + 1 if axis < 0 else 0
        return x.reshape(*x.shape[:axis], 1, *x.shape[axis:]).copy()
    return otherwise(x, axis)


def op_broadcast_to(x, shape, *, otherwise):
    if type(x) is ndarray and x.dtype in KNOWN and x.ndim <= len(shape):
        y = np.empty(shape, x.dtype)
        y[...] = x
        return y
    return otherwise(x, shape)


def op_zeros_like(x, dtype, *, otherwise):
    if dtype is None and type(x) is ndarray and x.dtype in KNOWN:
        return np.zeros(x.shape, x.dtype)
    return otherwise(x, dtype)


def op_ones_like(x, dtype, *, otherwise):
    if dtype is None and type(x) is ndarray and x.dtype in KNOWN:
        return np.ones(x.shape, x.dtype)
    return otherwise(x, dtype)


def op_concatenate(xs, axis, *, otherwise):
    if are_alike(xs) and is_axis(axis, xs[0]):
        return np.concatenate(xs, axis)
    return otherwise(xs, axis)


def op_stack(x, axis, *, otherwise):
    if axis == 0 and are_alike(x):
        return np.stack(x) if x[0].ndim else np.array(x)
    return otherwise(x, axis)


def are_alike(xs):
    """Say whether `xs` is a list of arrays of one dtype."""
    if type(xs) not in (list, tuple) or not xs or type(xs[0]) is not ndarray or xs[0].dtype not in KNOWN:
        return False
    dtype = xs[0].dtype
    for x in xs:  # noqa: SIM110  a generator is a call for each
        if type(x) is not ndarray or x.dtype is not dtype:
            return False
    return True


def op_get_item(x, key, *, otherwise):
    if type(x) is ndarray and x.dtype in KNOWN and x.ndim:
        if type(key) is slice and is_whole(key.start) and is_whole(key.stop) and is_whole(key.step) and key.step != 0:
            return x[key].copy()
        if is_axis(0, x) and type(key) is int and -x.shape[0] <= key < x.shape[0]:
            y = x[key]
            return y.copy() if type(y) is ndarray else asarray(y)
    return otherwise(x, key)


def is_whole(n):
    return n is None or type(n) is int


def op_take(x, indices, axis, *, otherwise):
    if axis is None and type(x) is type(indices) is ndarray and x.dtype in KNOWN and indices.dtype.kind == "i":
        try:
            return asarray(x.take(indices))
        except IndexError:  # which the op says
            pass
    return otherwise(x, indices, axis)


def op_sort(x, axis, *, otherwise):
    if type(x) is ndarray and x.dtype in REAL and is_axis(axis, x):
        return np.sort(x, axis)
    return otherwise(x, axis)


def op_argsort(x, axis, *, otherwise):
    if type(x) is ndarray and x.dtype in REAL and is_axis(axis, x):
        return x.argsort(axis, "stable").astype(np.int32)
    return otherwise(x, axis)


def op_cumsum(x, axis, dtype, *, otherwise):
    if dtype is None and type(x) is ndarray and x.dtype in REAL and (axis is None or is_axis(axis, x)):
        return QUIET.copy().run(x.cumsum, axis)
    return otherwise(x, axis, dtype)


def op_dot(x1, x2, *, otherwise):
    if type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in REAL and x1.ndim and x2.ndim:
        return asarray(QUIET.copy().run(np.dot, x1, x2))
    return otherwise(x1, x2)


def op_inner(x1, x2, *, otherwise):
    if type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in REAL and x1.ndim and x2.ndim:
        return asarray(QUIET.copy().run(np.inner, x1, x2))
    return otherwise(x1, x2)


def op_outer(x1, x2, *, otherwise):
    if type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in REAL:
        return QUIET.copy().run(np.multiply, x1.reshape(-1, 1), x2.reshape(-1))
    return otherwise(x1, x2)
