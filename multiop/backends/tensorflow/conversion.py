"""Conversion: the one place where host values become TensorFlow tensors."""

from __future__ import annotations

import functools
import math

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._values import args, dtypes, foreign, host

from . import _internals
from ._internals import EagerTensor, anything_records, executing_eagerly

Tensor = tf.Tensor

_TO_NATIVE = {name: getattr(tf, name) for name in dtypes.ALL}
_TO_NAME = {native: name for name, native in _TO_NATIVE.items()}
_FLOAT8 = {getattr(tf.dtypes.experimental, name): name for name in dtypes.FLOAT8}
_TO_NATIVE |= {name: native for native, name in _FLOAT8.items()}
_INEXACT = {_TO_NATIVE[name] for name in dtypes.INEXACT}
_EAGER = {EagerTensor}
_FLOATING = {_TO_NATIVE[name] for name in dtypes.FLOATING}


def is_tensor(x):
    return isinstance(x, (Tensor, tf.Variable))


def set_x64(enable):
    """TensorFlow has 64-bit dtypes in either mode."""


def native(dtype):
    """Return the tf dtype of any spelling of `dtype`."""
    return _TO_NATIVE[dtypes.name(dtype)]


def dtype_name(x):
    try:
        return _TO_NAME[x.dtype]
    except KeyError:
        raise errors.DTypeError(f"a tensor of dtype {x.dtype} is not supported; cast it first") from None


# below, float32, the usual dtype, is tested separately: a set lookup of a dtype takes longer than everything else


def is_float(x):
    """Say whether `x` is a tensor of real floats, which most native functions take as it is."""
    return isinstance(x, Tensor) and ((dtype := x.dtype) is tf.float32 or dtype in _FLOATING)


def are_floats(x1, x2):
    """Say whether `x1` and `x2` are tensors of real floats of one dtype; 16-bit floats must not be broadcast either."""
    return (
        isinstance(x1, Tensor)
        and isinstance(x2, Tensor)
        and (dtype := x1.dtype) is x2.dtype
        and (dtype is tf.float32 or dtype is tf.float64 or (dtype in _FLOATING and x1.shape == x2.shape))
    )


def are_ints(x1, x2):
    """Say whether `x1` and `x2` are tensors of signed integers of one dtype that every kernel has."""
    return (
        isinstance(x1, Tensor)
        and isinstance(x2, Tensor)
        and (dtype := x1.dtype) is x2.dtype
        and (dtype is tf.int32 or dtype is tf.int64)
    )


def is_exact_scalar(x, number):
    """Say whether TensorFlow itself converts `number` to a tensor like `x`: a float, but not 0.0, taken for -0.0."""
    return type(number) is float and number != 0 and is_float(x)


def is_float_along(x, axis):
    """Say whether `x` is a float32 or float64 tensor, and `axis` an int that is valid for it."""
    return (
        type(axis) is int
        and isinstance(x, Tensor)
        and ((dtype := x.dtype) is tf.float32 or dtype is tf.float64)
        and (ndim := x.shape.rank) is not None
        and -ndim <= axis < ndim
    )


def are_alike(xs):
    """Say whether `xs` are tensors of one dtype."""
    if not isinstance(xs[0], Tensor) or ((dtype := xs[0].dtype) is not tf.float32 and dtype not in _TO_NAME):
        return False
    for x in xs[1:]:  # noqa: SIM110  a third of the time of all()
        if not isinstance(x, Tensor) or x.dtype is not dtype:
            return False
    return True


def is_readable(x):
    """Say whether NumPy can look at `x` without a copy: an eager tensor of single or double precision on the CPU."""
    return (
        hasattr(x, "numpy") and ((dtype := x.dtype) is tf.float32 or dtype is tf.float64) and x.device.endswith("CPU:0")
    )


def is_tracked():
    """Say whether a derivative may be taken or a graph is being built; if not, a native value is enough."""
    return not executing_eagerly() or anything_records()


def in_this_graph(x):
    """Return `x` as a tensor of the current graph: in `tf.cond`, a gradient function cannot close over any other."""
    return x if executing_eagerly() else tf.raw_ops.Identity(input=x)


