"""Small blocks of PyTorch, right ports of them, and mistakes: what is wrong, where, and what the cause has to say."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from multiop import ops
from multiop.porting import tap

PERMUTED = (0, 3, 1, 2)


class Image(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.act = nn.GELU()
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(16, 16)
        self.soft = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.pool(self.act(self.bn(self.conv(x))))
        return self.soft(self.fc(self.flat(x)))


def convolve(x, kernel, bias=None, strides=1, pads=((0, 0), (0, 0)), value=0.0, padding="valid", **options):
    """Convolve images with channels first with PyTorch's kernel (out, in, height, width)."""
    x = ops.transpose(x, (0, 2, 3, 1))
    if any(map(any, pads)):
        x = ops.pad(x, ((0, 0), *pads, (0, 0)), constant_values=value)
    y = ops.conv(x, ops.transpose(kernel, (2, 3, 1, 0)), strides, padding, data_format="channels_last", **options)
    y = ops.transpose(y, PERMUTED)
    return y if bias is None else y + ops.reshape(bias, (1, -1, 1, 1))


def normalise(x, mean, var, weight, bias, eps=1e-5):
    shape = (1, -1, 1, 1)
    mean, var, weight, bias = (ops.reshape(y, shape) for y in (mean, var, weight, bias))
    return (x - mean) / ops.sqrt(var + eps) * weight + bias


def pool(x, value=-1e30, pads=(1, 1)):
    x = ops.pad(ops.transpose(x, (0, 2, 3, 1)), ((0, 0), pads, pads, (0, 0)), constant_values=value)
    return ops.transpose(ops.max_pool(x, 3, 2, data_format="channels_last"), PERMUTED)


ONE = ((1, 1), (1, 1))


def image(p, x, *, conv=None, bn=None, act=None, pooled=None, flat=None, fc=None, soft=None):
    """Port of `Image`; each part may be replaced by a wrong one."""
    c, b, f = p["conv"], p["bn"], p["fc"]
    x = tap("conv", (conv or (lambda x, c: convolve(x, c["weight"], c["bias"], 2, ONE)))(x, c))
    right = lambda x, b: normalise(x, b["running_mean"], b["running_var"], b["weight"], b["bias"])
    x = tap("bn", (bn or right)(x, b))
    x = tap("act", (act or (lambda x: ops.gelu(x, approximate=False)))(x))
    x = tap("pool", (pooled or pool)(x))
    x = tap("flat", (flat or (lambda x: ops.reshape(x, (x.shape[0], -1))))(x))
    x = tap("fc", (fc or (lambda x, f: x @ ops.transpose(f["weight"]) + f["bias"]))(x, f))
    return tap("soft", (soft or (lambda x: ops.softmax(x, axis=1)))(x))


