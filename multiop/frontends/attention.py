"""Attention."""

from __future__ import annotations

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values import args
from multiop._values.types import ArrayLike, Tensor


@boundary
def op_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """Compute `softmax(query @ key.T * scale + bias) @ value` for each head.

    Args:
        query: Tensor of shape `(batch, n_queries, n_heads, size)`, not complex; integers and bool become `floatx`.
        key: Tensor of shape `(batch, n_keys, n_key_heads, size)`. `n_heads` is a multiple of `n_key_heads`: each head
            of keys serves equally many adjacent heads of queries.
        value: Tensor of shape `(batch, n_keys, n_key_heads, value_size)`.
        bias: Tensor that broadcasts to `(batch, n_heads, n_queries, n_keys)`, added to the logits; -inf hides a key.
        mask: Bool tensor that broadcasts to `(batch, n_heads, n_queries, n_keys)`: whether a query sees a key.
        scale: Number that the logits are multiplied by; by default `1 / sqrt(size)`.
        is_causal: Whether a query sees no key after its own position.
        flash_attention: Whether to use a fused kernel, which keeps no logits in memory. It has a first derivative only,
            in reverse mode only, and none for `bias`. Only PyTorch has one. By default, `None`, it is used where it
            can be; with `True`, what it cannot do raises; with `False`, it is not used.
        attn_logits_soft_cap: Bound above 0 for the magnitude of the logits: before `bias` is added, they become
            `cap * tanh(logits / cap)`.

    Returns:
        Tensor of shape `(batch, n_queries, n_heads, value_size)` and the promoted dtype; 0 for a query that sees no
        key.

    Raises:
        ArgumentError: The shapes do not fit, or `attn_logits_soft_cap` is not above 0.
        ArgumentTypeError: An option is of the wrong kind.
        DTypeError: The operands are complex, or `mask` is not bool.
        UnsupportedError: `flash_attention` is `True`, and there is no such kernel for these operands.

    Gradient:
        0 for a query that sees no key, and for keys that no query sees.

    Example:
        >>> import multiop
        >>> x = multiop.op_ones((1, 2, 1, 4))
        >>> y = multiop.op_dot_product_attention(x, x, x, mask=[[True, True], [False, False]])
        >>> multiop.op_convert_to_numpy(y)[0, :, 0, 0].tolist()
        [1.0, 0.0]
    """
    flash = None if flash_attention is None else args.bool_flag(flash_attention, "flash_attention")
    cap = None if attn_logits_soft_cap is None else args.number(attn_logits_soft_cap, "attn_logits_soft_cap")
    if cap is not None and not cap > 0:
        raise errors.ArgumentError(f"attn_logits_soft_cap must be above 0, got {attn_logits_soft_cap}")
    args.check_given(query=query, key=key, value=value)
    factor = None if scale is None else args.number(scale, "scale")
    return active().op_dot_product_attention(query, key, value, bias, mask, factor, is_causal, flash, cap)
