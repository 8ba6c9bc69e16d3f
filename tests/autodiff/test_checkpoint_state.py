"""A checkpointed function that draws random numbers or changes values: as without checkpoint, or refused by name."""

import contextlib
import copy
import gc
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._rules import rerun_state

X = np.arange(1, 9, dtype=np.float32) / 4


def host(x):
    return np.asarray(mo.op_convert_to_numpy(x))


# each makes a function, and another that returns the state which it leaves


def seed_generator():
    generator = mo.random.SeedGenerator(7)
    return lambda x: mo.random.dropout(x, 0.5, seed=generator), lambda: generator.state


def generator_of_the_process():
    mo.random.set_seed(3)
    return lambda x: mo.random.dropout(x, 0.5), lambda: host(mo.random.key()).tolist()


def seed_set_inside():
    def f(x):
        mo.random.set_seed(5)
        return mo.random.dropout(x, 0.5) * mo.random.uniform(x.shape)

    return f, lambda: host(mo.random.key()).tolist()


def copied_and_rewound():
    generator = mo.random.SeedGenerator(7)

    def f(x):
        own, state = copy.deepcopy(generator), generator.state
        y = mo.random.dropout(x, 0.5, seed=generator) * mo.random.uniform(x.shape, seed=own)
        generator.state = state
        generator.next()
        return y + mo.random.dropout(x, 0.5, seed=generator)

    return f, lambda: generator.state


def numpy_global():
    np.random.seed(0)  # noqa: NPY002
    return lambda x: mo.op_multiply(x, np.random.rand(8).astype(np.float32)), np.random.rand  # noqa: NPY002


def numpy_generator():
    class Noise:
        def __init__(self):
            self.parts = [np.random.default_rng(0)]

        def __call__(self, x):
            return mo.op_multiply(x, self.parts[0].random(8, dtype=np.float32))

    noise = Noise()
    return noise, noise.parts[0].random


def python_global():
    random.seed(1)
    return lambda x: x * random.random(), random.random


def keras_generator():
    import keras

    layer = keras.layers.Dropout(0.5, seed=3)
    return lambda x: layer(x, training=True), lambda: host(layer.seed_generator.state.value).tolist()


def torch_generator():
    import torch

    generator = torch.Generator()
    generator.manual_seed(3)
    noise = lambda x: torch.empty_like(x).bernoulli_(0.5, generator=generator) + torch.rand(8, generator=generator)
    return lambda x: x * noise(x), lambda: torch.rand((), generator=generator).item()


def torch_global():
    import torch

    torch.manual_seed(3)
    return lambda x: torch.dropout(x, 0.5, True), lambda: torch.rand(()).item()


def torch_statistics():
    import torch

    layer, weights = torch.nn.BatchNorm1d(4), mo.op_convert_to_tensor(X.reshape(2, 4))
    statistics = (layer.running_mean, layer.running_var, layer.num_batches_tracked)
    return lambda x: layer(x.reshape(2, 4)) * weights, lambda: np.concatenate([np.ravel(x) for x in statistics])


def torch_buffer():
    import torch

    buffer = torch.zeros(8)

    def f(x):
        with torch.no_grad():
            buffer.mul_(0.9)[2:].add_(x.detach()[2:])
        return x * buffer.clone()

    return f, buffer.tolist


def tensorflow_generator():
    import tensorflow as tf

    generator = tf.random.Generator.from_seed(1)
    return lambda x: x * generator.uniform([8]) * generator.normal([8]), lambda: host(generator.state).tolist()


def tensorflow_variable():
    import tensorflow as tf

    mean = tf.Variable(np.ones(8, np.float32), trainable=False)

    def f(x):
        mean.assign(mean * 0.5 + tf.stop_gradient(x))
        return x * mean * mean

    return f, lambda: host(mean).tolist()


ANYWHERE = (
    seed_generator, generator_of_the_process, seed_set_inside, copied_and_rewound, numpy_global, numpy_generator,
    python_global,
)  # fmt: skip
ON = {
    "torch": (torch_generator, torch_global, torch_statistics, torch_buffer),
    "tensorflow": (tensorflow_generator, tensorflow_variable),
    "jax": (),
    "numpy": (),
}


