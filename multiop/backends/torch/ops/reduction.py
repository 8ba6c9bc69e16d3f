"""Reductions along axes."""

from __future__ import annotations

import functools
import math

import torch
from torch.compiler import is_dynamo_compiling

from multiop._values import args

from .._internals import is_tracked
from ..conversion import (
    ACCUMULATED,
    HALF,
    SUMMED,
    convert,
    first_along,
    floating,
    in_comparable_dtype,
    in_float32,
    in_wider_dtype,
    is_dtensor,
    is_float,
    is_float_along,
    promote,
    put_together,
    reject_complex,
    resolve_axis,
    to_comparable,
    to_summands,
)
from .elementwise import op_maximum, op_minimum


# sums and products are computed in at least 32 bits
def op_sum(x, axis, keepdims):
    if axis is None and not keepdims and is_float(x):
        return torch.sum(x)
    if is_float_along(x, axis):
        return torch.sum(x, axis, keepdims)
    x = convert(x)
    dims = args.axes(axis, x.ndim)
    dtype = ACCUMULATED.get(x.dtype, x.dtype)  # as it sums, PyTorch casts without a copy
    if not dims:
        return x.type(dtype)
    if dtype in (torch.uint32, torch.uint64):  # PyTorch cannot sum these
        return torch.sum(x.long(), dims, keepdims).type(dtype)
    if are_apart(x, dims):
        return functools.reduce(lambda x, dim: torch.sum(x, dim, keepdims), sorted(dims, reverse=True), x)
    return torch.sum(x, dims, keepdims, dtype=dtype)


def are_apart(x, dims):
    """Say whether one axis after the other takes up to a tenth of the time: others stay between them, and a long last.

    PyTorch then reads memory in small steps. Half precision would be rounded after each axis.
    """
    if max(dims) - min(dims) < len(dims) or x.ndim - 1 in dims or is_dynamo_compiling():
        return False
    return type(x) is torch.Tensor and x.is_cpu and x.dtype in SUMMED and x.shape[-1] >= 8 and x.numel() >= 4096


def op_prod(x, axis, keepdims, dtype):
    x = put_together(x)
    if dtype is None and is_float_along(x, axis) and x.dtype not in HALF and not is_tracked(x):
        return torch.prod(x, axis, keepdims)
    if dtype is axis is None and not keepdims and is_float(x) and x.dtype not in HALF and not is_tracked(x):
        return torch.prod(x)
    x = to_summands(x, dtype)
    dims = sorted(args.axes(axis, x.ndim), reverse=True)
    return in_float32(lambda x: functools.reduce(lambda x, dim: product(x, dim, keepdims), dims, x), x)


def op_mean(x, axis, keepdims):
    if is_float_along(x, axis):
        return torch.mean(x, axis, keepdims)
    x = floating(x)
    dims = args.axes(axis, x.ndim)
    if not dims:
        return x
    if are_apart(x, dims):
        return functools.reduce(lambda x, dim: torch.mean(x, dim, keepdims), sorted(dims, reverse=True), x)
    return torch.mean(x, dims, keepdims)


def op_var(x, axis, keepdims):
    if is_float_along(x, axis):
        return torch.var(x, axis, correction=0, keepdim=keepdims)
    x = floating(x)
    dims = args.axes(axis, x.ndim)
    if not dims:
        return torch.zeros_like(x.real) + (x.real - x.real)
    return torch.var(x, dims, correction=0, keepdim=keepdims)


def op_std(x, axis, keepdims):
    # in half precision, squares would overflow
    return in_float32(lambda x: deviation(op_var(x, axis, keepdims), x, axis, keepdims), floating(x))


def deviation(variance, x, axis, keepdims):
    if not is_tracked(variance):
        return torch.sqrt(variance)
    constant = variance == 0
    if not is_dtensor(x):  # the mean of equal entries may be rounded to another number
        are_equal = decide(torch.all, x == first_along(x, args.axes(axis, x.ndim)), axis, keepdims)
        constant = constant | (are_equal & (variance < math.inf))
    return root(variance, constant)


def root(variance, constant):
    """Return the root, with gradient 0 where entries are constant, and that of the root infinite."""
    return torch.where(constant, 0, torch.sqrt(torch.where(constant, 1, variance)))


def op_max(x, axis, keepdims, initial):
    return extremum(torch.amax, op_maximum, x, axis, keepdims, initial)


def op_min(x, axis, keepdims, initial):
    return extremum(torch.amin, op_minimum, x, axis, keepdims, initial)


