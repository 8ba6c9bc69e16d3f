"""Conversion: the one place where host values become PyTorch tensors."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch.compiler import is_dynamo_compiling

from multiop import config, errors
from multiop._values import args, dtypes, foreign, host

from ._internals import (
    all_levels,
    are_transforms_active,
    dispatch_depth,
    is_autocast_on,
    is_batched,
    is_traced,
    is_tracing,
    is_tracked,
    outside_transforms,
)

Tensor = torch.Tensor

TO_NATIVE = {name: getattr(torch, name) for name in (*dtypes.ALL, *dtypes.FLOAT8)}
_TO_NAME = {TO_NATIVE[name]: name for name in dtypes.ALL}
_FLOAT8 = {TO_NATIVE[name]: name for name in dtypes.FLOAT8}
_INEXACT = {TO_NATIVE[name] for name in dtypes.INEXACT}
FLOATING = {TO_NATIVE[name] for name in dtypes.FLOATING}
HALF = (torch.float16, torch.bfloat16)
LONG = (torch.float32, torch.float64)
INDEX = (torch.int32, torch.int64)
_COMPLEX = (torch.complex64, torch.complex128)
SUMMED = {*LONG, *_COMPLEX}  # as they are
_BESIDE = dict(zip((*_COMPLEX, *LONG), (*LONG, *_COMPLEX), strict=True))  # a complex dtype, and that of its parts
_PLAIN = (Tensor, torch.nn.Parameter)
_AUTOCAST = {*HALF, torch.float32}
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
_BYTES = (torch.int8, torch.uint8)
_AS_THEY_ARE = set(map(np.dtype, ("float32", "int32", "bool")))  # arrays that need neither a cast nor a check
_NUMBERS = {int, float}
# what PyTorch rounds once, as NumPy
_READ_AS = {"int32": {int}, "uint32": {int}, "float32": {int, float}, "float64": {int, float}}
_LOWEST = torch.iinfo(torch.int64).min

if not hasattr(torch.UntypedStorage, "dtype"):
    torch.UntypedStorage.dtype = torch.uint8  # PyTorch reads it, and lacks it, to unpickle a tensor of uint16 to uint64


def is_tensor(x):
    return isinstance(x, Tensor)


def set_x64(enable):
    """PyTorch has 64-bit dtypes in either mode."""


def native(dtype):
    """Return the torch dtype of any spelling of `dtype`."""
    if isinstance(dtype, torch.dtype) and dtype in _TO_NAME:
        return dtype
    return TO_NATIVE[dtype if type(dtype) is str and dtype in dtypes.ALL else dtypes.name(dtype)]


def dtype_name(x):
    try:
        return _TO_NAME[x.dtype]
    except KeyError:
        raise errors.DTypeError(f"a tensor of dtype {x.dtype} is not supported; cast it first") from None


def is_compiling():
    """Say whether this thread is compiling or exporting.

    PyTorch's own `is_compiling` is true in every thread while one of them compiles.
    """
    return is_dynamo_compiling() or (dispatch_depth() > 0 and torch.compiler.is_compiling())


def is_float(x):
    """Say whether `x` is a tensor of real floats, which most native functions take as it is."""
    return isinstance(x, Tensor) and x.dtype in FLOATING


def are_floats(x1, x2):
    """Say whether `x1` and `x2` are tensors of real floats of one dtype."""
    return isinstance(x1, Tensor) and isinstance(x2, Tensor) and (dtype := x1.dtype) is x2.dtype and dtype in FLOATING


def is_inexact(x):
    return x.is_floating_point() or x.is_complex()


def are_inexact(x1, x2):
    """Say whether `x1` and `x2` are tensors of real or complex floats of one dtype."""
    return isinstance(x1, Tensor) and isinstance(x2, Tensor) and (dtype := x1.dtype) is x2.dtype and dtype in _INEXACT


def directly(native, dtypes=_INEXACT, numbers=(), converts=False):
    """Return a decorator of an op that is `native` of tensors of one of `dtypes`, without another call.

    Where `numbers` are types, the second operand may be an exact scalar of one of them, see `is_exact_scalar`; where
    `native` itself converts, also a tensor of the dtype of a complex one's parts.
    """
    beside = _BESIDE if converts else {}

    def decorate(op):
        def call(x):  # the type first: it takes half the time of `isinstance`
            return native(x) if (type(x) is Tensor or isinstance(x, Tensor)) and x.dtype in dtypes else op(x)

        def call_on_two(x1, x2):
            if (type(x1) is Tensor or isinstance(x1, Tensor)) and (dtype := x1.dtype) in dtypes:
                if type(x2) is Tensor or isinstance(x2, Tensor):
                    if x2.dtype is dtype or x2.dtype is beside.get(dtype):
                        return native(x1, x2)
                elif type(x2) in numbers and dtype in LONG and -(2**53) <= x2 <= 2**53:
                    return native(x1, x2)
            return op(x1, x2)

        return functools.wraps(op)(call if op.__code__.co_argcount == 1 else call_on_two)

    return decorate


def are_autocast(*xs):
    """Say whether torch.autocast, which is on, chooses the dtype of a product of `xs`."""
    for x in xs:
        if not isinstance(x, Tensor) or x.dtype not in _AUTOCAST:
            return False
    return is_autocast_on(xs[0])


def is_exact_scalar(x, number):
    """Say whether `x` and a Python number add or multiply exactly as `x` and a tensor of it: rounded once, first."""
    return (
        type(number) in (float, int)
        and isinstance(x, Tensor)
        and x.dtype in (torch.float32, torch.float64)
        and -(2**53) <= number <= 2**53
    )


def is_float_along(x, axis):
    """Say whether `x` is a tensor of real floats, and `axis` an int that is valid for it."""
    return type(axis) is int and isinstance(x, Tensor) and x.dtype in FLOATING and -(ndim := x.ndim) <= axis < ndim


_OPTIONS = {int, str, bool, type(None), torch.Size}


def resolve(plan, *options):
    """Return what `plan`, a function with a cache, makes of sizes and options, which are the same from call to call."""
    if is_dynamo_compiling() or not (_OPTIONS.issuperset(map(type, options)) or all(map(is_option, options))):
        return plan.__wrapped__(*options)
    try:
        return plan(*options)
    except TypeError:  # sizes that are symbols are no key
        return plan.__wrapped__(*options)


def is_option(x):
    return type(x) in _OPTIONS or (type(x) is tuple and {int}.issuperset(map(type, x)))


def are_plain_floats(*xs):
    """Say whether `xs` are tensors of one dtype of floats, and of PyTorch's own classes."""
    dtype = getattr(xs[0], "dtype", None)
    if dtype not in FLOATING:
        return False
    for x in xs:  # noqa: SIM110  a third of the time of all()
        if type(x) not in _PLAIN or x.dtype is not dtype:
            return False
    return True


