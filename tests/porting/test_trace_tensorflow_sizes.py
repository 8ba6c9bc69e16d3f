"""Functions of TensorFlow whose sizes are open: values and gradients at sizes that they were not traced with."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from ported import error_between, leaves, ported, weights

import multiop
from multiop import errors, porting

shape = tf.shape


def real(x):
    return tf.cast(x, tf.float64)


def barlow_twins(p, x, y):
    x, y = ((p * z - tf.reduce_mean(z, 0)) / tf.math.reduce_std(z, 0) for z in (x, y))
    return tf.matmul(x, y, transpose_a=True) / real(shape(x)[0])


def contrasted(p, x):
    x = tf.math.l2_normalize(tf.concat([x, tf.roll(x, 1, 1)], 0) * p, 1)
    similarity = tf.matmul(x, x, transpose_b=True) / 0.5 - 1e9 * tf.eye(shape(x)[0], dtype=x.dtype)
    count = shape(x)[0] // 2
    labels = tf.concat([tf.range(count) + count, tf.range(count)], 0)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, similarity))


def guided(p, x):
    half = tf.sin(x[: shape(x)[0] // 2] * p)
    first, second = tf.split(tf.concat([half, 2 * half], 0), 2)
    return second + 3 * (first - second)


def halves(p, x):
    parts = tf.split(p * x, [shape(x)[1] // 3, shape(x)[1] - shape(x)[1] // 3], 1)
    return p * x[:, : shape(x)[1] // 2], x[:, shape(x)[1] // 2], tf.pad(x, [[0, 0], [0, -shape(x)[1] % 4]]), parts


def filled(p, x):
    line = tf.linspace(tf.constant(0.0, x.dtype), 1.0, shape(x)[1])
    return p * x * tf.sequence_mask(shape(x)[1] // 2, shape(x)[1], dtype=x.dtype) + line / real(shape(x)[1] - 1)


def chosen(condition):
    return lambda p, x: tf.cond(condition(shape(x)[1]), lambda: p * x, lambda: x)


SIZES = {  # the function, and shapes of each input, of which the first is traced: its open axes are those that differ
    "divided by a root": (lambda p, x: p * x / tf.sqrt(real(shape(x)[1])), [((3, 5), (4, 9))]),
    "centred": (lambda p, x: (p * x - real((shape(x)[1] - 1) / 2)) * (2 / real(shape(x)[0] + 1)), [((3, 5), (4, 9))]),
    "logarithm": (lambda p, x: p * x * tf.math.log(real(shape(x)[1])) ** -0.5, [((3, 5), (4, 9))]),
    "variances": (lambda p, x: (*tf.nn.moments(p * x, [0]), tf.math.reduce_std(x, 1)), [((3, 5), (4, 9))]),
    "barlow twins": (barlow_twins, [((3, 4), (5, 4))] * 2),
    "contrasted": (contrasted, [((3, 4), (5, 4))]),
    "guided": (guided, [((4, 3), (6, 3))]),
    "halves": (halves, [((5, 7), (4, 10))]),
    "filled": (filled, [((3, 6), (4, 9))]),
    "windows": (lambda p, x: tf.reshape(p * x, (shape(x)[0], shape(x)[1] // 4, 4)), [((3, 8), (4, 12))]),
    "largest share": (lambda p, x: tf.math.top_k(p * x, tf.maximum(1, shape(x)[1] // 2))[0], [((3, 6), (4, 9))]),
    "nearest": (
        lambda p, x, y: y + tf.image.resize(p * x, shape(y)[1:3], "nearest"),
        [((2, 4, 6, 2), (3, 6, 5, 2)), ((2, 7, 9, 2), (3, 8, 5, 2))],
    ),
    "transposed convolution": (
        lambda p, x: tf.nn.conv2d_transpose(
            p * x, tf.ones((3, 3, 2, 2), x.dtype), (shape(x)[0], 2 * shape(x)[1], 2 * shape(x)[2], 2), 2
        ),
        [((2, 4, 6, 2), (3, 7, 8, 2))],
    ),
    "spectrum": (lambda p, x: tf.abs(tf.signal.rfft(p * x)), [((3, 6), (4, 9))]),
    # what large sizes do is not what small ones do
    "more than four": (chosen(lambda n: n > 4), [((3, 6), (4, 9), (3, 3))]),
    "exactly six": (chosen(lambda n: n == 6), [((3, 6), (4, 9))]),
    "an even number": (chosen(lambda n: n % 2 == 0), [((3, 6), (4, 9), (3, 3), (3, 4))]),
    "where": (lambda p, x: tf.where(shape(x)[1] > 4, p * x, x), [((3, 6), (4, 9), (3, 3))]),
    "at most seven": (lambda p, x: p * x / real(tf.minimum(shape(x)[1], 7)), [((3, 6), (4, 9))]),
    "at least seven": (lambda p, x: p * x / real(tf.maximum(shape(x)[1], 7)), [((3, 9), (4, 6))]),
}


class Function(tf.Module):
    def __init__(self, line):
        super().__init__()
        self.line, self.p = line, tf.Variable(tf.constant(1.3, tf.float64))

    def __call__(self, *inputs):
        return self.line(self.p, *inputs)


def drawn(shapes):
    return [np.random.default_rng(i).normal(size=own) for i, own in enumerate(shapes)]


def opened(shapes):
    """Name the axes that differ; the first of all inputs is one."""
    sizes = [[i for i, along in enumerate(zip(*own, strict=True)) if len(set(along)) > 1] for own in shapes]
    return [{axis: f"n{i}_{axis}" if axis else "batch" for axis in axes} for i, axes in enumerate(sizes)]


@functools.cache
def ported_at(name):
    line, shapes = SIZES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return porting.trace(Function(line), *drawn(own[0] for own in shapes), dynamic_shapes=opened(shapes))


FULL = pytest.mark.tier("full")
QUICK = ("divided by a root", "more than four", "guided")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=FULL) for name in SIZES])
def test_other_sizes(name, backend):
    line, shapes = SIZES[name]
    for number in range(len(shapes[0])):
        inputs = drawn(own[number] for own in shapes)
        model, tensors = Function(line), list(map(tf.constant, inputs))
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            outputs = leaves(model(*tensors))
            total = tf.add_n([tf.reduce_sum(y * weights(y.shape)) for y in outputs])
        slopes = tape.gradient(total, [model.p, *tensors], unconnected_gradients="zero")
        expected = {name: y.numpy() for name, y in zip(["p", "input 0", "input 1"], slopes, strict=False)}
        with multiop.use_backend(backend):
            computed, gradients, _ = ported(ported_at(name), inputs)
        assert error_between(computed, [y.numpy() for y in outputs]) < 1e-10
        assert error_between(gradients, expected) < 1e-9


@pytest.mark.parametrize(
    ("line", "traced", "other", "words"),
    [
        (lambda p, x: p * x[:, :7], 9, 6, "size >= 7, got size = 6"),
        (lambda p, x: p * x[:, -7:], 9, 6, "size >= 7, got size = 6"),
        (lambda p, x: tf.squeeze(p * x), 9, 1, "size != 1, got size = 1"),
        (lambda p, x: tf.linalg.diag_part(p * x), 9, 2, "3 <= size, got size = 2"),
        (lambda p, x: tf.math.top_k(x, tf.maximum(2, shape(x)[1] // 3))[0], 9, 4, r"2 < \(size // 3\), got size = 4"),
    ],
)
def test_sizes_where_the_original_does_something_else(line, traced, other, words):
    port = porting.trace(Function(line), *drawn([(3, traced)]), dynamic_shapes=[{1: "size"}])
    with multiop.use_backend("tensorflow"):
        port.function(port.params, port.state, *drawn([(3, traced)]))
        with pytest.raises(errors.ArgumentError, match=words):
            port.function(port.params, port.state, *drawn([(3, other)]))


@pytest.mark.parametrize(
    "line",
    [lambda p, x: p * x + tf.ones((6,), x.dtype), lambda p, x: sum(p * x[:, i] for i in range(x.shape[1]))],
)
def test_a_size_that_has_a_name_and_is_fixed_is_refused(line):
    words = r"cannot trace Function with the open size length, at .*tensorflow_sizes.py:\d+: "
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(Function(line), *drawn([(3, 6)]), dynamic_shapes=[{1: "length"}])


def test_a_signature_that_fixes_a_size_that_has_a_name_is_refused():
    concrete = tf.function(lambda x: x * 2).get_concrete_function(tf.TensorSpec((None, 6), name="given"))
    with pytest.raises(errors.TranslationError, match="size length is to stay open, and the signature fixes it to 6"):
        porting.trace(concrete, tf.ones((3, 6)), dynamic_shapes="batch, length")


def test_an_example_that_does_what_larger_sizes_do_not():
    with pytest.raises(errors.TranslationError, match="does something else where size >= 7"):
        porting.trace(Function(lambda p, x: p * x[:, :7]), *drawn([(3, 6)]), dynamic_shapes=[{1: "size"}])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (lambda p, x: tf.image.resize(p * x, 2 * shape(x)[1:3], "bicubic"), r"from h x w to 2\*h x 2\*w"),
        (lambda p, x: tf.signal.irfft(tf.cast(x, tf.complex128), [shape(x)[3] + shape(x)[1]])[..., 0], "h"),
    ],
)
def test_refused_sizes_are_named(line, words):
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(Function(line), *drawn([(2, 4, 6, 2)]), dynamic_shapes=[{0: "batch", 1: "h", 2: "w"}])


def unpacked(p, x):
    _, length = x.shape
    return p * x if length is not None and length != 6 else x


@tf.function
def decorated(p, x):
    return p * x if x.shape[1] == 6 else x


@pytest.mark.parametrize(
    "line",
    [
        lambda p, x: p * x if x.shape[1] == 6 else x,
        lambda p, x: p * x if x.shape.as_list()[1] in (2, 6) else x,
        lambda p, x: p * x if tuple(x.shape[1:]) != (6,) else x,
        lambda p, x: p * x if x.get_shape()[1:] == (6,) else x,
        lambda p, x: p * x * {6: 2.0}.get(x.shape[1], 3.0),
        lambda p, x: p * x * {5: 2.0}.get(x.shape[1], 3.0),  # what it does not find, it compares with nothing
        lambda p, x: p * x if tuple(x.shape[1:]) in {(5,), (7,)} else x,
        lambda p, x: p * x if x.shape[1] else x,
        lambda p, x: p * x * (x.shape[1] or 3),
        unpacked,
        decorated,
    ],
)
def test_a_size_that_has_a_name_and_is_compared_is_refused(line):
    with pytest.raises(errors.TranslationError, match="size length is to stay open, and Function fixes it to 6, at /"):
        porting.trace(Function(line), *drawn([(3, 6)]), dynamic_shapes="batch, length")


def test_a_size_that_is_compared_and_differs_is_a_guard():
    def line(p, x):
        return p * x if x.shape[1] == 7 or x.shape == tf.sin(x).shape else 2 * x

    port = porting.trace(Function(line), *drawn([(3, 6)]), dynamic_shapes="batch, length")
    port.function(port.params, port.state, *drawn([(4, 8)]))
    with pytest.raises(errors.ArgumentError, match="length != 7, got length = 7"):
        port.function(port.params, port.state, *drawn([(4, 7)]))
    square = porting.trace(
        Function(lambda p, x: p * x if x.shape[0] == x.shape[1] else x),
        *drawn([(6, 6)]),
        dynamic_shapes="batch, length",
    )
    square.function(square.params, square.state, *drawn([(4, 4)]))
    with pytest.raises(errors.ArgumentError, match="batch == length, got batch = 4"):
        square.function(square.params, square.state, *drawn([(4, 7)]))
    with pytest.warns(UserWarning, match="all sizes are fixed, .* the size batch .*test_trace_tensorflow_sizes.py:"):
        porting.trace(Function(lambda p, x: p * x if x.shape[0] == 3 else x), *drawn([(3, 6)]))
