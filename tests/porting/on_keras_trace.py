"""Keras models on TensorFlow as source: `test_trace_tensorflow.py` runs this file in a process of its own."""

from __future__ import annotations

import functools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
import tensorflow_rows
from ported import error_between, ported

import multiop
from multiop import errors, ops, porting
from multiop.porting import _weights
from multiop.porting.tensorflow import weights

keras.config.set_floatx("float64")
multiop.enable_x64()
L = keras.layers


@keras.saving.register_keras_serializable()
class Block(L.Layer):
    """A layer of the user's own: a residual block."""

    def __init__(self, size, **options):
        super().__init__(**options)
        self.conv = L.Conv2D(size, 3, padding="same", use_bias=False, name="conv")
        self.norm = L.BatchNormalization(momentum=0.9, name="norm")

    def call(self, x, training=False):
        return x + keras.ops.relu(self.norm(self.conv(x), training=training))


def conv_net():
    x = inputs = keras.Input((12, 12, 3))
    x = L.Conv2D(4, 3, strides=2, padding="same", activation="silu", name="stem")(L.Rescaling(0.5, 0.1)(x))
    x = L.LayerNormalization(name="first")(x)
    for i in range(3):
        x = Block(4, name=f"block{i}")(x)
    x = L.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = L.SeparableConv2D(6, 3, strides=2, name="separable")(x)
    x = L.MaxPooling2D(2, padding="same")(x)
    x = L.Dense(5, "gelu", name="dense")(L.Flatten()(x))
    return keras.Model(inputs, L.Softmax()(L.Dense(3, name="head")(x)))


def numbered(is_named=False):
    """Layers that Keras numbers, or whose author gave those of one block one ending."""

    def layer(kind, *args, **options):
        name = options.pop("name")
        return kind(*args, **options, **({"name": name} if is_named else {}))

    def block(x, i, pool=False):
        x = L.AveragePooling2D(3, 1, "same")(x) if pool else x
        x = layer(L.Conv2D, 4, 3, padding="same", name=f"conv_1_cell_{i}")(x)
        return L.Activation("relu")(layer(L.BatchNormalization, name=f"bn_cell_{i}")(x))

    keras.utils.clear_session()  # the numbers begin again
    x = inputs = keras.Input((6, 6, 3))
    x = block(x, 0)
    y = block(block(x, 1), 2)
    x = L.Concatenate()([y, block(x, 3, pool=True)])
    for i in (4, 5, 6):
        x = block(x, i)
    return keras.Model(inputs, L.Dense(2, name="head")(L.GlobalAveragePooling2D()(x)))


def scoped():
    """Cells of two blocks in scopes, whose layers have the number of the cell behind the name of the block."""

    def block(x, side, i):
        with keras.name_scope(f"conv_block_{side}_{i}"):
            x = L.SeparableConv2D(4, 3, padding="same", name=f"conv_{side}_{i}")(L.Activation("relu")(x))
            x = L.BatchNormalization(momentum=0.9, name=f"bn_{side}_{i}")(x)
            return L.Conv2D(4, 1, name=f"conv_1_{side}_{i}")(x)

    def cell(x, before, i):
        with keras.name_scope(f"cell_A_{i}"):
            y = L.Conv2D(4, 1, name=f"conv_1_{i}")(before)
            y = L.BatchNormalization(name=f"bn_1_{i}")(y)
            with keras.name_scope("block_1"):
                left = block(x, "left", i)
            with keras.name_scope("block_2"):
                right = block(y, "right", i)
            x = L.Add(name=f"add_{i}")([left, right])
            return L.Concatenate(name=f"concat_{i}")([x, y])

    x = inputs = keras.Input((6, 6, 3))
    before, x = x, L.Conv2D(8, 1, name="stem")(x)
    for i in (1, 2, 3):
        before, x = x, cell(x, before, i)
    return keras.Model(inputs, L.Dense(2, name="head")(L.GlobalAveragePooling2D()(x)))


