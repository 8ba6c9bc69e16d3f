"""A decoder with its cache is ported as a step, and what it then writes is what the original writes, token by token."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import multiop
from multiop import errors, ops, porting
from multiop._values.tree import map as tree_map

TOKENS = 64
WORDS, WIDTH, HEADS, LAYERS, LENGTH = 29, 16, 4, 2, 72
KINDS = ("static", "growing")
FULL = pytest.mark.tier("full")


def written(step, token, cache, count=TOKENS):
    """Return the tokens that a step writes, each the likeliest, and how it rates all words on the way."""
    tokens, ratings = [], []
    for _ in range(count):
        logits, cache = step(token, cache)
        ratings.append(np.asarray(logits)[:, -1])
        token = ratings[-1].argmax(-1)[:, None].astype(token.dtype)
        tokens.append(token)
    return np.concatenate(tokens, 1), np.stack(ratings)


def check_same(written_here, expected, digits=1e-12):
    """Compare two texts, of which it must have been clear what is the next word."""
    (tokens, ratings), (wanted, rated) = written_here, expected
    best = np.sort(rated, axis=-1)
    assert (best[..., -1] - best[..., -2]).min() > 10 * digits * np.abs(rated).max()
    assert len(np.unique(wanted)) > 3
    np.testing.assert_array_equal(tokens, wanted)
    np.testing.assert_allclose(ratings, rated, rtol=0, atol=digits * np.abs(rated).max())


# a decoder of PyTorch with a cache that is an object


def torch_decoder():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional

    class Cache:
        """What each layer has of the tokens before, in tensors that grow or in tensors that have room for all."""

        def __init__(self, batch, kind, length=0):
            shape = (batch, HEADS, LENGTH if kind == "static" else length, WIDTH // HEADS)
            self.kind, self.position = kind, torch.tensor(0)
            self.layers = [{"keys": torch.zeros(shape), "values": torch.zeros(shape)} for _ in range(LAYERS)]

        def update(self, layer, **new):
            for name, x in new.items():
                if self.kind == "static":
                    self.layers[layer][name].index_copy_(2, self.position.reshape(1), x)
                else:
                    self.layers[layer][name] = torch.cat([self.layers[layer][name], x], 2)
            return self.layers[layer]["keys"], self.layers[layer]["values"]

    class Layer(torch.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number, self.qkv, self.out = number, torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)

        def forward(self, x, cache):
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            keys, values = cache.update(self.number, keys=k, values=v)
            seen = torch.arange(keys.shape[2])[None] <= cache.position if cache.kind == "static" else None
            y = F.scaled_dot_product_attention(q, keys, values, seen)
            return x + self.out(y.transpose(1, 2).flatten(2))

    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Linear(WIDTH, WORDS)
            self.layers = torch.nn.ModuleList(map(Layer, range(LAYERS)))

        def forward(self, token, cache):
            x = self.embed(token) + torch.sin(cache.position * torch.arange(1.0, WIDTH + 1, dtype=torch.float64))
            for layer in self.layers:
                x = layer(x, cache)
            cache.position = cache.position + 1
            return {"logits": self.head(x), "cache": cache}

    torch.manual_seed(0)
    return Decoder().double().eval(), Cache


@functools.cache
def torch_step(kind):
    """Return a decoder, how its cache is made, and its step as a port."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    try:
        model, make = torch_decoder()
        make = functools.partial(in_float64, make, kind)
        sizes = {0: "batch", 2: "length"} if kind == "growing" else {0: "batch"}
        example = torch.ones((2, 1), dtype=torch.int64), make(2, length=3)
        return model, make, porting.trace(model, *example, dynamic_shapes={"token": {0: "batch"}, "cache": sizes})
    finally:
        torch.set_default_dtype(torch.float32)


def in_float64(make, kind, batch, **options):
    import torch

    cache = make(batch, kind, **options)
    for layer in cache.layers:
        layer.update({name: x.double() for name, x in layer.items()})
    assert cache.layers[0]["keys"].dtype == torch.float64
    return cache


