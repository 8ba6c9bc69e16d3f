"""Attention."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop._values import args

from ..conversion import convert, promote_operands

FUSED = "https://docs.jax.dev/en/latest/_autosummary/jax.nn.dot_product_attention.html"


def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap):
    query, key, value, bias = promote_operands(query, key, value, bias)
    mask = None if mask is None else convert(mask)
    args.attention(query.shape, key.shape, value.shape)
    if mask is not None and mask.dtype != bool:
        raise errors.DTypeError("mask must be bool; what is added to the logits is bias")
    if flash:
        raise errors.UnsupportedError(
            "flash_attention: JAX has a fused kernel on NVIDIA GPUs alone, which is not checked: " + FUSED
        )
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    return _attention(query, key, value, bias, mask, scale, is_causal, cap)


@functools.partial(jax.jit, inline=True, static_argnums=(6, 7))
def _attention(query, key, value, bias, mask, scale, is_causal, cap):
    batch, queries, heads, size = query.shape
    keys, groups = key.shape[1], key.shape[2]
    # queries of heads that share a key head are rows of one matrix; scaling first delays overflow
    wide = jnp.promote_types(query.dtype, np.float32)
    first, last = (scale, 1) if query.dtype == wide else (1, scale)
    query = (query * first).reshape(batch, queries, groups, heads // groups, size).transpose(0, 2, 3, 1, 4)
    rows = query.reshape(batch, groups, heads // groups * queries, size)
    logits = jnp.matmul(rows, key.transpose(0, 2, 3, 1), preferred_element_type=wide) * last
    logits = logits.reshape(batch, heads, queries, keys)
    logits = logits if cap is None else cap * jnp.tanh(logits / cap)
    logits = logits if bias is None else logits + bias
    if is_causal:
        causal = jnp.tri(queries, keys, dtype=bool)
        mask = causal if mask is None else mask & causal
    if mask is not None:
        logits = jnp.where(mask, logits, -np.inf)
    if mask is None and bias is None:
        weights = jax.nn.softmax(logits, -1)
    else:
        blind = jnp.all(jnp.isneginf(logits), -1, keepdims=True)  # the softmax would be NaN
        weights = jnp.where(blind, 0, jax.nn.softmax(jnp.where(blind, 0, logits), -1))
    weights = weights.astype(value.dtype).reshape(batch, groups, heads // groups * queries, keys)
    seen = (weights @ value.transpose(0, 2, 1, 3)).reshape(batch, groups, heads // groups, queries, value.shape[-1])
    return seen.transpose(0, 3, 1, 2, 4).reshape(batch, queries, heads, value.shape[-1])