def are_alike(xs):
    """Say whether `xs` are tensors of one dtype."""
    dtype = getattr(xs[0], "dtype", None)
    for x in xs:
        if not isinstance(x, Tensor) or x.dtype is not dtype:
            return False
    return dtype in _TO_NAME


def convert(x, dtype=None, device=None):
    """Return `x`, a tensor or a host value, as a tensor; `dtype` is a name."""
    if isinstance(x, Tensor):
        return x if dtype is None or x.dtype is TO_NATIVE[dtype] else cast(x, dtype)
    if host.is_scalar(x):
        return scalar(x, dtype or dtypes.of_lone_scalar(x), device)
    if isinstance(x, (list, tuple)):
        leaves = x if _NUMBERS.issuperset(map(type, x)) else list(host.flat(x))
        if leaves is not x and any(isinstance(leaf, Tensor) for leaf in leaves):
            if dtype is None:
                dtype = dtypes.result_type(*[promotion_dtype(leaf) for leaf in leaves])
            device = next(leaf.device for leaf in leaves if isinstance(leaf, Tensor))
            return torch.stack([convert(entry, dtype, device) for entry in x])
        if not is_compiling():
            return _of_list(x, leaves, dtype, device)
    if is_compiling():
        return _convert_while_traced(x, dtype, device)
    if type(x) is np.ndarray and dtype is device is None and x.dtype in _AS_THEY_ARE and x.flags.c_contiguous:
        try:
            return torch.tensor(x)
        except ValueError:  # of a single record, any strides are contiguous to NumPy
            x = x.copy()
    value = foreign.value_of_variable(x)
    return _of_host(x, dtype, device) if value is None else convert(value, dtype, device)


