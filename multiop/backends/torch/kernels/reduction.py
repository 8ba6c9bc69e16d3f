"""Reductions in a fraction of the time, or of the memory, that PyTorch's own take."""

from __future__ import annotations

import math

import torch

from multiop._values import args

from .._internals import is_tracked
from .._kernels import FEW, LONG, is_readable, keeping, run_fused, with_formula
from ..conversion import SUMMED, are_floats, first_along, is_float, is_float_along
from ..ops import reduction

MANY = 16384  # from here on, separate steps are faster than the kernel of the variance along some dimensions
WHOLE = 2**20  # and from here on, than its gradient along all of them


def op_mean(x, axis, keepdims, *, otherwise):
    if not (isinstance(x, torch.Tensor) and x.dtype in SUMMED):
        return otherwise(x, axis, keepdims)
    if not (x.requires_grad and x.numel() >= FEW):
        if type(axis) is int and -(ndim := x.ndim) <= axis < ndim:
            return torch.mean(x, axis, keepdims)
        return torch.mean(x) if axis is None and not keepdims else otherwise(x, axis, keepdims)
    dims = args.axes(axis, x.ndim)
    y = reduction.op_sum(x, dims, keepdims)  # its gradient is a view; that of torch.mean is as large as x
    return y / (x.numel() // y.numel()) if dims else x


def op_trapezoid(y, x, dx, axis, *, otherwise):
    if not (x is None and type(dx) in (int, float) and are_values_along(y, axis) and y.shape[axis] > 1):
        return otherwise(y, x, dx, axis)
    ends = torch.add(y.select(axis, 0) * 0.5, y.select(axis, -1), alpha=0.5)
    inner = y.narrow(axis, 1, y.shape[axis] - 2)
    if abs(dx) < 1:  # the sum may overflow before it is scaled
        return torch.sum(inner * dx, axis).add_(ends.mul_(dx))
    return torch.sum(inner, axis).add_(ends).mul_(dx)


def op_count_nonzero(x, axis, *, otherwise):
    if isinstance(x, torch.Tensor) and x.dtype in _COUNTED and (axis is None or type(axis) is int):
        return torch.count_nonzero(x, axis).int()
    return otherwise(x, axis)


_COUNTED = {*LONG, torch.bool, torch.int32, torch.int64}


def op_allclose(x1, x2, rtol, atol, equal_nan, *, otherwise):
    if are_floats(x1, x2) and x1.dtype in LONG and type(rtol) is type(atol) is float and rtol >= 0 <= atol:
        return torch.isclose(x1, x2, rtol, atol, equal_nan).all()
    return otherwise(x1, x2, rtol, atol, equal_nan)


def op_nansum(x, axis, keepdims, *, otherwise):
    return torch.nansum(x, axis, keepdims) if are_values_along(x, axis) else otherwise(x, axis, keepdims)


def op_nanmean(x, axis, keepdims, *, otherwise):
    return torch.nanmean(x, axis, keepdims) if are_values_along(x, axis) else otherwise(x, axis, keepdims)


def are_values_along(x, axis):
    """Say whether `x` is a tensor of floats which nothing differentiates, and `axis` an int that is valid for it."""
    return is_float_along(x, axis) and x.dtype in LONG and not is_tracked(x)


def op_var(x, axis, keepdims, *, otherwise):
    if not (isinstance(x, torch.Tensor) and x.dtype in LONG):
        return otherwise(x, axis, keepdims)
    if x.numel() >= MANY << x.requires_grad and (y := variance_by_steps(x, axis, keepdims, otherwise)) is not None:
        return y
    return torch.var(x, correction=0) if axis is None and not keepdims and x.ndim else otherwise(x, axis, keepdims)


def op_std(x, axis, keepdims, *, otherwise):
    if isinstance(x, torch.Tensor) and x.dtype in LONG:
        if not is_tracked(x):
            return torch.sqrt(op_var(x, axis, keepdims, otherwise=reduction.op_var))
        if x.numel() >= 2 * MANY and (y := variance_by_steps(x, axis, keepdims, reduction.op_var)) is not None:
            return reduction.root(y, y == 0)
    return otherwise(x, axis, keepdims)


def variance_by_steps(x, dims, keepdims, otherwise):
    """Return the variance of `x` in a tenth of the time of `torch.var`; `None` where it does not apply.

    Subtracting the first entry makes the mean of equal entries exact, and their variance 0.
    """
    dims = args.axes(dims, x.ndim)
    is_fit = x.requires_grad and x.numel() >= WHOLE if len(dims) == x.ndim else dims
    if not (is_fit and is_readable(x)):
        return None
    with torch.no_grad():
        first = first_along(x, dims)
        rest = x - first
        shift = rest.mean(dims, keepdim=True)
        y = rest.sub_(shift).square_().mean(dims, keepdim=True)
        if not math.isfinite(y.sum().item()):
            return None
        mean, n = first + shift, x.numel() // y.numel()
    y = with_formula(
        y,
        lambda upstream, x, mean: [(x - mean).mul_(upstream * (2 / n))],
        lambda x: otherwise(x, dims, True),
        x,
        residuals=(mean,),
    )
    return y if keepdims else y.squeeze(dims)


def op_quantile(x, q, axis, method, keepdims, *, otherwise):
    if not (type(q) is float and 0 <= q <= 1 and method == "linear" and are_values_along(x, axis) and is_readable(x)):
        return otherwise(x, q, axis, method, keepdims)
    low, high = torch.aminmax(x)
    if not -(most := torch.finfo(x.dtype).max / 4) < low.item() <= high.item() < most:  # NaN, or a distance overflows
        return otherwise(x, q, axis, method, keepdims)
    rows, place = torch.sort(x, dim=axis, stable=True).values, q * (x.shape[axis] - 1)
    y = rows.narrow(axis, rank := math.floor(place), 1)
    if rank != place:
        y = y + (rows.narrow(axis, rank + 1, 1) - y) * (place - rank)
    return y if keepdims else y.squeeze(axis)


def op_logsumexp(x, axis, keepdims, *, otherwise):
    if not is_float(x) or not x.numel() or not (dims := args.axes(axis, x.ndim)):
        return otherwise(x, axis, keepdims)
    if x.dtype is torch.float16 and math.prod(x.shape[dim] for dim in dims) > 60000:  # the sum would overflow
        return otherwise(x, axis, keepdims)

    def pull(upstream, x, y):
        # its own is NaN where all entries are -inf, and loses digits where they are large
        for dim in () if keepdims else sorted(dims):
            upstream, y = upstream.unsqueeze(dim), y.unsqueeze(dim)
        if len(dims) == 1:
            return [torch.softmax(x, dims[0]).mul_(upstream).masked_fill_(torch.isneginf(y), 0)]
        return [torch.sub(x, y.masked_fill(torch.isneginf(y), 0)).exp_().mul_(upstream)]

    kernel = keeping(lambda x: torch.logsumexp(x, dims, keepdims))
    return run_fused(kernel, pull, lambda x: otherwise(x, dims, keepdims), x)
