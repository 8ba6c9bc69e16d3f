"""References of Keras, flax and equinox: their layers are found, and a planted mistake in each."""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from multiop import ops, porting
from multiop.porting import tap

pytestmark = [pytest.mark.cross, pytest.mark.once]
X = np.random.default_rng(3).normal(size=(2, 6, 6, 3))


def network(p, x, names, eps=1e-3, act=ops.tanh, padding="same"):
    """Port of the same small network in the layouts of Keras and flax."""
    conv, norm, dense = names
    x = tap(conv, ops.conv(x, p[conv]["kernel"], 2, padding, data_format="channels_last") + p[conv]["bias"])
    n = p[norm]
    mean, var = n.get("moving_mean", n.get("mean")), n.get("moving_variance", n.get("var"))
    gamma, beta = n.get("gamma", n.get("scale")), n.get("beta", n.get("bias"))
    x = tap(norm, (x - mean) / ops.sqrt(var + eps) * gamma + beta)
    x = ops.mean(act(x), (1, 2))
    return tap(dense, x @ p[dense]["kernel"] + p[dense]["bias"])


def merged(weights, collection=None):
    state = weights.state if collection is None else weights.state[collection]
    return {name: {**leaves, **state.get(name, {})} for name, leaves in weights.params.items()}


def filled(weights):
    rng = np.random.default_rng(1)
    for tree in (weights.params, weights.state.get("batch_stats", weights.state)):
        for leaves in tree.values():
            for name, x in leaves.items():
                leaves[name] = rng.uniform(0.3, 1.3, x.shape).astype(x.dtype)
    return weights


def check(reference, params, names):
    candidate = lambda change: lambda p, x: network(p, x, names, **change)
    computed = porting.compare(reference, candidate({}), [X], params=params)
    assert computed.agree, f"{computed}"
    assert {c.layer for c in computed.checks} >= set(names)
    for change, layer, cause in (
        ({"eps": 1e-5}, names[1], "epsilon 1e-05 where the reference has 0.001"),
        ({"act": ops.relu}, names[2], None),
    ):
        computed = porting.compare(reference, candidate(change), [X], params=params)
        assert computed.first_difference.layer == layer, computed.verdict
        assert cause is None or cause in computed.cause
    wrong = {**params, names[0]: {**params[names[0]], "bias": 0 * params[names[0]]["bias"]}}
    assert porting.compare(reference, candidate({}), [X], params=wrong).cause == "the bias is missing"


@pytest.fixture
def x64():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield jax


def test_linen(backend, x64):
    linen = pytest.importorskip("flax.linen")
    options = {"param_dtype": "float64", "dtype": "float64"}

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(4, (3, 3), 2, name="conv", **options)(x)
            x = linen.BatchNorm(use_running_average=True, epsilon=1e-3, name="norm", **options)(x)
            return linen.Dense(5, name="dense", **options)(linen.tanh(x).mean((1, 2)))

    variables = x64.tree.map(lambda x: x.astype("float64"), Net().init(x64.random.key(0), X))  # the statistics too
    weights = filled(porting.read_weights(variables))
    reference = Net().bind(porting.write_weights(variables, weights))
    check(reference, merged(weights, "batch_stats"), ("conv", "norm", "dense"))


def test_nnx(backend, x64):
    nnx = pytest.importorskip("flax.nnx")
    options = {"param_dtype": "float64", "dtype": "float64", "rngs": nnx.Rngs(0)}

    class Net(nnx.Module):
        def __init__(self):
            self.conv = nnx.Conv(3, 4, (3, 3), 2, **options)
            self.norm = nnx.BatchNorm(4, use_running_average=True, epsilon=1e-3, **options)
            self.dense = nnx.Linear(4, 5, **options)

        def __call__(self, x):
            return self.dense(nnx.tanh(self.norm(self.conv(x))).mean((1, 2)))

    model = Net()
    for statistic in (model.norm.mean, model.norm.var):
        statistic.set_value(statistic[...].astype("float64"))
    weights = filled(porting.read_weights(model))
    porting.write_weights(model, weights)
    check(model, merged(weights), ("conv", "norm", "dense"))


