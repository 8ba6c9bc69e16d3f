"""Conversion: the one place where host values become JAX arrays."""

from __future__ import annotations

import functools
import operator
import re

import jax
import jax.numpy as jnp
import numpy as np

from multiop import config, errors
from multiop._loading import settings
from multiop._rules import signatures
from multiop._values import args, dtypes, foreign, host

from . import _versions
from ._cpu_compiler import mended

Tensor = jax.Array
Tracer = jax.core.Tracer

_TO_NAME = {dtypes.to_numpy(name): name for name in dtypes.ALL}
_FLOAT8 = {dtypes.to_numpy(name): name for name in dtypes.FLOAT8}
_INEXACT = {dtypes.to_numpy(name) for name in dtypes.INEXACT}
# The classes of arrays that hold values, added as they are seen: JAX has no public name for them. CONCRETE also
# contains the class of recorded arrays. For both, reading the dtype from the aval takes a third of the time.
_ARRAYS = set()
CONCRETE = set()
FLOATING = {dtypes.to_numpy(name) for name in dtypes.FLOATING}
_BYTES = {np.dtype(np.int8), np.dtype(np.uint8)}
_SINGLE = np.dtype(np.float32)
_CONSTANT = {float, bool, type(None)}
_PROGRAMS_EACH = 16
_LARGE, _ALIGNMENT = 2**16, 64  # in bytes
_WEAK = {"b": "bool", "i": "int*", "f": "float*", "c": "complex*"}  # by NumPy's kind code of the dtype


def is_tensor(x):
    return isinstance(x, Tensor)


def is_array(x):
    """Say whether `x` is an array that holds values, not a traced or recorded one."""
    if type(x) in _ARRAYS:
        return True
    if not isinstance(x, Tensor) or isinstance(x, Tracer):
        return False
    _ARRAYS.add(type(x))
    CONCRETE.add(type(x))
    return True


def set_x64(enable):
    """JAX's switch is turned where it is imported."""


def x64():
    return jax.config.jax_enable_x64


def native(dtype):
    """Return the NumPy dtype of any spelling of `dtype`; no 64-bit dtype is truncated in silence."""
    return dtypes.to_numpy(available(dtypes.name(dtype, dtypes.FLOAT8)))


def available(dtype):
    """Return the name of the dtype that is made where `dtype` is asked for: without 64 bits a narrow one, or none."""
    if dtype not in dtypes.WIDE or jax.config.jax_enable_x64:
        return dtype
    narrow, how = dtypes.WIDE[dtype], config.how_to_enable_x64()
    if not config.narrowing():
        told = f"dtype {dtype} needs JAX's 64-bit mode, which is off; {how}, or take {narrow} in its place"
        raise errors.DTypeError(f"{told}, as multiop.enable_narrowing() does")
    host.warn_of_precision(f"dtype {dtype} becomes {narrow}: JAX's 64-bit mode is off; {how}")
    return narrow


def dtype_name(x):
    try:
        return _TO_NAME[x.dtype]
    except KeyError:
        raise errors.DTypeError(f"a tensor of dtype {x.dtype} is not supported; cast it first") from None


# an op compiled as one program takes a fraction of the time of its separate calls
def jit_inline(function, **options):
    if isinstance(function, jnp.ufunc):  # a ufunc is hashed in Python, on each call with a tracer
        function = functools.partial(function)
    return jax.jit(mended(function), inline=True, **options)


def with_constants(function):
    """Compile `function(x, *numbers)`; for each of the first sets of numbers a program has them as constants.

    A number as an argument makes an eager call half as long again.
    """
    program, programs = jit_inline(function), {}

    @functools.wraps(function)
    def call(x, *numbers):
        for number in numbers:
            if type(number) not in _CONSTANT:
                return program(x, *numbers)
        own = programs.get(key := repr(numbers))  # 0.0 is not -0.0
        if own is None:
            if not numbers or len(programs) == _PROGRAMS_EACH:
                return program(x, *numbers)
            own = programs[key] = jit_inline(lambda x: function(x, *numbers))
        return own(x)

    return call