def op_argmax(x, axis, keepdims):
    return arg_extremum(torch.argmax, x, axis, keepdims)


def op_argmin(x, axis, keepdims):
    return arg_extremum(torch.argmin, x, axis, keepdims)


def op_all(x, axis, keepdims):
    return decide(torch.all, convert(x, "bool"), axis, keepdims)


def op_any(x, axis, keepdims):
    return decide(torch.any, convert(x, "bool"), axis, keepdims)


def decide(reduce, x, axis, keepdims):
    if axis is None and not keepdims:
        return reduce(x)
    dims = args.axes(axis, x.ndim)
    return reduce(x, dims, keepdims) if dims else x


def op_logsumexp(x, axis, keepdims):
    (x,) = reject_complex(floating(x))
    dims = args.axes(axis, x.ndim)
    if not dims or x.numel() == 0:
        return torch.logsumexp(x, dims, keepdims) if dims else x

    if x.dtype is torch.float16 and math.prod(x.shape[dim] for dim in dims) > 60000:  # the sum would overflow
        return op_logsumexp(x.float(), axis, keepdims).type(x.dtype)
    top = torch.amax(x, dims, keepdim=True)
    infinite = torch.isinf(top)
    shift = torch.where(infinite, 0, top.detach())
    total = shift + torch.log(torch.sum(torch.exp(torch.where(infinite, 0, x - shift)), dims, keepdim=True))
    y = torch.where(infinite, torch.where(top > 0, top, top.detach()), total)
    return y if keepdims else torch.squeeze(y, dims)


def op_cumsum(x, axis, dtype):
    if dtype is None and is_float_along(x, axis) and x.dtype not in HALF:
        return torch.cumsum(x, axis)
    x, axis = resolve_axis(to_summands(x, dtype), axis)
    return in_float32(lambda x: in_wider_dtype(lambda x: torch.cumsum(x, axis, dtype=x.dtype), x), x)


def op_cumprod(x, axis, dtype):
    x, axis = resolve_axis(to_summands(x, dtype), axis)
    return in_float32(lambda x: cumprod(x, axis), x)


def cumprod(x, axis):
    if not (x.is_floating_point() or x.is_complex()) or not is_tracked(x):
        return in_wider_dtype(lambda x: torch.cumprod(x, axis, dtype=x.dtype), x)
    step = 1
    while step < x.shape[axis]:  # torch.cumprod's gradient divides by the entries
        later, earlier = x.narrow(axis, step, x.shape[axis] - step), x.narrow(axis, 0, x.shape[axis] - step)
        x = torch.cat([x.narrow(axis, 0, step), later * earlier], axis)
        step *= 2
    return x


def product(x, dim, keepdim):
    """Multiply in halves: torch.prod's gradient divides by the entries, which fails at 0, infinity and underflow."""
    if not (x.is_floating_point() or x.is_complex()) or x.shape[dim] == 0 or not is_tracked(x):
        return in_wider_dtype(lambda x: torch.prod(x, dim, keepdim, dtype=x.dtype), x)
    while x.shape[dim] > 1:
        half = x.shape[dim] // 2
        pairs = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = torch.cat([pairs, x.narrow(dim, 2 * half, 1)], dim) if x.shape[dim] % 2 else pairs
    return x if keepdim else torch.squeeze(x, dim)


def extremum(reduce, pairwise, x, axis, keepdims, initial):
    x = x if type(x) is torch.Tensor else put_together(x)
    if initial is None and is_float_along(x, axis):
        return reduce(x, axis, keepdims)
    # without dims, the gradient of a DTensor is NaN
    if axis is None and initial is None and not keepdims and is_float(x) and type(x) is torch.Tensor:
        return reduce(x)
    (x,) = reject_complex(convert(x))
    dims = args.axes(axis, x.ndim)
    if initial is not None and any(x.shape[dim] == 0 for dim in dims):
        shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdims or d not in dims]
        return torch.broadcast_to(promote(x, initial)[1], shape)
    if dims:  # amax and amin split ties; max(dim=) does not
        x = in_comparable_dtype(lambda x: reduce(x, dims, keepdims), x)
    return x if initial is None else pairwise(x, initial)


def arg_extremum(reduce, x, axis, keepdims):
    if is_float_along(x, axis):
        return reduce(x, axis, keepdims).int()
    x = convert(x)
    axis = axis if axis is None else args.single_axis(axis, x.ndim)
    if not is_float(x):
        (x,) = reject_complex(x)
        x = to_comparable(x.type(torch.uint8) if x.dtype is torch.bool else x)
    return reduce(x, axis, keepdims).int()