@pytest.mark.parametrize("epsilon", [1e-5, 1e-3])
def test_equinox(epsilon, backend, x64):
    """A module is called with one example; the layers inside of it are found by their fields."""
    equinox = pytest.importorskip("equinox")

    class Net(equinox.Module):
        layers: list
        norm: equinox.nn.LayerNorm

        def __init__(self, keys):
            self.layers = [equinox.nn.Linear(5, 6, key=keys[0]), equinox.nn.Linear(6, 3, key=keys[1])]
            self.norm = equinox.nn.LayerNorm(6)

        def __call__(self, x):
            return self.layers[1](self.norm(x64.nn.tanh(self.layers[0](x))))

    model = Net(x64.random.split(x64.random.key(0)))
    model = x64.tree.map(lambda x: x.astype("float64") if equinox.is_inexact_array(x) else x, model)

    def candidate(params, x):
        def linear(n, x):
            weight, bias = params["layers"][n]["weight"], params["layers"][n]["bias"]
            return porting.tap(f"layers.{n}", ops.matmul(weight, x) + bias)

        x = ops.tanh(linear("0", x))
        x = (x - ops.mean(x)) / ops.sqrt(ops.var(x) + epsilon)
        x = porting.tap("norm", x * params["norm"]["weight"] + params["norm"]["bias"])
        return linear("1", x)

    x = np.random.default_rng(0).normal(size=5)
    computed = porting.compare(model, candidate, [x], params=porting.read_weights(model).params)
    assert {check.layer for check in computed.checks} >= {"layers.0", "norm", "layers.1"}
    assert computed.agree == (epsilon == 1e-5)
    assert computed.agree or computed.first_difference.layer == "norm"


CALLABLES = {
    "partial": lambda jax, f, params: functools.partial(f, params),
    "partial of a partial": lambda jax, f, params: functools.partial(functools.partial(f, params)),
    "partial of a jitted function": lambda jax, f, params: functools.partial(jax.jit(f), params),
    "Partial": lambda jax, f, params: jax.tree_util.Partial(f, params),
    "partial with an option": lambda jax, f, params: functools.partial(f, params, scale=3.0),
    "jitted partial": lambda jax, f, params: jax.jit(functools.partial(f, params)),
    "jitted lambda": lambda jax, f, params: jax.jit(lambda x: f(params, x)),
    "lambda": lambda jax, f, params: lambda x: f(params, x),
    "bound method": lambda jax, f, params: Holder(f, params).method,
    "object": lambda jax, f, params: Holder(f, params),
}


class Holder:
    def __init__(self, function, params):
        self.function, self.params = function, params

    def __call__(self, x):
        return self.function(self.params, x)

    method = __call__


SHORT = ("partial", "lambda", "jitted lambda")
KINDS = [kind if kind in SHORT else pytest.param(kind, marks=pytest.mark.tier("full")) for kind in CALLABLES]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_called_in_jax_is_compared(kind, backend, x64):
    jnp = x64.numpy

    def f(params, x, scale=2.0):
        return scale * jnp.tanh(x @ params["w"])

    x = X[0, 0]
    model = CALLABLES[kind](x64, f, {"w": jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)})
    port = porting.trace(model, jnp.asarray(x))
    comparison = porting.compare(model, port, [x])
    assert comparison.agree, comparison
    if port.params:
        assert "w" in {check.name for check in comparison.checks}
        port.params["w"] = port.params["w"] * 1.01
        assert porting.compare(model, port, [x]).first_difference is not None


def test_a_function_of_jax_is_compared_with_a_function_of_ops(backend, x64):
    jnp = x64.numpy
    tanh = x64.custom_vjp(jnp.tanh)
    tanh.defvjp(lambda x: (jnp.tanh(x), x), lambda x, upstream: (upstream,))  # not the derivative
    params = {"w": jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)}
    model = functools.partial(lambda params, state, x: (tanh(x @ params["w"]) + state["b"], state), params, {"b": 1.0})

    def candidate(params, x):
        return ops.tanh(x @ params["w"]) + 1.0

    comparison = porting.compare(model, candidate, [X[0, 0]], params={"w": np.asarray(params["w"])})
    assert {check.quantity for check in comparison.differences} == {"input gradient", "parameter gradient"}


@pytest.mark.tier("full")
def test_a_gradient_that_rounding_moves_as_far_is_vacuous(backend, x64):
    """The first step of Adam is nearly the sign of a gradient: its own gradient is what is left of two large terms."""
    jnp = x64.numpy

    def step(params, x):
        g = x64.grad(lambda params: jnp.mean(jnp.tanh(x @ params["w"]) ** 2))(params)["w"]
        return params["w"] - 0.01 * g / (jnp.sqrt(g * g) + 1e-8)

    def candidate(params, x, more=0.0):
        z = ops.tanh(x @ params["w"])
        g = ops.transpose(x) @ (z * (1 - z * z)) * (2 / 24)
        total = ops.sum(x)
        return params["w"] - 0.01 * g / (ops.sqrt(g * g) + 1e-8) + more * (total - ops.stop_gradient(total))

    x, params = X[0, 0], {"w": np.linspace(-1.0, 1.0, 12).reshape(3, 4)}
    model = functools.partial(step, {"w": jnp.asarray(params["w"])})
    comparison = porting.compare(model, candidate, [x], params=params)
    assert not comparison.differences
    assert {check.quantity for check in comparison.vacuous if "it moves by" in check.detail} == {"input gradient"}
    wrong = porting.compare(model, functools.partial(candidate, more=1e-4), [x], params=params)
    assert {check.quantity for check in wrong.differences} == {"input gradient"}


