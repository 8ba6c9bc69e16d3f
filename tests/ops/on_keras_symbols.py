"""Ops in Keras's functional models: `test_keras_symbols.py` runs this file on each backend, in a process of its own."""

from __future__ import annotations

import os

import numpy as np
import pytest

if os.environ["MULTIOP_BACKEND"] == "tensorflow":
    pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import multiop
import multiop.keras
from multiop import errors, ops, random as draws
from multiop._values import tree
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

BACKEND = os.environ["MULTIOP_BACKEND"]
differentiates = pytest.mark.skipif(BACKEND == "numpy", reason="Keras on NumPy neither trains nor differentiates")
# ops whose results have sizes that depend on values; TensorFlow leaves the size of `op_nonzero` open
OF_SETS = {"op_intersect1d", "op_setdiff1d", "op_union1d"}
ON_VALUES = {"op_bincount", "op_convert_to_numpy", "op_nonzero", "op_unique", *OF_SETS}
OF_SHAPES = {"op_dtype", "op_is_tensor", "op_ndim", "op_shape", "op_size"}
NOT_ARGUMENTS = {"op_cond", "op_vectorize"}  # tensors within a partial function, and after the call


def random(*shape):
    return np.random.default_rng(3).normal(size=shape).astype("float32")


def plain(x):
    return multiop.op_convert_to_numpy(x)


def equal(x, y):
    x, y = plain(x), plain(y)
    return x.dtype == y.dtype and np.array_equal(x.astype("complex128"), y.astype("complex128"), equal_nan=True)


CALLS = [
    pytest.param(name, call, id=f"{name}-{i}")
    for name, row in rows().items()
    for i, call in enumerate(row.calls[:2])
    if name not in ON_VALUES | OF_SHAPES | NOT_ARGUMENTS
]


@pytest.mark.parametrize(("name", "call"), CALLS)
@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
def test_every_op_within_a_model_is_the_op(name, call, is_open):
    """The symbolic result has the shape and the dtype, and the model the values, of the op itself."""
    row = rows()[name]
    problem = Problem(
        getattr(multiop, name), call, dtype="float32" if "float32" in row.dtypes else row.dtypes[0], name=name
    )
    arrays = [multiop.op_convert_to_tensor(array) for array in problem.arrays]
    if not arrays:
        pytest.skip("no tensors among the arguments")
    first = problem.arrays[0].shape[0] if problem.arrays[0].ndim else 0
    if is_open and (first < 2 or len({array.shape for array in problem.arrays}) > 1):
        pytest.skip("no tensor has a size to leave open")
    expected = problem.apply(problem.f, arrays)
    if any(leaf is None for leaf in tree.leaves(expected)):
        pytest.skip("a symbolic result is no `None`")
    symbols = [keras.KerasTensor((None, *x.shape[1:]) if is_open else x.shape, x.dtype.name) for x in problem.arrays]
    try:
        found = problem.apply(problem.f, symbols)
    except (errors.MultiopError, ValueError, TypeError) as error:
        told = f"{error} {getattr(error, '__notes__', '')}"
        if is_open and ("was taken to be" in told or "keras.Input" in told):
            return  # the op must know the size
        raise
    assert tree.structure(found) == tree.structure(expected)
    found, expected = tree.leaves(found), tree.leaves(expected)
    for symbol, y in zip(found, expected, strict=True):
        assert symbol.dtype == multiop.op_dtype(y)
        assert len(symbol.shape) == len(y.shape)
        assert all(n == m or (is_open and n is None) for n, m in zip(symbol.shape, y.shape, strict=True))
    values = keras.Function(symbols, found)(arrays)
    assert all(map(equal, values, expected))


def test_open_sizes_stay_open():
    x = keras.Input((None, 4))
    y = ops.reshape(ops.mean(x, axis=1), (-1, 2, 2))
    assert y.shape == (None, 2, 2)
    assert ops.concatenate([x, x], axis=1).shape == (None, None, 4)
    assert [part.shape for part in ops.split(x, 2, axis=-1)] == [(None, None, 2)] * 2
    assert ops.expand_dims(x, -1).shape == (None, None, 4, 1)
    assert ops.get_item(x, (slice(None), slice(5))).shape == (None, None, 4)
    assert ops.diagonal(x, axis1=1, axis2=2).shape == (None, None)
    assert ops.conv(ops.expand_dims(x, -1), random(3, 3, 1, 2), padding="valid").shape == (None, None, 2, 2)


