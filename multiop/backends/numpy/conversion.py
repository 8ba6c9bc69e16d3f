"""Conversion: the one place where host values become arrays, and where results become tensors.

A tensor is an array of NumPy, or one of its scalars, which its operators return in place of an array of no dimensions.
"""

from __future__ import annotations

import numpy as np

from multiop import errors
from multiop._values import args, dtypes, foreign, host

from ._record import Traced, array_of, is_traced, ops

Tensor = (np.ndarray, np.generic, Traced)
NAMES = {dtypes.to_numpy(name): name for name in dtypes.ALL}  # NumPy takes a microsecond to spell one
HALVES = [dtypes.to_numpy(dtype) for dtype in ("float16", "bfloat16")]


def own(result, operands):
    """Return the result of an op with arrays of its own: no views, and none of the operands."""
    if isinstance(result, (tuple, list)):
        return type(result)([own(entry, operands) for entry in result])
    if not isinstance(result, np.ndarray):
        return np.asarray(result) if isinstance(result, np.generic) else result
    if result.base is not None:
        return result.copy()
    for x in operands:
        if x is result or (type(x) is list and any(entry is result for entry in x)):
            return result.copy()
    return result


def is_tensor(x):
    return isinstance(x, Tensor)


def set_x64(enable):
    """NumPy has 64-bit dtypes in either mode."""


def native(dtype):
    return dtypes.to_numpy(dtype)


def dtype_name(x):
    if (known := NAMES.get(x.dtype)) is not None:
        return known
    name = dtypes.name(x.dtype, dtypes.FLOAT8)
    dtypes.refuse_float8(name)
    return name


def convert(x, dtype=None):
    """Return `x`, a tensor or a host value, as an array; `dtype` is a name."""
    if type(x) is np.ndarray and (name := NAMES.get(x.dtype)) is not None and dtype in (None, name):
        return x
    leaves = [*host.flat(x)] if (is_list := isinstance(x, (list, tuple))) else [x]
    if is_list and any(map(is_tensor, leaves)):
        dtype = dtype or dtypes.result_type(*map(promotion_dtype, leaves))
        return ops.stack([convert(entry, dtype) for entry in x], 0)
    if isinstance(x, Traced):
        return x if dtype in (None, dtype_name(x)) else ops.cast(x, dtype)
    value = foreign.value_of_variable(x)
    x = x if value is None else value
    if is_tensor(x):
        return cast(x, dtype)
    return host.as_numpy(x, dtype, "numpy", wide=not all(isinstance(leaf, int) for leaf in leaves))


def cast(x, dtype):
    given = dtypes.name(x.dtype, dtypes.FLOAT8)
    if dtype in dtypes.INTEGER and given in dtypes.INTEGER:
        return host.as_numpy(x, given, "numpy").astype(dtype, copy=False)  # what does not fit wraps around
    return host.as_numpy(x, dtype or given, "numpy")


def floating(x):
    """Return `x` as an array of real or complex floats: integers and bool become `floatx`."""
    x = convert(x)
    return convert(x, dtypes.to_floating(dtype_name(x)))


def share(array, is_asked, frozen=None):
    """Return an array of the host as a tensor on the same memory."""
    return array if array.dtype in NAMES else None


def promotion_dtype(x):
    """Return the name of the dtype of an operand; that of a Python scalar is weak."""
    return dtypes.of_scalar(x) if host.is_scalar(x) else dtype_name(convert(x))


def promote_all(*xs):
    """Return any number of operands as arrays of the dtype that the promotion table gives them."""
    dtype = dtypes.result_type(*map(promotion_dtype, xs))
    return [convert(x, dtype) for x in xs]


def promote(x1, x2):
    return promote_all(x1, x2)


def promote_floating(x1, x2):
    return [floating(x) for x in promote_all(x1, x2)]


def together(*xs):
    """Return `xs` as arrays; Python scalars stay what they are."""
    return host.with_digits(xs, [x if host.is_scalar(x) else convert(x) for x in xs], convert, dtype_name)


def complex_of(re, im):
    """Return complex numbers of their parts: the sum with `1j * im` would be NaN beside infinity, or lose a sign."""
    if is_traced([re, im]):
        return ops.view_as_complex(ops.stack([re, im], -1))
    z = np.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re, np.complex64))
    z.real, z.imag = re, im
    return z


def in_float32(fn, *xs):
    """Compute 16-bit floats in `float32`, where `fn` would overflow or lose digits."""
    if xs[0].dtype not in HALVES:
        return fn(*xs)
    y = fn(*(x.astype(np.float32) for x in xs))
    return y.astype(xs[0].dtype) if y.dtype == np.float32 else y


def of_floats(fn):
    """Return the op that computes `fn(x, *options)`, where `x` is of floats or complex numbers."""
    return lambda x, *options: in_float32(lambda x: fn(x, *options), floating(x))


def of_reals(fn):
    """Return the op that computes `fn(x, *options)`, where `x` is of floats."""
    return lambda x, *options: in_float32(lambda x: fn(x, *options), *reject_complex(floating(x)))


def pipeline(*steps):
    """Return the op that takes its tensors through `steps`, each of which returns what the next one takes."""

    def op(*xs):
        for step in steps:
            xs = step(*xs) if isinstance(xs, (tuple, list)) else step(xs)
        return xs

    return op


def bool_to_int32(*xs):
    return [x.astype(np.int32) if x.dtype == bool else x for x in xs]


def not_bool(*xs):
    if xs[0].dtype == bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def reject_complex(*xs):
    if xs[0].dtype.kind == "c":
        raise errors.DTypeError(f"{xs[0].dtype} is not accepted: complex numbers have no order")
    return xs


def reject_floats(*xs):
    if xs[0].dtype.kind not in "biu":
        raise errors.DTypeError(f"{dtype_name(xs[0])} is not accepted: give integers")
    return xs


def truths(*xs):
    return [convert(x, "bool") for x in xs]


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return host.as_numpy(x, dtype, "numpy") if dtype and is_tensor(x) else convert(x, dtype)  # it refuses to wrap


def op_convert_to_numpy(x):
    return convert(array_of(x))


def op_cast(x, dtype):
    return convert(x, dtype)


def op_view(x, dtype):
    x = convert(x)
    bits = native("uint8" if dtype == "bool" else dtype or dtype_name(x))
    args.view_shape(x.shape, x.dtype.itemsize, bits.itemsize)
    return x.copy().view(bits).astype(dtype or x.dtype, copy=False)


def op_view_as_complex(x):
    x = floating(x)
    args.complex_parts(x.shape, dtype_name(x))
    return complex_of(x[..., 0], x[..., 1])


def op_dtype(x):
    return dtypes.name(convert(x).dtype, dtypes.FLOAT8)


def op_shape(x):
    return convert(x).shape


def op_is_tensor(x):
    return is_tensor(x)