def in_one_call(op):
    """Run an op, whose arguments are arrays and plain options, as one program: each step would be a call of its own.

    It must not look at values.
    """
    programs = {}

    @functools.wraps(op)
    def call(*args):
        try:
            key, tensors = signatures.split(args, CONCRETE)
        except TypeError:
            return op(*args)
        key.append(settings.floatx or config.floatx())
        program = programs.get(key := tuple(key))
        if program is None:
            if not tensors or len(programs) >= _PROGRAMS_EACH:
                return op(*args)
            program = programs[key] = jit_inline(signatures.of_tensors(op, args, CONCRETE))
        try:
            return program(*tensors)
        except Exception:  # a wrong argument: step by step, the error describes it
            return op(*args)

    return call


def hashable(option):
    """Return an option by which JAX keeps a program; an array, which has no hash, becomes an int."""
    try:
        hash(option)
    except TypeError:
        return tuple(map(hashable, option)) if isinstance(option, tuple) else operator.index(option)
    return option


def is_unknown_value(error):
    """Say whether an exception means that a value was read that is not known in compiled or mapped code."""
    if isinstance(error, _UNKNOWN) or isinstance(error.__cause__, _UNKNOWN):
        return True
    is_refused = isinstance(error, (TypeError, ValueError, IndexError)) and re.search(r"Tracer[(<]", str(error))
    return bool(is_refused) and not isinstance(error, jax.errors.UnexpectedTracerError)


_UNKNOWN = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def is_float(x):
    """Say whether `x` is a concrete array of real floats, which most native functions take as it is."""
    return type(x) in CONCRETE and x.aval.dtype in FLOATING


def are_floats(x1, x2):
    """Say whether `x1` and `x2` are concrete arrays of real floats of one dtype."""
    return (
        type(x1) in CONCRETE
        and type(x2) in CONCRETE
        and (dtype := x1.aval.dtype) == x2.aval.dtype
        and dtype in FLOATING
    )


def is_exact_scalar(x, number):
    """Say whether `x` is a concrete `float32` array, and `number` a Python number that is finite in it."""
    return (
        type(number) in (float, int)
        and type(x) in CONCRETE
        and (aval := x.aval).dtype == _SINGLE
        and not aval.weak_type
        and -1e38 < number < 1e38
    )


def is_float_along(x, axis):
    """Say whether `x` is a concrete array of real floats, and `axis` an int that is valid for it."""
    return type(axis) is int and is_float(x) and -(ndim := len(x.aval.shape)) <= axis < ndim


def are_alike(xs):
    """Say whether `xs` are tensors of one dtype."""
    dtype = getattr(xs[0], "dtype", None)
    for x in xs:
        if not (type(x) in CONCRETE or isinstance(x, Tensor)) or x.dtype != dtype:
            return False
    return dtype in _TO_NAME


def convert(x, dtype=None):
    """Return `x`, a tensor or a host value, as a tensor; `dtype` is a name."""
    if type(x) in CONCRETE or is_array(x) or isinstance(x, Tensor):  # the last test takes ten times as long
        return x if dtype is None or (_TO_NAME.get(x.dtype) == dtype and not x.weak_type) else cast(x, dtype)
    if isinstance(x, (list, tuple)) and any(isinstance(leaf, Tensor) for leaf in host.flat(x)):
        if dtype is None:
            dtype = dtypes.result_type(*[promotion_dtype(leaf) for leaf in host.flat(x)])
        return jnp.stack([convert(entry, dtype) for entry in x])
    if (value := foreign.value_of_variable(x)) is not None:
        return convert(value, dtype)
    return _of_numpy(host.as_numpy(x, dtype and available(dtype), "jax", wide=jax.config.jax_enable_x64))


def share(array, is_asked, frozen=None):
    """Return an array of the host as a tensor on its memory, if that is asked for or nobody writes to it again."""
    is_known = (
        array.dtype.isbuiltin == 1
        and array.dtype in _TO_NAME
        and (array.dtype.name not in dtypes.WIDE or jax.config.jax_enable_x64)
    )
    is_dense = array.flags.c_contiguous and array.size and not array.ctypes.data % _ALIGNMENT
    if not is_known or not is_dense:
        return None
    if frozen is not None:
        return jnp.from_dlpack(frozen, copy=False)
    return jnp.from_dlpack(array, copy=False) if is_asked and array.flags.writeable else None


def _of_numpy(array):
    """Return an array of NumPy as a tensor: JAX reads it after the call has returned, so it gets a copy."""
    dtype = native(array.dtype)
    if array.nbytes < _LARGE:
        return jax.device_put(array.astype(dtype))  # jnp.array compiles a program for each shape
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    own = np.ndarray(array.shape, dtype, memory, -memory.ctypes.data % _ALIGNMENT)
    own[...] = array
    return jax.device_put(own)  # on a CPU, it keeps memory that is aligned, and copies any other