def loss(f):
    return lambda x: mo.op_sum(mo.op_sin(f(x)) * f(x))  # two runs, each with its own numbers


def twice(pullback):
    return pullback(mo.op_ones(()))[0] + pullback(mo.op_ones(()))[0]


WAYS = {
    "gradient": lambda wrap, f: mo.grad(loss(wrap(f))),
    "nested": lambda wrap, f: mo.grad(loss(wrap(lambda x: mo.op_exp(wrap(f)(x))))),
    "second order": lambda wrap, f: mo.grad(lambda x: mo.op_sum(mo.op_square(mo.grad(loss(wrap(f)))(x)))),
    "gradient inside": lambda wrap, f: mo.grad(loss(wrap(mo.grad(lambda x: mo.op_sum(mo.op_square(f(x))))))),
    "pullback called twice": lambda wrap, f: lambda x: twice(mo.vjp(loss(wrap(f)), x)[1]),
    "value": lambda wrap, f: wrap(f),
}


def compare(way, makes):
    for make in makes:
        found = []
        for wrap in (lambda f: f, mo.checkpoint):
            f, state = make()
            found.append((host(WAYS[way](wrap, f)(mo.op_convert_to_tensor(X))), state()))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-4, atol=1e-6, err_msg=make.__name__)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-6, err_msg=make.__name__)


@pytest.mark.parametrize("transform", [mo.grad, mo.vmap, mo.jit, mo.checkpoint, mo.op_custom_gradient])
def test_a_generator_is_known_under_any_number_of_transforms(transform):
    generator = np.random.default_rng(0)
    f = lambda x: x * generator.random()
    for _ in range(6):
        assert any(x is generator for x in rerun_state.host_generators(f, ()))
        f = transform(f)


def test_a_checkpoint_repeats_what_was_drawn_and_leaves_what_one_run_leaves(backend):
    compare("gradient", (seed_generator, numpy_generator, *ON[backend]))


@pytest.mark.tier("full")
@pytest.mark.parametrize("way", WAYS)
def test_a_checkpoint_repeats_every_way(backend, way):
    makes = {*ANYWHERE, *ON[backend]}
    if way == "second order":
        makes -= {torch_buffer}  # PyTorch refuses it without a checkpoint too
    compare(way, makes)


@pytest.mark.tier("full")
def test_a_checkpoint_repeats_keras(backend):
    if backend == "numpy":
        pytest.skip("Keras on NumPy makes plain arrays of what is differentiated, which is refused")
    environment = os.environ | {"KERAS_BACKEND": backend, "MULTIOP_BACKEND": backend}
    code = "import test_checkpoint_state as tests; tests.compare('nested', [tests.keras_generator])"
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=Path(__file__).parent)


def test_a_generator_in_use_elsewhere_gives_no_key_twice(backend):
    generator, keys = mo.random.SeedGenerator(7), []

    def block(x):
        key = generator.next()
        keys.append(tuple(host(key).tolist()) if backend != "jax" else None)
        return x * mo.random.uniform(x.shape, seed=key)

    def others():
        keys.extend(tuple(host(generator.next()).tolist()) for _ in range(20))

    thread = threading.Thread(target=others)
    value, pullback = mo.vjp(mo.checkpoint(block), mo.op_convert_to_tensor(X))
    thread.start()
    (gradient,) = pullback(mo.op_ones_like(value))
    thread.join()
    np.testing.assert_allclose(host(gradient), host(value) / X, rtol=1e-6)
    assert generator.state == (7, 21)
    drawn = keys if backend == "jax" else [*{*keys}]
    assert len(drawn) == 21


def test_a_generator_without_a_seed_is_made_outside(backend):
    block = mo.checkpoint(lambda x: mo.random.dropout(x, 0.5, seed=mo.random.SeedGenerator()))
    with pytest.raises(errors.ArgumentError, match="SeedGenerator: seed must be given in a checkpointed function"):
        block(mo.op_convert_to_tensor(X))


