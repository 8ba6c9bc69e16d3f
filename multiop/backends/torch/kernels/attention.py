"""Attention by PyTorch's fused kernels, whose memory is linear in the length of a sequence."""

from __future__ import annotations

import math

import torch
from torch.nn import functional

from .._internals import VERSION, is_tracing, requires_grad
from .._kernels import run_native, run_recorded
from ..conversion import are_alike, is_compiling
from ..ops.attention import added_to_logits, check_operands

# compiled, the gradient of the fused kernel is an error there: https://github.com/pytorch/pytorch/issues/185539
COMPILES_FLOAT64 = VERSION >= (2, 13)
GROUPS_ARE_FUSED = VERSION >= (2, 13)  # on a CPU; with enable_gqa, others have no fused kernel


_SAVED = ("_saved_query", "_saved_key", "_saved_value")


def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap, *, otherwise):
    if not (are_heads(query, key, value) and mask is bias is None):
        query, key, value, bias, mask, scale = check_operands(query, key, value, bias, mask, scale)
    elif scale is None:
        scale = 1 / math.sqrt(query.shape[3])
    is_fit = type(scale) is float and scale > 0 and not (bias is not None and requires_grad(bias))
    is_fit = is_fit and (COMPILES_FLOAT64 or query.dtype is not torch.float64 or not (is_compiling() or is_tracing()))
    if flash is not None or cap is not None or not is_fit:
        return otherwise(query, key, value, bias, mask, scale, is_causal, flash, cap)
    repeats, options = query.shape[2] // max(key.shape[2], 1), {"scale": scale}
    if repeats > 1 and GROUPS_ARE_FUSED and query.is_cpu:
        options["enable_gqa"] = True
    elif repeats > 1:
        key, value = (x.repeat_interleave(repeats, 2) for x in (key, value))
    query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
    added, is_left = None, is_causal
    if not (mask is None and bias is None):
        added, is_left = added_to_logits(bias, mask, is_causal, (*query.shape[:3], key.shape[2]))

    def kernel(query, key, value):
        return functional.scaled_dot_product_attention(query, key, value, added, 0.0, is_left, **options)

    def meaning(*heads_first):
        operands = [x.transpose(1, 2) for x in heads_first]
        return otherwise(*operands, bias, mask, scale, is_causal, None, None).transpose(1, 2)

    y = None
    # a GPU's kernel is given heads of other sizes padded, and a part of its result is taken
    if query.is_cpu or query.shape[3] % 8 == value.shape[3] % 8 == 0:
        y = run_native(kernel, "ScaledDotProduct", _SAVED, meaning, query, key, value, has_batches=False)
    y = run_recorded(kernel, meaning, query, key, value) if y is None else y
    return y.transpose(1, 2)


def are_heads(query, key, value):
    """Say whether the operands of attention are tensors of one dtype of floats whose shapes fit."""
    if not (are_alike((query, key, value)) and query.is_floating_point() and query.ndim == key.ndim == value.ndim == 4):
        return False
    (batch, _, heads, size), (*of_key, width), (*of_value, _) = query.shape, key.shape, value.shape
    return of_key == of_value and of_key[0] == batch and width == size > 0 < of_key[2] and heads % of_key[2] == 0
