"""Attention."""

from __future__ import annotations

import math

import numpy as np

from multiop import errors
from multiop._values import args

from .._record import ops
from ..conversion import convert, in_float32, reject_complex
from .normalization import promote_operands

ROUTINES = "https://numpy.org/doc/stable/reference/routines.linalg.html"


def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap):
    if flash:
        raise errors.UnsupportedError(f"flash_attention: NumPy has no fused kernel: {ROUTINES}")
    query, key, value, bias = promote_operands(query, key, value, bias)
    args.attention(query.shape, key.shape, value.shape)
    reject_complex(query)
    mask = np.True_ if mask is None else convert(mask)
    if mask.dtype != bool:
        raise errors.DTypeError("mask must be bool; what is added to the logits is bias")
    if is_causal:
        mask = mask & np.tri(query.shape[1], key.shape[1], dtype=bool)
    bias = query.dtype.type(0) if bias is None else bias
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    return in_float32(lambda *xs: attend(*xs, mask, scale, cap), query, key, value, bias)


def attend(query, key, value, bias, mask, scale, cap):
    key, value = (ops.repeat(x, [query.shape[2] // x.shape[2]] * x.shape[2], 2) for x in (key, value))
    logits = ops.einsum("bqhd,bkhd->bhqk", (query * scale, key))
    logits = (logits if cap is None else cap * np.tanh(logits / cap)) + bias
    seen = ~ops.isneginf(logits) & mask
    blind = ~np.any(seen, -1, keepdims=True)  # their softmax would be NaN
    weights = ops.softmax(ops.where(blind, 0, ops.where(seen, logits, -np.inf)), -1)
    return ops.einsum("bhqk,bkhd->bqhd", (ops.where(blind, 0, weights), value))
