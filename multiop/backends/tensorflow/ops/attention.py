"""Attention."""

from __future__ import annotations

import math

import tensorflow as tf

from multiop import errors
from multiop._values import args

from ..autodiff._programs import in_one_call
from ..conversion import choose, convert, in_float32_on_cpu, known_shape, op_shape, promote_operands

FUSED = "https://github.com/Dao-AILab/flash-attention/issues/35"


@in_one_call
def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap):
    query, key, value, bias = promote_operands(query, key, value, bias)
    mask = None if mask is None else convert(mask)
    args.attention(*map(known_shape, (query, key, value)))
    if mask is not None and mask.dtype is not tf.bool:
        raise errors.DTypeError("mask must be bool; what is added to the logits is bias")
    if flash:
        raise errors.UnsupportedError(f"flash_attention: TensorFlow has no fused kernel: {FUSED}")
    _, queries, _, size = op_shape(query)
    scale = 1 / math.sqrt(size) if scale is None else scale
    if query.shape[2] is None or query.shape[2] != key.shape[2]:  # some heads share a key head
        key, value = (tf.repeat(x, tf.shape(query)[2] // tf.shape(key)[2], axis=2) for x in (key, value))
    wide = tf.float64 if query.dtype is tf.float64 else tf.float32  # logits may overflow where weights do not
    # scaling first delays overflow
    logits = tf.einsum("bqhd,bkhd->bhqk", tf.cast(query, wide) * scale, tf.cast(key, wide))
    logits = logits if cap is None else cap * tf.tanh(logits / cap)
    logits = logits if bias is None else logits + tf.cast(bias, logits.dtype)
    if is_causal:
        causal = tf.expand_dims(tf.range(queries), 1) >= tf.range(op_shape(key)[1])
        mask = causal if mask is None else mask & causal
    if mask is not None:
        logits = choose(mask, logits, tf.constant(-math.inf, logits.dtype))
    if mask is None and bias is None:
        weights = tf.nn.softmax(logits)
    else:
        blind = tf.reduce_all(tf.equal(logits, -math.inf), -1, keepdims=True)  # the softmax would be NaN
        zero = tf.constant(0, logits.dtype)
        weights = choose(blind, zero, tf.nn.softmax(choose(blind, zero, logits)))
    return in_float32_on_cpu(
        lambda weights, value: tf.einsum("bhqk,bkhd->bqhd", weights, value), tf.cast(weights, value.dtype), value
    )