def _of_list(x, leaves, dtype, device):
    """Return nested lists as a tensor; PyTorch reads a short one of floats, or of ints, in a third of NumPy's time."""
    kinds = set(map(type, leaves))
    wanted = dtype or dtypes.strong("float*" if float in kinds else "int*")
    is_whole = wanted == "int32" or (wanted == "uint32" and kinds == {int} and min(leaves) >= 0)  # it takes negatives
    if len(leaves) <= 64 and kinds and kinds <= _READ_AS.get(wanted, set()) and (is_whole or float in kinds):
        try:
            tensor = torch.tensor(x, dtype=TO_NATIVE[wanted], device=device and "cpu")
            return tensor if device is None else move_to(tensor, device)
        except (ValueError, TypeError, RuntimeError, OverflowError):  # unequal lengths, an int that does not fit
            pass
    return _of_host(x, dtype, device)


def _of_host(x, dtype, device):
    array = host.as_numpy(x, dtype, "torch")
    name = host.name_of(array)
    if name == "bfloat16":  # PyTorch cannot read it from NumPy
        tensor = torch.tensor(array.astype("float32"), dtype=torch.bfloat16, device=device and "cpu")
    elif name in dtypes.FLOAT8:
        tensor = torch.tensor(array.view("uint8"), device=device and "cpu").view(TO_NATIVE[name])
    else:
        plain = np.asarray(array, order="C")
        if any(stride % array.itemsize for stride in plain.strides):  # of a single record, of which NumPy takes any
            plain = plain.copy()
        tensor = torch.tensor(plain, device=device and "cpu")
    return tensor if device is None else move_to(tensor, device)


def share(array, is_asked, frozen=None):
    """Return an array of the host as a tensor on the same memory; `None` where PyTorch could not read or keep it."""
    is_readable = array.dtype.isnative and array.dtype.isbuiltin == 1 and array.dtype.name in TO_NATIVE
    if not is_readable or not array.flags.writeable or not array.flags.aligned or min(array.strides, default=0) < 0:
        return None
    return torch.from_numpy(array)


def move_to(tensor, device):
    """Move `tensor` to `device` without waiting for pending work on the device."""
    return tensor if tensor.device == device else tensor.to(device, non_blocking=True)


def _convert_while_traced(x, dtype, device):
    """Return a host value as a tensor under torch.compile, which cannot read the values of NumPy arrays."""
    if isinstance(x, (list, tuple)):
        leaves = list(host.flat(x))
        if not all(host.is_scalar(leaf) for leaf in leaves):
            return torch.stack([convert(entry, dtype, device) for entry in x])
        if dtype is None:
            dtype = dtypes.result_type(*[dtypes.of_scalar(leaf) for leaf in leaves])
            if dtype == "int32":
                dtype = dtypes.of_lone_scalar(max([leaf if leaf >= 0 else ~leaf for leaf in leaves]))
        if dtype in dtypes.INTEGER:
            leaves = [host.int_within(leaf, dtype) for leaf in leaves]  # raises if one does not fit
        if dtype in dtypes.FLOAT8:
            return cast(torch.tensor(x, dtype=torch.float64, device=device), dtype)
        return torch.tensor(x, dtype=TO_NATIVE[dtype], device=device)
    if not isinstance(x, (np.ndarray, np.generic)):
        return _of_host(x, dtype, device)
    tensor = torch.as_tensor(x, device=device)
    found = dtype_name(tensor)
    if dtype is None and found in dtypes.WIDE and not config.x64():
        if found in dtypes.INTEGER:
            raise errors.ArgumentError(
                f"torch.compile cannot check that an {found} NumPy array fits in {dtypes.WIDE[found]}; give it as "
                f"{dtypes.WIDE[found]}, or turn the 64-bit mode on with multiop.enable_x64()"
            )
        dtype = dtypes.WIDE[found]
    return tensor if dtype in (None, found) else cast(tensor, dtype)