def cached_ints(values):
    """Return a tuple of ints (a shape or axes) in the form that TensorFlow reads fastest: eagerly, a cached tensor."""
    if executing_eagerly() and args.all_natural(values, -1):
        return _cached_tensor(values)
    return values


@functools.lru_cache(maxsize=4096)
def _cached_tensor(values):
    return tf.constant(values, tf.int32 if max(values, default=0) < 2**31 else tf.int64)


def cached_index(index):
    """Return a natural number in the form that TensorFlow reads fastest, as `cached_ints` does."""
    return _cached_index(index) if executing_eagerly() else index


@functools.lru_cache(maxsize=4096)
def _cached_index(index):
    return tf.constant(index, tf.int32 if index < 2**31 else tf.int64)


def convert(x, dtype=None):
    """Return `x`, a tensor, a variable or a host value, as a tensor; `dtype` is a name."""
    if isinstance(x, Tensor):
        return x if dtype is None or x.dtype is _TO_NATIVE[dtype] else cast(x, dtype)
    if type(x) in (int, float) and x and -65504 <= x <= 65504 and dtype in (None, "float32", "float64"):
        # TensorFlow keeps the tensors of small numbers, and may take -0.0 for 0.0
        return tf.constant(x, _TO_NATIVE[dtype or dtypes.strong(dtypes.of_scalar(x))])
    if isinstance(x, tf.Variable):
        return convert(tf.convert_to_tensor(x), dtype)
    if isinstance(x, (list, tuple)) and any(is_tensor(leaf) for leaf in host.flat(x)):
        if dtype is None:
            dtype = dtypes.result_type(*[promotion_dtype(leaf) for leaf in host.flat(x)])
        return tf.stack([convert(entry, dtype) for entry in x])
    if (value := foreign.value_of_variable(x)) is not None:
        return convert(value, dtype)
    return tf.constant(host.as_numpy(x, dtype, "tensorflow"))


def share(array, is_asked, frozen=None):
    """Return an array of the host as a tensor on its memory, if that is asked for or nobody writes to it again."""
    is_dense = array.flags.c_contiguous and array.size and not array.ctypes.data % 64
    is_known = array.dtype.isnative and array.dtype.isbuiltin == 1 and array.dtype.name in _TO_NATIVE
    if not is_known or not is_dense:
        return None
    if frozen is not None:
        return tf.experimental.dlpack.from_dlpack(frozen.__dlpack__())
    is_shared = is_asked and array.flags.writeable
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__()) if is_shared else None


def choose(condition, x1, x2):
    """Do the same as tf.where, in a third of its time."""
    return tf.raw_ops.SelectV2(condition=condition, t=x1, e=x2)


def cast(x, dtype):
    if x.dtype is tf.float32 and dtype not in ("float32", "bool", *dtypes.FLOAT8):
        return tf.raw_ops.Cast(x=x, DstT=_TO_NATIVE[dtype])  # tf.cast takes twice as long
    if x.dtype.is_complex and dtype not in (*dtypes.COMPLEX, "bool"):
        raise errors.DTypeError(
            f"a complex tensor cannot become {dtype}: it would lose its imaginary part; take op_real first"
        )
    if x.dtype in _FLOAT8:
        x = tf.cast(x, tf.float32)
    dtype_name(x)  # raises for a dtype that multiop does not have
    if dtype == "bool":  # tf.cast only looks at the real part of a complex number
        return tf.not_equal(x, tf.zeros([], x.dtype))
    if dtype in dtypes.FLOAT8:  # TensorFlow casts only floats to it
        return tf.stop_gradient(tf.cast(x if x.dtype in _FLOATING else cast(x, "float32"), _TO_NATIVE[dtype]))
    return tf.cast(x, _TO_NATIVE[dtype])


def promotion_dtype(x):
    """Return the name of the dtype of a tensor or host value; that of a Python scalar is weak."""
    return dtypes.of_scalar(x) if host.is_scalar(x) else dtype_name(convert(x))


