"""Functions of JAX, modules of flax and equinox as source: values, gradients, statistics, and what is refused."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax_rows
import ported

import multiop
from multiop import errors, ops, porting
from multiop.porting import _weights

jnp, lax = jax.numpy, jax.lax


@pytest.fixture(autouse=True)
def natively_in_64_bits(in_64_bits):
    with jax.enable_x64(True):
        yield


def normal(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def in_float64(tree):
    """Return a pytree with random floats in float64; biases that are zero would hide what is lost."""
    leaves, structure = jax.tree.flatten(tree)
    generator = np.random.default_rng(7)
    drawn = [
        jnp.asarray(generator.uniform(0.3, 1.2, leaf.shape) * generator.choice([-1, 1], leaf.shape) ** (leaf.ndim > 1))
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        else leaf
        for leaf in leaves
    ]
    return jax.tree.unflatten(structure, drawn)


# functions of parameters


def dense(layer, x):
    return x @ layer["w"] + layer["b"]


def layers(*sizes):
    return {
        f"layer{i}": {"w": normal(a, b, seed=i) * 0.5, "b": normal(b, seed=i + 9)}
        for i, (a, b) in enumerate(itertools.pairwise(sizes))
    }


def perceptron(params, x):
    for name in sorted(params)[:-1]:
        x = jnp.tanh(dense(params[name], x))
    return dense(params[max(params)], x)


def residual(params, points):
    """What is left of Burgers' equation."""

    def u(point):
        return perceptron(params, point)[0]

    def at(point):
        slope, curvature = jax.grad(u)(point), jax.hessian(u)(point)
        return slope[1] + u(point) * slope[0] - 0.1 * curvature[0, 0]

    return jax.vmap(at)(points)


@jax.custom_vjp
def reversing(x, scale):
    """Has a wrong gradient, so that a lost rule shows."""
    return jnp.sin(x) * scale


reversing.defvjp(
    lambda x, scale: (jnp.sin(x) * scale, (jnp.cos(x), scale)),
    lambda kept, upstream: (-3 * upstream * kept[0] * kept[1], jnp.sum(upstream, 0)),
)


@jax.custom_jvp
def steep(x):
    return jnp.log1p(jnp.exp(x))


@steep.defjvp
def _(primals, tangents):
    return steep(primals[0]), 5 * tangents[0] * jax.nn.sigmoid(primals[0])


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def limited(x, most):
    return x


limited.defvjp(lambda x, most: (x, None), lambda most, _, upstream: (jnp.clip(upstream, -most, most),))


@jax.custom_jvp
def growing(x):
    return jnp.exp(x)


@growing.defjvp
def _(primals, tangents):
    y = growing(primals[0])  # its rule uses what it returns
    return y, 2 * tangents[0] * y


def with_rules(params, x):
    return (
        growing(0.1 * x @ params["w"])
        + steep(reversing(limited(x @ params["w"], 0.2), params["s"]))
        + limited(x @ params["w"], 0.1)
    )


def second_derivative(params, x):
    """A derivative of a rule: what is inside of it is differentiated too."""
    return jax.vmap(jax.grad(lambda row: jnp.sum(reversing(row[None] @ params["w"], params["s"]))))(x)


def controlled(params, x):
    x = jnp.tanh(x @ params["w"])
    x = lax.cond(jnp.sum(x) > 0, lambda x: x * params["s"], lambda x: x - params["s"], x)
    x = lax.fori_loop(1, 4, lambda i, x: jnp.sin(x) * i + params["s"], x)
    _, sums = lax.scan(lambda carry, row: (carry + row * params["s"], jnp.sum(carry * row)), x[0], x)
    x = lax.switch(jnp.argmax(x[0]), [jnp.sin, jnp.cos, lambda x: x * params["s"]], x)
    return {"x": lax.map(lambda row: row * jnp.sum(params["s"] * row), x), "sums": sums}


def stopped(params, x):
    y = jax.checkpoint(lambda x: jnp.sin(dense(params["layer0"], x)))(x)
    return y * lax.stop_gradient(y) + jax.jit(jnp.exp)(y)


TABLE = np.linspace(0, 1, 12).reshape(3, 4)


def closing_over(params, x):
    return dense(params["layer0"], x * TABLE[0] + jnp.asarray(TABLE).sum(0)), x @ jnp.asarray(TABLE).T


