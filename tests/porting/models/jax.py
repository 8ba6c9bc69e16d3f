"""Models of JAX, with random weights: flax's, equinox's, and plain functions."""

from __future__ import annotations

import functools
import inspect
import itertools

import equinox as eqx
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape)


class Residual(nn.Module):
    size: int

    @nn.compact
    def __call__(self, x, train):
        y = nn.Conv(self.size, (3, 3), use_bias=False, param_dtype=x.dtype)(x)
        y = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.9, param_dtype=x.dtype)(y))
        return nn.relu(x + nn.Conv(self.size, (3, 3), param_dtype=x.dtype)(y))


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool = False):
        x = nn.max_pool(nn.Conv(8, (3, 3), strides=2, param_dtype=x.dtype)(x), (2, 2), (2, 2))
        for _ in range(3):
            x = Residual(8)(x, train)
        x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(10, param_dtype=x.dtype)(x.reshape((x.shape[0], -1)))


class TransformerBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        dtype = {"param_dtype": x.dtype}
        y = nn.LayerNorm(**dtype)(x)
        x = x + nn.MultiHeadDotProductAttention(4, **dtype)(y, y, mask=nn.make_causal_mask(x[..., 0]))
        y = nn.gelu(nn.Dense(64, **dtype)(nn.LayerNorm(**dtype)(x)))
        return x + nn.Dense(16, **dtype)(y)


