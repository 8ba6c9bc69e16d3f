"""The usual case of the usual ops: arrays of one dtype that is known, on which NumPy's own function is the op.

Whatever else there is (a list, a dtype that is promoted or widened, a traced array, a bad axis) goes on to the op.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import math

import numpy as np
from numpy import asarray, ndarray

from multiop._values import dtypes as _dtypes

from .. import _fourier
from .._record import Traced

QUIET = contextvars.Context()
QUIET.run(np.seterr, all="ignore")  # a copy of it costs a thirtieth of np.errstate
[(ERRORS, IGNORED)] = QUIET.items()  # and so does to set the variable that holds NumPy's errors
REAL = frozenset({np.dtype("float32"), np.dtype("float64")})
COMPLEX = frozenset({_dtypes.to_numpy(name) for name in _dtypes.COMPLEX})
FLOATS = {dtype.name: dtype for dtype in REAL | COMPLEX}
PARTS = {dtype: np.dtype(f"f{dtype.itemsize // 2}") for dtype in COMPLEX}
WHOLE_OF = {part: dtype for dtype, part in PARTS.items()}
NUMBERS = REAL | {_dtypes.to_numpy(name) for name in _dtypes.INTEGER + _dtypes.COMPLEX}
KNOWN = {_dtypes.to_numpy(name) for name in _dtypes.ALL}
ALL_PAIRS = {  # of two dtypes -> the dtype of their numbers together, which has floats of 32 or 64 bits
    (one, other): dtype
    for one in KNOWN
    for other in KNOWN
    if one is not other and (dtype := FLOATS.get(_dtypes.join(one.name, other.name)))
}
PAIRS = {pair: dtype for pair, dtype in ALL_PAIRS.items() if dtype in REAL}


def of_one(fn, dtypes=REAL):
    """Return the kernel of a function of each entry."""

    def kernel(x, *, otherwise):
        if type(x) is ndarray and x.dtype in dtypes:
            return asarray(QUIET.copy().run(fn, x))
        return otherwise(x)

    return kernel


def of_two(fn, dtypes=REAL, pairs=PAIRS):
    """Return the kernel of a function of two entries each; `pairs` tells the dtype to compute two others in."""

    def is_complex_scale(x, number):
        return type(number) in (float, complex) and dtypes >= COMPLEX and (x.dtype in REAL or x.dtype in COMPLEX)

    def kernel(x1, x2, *, otherwise):
        if type(x1) is ndarray:
            if type(x2) is not ndarray:
                is_usual = (is_small(x2) and x1.dtype in REAL) or is_complex_scale(x1, x2)
            elif x1.dtype is x2.dtype:
                is_usual = x1.dtype in dtypes
            else:
                dtype = pairs.get((x1.dtype, x2.dtype))
                return otherwise(x1, x2) if dtype is None else asarray(QUIET.copy().run(fn, x1, x2, dtype=dtype))
        else:
            is_usual = type(x2) is ndarray and ((is_small(x1) and x2.dtype in REAL) or is_complex_scale(x2, x1))
        return asarray(QUIET.copy().run(fn, x1, x2)) if is_usual else otherwise(x1, x2)

    return kernel


def is_small(x):
    """Say whether `x` is a Python number that NumPy, too, gives the dtype of an array of floats."""
    return type(x) is float or (type(x) is int and -(2**52) < x < 2**52)


def along(fn, dtypes=REAL):
    """Return the kernel of a reduction."""

    def kernel(x, axis, keepdims, *option, otherwise):
        is_usual = type(x) is ndarray and x.dtype in dtypes and (axis is None or is_axis(axis, x) or are_axes(axis, x))
        if is_usual and (not option or option[0] is None):
            return asarray(QUIET.copy().run(fn, x, axis, keepdims))
        return otherwise(x, axis, keepdims, *option)

    return kernel


def is_axis(axis, x):
    return type(axis) is int and -x.ndim <= axis < x.ndim


def are_axes(axes, x):
    return type(axes) is tuple and len({k % x.ndim for k in axes if is_axis(k, x)}) == len(axes)


def reduction(fn):
    return lambda x, axis, keepdims: fn.reduce(x, axis, None, None, keepdims)


def average(x, axis, keepdims):
    n = x.size if axis is None else x.shape[axis] if type(axis) is int else math.prod([x.shape[k] for k in axis])
    return np.true_divide(np.add.reduce(x, axis, None, None, keepdims), n)


def variance(x, axis, keepdims):
    distance = asarray(x - average(x, axis, True))
    return average(np.square(distance, out=distance), axis, keepdims)


def place(fn):
    return lambda x, axis, keepdims: asarray(fn(x, axis, keepdims=keepdims)).astype(np.int32)


op_sum, op_mean = along(reduction(np.add), REAL | COMPLEX), along(average, REAL | COMPLEX)
op_prod, op_max, op_min = (along(reduction(fn)) for fn in (np.multiply, np.maximum, np.minimum))
op_all, op_any = along(reduction(np.logical_and)), along(reduction(np.logical_or))
op_var, op_std = map(along, (variance, lambda *args: np.sqrt(variance(*args))))

op_negative, op_abs, op_square = (of_one(fn, NUMBERS) for fn in (np.negative, np.abs, np.square))
op_conj = of_one(np.conjugate, NUMBERS)
op_sin, op_cos, op_tan, op_sinh, op_cosh, op_tanh = map(of_one, (np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh))
op_arcsin, op_arccos, op_arctan = map(of_one, (np.arcsin, np.arccos, np.arctan))
op_arcsinh, op_arccosh, op_arctanh = map(of_one, (np.arcsinh, np.arccosh, np.arctanh))
op_exp, op_exp2, op_expm1, op_log, op_log1p = map(of_one, (np.exp, np.exp2, np.expm1, np.log, np.log1p))
op_log2, op_log10, op_sqrt, op_cbrt, op_reciprocal = map(of_one, (np.log2, np.log10, np.sqrt, np.cbrt, np.reciprocal))
op_sign, op_floor, op_ceil, op_trunc = map(of_one, (np.sign, np.floor, np.ceil, np.trunc))
op_isnan, op_isinf, op_isfinite = map(of_one, (np.isnan, np.isinf, np.isfinite))
op_logical_not = of_one(np.logical_not, REAL | {np.dtype(bool)})
op_rsqrt = of_one(lambda x: np.reciprocal(np.sqrt(x)))
op_relu = of_one(lambda x: np.maximum(x, 0))
op_sigmoid = of_one(lambda x: 1 / (1 + np.exp(-x)))
op_softplus = of_one(lambda x: np.logaddexp(x, 0))

op_add, op_subtract, op_multiply = (of_two(fn, NUMBERS, ALL_PAIRS) for fn in (np.add, np.subtract, np.multiply))
op_divide, op_maximum, op_minimum = map(of_two, (np.true_divide, np.maximum, np.minimum))
op_arctan2, op_hypot, op_logaddexp, power = map(of_two, (np.arctan2, np.hypot, np.logaddexp, np.power))
op_equal, op_not_equal = of_two(np.equal, NUMBERS, {}), of_two(np.not_equal, NUMBERS, {})
op_less, op_less_equal = of_two(np.less, pairs={}), of_two(np.less_equal, pairs={})
op_greater, op_greater_equal = of_two(np.greater, pairs={}), of_two(np.greater_equal, pairs={})


def op_power(x1, x2, *, otherwise):
    """Leave powers of one half, of which NumPy takes the root where all have that exponent, to the op."""
    if type(x2) is ndarray:
        is_root = not (type(x1) is ndarray and x1.ndim and x1.shape == x2.shape) and (x2 == 0.5).any()
    else:
        is_root = x2 == 0.5 if type(x2) is float else type(x2) is not int
    return otherwise(x1, x2) if is_root else power(x1, x2, otherwise=otherwise)


def op_norm(x, ord, axis, keepdims, *, otherwise):
    if ord is None and type(x) is ndarray and x.dtype in REAL and (axis is None or is_axis(axis, x)):
        if axis is None and (x.itemsize == 8 or x.size < 64):  # a product adds many float32 with too few digits
            flat = x.ravel()
            size = asarray(np.sqrt(QUIET.copy().run(flat.dot, flat)))
            return size.reshape((1,) * x.ndim) if keepdims else size
        squares = QUIET.copy().run(np.square, x)
        return asarray(np.sqrt(QUIET.copy().run(np.add.reduce, squares, axis, None, None, keepdims)))
    return otherwise(x, ord, axis, keepdims)


def op_where(condition, x1, x2, *, otherwise):
    if type(condition) is ndarray and condition.dtype == bool:
        if type(x1) is ndarray and is_small(x2) and x1.dtype in REAL:
            return np.where(condition, x1, x1.dtype.type(x2))
        if type(x2) is ndarray and is_small(x1) and x2.dtype in REAL:
            return np.where(condition, x2.dtype.type(x1), x2)
        if type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in KNOWN:
            return np.where(condition, x1, x2)
    return otherwise(condition, x1, x2)


def op_argsort(x, axis, *, otherwise):
    if type(x) is ndarray and x.dtype in REAL and is_axis(axis, x):
        return x.argsort(axis, "stable").astype(np.int32)
    return otherwise(x, axis)


def op_clip(x, x_min, x_max, *, otherwise):
    """Clip between numbers that are not 0, whose sign NumPy's `clip` may change."""
    if type(x) is ndarray and x.dtype in REAL and is_small(x_min) and is_small(x_max) and x_min and x_max:
        return asarray(QUIET.copy().run(x.clip, x_min, x_max))
    return otherwise(x, x_min, x_max)