def floating(x):
    """Return `x` as a tensor of real or complex floats: integers and bool become `floatx`."""
    x = x if isinstance(x, Tensor) else convert(x)
    return x if (dtype := x.dtype) is tf.float32 or dtype in _INEXACT else cast(x, dtypes.to_floating(dtype_name(x)))


def rank(x):
    """Return the number of dimensions of a tensor."""
    if type(x) is EagerTensor:
        return len(_internals.sizes(x))
    if x.shape.rank is None:
        raise errors.ArgumentError(
            "the number of dimensions is known only at run time; say what it is with tf.ensure_shape(x, [None, ...])"
        )
    return x.shape.rank


def known_shape(x):
    """Return the shape of a tensor as a list, with `None` for what is known only at run time."""
    if type(x) is EagerTensor:
        return list(_internals.sizes(x))
    rank(x)
    return x.shape.as_list()


def promote(x1, x2):
    """Return two operands as tensors of the dtype that the promotion table gives them; Python scalars are weak."""
    if are_alike((x1, x2)):
        return x1, x2
    if isinstance(x1, Tensor) and host.is_scalar(x2):
        return promote_with_scalar(x1, x2)
    if isinstance(x2, Tensor) and host.is_scalar(x1):
        return promote_with_scalar(x2, x1)[::-1]
    return promote_all(x1, x2)


def promote_with_scalar(x, scalar):
    """Return tensor `x` and a Python scalar as tensors of one dtype."""
    if type(scalar) is float and is_float(x):
        return x, constant(scalar, x.dtype)
    dtype = dtypes.result_type(dtype_name(x), dtypes.of_scalar(scalar))
    return convert(x, dtype), constant(host.number(scalar, dtype), _TO_NATIVE[dtype])


def constant(number, dtype):
    """Return a Python number as a tensor: tf.constant's cache confuses 0.0 and -0.0, also in complex ones."""
    if number:
        return tf.constant(number, dtype)
    if type(number) is float and executing_eagerly():
        return _cached_zero(math.copysign(1, number), dtype)
    return tf.constant(np.asarray(number), dtype)


@functools.lru_cache
def _cached_zero(sign, dtype):
    return tf.constant(np.asarray(math.copysign(0, sign)), dtype)


def promote_all(*xs):
    """Return any number of operands as tensors of the dtype that the promotion table gives them."""
    if are_alike(xs):
        return xs
    xs = together(*xs)
    dtype = dtypes.result_type(*[promotion_dtype(x) for x in xs])
    return [convert(x, dtype) for x in xs]


def together(*xs):
    """Return `xs` with host arrays as tensors; Python scalars stay what they are."""
    if _EAGER.issuperset(map(type, xs)):
        return xs
    return host.with_digits(xs, [x if host.is_scalar(x) else convert(x) for x in xs], convert, dtype_name)


def on_device_of(x, made):
    """Return `made`: TensorFlow copies tensors between devices by itself."""
    return made


def promote_floating(x1, x2):
    """Return two operands as tensors of one dtype of real or complex floats."""
    x1, x2 = promote(x1, x2)
    return floating(x1), floating(x2)


def align(x1, x2):
    """Return the operands of an op that works entry by entry as `promote` does; 16-bit floats are broadcast already."""
    if host.is_scalar(x1) or host.is_scalar(x2):
        return promote(x1, x2)
    x1, x2 = promote(x1, x2)
    if x1.dtype.size > 2 or x1.shape == x2.shape or not x1.dtype.is_floating or not is_tracked():
        return x1, x2
    return broadcast_together(x1, x2)


def align_floating(x1, x2):
    """Do the same as `align`, with operands of a floating dtype."""
    x1, x2 = align(x1, x2)
    return floating(x1), floating(x2)


def broadcast(x, shape):
    """Return `x` broadcast to `shape`; the gradient of 16-bit floats, a sum, is added up in float32."""
    if x.dtype.size > 2 or not x.dtype.is_floating or not is_tracked():
        return tf.raw_ops.BroadcastTo(input=x, shape=shape)
    wide = tf.raw_ops.BroadcastTo(input=tf.cast(x, tf.float32), shape=shape)
    return tf.raw_ops.Cast(x=wide, DstT=x.dtype)


