"""Weights go from PyTorch to Keras, flax and equinox and back; the native layers then compute the same."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import importlib.util
from pathlib import Path

from multiop import errors, porting

spec = importlib.util.spec_from_file_location("native_layers", Path(__file__).with_name("native_layers.py"))
native_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native_layers)
nn = torch.nn
pytestmark = pytest.mark.cross
CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def carried(layer, target):
    """Return the target's weights made of those of a layer; the way back is exact."""
    source = porting.read_weights(layer)
    weight_map = porting.map_weights(source, target)
    made = weight_map.apply(source)
    inverse = weight_map.invert()
    back = inverse.apply(made)
    again = weight_map.apply(porting.Weights(back.params, back.state | extra(source, back)))
    for name, x in made.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], x, err_msg=name)
    if " sum " not in f" {weight_map} ":
        for name, x in back.arrays.items():
            np.testing.assert_array_equal(source.arrays[name], x, err_msg=name)
    return made


def extra(source, back):
    return {name: x for name, x in source.state.items() if name not in back.state} | {
        name: x | back.state[name] for name, x in source.state.items() if name in back.state and isinstance(x, dict)
    }


@pytest.fixture(scope="module")
def keras():
    pytest.importorskip("tensorflow")
    return pytest.importorskip("keras")


def keras_layers(keras):
    layers = keras.layers
    return {
        "dense": lambda: layers.Dense(4),
        "conv1d": lambda: layers.Conv1D(4, 3),
        "conv2d": lambda: layers.Conv2D(4, (3, 2)),
        "conv3d": lambda: layers.Conv3D(3, 2),
        "grouped": lambda: layers.Conv2D(4, 3, groups=2),
        "depthwise": lambda: layers.DepthwiseConv2D(3, depth_multiplier=2),
        "transposed": lambda: layers.Conv2DTranspose(3, (3, 2), strides=2),
        "batch norm": lambda: layers.BatchNormalization(epsilon=1e-3),
        "layer norm": lambda: layers.LayerNormalization(epsilon=1e-3),
        "embedding": lambda: layers.Embedding(5, 5),
        "lstm": lambda: layers.LSTM(3, return_sequences=True),
        "gru": lambda: layers.GRU(3, return_sequences=True),
        "rnn": lambda: layers.SimpleRNN(3, return_sequences=True),
        "bidirectional": lambda: layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        "attention": lambda: layers.MultiHeadAttention(2, 2),
    }


@pytest.mark.parametrize("name", native_layers.TORCH)
def test_keras(keras, name):
    layer, x, expected = native_layers.of_torch(name)
    inputs = keras.Input(x.shape[1:], dtype=str(x.dtype))
    like = keras_layers(keras)[name]()
    model = keras.Model(inputs, like(inputs, inputs) if name == "attention" else like(inputs))
    porting.write_weights(model, carried(layer, model))
    np.testing.assert_allclose(np.asarray(model(x)), expected, **CLOSE)


def flax_layers(linen):
    recurrent = lambda cell: linen.RNN(cell)
    return {
        "dense": lambda: linen.Dense(4),
        "conv1d": lambda: linen.Conv(4, (3,), padding="VALID"),
        "conv2d": lambda: linen.Conv(4, (3, 2), padding="VALID"),
        "conv3d": lambda: linen.Conv(3, (2, 2, 2), padding="VALID"),
        "grouped": lambda: linen.Conv(4, (3, 3), padding="VALID", feature_group_count=2),
        "depthwise": lambda: linen.Conv(6, (3, 3), padding="VALID", feature_group_count=3),
        "transposed": lambda: linen.ConvTranspose(3, (3, 2), strides=(2, 2), padding="VALID"),
        "batch norm": lambda: linen.BatchNorm(use_running_average=True, epsilon=1e-3),
        "layer norm": lambda: linen.LayerNorm(epsilon=1e-3),
        "embedding": lambda: linen.Embed(5, 5),
        "lstm": lambda: recurrent(linen.LSTMCell(3)),
        "gru": lambda: recurrent(linen.GRUCell(3)),
        "rnn": lambda: recurrent(linen.SimpleCell(3)),
        "attention": lambda: linen.MultiHeadDotProductAttention(2),
    }


def in_a_module(linen, make):
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            return make()(x)

    return Net()