class Attention(nn.Module):
    """A block of a transformer, with a mask that hides the last key."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 8)
        self.norm = nn.LayerNorm(8)
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up = nn.Linear(8, 8)
        self.act = nn.LeakyReLU(0.01)
        self.block = Residual()

    def forward(self, ids):
        x = self.norm(self.emb(ids))
        mask = torch.zeros(3, 3, dtype=torch.bool)
        mask[:, 2] = True
        x = self.attn(x, x, x, need_weights=False, attn_mask=mask)[0]
        return self.block(self.act(self.up(x)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        return x + torch.tanh(self.inner(x))


def heads(x, interleaved=False):
    if interleaved:
        return ops.transpose(ops.reshape(x, (*x.shape[:2], 4, 2)), (0, 3, 1, 2))
    return ops.transpose(ops.reshape(x, (*x.shape[:2], 2, 4)), (0, 2, 1, 3))


def attend(x, a, scale=0.5, interleaved=False):
    kernels = ops.split(a["in_proj_weight"], 3)
    biases = ops.split(a["in_proj_bias"], 3)
    q, k, v = (heads(x @ ops.transpose(kernels[n]) + biases[n], interleaved) for n in range(3))
    scores = q @ ops.transpose(k, (0, 1, 3, 2)) * scale
    y = ops.softmax(scores + ops.convert_to_tensor((0.0, 0.0, -1e30), dtype=x.dtype), axis=-1) @ v
    y = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), x.shape)
    return y @ ops.transpose(a["out_proj"]["weight"]) + a["out_proj"]["bias"]


def layer_norm(x, n, eps=1e-5, ddof=0, axis=-1, centred=True):
    mean = ops.mean(x, axis, keepdims=True) if centred else 0.0
    count = x.shape[axis] / (x.shape[axis] - ddof)
    var = ops.mean((x - mean) ** 2, axis, keepdims=True) * count
    return (x - mean) / ops.sqrt(var + eps) * n["weight"] + n["bias"]


def attention(p, ids, *, emb=None, norm=None, attn=None, up=None, act=None, block=None):
    x = tap("emb", (emb or (lambda i, t: ops.take(t, i, axis=0)))(ids, p["emb"]["weight"]))
    x = tap("norm", (norm or layer_norm)(x, p["norm"]))
    x = tap("attn", (attn or attend)(x, p["attn"]))
    x = tap("up", (up or (lambda x, w: x @ ops.transpose(w["weight"]) + w["bias"]))(x, p["up"]))
    x = tap("act", (act or (lambda x: ops.leaky_relu(x, 0.01)))(x))
    w = p["block"]["inner"]
    inner = tap("block.inner", x @ ops.transpose(w["weight"]) + w["bias"])
    return tap("block", (block or (lambda x, y: x + ops.tanh(y)))(x, inner))


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 3, batch_first=True)
        self.gru = nn.GRU(3, 3, batch_first=True)

    def forward(self, x):
        return self.gru(self.lstm(x)[0])[0]


def lstm(x, w, order=(0, 1, 2, 3)):
    h = c = ops.zeros((x.shape[0], 3), dtype=x.dtype)
    steps = []
    for t in range(x.shape[1]):
        z = x[:, t] @ ops.transpose(w["weight_ih_l0"]) + w["bias_ih_l0"] + h @ ops.transpose(w["weight_hh_l0"])
        gates = ops.split(z + w["bias_hh_l0"], 4, axis=1)
        i, f, g, o = (gates[n] for n in order)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        steps.append(h)
    return ops.stack(steps, axis=1)


def gru(x, w, swap=False):
    h = ops.zeros((x.shape[0], 3), dtype=x.dtype)
    steps = []
    for t in range(x.shape[1]):
        a = ops.split(x[:, t] @ ops.transpose(w["weight_ih_l0"]) + w["bias_ih_l0"], 3, axis=1)
        u, b = ops.split(w["weight_hh_l0"], 3), ops.split(w["bias_hh_l0"], 3)
        reset = ops.sigmoid(a[0] + h @ ops.transpose(u[0]) + b[0])
        update = ops.sigmoid(a[1] + h @ ops.transpose(u[1]) + b[1])
        new = ops.tanh(a[2] + reset * (h @ ops.transpose(u[2]) + b[2]))
        h = update * new + (1 - update) * h if swap else (1 - update) * new + update * h
        steps.append(h)
    return ops.stack(steps, axis=1)


def sequences(p, x, *, first=None, second=None):
    x = tap("lstm.0", (first or lstm)(x, p["lstm"]))
    return tap("gru.0", (second or gru)(x, p["gru"]))


@dataclasses.dataclass
class Mistake:
    block: str
    parts: dict[str, Callable[..., Any]]
    layer: str
    cause: str | None  # a part of what the cause has to say; `None`: no suspect gives the output


def stride_early(x, c):
    return convolve(x, c["weight"], c["bias"], 2, ((2, 0), (2, 0)))


def nhwc(x, c):
    wrong = ops.reshape(x, (x.shape[0], x.shape[2], x.shape[3], x.shape[1]))
    return convolve(ops.transpose(wrong, PERMUTED), c["weight"], c["bias"], 2, ONE)


def batch_moments(x, b):
    return normalise(x, ops.mean(x, (0, 2, 3)), ops.var(x, (0, 2, 3)), b["weight"], b["bias"])


def bn_with(**change):
    def bn(x, b):
        b = dict(b)
        return normalise(
            x,
            b["running_mean"],
            b["running_var"],
            *(change.get("swap") or (lambda b: (b["weight"], b["bias"])))(b),
            **change.get("options", {}),
        )

    return bn


MISTAKES = {
    "conv, TensorFlow's same": Mistake(
        "image", {"conv": lambda x, c: convolve(x, c["weight"], c["bias"], 2, padding="same")}, "conv", None
    ),
    "conv, offset": Mistake("image", {"conv": stride_early}, "conv", None),
    "conv, no bias": Mistake(
        "image", {"conv": lambda x, c: convolve(x, c["weight"], None, 2, ONE)}, "conv", "bias is missing"
    ),
    "conv, NHWC": Mistake("image", {"conv": nhwc}, "conv", None),
    "bn, eps": Mistake("image", {"bn": bn_with(options={"eps": 1e-3})}, "bn", "epsilon 0.001"),
    "bn, swapped": Mistake(
        "image", {"bn": bn_with(swap=lambda b: (b["bias"], b["weight"]))}, "bn", "gamma and beta are swapped"
    ),
    "bn, training": Mistake("image", {"bn": batch_moments}, "bn", "training mode"),
    "bn, no gamma": Mistake(
        "image", {"bn": bn_with(swap=lambda b: (ops.ones_like(b["weight"]), b["bias"]))}, "bn", "gamma is missing"
    ),
    "gelu, tanh": Mistake("image", {"act": lambda x: ops.gelu(x, approximate=True)}, "act", "gelu with tanh"),
    "gelu, relu": Mistake("image", {"act": ops.relu}, "act", "relu where"),
    "gelu, gradient stopped": Mistake(
        "image", {"act": lambda x: ops.stop_gradient(ops.gelu(x, approximate=False))}, "act", "no gradient flows"
    ),
    "gelu, gradient doubled": Mistake(
        "image",
        {"act": lambda x: 2 * (y := ops.gelu(x, approximate=False)) - ops.stop_gradient(y)},
        "act",
        "scaled by 2",
    ),
    "pool, zeros": Mistake("image", {"pooled": lambda x: pool(x - 5, 0.0) + 5}, "pool", None),
    "pool, padding": Mistake("image", {"pooled": lambda x: pool(x, pads=(2, 0))}, "pool", None),
    "flat, channels last": Mistake(
        "image",
        {"flat": lambda x: ops.reshape(ops.transpose(x, (0, 2, 3, 1)), (x.shape[0], -1))},
        "flat",
        "0, 4, 8, 12, 1, 5 and 10 more",
    ),
    "fc, transposed": Mistake("image", {"fc": lambda x, f: x @ f["weight"] + f["bias"]}, "fc", "kernel is transposed"),
    "fc, no bias": Mistake("image", {"fc": lambda x, f: x @ ops.transpose(f["weight"])}, "fc", "bias is missing"),
    "fc, detached bias": Mistake(
        "image",
        {"fc": lambda x, f: x @ ops.transpose(f["weight"]) + ops.stop_gradient(f["bias"])},
        "fc",
        "no gradient flows",
    ),
    "softmax, axis": Mistake("image", {"soft": lambda x: ops.softmax(x, axis=0)}, "soft", "softmax over axis 0"),
    "softmax, log": Mistake("image", {"soft": lambda x: ops.log_softmax(x, axis=1)}, "soft", "logarithm"),
    "embedding, scaled": Mistake("attention", {"emb": lambda i, t: ops.take(t, i, axis=0) * 8**0.5}, "emb", "sqrt(8)"),
    "layer norm, eps": Mistake("attention", {"norm": lambda x, n: layer_norm(x, n, 1e-6)}, "norm", "epsilon 1e-06"),
    "layer norm, unbiased": Mistake("attention", {"norm": lambda x, n: layer_norm(x, n, ddof=1)}, "norm", "unbiased"),
    "layer norm, rms": Mistake(
        "attention", {"norm": lambda x, n: layer_norm(x, n, centred=False)}, "norm", "root mean square"
    ),
    "layer norm, axis": Mistake("attention", {"norm": lambda x, n: layer_norm(x, n, axis=1)}, "norm", "other axes"),
    "attention, no scale": Mistake("attention", {"attn": lambda x, a: attend(x, a, scale=1.0)}, "attn", None),
    "attention, heads": Mistake("attention", {"attn": lambda x, a: attend(x, a, interleaved=True)}, "attn", None),
    "leaky relu, slope": Mistake("attention", {"act": lambda x: ops.leaky_relu(x, 0.2)}, "act", "slope 0.2"),
    "residual, missing": Mistake("attention", {"block": lambda x, y: ops.tanh(y)}, "block", "residual is missing"),
    "lstm, gates": Mistake("sequences", {"first": lambda x, w: lstm(x, w, (0, 1, 3, 2))}, "lstm.0", None),
    "gru, update": Mistake("sequences", {"second": lambda x, w: gru(x, w, swap=True)}, "gru.0", None),
}