def cast(x, dtype):
    if x.dtype in _FLOAT8:
        x = _of_float8(jax.lax.stop_gradient(x))
    dtype_name(x)  # raises for a dtype that multiop does not have
    if jnp.issubdtype(x.dtype, np.complexfloating) and dtype not in (*dtypes.COMPLEX, "bool"):
        raise errors.DTypeError(
            f"a complex tensor cannot become {dtype}: it would lose its imaginary part; take op_real first"
        )
    if dtype in dtypes.FLOAT8:
        return _to_float8(x, native(dtype))
    if dtype == "bool":
        return x != 0
    if dtype in ("float16", "bfloat16") and x.dtype.name in _ROUNDED_TWICE[dtype]:
        return _round_once(x, native(dtype))
    return (_of_byte if x.dtype in _BYTES else jax.lax.convert_element_type)(x, native(dtype))


# XLA makes float32 of these first, whose nearest number may be a tie of the narrower dtype
_ROUNDED_TWICE = {"float16": ("float64",), "bfloat16": ("float64", "int32", "uint32", "int64", "uint64")}


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _rounded(x, dtype):
    return jax.lax.convert_element_type(_cut_to_odd(x), dtype)


@_rounded.defjvp
def _tangent_of_rounded(dtype, primals, tangents):
    return _rounded(*primals, dtype), jax.lax.convert_element_type(tangents[0], dtype)


_round_once = jit_inline(_rounded, static_argnums=1)


def _cut_to_odd(x):
    """Return numbers that float32 holds, and that round as those of `x` do: what is cut off leaves an odd digit."""
    if x.dtype.itemsize == 4:
        x = jnp.where((x >= 2**17) | (x <= -(2**17)) if x.dtype == np.int32 else x >= 2**17, _cut_bits(x, 8), x)
        return jax.lax.convert_element_type(x, np.float32)
    if x.dtype != np.float64:  # which holds what is left
        x = jnp.where((x >= 2**53) | (x <= -(2**53)) if x.dtype == np.int64 else x >= 2**53, _cut_bits(x, 16), x)
        x = jax.lax.convert_element_type(x, np.float64)
    return jax.lax.bitcast_convert_type(_cut_bits(jax.lax.bitcast_convert_type(x, np.int64), 29), np.float64)


def _cut_bits(x, n):
    low = x.dtype.type(2**n - 1)
    return (x & ~low) | jnp.where((x & low) != 0, low + x.dtype.type(1), x.dtype.type(0))


_of_byte = jit_inline(jax.lax.convert_element_type, static_argnums=1)  # which has a form of its own


def _to_float8(x, dtype):
    x = jax.lax.stop_gradient(x if x.dtype in FLOATING else cast(x, "float32"))  # JAX makes integers float16 first
    if dtype == dtypes.to_numpy("float8_e4m3fn"):  # it has no infinity, and JAX makes -0.0 of 496
        x = jnp.where(jnp.abs(x) > 464, np.asarray(np.nan, x.dtype), x)
    return jax.lax.convert_element_type(_rounded_to_odd(x), dtype)


def _rounded_to_odd(x):
    """Return a tensor as float16, where what is not exact is odd: then to round that again rounds once.

    JAX goes to float8 through the nearest float32 on a GPU, and up to 0.5 through float16 on a CPU, which may be a tie.
    """
    x = x if x.dtype == np.float64 else jax.lax.convert_element_type(x, np.float32)
    nearest = jax.lax.convert_element_type(x, np.float16)
    wide = jax.lax.convert_element_type(nearest, x.dtype)
    bits = jax.lax.bitcast_convert_type(nearest, np.uint16)
    bits = bits - (jnp.abs(wide) > jnp.abs(x)).astype(np.uint16)  # towards zero
    return jax.lax.bitcast_convert_type(bits | (wide != x).astype(np.uint16), np.float16)