# modules of flax


def linen_models():
    nn = pytest.importorskip("flax.linen")

    class Block(nn.Module):
        size: int

        @nn.compact
        def __call__(self, x, train):
            y = nn.relu(nn.BatchNorm(use_running_average=not train, momentum=0.8)(nn.Conv(self.size, (3, 3))(x)))
            return nn.relu(x + nn.Conv(self.size, (3, 3), feature_group_count=2, use_bias=False)(y))

    class ConvNet(nn.Module):
        @nn.compact
        def __call__(self, x, train: bool = False):
            x = nn.max_pool(nn.Conv(4, (3, 3), strides=2)(x), (2, 2), (2, 2), "SAME")
            for _ in range(3):
                x = Block(4)(x, train)
            x = nn.avg_pool(x, (2, 2), (1, 1))
            x = nn.ConvTranspose(3, (3, 3), strides=(2, 2))(x)
            return nn.Dense(5)(x.mean((1, 2)))

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(2)(y, y, mask=mask)
            y = nn.Dense(16)(nn.LayerNorm()(x))
            return x + nn.Dense(8)(nn.gelu(y))

    class Transformer(nn.Module):
        @nn.compact
        def __call__(self, ids):
            embed = nn.Embed(7, 8)
            x = embed(ids) + self.param("positions", nn.initializers.normal(), (5, 8))
            for _ in range(3):
                x = Encoder()(x, nn.make_causal_mask(ids))
            return nn.log_softmax(embed.attend(nn.RMSNorm()(Encoder()(x, None))))

    class Dropped(nn.Module):
        @nn.compact
        def __call__(self, x, deterministic=False):
            x = nn.Dropout(0.5)(x, deterministic=deterministic)
            return nn.Dropout(0.25)(nn.Dense(4)(x * 0) * 0 + 1 + x * 0, deterministic=deterministic)

    return {
        "conv net": (ConvNet(), normal(3, 16, 16, 3)),
        "transformer": (Transformer(), jnp.asarray([[1, 2, 0, 0, 3], [3, 4, 5, 6, 6], [1, 6, 0, 0, 2]])),
        "lstm": (nn.RNN(nn.LSTMCell(3, param_dtype="float64")), normal(3, 5, 4)),
        "gru, both ways": (
            nn.Bidirectional(
                nn.RNN(nn.GRUCell(3, param_dtype="float64")), nn.RNN(nn.SimpleCell(3, param_dtype="float64"))
            ),
            normal(3, 5, 4),
        ),
        "dropped": (Dropped(), normal(50, 4)),
    }


def of_linen(name):
    model, x = linen_models()[name]
    options = {"deterministic": True} if name == "dropped" else {}
    return (model, in_float64(model.init(jax.random.key(0), x, **options))), (x,)


def of_nnx(name=""):
    nnx = pytest.importorskip("flax.nnx")
    if name == "spectral":
        norm = nnx.SpectralNorm(nnx.Linear(4, 3, rngs=nnx.Rngs(0)), n_steps=2, rngs=nnx.Rngs(1))
        nnx.update(norm, in_float64(nnx.state(norm)))
        return norm, (normal(5, 4),)

    class Line(nnx.Module):
        def __init__(self, rngs):
            self.into, self.norm = nnx.Linear(3, 3, rngs=rngs), nnx.BatchNorm(3, rngs=rngs)

        def __call__(self, x):
            return self.norm(jnp.tanh(self.into(x)))

    class Layer(nnx.Module):
        def __init__(self, borrowed, rngs):
            self.borrowed, self.line = borrowed, Line(rngs)

        def __call__(self, x):
            borrowed = nnx.jit(lambda module, x: module(x))
            return self.borrowed(x) - nnx.gelu(self.line(x)) * borrowed(self.borrowed, 2 * x)

    class Borrowing(nnx.Module):
        """Has layers that call one which lies elsewhere, beside one of their own with the name that it has there."""

        def __init__(self, rngs):
            self.line = Line(rngs)
            self.layers = nnx.List([Layer(self.line, rngs) for _ in range(2)])

        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    if name == "borrowing":
        borrowing = Borrowing(nnx.Rngs(0))
        nnx.update(borrowing, in_float64(nnx.state(borrowing)))
        return borrowing, (normal(4, 3),)

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.conv, self.norm = nnx.Conv(3, 4, (3, 3), rngs=rngs), nnx.BatchNorm(4, rngs=rngs, momentum=0.9)
            self.blocks = nnx.List([nnx.Linear(4, 4, rngs=rngs) for _ in range(3)])
            self.group = nnx.GroupNorm(4, 2, rngs=rngs)

        def __call__(self, x):
            x = nnx.swish(self.norm(self.conv(x)))
            x = self.group(x).mean((1, 2))
            for block in self.blocks:
                x = nnx.relu(block(x))
            return x

    net = Net(nnx.Rngs(0))
    nnx.update(net, in_float64(nnx.state(net)))
    return net, (normal(3, 6, 6, 3),)