class Blocks(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = TransformerBlock()(x)
        return nn.RMSNorm(param_dtype=x.dtype)(x)


class LSTM(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.RNN(nn.LSTMCell(16, param_dtype=x.dtype), name="lstm")(x)
        return nn.Dense(4, param_dtype=x.dtype, name="head")(x[:, -1])


class UNet(nn.Module):
    """An encoder and a decoder of images, with connections between them."""

    @nn.compact
    def __call__(self, x):
        dtype = {"param_dtype": x.dtype}
        kept = []
        for size in (8, 16):
            x = nn.swish(nn.GroupNorm(4, **dtype)(nn.Conv(size, (3, 3), **dtype)(x)))
            kept.append(x)
            x = nn.max_pool(x, (2, 2), (2, 2))
        for size in (16, 8):
            x = nn.ConvTranspose(size, (2, 2), (2, 2), **dtype)(x)
            x = jnp.concatenate([x, kept.pop()], -1)
            x = nn.swish(nn.Conv(size, (3, 3), feature_group_count=8, **dtype)(x))
        return nn.Conv(2, (1, 1), **dtype)(x)


class GRU(nn.Module):
    """A recurrent layer in each direction."""

    @nn.compact
    def __call__(self, x):
        cells = [nn.RNN(nn.GRUCell(8, param_dtype=x.dtype), name=name) for name in ("forward", "backward")]
        return nn.Dense(4, param_dtype=x.dtype, name="head")(nn.Bidirectional(*cells)(x))


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        for size in (32, 32, 32):
            x = nn.tanh(nn.Dense(size, param_dtype=x.dtype)(x))
        return nn.Dense(4, param_dtype=x.dtype)(x)


class Mixer(nn.Module):
    """Dense layers over patches and over channels, by turns."""

    @nn.compact
    def __call__(self, x):
        dtype = {"param_dtype": x.dtype}
        x = nn.Conv(16, (4, 4), strides=4, **dtype)(x)
        x = x.reshape(x.shape[0], -1, 16)
        for _ in range(3):
            y = nn.LayerNorm(**dtype)(x).swapaxes(1, 2)
            y = nn.Dense(x.shape[1], **dtype)(nn.gelu(nn.Dense(32, **dtype)(y))).swapaxes(1, 2)
            x = x + y
            x = x + nn.Dense(16, **dtype)(nn.gelu(nn.Dense(32, **dtype)(nn.LayerNorm(**dtype)(x))))
        return nn.Dense(10, **dtype)(x.mean(1))


class DecoderBlock(nnx.Module):
    def __init__(self, size, rngs):
        self.norm1, self.norm2 = nnx.RMSNorm(size, rngs=rngs), nnx.RMSNorm(size, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, size, decode=False, rngs=rngs)
        self.gate, self.up = (nnx.Linear(size, 32, use_bias=False, rngs=rngs) for _ in range(2))
        self.down = nnx.Linear(32, size, use_bias=False, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x), mask=nnx.make_causal_mask(x[..., 0]))
        y = self.norm2(x)
        return x + self.down(nnx.silu(self.gate(y)) * self.up(y))


class Decoder(nnx.Module):
    """A language model as they are today: root mean squares, and dense layers with a gate."""

    def __init__(self, rngs):
        self.embed = nnx.Embed(20, 16, rngs=rngs)
        self.blocks = nnx.List([DecoderBlock(16, rngs) for _ in range(2)])
        self.norm = nnx.LayerNorm(16, rngs=rngs)

    def __call__(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.embed.attend(self.norm(x))


class Encoder(nnx.Module):
    """Convolutions with batch normalization."""

    def __init__(self, rngs):
        self.conv1 = nnx.Conv(3, 8, (3, 3), strides=2, rngs=rngs)
        self.norm1 = nnx.BatchNorm(8, rngs=rngs)
        self.conv2 = nnx.Conv(8, 16, (3, 3), padding="VALID", rngs=rngs)
        self.norm2 = nnx.BatchNorm(16, rngs=rngs)
        self.head = nnx.Linear(16, 4, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm1(self.conv1(x)))
        x = nnx.avg_pool(nnx.relu(self.norm2(self.conv2(x))), (2, 2), (2, 2))
        return self.head(x.mean((1, 2)))


class PatchTransformer(eqx.Module):
    """A vision transformer for one image."""

    patches: eqx.nn.Conv2d
    positions: jax.Array
    blocks: list
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 9)
        self.patches = eqx.nn.Conv2d(3, 16, 4, 4, key=keys[0])
        self.positions = jax.random.normal(keys[1], (16, 16))
        self.blocks = [
            (
                eqx.nn.LayerNorm(16),
                eqx.nn.MultiheadAttention(4, 16, key=a),
                eqx.nn.LayerNorm(16),
                eqx.nn.MLP(16, 16, 32, 1, jax.nn.gelu, key=b),
            )
            for a, b in zip(keys[2:8:2], keys[3:8:2], strict=True)
        ]
        self.norm, self.head = eqx.nn.LayerNorm(16), eqx.nn.Linear(16, 5, key=keys[8])

    def __call__(self, x):
        x = self.patches(x).reshape(16, -1).T + self.positions
        for norm1, attend, norm2, mlp in self.blocks:
            y = jax.vmap(norm1)(x)
            x = x + attend(y, y, y)
            x = x + jax.vmap(mlp)(jax.vmap(norm2)(x))
        return self.head(self.norm(x.mean(0)))


class Convolutions(eqx.Module):
    conv1: eqx.nn.Conv2d
    conv2: eqx.nn.ConvTranspose2d
    pool: eqx.nn.AvgPool2d
    norm: eqx.nn.GroupNorm
    head: eqx.nn.Linear

    def __init__(self):
        keys = jax.random.split(jax.random.key(0), 3)
        self.conv1 = eqx.nn.Conv2d(3, 8, 3, padding=1, key=keys[0])
        self.conv2 = eqx.nn.ConvTranspose2d(8, 6, 3, stride=2, key=keys[1])
        self.pool, self.norm = eqx.nn.AvgPool2d(2, 2), eqx.nn.GroupNorm(2, 6)
        self.head = eqx.nn.Linear(6, 5, key=keys[2])

    def __call__(self, x):
        x = self.norm(self.conv2(self.pool(jax.nn.silu(self.conv1(x)))))
        return self.head(jnp.mean(x, (1, 2)))


def mapped(module, x):
    return jax.vmap(module)(x)


def attention(module, x):
    return jax.vmap(lambda x: module(x, x, x))(x)


def scanned(cell, x):
    """An LSTM under `scan`."""
    start = jnp.zeros((x.shape[0], cell.hidden_size), x.dtype), jnp.zeros((x.shape[0], cell.hidden_size), x.dtype)

    def step(carry, row):
        carry = jax.vmap(cell)(row, carry)
        return carry, carry[0]

    return jax.lax.scan(step, start, x.swapaxes(0, 1))[1].swapaxes(0, 1)


class MatrixMemory(nnx.Module):
    """The memory of xLSTM: a matrix for each head, behind exponential gates that are kept from overflow."""

    def __init__(self, rngs):
        self.norm, self.qkv = nnx.LayerNorm(12, rngs=rngs), nnx.LinearGeneral(12, (3, 3, 4), rngs=rngs)
        self.gates, self.open = nnx.Linear(12, 6, rngs=rngs), nnx.Linear(12, 12, rngs=rngs)
        self.heads, self.leave = nnx.GroupNorm(12, 3, rngs=rngs), nnx.Linear(12, 12, rngs=rngs)

    def __call__(self, x):
        y = self.norm(x)
        q, k, v = jnp.moveaxis(self.qkv(y), 2, 0)
        enter, forget = jnp.split(self.gates(y), 2, -1)

        def step(carry, row):
            memory, total, most = carry
            q, k, v, enter, forget = row
            new = jnp.maximum(forget + most, enter)
            kept, added = jnp.exp(forget + most - new), jnp.exp(enter - new)
            memory = kept[..., None, None] * memory + added[..., None, None] * jnp.einsum("bhd,bhe->bhde", v, k)
            total = kept[..., None] * total + added[..., None] * k
            size = jnp.maximum(jnp.abs(jnp.einsum("bhd,bhd->bh", total, q)), jnp.exp(-new))
            return (memory, total, new), jnp.einsum("bhde,bhe->bhd", memory, q) / size[..., None]

        batch = x.shape[0]
        start = jnp.zeros((batch, 3, 4, 4), x.dtype), jnp.zeros((batch, 3, 4), x.dtype), jnp.zeros((batch, 3), x.dtype)
        rows = [jnp.moveaxis(row, 1, 0) for row in (q, k / 2, v, enter, jax.nn.log_sigmoid(forget))]
        y_heads = jnp.moveaxis(jax.lax.scan(step, start, rows)[1], 0, 1).reshape(x.shape)
        return x + self.leave(jax.nn.sigmoid(self.open(y)) * self.heads(y_heads))


class FourierOperator(eqx.Module):
    """A Fourier neural operator on a line."""

    lift: eqx.nn.Conv1d
    spectral: list
    local: list
    head: eqx.nn.Conv1d

    def __init__(self, key):
        keys = jax.random.split(key, 6)
        self.lift, self.head = eqx.nn.Conv1d(2, 6, 1, key=keys[0]), eqx.nn.Conv1d(6, 1, 1, key=keys[1])
        self.spectral = [0.2 * jax.random.normal(key, (2, 6, 6, 5)) for key in keys[2:4]]
        self.local = [eqx.nn.Conv1d(6, 6, 1, key=key) for key in keys[4:]]

    def __call__(self, x):
        x = self.lift(x)
        for weight, layer in zip(self.spectral, self.local, strict=True):
            waves = jnp.einsum("im,iom->om", jnp.fft.rfft(x)[:, :5], weight[0] + 1j * weight[1])
            waves = jnp.pad(waves, ((0, 0), (0, x.shape[-1] // 2 - 4)))
            x = jax.nn.gelu(jnp.fft.irfft(waves, x.shape[-1]) + layer(x))
        return self.head(x)


def gated(cell, x):
    """A GRU under `scan`, whose last state is the output."""

    def step(state, row):
        return jax.vmap(cell)(row, state), None

    return jax.lax.scan(step, jnp.zeros((x.shape[0], cell.hidden_size), x.dtype), x.swapaxes(0, 1))[0]


def burgers(params, points):
    """What is left of Burgers' equation, with derivatives of a small network."""

    def u(point):
        for name in sorted(params)[:-1]:
            point = jnp.tanh(point @ params[name]["w"] + params[name]["b"])
        return (point @ params["layer2"]["w"] + params["layer2"]["b"])[0]

    def at(point):
        slope, curvature = jax.grad(u)(point), jax.hessian(u)(point)
        return slope[1] + u(point) * slope[0] - 0.1 * curvature[0, 0]

    return jax.vmap(at)(points)


@jax.custom_vjp
def straight_through(x):
    return jnp.round(x)


straight_through.defvjp(lambda x: (jnp.round(x), x), lambda x, upstream: (upstream * (jnp.abs(x) < 1),))


def quantized(params, x):
    """A layer whose outputs are rounded, with a gradient of its own."""
    return straight_through(jnp.tanh(x @ params["w"]) * 4) * params["s"]


def linen(module, *shape):
    def make():
        x = normal(*shape)
        return (module, module.init(jax.random.key(0), jnp.asarray(x))), x

    return make


def equinox(function, make, *shape):
    return lambda: (functools.partial(function, make(jax.random.key(0))), normal(*shape))


def module(make, x):
    """Return what makes a module of nnx, and its input."""
    return lambda: (make(nnx.Rngs(0)), x)


def layers(*sizes):
    return {f"layer{i}": {"w": normal(a, b), "b": normal(b)} for i, (a, b) in enumerate(itertools.pairwise(sizes))}


MODELS = {
    "flax CNN": linen(CNN(), 2, 16, 16, 3),
    "flax transformer block": linen(Blocks(), 2, 6, 16),
    "flax MLP": linen(MLP(), 2, 8),
    "flax Mixer": linen(Mixer(), 2, 16, 16, 3),
    "flax U-Net": linen(UNet(), 2, 16, 16, 3),
    "flax GRU": linen(GRU(), 2, 6, 8),
    "nnx decoder": module(Decoder, np.random.default_rng(0).integers(0, 20, (2, 6))),
    "nnx CNN": module(Encoder, normal(2, 16, 16, 3)),
    "equinox MLP": equinox(mapped, lambda key: eqx.nn.MLP(8, 4, 32, 2, key=key), 2, 8),
    "equinox GRU under scan": equinox(gated, lambda key: eqx.nn.GRUCell(8, 16, key=key), 2, 6, 8),
    "equinox ViT": equinox(mapped, PatchTransformer, 2, 3, 16, 16),
    "flax LSTM": linen(LSTM(), 2, 6, 8),
    "equinox attention": equinox(attention, lambda key: eqx.nn.MultiheadAttention(4, 16, key=key), 2, 6, 16),
    "equinox LSTM under scan": equinox(scanned, lambda key: eqx.nn.LSTMCell(8, 16, key=key), 2, 6, 8),
    "equinox convolution": equinox(mapped, lambda _: Convolutions(), 2, 3, 8, 8),
    "nnx xLSTM": module(MatrixMemory, normal(2, 6, 12)),
    "equinox Fourier operator": equinox(mapped, FourierOperator, 3, 2, 16),
    "physics-informed network": lambda: (functools.partial(burgers, layers(2, 16, 16, 1)), normal(8, 2)),
    "function with custom_vjp": lambda: (
        functools.partial(quantized, {"w": normal(8, 4), "s": normal(4)}),
        normal(2, 8),
    ),
}


SINGLE = ("nnx decoder",)  # JAX's attention computes in float32 whatever its dtype is


def made(name, dtype):
    """Return a model whose layers all matter, and its inputs."""
    jax.config.update("jax_enable_x64", True)
    model, x = MODELS[name]()
    rng = np.random.default_rng(1)

    def lively(path, leaf):
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        is_scale = leaf.ndim == 1 and jax.tree_util.keystr(path).removesuffix(".value").endswith(
            ("'scale']", "'var']", ".weight")
        )
        size = leaf.shape[-2] ** -0.5 if leaf.ndim > 1 else 0.3
        drawn = rng.uniform(0.7, 1.3, leaf.shape) if is_scale else size * rng.normal(size=leaf.shape)
        return jnp.asarray(drawn, dtype)

    if isinstance(model, nnx.Module):
        for _, layer in nnx.iter_modules(model):
            if isinstance(layer, nnx.Embed):
                layer.dtype = jnp.dtype(dtype)
        model.train()
        nnx.update(model, jax.tree_util.tree_map_with_path(lively, nnx.state(model, (nnx.Param, nnx.BatchStat))))
        return model, (jnp.asarray(x, dtype if x.dtype.kind == "f" else x.dtype),)
    function = model.func if isinstance(model, functools.partial) else None
    tree = model.args[0] if function else model[1]
    tree = jax.tree_util.tree_map_with_path(lively, tree)
    return functools.partial(function, tree) if function else (model[0], tree), (jnp.asarray(x, dtype),)


def written_in(name):
    """Return the file in which a model is defined."""
    model = MODELS[name]()[0]
    tree = model.args[0] if isinstance(model, functools.partial) else model
    tree = tree[0] if isinstance(tree, tuple) else tree
    return [inspect.getsourcefile(burgers if isinstance(tree, dict) else type(tree))]