@pytest.mark.parametrize("kind", ["module", pytest.param("dict", marks=pytest.mark.tier("full"))])
def test_modules_of_nnx_that_a_function_is_given_follow_the_mode(kind, backend, x64):
    nnx = pytest.importorskip("flax.nnx")
    options = {"param_dtype": "float64", "rngs": nnx.Rngs(0)}
    net = nnx.Sequential(nnx.Linear(3, 4, **options), nnx.BatchNorm(4, **options), nnx.Dropout(0.5, rngs=nnx.Rngs(1)))
    tree, prefix = (net, "layers") if kind == "module" else ({"net": net}, "net.layers")
    model = functools.partial(lambda tree, x: 2.0 * (tree if kind == "module" else tree["net"])(x), tree)
    x = X[0, 0]
    port = porting.trace(model, x64.numpy.asarray(x))
    assert not port.draws(False) and porting.prove(port, backend).agrees
    mean, variance = (net.layers[1].mean[...], net.layers[1].var[...])
    expected = x @ np.asarray(net.layers[0].kernel[...]) / np.sqrt(np.asarray(variance) + 1e-5)
    computed, _ = port.function(port.params, port.state, x)
    np.testing.assert_allclose(ops.convert_to_numpy(computed), 2.0 * (expected - np.asarray(mean)), rtol=1e-6)
    comparison = porting.compare(model, port, [x])
    assert comparison.agree and f"{prefix}.0" in {check.layer for check in comparison.checks}, comparison
    assert porting.trace(model, x64.numpy.asarray(x), training=True).draws(True)
    assert not net.layers[1].use_running_average and not net.layers[2].deterministic


@pytest.mark.tier("full")
def test_equinox_with_a_state_in_both_modes(backend, x64):
    """Dropout needs a key in training alone; a state of equinox can be read once."""
    equinox, jax = pytest.importorskip("equinox"), x64

    class Net(equinox.Module):
        fc: equinox.nn.Linear
        norm: equinox.nn.BatchNorm
        drop: equinox.nn.Dropout

        def __init__(self):
            self.fc = equinox.nn.Linear(3, 4, key=jax.random.key(0))
            self.norm, self.drop = equinox.nn.BatchNorm(4, "batch", mode="batch"), equinox.nn.Dropout(0.5)

        def __call__(self, x, state, key):
            x, state = self.norm(self.fc(x), state)
            return self.drop(x, key=key), state

    def batched(net, state, x, key=None):
        rows = jax.vmap(net, axis_name="batch", in_axes=(0, None, None), out_axes=(0, None))
        return rows(x, state, key)

    net, state = equinox.nn.make_with_state(Net)()
    model, x = functools.partial(batched, net, state), X[0, 0]
    port = porting.trace(model, jax.numpy.asarray(x))
    assert not port.draws(False) and porting.prove(port, backend).agrees
    assert porting.compare(model, port, [x]).agree
    model = functools.partial(batched, equinox.tree_at(lambda net: net.drop.p, net, 0.0), state)
    port = porting.trace(model, jax.numpy.asarray(x), training=True)
    comparison = porting.compare(model, port, [x], training=True)
    assert not comparison.differences and {c.name for c in comparison.vacuous} == {"fc.bias"}, comparison


@pytest.mark.tier("full")
def test_linen_with_its_variables(backend, x64):
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            dense = linen.Dense(3, param_dtype="float64")
            x = dense(linen.tanh(dense(x)))
            return linen.BatchNorm(use_running_average=not train, param_dtype="float64")(x)

    x = X[0, 0]
    variables = Net().init(x64.random.key(0), x, False)
    variables = x64.tree.map(lambda x: x.astype("float64"), variables)
    for model in ((Net(), variables), Net().bind(variables)):
        port = porting.trace(model, x64.numpy.asarray(x), training=True, taps=True)
        for training in (False, True):
            comparison = porting.compare(model, port, [x], training=training)
            assert not comparison.differences, comparison
            assert {check.layer for check in comparison.checks} >= {"Dense_0", "Dense_0#2", "BatchNorm_0"}
            assert "statistics" in {check.quantity for check in comparison.checks}