def test_what_is_known_without_values():
    x = keras.Input((3, 4), dtype="float16")
    assert (ops.shape(x), ops.ndim(x), ops.dtype(x)) == ((None, 3, 4), 3, "float16")
    assert ops.size(keras.Input(batch_shape=(2, 3))) == 6
    with pytest.raises(errors.ArgumentError, match="op_size: the number of entries depends"):
        ops.size(x)
    assert not ops.is_tensor(x)


def test_a_composite_op_is_one_operation():
    x = keras.Input((3, 4))
    model = keras.Model(x, ops.moments(ops.softmax(x, axis=(1, 2)), (1,)))
    assert [op.name.rpartition("_")[0] for op in model.operations[1:]] == ["op_softmax", "op_moments"]


def test_a_model_is_saved_and_loaded(tmp_path):
    x = keras.Input((3, 4))
    y = ops.einsum("bij,kj->bik", ops.log_softmax(x, axis=(1, 2)), random(5, 4))
    model = keras.Model(x, [ops.split(y, [2], axis=-1)[0], ops.sum(keras.layers.Dense(2)(y), axis=-1)])
    model.save(tmp_path / "model.keras")
    again, values = keras.saving.load_model(tmp_path / "model.keras"), random(7, 3, 4)
    for found, expected in zip(again.predict(values, verbose=0), model.predict(values, verbose=0), strict=True):
        np.testing.assert_array_equal(found, expected)


@differentiates
def test_a_model_is_trained():
    """One step of descent, whose gradient is known: that of the mean of relu(x w)."""
    x = keras.Input((3,))
    dense = keras.layers.Dense(1, use_bias=False)
    model = keras.Model(x, ops.relu(dense(x)))
    before, values = np.float32([[1], [-1], [0.5]]), random(8, 3)
    dense.set_weights([before])
    model.compile(keras.optimizers.SGD(0.1), loss=lambda _, y: y)
    model.fit(values, np.zeros((8, 1)), batch_size=8, epochs=1, verbose=0)
    gradient = values.T @ (values @ before > 0) / 8
    np.testing.assert_allclose(dense.get_weights()[0], before - 0.1 * gradient, rtol=1e-5, atol=1e-6)


@differentiates
def test_a_custom_gradient_is_kept():
    @multiop.op_custom_gradient
    def straight(x):
        return ops.round(x), lambda upstream: upstream

    x = keras.Input((3,))
    model = keras.Model(x, straight(x))
    found = multiop.grad(lambda x: ops.sum(model(x) ** 2))(multiop.op_convert_to_tensor([[0.4, 1.2, 2.9]]))
    np.testing.assert_allclose(plain(found), [[0.0, 2.0, 6.0]])


def steep(x):
    """Round, with a gradient of 3 that no rule of a framework has."""
    return ops.round(x), lambda upstream: 3 * upstream


def slope_of(model):
    return plain(multiop.grad(lambda x: ops.sum(model(x)))(multiop.op_convert_to_tensor([[0.4, 1.2]])))


def functional(function):
    x = keras.Input((2,))
    return keras.Model(x, function(x))


def sequential(function):
    return keras.Sequential([keras.Input((2,)), keras.layers.Activation(function)])


def anonymous(function):
    return keras.Sequential([keras.Input((2,)), keras.layers.Lambda(function)])


@differentiates
@pytest.mark.parametrize("build", [functional, sequential, anonymous])
def test_a_custom_gradient_is_saved_and_loaded_where_it_is_registered(build, tmp_path):
    function = multiop.op_custom_gradient(steep)
    with pytest.raises(errors.UnsupportedError, match=r"knows none of steep: register it, by @keras"):
        build(function).save(tmp_path / "model.keras")
    keras.saving.register_keras_serializable("mine")(function)
    build(function).save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for model in (again, keras.models.clone_model(again)):
        np.testing.assert_array_equal(slope_of(model), [[3.0, 3.0]])
    other = keras.saving.register_keras_serializable("mine")(multiop.op_custom_gradient(steep))
    with pytest.raises(errors.UnsupportedError, match="knows none of steep"):  # by that name it knows the other
        build(function).save(tmp_path / "refused.keras")
    del keras.saving.get_custom_objects()[keras.saving.get_registered_name(other)]
    told = "import the module that registers it before"  # Keras's own error holds it where a layer has the function
    with pytest.raises((errors.UnsupportedError, TypeError), match=told):
        keras.saving.load_model(tmp_path / "model.keras")