@pytest.mark.parametrize("name", [name for name in native_layers.TORCH if name != "bidirectional"])
def test_linen(name):
    linen = pytest.importorskip("flax.linen")
    import jax

    layer, x, expected = native_layers.of_torch(name)
    module = in_a_module(linen, flax_layers(linen)[name])
    variables = module.init(jax.random.key(0), x)
    if name == "transposed":  # whether it has transpose_kernel is not in the variables
        weight_map = porting.map_weights(layer, variables)
        assert len(weight_map.ambiguous) == 1
        (kernel,) = weight_map.ambiguous
        made = weight_map.choose(
            kernel, next(n for n, way in enumerate(weight_map.ambiguous[kernel]) if "flip" in way)
        ).apply(layer)
    else:
        made = carried(layer, variables)
    filled = porting.write_weights(variables, made)
    np.testing.assert_allclose(np.asarray(module.apply(filled, x)), expected, **CLOSE)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_a_bound_module_of_linen_tells_the_layouts_of_its_kernels(is_transposed):
    linen = pytest.importorskip("flax.linen")
    import jax

    class Net(linen.Module):
        def setup(self):
            options = {"strides": (2, 2), "padding": "VALID", "transpose_kernel": is_transposed}
            self.blocks = [{"up": linen.ConvTranspose(3, (3, 2), **options)}]

        def __call__(self, x):
            return self.blocks[0]["up"](x)

    layer, x, expected = native_layers.of_torch("transposed")
    variables = Net().init(jax.random.key(0), x)
    bound = Net().bind(variables)
    assert porting.map_weights(layer, variables).ambiguous
    filled = porting.write_weights(variables, carried(layer, bound))
    np.testing.assert_allclose(np.asarray(Net().apply(filled, x)), expected, **CLOSE)
    compact = in_a_module(linen, lambda: linen.ConvTranspose(3, (3, 2), transpose_kernel=is_transposed))
    assert porting.map_weights(layer, compact.bind(compact.init(jax.random.key(0), x))).ambiguous


def nnx_layers(nnx, rngs):
    return {
        "dense": lambda: nnx.Linear(4, 4, rngs=rngs),
        "conv2d": lambda: nnx.Conv(3, 4, (3, 2), padding="VALID", rngs=rngs),
        "depthwise": lambda: nnx.Conv(3, 6, (3, 3), padding="VALID", feature_group_count=3, rngs=rngs),
        "transposed": lambda: nnx.ConvTranspose(3, 3, (3, 2), strides=(2, 2), padding="VALID", rngs=rngs),
        "batch norm": lambda: nnx.BatchNorm(3, use_running_average=True, epsilon=1e-3, rngs=rngs),
        "embedding": lambda: nnx.Embed(5, 5, rngs=rngs),
        "lstm": lambda: nnx.RNN(nnx.LSTMCell(3, 3, rngs=rngs), rngs=rngs),
        "gru": lambda: nnx.RNN(nnx.GRUCell(3, 3, rngs=rngs), rngs=rngs),
        "attention": lambda: nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs),
    }


@pytest.mark.parametrize(
    "name", ["dense", "conv2d", "depthwise", "transposed", "batch norm", "embedding", "lstm", "gru", "attention"]
)
def test_nnx(name):
    nnx = pytest.importorskip("flax.nnx")
    layer, x, expected = native_layers.of_torch(name)
    module = nnx_layers(nnx, nnx.Rngs(0))[name]()
    if name == "gru":  # nnx's cell has no bias inside of the last gate: what would be dropped is listed
        weight_map = porting.map_weights(layer, module)
        assert weight_map.unused == ["layer.bias_hh_l0"]
        with torch.no_grad():
            layer.layer.bias_hh_l0[6:] = 0.0
        expected = native_layers.run_torch(layer, x, False)
        made = weight_map.ignore("layer.bias_hh_l0").apply(layer)
    else:
        made = carried(layer, module)
    porting.write_weights(module, made)
    np.testing.assert_allclose(np.asarray(module(x)), expected, **CLOSE)
    state = nnx.state(module)
    again = porting.read_weights(porting.write_weights(state, porting.read_weights(module)))
    for key, value in porting.read_weights(module).arrays.items():
        np.testing.assert_array_equal(again.arrays[key], value)


def equinox_layers(nn, key):
    return {
        "dense": lambda: nn.Linear(4, 4, key=key),
        "conv2d": lambda: nn.Conv2d(3, 4, (3, 2), key=key),
        "depthwise": lambda: nn.Conv2d(3, 6, 3, groups=3, key=key),
        "transposed": lambda: nn.ConvTranspose2d(3, 3, (3, 2), stride=2, key=key),
        "layer norm": lambda: nn.LayerNorm(4, eps=1e-3),
        "embedding": lambda: nn.Embedding(5, 5, key=key),
        "lstm": lambda: nn.LSTMCell(3, 3, key=key),
        "gru": lambda: nn.GRUCell(3, 3, key=key),
        "attention": lambda: nn.MultiheadAttention(
            2, 4, use_query_bias=True, use_key_bias=True, use_value_bias=True, use_output_bias=True, key=key
        ),
    }


