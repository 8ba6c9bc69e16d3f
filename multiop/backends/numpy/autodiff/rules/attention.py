"""Derivatives of attention."""

from __future__ import annotations

import math

import numpy as np

from ..._record import ops
from ...conversion import convert
from ...ops.normalization import promote_operands
from .formula import by_formula


@by_formula
def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap):
    query, key, value, bias = promote_operands(query, key, value, bias)
    sharing = query.shape[2] // key.shape[2]
    key, value = (ops.repeat(x, [sharing] * x.shape[2], 2) for x in (key, value))
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    logits = ops.einsum("bqhd,bkhd->bhqk", (query * scale, key))
    logits = logits if cap is None else cap * np.tanh(logits / cap)
    logits = logits if bias is None else logits + bias
    mask = np.True_ if mask is None else convert(mask)
    mask = mask & np.tri(query.shape[1], key.shape[1], dtype=bool) if is_causal else mask
    seen = ~ops.isneginf(logits) & mask
    blind = ~np.any(seen, -1, keepdims=True)  # their softmax would be NaN
    weights = ops.softmax(ops.where(blind, 0, ops.where(seen, logits, -np.inf)), -1)
    return ops.einsum("bhqk,bkhd->bqhd", (ops.where(blind, 0, weights), value))