# modules of equinox


def of_equinox(name):
    eqx = pytest.importorskip("equinox")
    keys = jax.random.split(jax.random.key(0), 8)
    if name.startswith("batch norm"):
        module, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, "row", mode=name.rpartition(" ")[2])

        def normalized(module, state, x, inference=False):
            module = eqx.nn.inference_mode(module, inference)
            return jax.vmap(module, in_axes=(0, None), out_axes=(0, None), axis_name="row")(x, state)

        return functools.partial(normalized, in_float64(module), in_float64(state)), (normal(5, 3),)

    class ConvNet(eqx.Module):
        conv1: eqx.nn.Conv2d
        conv2: eqx.nn.ConvTranspose2d
        pool: eqx.nn.MaxPool2d
        norm: eqx.nn.GroupNorm
        layer: eqx.nn.Linear

        def __init__(self):
            self.conv1 = eqx.nn.Conv2d(3, 4, 3, padding=1, key=keys[0])
            self.conv2 = eqx.nn.ConvTranspose2d(4, 6, 3, stride=2, key=keys[1])
            self.pool, self.norm = eqx.nn.MaxPool2d(2, 2), eqx.nn.GroupNorm(2, 6)
            self.layer = eqx.nn.Linear(6, 5, key=keys[2])

        def __call__(self, x):
            x = self.norm(self.conv2(self.pool(jax.nn.relu(self.conv1(x)))))
            return self.layer(jnp.mean(x, (1, 2)))

    def mapped(module, x):
        return jax.vmap(module)(x)

    def attending(module, x):
        return jax.vmap(lambda x: module(x, x, x))(x)

    def recurrent(cell, x):
        start = jnp.zeros((x.shape[0], 3)), jnp.zeros((x.shape[0], 3))

        def step(carry, row):
            carry = jax.vmap(cell)(row, carry)
            return carry, carry[0]

        return lax.scan(step, start, x.swapaxes(0, 1))[1].swapaxes(0, 1)

    models = {
        "convolution": (ConvNet(), mapped, normal(3, 3, 8, 8)),
        "attention": (eqx.nn.MultiheadAttention(2, 8, use_query_bias=True, key=keys[3]), attending, normal(3, 5, 8)),
        "lstm": (eqx.nn.LSTMCell(4, 3, key=keys[4]), recurrent, normal(3, 5, 4)),
        "mlp": (eqx.nn.MLP(4, 2, 6, 3, key=keys[5]), mapped, normal(3, 4)),
    }
    module, function, x = models[name]
    return functools.partial(function, in_float64(module)), (x,)


FUNCTIONS = {
    "perceptron": (perceptron, lambda: layers(4, 6, 6, 2), lambda: (normal(3, 4),)),
    "physics-informed": (residual, lambda: layers(2, 6, 6, 1), lambda: (normal(4, 2),)),
    "rules": (with_rules, lambda: {"w": normal(4, 3), "s": normal(3)}, lambda: (normal(5, 4),)),
    "derivative of a rule": (second_derivative, lambda: {"w": normal(4, 3), "s": normal(3)}, lambda: (normal(5, 4),)),
    "control": (controlled, lambda: {"w": normal(4, 3), "s": normal(3)}, lambda: (normal(5, 4),)),
    "stopped": (stopped, lambda: layers(4, 3), lambda: (normal(5, 4),)),
    "closing over": (closing_over, lambda: layers(4, 3), lambda: (normal(5, 4),)),
}
MODELS = [
    *FUNCTIONS,
    *[f"linen, {name}" for name in ("conv net", "transformer", "lstm", "gru, both ways")],
    *[f"equinox, {name}" for name in ("convolution", "attention", "lstm", "mlp")],
    "nnx",
    "nnx, borrowing",
    "nnx, borrowing, training",
    "linen, conv net, training",
    "nnx, training",
    "nnx, spectral, training",
    "equinox, batch norm batch, training",
    "equinox, batch norm ema, training",
]


