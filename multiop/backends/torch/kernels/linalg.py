"""Norms, distances and determinants, where a look at the values shows that no formula is needed."""

from __future__ import annotations

import math

import torch

from multiop._values import args

from .._internals import is_tracked
from .._kernels import LONG, is_finite, is_on_host, is_plain, run_recorded, with_formula
from ..conversion import are_floats, is_float
from ..devices import is_known
from ..ops.linalg import determinant, log_determinant


def op_det(x, *, otherwise):
    if not is_large(x):
        return otherwise(x)
    det = determinant(x)
    singular = det.detach() == 0
    # it waits for an accelerator, which costs less than the singular values that it saves
    return det if is_known(singular) and not bool(singular.any()) else otherwise(x)


def op_slogdet(x, *, otherwise):
    if not is_large(x):
        return otherwise(x)
    sign, logabsdet = log_determinant(x)
    singular = logabsdet.detach() == -math.inf
    return (sign, logabsdet) if is_known(singular) and not bool(singular.any()) else otherwise(x)


def is_large(x):
    """Say whether `x` holds square matrices of more than three rows that are differentiated."""
    is_square = isinstance(x, torch.Tensor) and x.ndim > 1 and x.shape[-1] == x.shape[-2] > 3
    return is_square and x.dtype in (*LONG, torch.complex64, torch.complex128) and is_tracked(x)


def op_norm(x, ord, axis, keepdims, *, otherwise):
    is_fit = is_float(x) and x.dtype in LONG and type(keepdims) is bool and is_on_host(x) and is_plain()
    axes = args.euclidean(ord, axis, x.ndim) if is_fit else None
    if not axes:
        return otherwise(x, ord, axis, keepdims)
    norm = torch.linalg.vector_norm(x, 2, axes, keepdim=keepdims)
    if x.requires_grad and torch.is_grad_enabled() and not (norm.numel() and norm.detach().min().item() > 0):
        return otherwise(x, ord, axis, keepdims)  # at 0, its second derivative is NaN
    return norm


def op_cdist(x, y, *, otherwise):
    """Return distances by PyTorch's kernel, which is differentiated once, and never in forward mode."""
    if not (are_floats(x, y) and x.dtype in LONG and x.ndim > 1 < y.ndim and x.shape[-1] == y.shape[-1]):
        return otherwise(x, y)
    if not (is_on_host(x) and is_on_host(y) and is_plain()):
        return otherwise(x, y)
    if x.shape[-1] >= 32 and x.shape[:-2] == y.shape[:-2]:
        lengths = distances_by_product(x, y, otherwise)
        if lengths is not None:
            return lengths
    return run_recorded(lambda x, y: torch.cdist(x, y, 2.0, "donot_use_mm_for_euclid_dist"), otherwise, x, y)


def distances_by_product(x, y, otherwise):
    """Return distances by a matrix product; `None` where more than a few are short, whose digits cancel in it."""
    with torch.no_grad():
        squares = torch.square(x).sum(-1)[..., :, None] + torch.square(y).sum(-1)[..., None, :]
        lengths = torch.sub(squares, x @ y.mT, alpha=2)
        if not is_finite(lengths):
            return None
        *batch, row, column = torch.nonzero(lengths < squares.mul_(0.25), as_tuple=True)
        if row.numel() > lengths.numel() // 64:
            return None
        short, of_x, of_y = (*batch, row, column), (*batch, row), (*batch, column)
        lengths.sqrt_()[short] = torch.linalg.vector_norm(x[of_x] - y[of_y], dim=-1)

    def pull(upstream, x, y, lengths, *short):
        weights = upstream / lengths
        among_short = torch.where(lengths[short] == 0, 0, weights[short])[:, None] * (x[of_x] - y[of_y])
        weights[short] = 0
        to_x = x * weights.sum(-1)[..., None] - weights @ y
        to_y = y * weights.sum(-2)[..., None] - weights.mT @ x
        return to_x.index_put_(of_x, among_short, True), to_y.index_put_(of_y, -among_short, True)

    return with_formula(lengths, pull, otherwise, x, y, residuals=(lengths, *short))
