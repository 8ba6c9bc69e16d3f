"""What training pays for on a device: kernels and bytes of an op and its gradient, ours against PyTorch's own.

On the `meta` device nothing can be computed or looked at, as on a GPU that nobody waits for: what is launched there is
what is launched everywhere. The counts are exact.
"""

from __future__ import annotations

import sys

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import multiop as mo

HEADS, WORDS, GROUPS = 8, 1000, 8
DEARER = {  # what is pinned, and its price: bytes as a multiple of PyTorch's, kernels beyond them
    "sign": (3.5, 3, "torch.sign(NaN) is 0"),
    "maximum_of_number": (2.2, 3, "torch.clamp gives all of a tie's gradient to one operand"),
    "categorical_crossentropy": (1.45, 2, "0 * log(0) is 0 where a class is masked"),
    "batch_normalization_with_moments": (
        1.01,
        8,
        "in 16 bits the moments, which may overflow, are float32: small casts",
    ),
    "sparse_categorical_crossentropy": (1.01, 4, "a class that is out of range makes NaN where no value can be read"),
}


class Count(TorchDispatchMode):
    """Count the kernels launched in this block, and the bytes that these read and write; a view is neither."""

    def __init__(self):
        super().__init__()
        self.kernels, self.bytes, self.names = 0, 0, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not (func.is_view or func in _FREE):
            read = () if str(func).split(".")[1] in _MADE_ANEW else (args, kwargs)
            given = [x for x in torch.utils._pytree.tree_leaves(read) if isinstance(x, torch.Tensor)]
            made = [x for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
            self.kernels += 1
            self.bytes += sum(x.untyped_storage().nbytes() and x.numel() * x.itemsize for x in given + made)
            self.names.append(str(func))
        return result


_FREE = (
    torch.ops.aten.detach.default,
    torch.ops.aten._unsafe_view.default,
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_like.default,
)
_MADE_ANEW = (
    "new_zeros",
    "new_ones",
    "new_full",
    "zeros_like",
    "ones_like",
    "full_like",
)  # of an operand's shape alone


def count(function, xs):
    """Return the count of `function` and its gradient."""
    xs = [x.detach().requires_grad_(x.requires_grad) for x in xs]
    with Count() as counted:
        y = function(*xs)
        y = y[0] if isinstance(y, tuple) else y
        torch.autograd.grad(y, [x for x in xs if x.requires_grad], torch.empty_like(y))
    return counted


def named(module, names, *xs):
    """Return the rows of ops whose names and operands are those of functions of PyTorch."""
    return [(name, getattr(mo, f"op_{name}"), getattr(module, name), xs) for name in names.split()]


def rows(dtype, device="meta", batch=2, t=2048, width=512):
    """Return `(name, multiop's function, PyTorch's, operands)` of what people train with."""

    def given(*shape):
        return torch.rand(shape, dtype=dtype, device=device).requires_grad_()

    def index(*shape):
        return torch.zeros(shape, dtype=torch.int32, device=device)

    x, other, vector, shift = given(batch, t, width), given(batch, t, width), given(width), given(width)
    weight, image, kernel = given(width, width), given(4, 64, t // 4 + 4, 28), given(64, 64, 3, 3)
    channels, more, mean, variance = given(64), given(64), given(64).detach(), given(64).detach()
    heads = [given(batch, t, HEADS, width // HEADS) for _ in range(3)]
    logits, words, targets = given(batch * t, WORDS), given(WORDS, width), given(batch * t, WORDS).detach()
    classes, ids = index(batch * t), index(batch, t)

    def attention(query, key, value, **options):
        heads_first = [t.transpose(1, 2) for t in (query, key, value)]
        return functional.scaled_dot_product_attention(*heads_first, **options).transpose(1, 2)

    return [
        ("gelu_tanh", lambda x: mo.op_gelu(x), lambda x: functional.gelu(x, approximate="tanh"), [x]),
        ("gelu", lambda x: mo.op_gelu(x, approximate=False), functional.gelu, [x]),
        *named(functional, "relu relu6 silu sigmoid tanh softplus elu softsign glu", x),
        ("leaky_relu", mo.op_leaky_relu, lambda x: functional.leaky_relu(x, 0.2), [x]),
        ("hard_silu", mo.op_hard_silu, functional.hardswish, [x]),
        ("hard_sigmoid", mo.op_hard_sigmoid, functional.hardsigmoid, [x]),
        ("softmax", mo.op_softmax, lambda x: torch.softmax(x, -1), [x]),
        ("log_softmax", mo.op_log_softmax, lambda x: torch.log_softmax(x, -1), [x]),
        ("logsumexp", lambda x: mo.op_logsumexp(x, -1), lambda x: torch.logsumexp(x, -1), [x]),
        (
            "layer_normalization",
            lambda x, g, b: mo.op_layer_normalization(x, g, b, epsilon=1e-5),
            lambda x, g, b: functional.layer_norm(x, (width,), g, b, 1e-5),
            [x, vector, shift],
        ),
        (
            "rms_normalization",
            lambda x, g: mo.op_rms_normalization(x, g, epsilon=1e-5),
            lambda x, g: functional.rms_norm(x, (width,), g, 1e-5),
            [x, vector],
        ),
        (
            "group_normalization",
            lambda x, g, b: mo.op_group_normalization(x, GROUPS, g, b, 1, 1e-5),
            lambda x, g, b: functional.group_norm(x, GROUPS, g, b, 1e-5),
            [image, channels, more],
        ),
        (
            "batch_normalization",
            lambda x, g, b: mo.op_batch_normalization(x, mean, variance, 1, b, g, 1e-5),
            lambda x, g, b: functional.batch_norm(x, mean, variance, g, b, False, 0.1, 1e-5),
            [image, channels, more],
        ),
        (
            "batch_normalization_with_moments",
            lambda x, g, b: mo.op_batch_normalization_with_moments(x, 1, b, g, 1e-5),
            lambda x, g, b: functional.batch_norm(x, mean.clone(), variance.clone(), g, b, True, 1.0, 1e-5),
            [image, channels, more],
        ),
        *named(torch, "abs sign square exp log", x),
        *named(torch, "maximum minimum add multiply", x, other),
        ("maximum_of_number", lambda x: mo.op_maximum(x, 0.5), lambda x: torch.clamp(x, min=0.5), [x]),
        ("clip", lambda x: mo.op_clip(x, -1.0, 1.0), lambda x: torch.clamp(x, -1.0, 1.0), [x]),
        ("matmul", mo.op_matmul, torch.matmul, [x, weight]),
        ("mean", lambda x: mo.op_mean(x, -1), lambda x: torch.mean(x, -1), [x]),
        ("sum", lambda x: mo.op_sum(x, -1), lambda x: torch.sum(x, -1), [x]),
        ("var", lambda x: mo.op_var(x, -1), lambda x: torch.var(x, -1, correction=0), [x]),
        ("max", lambda x: mo.op_max(x, -1), lambda x: torch.amax(x, -1), [x]),
        (
            "max_pool",
            lambda x: mo.op_max_pool(x, 2, data_format="channels_first"),
            lambda x: functional.max_pool2d(x, 2),
            [image],
        ),
        (
            "average_pool",
            lambda x: mo.op_average_pool(x, 2, data_format="channels_first"),
            lambda x: functional.avg_pool2d(x, 2),
            [image],
        ),
        (
            "conv",
            lambda x, w, b: mo.op_conv(x, w.permute(2, 3, 1, 0), padding="valid", data_format="channels_first", bias=b),
            functional.conv2d,
            [image, kernel, channels],
        ),
        ("take", lambda e: mo.op_take(e, ids, axis=0), lambda e: functional.embedding(ids, e), [words]),
        (
            "sparse_categorical_crossentropy",
            lambda x: mo.op_sparse_categorical_crossentropy(classes, x, from_logits=True),
            lambda x: functional.cross_entropy(x, classes.long(), reduction="none"),
            [logits],
        ),
        (
            "categorical_crossentropy",
            lambda x: mo.op_categorical_crossentropy(targets, x, from_logits=True),
            lambda x: functional.cross_entropy(x, targets, reduction="none"),
            [logits],
        ),
        (
            "binary_crossentropy",
            lambda x: mo.op_binary_crossentropy(targets, x, from_logits=True),
            lambda x: functional.binary_cross_entropy_with_logits(x, targets, reduction="none"),
            [logits],
        ),
        ("attention", mo.op_dot_product_attention, attention, heads),
        (
            "causal_attention",
            lambda *xs: mo.op_dot_product_attention(*xs, is_causal=True),
            lambda *xs: attention(*xs, is_causal=True),
            heads,
        ),
    ]


def main():
    names = sys.argv[1:]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        print(f"{dtype}: bytes over native, kernels / native")
        for name, ours, native, xs in rows(dtype):
            if not names or name in names:
                mine, theirs = count(ours, xs), count(native, xs)
                late = " <" if mine.bytes > 1.15 * theirs.bytes or mine.kernels > theirs.kernels + 2 else ""
                print(f"  {name:34} {mine.bytes / theirs.bytes:6.2f}  {mine.kernels:3} / {theirs.kernels}{late}")
                if names:
                    print("   ", mine.names, theirs.names)


if __name__ == "__main__":
    main()