def model_of(name):
    name = name.removesuffix(", training")
    kind, _, rest = name.partition(", ")
    if name in FUNCTIONS:
        function, params, inputs = FUNCTIONS[name]
        return functools.partial(function, params()), inputs()
    return of_linen(rest) if kind == "linen" else of_equinox(rest) if kind == "equinox" else of_nnx(rest)


@functools.cache
def made(name):
    from multiop.porting.jax import models

    model, inputs = model_of(name)
    training = name.endswith("training")
    port = porting.trace(model, *inputs, training=training)
    form = models.model_of(model, training)
    state = {path: jnp.asarray(leaf) for path, leaf in form.state.items()}
    key = jax.random.key(0) if training else None
    expected = jax_rows.original(lambda params, *x: form.call(params, state, key, *x)[0], form.params, inputs)
    return port, inputs, expected, form.call(form.params, state, key, *inputs)[1]


@pytest.mark.parametrize("name", MODELS)
def test_values_gradients_and_statistics(name, backend):
    port, inputs, (outputs, gradients), state = made(name)
    with multiop.use_backend(backend):
        computed, slopes, new = ported.ported(port, inputs, name.endswith("training"))
    assert jax_rows.error_between(computed, outputs) < 1e-10
    assert jax_rows.error_between(slopes, gradients) < 1e-9
    own = {path: leaf for path, leaf in new.items() if not path.startswith("constant")}
    assert jax_rows.error_between(own, {path: np.asarray(leaf) for path, leaf in state.items()}) < 1e-10


@pytest.mark.parametrize("name", MODELS)
def test_source_is_tidy(name):
    source = made(name)[0].source
    assert max(map(len, source.splitlines())) <= 120
    assert not re.search(r"jaxpr|\bjnp\b|\bjax\.|np\.int|_in_dim|reduce_|dot_general", source)
    compile(source, "port.py", "exec")


@pytest.mark.parametrize("name", [key for key in MODELS if "training" not in key])
def test_any_batch_size(name):
    model, (x,) = model_of(name)
    port = made(name)[0]
    from multiop.porting.jax import models

    form = models.model_of(model, False)
    longer = jnp.concatenate([x, x[:1], x[:1]])
    state = {path: jnp.asarray(leaf) for path, leaf in form.state.items()}
    expected = jax.tree.leaves(form.call(form.params, state, None, longer)[0])
    with multiop.use_backend("jax"):
        computed = jax.tree.leaves(port.function(port.params, port.state, longer)[0])
    assert jax_rows.error_between([np.asarray(y) for y in computed], [np.asarray(y) for y in expected]) < 1e-10


def test_names_are_those_of_the_weights():
    model, _ = model_of("linen, transformer")
    port = made("linen, transformer")[0]
    assert set(_weights.flat(port.params)) == set(_weights.flat(porting.read_weights(model[1]).params))
    model, _ = model_of("equinox, convolution")
    port = made("equinox, convolution")[0]
    assert set(_weights.flat(port.params)) == set(_weights.flat(porting.read_weights(model.args[0]).params))


@pytest.mark.parametrize("name", ["function", "linen, conv net, training", "equinox, mlp"])
def test_later_weights_of_the_original_load(name, tmp_path):
    model, inputs = model_of(name) if name != "function" else (None, (normal(2, 3),))
    if model is None:
        params = {"first": {"w": normal(3, 4)}, "b": normal(4)}
        model = functools.partial(lambda params, x: jnp.tanh(x @ params["first"]["w"] + params["b"]), params)
    porting.trace(model, *inputs, name="port", training=name.endswith("training")).save(tmp_path)
    port = porting.load(tmp_path)
    weights = model[1] if isinstance(model, tuple) else model.args[0]
    later = jax.tree.map(lambda leaf: leaf * 1.5 if hasattr(leaf, "dtype") else leaf, weights)
    again = port.with_weights(later)
    for tree, other in ((again.params, port.params), (again.state, port.state)):
        for path, leaf in _weights.flat(other).items():
            np.testing.assert_array_equal(_weights.flat(tree)[path], leaf * 1.5, err_msg=path)
    with pytest.raises(errors.MultiopError):
        port.with_weights({"params": {"other": normal(2)}})