def broadcast_together(x1, x2, inner=0):
    """Return two tensors with the same shape but for the last `inner` dimensions, which stay as they are."""
    outer1, outer2 = (x.shape[: x.shape.rank - inner] if inner else x.shape for x in (x1, x2))
    if outer1 == outer2 and outer1.is_fully_defined():
        return x1, x2
    shape1, shape2 = tf.shape(x1), tf.shape(x2)
    if not inner:
        shape = tf.broadcast_dynamic_shape(shape1, shape2)
        return broadcast(x1, shape), broadcast(x2, shape)
    shape = tf.broadcast_dynamic_shape(shape1[:-inner], shape2[:-inner])
    return [broadcast(x, tf.concat([shape, full[-inner:]], 0)) for x, full in ((x1, shape1), (x2, shape2))]


def dense(x):
    """Return `x` with a dense gradient: few of TensorFlow's gradients accept a `tf.IndexedSlices`."""
    return tf.raw_ops.Reshape(tensor=x, shape=tf.shape(x)) if is_tracked() else x


def resolve_axis(x, axis):
    """Return tensor `x` and `axis` as a non-negative int; for `None`, `x` flattened and 0."""
    if axis is None:
        return x if x.shape.rank == 1 else tf.reshape(x, [-1]), 0
    return x, args.single_axis(axis, rank(x))


# rules of dtypes: what an op takes, and what it computes in


def are_words(x1, x2):
    """Say whether `x1` and `x2` are tensors of one dtype, float32 or float64."""
    return are_floats(x1, x2) and x1.dtype.size > 2


def in_float32(fn, *xs):
    """Compute float16 and bfloat16 in float32: they would overflow or lose too many digits."""
    dtype = xs[0].dtype
    if dtype.size != 2 or not dtype.is_floating:
        return fn(*xs)
    return tf.cast(fn(*[tf.cast(x, tf.float32) for x in xs]), dtype)


def in_float32_on_cpu(fn, *xs):
    """Compute float16 and bfloat16 in float32 on a CPU, whose kernels round after each addition."""
    return in_float32(fn, *xs) if xs[0].dtype.size == 2 and is_on_cpu(xs[0]) else fn(*xs)


def is_on_cpu(x):
    """Say whether `x` is on a CPU; in a graph, whether there is nothing else."""
    return "CPU" in x.device if x.device else not has_accelerator()


@functools.cache
def has_accelerator():
    return any(device.device_type != "CPU" for device in tf.config.list_logical_devices())


def where_differentiated(fn, x):
    """Return `fn(x)`, a selection of entries, whose gradient is a sum: in float32, where one may be taken."""
    return in_float32(lambda x: fn(dense(x)), x) if x.dtype.size == 2 and is_tracked() else fn(x)


def bool_to_int32(*xs):
    """Return `xs` with bool cast to `int32`, for an op that needs numbers."""
    return [tf.cast(x, tf.int32) if x.dtype is tf.bool else x for x in xs]


def not_bool(*xs):
    if xs[0].dtype is tf.bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def reject_complex(*xs):
    if xs[0].dtype.is_complex:
        raise errors.DTypeError(f"{xs[0].dtype.name} is not accepted: complex numbers have no order")
    return xs


def reject_floats(*xs):
    if xs[0].dtype.is_floating or xs[0].dtype.is_complex:
        raise errors.DTypeError(f"{xs[0].dtype.name} is not accepted: give integers")
    return xs


def promote_operands(*xs):
    """Return tensors of one floating dtype; `None` stays `None`."""
    given = reject_complex(*map(floating, promote_all(*[x for x in xs if x is not None])))
    rest = iter(given)
    return [None if x is None else next(rest) for x in xs]


def truth(x):
    return convert(x, "bool")


