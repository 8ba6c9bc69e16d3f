"""Models of JAX, with random weights: flax's, equinox's, and plain functions."""

from __future__ import annotations

import functools
import itertools

import equinox as eqx
import flax.linen as nn
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


def layers(*sizes):
    return {f"layer{i}": {"w": normal(a, b), "b": normal(b)} for i, (a, b) in enumerate(itertools.pairwise(sizes))}


MODELS = {
    "flax CNN": linen(CNN(), 2, 16, 16, 3),
    "flax transformer block": linen(Blocks(), 2, 6, 16),
    "flax LSTM": linen(LSTM(), 2, 6, 8),
    "equinox attention": equinox(attention, lambda key: eqx.nn.MultiheadAttention(4, 16, key=key), 2, 6, 16),
    "equinox LSTM under scan": equinox(scanned, lambda key: eqx.nn.LSTMCell(8, 16, key=key), 2, 6, 8),
    "equinox convolution": equinox(mapped, lambda _: Convolutions(), 2, 3, 8, 8),
    "physics-informed network": lambda: (functools.partial(burgers, layers(2, 16, 16, 1)), normal(8, 2)),
    "function with custom_vjp": lambda: (
        functools.partial(quantized, {"w": normal(8, 4), "s": normal(4)}),
        normal(2, 8),
    ),
}


def made(name, dtype):
    """Return a model whose layers all matter, and its inputs."""
    jax.config.update("jax_enable_x64", True)
    model, x = MODELS[name]()
    rng = np.random.default_rng(1)

    def lively(path, leaf):
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        is_scale = leaf.ndim == 1 and jax.tree_util.keystr(path).endswith(("'scale']", "'var']", ".weight"))
        size = leaf.shape[-2] ** -0.5 if leaf.ndim > 1 else 0.3
        drawn = rng.uniform(0.7, 1.3, leaf.shape) if is_scale else size * rng.normal(size=leaf.shape)
        return jnp.asarray(drawn, dtype)

    function = model.func if isinstance(model, functools.partial) else None
    tree = model.args[0] if function else model[1]
    tree = jax.tree_util.tree_map_with_path(lively, tree)
    return functools.partial(function, tree) if function else (model[0], tree), (jnp.asarray(x, dtype),)