def op_is_tensor(x, *, otherwise):
    return type(x) is ndarray or otherwise(x)


def op_shape(x, *, otherwise):
    return x.shape if type(x) is Traced or (type(x) is ndarray and x.dtype in KNOWN) else otherwise(x)


def op_get_item(x, key, *, otherwise):
    if type(x) is ndarray and x.dtype in KNOWN and x.ndim:
        if type(key) is slice:
            step = key.step
            if type(key.start) in WHOLE and type(key.stop) in WHOLE and (step is None or (type(step) is int and step)):
                return x[key].copy()
        elif type(key) is int and -x.shape[0] <= key < x.shape[0]:
            y = x[key]
            return y.copy() if type(y) is ndarray else asarray(y)
    return otherwise(x, key)


WHOLE, BACKWARDS = {int, type(None)}, slice(None, None, -1)


def op_median(x, axis, keepdims, *, otherwise):
    if axis is None and not keepdims and type(x) is ndarray and x.dtype in REAL and x.size:
        half = x.size // 2
        y = np.partition(x.ravel(), (half - 1 + x.size % 2, half, -1))  # NaN is last, if there is any
        distance = QUIET.copy().run(np.subtract, y[half], y[half - 1 + x.size % 2])
        if distance < np.inf and y[-1] == y[-1]:
            return asarray(y[half] if x.size % 2 else y[half - 1] + distance * 0.5)
    return otherwise(x, axis, keepdims)


