"""References of Keras, flax and equinox: their layers are found, and a planted mistake in each."""

from __future__ import annotations

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
    wrong = {**params, names[0]: {**params[names[0]], "kernel": params[names[0]]["kernel"].swapaxes(0, 1)}}
    assert "height and width of the kernel" in porting.compare(reference, candidate({}), [X], params=wrong).cause


def test_keras_on_tensorflow(backend, passed_alone):
    """In a process of its own: other tests run Keras on NumPy."""
    assert passed_alone("on_keras.py", MULTIOP_BACKEND="jax", KERAS_BACKEND="tensorflow") == 3


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