@pytest.mark.traced
def test_a_compiled_checkpoint_takes_no_generator(backend):
    generator = mo.random.SeedGenerator(7)
    compiled = mo.jit(mo.checkpoint(lambda x: mo.random.dropout(x, 0.5, seed=generator)))
    with pytest.raises(errors.ArgumentError, match="SeedGenerator"):
        compiled(mo.op_convert_to_tensor(X))
    inside = mo.checkpoint(mo.jit(lambda x: mo.random.dropout(x, 0.5, seed=generator)))
    with pytest.raises(errors.ArgumentError, match="SeedGenerator"):
        inside(mo.op_convert_to_tensor(X))


@pytest.mark.compiler
def test_a_compiled_function_in_a_checkpoint_draws_the_same_numbers_again(backend):
    if backend != "torch":
        pytest.skip("about PyTorch's generator")
    import torch

    for wrap in (lambda f: mo.checkpoint(mo.jit(f)), lambda f: mo.jit(mo.checkpoint(f))):
        torch.manual_seed(0)
        f = wrap(lambda x: torch.dropout(x, 0.5, True))
        value, gradient = mo.value_and_grad(lambda x, f=f: mo.op_sum(f(x)))(torch.ones(64))
        assert host(gradient).sum() == value


def test_writing_what_has_a_gradient_is_refused(backend):
    if backend != "torch":
        pytest.skip("elsewhere tensors are not written to")
    import torch

    buffer = torch.zeros(8)

    def f(x):
        buffer[2:] = x[2:] * 2
        return buffer * x

    with pytest.raises(errors.UnsupportedError, match="cannot write differentiable values"):
        mo.grad(lambda x: mo.op_sum(mo.checkpoint(f)(x)))(torch.ones(8))


def _draws(tf):
    counter, items = tf.Variable(0.0), iter(tf.data.Dataset.range(100))
    generator = tf.random.Generator.from_seed(1)
    return {
        "RandomUniform": lambda: tf.nn.dropout(tf.ones([]), 0.5),
        "NonDeterministicInts": lambda: tf.random.Generator.from_non_deterministic_state().uniform([]),
        "AssignAddVariableOp": lambda: counter.assign_add(1.0),
        "IteratorGetNext": lambda: tf.cast(next(items), tf.float32),
        "RngReadAndSkip": tf.function(lambda: generator.uniform([])),
        "RandomShuffle": lambda: tf.random.shuffle([1.0, 2.0])[0],
        "UniformCandidateSampler": lambda: tf.cast(
            tf.random.uniform_candidate_sampler([[1]], 1, 1, False, 9)[0][0], tf.float32
        ),
    }


def test_state_that_cannot_be_put_back_is_refused(backend):
    if backend != "tensorflow":
        pytest.skip("elsewhere all state can be put back")
    import tensorflow as tf

    for name, draw in _draws(tf).items():
        for wrap in (lambda f: f, lambda f: tf.function(f, autograph=False)):
            with pytest.raises(errors.UnsupportedError, match=name):
                wrap(mo.checkpoint(lambda x, draw=draw: x * draw()))(tf.constant(1.0))
    own = mo.checkpoint(lambda x: x * tf.cast(next(iter(tf.data.Dataset.range(3, 9))), tf.float32))
    assert float(mo.grad(own)(1.0)) == 3


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


BLOCKS = {  # whose kernels on PyTorch are chosen by what surrounds the call
    "norm": (mo.op_norm, numbers(5, 6)),
    "normalize": (mo.op_normalize, numbers(5, 6)),
    "cdist": (lambda x: mo.op_cdist(x, x[:3] + 1), numbers(80, 40)),
    "std": (mo.op_std, numbers(100, 100)),
    "var": (lambda x: mo.op_var(x, axis=1), numbers(100, 100)),
    "conv": (lambda x: mo.op_conv(x, numbers(3, 3, 3, 4), bias=numbers(4)), numbers(2, 8, 8, 3)),
    "resize": (lambda x: mo.op_image_resize(x, (16, 16)), numbers(2, 8, 8, 3)),
    "eigh": (lambda x: mo.op_eigh(x @ mo.op_transpose(x))[0], numbers(5, 5)),
    "top_k": (lambda x: mo.op_top_k(x, 3)[0], numbers(4, 3000)),
}