def flat():
    """Layers whose names say what blocks they are of."""
    x = inputs = keras.Input((8, 8, 4))
    for i in (1, 2, 3, 4):
        size, stride = (4, 1) if i < 4 else (6, 2)
        y = L.Conv2D(size, 3, stride, padding="same", name=f"stage_block{i}_conv")(x)
        y = L.ReLU()(L.BatchNormalization(name=f"stage_block{i}_bn")(y))
        x = L.Add(name=f"stage_block{i}_add")([x, L.Dense(4, name=f"stage_block{i}_dense")(y)]) if i < 4 else y
    return keras.Model(inputs, L.Dense(2, name="stage_block")(L.GlobalAveragePooling2D()(x)))


class Scale(L.Layer):
    """A layer whose variable has no name of its own."""

    def build(self, shape):
        self.scale = self.add_weight(shape=shape[-1:], initializer="ones")

    def call(self, x):
        return x * self.scale


def lettered():
    """Blocks with letters, sums and shortcuts that have no name of a block, and parallel branches."""
    x = inputs = keras.Input((8, 8, 4))
    for letter in "abcd":
        shortcut = L.MaxPooling2D(1, 2)(x) if letter == "d" else x
        y = L.Conv2D(4, 3, 2 if letter == "d" else 1, padding="same", name=f"block1{letter}_conv")(x)
        z = L.Reshape((1, 1, 4))(L.GlobalAveragePooling2D()(y))
        y = y * L.Conv2D(4, 1, activation="sigmoid", name=f"block1{letter}_gate")(z)
        x = shortcut + Scale(name=f"block1{letter}_scale")(L.BatchNormalization(name=f"block1{letter}_bn")(y))
    branches = []
    for side, size in ("left", 1), ("right", 3):
        y = L.ReLU()(L.Conv2D(3, size, padding="same", name=f"{side}_first")(x))
        branches.append(L.ReLU()(L.Conv2D(3, 1, name=f"{side}_second")(y)))
    return keras.Model(inputs, L.Dense(2, name="head")(L.GlobalAveragePooling2D()(L.Concatenate()(branches))))


def recurrent():
    """A recurrent network with attention."""
    x = inputs = keras.Input((6,), dtype="int64")
    x = L.Embedding(7, 8, name="embedding")(x)
    y = L.Bidirectional(L.LSTM(4, return_sequences=True), name="both")(x)
    y = L.GRU(8, return_sequences=True, name="gru")(y)
    y = y + L.MultiHeadAttention(2, 4, name="attention")(y, x)
    y = L.SimpleRNN(3, name="rnn")(L.LayerNormalization(name="norm")(y))
    return keras.Model(inputs, L.Dense(2, name="head")(y))


def convolutions():
    x = inputs = keras.Input((8, 3))
    x = L.Conv1D(4, 3, dilation_rate=2, padding="causal", activation="elu")(x)
    x = L.Conv1DTranspose(4, 3, strides=2, padding="same")(x)
    x = L.AveragePooling1D(2)(x)
    x = L.GroupNormalization(2)(x)
    x = L.Reshape((4, 2, 4))(x)
    x = L.DepthwiseConv2D(2, depth_multiplier=2, padding="same")(x)
    x = L.UpSampling2D(2)(x)
    return keras.Model(inputs, [L.GlobalAveragePooling2D()(x), L.GlobalMaxPooling2D()(x)])


def shared():
    """One normalization twice, and under each time step."""
    norm = L.BatchNormalization(momentum=0.9, name="norm")
    x = inputs = keras.Input((8, 4))
    x = L.TimeDistributed(norm, name="steps")(L.Dense(4, name="dense")(norm(x)))
    return keras.Model(inputs, x)


def dropped():
    return keras.Sequential([keras.Input((4,)), L.Dense(8, "tanh"), L.Dropout(0.5), L.BatchNormalization()])