def is_float_scalar(x, number):
    """Say whether TensorFlow itself converts `number` to a tensor like `x`; -0.0 is equal to 0.0."""
    return type(number) is float and is_float(x)


def comparable(x1, x2):
    """Return two operands as tensors of one dtype that TensorFlow can compare."""
    x1, x2 = reject_complex(*promote(x1, x2))
    return (tf.cast(x1, tf.uint8), tf.cast(x2, tf.uint8)) if x1.dtype is tf.bool else (x1, x2)


def to_index_integers(x):
    x = convert(x)
    if not x.dtype.is_integer:
        raise errors.DTypeError("indices must be integers")
    signed = tf.cast(x, tf.int64)
    if x.dtype is tf.uint64:  # a number that large is out of range
        signed = tf.where(signed < 0, tf.int64.max, signed)
    return signed


_ACCUMULATED = {tf.bool: tf.int32, tf.int8: tf.int32, tf.int16: tf.int32, tf.uint8: tf.uint32, tf.uint16: tf.uint32}


def to_summands(x, dtype):
    return convert(x, dtype) if dtype else to_accumulation_dtype(convert(x))


def to_accumulation_dtype(x):
    return tf.cast(x, _ACCUMULATED[x.dtype]) if x.dtype in _ACCUMULATED else x


def to_wide_float(*xs):
    """Return the dtype of tensors, which is that of the result, and the tensors in at least float32."""
    xs = reject_complex(*map(floating, xs))
    dtype = xs[0].dtype
    return dtype, *(tf.cast(x, tf.float32) if dtype in (tf.float16, tf.bfloat16) else x for x in xs)


def halves_to_float32(x):
    """Return 16-bit floats, which have no transform, in float32."""
    return tf.cast(x, tf.float32) if x.dtype.size < 4 else x


def without_int8(*xs):
    """Return `int8` as `int32`, in which sums of products are exact, as quantized code needs."""
    return [tf.cast(x, tf.int32) for x in xs] if xs[0].dtype is tf.int8 else xs


def beyond_float16(fn, *xs):
    """Return `fn(*xs)`: in float16, whose range is narrow, a part of it would overflow or vanish before the result."""
    return in_float32(fn, *xs) if xs[0].dtype is tf.float16 else fn(*xs)


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return convert(x, dtype)


def op_convert_to_numpy(x):
    x = convert(x)
    if not hasattr(x, "numpy"):
        raise errors.ArgumentTypeError("a symbolic tensor has no value yet; convert it outside of tf.function")
    return np.asarray(x.numpy())  # a copy


def op_cast(x, dtype):
    return convert(x, dtype)


def op_view(x, dtype):
    x = convert(x)
    if dtype is None or dtype == dtype_name(x):
        return x
    before, after = x.dtype.size, _TO_NATIVE[dtype].size
    shape = args.view_shape(op_shape(x), before, after)
    if x.dtype is tf.bool:
        x = tf.cast(x, tf.uint8)
    if after > before:  # tf.bitcast combines the entries of the last dimension
        x = tf.reshape(x, [*shape, after // before])
    y = tf.stop_gradient(tf.bitcast(x, tf.uint8 if dtype == "bool" else _TO_NATIVE[dtype]))  # it has no gradient
    y = tf.reshape(y, shape)
    return tf.not_equal(y, 0) if dtype == "bool" else y


def op_view_as_complex(x):
    x = floating(x)
    args.complex_parts(op_shape(x), dtype_name(x))
    x = halves_to_float32(x)
    return tf.complex(x[..., 0], x[..., 1])


def op_dtype(x):
    x = convert(x)
    return _FLOAT8.get(x.dtype) or dtype_name(x)


def op_shape(x):
    if type(x) is EagerTensor:
        return _internals.sizes(x)
    x = convert(x)
    rank(x)
    static = x.shape
    if static.is_fully_defined():
        return tuple(static.as_list())
    dynamic = tf.shape(x)  # inside tf.function, a dimension may be known only at run time
    return tuple(dynamic[i] if n is None else n for i, n in enumerate(static.as_list()))


def op_is_tensor(x):
    return is_tensor(x)