def scalar(x, dtype, device=None):
    """Return a Python scalar as a tensor of `dtype`, which must be able to hold it."""
    x = host.number(x, dtype)
    if isinstance(x, float) and (abs(x) > 65504 or dtype in dtypes.FLOAT8):  # too large: infinite, not an error
        return cast(torch.scalar_tensor(x, dtype=torch.float64, device=device), dtype)
    return torch.scalar_tensor(x, dtype=TO_NATIVE[dtype], device=device)


def cast(x, dtype):
    if dtype not in dtypes.INEXACT and type(x) is not Tensor:
        x = put_together(x)
    if x.dtype in FLOATING and dtype not in dtypes.FLOAT8:
        return x.type(TO_NATIVE[dtype])  # `type`, `long`, `float` and so on take half the time of `to`
    if x.is_complex() and dtype not in (*dtypes.COMPLEX, "bool"):
        raise errors.DTypeError(
            f"a complex tensor cannot become {dtype}: it would lose its imaginary part; take op_real first"
        )
    if x.dtype in _FLOAT8:
        x = x.detach().float()
    dtype_name(x)  # raises for a dtype that multiop does not have
    return _to_float8(x, TO_NATIVE[dtype]) if dtype in dtypes.FLOAT8 else x.type(TO_NATIVE[dtype])


def _to_float8(x, dtype):
    x = x.detach()
    x = _rounded_to_odd(x) if x.dtype is torch.float64 else x.float()
    if dtype is torch.float8_e4m3fn:  # it has no infinity, and PyTorch makes 448 of all that is larger
        x = torch.where(x.abs() > 464, torch.nan, x)
    return x.type(dtype)


def _rounded_to_odd(x):
    """Return a `float64` tensor in `float32`, where each inexact entry is odd, so that rounding it again is right."""
    y = x.float()
    y = torch.where(y.abs() > x.abs(), torch.nextafter(y, torch.zeros_like(y)), y)
    return (y.view(torch.int32) | (y != x)).view(torch.float32)


def promotion_dtype(x):
    """Return the name of the dtype of a tensor or host value; that of a Python scalar is weak."""
    return dtypes.of_scalar(x) if host.is_scalar(x) else dtype_name(convert(x))


def floating(x):
    """Return `x` as a tensor of real or complex floats: integers and bool become `floatx`."""
    x = x if isinstance(x, Tensor) else convert(x)
    return x if x.dtype in _INEXACT else cast(x, dtypes.to_floating(dtype_name(x)))


