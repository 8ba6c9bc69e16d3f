"""Attention."""

from __future__ import annotations

import math

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from multiop import errors
from multiop._values import args

from ..conversion import convert, promote_operands, reject_complex, together

FUSED = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html"


def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash, cap):
    query, key, value, bias, mask, scale = check_operands(query, key, value, bias, mask, scale)
    attend = attend_fused if flash else attend_in_products
    return attend(query, key, value, bias, mask, scale, is_causal, cap)


def check_operands(query, key, value, bias, mask, scale):
    if isinstance(mask, torch.Tensor) and not isinstance(query, torch.Tensor):
        query, mask = together(query, mask)
    query, key, value, bias = promote_operands(query, key, value, bias)
    mask = None if mask is None else convert(mask, device=query.device)
    args.attention(query.shape, key.shape, value.shape)
    if mask is not None and mask.dtype is not torch.bool:
        raise errors.DTypeError("mask must be bool; what is added to the logits is bias")
    reject_complex(query)
    return query, key, value, bias, mask, 1 / math.sqrt(query.shape[3]) if scale is None else scale


def attend_in_products(query, key, value, bias, mask, scale, is_causal, cap):
    """Attend in two products and a softmax, which have derivatives of every order, in both modes."""
    batch, queries, heads, size = query.shape
    keys, groups = key.shape[1], key.shape[2]
    # queries of heads that share a key head are rows of one matrix; scaling first delays overflow
    wide = torch.promote_types(query.dtype, torch.float32)  # logits may overflow where weights do not
    query = (query.type(wide) * scale).reshape(batch, queries, groups, heads // groups, size).permute(0, 2, 3, 1, 4)
    logits = query.reshape(batch, groups, heads // groups * queries, size) @ key.type(wide).permute(0, 2, 3, 1)
    logits = logits.reshape(batch, heads, queries, keys)
    logits = logits if cap is None else cap * torch.tanh(logits / cap)
    logits = logits if bias is None else logits + bias
    if is_causal:
        causal = torch.ones((queries, keys), dtype=torch.bool, device=logits.device).tril()
        mask = causal if mask is None else mask & causal
    if mask is not None:
        logits = torch.where(mask, logits, -math.inf)
    if mask is None and bias is None:
        weights = torch.softmax(logits, -1)
    else:
        blind = torch.isneginf(logits).all(-1, keepdim=True)  # the softmax would be NaN
        weights = torch.where(blind, 0, torch.softmax(torch.where(blind, 0, logits), -1))
    weights = weights.type(value.dtype).reshape(batch, groups, heads // groups * queries, keys)
    seen = (weights @ value.permute(0, 2, 1, 3)).reshape(batch, groups, heads // groups, queries, value.shape[-1])
    return seen.permute(0, 3, 1, 2, 4).reshape(batch, queries, heads, value.shape[-1])


def added_to_logits(bias, mask, is_causal, whole):
    """Return a bias and masks as the one mask that PyTorch takes, and whether the causal one is left to the kernel.

    The mask keeps its dimensions of size 1: PyTorch writes it down as numbers, in the size that it is given in.
    """
    if is_causal and not (mask is None and bias is None):
        causal = torch.ones(whole[2:], dtype=torch.bool, device=(bias if mask is None else mask).device).tril()
        mask, is_causal = causal if mask is None else mask & causal, False
    if bias is not None:
        mask = bias if mask is None else torch.where(mask, bias, -math.inf)
    return None if mask is None else mask[(None,) * (4 - mask.ndim)], is_causal


def attend_fused(query, key, value, bias, mask, scale, is_causal, cap):
    """Attend with a fused kernel, which only has a first derivative, in reverse mode; PyTorch raises for others."""
    if cap is not None:
        raise errors.UnsupportedError(f"flash_attention: fused kernels have no attn_logits_soft_cap: {FUSED}")
    whole = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    mask, is_causal = added_to_logits(bias, mask, is_causal, whole)
    operands = [x.transpose(1, 2) for x in (query, key, value)]
    options = {"attn_mask": mask, "is_causal": is_causal, "scale": scale, "enable_gqa": query.shape[2] != key.shape[2]}
    try:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
            return functional.scaled_dot_product_attention(*operands, **options).transpose(1, 2)
    except RuntimeError as error:
        if "No available kernel" not in str(error):
            raise
        raise errors.UnsupportedError(
            f"flash_attention: no fused kernel takes these operands (empty ones, other sizes of value than of query, a "
            f"bias that is differentiated): {FUSED}"
        ) from None
