"""Tensors made from shapes and numbers."""

from __future__ import annotations

import math

import torch

from multiop import _dtypes, _host, errors

from .conversion import convert, native


def op_zeros(shape, dtype):
    return torch.zeros(shape, dtype=native(dtype))


def op_ones(shape, dtype):
    return torch.ones(shape, dtype=native(dtype))


def op_full(shape, fill_value, dtype):
    return torch.broadcast_to(convert(fill_value, dtype), shape).clone()


def op_zeros_like(x, dtype):
    return torch.zeros_like(convert(x), dtype=dtype and native(dtype))


def op_ones_like(x, dtype):
    return torch.ones_like(convert(x), dtype=dtype and native(dtype))


def op_full_like(x, fill_value, dtype):
    x = convert(x)
    fill = convert(fill_value, dtype or _dtypes.name(x.dtype), x.device)
    return torch.broadcast_to(fill, x.shape).clone()


def op_arange(start, stop, step, dtype):
    ends = (start, stop, step)
    dtype = native(
        dtype
        or _dtypes.result_type(*[_dtypes.of_scalar(x) if _host.is_scalar(x) else _dtypes.name(x.dtype) for x in ends])
    )
    start, stop, step = (x.item() if hasattr(x, "item") else x for x in ends)
    if step == 0:
        raise errors.ArgumentError("step must not be 0")
    exact = torch.float64 if any(isinstance(x, float) for x in (start, stop, step)) else torch.int64
    count = max(0, math.ceil((stop - start) / step))
    return (start + step * torch.arange(count, dtype=exact)).to(dtype)


def op_eye(n, m, k, dtype):
    rows, columns = torch.arange(n), torch.arange(m)
    return (rows[:, None] + k == columns).to(native(dtype))


def op_copy(x):
    return convert(x).clone()