# ops that cost more than a look at their operands by functions


def when(applies, fn, errors=()):
    """Return the kernel that is `fn` of what `applies` is true of, unless it raises one of `errors`."""

    def kernel(*args, otherwise):
        if applies(*args):
            try:
                return fn(*args)
            except errors:  # which the op explains
                pass
        return otherwise(*args)

    return kernel


def is_known(x, *options):
    return type(x) is ndarray and x.dtype in KNOWN and (not options or options[0] is None)


def is_real(x, axis=None):
    return type(x) is ndarray and x.dtype in REAL and (axis is None or is_axis(axis, x))


def are_alike(xs, axis):
    """Say whether `xs` is a list of arrays of one dtype."""
    if type(xs) not in (list, tuple) or not xs or type(xs[0]) is not ndarray or xs[0].dtype not in KNOWN:
        return False
    dtype = xs[0].dtype
    for x in xs:
        if type(x) is not ndarray or x.dtype is not dtype:
            return False
    return axis == 0 or is_axis(axis, xs[0])


def is_square(x, *options):
    return type(x) is ndarray and x.dtype in REAL and x.ndim == 2 and x.shape[0] == x.shape[1] and not any(options)


def are_vectors(x1, x2):
    is_usual = type(x1) is type(x2) is ndarray and x1.dtype is x2.dtype and x1.dtype in FLOATS.values()
    return is_usual and x1.ndim and x2.ndim


