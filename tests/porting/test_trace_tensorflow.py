"""Models of TensorFlow as source: values, gradients, statistics, control flow, and what is refused."""

from __future__ import annotations

import functools
import json
import random
import re

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import tensorflow_rows
from ported import error_between, ported

import multiop
from multiop import errors, ops, porting
from multiop.porting import _weights


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def weight(*shape, seed=0, **options):
    return tf.Variable(drawn(*shape, seed=seed) / 2, **options)


class Norm(tf.Module):
    """Batch normalization with moving statistics."""

    def __init__(self, size):
        super().__init__()
        self.gamma, self.beta = tf.Variable(np.linspace(0.5, 1.5, size)), tf.Variable(np.linspace(-1, 1, size))
        self.moving_mean = tf.Variable(np.linspace(-0.2, 0.2, size), trainable=False)
        self.moving_variance = tf.Variable(np.linspace(0.5, 1.5, size), trainable=False)

    def __call__(self, x, training):
        mean, variance = self.moving_mean, self.moving_variance
        if training:
            mean, variance = tf.nn.moments(x, [0, 1, 2])
            for old, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                old.assign(old * 0.9 + new * 0.1)
        return tf.nn.batch_normalization(x, mean, variance, self.beta, self.gamma, 1e-3)


class Block(tf.Module):
    def __init__(self, size, seed):
        super().__init__()
        self.kernel, self.norm = weight(3, 3, size, size, seed=seed), Norm(size)

    def __call__(self, x, training):
        return x + tf.nn.relu(self.norm(tf.nn.conv2d(x, self.kernel, 1, "SAME"), training))