def test_an_activation_is_loaded_as_the_op_that_was_saved(tmp_path):
    """By its name alone, `relu`, Keras would load its own."""
    activations = [ops.relu, ops.softmax, ops.log_softmax, multiop.op_gelu, ops.nn.silu]
    layers = [keras.layers.Dense(2, activation=activation) for activation in activations]
    keras.Sequential([keras.Input((2,)), *layers, keras.layers.Lambda(ops.tanh)]).save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert [layer.activation for layer in again.layers[:-1]] == activations
    assert again.layers[-1].function is ops.tanh


def test_an_op_of_a_namespace_is_an_operation():
    xp = multiop.namespace(multiop.op_convert_to_tensor(1.0))
    x = keras.Input((2,))
    model = keras.Model(x, xp.tanh(xp.norm(xp.add(x, 1.0), axis=-1)))
    assert [type(operation).__name__ for operation in model.operations] == ["InputLayer", "Op", "Op", "Op"]
    np.testing.assert_allclose(plain(model(np.zeros((1, 2)))), np.tanh([2**0.5]), rtol=1e-6)


@differentiates
def test_a_gradient_is_stopped():
    x = keras.Input((2,))
    model = keras.Model(x, ops.multiply(x, ops.stop_gradient(x)))
    found = multiop.grad(lambda x: ops.sum(model(x)))(multiop.op_convert_to_tensor([[3.0, 5.0]]))
    np.testing.assert_allclose(plain(found), [[3.0, 5.0]])


def test_a_function_is_an_operation():
    x = keras.Input((3,))
    slope = multiop.keras.Op(lambda x: multiop.grad(lambda x: ops.sum(x**3))(x))
    model = keras.Model(x, slope(x))
    np.testing.assert_allclose(model.predict(np.ones((2, 3)), verbose=0), np.full((2, 3), 3.0))
    with pytest.raises(errors.UnsupportedError, match="knows none of .*<lambda>"):
        model.get_config()


@keras.saving.register_keras_serializable("mine")
class LeakyStep(ops.Operation):
    def __init__(self, slope, *, name=None):
        super().__init__(name=name)
        self.slope = slope

    def call(self, x):
        return ops.where(x > 0, 1.0, self.slope * x)

    def get_config(self):
        return {"slope": self.slope, "name": self.name}


class Spoken(LeakyStep):
    def compute_output_spec(self, x):
        return keras.KerasTensor((*x.shape[:-1], 7), dtype=x.dtype)


def test_an_operation_of_symbolic_tensors():
    x, step = keras.Input((3,)), LeakyStep(0.5)
    y = step(x)
    assert (y.shape, step.compute_output_spec(x).shape) == ((None, 3), (None, 3))
    model = keras.Model(x, y)
    np.testing.assert_array_equal(model.predict(np.float32([[-1, 0, 2]]), verbose=0), [[-0.5, 0, 1]])
    assert "leaky_step" in model.operations[1].name
    again = keras.models.clone_model(model)
    np.testing.assert_array_equal(again.predict(np.float32([[-1, 0, 2]]), verbose=0), [[-0.5, 0, 1]])
    with pytest.raises(errors.UnsupportedError, match="knows none of Spoken"):
        keras.Model(x, Spoken(1.0)(x)).get_config()
    assert Spoken(1.0)(x).shape == (None, 7)


def test_a_name_scope_is_that_of_keras():
    with ops.name_scope("outer"), multiop.name_scope("inner"):
        variable = keras.Variable(1.0, name="v")
    assert variable.path == "outer/inner/v"


def test_errors_name_the_op_and_the_symbolic_tensor():
    x = keras.Input((3, 4))
    with pytest.raises(errors.ArgumentError, match=r"op_softmax: axis 7 .*\n.*x=float32\[None, 3, 4\]") as caught:
        ops.softmax(x, axis=7)
    assert "a size that keras.Input leaves open was taken to be 120" in caught.value.__notes__
    with pytest.raises(errors.ArgumentError, match="how many results"):
        ops.unstack(x)
    with pytest.raises(errors.ForeignTensorError, match=r"KerasTensor was passed.*multiop\.keras\.Op"):
        multiop.grad(ops.sum)(x)


def test_sizes_that_depend_on_values_are_refused():
    x = keras.Input(batch_shape=(3,), dtype="int32")
    for op in (ops.unique, ops.bincount) if BACKEND == "tensorflow" else (ops.unique, ops.bincount, ops.nonzero):
        with pytest.raises(Exception) as caught:  # the framework's own, for what cannot be traced
            op(x)
        assert f"op_{op.__name__.removeprefix('op_')}" in f"{caught.value} {getattr(caught.value, '__notes__', '')}"
    if BACKEND == "tensorflow":
        assert ops.nonzero(x)[0].shape == (None,)