def arrays(tree):
    """Return copies as NumPy arrays: the original may change its cache in place."""
    return tree_map(lambda leaf: leaf.detach().numpy().copy() if hasattr(leaf, "detach") else leaf, tree)


def taken(outputs):
    return outputs["logits"], outputs["cache"]


def ported(port, compiled=True, named=None):
    """Return the step of a port on the active backend; a compiled one is compiled once.

    `named` gives the inputs by name, made of the token and the cache.
    """
    params, state = tree_map(ops.convert_to_tensor, (port.params, port.state))

    def step(params, state, token, cache):
        if named is not None:
            return taken(port.function(params, state, **named(token, cache))[0])
        return taken(port.function(params, state, token, cache)[0])

    called = multiop.jit(step) if compiled else step

    def with_logits(token, cache):
        logits, cache = called(params, state, ops.convert_to_tensor(token), cache)
        return ops.convert_to_numpy(logits), cache

    return with_logits


@FULL
@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_of_torch(kind, backend):
    torch = pytest.importorskip("torch")
    model, make, port = torch_step(kind)
    count = 5 if kind == "growing" and backend in ("jax", "tensorflow") else TOKENS  # each length is compiled anew

    def original(token, cache):
        with torch.no_grad():
            outputs = model(torch.as_tensor(token), cache)
        return outputs["logits"].numpy(), outputs["cache"]

    token = np.asarray([[3], [5], [7]])  # not the batch that it was traced with
    expected = written(original, token, make(3), count)
    cache = arrays({"position": make(3).position, "layers": tuple(make(3).layers)})
    step = ported(port, compiled=kind == "static" and backend != "torch")  # which takes half a minute
    check_same(written(step, token, tree_map(ops.convert_to_tensor, cache), count), expected)


def test_the_sizes_have_the_names_that_the_caller_gave():
    _, _, port = torch_step("growing")
    assert "`(batch, 4, length, 4)`" in port.source and "size1" not in port.source
    assert len(re.findall(r"def layer\w*\(", port.source)) == 1  # both layers are calls of one function


def test_the_object_itself_is_taken():
    """On its own framework, a port takes the cache that the original takes, and leaves it as it was."""
    torch = pytest.importorskip("torch")
    _, make, port = torch_step("static")
    cache = make(2)
    with multiop.use_backend("torch"):
        outputs, _ = port.function(port.params, port.state, torch.ones((2, 1), dtype=torch.int64), cache)
    assert outputs["cache"]["position"] == 1 and cache.position == 0
    assert outputs["cache"]["layers"][0]["keys"].any() and not cache.layers[0]["keys"].any()


def test_a_port_with_a_cache_is_saved(tmp_path):
    pytest.importorskip("safetensors")
    _, make, port = torch_step("growing")
    port.save(tmp_path)
    loaded = porting.load(tmp_path)
    cache = arrays({"position": make(2).position, "layers": tuple(make(2).layers)})
    token = np.ones((2, 1), "int64")
    with multiop.use_backend("numpy"):
        ours, theirs = (ported(each)(token, cache)[0] for each in (port, loaded))
    np.testing.assert_array_equal(ours, theirs)
    assert porting.prove(loaded, "numpy").agrees


# what is refused


def refused(model, *inputs, **options):
    with pytest.raises(errors.MultiopError) as caught:
        porting.trace(model, *inputs, **options)
    return str(caught.value)


class Store:
    """An object of the user's own."""

    def __init__(self, keys, count=0):
        self.keys, self.count = keys, count


def line(function):
    torch = pytest.importorskip("torch")

    class Line(torch.nn.Module):
        def forward(self, x, cache):
            return function(x, cache)

    return Line()


@pytest.fixture
def x():
    torch = pytest.importorskip("torch")
    return torch.arange(6.0, dtype=torch.float64).reshape(2, 3)