IMAGES = np.random.default_rng(0).normal(size=(3, 12, 12, 3))
MODELS = {
    "conv net": (conv_net, IMAGES),
    "conv net, training": (conv_net, IMAGES),
    "flat": (flat, IMAGES[:, :8, :8, [0, 1, 2, 0]]),
    "flat, training": (flat, IMAGES[:, :8, :8, [0, 1, 2, 0]]),
    "lettered": (lettered, IMAGES[:, :8, :8, [0, 1, 2, 0]]),
    "lettered, training": (lettered, IMAGES[:, :8, :8, [0, 1, 2, 0]]),
    "numbered": (numbered, IMAGES[:, :6, :6]),
    "numbered, training": (numbered, IMAGES[:, :6, :6]),
    "scoped": (scoped, IMAGES[:, :6, :6]),
    "scoped, training": (scoped, IMAGES[:, :6, :6]),
    "named": (functools.partial(numbered, True), IMAGES[:, :6, :6]),
    "named, training": (functools.partial(numbered, True), IMAGES[:, :6, :6]),
    "shared, training": (shared, IMAGES[:, :8, 0, [0, 1, 2, 0]]),
    "recurrent": (recurrent, np.random.default_rng(0).integers(0, 7, (3, 6))),
    "convolutions": (convolutions, np.random.default_rng(0).normal(size=(2, 8, 3))),
}


@functools.cache
def made(name):
    make, x = MODELS[name]
    keras.utils.set_random_seed(0)
    model, training = make(), name.endswith("training")
    rng = np.random.default_rng(1)
    for variable in model.variables:
        is_spread = variable.path.endswith(("variance", "gamma"))
        variable.assign(rng.uniform(0.5, 1.5, variable.shape) if is_spread else rng.normal(size=variable.shape) / 3)
    port = porting.trace(model, x, training=training)
    names = {name: variable.value for name, variable in weights._read_variables(model)[0].items() if "seed" not in name}
    call = tf.function(lambda x: model(x, training=training), autograph=False)
    return port, x, tensorflow_rows.original(call, [x], names)


@pytest.mark.parametrize("name", MODELS)
def test_values_gradients_and_statistics(name):
    port, x, (outputs, gradients, state) = made(name)
    computed, slopes, new = ported(port, [x], name.endswith("training"))
    assert error_between(computed, outputs) < 1e-10
    assert error_between(slopes, gradients) < 1e-9
    assert set(slopes) == set(gradients) and set(new) == set(state)
    assert error_between(new, state) < 1e-10


def test_any_batch_size_and_both_modes():
    port, x, _ = made("conv net, training")
    model = conv_net()
    for name, variable in weights._read_variables(model)[0].items():
        variable.assign((_weights.flat(port.params) | _weights.flat(port.state))[name])
    x = np.concatenate([x, x[:1] * 2])
    computed, _ = port.function(port.params, port.state, x)
    np.testing.assert_allclose(ops.convert_to_numpy(computed), model(x).numpy(), rtol=1e-9)


def test_what_a_person_would_write():
    source = made("conv net")[0].source
    assert source.count("def block(") == 1 and "for i in range(3):" in source
    assert 'dense(x, **params["head"])' in source and 'layer_normalization(ops.silu(x), **params["first"])' in source
    assert '**params["norm"], **state["norm"]' in source
    flat = made("flat")[0].source
    assert flat.count("def block(") == 1 and "for i in range(1, 4):" in flat
    assert 'block(part(params, f"stage_block{i}_"), part(state, f"stage_block{i}_"), x)' in flat
    trained = made("flat, training")[0].source
    assert trained.count("def block(") == 1 and "for i in range(1, 4):" in trained
    assert 'new_state |= whole(new, f"stage_block{i}_")' in trained
    assert made("recurrent")[0].source.count("ops.scan(") == 4
    assert all(max(map(len, made(name)[0].source.splitlines())) <= 120 for name in MODELS)


@pytest.mark.parametrize("name", ["lettered", "lettered, training"])
def test_blocks_have_their_shortcuts_and_branches_stay_together(name):
    source = made(name)[0].source
    assert source.count("def block") == 2 and 'for i in "abc":' in source
    assert "axis=(1, 2), keepdims=True)" in source and "reshape" not in source
    layers = ["left_first", "left_second", "right_first", "right_second"]
    assert sorted(layers, key=source.index) == layers