def promote(x1, x2):
    """Return two operands as tensors of the dtype that the promotion table gives them; Python scalars are weak."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if (dtype := x1.dtype) is x2.dtype and dtype in _TO_NAME:
            return x1, x2
        dtype = dtypes.result_type(dtype_name(x1), dtype_name(x2))
        return convert(x1, dtype), convert(x2, dtype)
    if isinstance(x1, Tensor) and host.is_scalar(x2):
        return promote_with_scalar(x1, x2)
    if isinstance(x2, Tensor) and host.is_scalar(x1):
        return promote_with_scalar(x2, x1)[::-1]
    return promote_all(x1, x2)


def promote_with_scalar(x, number):
    """Return tensor `x` and a Python scalar as tensors of one dtype."""
    if type(number) in (float, int) and (dtype := x.dtype) in FLOATING and -65504 <= number <= 65504:  # fits in all
        return x, torch.scalar_tensor(number, dtype=dtype, device=x.device)
    dtype = dtypes.result_type(dtype_name(x), dtypes.of_scalar(number))
    return convert(x, dtype), scalar(number, dtype, x.device)


def first_among(xs):
    """Return the first tensor among `xs`, or `None`."""
    tensors = [x for x in xs if isinstance(x, Tensor)]  # Dynamo knew no default of `next` before PyTorch 2.9
    return tensors[0] if tensors else None


def device_among(xs):
    """Return the device of the first tensor among `xs`, or `None`."""
    first = first_among(xs)
    return None if first is None else first.device


def promote_all(*xs):
    """Return any number of operands as tensors of the dtype that the promotion table gives them."""
    if are_alike(xs):
        return xs
    xs = together(*xs)
    device = device_among(xs)
    dtype = dtypes.result_type(*[promotion_dtype(x) for x in xs])
    return [convert(x, dtype, device) for x in xs]


def together(*xs):
    """Return `xs` with host arrays as tensors, on the device of the first tensor; Python scalars stay what they are."""
    for x in xs:
        if not isinstance(x, Tensor):
            break
    else:
        return list(xs)
    first = first_among(xs)
    tensors = [x if isinstance(x, Tensor) or host.is_scalar(x) else on_device_of(first, x) for x in xs]
    return host.with_digits(xs, tensors, lambda x, dtype: on_device_of(first, convert(x, dtype)), dtype_name)


def on_device_of(x, made):
    """Return `made`, a host array or an intermediate tensor of an op, on the device of the op's operand `x`.

    If `x` is a DTensor, `made` is replicated over its mesh; if `x` is a host value, `made` stays where it is.
    """
    if not isinstance(x, Tensor):
        return convert(made)
    if type(x) is type(made) is Tensor and x.device == made.device:
        return made
    made = move_to(convert(made, device=x.device), x.device)
    if type(x) is Tensor or not is_dtensor(x) or is_dtensor(made):
        return made
    whole = [torch.distributed.tensor.Replicate()] * x.device_mesh.ndim
    return type(x).from_local(made, x.device_mesh, whole, run_check=False)


def is_no_part(placement):
    return not placement.is_partial()


def put_together(x, keeps=is_no_part):
    """Return `x`, or a DTensor without the placements that `keeps` is false of: each device has the whole instead.

    This is for what PyTorch computes of the part on each device, and should not.
    """
    if type(x) is Tensor or not is_dtensor(x) or all(map(keeps, x.placements)):
        return x
    whole = torch.distributed.tensor.Replicate()
    return x.redistribute(placements=[p if keeps(p) else whole for p in x.placements])


def is_dtensor(x):
    """Say whether `x` is a `DTensor`, whose class takes seconds to import."""
    return type(x).__name__ == "DTensor" and hasattr(x, "device_mesh")


def promote_floating(x1, x2):
    """Return two operands as tensors of one dtype of real or complex floats."""
    x1, x2 = promote(x1, x2)
    return floating(x1), floating(x2)


def in_wider_dtype(fn, *xs):
    """Call `fn` on tensors of one dtype, in a wider dtype where PyTorch has no kernel; `fn` must hold modulo 2**64."""
    wider = _WIDER.get(xs[0].dtype)
    if wider is None:
        return fn(*xs)
    result = fn(*[x.type(wider) for x in xs])
    return result if result.dtype is torch.bool else result.type(xs[0].dtype)


def in_comparable_dtype(fn, *xs):
    """Call `fn`, which depends only on the order of values, on tensors in a dtype that PyTorch can compare."""
    if (dtype := xs[0].dtype) in FLOATING:
        return fn(*xs)
    xs = [to_comparable(x) for x in xs]
    result = fn(*xs)
    if dtype is xs[0].dtype or result.dtype is torch.bool:
        return result
    return (result ^ _LOWEST).view(dtype) if dtype is torch.uint64 else result.type(dtype)


def to_comparable(x):
    """Return `x`, or integers in the same order if PyTorch cannot compare the dtype of `x`."""
    if x.dtype in _BYTES and (is_compiling() or is_tracing()):
        return x.int()  # for Inductor: https://github.com/pytorch/pytorch/issues/191499
    if x.dtype not in _WIDER:
        return x
    return x.view(torch.int64) ^ _LOWEST if x.dtype is torch.uint64 else x.type(_WIDER[x.dtype])


def first_along(x, dims):
    """Return the first entry along some dimensions, which stay."""
    return x[tuple(slice(0, 1 if dim in dims else None) for dim in range(x.ndim))]


def resolve_axis(x, axis):
    """Return tensor `x` and `axis` as a non-negative int; for `None`, `x` flattened and 0."""
    return (x.reshape(-1), 0) if axis is None else (x, args.single_axis(axis, x.ndim))


def choose(condition, x1, x2):
    """Return `torch.where` of operands of one dtype, including unsigned integers, for which Inductor has no code."""
    if not condition.is_cpu:  # PyTorch copies a number from the CPU with a wait
        x1, x2 = (x if x.ndim or not x.is_cpu else move_to(x, condition.device) for x in (x1, x2))
    return in_wider_dtype(lambda x1, x2: torch.where(condition, x1, x2), x1, x2)


# rules of dtypes: what an op takes, and what it computes in


def in_float32(fn, *xs):
    """Compute float16 and bfloat16 in float32: they would overflow or lose too many digits."""
    dtype = xs[0].dtype
    if dtype in HALF:
        return fn(*[x.float() for x in xs]).type(dtype)
    return fn(*xs)


def where_differentiated(fn, x):
    """Return `fn(x)`, a selection of entries, whose gradient is a sum: in float32, where one may be taken."""
    return in_float32(fn, x) if x.dtype in HALF and is_tracked(x) else fn(x)


def bool_to_int32(*xs):
    """Return `xs` with bool cast to `int32`, for an op that needs numbers."""
    return [x.int() if x.dtype is torch.bool else x for x in xs]


def not_bool(*xs):
    if xs[0].dtype is torch.bool:
        raise errors.DTypeError("bool is not accepted; use a logical op, or cast to an integer first")
    return xs


def reject_complex(*xs):
    if xs[0].dtype in _COMPLEX:
        raise errors.DTypeError(f"{dtype_name(xs[0])} is not accepted: complex numbers have no order")
    return xs


def reject_uint64(x):
    if x.dtype is torch.uint64:
        raise errors.UnsupportedError(
            "PyTorch cannot divide uint64: https://github.com/pytorch/pytorch/issues/58734; cast to int64 or to a float"
        )


def reject_floats(*xs):
    if xs[0].is_floating_point() or xs[0].is_complex():
        raise errors.DTypeError(f"{dtype_name(xs[0])} is not accepted: give integers")
    return xs


def promote_operands(*xs):
    """Return tensors of one floating dtype; `None` stays `None`, and under torch.autocast, `float32` beside 16 bits."""
    given = [x for x in xs if x is not None]
    if not are_alike(given):
        if are_autocast(*given) and {x.dtype for x in given[1:]} == {torch.float32}:
            return xs
        given = promote_all(*given)
    if not is_float(given[0]):
        given = reject_complex(*map(floating, given))
    rest = iter(given)
    return [None if x is None else next(rest) for x in xs]


def truths(x1, x2):
    if not (isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor)):
        x1, x2 = together(x1, x2)
        first = first_among((x1, x2))
        x1, x2 = truth_beside(first, x1), truth_beside(first, x2)
    return truth(x1), truth(x2)


def truth_beside(first, x):
    """Return a number as a bool where a tensor lies, since to copy it there would wait; what is no number is `x`."""
    return x if first is None or not host.is_scalar(x) else torch.full((), bool(x), device=first.device)


def truth(x):
    x = x if isinstance(x, torch.Tensor) else convert(x)
    return x if x.dtype is torch.bool else x.bool()


ACCUMULATED = {
    torch.bool: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.uint8: torch.uint32,
    torch.uint16: torch.uint32,
}


def to_summands(x, dtype):
    return convert(x, dtype) if dtype else to_accumulation_dtype(convert(x))


def to_accumulation_dtype(x):
    """Return `x` in the dtype in which a sum or product is computed: at least 32 bits."""
    return x.type(ACCUMULATED[x.dtype]) if x.dtype in ACCUMULATED else x


def to_wide_float(*xs):
    """Return the dtype of the result, wide under torch.autocast, and the tensors in at least float32."""
    xs = reject_complex(*map(floating, xs))
    compute = torch.promote_types(xs[0].dtype, torch.float32)
    return compute if are_autocast(*xs) else xs[0].dtype, *(x.type(compute) for x in xs)


def halves_to_float32(x):
    """Return 16-bit floats, which have no transform, in float32."""
    return x.float() if x.element_size() < 4 else x


def without_int8(*xs):
    """Return `int8` as `int32`, in which sums of products are exact, as quantized code needs."""
    return [x.int() for x in xs] if xs[0].dtype is torch.int8 else xs


def to_index_integers(x, device=None):
    if isinstance(x, Tensor) and x.dtype in INDEX and (device is None or x.device == device):  # the usual case
        return x.long()
    x = convert(x, device=device)
    if device is not None and x.is_cpu:  # like PyTorch, which accepts indices on the CPU
        x = move_to(x, device)
    if x.dtype is torch.bool or x.is_floating_point() or x.is_complex():
        raise errors.DTypeError("indices must be integers")
    signed = x.long()
    if x.dtype is torch.uint64:  # a number that large is out of range
        signed = torch.where(signed < 0, torch.iinfo(torch.int64).max, signed)
    return signed


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return convert(x, dtype)


def op_convert_to_numpy(x):
    x = convert(x)
    if is_compiling() or not are_transforms_active() or is_batched(x):
        return _as_numpy(x)
    with outside_transforms():  # a level of functorch has no memory of its own
        return _as_numpy(all_levels(x)[-1])


def _as_numpy(x):
    if is_compiling():
        return x.detach().cpu().resolve_conj().resolve_neg().clone().numpy()
    if is_tracing() and is_traced(x):  # PyTorch's own trace keeps an array as a constant, and refuses a number
        x.any().item()
    if x.dtype is torch.bfloat16:  # NumPy has no bfloat16 of its own; ml_dtypes does
        return x.detach().contiguous().view(torch.int16).numpy(force=True).view(dtypes.to_numpy("bfloat16")).copy()
    if x.dtype in _FLOAT8:
        return (
            x.detach().contiguous().view(torch.uint8).numpy(force=True).view(dtypes.to_numpy(_FLOAT8[x.dtype])).copy()
        )
    return x.numpy(force=True).copy()  # it shares memory with the tensor


def op_cast(x, dtype):
    return convert(x, dtype)


def op_view(x, dtype):
    x = convert(x)
    if dtype is None or dtype == dtype_name(x):
        return x
    args.view_shape(x.shape, x.element_size(), TO_NATIVE[dtype].itemsize)
    x = put_together(x.detach()).resolve_conj().resolve_neg().contiguous()
    return x.view(torch.uint8) != 0 if dtype == "bool" else x.view(TO_NATIVE[dtype])


def op_view_as_complex(x):
    x = floating(x)
    args.complex_parts(op_shape(x), dtype_name(x))
    x = halves_to_float32(x)
    return torch.complex(x[..., 0], x[..., 1])


def op_dtype(x):
    x = convert(x)
    return _FLOAT8.get(x.dtype) or dtype_name(x)


def op_shape(x):
    return tuple((x if isinstance(x, Tensor) else convert(x)).shape)


def op_is_tensor(x):
    return isinstance(x, Tensor)