class ConvNet(tf.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bias = weight(3, 3, 3, 4, seed=5), weight(4, seed=6)
        self.blocks = [Block(4, seed) for seed in range(3)]
        self.head = weight(4, 5, seed=7)

    def __call__(self, x, training=False):
        x = tf.nn.silu(tf.nn.bias_add(tf.nn.conv2d(x, self.stem, 2, "SAME"), self.bias))
        for block in self.blocks:
            x = block(x, training)
        x = tf.reshape(tf.nn.max_pool2d(x, 2, 2, "VALID"), [tf.shape(x)[0], -1, 4])
        return tf.reduce_mean(tf.tensordot(x, self.head, 1), 1)


class Counter(tf.Module):
    """Reads a variable that it has changed, and one that nothing changes."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(1.0, dtype="float64", trainable=False)
        self.scale, self.w = tf.Variable(np.ones(4), trainable=False), weight(4, 4)

    @tf.function
    def __call__(self, x):
        self.count.assign_add(2.0)
        return {"y": tf.matmul(x, self.w) * self.scale + self.count, "count": self.count * 1.0}


class Changing(tf.Module):
    """Reads what it has just assigned, which has no gradient, and changes rows and entries of a variable."""

    def __init__(self):
        super().__init__()
        self.w = weight(4, 3)
        self.mean = tf.Variable(np.linspace(-1, 1, 3), trainable=False)
        self.table = tf.Variable(drawn(8, 3), trainable=False)

    def __call__(self, x):
        y = tf.matmul(x, self.w)
        self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(y, 0))
        self.table.scatter_nd_update([[1], [3]], y[:2])
        self.table.scatter_nd_add([[2, 1]], y[0, :1])
        self.table.scatter_update(tf.IndexedSlices(y[1:3], tf.constant([5, 6])))
        self.table.scatter_sub(tf.IndexedSlices(y[2:3], tf.constant([6])))
        self.table.scatter_max(tf.IndexedSlices(y[:1], tf.constant([7])))
        self.mean.assign_add(tf.reduce_mean(self.table, 0))
        return (y - self.mean) * y + tf.reduce_sum(self.table, 0)


class NormTwice(tf.Module):
    """Calls one normalization twice: the second time, its statistics are those that the first time left."""

    def __init__(self):
        super().__init__()
        self.norm, self.w = Norm(3), weight(3, 3)

    def __call__(self, x, training=False):
        return self.norm(tf.tanh(tf.matmul(self.norm(x, training), self.w)), training)


class Borrowing(tf.Module):
    """Has layers that call one which lies elsewhere, beside one of their own with the name that it has there."""

    class Line(tf.Module):
        def __init__(self, seed):
            super().__init__()
            self.norm, self.w = Norm(3), weight(3, 3, seed=seed)

        def __call__(self, x, training=False):
            rows = tf.constant(np.linspace(-1, 1, 27).reshape(9, 3))[:3]  # an array that stays with the layer
            return self.norm(tf.tanh(tf.matmul(x, self.w)), training) + tf.matmul(x, rows)

    class Layer(tf.Module):
        def __init__(self, borrowed, seed):
            super().__init__()
            self.borrowed, self.line = borrowed, Borrowing.Line(seed)

        def __call__(self, x, training=False):
            return self.borrowed(x, training) - tf.tanh(self.line(x, training)) * self.borrowed(2 * x, training)

    def __init__(self):
        super().__init__()
        self.line, self.scale = Borrowing.Line(1), tf.constant(0.5, tf.float64)  # made outside of the graph
        self.layers = [Borrowing.Layer(self.line, seed) for seed in (2, 3)]

    def __call__(self, x, training=False):
        for layer in self.layers:
            x = layer(x, training) * self.scale
        return x


class Recurrent(tf.Module):
    """Loops: over time, counted, as long as something holds; a choice."""

    def __init__(self):
        super().__init__()
        self.w, self.u = weight(3, 4), weight(4, 4, seed=1)

    def __call__(self, x):
        def step(h, row):
            return tf.tanh(tf.matmul(row, self.w) + tf.matmul(h, self.u))

        start = tf.zeros([tf.shape(x)[0], 4], x.dtype)
        ys = tf.scan(step, tf.transpose(x, [1, 0, 2]), start)
        last = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h * tf.cast(i + 1, h.dtype)), (0, ys[-1]))[1]
        return tf.cond(tf.reduce_sum(x) > 100, lambda: last, lambda: tf.sin(last) * self.u[0]), ys


class Custom(tf.Module):
    """Has functions with gradients of their own, which are wrong."""

    def __init__(self):
        super().__init__()
        self.w, self.scale = weight(3, 4), weight(4, seed=1)

    def __call__(self, x):
        @tf.custom_gradient
        def slow(x):
            e = tf.exp(x)
            return tf.math.log(1 + e), lambda upstream: upstream * 0.1 * (e / (1 + e))

        @tf.custom_gradient
        def scaled(x):
            def gradient(upstream, variables=None):
                return upstream * 3, [tf.reduce_sum(upstream, 0) * 7 for _ in variables]

            return x * self.scale, gradient

        return slow(scaled(tf.matmul(x, self.w))) + slow(x[:, :1])


class Tied(tf.Module):
    """Has one variable under two names."""

    def __init__(self):
        super().__init__()
        self.encoder = self.output = weight(4, 4)

    def __call__(self, x):
        return tf.matmul(tf.tanh(tf.matmul(x, self.encoder)), self.output, transpose_b=True)


MODELS = {
    "conv net": (ConvNet, drawn(3, 12, 12, 3)),
    "conv net, training": (ConvNet, drawn(3, 12, 12, 3)),
    "counter": (Counter, drawn(3, 4)),
    "changing": (Changing, drawn(3, 4)),
    "norm twice, training": (NormTwice, drawn(3, 4, 4, 3)),
    "borrowing": (Borrowing, drawn(3, 2, 2, 3)),
    "borrowing, training": (Borrowing, drawn(3, 2, 2, 3)),
    "recurrent": (Recurrent, drawn(3, 5, 3)),
    "custom": (Custom, drawn(3, 3)),
    "tied": (Tied, drawn(3, 4)),
}


@functools.cache
def made(name):
    make, x = MODELS[name]
    model, training = make(), name.endswith("training")
    port = porting.trace(model, x, training=training)
    call = functools.partial(model, training=True) if training else model
    variables = porting.tensorflow.weights._read_variables(model)[0]
    first = {id(variable): name for name, variable in reversed(variables.items())}
    names = {name: variables[name] for name in first.values()}  # a variable that has several names has the first
    return port, x, tensorflow_rows.original(tf.function(call, autograph=False), [x], names)


@pytest.mark.parametrize("name", MODELS)
def test_values_gradients_and_statistics(name, backend):
    port, x, (outputs, gradients, state) = made(name)
    with multiop.use_backend(backend):
        computed, slopes, new = ported(port, [x], name.endswith("training"))
    assert error_between(computed, outputs) < 1e-10
    assert error_between(slopes, gradients) < 1e-9
    assert set(slopes) == set(gradients) and set(new) == set(state)
    assert error_between(new, state) < 1e-10


@pytest.mark.parametrize("name", MODELS)
def test_source_is_tidy(name):
    source = made(name)[0].source
    assert max(map(len, source.splitlines())) <= 120
    assert not re.search(r"\btf\.|ReadVariable|StridedSlice|Identity|PartitionedCall", source)


def test_what_a_person_would_write():
    source = made("conv net")[0].source
    assert source.count("def block(") == 1 and "for i in range(3):" in source
    assert 'convolution(x, kernel=params["stem"], bias=params["bias"], strides=2, padding="same")' in source
    assert "ops.silu(" in source and "batch_normalization(" in source
    assert "tracked_batch_normalization(" in made("conv net, training")[0].source
    recurrent = made("recurrent")[0].source
    assert "ops.scan(" in recurrent and "ops.fori_loop(0, 3," in recurrent and "ops.cond(" in recurrent
    assert made("custom")[0].source.count("@ops.custom_gradient") == 2


def test_any_batch_size_and_both_modes(backend):
    port, _, _ = made("conv net, training")
    model, x = ConvNet(), drawn(7, 12, 12, 3, seed=9)
    with multiop.use_backend(backend):
        computed, state = port.function(port.params, port.state, x)
        np.testing.assert_allclose(ops.convert_to_numpy(computed), model(x).numpy(), rtol=1e-10)
        computed = {name: ops.convert_to_numpy(leaf) for name, leaf in _weights.flat(state).items()}
        assert error_between(computed, _weights.flat(port.state)) == 0


def test_sizes_that_are_not_the_batch_are_those_of_the_example():
    port, x, _ = made("conv net")
    with (
        multiop.use_backend("tensorflow"),
        pytest.raises(errors.ArgumentError, match=r"must have the shape \(any, 12, 12, 3\)"),
    ):
        port.function(port.params, port.state, x[:, :8])


def test_open_sizes_by_name(backend):
    def line(x, y):
        return tf.einsum("tbi,ti->bt", x, y) / tf.cast(tf.shape(x)[1] * tf.shape(y)[0], x.dtype)

    shapes = ({0: "time", 1: "batch"}, {0: "time"})
    port = porting.trace(tf.function(line), drawn(3, 2, 4), drawn(3, 4), dynamic_shapes=shapes)
    with multiop.use_backend(backend):
        x, y = drawn(5, 6, 4), drawn(5, 4)
        computed, _ = port.function(port.params, port.state, x, y)
        np.testing.assert_allclose(ops.convert_to_numpy(computed), line(x, y), rtol=1e-12)


def test_inputs_with_sizes_of_their_own_stay_apart():
    port = porting.trace(tf.function(lambda x, y: tf.concat([x, y], 0)), drawn(3, 4), drawn(3, 4))
    with multiop.use_backend("tensorflow"):
        assert port.function(port.params, port.state, drawn(2, 4), drawn(5, 4))[0].shape == (7, 4)


@pytest.mark.parametrize("index", [-2, 0, 1, 5])
def test_a_choice_out_of_range_is_the_last_one(index, backend):
    x = drawn(2)
    port = switched()
    with multiop.use_backend(backend):
        computed, _ = port.function(port.params, port.state, np.array([index], "int32"), x)
    np.testing.assert_allclose(ops.convert_to_numpy(computed), x + (index + 1 if 0 <= index < 3 else 3))


@functools.cache
def switched():
    def line(i, x):
        return tf.switch_case(i[0], [lambda: x + 1, lambda: x + 2, lambda: x + 3])

    return porting.trace(tf.function(line), np.array([1], "int32"), drawn(2))


def test_inputs_in_dicts_and_by_name(backend):
    class Nested(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = weight(4)

        def __call__(self, batch, factor, *, mask):
            x, y = batch["pair"]
            return {"z": tf.where(mask, x * self.w, y) * factor}

    batch, mask = {"pair": (drawn(3, 4), drawn(3, 4, seed=1))}, drawn(3, 4, seed=2) > 0
    model = Nested()
    port = porting.trace(model, batch, 2.0, keywords={"mask": mask})
    assert porting.prove(port, backend).agrees
    with multiop.use_backend(backend):
        computed, _ = port.function(port.params, port.state, batch, 2.0, mask=mask)
        np.testing.assert_allclose(ops.convert_to_numpy(computed["z"]), model(batch, 2.0, mask=mask)["z"])
        with pytest.raises(errors.ArgumentError, match=r"was traced with 2\.0"):
            port.function(port.params, port.state, batch, 3.0, mask=mask)


def test_a_bias_that_is_added_later_is_added_once(backend):
    class Layer(tf.Module):
        def __init__(self):
            super().__init__()
            self.kernel, self.bias = weight(3, 3, 2, 4), weight(4)

        def __call__(self, x):
            return tf.tanh(tf.nn.conv2d(x, self.kernel, 1, "SAME")) + self.bias

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def __call__(self, x):
            return self.layer(x)

    port = porting.trace(Net(), drawn(2, 4, 4, 2))
    assert porting.prove(port, backend).agrees


class Plain(tf.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.w = Norm(4), weight(4, 3)

    def __call__(self, x):
        return tf.nn.relu(self.norm(x, False)) @ self.w


def test_saved_models_functions_and_concrete_functions(tmp_path):
    model, x = Plain(), drawn(3, 4)
    expected = model(x)
    model.serve = tf.function(model.__call__, input_signature=[tf.TensorSpec([None, 4], "float64", name="x")])
    tf.saved_model.save(model, str(tmp_path), signatures=model.serve)
    loaded = tf.saved_model.load(str(tmp_path))
    for saved in (model.serve, model.serve.get_concrete_function(), loaded.signatures["serving_default"], loaded):
        port = porting.trace(saved, x, name="net")
        assert porting.prove(port, "tensorflow").agrees
        shapes = sorted(leaf.shape for leaf in _weights.flat(port.params).values())
        assert shapes == sorted(tuple(variable.shape) for variable in model.trainable_variables)
        with multiop.use_backend("tensorflow"):
            computed = port.function(port.params, port.state, np.concatenate([x, x]))[0]
        (computed,) = computed.values() if isinstance(computed, dict) else [computed]
        np.testing.assert_allclose(computed[:3], expected, rtol=1e-10)


def test_a_saved_model_without_the_gradient_that_it_had_is_refused(tmp_path):
    model = tf.Module()
    model.serve = tf.function(tf.nn.silu, input_signature=[tf.TensorSpec([None, 4], "float64", name="x")])
    tf.saved_model.save(model, str(tmp_path), signatures=model.serve)
    loaded = tf.saved_model.load(str(tmp_path))
    with pytest.raises(errors.TranslationError, match="a gradient of its own that is not known"):
        porting.trace(loaded.signatures["serving_default"], drawn(3, 4))


def test_dropout_draws_from_keys():
    class Dropped(tf.Module):
        def __call__(self, x, training=False):
            return tf.nn.dropout(x * 0 + 1, 0.5) if training else x * 0 + 1

    port, x = porting.trace(Dropped(), drawn(50, 4), training=True), drawn(50, 4)
    with multiop.use_backend("tensorflow"):
        first, again, other = (port.function(port.params, port.state, x, training=True, seed=s)[0] for s in (1, 1, 2))
        assert np.all(first == again) and np.any(first != other)
        assert set(np.unique(first)) == {0.0, 2.0}
        assert np.all(port.function(port.params, port.state, x)[0] == 1)


def test_a_mask_that_two_tensors_share_is_drawn_once():
    class Masked(tf.Module):
        def __call__(self, x, training=False):
            keep = tf.identity(tf.random.uniform(tf.shape(x), dtype=x.dtype) >= 0.5)
            return (tf.where(keep, x * 2, 0), tf.where(keep, x * 2, 0) * 3) if training else (x, x * 3)

    port, x = porting.trace(Masked(), drawn(50, 4), training=True), drawn(50, 4)
    with multiop.use_backend("numpy"):
        x, y = port.function(port.params, port.state, x, training=True, seed=1)[0]
        np.testing.assert_array_equal(x * 3, y)


def refused(x):
    x = tf.nn.fractional_max_pool(x[:, :, None, None], [1, 1.5, 1, 1])[0][:, :, 0, 0]
    return tf.math.bessel_i1e(x) + tf.math.bessel_i1e(2 * x)


def test_one_error_lists_all_that_has_no_translation():
    with pytest.raises(errors.TranslationError) as caught:
        porting.trace(tf.function(refused), drawn(8, 8))
    message = str(caught.value)
    assert "2 operations have no translation" in message
    assert re.search(r"BesselI1e, 2 times: .*test_trace_tensorflow\.py:\d+", message)


class Unknown(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = weight(4, 3)

    def __call__(self, x):
        y = tf.tanh(x @ self.w)
        low = tf.raw_ops.NthElement(input=y, n=1, reverse=True)[:, None]
        _, scaled = tf.while_loop(
            lambda i, total: i < 3, lambda i, total: (i + 1, tf.math.bessel_i0e(total + low)), (0, tf.zeros_like(y))
        )
        return scaled, tf.raw_ops.Betainc(a=tf.abs(y) * 0 + 1.5, b=tf.abs(y) * 0 + 0.5, x=tf.sigmoid(low + y))


def test_bridges_stay_where_there_is_no_translation(tmp_path, backend):
    model, x = Unknown(), drawn(5, 4)
    with pytest.raises(errors.TranslationError, match=r"NthElement, 1 time(?s:.*)partial=True"):
        porting.trace(model, x)
    porting.trace(model, x, partial=True).save(tmp_path)
    port = porting.load(tmp_path)
    assert sorted(port.bridged) == ["bessel_i0e", "betainc", "nth_element"]
    assert "import tensorflow\n" in port.source and "# no translation: these run in TensorFlow\n" in port.source
    assert "tensorflow.raw_ops.NthElement(input=x1, n=1, reverse=True)" in port.source
    proof = porting.prove(port, backend)
    assert proof.agrees and proof.compared == 3 and max(proof.value, proof.gradient) < 1e-12


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (lambda x: tf.py_function(tf.sin, [x], x.dtype), "EagerPyFunc"),
        (lambda x: tf.random.gamma([], tf.abs(x), dtype=x.dtype), "RandomGamma"),
        (lambda x: tf.strings.to_number(tf.as_string(x), x.dtype), "AsString"),
        (lambda x: tf.boolean_mask(x, x > 0), "a size that depends on values|Where"),
    ],
)
def test_a_bridge_does_not_stand_for_what_would_be_lost(line, word):
    with pytest.raises(errors.TranslationError, match=word):
        porting.trace(tf.function(line), drawn(4, 3), partial=True)


class Trained(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = weight(4)

    def __call__(self, x):
        self.w.assign(self.w * 0.5)
        return x * self.w


class Part(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = tf.Variable(drawn(8, 4), trainable=False)

    def __call__(self, x):
        self.table[5].assign(x[0])
        return x * 2


def drawn_by_python(x):
    return x * random.random()


def drawn_by_numpy(x):
    return x * np.random.uniform(size=4)  # noqa: NPY002 - what is refused


def overridden(x):
    with tf.compat.v1.get_default_graph().gradient_override_map({"Tanh": "Identity"}):
        return tf.tanh(x)


@tf.RegisterGradient("PortingFlip")
def _flip(op, upstream):
    return -upstream


def flipped(x):
    with tf.compat.v1.get_default_graph().gradient_override_map({"Identity": "PortingFlip"}):
        return tf.nn.relu(tf.identity(x))


def moving(x):
    return tf.while_loop(
        lambda y: tf.reduce_sum(y) < 10, lambda y: tf.concat([y, y], 1), [tf.abs(x)], [tf.TensorShape([None, None])]
    )[0]


class Toned(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = weight(3, 3)

    def __call__(self, x):
        return tf.image.adjust_contrast(tf.cast(x @ self.w, "float32"), 1.5)


def test_values_are_proven_where_tensorflow_has_no_gradient(backend):
    proof = porting.prove(porting.trace(Toned(), drawn(2, 4, 5, 3)), backend)
    assert proof.agrees and proof.compared == 1 and proof.value < 1e-5 and proof.tolerance == 1e-4


def test_integers_of_the_example_are_proven_where_others_raise(backend, tmp_path):
    model = tf.function(lambda x, i: tf.gather(x, tf.math.invert_permutation(i)))
    porting.trace(model, drawn(4, 3), np.array([2, 0, 3, 1], "int32"), name="turned").save(tmp_path)
    proof = porting.prove(porting.load(tmp_path), backend)
    assert proof.agrees and proof.compared == 1


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Trained(), "changes w, which is a parameter"),
        (Part(), "ResourceStridedSliceAssign"),
        (tf.function(drawn_by_python), "a draw from random"),
        (tf.function(drawn_by_numpy), "a draw from numpy.random"),
        (tf.function(overridden), "gradient_override_map"),
        (tf.function(flipped), "gradient_override_map"),
        (tf.function(lambda x: tf.boolean_mask(x, x > 0)), "a size that depends on values|Where"),
        (tf.function(moving), "While"),
        (tf.function(lambda x: tf.math.segment_sum(x, tf.cast(x[:, 0], "int32"))), "a size that depends on values"),
        (tf.function(lambda x: x[:, tf.argmax(x[0]) :]), "a size that depends on values"),
    ],
)
def test_what_would_be_wrong_is_refused(model, words):
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(model, drawn(3, 4))


MAKE = """
import numpy as np
import tensorflow as tf

class Net(tf.Module):
    def __init__(self):
        self.w = tf.Variable(np.linspace(-1, 1, 12).reshape(4, 3))

    def __call__(self, x):
        return tf.nn.softmax(tf.matmul(x, self.w))

def make():
    return Net(), (np.linspace(-1, 1, 20).reshape(5, 4),)
"""


def test_the_command_writes_and_proves(tmp_path):
    from typer.testing import CliRunner

    from multiop import cli

    (tmp_path / "model.py").write_text(MAKE)
    target = f"{tmp_path / 'model.py'}::make"
    out = str(tmp_path / "out")
    done = CliRunner().invoke(cli.app, ["port", target, "--out", out, "--backends=tensorflow", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["agree"]
    again = porting.load(out)
    assert porting.prove(again, "tensorflow").agrees and list(again.params) == ["w"]


@pytest.mark.slow_on(multiop_backend="torch")
@pytest.mark.slow_on(multiop_backend="jax")
def test_keras_on_tensorflow(backend, passed_alone):
    """In a process of its own: other tests run Keras on NumPy."""
    names = ("on_keras.py", "on_keras_trace.py")
    assert passed_alone(*names, MULTIOP_BACKEND=backend, KERAS_BACKEND="tensorflow") > 30