def test_steps_that_are_one_op_are_written_as_one():
    source = made("linen, transformer")[0].source
    for op in ("take", "layer_normalization", "rms_normalization", "dot_product_attention", "gelu", "log_softmax"):
        assert f"ops.{op}(" in source, op
    assert "for i in range(3):" in source and source.count("def encoder") == 2
    assert "tracked_channels_last_batch_norm" in made("linen, conv net, training")[0].source
    assert "ops.scan(step, " in made("linen, lstm")[0].source
    assert made("rules")[0].source.count("@ops.custom_gradient") == 5
    control = made("control")[0].source
    assert all(f"ops.{op}(" in control for op in ("cond", "fori_loop", "scan", "switch", "map"))


def test_a_model_in_both_modes(backend):
    port, inputs, _, _ = made("linen, conv net, training")
    expected = made("linen, conv net")[2][0]
    with multiop.use_backend(backend):
        computed, state = port.function(port.params, port.state, *map(np.asarray, inputs))
        assert jax_rows.error_between([ops.convert_to_numpy(computed)], expected) < 1e-10
    new, old = _weights.flat(state), _weights.flat(port.state)
    assert all((ops.convert_to_numpy(new[name]) == old[name]).all() for name in old)


def test_dropout_draws_from_keys():
    model, (x,) = of_linen("dropped")
    port = porting.trace(model, x, training=True)
    with multiop.use_backend("jax"):
        first, again, other = (port.function(port.params, port.state, x, training=True, seed=s)[0] for s in (1, 1, 2))
        assert (first == again).all() and (first != other).any()
        assert set(np.unique(first).round(12).tolist()) == {0.0, round(4 / 3, 12)}
        assert (port.function(port.params, port.state, x)[0] == 1).all()


def test_a_mask_that_two_tensors_share_is_drawn_once():
    nn = pytest.importorskip("flax.linen")

    class Masked(nn.Module):
        @nn.compact
        def __call__(self, x, training=False):
            keep = jax.random.bernoulli(self.make_rng("dropout"), 0.5, x.shape) if training else True
            return jnp.where(keep, x / 0.5, 0), jnp.where(keep, x / 0.5, 0) * 3

    x = normal(50, 4)
    port = porting.trace((Masked(), {}), x, training=True)
    with multiop.use_backend("numpy"):
        y, z = port.function(port.params, port.state, np.asarray(x), training=True, seed=1)[0]
        np.testing.assert_array_equal(y * 3, z)


def test_a_bound_module_and_a_function_with_a_state():
    (module, variables), (x,) = of_linen("conv net")
    assert porting.trace(module.bind(variables), x).source == made("linen, conv net")[0].source

    def counting(params, state, x, training):
        return x * params["w"] + state["count"], {"count": state["count"] + 1} if training else state

    bound = functools.partial(counting, {"w": normal(3)}, {"count": jnp.zeros(())})
    port = porting.trace(bound, normal(4, 3), training=True)
    with multiop.use_backend("jax"):
        _, state = port.function(port.params, port.state, normal(4, 3), training=True)
    assert state["count"] == 1


def test_parameters_that_are_one_array_have_a_name(backend):
    w, x = normal(3), normal(2, 3)
    port = porting.trace(functools.partial(lambda w, x: jnp.tanh(w * x), w), x)
    assert list(port.params) == ["value"]
    with multiop.use_backend(backend):
        computed, _ = port.function(port.params, port.state, np.asarray(x))
        np.testing.assert_allclose(
            multiop.op_convert_to_numpy(computed), np.tanh(np.asarray(w) * np.asarray(x)), rtol=1e-6
        )