def test_a_change_that_is_not_returned_is_refused(x):
    def in_place(x, cache):
        cache.keys.add_(x)
        return cache.keys.sum(1)

    def anew(x, cache):
        cache.keys = cache.keys + x
        return cache.keys.sum(1)

    def in_a_dict(x, cache):
        cache["keys"] = cache["keys"] + x
        return x * 2

    def in_a_list(x, cache):
        cache[0].mul_(x)
        return x * 2

    for function, cache, name in (
        (in_place, Store(x.clone()), "cache.keys"),
        (anew, Store(x.clone()), "cache.keys"),
        (in_a_dict, {"keys": x.clone()}, "cache.keys"),
        (in_a_list, [x.clone()], "cache[0]"),
    ):
        message = refused(line(function), x, cache)
        assert f"a change of the argument {name}, which is not returned" in message
    for function in (
        lambda x, _: x.add_(1).sum(),
        lambda x, _: x[:, :2].relu_().sum(1),
        lambda x, _: x.sub_(x.mean()) * 2,
    ):
        assert "a change of the argument x, which is not returned" in refused(line(function), x.clone(), x)
    cache = Store(x.clone())
    line(in_place)  # what was refused has not changed the examples
    np.testing.assert_array_equal(cache.keys, x)


def test_a_change_that_is_returned_is_not(x):
    def in_place(x, cache):
        cache.keys.add_(x)
        return cache.keys.sum(1), cache

    port = porting.trace(line(in_place), x, Store(x.clone()))
    with multiop.use_backend("numpy"):
        (total, cache), _ = port.function({}, {}, x.numpy(), {"keys": x.numpy()})
    np.testing.assert_array_equal(cache["keys"], 2 * x.numpy())
    np.testing.assert_array_equal(total, 2 * x.numpy().sum(1))


def test_a_number_that_changes_is_refused(x):
    def counted(x, cache):
        cache.count += 1
        return x * cache.count, cache

    message = refused(line(counted), x, Store(x.clone()))
    assert "a change of the argument cache.count from 0 to 1, which is no tensor" in message


def test_an_object_that_holds_itself_is_refused(x):
    cache = Store(x.clone())
    cache.owner = [cache]
    assert "holds itself" in refused(line(lambda x, cache: x * cache.keys), x, cache)


def test_what_is_made_in_a_call_may_have_any_structure(x):
    """A cache that begins empty is filled by a port of its own, and is no input of that one."""

    def filled(x, cache):
        cache.keys, cache.count = x * 2, 3
        return x, cache

    port = porting.trace(line(filled), x, Store(None))
    with multiop.use_backend("numpy"):
        (_, cache), _ = port.function({}, {}, x.numpy())
    np.testing.assert_array_equal(cache["keys"], 2 * x.numpy())


def test_a_named_size_that_cannot_be_open(x):
    def double(x, cache):
        return x * 2 + cache

    message = refused(line(double), x, x[:1], dynamic_shapes=({0: "batch"}, {0: "one"}))
    assert "the size one is open, but 1 in an example: take examples of at least 2" in message

    def fixed(x, cache):
        return x.reshape(2, 3) + cache

    message = refused(line(fixed), x, x, dynamic_shapes=({0: "batch"}, None))
    assert "the size batch is to stay open, and Line fixes it to 2, at" in message


def test_sizes_of_one_name_are_one(x):
    def both(x, cache):
        return x + cache.keys

    port = porting.trace(
        line(both),
        x,
        Store(x.clone()),
        dynamic_shapes={"x": {0: "rows", 1: "columns"}, "cache": {0: "rows", 1: "columns"}},
    )
    assert "`(rows, columns)`" in port.source
    with multiop.use_backend("numpy"):
        np.testing.assert_array_equal(
            port.function({}, {}, np.ones((4, 1)), {"keys": np.ones((4, 1))})[0], 2 * np.ones((4, 1))
        )
        with pytest.raises(errors.ArgumentError, match="dimension 1 of input 1 .* must fit dimension 1 of input 0"):
            port.function({}, {}, np.ones((4, 2)), {"keys": np.ones((4, 3))})


# functions of JAX


class Entry(NamedTuple):
    keys: Any
    values: Any


def weights():
    generator = np.random.default_rng(0)

    def normal(*shape):
        return generator.normal(size=shape) * shape[0] ** -0.5

    layers = [{name: normal(WIDTH, WIDTH) for name in "qkvo"} for _ in range(LAYERS)]
    return {"embed": generator.normal(size=(WORDS, WIDTH)), "head": normal(WIDTH, WORDS), "layers": layers}