def are_contracted(axes, x1, x2):
    if type(axes) is int:
        return 0 <= axes <= min(x1.ndim, x2.ndim)
    return type(axes) in (list, tuple) and len(axes) == 2 and all(map(are_axes, map(listed, axes), (x1, x2)))


def listed(axis):
    return tuple(axis) if type(axis) is list else axis if type(axis) is tuple else (axis,)


@functools.lru_cache(1024)
def is_short(subscripts, *shapes):
    """Say whether a plan of a sum of products would take longer than the sum."""
    labels = subscripts.partition("->")[0].replace(",", "").replace(" ", "")
    return "." not in labels and math.prod(dict(zip(labels, itertools.chain(*shapes), strict=False)).values()) < 5000


def filled(x, number):
    y = np.empty(x.shape, x.dtype)
    y.fill(number)
    return y


def spread(x, shape):
    y = np.empty(shape, x.dtype)
    y[...] = x
    return y


def expand(x, axis):
    axis += x.ndim + 1 if axis < 0 else 0
    return x.reshape(*x.shape[:axis], 1, *x.shape[axis:]).copy()


op_argmax, op_argmin = (
    when(lambda x, axis, keepdims: is_real(x, axis), place(fn)) for fn in (ndarray.argmax, ndarray.argmin)
)
op_reshape = when(lambda x, newshape: is_known(x), lambda x, newshape: x.reshape(newshape).copy())
op_ravel = when(is_known, ndarray.flatten)
op_diagonal = when(
    lambda x, *where: is_known(x) and bool not in map(type, where),
    lambda x, *where: x.diagonal(*where).copy(),
    (TypeError, ValueError),
)
op_transpose = when(
    lambda x, axes: is_known(x) and (axes is None or (are_axes(axes, x) and len(axes) == x.ndim)),
    lambda x, axes: x.transpose(axes).copy(),
)
op_flip = when(is_known, lambda x, axis: x[(BACKWARDS,) * x.ndim].copy())
op_zeros_like = when(is_known, lambda x, dtype: np.zeros(x.shape, x.dtype))
op_ones_like = when(is_known, lambda x, dtype: filled(x, 1))
op_broadcast_to = when(lambda x, shape: is_known(x), spread, ValueError)
op_expand_dims = when(lambda x, k: is_known(x) and type(k) is int and -x.ndim - 1 <= k <= x.ndim, expand)
op_concatenate = when(are_alike, np.concatenate, ValueError)
op_stack = when(lambda xs, axis: type(axis) is int and are_alike(xs, 0), np.stack, ValueError)
op_take = when(
    lambda x, k, axis: is_known(x, axis) and type(k) is ndarray and k.dtype.kind == "i",
    lambda x, k, axis: asarray(x.take(k)),
    IndexError,
)
op_round = when(lambda x, decimals: not decimals and is_real(x), lambda x, decimals: asarray(np.rint(x)))
op_sort = when(lambda x, axis: axis is not None and is_real(x, axis), np.sort)
op_cumsum = when(
    lambda x, axis, dtype: dtype is None and is_real(x, axis), lambda x, axis, dtype: QUIET.copy().run(x.cumsum, axis)
)
# its dispatcher looks at each operand in Python; a version may have none
EINSUM = getattr(np.einsum, "__wrapped__", np.einsum)
op_einsum = when(
    lambda subscripts, xs: (
        are_alike(xs, 0) and xs[0].dtype in REAL and len(xs) > 1 and is_short(subscripts, *[x.shape for x in xs])
    ),
    lambda subscripts, xs: asarray(QUIET.copy().run(EINSUM, subscripts, *xs)),
    ValueError,
)
op_matmul, op_dot, op_inner, op_outer = (
    when(are_vectors, lambda x1, x2, fn=fn: asarray(QUIET.copy().run(fn, x1, x2)), ValueError)
    for fn in (np.matmul, np.dot, np.inner, lambda x1, x2: np.multiply(x1.reshape(-1, 1), x2.reshape(-1)))
)
op_tensordot = when(
    lambda x1, x2, axes: are_vectors(x1, x2) and are_contracted(axes, x1, x2),
    lambda x1, x2, axes: asarray(QUIET.copy().run(np.tensordot, x1, x2, axes)),
    ValueError,
)
op_inv = when(is_square, np.linalg.inv, np.linalg.LinAlgError)
op_cholesky = when(is_square, lambda x, upper: np.linalg.cholesky(x), np.linalg.LinAlgError)