def test_layers_whose_names_end_in_one_number_are_a_block():
    for name, layer in ("numbered", "conv2d"), ("named", "conv_1_cell"):
        source = made(name)[0].source
        assert source.count("def block(") == source.count("def block") == 1 and "~" not in source
        assert "range(1, 3):" in source and "range(4, 7):" in source and f'**params["{layer}"]' in source
        assert 'block(ending_in(params, f"_{i}"), ending_in(state, f"_{i}"), y)' in source
        assert 'new_state |= with_ending(new, f"_{i}")' in made(f"{name}, training")[0].source


def test_layers_in_scopes_whose_names_end_alike_are_a_block():
    source = made("scoped")[0].source
    assert source.count("def conv_block(") == source.count("def conv_block") == 1
    assert source.count("def cell_a(") == 1 and source.count("cell_a(params[") == 3 and "range" not in source
    assert '**params[f"bn_1{ending}"]' in source and 'ending=f"_left{ending}"' in source and 'ending="_2"' in source
    assert 'params["block_1"][f"conv_block_left{ending}"]' in source
    assert 'new_state[f"bn{ending}"]' in made("scoped, training")[0].source


def test_a_tap_in_a_numbered_block_has_the_name_of_the_layer():
    model, x = numbered(), IMAGES[:, :6, :6]
    port = porting.trace(model, x, taps=True)
    comparison = porting.compare(model, port, [x])
    assert comparison.agree and "conv2d_6" in {check.layer for check in comparison.checks}


def test_a_variable_without_a_name_is_numbered_in_its_layer():
    names = [list(porting.read_weights(lettered()).params["block1c_scale"]) for _ in range(2)]
    assert names == [["variable"], ["variable"]]


def test_dropout_draws_from_keys():
    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).normal(size=(50, 4))
    port = porting.trace(dropped(), x, training=True)
    assert "seed" not in str(list(_weights.flat(port.state)))
    first, again, other = (
        ops.convert_to_numpy(port.function(port.params, port.state, x, training=True, seed=s)[0]) for s in (1, 1, 2)
    )
    assert (first == again).all() and (first != other).any()
    np.testing.assert_allclose(ops.convert_to_numpy(port.function(port.params, port.state, x)[0]).shape, (50, 8))


class Noise(L.Layer):
    def call(self, x, training=False):
        return x + keras.random.normal(keras.ops.shape(x), dtype=x.dtype) if training else x


def test_noise_without_a_seed_draws_from_keys():
    """Keras keeps the state of its own generator in a variable that is not the model's."""
    model = keras.Sequential([keras.Input((4,)), L.Dense(3), Noise()])
    port = porting.trace(model, np.ones((5, 4)), training=True)
    first, other = (port.function(port.params, port.state, np.ones((5, 4)), training=True, seed=s)[0] for s in (1, 2))
    assert not port.state and (ops.convert_to_numpy(first) != ops.convert_to_numpy(other)).any()


class Alone(L.Layer):
    def __init__(self):
        super().__init__()
        self.dense, self.dropout = L.Dense(4), L.Dropout(0.5)

    def call(self, x, training=False):
        y = self.dropout(self.dense(x), training=training)
        return 2 * y if x.shape[0] == 1 else y


def test_a_batch_that_is_compared_is_a_guard():
    port = porting.trace(Alone(), np.ones((4, 3), "float32"), training=True)
    with pytest.raises(errors.ArgumentError, match="batch != 1, got batch = 1"):
        port.function(port.params, port.state, np.ones((1, 3), "float32"), training=True, seed=0)


def test_a_model_of_several_inputs_and_outputs():
    a, b = keras.Input((3,), name="a"), keras.Input((4,), name="b")
    model = keras.Model([a, b], {"sum": L.Dense(4)(a) + b, "a": a})
    x, y = np.ones((2, 3)), np.ones((2, 4))
    port = porting.trace(model, x, y)
    computed, _ = port.function(port.params, port.state, x, y)
    np.testing.assert_allclose(ops.convert_to_numpy(computed["sum"]), model([x, y])["sum"].numpy())