@pytest.mark.parametrize(
    "name", ["dense", "conv2d", "depthwise", "transposed", "layer norm", "embedding", "lstm", "gru", "attention"]
)
def test_equinox(name):
    equinox = pytest.importorskip("equinox")
    import jax
    import jax.numpy as jnp

    layer, x, expected = native_layers.of_torch(name)
    like = equinox_layers(equinox.nn, jax.random.key(0))[name]()
    filled = porting.write_weights(like, carried(layer, like))
    if name in ("lstm", "gru"):

        def run(sequence):
            state, outputs = (jnp.zeros(3),) * 2 if name == "lstm" else jnp.zeros(3), []
            for step in sequence:
                state = filled(step, state)
                outputs.append(state[0] if name == "lstm" else state)
            return jnp.stack(outputs)

    elif name == "attention":
        run = lambda x_t: filled(x_t, x_t, x_t)
    elif native_layers.TORCH[name][2]:
        run = lambda x_t: jnp.moveaxis(filled(jnp.moveaxis(x_t, -1, 0)), 0, -1)
    else:
        run = jax.vmap(filled) if name in ("layer norm", "embedding") else filled
    np.testing.assert_allclose(np.stack([np.asarray(run(jnp.asarray(row))) for row in x]), expected, **CLOSE)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 4)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x))).mean((2, 3))
        return self.fc2(torch.tanh(self.fc1(x)))


def test_a_network_goes_to_flax_and_back():
    linen = pytest.importorskip("flax.linen")
    import jax

    class Like(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(4, (3, 3), padding="VALID")(x)
            x = linen.BatchNorm(use_running_average=True)(x)
            x = linen.Dense(4)(linen.relu(x).mean((1, 2)))
            return linen.Dense(4)(linen.tanh(x))

    net, module = Net().eval(), Like()
    x = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype("float32")
    variables = porting.write_weights(
        module.init(jax.random.key(0), x), carried(net, module.init(jax.random.key(0), x))
    )
    expected = net(torch.from_numpy(native_layers.first(x).copy()))
    np.testing.assert_allclose(np.asarray(module.apply(variables, x)), expected.detach().numpy(), **CLOSE)


def test_torch_files_and_half_precision(tmp_path):
    net = Net().to(torch.bfloat16)
    weights = porting.read_weights(net)
    assert list(weights.state) == ["norm"]
    assert weights.arrays["fc1.weight"].dtype.name == "bfloat16"
    for suffix in (".pt", ".safetensors", ".npz"):
        read = porting.read_weights(porting.write_weights(tmp_path / f"w{suffix}", weights), like=net)
        fresh = porting.write_weights(Net().to(torch.bfloat16), read)
        for name, x in net.state_dict().items():
            assert fresh.state_dict()[name].dtype == x.dtype
            assert torch.equal(fresh.state_dict()[name], x)
    assert porting.read_weights(torch.load(tmp_path / "w.pt")).state["norm"].keys() == weights.state["norm"].keys()
    with pytest.raises(errors.ArgumentError, match="stem.weight, .* missing"):
        porting.write_weights(net, {"fc1": {"weight": np.ones((4, 4))}})
    with pytest.raises(errors.ArgumentError, match=r"stem.weight: float32 where the model has bfloat16: cast=True"):
        porting.write_weights(net, porting.read_weights(Net()))
    porting.write_weights(Net(), weights)  # each bfloat16 is a float32
    assert porting.write_weights(net, porting.read_weights(Net()), cast=True) is net
    with pytest.raises(errors.ArgumentError, match=r"may be in \['model'\]"):
        porting.read_weights({"model": net.state_dict(), "epoch": torch.ones(1), "lr": 0.1, "net": net.stem.weight})


def test_variables_of_tensorflow():
    tf = pytest.importorskip("tensorflow")

    class Affine(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.reshape(tf.range(6.0), (2, 3)), name="w")
            self.steps = tf.Variable(3, trainable=False)

    module = Affine()
    weights = porting.read_weights(module)
    assert (list(weights.params), list(weights.state)) == (["w"], ["steps"])
    porting.write_weights(module, porting.Weights({"w": np.ones((2, 3), "float32")}, weights.state))
    assert float(tf.reduce_sum(module.w)) == 6.0
    listed = porting.read_weights([tf.Variable([1.0], name="a/b"), tf.Variable([2.0], name="a/b")])
    assert [float(x[0]) for x in listed.arrays.values()] == [1.0, 2.0]


def test_both_spellings_of_weight_norm():
    utils = torch.nn.utils
    x = torch.ones(2, 3, 8)
    for make in (lambda: torch.nn.Linear(8, 4), lambda: torch.nn.Conv1d(3, 4, 2)):
        with pytest.warns(FutureWarning, match="weight_norm"):
            old = torch.nn.Sequential(utils.weight_norm(make()))
        new = torch.nn.Sequential(utils.parametrizations.weight_norm(make()))
        for source, target in ((old, new), (new, old)):
            torch.nn.init.normal_(next(source.parameters()))
            weight_map = porting.map_weights(source, target)
            assert not weight_map.unresolved
            porting.write_weights(target, weight_map.apply(source))
            torch.testing.assert_close(target(x), source(x))