def test_float32_stays_float32(backend):
    params = jax.tree.map(lambda leaf: leaf.astype("float32"), layers(4, 6, 2))
    x = normal(3, 4).astype("float32")
    port = porting.trace(functools.partial(perceptron, params), x)
    proof = porting.prove(port, backend)
    assert proof.agrees and proof.tolerance == 1e-4 and proof.value < 1e-6
    with multiop.use_backend(backend):
        assert ops.dtype(port.function(port.params, port.state, np.asarray(x))[0]) == "float32"


def test_one_error_lists_all_that_has_no_translation():
    def refused(params, x):
        x = lax.bessel_i1e(x) + lax.bessel_i1e(x + 1)
        return x + lax.linalg.lu(x)[0] + jax.random.normal(jax.random.wrap_key_data(params["key"]), x.shape)

    with pytest.raises(errors.TranslationError) as caught:
        bound = functools.partial(refused, {"w": normal(3)} | {"key": jnp.zeros(2, "uint32")})
        porting.trace(bound, normal(3, 3))
    message = str(caught.value)
    assert re.search(r"bessel_i1e, 2 times: .*test_trace_jax\.py:\d+", message)
    assert re.search(r"\blu, 1 time", message) and "random_wrap" in message


def unknown(params, x):
    y = jnp.tanh(x @ params["w"])
    low = lax.bessel_i1e(y) + lax.bessel_i1e(2 * y)
    scaled, _ = lax.scan(lambda total, row: (total + lax.bessel_i0e(row), None), jnp.ones(y.shape[1]), y)
    return low, scaled, lax.reduce_precision(y, 8, 10)


def test_bridges_stay_where_there_is_no_translation(tmp_path, backend):
    model, x = functools.partial(unknown, {"w": normal(4, 3)}), normal(5, 4)
    with pytest.raises(errors.TranslationError, match=r"bessel_i1e, 2 times(?s:.*)partial=True"):
        porting.trace(model, x)
    porting.trace(model, x, partial=True).save(tmp_path)
    port = porting.load(tmp_path)
    assert sorted(port.bridged) == ["bessel_i0e", "bessel_i1e", "bessel_i1e", "reduce_precision"]
    assert "import jax\n" in port.source and "# no translation: these run in JAX\n" in port.source
    assert "lambda x1: jax.lax.reduce_precision_p.bind(x1, exponent_bits=8, mantissa_bits=10)" in port.source
    proof = porting.prove(port, backend)
    assert proof.agrees and proof.compared == 4 and max(proof.value, proof.gradient) < 1e-12


def test_a_bridge_does_not_stand_for_what_would_be_lost():
    def counting(params, x):
        jax.debug.callback(lambda x: None, x)
        return jax.pure_callback(lambda x: np.sin(x), x, x) * params["w"]

    def drawing(params, x):
        return x * params["w"] + jax.random.normal(jax.random.wrap_key_data(params["key"]), x.shape)

    for function, word in ((counting, "pure_callback"), (drawing, "random_wrap")):
        bound = functools.partial(function, {"w": normal(3), "key": jnp.zeros(2, "uint32")})
        with pytest.raises(errors.TranslationError, match=word):
            porting.trace(bound, normal(3), partial=True)


def doubled_sine(x, factor=1.0):
    return np.sin(np.asarray(x)) * 2 * factor


def sine(x):
    return jax.pure_callback(doubled_sine, jax.ShapeDtypeStruct(x.shape, x.dtype), x, factor=1.5)


@jax.custom_vjp
def differentiable_sine(x):
    return sine(x)


differentiable_sine.defvjp(lambda x: (sine(x), x), lambda x, upstream: (upstream * jnp.cos(x) * 3,))


def test_a_callback_of_a_module_stays(backend):
    def model(params, x):
        y = x @ params["w"]
        return differentiable_sine(y) + y * sine(lax.stop_gradient(y))

    model, x = functools.partial(model, {"w": normal(4, 3)}), normal(5, 4)
    with pytest.raises(errors.TranslationError, match=r"pure_callback, 2 times(?s:.*)partial=True"):
        porting.trace(model, x)
    port = porting.trace(model, x, partial=True)
    proof = porting.prove(port, backend)
    assert proof.agrees and proof.compared == 2 and max(proof.value, proof.gradient) < 1e-12
    larger = np.concatenate([x, x])
    with multiop.use_backend(backend):
        assert np.allclose(port.function(port.params, port.state, larger)[0], model(larger))