def of_squares(f):
    return mo.grad(lambda x: mo.op_sum(mo.op_square(f(x))))


@pytest.mark.parametrize("name", BLOCKS)
def test_both_runs_choose_one_kernel(backend, name):
    f, x = BLOCKS[name]
    x = mo.op_convert_to_tensor(x)
    expected, nested = host(of_squares(f)(x)), mo.checkpoint(lambda x: mo.checkpoint(f)(x))
    for wrapped in (mo.checkpoint(f), nested):
        np.testing.assert_allclose(host(of_squares(wrapped)(x)), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("is_seen_forwards", [True, False])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_profiler_of_one_pass_changes_no_kernel(backend, name, is_seen_forwards, is_native):
    if backend != "torch":
        pytest.skip("about PyTorch's modes")
    import torch
    from torch.utils.checkpoint import checkpoint
    from torch.utils.flop_counter import FlopCounterMode

    f, x = BLOCKS[name][0], torch.from_numpy(BLOCKS[name][1])
    expected = of_squares(f)(x)
    x = x.clone().requires_grad_()
    counter, nothing = FlopCounterMode(display=False), contextlib.nullcontext()
    with counter if is_seen_forwards else nothing:
        y = checkpoint(f, x, use_reentrant=False) if is_native else mo.checkpoint(f)(x)
        y = mo.op_sum(mo.op_square(y))
    with nothing if is_seen_forwards else counter:
        y.backward()
    np.testing.assert_allclose(x.grad, expected, rtol=1e-3, atol=1e-4)


SAVES = {  # what saves a result of its own for its gradient
    "jit": lambda x: mo.jit(lambda a: a * mo.op_tanh(x))(x),
    "jit of a gradient": lambda x: mo.jit(lambda a: mo.grad(lambda b: mo.op_sum(b * mo.op_exp(b) * x))(a))(x),
    "a custom gradient": lambda x: mo.op_custom_gradient(lambda a: (mo.op_tanh(a), lambda u: u * mo.op_exp(a)))(x),
    "a checkpoint": lambda x: mo.checkpoint(lambda a: a * mo.op_sqrt(x))(x),
    "a loop": lambda x: mo.op_fori_loop(0, 2, lambda _, a: a * mo.op_tanh(x), x),
}


@pytest.mark.parametrize("name", SAVES)
def test_what_a_checkpoint_computes_beside_its_result_is_freed(backend, young_heap, name):
    f = mo.checkpoint(lambda x: (SAVES[name](x), mo.op_sum(x * x))[1])
    x, counts = mo.op_convert_to_tensor(X), []
    for _ in range(4):
        f_of_x, pull = mo.vjp(f, x)
        del f_of_x, pull  # no way back frees anything
        gc.collect()
        counts.append(sum(type(y).__name__ in ("Tensor", "EagerTensor", "ArrayImpl") for y in gc.get_objects()))
    assert counts[3] <= counts[1]


@pytest.mark.parametrize("name", SAVES)
def test_a_checkpoint_around_what_saves_has_the_same_second_order(backend, name):
    def second(f):
        return host(
            mo.grad(lambda x: mo.op_sum(mo.grad(lambda x: mo.op_sum(f(x)))(x) ** 2))(mo.op_convert_to_tensor(X))
        )

    np.testing.assert_allclose(second(mo.checkpoint(SAVES[name])), second(SAVES[name]), rtol=1e-5)


def test_an_array_that_is_changed_later_changes_no_gradient(backend):
    for c in (np.array([2.0, 3.0], np.float32), np.array([2, 3], np.int32)):
        x = mo.op_convert_to_tensor(np.ones(2, np.float32))
        _, pull = mo.vjp(lambda x, c=c: mo.checkpoint(lambda x, c: mo.op_multiply(mo.op_sin(x), c))(x, c), x)
        c[:] = -5
        np.testing.assert_allclose(host(pull(mo.op_ones_like(x))[0]), np.cos(1) * np.array([2, 3]), rtol=1e-6)