def test_an_error_names_the_layer():
    class Own(L.Layer):
        def call(self, x):
            return tf.math.bessel_i1e(x)

    x = inputs = keras.Input((4, 4))
    model = keras.Model(inputs, Own(name="second")(Own(name="first")(x)))
    with pytest.raises(errors.TranslationError, match=r"BesselI1e, 2 times: first \(Own\), second \(Own\)"):
        porting.trace(model, np.ones((2, 4, 4)))


def test_keras_on_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "numpy")
    with pytest.raises(errors.ArgumentTypeError, match="Keras runs on numpy"):
        porting.trace(dropped(), np.ones((2, 4)))


def test_a_saved_port_needs_no_keras(tmp_path):
    port, x, (outputs, _, _) = made("conv net")
    port.save(tmp_path)
    computed, _, _ = ported(porting.load(tmp_path), [x])
    assert error_between(computed, outputs) < 1e-10


class Attention(L.Layer):
    """Attention to a cache that has room for all tokens, as KerasHub's decoders have it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.qkv, self.out = L.Dense(24, name="qkv"), L.Dense(8, name="out")

    def call(self, x, cache, position):
        K = keras.ops
        query, key, value = K.split(K.reshape(self.qkv(x), (-1, 1, 6, 4)), 3, axis=2)
        start = K.stack([0, position, 0, 0])
        keys, values = (K.slice_update(cache[name], start, y) for name, y in (("keys", key), ("values", value)))
        scores = K.einsum("bqhd,bkhd->bhqk", query, keys)
        scores = K.where(K.less_equal(K.arange(keys.shape[1], dtype="int32"), position), scores, -1e30)
        y = K.einsum("bhqk,bkhd->bqhd", K.softmax(scores), values)
        return x + self.out(K.reshape(y, (-1, 1, 8))), {"keys": keys, "values": values}


class Decoder(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed, self.head = L.Embedding(11, 8, name="embed"), L.Dense(11, name="head")
        self.blocks = [Attention(name=f"attention_{number}") for number in range(2)]

    def call(self, token, cache, position):
        x = self.embed(token) + keras.ops.sin(
            keras.ops.cast(position, "float64") * keras.ops.arange(8, dtype="float64")
        )
        entries = []
        for block, entry in zip(self.blocks, cache, strict=True):
            x, entry = block(x, entry, position)
            entries.append(entry)
        return self.head(x), entries


def test_a_decoder_with_a_cache_writes_the_same_tokens(backend):
    keras.utils.set_random_seed(0)
    model = Decoder()
    length = 20

    def room(batch):
        zeros = np.zeros((batch, length, 2, 4))
        return [{"keys": zeros, "values": zeros} for _ in range(2)]

    model(np.ones((2, 1), "int32"), room(2), np.int32(0))
    for weight in model.weights:
        weight.assign(np.random.default_rng(weight.shape[0]).normal(size=weight.shape) * 0.8)
    port = porting.trace(model, np.ones((2, 1), "int32"), room(2), np.int32(3))
    token = expected = np.array([[3], [5], [7]], "int32")
    cache, wanted, written = room(3), room(3), []
    for position in (-1, 0, 1, 2, 3, length):  # the first and the last are out of range: XLA moves the block
        (logits, cache), _ = port.function(port.params, port.state, token, cache, np.int32(position))
        rated, wanted = model(expected, wanted, np.int32(position))
        np.testing.assert_allclose(ops.convert_to_numpy(logits), rated.numpy(), rtol=1e-9, atol=1e-9)
        token, expected = (np.asarray(x).argmax(-1).astype("int32") for x in (ops.convert_to_numpy(logits), rated))
        written.append(token)
        np.testing.assert_array_equal(token, expected)
    assert len(np.unique(written)) > 2