def test_a_callback_has_no_gradient_of_its_own():
    with multiop.use_backend("numpy"):
        bridged = porting.bridge(sine, "jax")
        assert np.allclose(bridged(np.ones(3)), 3 * np.sin(1))
        with pytest.raises(errors.NoGradientError, match="sine has no gradient in jax"):
            multiop.grad(lambda x: ops.sum(bridged(x)))(np.ones(3))


def test_random_numbers_in_evaluation_are_refused():
    model, (x,) = of_linen("dropped")
    bound = functools.partial(
        lambda variables, x: model[0].apply(variables, x, rngs={"dropout": jax.random.key(0)}), model[1]
    )
    porting.trace(bound, x)  # a key that is written down gives numbers that are known

    def drawing(x, key=None):
        return x * jax.random.uniform(key, x.shape) + jax.random.normal(key, x.shape)

    with pytest.raises(errors.TranslationError, match="drawn twice"):
        porting.trace(drawing, x, training=True)


def test_a_mean_that_is_zero_but_for_rounding_is_proven():
    """The second normalization is given what has no mean."""

    def twice(params, state, x):
        y = x @ params["w"]
        y = (y - y.mean(0)) / y.std(0)
        mean = 0.9 * state["mean"] + 0.1 * y.mean(0)
        return y - state["mean"], {"mean": mean, "var": state["var"] + y.var(0)}

    state = {"mean": jnp.zeros(3), "var": jnp.ones(3)}
    port = porting.trace(functools.partial(twice, {"w": normal(4, 3)}, state), normal(5, 4), training=True)
    assert 0 < port.recorded(True)["state"]["mean"][1] < 1e-14
    for backend in multiop.available_backends():
        assert porting.prove(port, backend, training=True).agrees


def test_numbers_from_python_and_numpy_are_refused():
    with pytest.raises(errors.TranslationError, match=r"a draw from random"):
        porting.trace(lambda x: x * random.random(), normal(3))
    with pytest.raises(errors.TranslationError, match=r"a draw from numpy\.random"):
        porting.trace(lambda x: x * np.random.uniform(size=3), normal(3))  # noqa: NPY002 - what is refused


def test_what_is_not_a_model_is_refused():
    with pytest.raises(errors.ArgumentTypeError, match="flax or equinox"):
        porting.trace(3, normal(2))
    with pytest.raises(errors.ArgumentTypeError, match="inputs must be arrays"):
        porting.trace(functools.partial(perceptron, layers(2, 2)), "x")
    nn = pytest.importorskip("flax.linen")
    with pytest.raises(errors.ArgumentError, match="give \\(module, variables\\)"):
        porting.trace(nn.Dense(3), normal(2, 3))


def test_saved_and_loaded(tmp_path):
    port, inputs, (outputs, _), _ = made("linen, conv net")
    port.save(tmp_path)
    again = porting.load(tmp_path)
    assert again.source == port.source
    with multiop.use_backend("jax"):
        computed, _, _ = ported.ported(again, inputs)
    assert jax_rows.error_between(computed, outputs) < 1e-10


MAKE = """
import functools
import jax.numpy as jnp

def net(params, x):
    return jnp.tanh(x @ params["w"]) * params["s"]

def make():
    return functools.partial(net, {"w": jnp.ones((4, 3)) * 0.3, "s": jnp.arange(3.0)}), (jnp.ones((5, 4)),)
"""


def test_the_command_writes_and_proves(tmp_path):
    from typer.testing import CliRunner

    from multiop import cli

    (tmp_path / "model.py").write_text(MAKE)
    target = f"{tmp_path / 'model.py'}::make"
    done = CliRunner().invoke(cli.app, ["port", target, "--out", str(tmp_path / "out"), "--backends=jax", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["agree"] and (tmp_path / "out" / "net.py").exists()


def test_what_an_original_with_complex_sums_computes_is_recorded_right(backend):
    params = {"w": normal(6, 8, 2)}

    def model(params, x):
        y = jnp.einsum("bti,in->btn", x, params["w"][..., 0] + 1j * params["w"][..., 1])
        return jnp.einsum("btn,bts->ns", y, jnp.conj(y[..., :2])).real

    port = porting.trace(functools.partial(model, params), normal(2, 7, 6))
    assert porting.prove(port, backend).agrees