def test_another_backend_is_refused():
    x, other = keras.Input((3,)), "jax" if BACKEND == "torch" else "torch"
    pytest.importorskip(other)
    with multiop.use_backend(other), pytest.raises(errors.ForeignTensorError, match=f"Keras runs on {BACKEND}"):
        ops.relu(x)


def test_random_numbers():
    x = keras.Input((8,))
    model, ones = keras.Model(x, multiop.random.dropout(x, 0.5, seed=1)), multiop.op_ones((2, 8))
    np.testing.assert_array_equal(plain(model(ones)), plain(multiop.random.dropout(ones, 0.5, seed=1)))


def test_control_flow():
    x, p = keras.Input(batch_shape=(3,)), keras.Input(batch_shape=(), dtype="bool")
    model = keras.Function(
        [p, x],
        [
            ops.cond(p, lambda: 1.0, lambda: 2.0),
            ops.while_loop(lambda x: ops.sum(x) < 9.0, lambda x: (2 * x,), (x,))[0],
            ops.switch(ops.cast(p, "int32"), [lambda x: x, lambda x: x * x], x),
        ],
    )
    for flag, expected in ((True, [1.0, [4, 4, 4], [1, 1, 1]]), (False, [2.0, [4, 4, 4], [1, 1, 1]])):
        found = model([multiop.op_convert_to_tensor(flag), multiop.op_ones(3)])
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(plain(one), other)


class Noise(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator(1)

    def call(self, x, training=False):
        if not training:
            return x
        x = draws.dropout(x, 0.25, seed=self.seed_generator)
        return x + 0.1 * draws.normal(ops.shape(x), seed=self.seed_generator)


class Sampling(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator(2)

    def call(self, inputs):
        mean, log_variance = inputs
        self.add_loss(-0.005 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance)))
        return mean + ops.exp(0.5 * log_variance) * draws.normal(ops.shape(mean), seed=self.seed_generator)


@differentiates
def test_layers_that_draw_train_in_a_variational_autoencoder():
    keras.utils.set_random_seed(0)
    x = keras.Input((4,))
    hidden = keras.layers.Dense(8, activation="relu")(Noise()(x))
    sampling = Sampling()
    z = sampling([keras.layers.Dense(2)(hidden), keras.layers.Dense(2)(hidden)])
    model = keras.Model(x, keras.layers.Dense(4)(z))
    model.compile(keras.optimizers.Adam(0.01), "mse")
    samples = np.random.default_rng(0).normal(size=(70, 2)).astype("float32") @ np.ones((2, 4), "float32")
    losses = model.fit(samples, samples, batch_size=16, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0]
    first, second = (model.predict(samples, verbose=0) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3  # each call draws anew
    assert multiop.op_convert_to_numpy(sampling.seed_generator.state.value)[1] > 100  # and so does each compiled step


def test_a_generator_of_keras_gives_the_keys_of_its_state():
    generator = keras.random.SeedGenerator(5)
    key = multiop.op_convert_to_numpy(draws.key(generator))
    assert (key.dtype.name, key[0]) == ("uint32", 5)
    x, y = draws.uniform((3,), seed=generator), draws.uniform((3,), seed=generator.next())
    assert np.abs(multiop.op_convert_to_numpy(x) - multiop.op_convert_to_numpy(y)).max() > 1e-3


@differentiates
def test_a_generator_of_multiop_says_what_to_use_in_a_compiled_layer():
    if keras.backend.backend() == "torch":
        return  # its steps are not compiled
    generator = draws.SeedGenerator(1)

    class Wrong(keras.layers.Layer):
        def call(self, x):
            return x + draws.normal((4,), seed=generator)

    model = keras.Sequential([Wrong()])
    model.compile("sgd", "mse")
    with pytest.raises(errors.ArgumentError, match=r"use a keras\.random\.SeedGenerator"):
        model.fit(np.zeros((4, 4)), np.zeros((4, 4)), verbose=0)


def test_a_variable_of_keras_is_constant_where_it_is_stopped():
    weight = keras.Variable(3.0)
    x = multiop.op_convert_to_tensor(2.0)

    def f(x):
        return multiop.op_stop_gradient({"w": weight})["w"] * x

    assert float(multiop.grad(f)(x)) == 3
    if BACKEND == "torch":
        assert not f(x).requires_grad
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            y = f(x)
        assert tape.gradient(y, weight.value) is None
