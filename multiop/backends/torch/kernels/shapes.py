"""Triangles, diagonals and mirror images by PyTorch's kernels."""

from __future__ import annotations

import torch

from multiop._values import args

from .._internals import is_tracked
from .._kernels import LONG

_WITHOUT_KERNEL = (torch.uint16, torch.uint32, torch.uint64)


def op_tril(x, k, *, otherwise):
    return torch.tril(x, k) if are_matrices(x) and type(k) is int else otherwise(x, k)


def op_triu(x, k, *, otherwise):
    return torch.triu(x, k) if are_matrices(x) and type(k) is int else otherwise(x, k)


def are_matrices(x):
    return isinstance(x, torch.Tensor) and x.ndim > 1 and x.dtype not in _WITHOUT_KERNEL


def op_diag(x, k, *, otherwise):
    if isinstance(x, torch.Tensor) and 0 < x.ndim < 3 and type(k) is int:
        return torch.diag_embed(x, k) if x.ndim == 1 else torch.diagonal(x, k)
    return otherwise(x, k)


def op_trace(x, offset, axis1, axis2, *, otherwise):
    is_usual = type(offset) is type(axis1) is type(axis2) is int and (offset, axis1, axis2) == (0, 0, 1)
    if is_usual and type(x) is torch.Tensor and x.ndim == 2 and x.dtype in LONG and (x.is_cpu or not is_tracked(x)):
        return torch.trace(x)  # whose gradient would wait for a GPU
    return otherwise(x, offset, axis1, axis2)


def op_ravel(x, *, otherwise):
    return torch.reshape(x, (-1,)) if isinstance(x, torch.Tensor) else otherwise(x)


def op_pad(x, pad_width, mode, constant_values, *, otherwise):
    if mode != "reflect" or not isinstance(x, torch.Tensor) or x.dtype not in LONG or not x.numel():
        return otherwise(x, pad_width, mode, constant_values)
    pairs = args.pairs(pad_width, x.ndim)
    fixed = 0  # how many dimensions before the first that grows; PyTorch takes one or two
    while fixed < x.ndim and not any(pairs[fixed]):
        fixed += 1
    has_gradients = x.is_cpu or not torch.are_deterministic_algorithms_enabled()  # on a GPU the order of sums is open
    is_short = all(max(pair) < size for pair, size in zip(pairs, x.shape, strict=True))
    if not (is_short and has_gradients and 0 < x.ndim - fixed < 3):
        return otherwise(x, pad_width, mode, constant_values)
    widths = [n for pair in reversed(pairs[fixed:]) for n in pair]
    if 0 < fixed < 3:
        return torch.nn.functional.pad(x, widths, "reflect")
    y = torch.nn.functional.pad(x.reshape(1, -1, *x.shape[fixed:]), widths, "reflect")
    return y.reshape(*x.shape[:fixed], *y.shape[2:])
