"""Tensors made from shapes and numbers."""

from __future__ import annotations

import math

import torch

from multiop import config, errors
from multiop._values import args, dtypes

from ..conversion import HALF, SUMMED, convert, is_float, native, promote, reject_complex


def op_zeros(shape, dtype):
    return torch.zeros(shape, dtype=native(dtype))


def op_ones(shape, dtype):
    return torch.ones(shape, dtype=native(dtype))


def op_full(shape, fill_value, dtype):
    if is_fill(fill_value) and (dtype is None or dtype in dtypes.FLOATING):
        return torch.full(shape, fill_value, dtype=native(dtype or dtypes.strong(dtypes.of_scalar(fill_value))))
    return torch.broadcast_to(convert(fill_value, dtype), shape).clone()


def op_zeros_like(x, dtype):
    x = x if isinstance(x, torch.Tensor) else convert(x)
    return torch.zeros_like(x) if dtype is None else torch.zeros_like(x, dtype=native(dtype))


def op_ones_like(x, dtype):
    x = x if isinstance(x, torch.Tensor) else convert(x)
    return torch.ones_like(x) if dtype is None else torch.ones_like(x, dtype=native(dtype))


def op_full_like(x, fill_value, dtype):
    if dtype is None and is_float(x) and is_fill(fill_value):
        return torch.full_like(x, fill_value)
    x = convert(x)
    fill = convert(fill_value, dtype or dtypes.name(x.dtype), x.device)
    return torch.broadcast_to(fill, x.shape).clone()


def is_fill(number):
    """Say whether `number` is a Python number that every floating dtype holds."""
    return type(number) in (int, float) and -65504 <= number <= 65504


def op_arange(start, stop, step, dtype):
    start, stop, step = (x.item() if hasattr(x, "item") else x for x in (start, stop, step))
    if step == 0:
        raise errors.ArgumentError("step must not be 0")
    exact = torch.float64 if any(isinstance(x, float) for x in (start, stop, step)) else torch.int64
    count = max(0, math.ceil((stop - start) / step))
    numbers = torch.arange(count, dtype=exact)
    return (numbers if (start, step) == (0, 1) else start + step * numbers).type(native(dtype))


def op_eye(n, m, k, dtype):
    if k == 0 and dtype in dtypes.FLOATING:
        return torch.eye(n, m, dtype=native(dtype))
    rows, columns = torch.arange(n), torch.arange(m)
    return (rows[:, None] + max(-n, min(k, m)) == columns).type(native(dtype))  # beyond, any k is as good


def op_copy(x):
    return convert(x).clone()


def op_linspace(start, stop, num, endpoint, dtype, axis):
    name = dtype or config.floatx()
    if num > 1 and endpoint and axis in (0, -1) and is_fill(start) and is_fill(stop) and name in ("float32", "float64"):
        return torch.linspace(start, stop, num, dtype=native(name)), (stop - start) / (num - 1)
    start, stop = promote(start, stop)
    given = dtypes.to_floating(dtypes.name(start.dtype))
    # in float32, large integers would be rounded, and numbers near 0 with them
    wide = torch.float32 if start.dtype in HALF else torch.float64
    start, stop = (x if x.dtype in SUMMED else x.type(wide) for x in (start, stop))
    apart = stop.detach() - start.detach()
    unit = torch.where(torch.isfinite(apart), 1.0, 4.0).type(apart.dtype)  # the distance of large numbers overflows
    delta, parts = stop / unit - start / unit, num - endpoint
    index = torch.arange(num, dtype=delta.real.dtype, device=delta.device).reshape(num, *[1] * delta.ndim)
    parted = delta.new_full((), max(parts, 1))  # by a number, a GPU would multiply with a rounded 1 / parts
    step = delta / parted
    whole = dtype in dtypes.INTEGER
    # a rounded step may miss an integer
    samples = (start / unit + (index * delta / parted if whole else index * step)) * unit
    if endpoint and num > 1:
        samples = torch.where(index == parts, stop, samples)
    samples = convert(torch.floor(*reject_complex(samples)) if whole else samples, dtype or given)
    step = step * unit if parts > 0 else torch.full_like(step, math.nan)
    return torch.movedim(samples, 0, args.single_axis(axis, samples.ndim)), convert(step, given)
