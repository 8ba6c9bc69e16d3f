"""Rows of attention."""

from __future__ import annotations

import numpy as np

from .._case import call, floating, pin, row
from .._samplers import booleans, normal

INF = np.inf


def attention(
    query,
    key,
    value,
    bias=None,
    mask=None,
    scale=None,
    is_causal=False,
    flash_attention=None,
    attn_logits_soft_cap=None,
):
    """Weight the values of each head."""
    sharing = query.shape[2] // key.shape[2]
    key, value = np.repeat(key, sharing, 2), np.repeat(value, sharing, 2)
    logits = np.einsum("btnh,bsnh->bnts", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_logits_soft_cap is not None:
        logits = attn_logits_soft_cap * np.tanh(logits / attn_logits_soft_cap)
    logits = logits if bias is None else logits + bias
    seen = np.ones(logits.shape, bool) if mask is None else np.broadcast_to(mask, logits.shape)
    seen = np.tril(seen) if is_causal else seen
    logits = np.where(seen, logits, -np.inf)
    top = np.max(logits, -1, keepdims=True, initial=-np.inf)
    weights = np.exp(logits - np.where(np.isneginf(top), 0, top))
    weights = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    return np.einsum("bnts,bsnh->btnh", weights, value)


MASK = np.array([[True, False, True], [False, False, False]])

ROWS = [
    row(
        "op_dot_product_attention",
        attention,
        call(normal(1, 2, 2, 2), normal(1, 3, 2, 2), normal(1, 3, 2, 3), mask=MASK),
        call(
            normal(2, 2, 4, 2),
            normal(2, 3, 2, 2),
            normal(2, 3, 2, 2),
            bias=normal(4, 1, 3),
            mask=booleans(2, 1, 2, 3),
            scale=0.3,
            is_causal=True,
            flash_attention=False,
            attn_logits_soft_cap=2.0,
        ),
        call(normal(1, 2, 2, 2), normal(1, 2, 1, 2), normal(1, 2, 1, 2)),
        call(normal(1, 2, 1, 2), normal(1, 0, 1, 2), normal(1, 0, 1, 2), is_causal=True),
        call(normal(0, 2, 1, 2), normal(0, 3, 1, 2), normal(0, 3, 1, 2)),
        returns=floating,
        ulps=64,
        accumulates=True,
        pins=[
            pin(
                [[[[1.0]]]],
                [[[[1.0]], [[2.0]]]],
                [[[[3.0]], [[4.0]]]],
                [-INF, -INF],
                value=[[[[0.0]]]],
                gradient=([[[[0.0]]]], [[[[0.0]], [[0.0]]]], [[[[0.0]], [[0.0]]]], [0.0, 0.0]),
            ),
            pin([[[[1e4]]]], [[[[1.0]], [[-1.0]]]], [[[[3.0]], [[4.0]]]], value=[[[[3.0]]]]),
            pin([[[[200.0, 200.0]]]], [[[[200.0, 200.0]]]], [[[[3.0, 4.0]]]], value=[[[[3.0, 4.0]]]], dtype="float16"),
        ],
    ),
]