def jax_step(params, token, cache):
    """One token of a decoder, as it is written in JAX."""
    import jax
    import jax.numpy as jnp

    position = cache["position"]
    x = params["embed"][token] + jnp.sin(position * jnp.arange(1.0, WIDTH + 1))
    entries = []
    for layer, (keys, values) in zip(params["layers"], cache["layers"], strict=True):
        q, k, v = (jnp.reshape(x @ layer[name], (*token.shape, HEADS, -1)) for name in "qkv")
        keys = jax.lax.dynamic_update_slice(keys, k, (0, position, 0, 0))
        values = jax.lax.dynamic_update_slice(values, v, (0, position, 0, 0))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys) / (WIDTH // HEADS) ** 0.5
        scores = jnp.where(jnp.arange(LENGTH) <= position, scores, -jnp.inf)
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), values)
        x = x + jnp.tanh(jnp.reshape(y, (*token.shape, WIDTH)) @ layer["o"])
        entries.append(Entry(keys, values))
    return {"logits": x @ params["head"], "cache": {"position": position + 1, "layers": entries}}


def room(batch):
    zeros = np.zeros((batch, LENGTH, HEADS, WIDTH // HEADS))
    return {"position": np.zeros((), "int64"), "layers": [Entry(zeros, zeros) for _ in range(LAYERS)]}


@FULL
def test_a_decoder_of_jax(backend):
    jax = pytest.importorskip("jax")
    params = weights()
    example = jax.tree.map(jax.numpy.asarray, (np.ones((2, 1), "int32"), room(2)))
    port = porting.trace(functools.partial(jax_step, params), *example)
    original = jax.jit(functools.partial(jax_step, jax.tree.map(jax.numpy.asarray, params)))
    token = np.asarray([[3], [5], [7]], "int32")
    expected = written(lambda token, cache: taken(original(token, cache)), token, room(3))
    check_same(written(ported(port, backend != "torch"), token, tree_map(ops.convert_to_tensor, room(3))), expected)


def selective_scan(params, tokens, state):
    """A state space model whose steps depend on the tokens, as Mamba's, over any number of tokens."""
    import jax
    import jax.numpy as jnp

    x = params["embed"][tokens]
    size = jax.nn.softplus(x @ params["size"])

    def step(state, inputs):
        x, size = inputs
        b, c = x @ params["b"], x @ params["c"]
        state = jnp.exp(-size[..., None] * params["rate"]) * state + (size * x)[..., None] * b[:, None]
        return state, jnp.einsum("bds,bs->bd", state, c)

    state, y = jax.lax.scan(step, state, (x.swapaxes(0, 1), size.swapaxes(0, 1)))
    return {"logits": (x + y.swapaxes(0, 1)) @ params["head"], "cache": state}


@FULL
def test_a_scan_of_jax(backend):
    """One port takes the prompt and the tokens after it: the number of tokens is open."""
    jax = pytest.importorskip("jax")
    generator = np.random.default_rng(1)
    names = {"embed": (WORDS, WIDTH), "size": (WIDTH, WIDTH), "b": (WIDTH, 3), "c": (WIDTH, 3), "head": (WIDTH, WORDS)}
    params = {name: generator.normal(size=shape) / 2 for name, shape in names.items()} | {"rate": np.arange(1.0, 4)}
    function = functools.partial(selective_scan, jax.tree.map(jax.numpy.asarray, params))
    example = jax.tree.map(jax.numpy.asarray, (np.ones((2, 5), "int32"), np.zeros((2, WIDTH, 3))))
    port = porting.trace(function, *example, dynamic_shapes=["batch, tokens", f"batch, {WIDTH}, 3"])
    prompt = generator.integers(0, WORDS, (3, 7)).astype("int32")
    original = jax.jit(function)
    expected = written(lambda token, cache: taken(original(token, cache)), prompt, np.zeros((3, WIDTH, 3)))
    step = ported(port, backend != "torch")
    check_same(written(step, prompt, ops.zeros((3, WIDTH, 3), "float64")), expected)