def _of_float8(x):
    """Return a float8 tensor as float32, from its bits: a GPU leaves out a cast to float8 and back, when compiled.

    See https://github.com/openxla/xla/issues/41605.
    """
    bits = jax.lax.bitcast_convert_type(x, np.uint8).astype(np.uint16)
    if x.dtype == dtypes.to_numpy("float8_e5m2"):  # the first byte of a float16
        return jax.lax.bitcast_convert_type(bits << 8, np.float16).astype(np.float32)
    magnitude = bits & 0x7F
    half = jax.lax.bitcast_convert_type((bits & 0x80) << 8 | magnitude << 7, np.float16)  # the exponent is 8 too low
    return jnp.where(magnitude == 0x7F, np.float32(np.nan), half.astype(np.float32) * np.float32(256))


def conjugate(x):
    return jnp.conj(x) if x.dtype.kind == "c" else x  # JAX's gradient is the conjugate of TensorFlow's and PyTorch's


def is_inexact(x):
    return is_inexact_dtype(x.dtype)


@functools.cache
def is_inexact_dtype(dtype):
    return jnp.issubdtype(dtype, np.inexact)


def drop_weak_type(x):
    # an array made from a Python scalar is weakly typed: promotion would not keep its dtype
    return jax.lax.convert_element_type(x, x.dtype) if x.aval.weak_type else x


def promotion_dtype(x):
    """Return the name of the dtype of a tensor or host value; that of a Python scalar is weak, also in `jax.jit`."""
    if host.is_scalar(x):
        return dtypes.of_scalar(x)
    x = convert(x)
    name = dtype_name(x)
    return _WEAK[x.dtype.kind] if x.weak_type else name


def floating(x):
    """Return `x` as a tensor of real or complex floats: integers and bool become `floatx`."""
    if type(x) in CONCRETE and x.aval.dtype in _INEXACT:
        return x
    x = convert(x)
    return x if x.dtype in _INEXACT else cast(x, dtypes.to_floating(dtype_name(x)))


def promote(x1, x2):
    """Return two operands as tensors of the dtype that the promotion table gives them; Python scalars are weak."""
    if are_floats(x1, x2):
        return x1, x2
    if is_exact_scalar(x1, x2):
        return x1, np.array(x2, np.float32)
    if is_exact_scalar(x2, x1):
        return np.array(x1, np.float32), x2
    if are_alike((x1, x2)):
        return x1, x2
    if isinstance(x1, Tensor) and host.is_scalar(x2):
        return promote_with_scalar(x1, x2)
    if isinstance(x2, Tensor) and host.is_scalar(x1):
        return promote_with_scalar(x2, x1)[::-1]
    return promote_all(x1, x2)


def alike(x1, x2):
    """Return two operands as tensors of one dtype; most are already."""
    return (x1, x2) if are_floats(x1, x2) else promote(x1, x2)


def promote_with_scalar(x, scalar):
    """Return tensor `x`, and a Python scalar as a NumPy scalar, which JAX reads in a tenth of the time."""
    dtype = dtypes.result_type(promotion_dtype(x), dtypes.of_scalar(scalar))
    return convert(x, dtype), host.scalar(scalar, dtype)


def promote_all(*xs):
    """Return any number of operands as tensors of the dtype that the promotion table gives them."""
    if are_alike(xs):
        return xs
    xs = together(*xs)
    dtype = dtypes.result_type(*[promotion_dtype(x) for x in xs])
    return [convert(x, dtype) for x in xs]


def together(*xs):
    """Return `xs` with host arrays as tensors; Python scalars stay what they are."""
    if CONCRETE.issuperset(map(type, xs)):
        return xs
    return host.with_digits(xs, [x if host.is_scalar(x) else convert(x) for x in xs], convert, dtype_name)


def on_device_of(x, made):
    """Return `made`: JAX moves uncommitted arrays to where they are needed."""
    return made


def promote_floating(x1, x2):
    """Return two operands as tensors of one dtype of real or complex floats."""
    x1, x2 = promote(x1, x2)
    return (x1, x2) if x1.dtype in _INEXACT else (floating(x1), floating(x2))


def resolve_axis(x, axis):
    """Return tensor `x` and `axis` as a non-negative int; for `None`, `x` flattened and 0."""
    return (x if x.ndim == 1 else x.reshape(-1), 0) if axis is None else (x, args.single_axis(axis, x.ndim))


# rules of dtypes: what an op takes, and what it computes in


def bool_to_int32(*xs):
    """Return `xs` with bool cast to `int32`, for an op that needs numbers."""
    return [x.astype(np.int32) if x.dtype == bool else x for x in xs]


