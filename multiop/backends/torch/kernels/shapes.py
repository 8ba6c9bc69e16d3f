"""Triangles and diagonals by PyTorch's kernels."""

from __future__ import annotations

import torch

_WITHOUT_KERNEL = (torch.uint16, torch.uint32, torch.uint64)


def op_tril(x, k, *, otherwise):
    return torch.tril(x, k) if are_matrices(x) and type(k) is int else otherwise(x, k)


def op_triu(x, k, *, otherwise):
    return torch.triu(x, k) if are_matrices(x) and type(k) is int else otherwise(x, k)


def are_matrices(x):
    return isinstance(x, torch.Tensor) and x.ndim > 1 and x.dtype not in _WITHOUT_KERNEL


def op_diag(x, k, *, otherwise):
    if isinstance(x, torch.Tensor) and x.ndim == 1 and type(k) is int:
        return torch.diag_embed(x, k)
    return otherwise(x, k)
