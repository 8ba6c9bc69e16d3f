"""Attention by PyTorch's fused kernels, whose memory is linear in the length of a sequence."""

from __future__ import annotations

import torch
from torch.nn import functional

from .._internals import VERSION, is_tracing, requires_grad
from .._kernels import run_recorded
from ..conversion import is_compiling
from ..ops.attention import added_to_logits, check_operands

# compiled, the gradient of the fused kernel is an error there: https://github.com/pytorch/pytorch/issues/185539
COMPILES_FLOAT64 = VERSION >= (2, 13)
GROUPS_ARE_FUSED = VERSION >= (2, 13)  # on a CPU; with enable_gqa, others have no fused kernel


def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap, *, otherwise):
    query, key, value, bias, mask, scale = check_operands(query, key, value, bias, mask, scale)
    is_fit = type(scale) is float and scale > 0 and not (bias is not None and requires_grad(bias))
    is_fit = is_fit and (COMPILES_FLOAT64 or query.dtype is not torch.float64 or not (is_compiling() or is_tracing()))
    if flash is not None or cap is not None or not is_fit:
        return otherwise(query, key, value, bias, mask, scale, is_causal, flash, cap)
    return run_recorded(
        lambda *xs: attended_by_kernel(*xs, bias, mask, scale, is_causal),
        lambda *xs: otherwise(*xs, bias, mask, scale, is_causal, None, None),
        query,
        key,
        value,
    )


def attended_by_kernel(query, key, value, bias, mask, scale, is_causal):
    """Attend with PyTorch's fused kernels, which keep no logits in memory."""
    whole = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    mask, is_causal = added_to_logits(bias, mask, is_causal, whole)
    repeats = query.shape[2] // max(key.shape[2], 1)
    options = {"scale": scale}
    if repeats > 1 and GROUPS_ARE_FUSED and query.is_cpu:
        options["enable_gqa"] = True
    elif repeats > 1:
        key, value = (x.repeat_interleave(repeats, 2) for x in (key, value))
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    return functional.scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, **options).transpose(1, 2)