def not_bool(*xs):
    if xs[0].dtype == bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def in_float32(fn, *xs):
    """Compute float16 and bfloat16 in float32: they would overflow or lose too many digits; `None` stays `None`."""
    dtype = xs[0].dtype
    if dtype.itemsize != 2 or not jnp.issubdtype(dtype, np.floating):
        return fn(*xs)
    return fn(*[x if x is None else x.astype(np.float32) for x in xs]).astype(dtype)


def beyond_float16(fn, *xs):
    """Compute float16 in float32: on the way to an ordinary number, it would overflow or vanish."""
    return in_float32(fn, *xs) if xs[0].dtype == np.float16 else fn(*xs)


def reject_complex(*xs):
    if xs[0].dtype.kind == "c":
        raise errors.DTypeError(f"{xs[0].dtype} is not accepted: complex numbers have no order")
    return xs


def comparable(x1, x2):
    """Return two operands as tensors of one dtype that has an order."""
    return (x1, x2) if are_floats(x1, x2) else reject_complex(*promote(x1, x2))


def reject_floats(*xs):
    if xs[0].dtype.kind not in "biu":
        raise errors.DTypeError(f"{xs[0].dtype} is not accepted: give integers")
    return xs


def promote_operands(*xs):
    """Return tensors of one floating dtype; `None` stays `None`."""
    given = [x for x in xs if x is not None]
    given = given if are_alike(given) else promote_all(*given)
    if not is_float(given[0]):
        given = reject_complex(*map(floating, given))
    rest = iter(given)
    return [None if x is None else next(rest) for x in xs]


def to_index_integers(x):
    """Return indices in a dtype of at least 32 bits, which can hold the size of a dimension."""
    x = convert(x)
    if x.dtype.kind not in "iu":
        raise errors.DTypeError("indices must be integers")
    if x.dtype.itemsize < 4:
        return x.astype(np.int32)
    if x.dtype.kind == "i":
        return x
    signed = x.astype(np.dtype(f"int{8 * x.dtype.itemsize}"))
    return jnp.where(signed < 0, jnp.iinfo(signed.dtype).max, signed)  # a number that large is out of range


def accumulation_dtype(x):
    """Return the dtype in which a sum or product is computed: at least 32 bits."""
    if x.dtype.kind in "biu" and x.dtype.itemsize < 4:
        return np.dtype(np.uint32 if x.dtype.kind == "u" else np.int32)
    return x.dtype


def to_wide_float(*xs):
    """Return the dtype of tensors, which is that of the result, and the tensors in at least float32."""
    compute = jnp.promote_types(xs[0].dtype, np.float32)
    return xs[0].dtype, *(x.astype(compute) for x in xs)


def halves_to_float32(x):
    """Return 16-bit floats, which have no transform, in float32."""
    return x.astype(np.float32) if x.dtype.itemsize < 4 else x


def without_int8(*xs):
    """Return `int8` as `int32`, in which sums of products are exact, as quantized code needs."""
    return [x.astype(jnp.int32) for x in xs] if xs[0].dtype == jnp.int8 else xs


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return convert(reject_leaked(x), dtype)


def reject_leaked(x):
    """Return `x`; raise if it is a leaked tracer, which an op that returns it unchanged would not notice."""
    if isinstance(x, Tracer) and type(x) not in CONCRETE and _versions.are_parts_known():
        from ._internals import refuse_leaked

        refuse_leaked(x)
    return x


def op_convert_to_numpy(x):
    return np.array(convert(x))


def op_cast(x, dtype):
    return convert(reject_leaked(x), dtype)


def op_view(x, dtype):
    x = convert(x)
    if dtype is None or dtype == dtype_name(x):
        return x
    args.view_shape(x.shape, x.dtype.itemsize, native(dtype).itemsize)
    x = jax.lax.stop_gradient(x)  # only on JAX would complex numbers viewed as floats have a gradient
    if x.dtype == bool:
        x = x.astype(np.uint8)
    return x.view(np.uint8) != 0 if dtype == "bool" else x.view(native(dtype))


def op_view_as_complex(x):
    x = floating(x)
    args.complex_parts(op_shape(x), dtype_name(x))
    x = halves_to_float32(x)
    return jax.lax.complex(x[..., 0], x[..., 1])


def op_dtype(x):
    x = convert(x)
    return _FLOAT8.get(x.dtype) or dtype_name(x)


def op_shape(x):
    return x.shape if type(x) in CONCRETE else tuple(convert(x).shape)


def op_is_tensor(x):
    return isinstance(x, Tensor)