def are_solved(a, b, *_):
    return is_real(a) and is_real(b) and a.dtype is b.dtype and a.ndim == 2 and 0 < b.ndim <= 2


op_solve, op_solve_triangular = (
    when(are_solved, solve, (np.linalg.LinAlgError, ValueError))
    for solve in (np.linalg.solve, lambda a, b, lower: np.linalg.solve((np.tril if lower else np.triu)(a), b))
)


def is_complex(x, axis=0, *_):
    return type(x) is ndarray and x.dtype in COMPLEX and x.size and type(axis) is int


op_real, op_imag = (
    when(is_complex, lambda x, part=part: part.__get__(x).copy()) for part in (ndarray.real, ndarray.imag)
)


def op_cast(x, dtype, *, otherwise):
    if type(x) is ndarray and dtype in FLOATS and (x.dtype in REAL or (is_complex(x) and "c" in dtype)):
        return x.copy() if x.dtype is FLOATS[dtype] else QUIET.copy().run(x.astype, dtype)
    return otherwise(x, dtype)


REFUSED = ValueError, IndexError, TypeError  # by NumPy: the op explains it
op_fft, op_ifft = (
    when(lambda x, n=None, axis=-1, norm=None: is_complex(x, axis), transform, REFUSED)
    for transform in map(_fourier.along_one, ("fft", "ifft"))
)
op_fft2, op_ifft2 = (
    when(is_complex, lambda x, f=transform: f(None, (-2, -1), None)(x), REFUSED)
    for transform in (_fourier.forward, _fourier.back)
)
op_fftn, op_ifftn, op_irfftn = (
    when(lambda x, s, axes, norm: axes and is_complex(x), lambda x, *plan, f=transform: f(*plan)(x), REFUSED)
    for transform in (_fourier.forward, _fourier.back, _fourier.back_to_reals)
)


def op_rfftn(x, s, axes, norm, is_pair, *, otherwise):
    if type(x) is ndarray and x.dtype in REAL and axes:
        z = _fourier.forward_of_reals(s, axes, norm)(x)
        return (z.real.copy(), z.imag.copy()) if is_pair else z
    return otherwise(x, s, axes, norm, is_pair)


# views: what is written into one of these is written into the argument


op_view_as_real = when(is_complex, lambda x: x[..., None].view(PARTS[x.dtype]))


def op_view_as_complex(x, *, otherwise):
    if type(x) is ndarray and x.dtype in REAL and x.shape[-1:] == (2,) and x.strides[-1] == x.itemsize:
        return asarray(x.view(WHOLE_OF[x.dtype])[..., 0])
    return otherwise(x)


# what is recorded is written to by nobody, so that a view will do


def view_of_item(x, key):
    entries = key if type(key) is tuple else (key,)
    is_simple = all(type(entry) is int or type(entry) is slice or entry is None or entry is ... for entry in entries)
    return asarray(x[key]) if is_simple else None


VIEWS = {
    "op_get_item": view_of_item,
    "op_reshape": lambda x, newshape: x.reshape(newshape),
    "op_transpose": lambda x, axes: x.transpose(axes),
    "op_swapaxes": lambda x, axis1, axis2: x.swapaxes(axis1, axis2),
}
