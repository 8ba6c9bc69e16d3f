"""What training pays for when compiled: bytes that optimised HLO of an op and its gradient moves, ours against JAX's.

XLA's own analysis counts them, on a CPU. The counts are exact.
"""

from __future__ import annotations

import functools
import sys

import jax
import jax.numpy as jnp
from jax import lax, nn

import multiop as mo

HEADS, WORDS, GROUPS = 4, 1000, 4
DTYPES = ("float32", "bfloat16", "float16")


def count(function, xs, n):
    """Return the bytes that `function` and its gradient by the first `n` operands move."""

    def both(upstream, *xs):
        y, pull = jax.vjp(lambda *first: function(*first, *xs[n:]), *xs[:n])
        return y, pull(upstream)

    with mo.use_backend("jax"):
        upstream = jax.eval_shape(function, *xs)
        return jax.jit(both).lower(upstream, *xs).compile().cost_analysis()["bytes accessed"]


def named(module, names, *xs):
    """Return the rows of ops whose names and operands are those of functions of JAX."""
    return [(name, getattr(mo, f"op_{name}"), getattr(module, name), xs, len(xs)) for name in names.split()]


def rows(dtype, batch=2, t=256, width=128):
    """Return `(name, multiop's function, JAX's, operands, how many have a gradient)` of what people train with."""
    given = functools.partial(jax.ShapeDtypeStruct, dtype=dtype)
    index = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.int32)
    x, vector, weight = given((batch, t, width)), given((width,)), given((width, width))
    image, channels, kernel = given((4, t // 4 + 4, 28, 16)), given((16,)), given((3, 3, 16, 16))
    heads = [given((batch, t, HEADS, width // HEADS))] * 3
    logits, classes, ids = given((batch * t, WORDS)), index((batch * t,)), index((batch, t))

    def batch_norm(x, scale, offset, mean, variance):
        return (x - mean) * (lax.rsqrt(variance + 1e-5) * scale) + offset

    def batch_norm_with_moments(x, scale, offset):
        return batch_norm(x, scale, offset, jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2)))

    def layer_norm(x, scale, offset):
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset

    def group_norm(x, scale, offset):
        parts = x.reshape(*x.shape[:-1], GROUPS, -1)
        mean, variance = (moment(parts, (1, 2, 4), keepdims=True) for moment in (jnp.mean, jnp.var))
        return ((parts - mean) * lax.rsqrt(variance + 1e-5)).reshape(x.shape) * scale + offset

    def rms_norm(x, scale):
        return x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-5) * scale

    def max_pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "valid")

    def average_pool(x):
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "valid") / 4

    def conv(x, kernel, bias):
        return lax.conv_general_dilated(x, kernel, (1, 1), "valid", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias

    def sparse_crossentropy(x, classes):
        return -jnp.take_along_axis(nn.log_softmax(x), classes[:, None], -1)[:, 0]

    def binary_crossentropy(x, target):
        return -target * nn.log_sigmoid(x) - (1 - target) * nn.log_sigmoid(-x)

    def attention(query, key, value, is_causal=False):  # jax.nn.dot_product_attention has no float16 on a CPU
        logits = jnp.einsum("btnh,bsnh->bnts", query, key, preferred_element_type=jnp.float32)
        logits = logits / query.shape[-1] ** 0.5
        if is_causal:
            logits = jnp.where(jnp.tri(*logits.shape[-2:], dtype=bool), logits, -jnp.inf)
        return jnp.einsum("bnts,bsnh->btnh", nn.softmax(logits).astype(value.dtype), value)

    return [
        ("gelu_tanh", mo.op_gelu, nn.gelu, [x], 1),
        ("gelu", lambda x: mo.op_gelu(x, approximate=False), lambda x: nn.gelu(x, approximate=False), [x], 1),
        *named(nn, "relu relu6 silu sigmoid tanh softplus elu hard_silu hard_sigmoid glu softmax log_softmax", x),
        ("leaky_relu", mo.op_leaky_relu, lambda x: nn.leaky_relu(x, 0.2), [x], 1),
        ("softsign", mo.op_softsign, nn.soft_sign, [x], 1),
        ("logsumexp", lambda x: mo.op_logsumexp(x, -1), lambda x: nn.logsumexp(x, -1), [x], 1),
        (
            "layer_normalization",
            lambda x, scale, offset: mo.op_layer_normalization(x, scale, offset, epsilon=1e-5),
            layer_norm,
            [x, vector, vector],
            3,
        ),
        (
            "group_normalization",
            lambda x, scale, offset: mo.op_group_normalization(x, GROUPS, scale, offset, epsilon=1e-5),
            group_norm,
            [image, channels, channels],
            3,
        ),
        (
            "rms_normalization",
            lambda x, scale: mo.op_rms_normalization(x, scale, epsilon=1e-5),
            rms_norm,
            [x, vector],
            2,
        ),
        (
            "batch_normalization",
            lambda x, scale, offset, mean, variance: mo.op_batch_normalization(
                x, mean, variance, -1, offset, scale, 1e-5
            ),
            batch_norm,
            [image, *[channels] * 4],
            3,
        ),
        (
            "batch_normalization_with_moments",
            lambda x, scale, offset: mo.op_batch_normalization_with_moments(x, -1, offset, scale, 1e-5)[0],
            batch_norm_with_moments,
            [image, channels, channels],
            3,
        ),
        *named(jnp, "abs sign square exp log", x),
        *named(jnp, "maximum minimum add multiply", x, x),
        ("maximum_of_number", lambda x: mo.op_maximum(x, 0.5), lambda x: jnp.maximum(x, 0.5), [x], 1),
        ("clip", lambda x: mo.op_clip(x, -1.0, 1.0), lambda x: jnp.clip(x, -1.0, 1.0), [x], 1),
        ("matmul", mo.op_matmul, jnp.matmul, [x, weight], 2),
        ("mean", lambda x: mo.op_mean(x, -1), lambda x: jnp.mean(x, -1), [x], 1),
        ("sum", lambda x: mo.op_sum(x, -1), lambda x: jnp.sum(x, -1), [x], 1),
        ("var", lambda x: mo.op_var(x, -1), lambda x: jnp.var(x, -1), [x], 1),
        ("max", lambda x: mo.op_max(x, -1), lambda x: jnp.max(x, -1), [x], 1),
        ("max_pool", lambda x: mo.op_max_pool(x, 2), max_pool, [image], 1),
        ("average_pool", lambda x: mo.op_average_pool(x, 2), average_pool, [image], 1),
        ("conv", lambda x, w, b: mo.op_conv(x, w, padding="valid", bias=b), conv, [image, kernel, channels], 3),
        (
            "take",
            lambda e, ids: mo.op_take(e, ids, axis=0),
            lambda e, ids: jnp.take(e, ids, 0),
            [given((WORDS, width)), ids],
            1,
        ),
        (
            "sparse_categorical_crossentropy",
            lambda x, classes: mo.op_sparse_categorical_crossentropy(classes, x, from_logits=True),
            sparse_crossentropy,
            [logits, classes],
            1,
        ),
        (
            "categorical_crossentropy",
            lambda x, target: mo.op_categorical_crossentropy(target, x, from_logits=True),
            lambda x, target: -jnp.sum(target * nn.log_softmax(x), -1),
            [logits, logits],
            1,
        ),
        (
            "binary_crossentropy",
            lambda x, target: mo.op_binary_crossentropy(target, x, from_logits=True),
            binary_crossentropy,
            [logits, logits],
            1,
        ),
        ("attention", mo.op_dot_product_attention, attention, heads, 3),
        (
            "causal_attention",
            lambda *xs: mo.op_dot_product_attention(*xs, is_causal=True),
            lambda *xs: attention(*xs, is_causal=True),
            heads,
            3,
        ),
    ]


def main():
    print(f"bytes over native{'':17}", *[f"{dtype:>9}" for dtype in DTYPES])
    for same in zip(*map(rows, DTYPES), strict=True):
        name = same[0][0]
        if not sys.argv[1:] or name in sys.argv[1:]:
            shares = [count(ours, xs, n) / count(native, xs, n) for _, ours, native, xs, n in same]
            print(f"  {name:32}", *[f"{share:9.2f}" for share in shares], flush=True)


if __name__ == "__main__":
    main()
