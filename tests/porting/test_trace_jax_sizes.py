"""Functions of JAX whose sizes are open: values and gradients at sizes that they were not traced with."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax_rows
import ported

import multiop
from multiop import errors, porting

jnp, lax = jax.numpy, jax.lax


@pytest.fixture(autouse=True)
def natively_in_64_bits(in_64_bits):
    with jax.enable_x64(True):
        yield


def barlow_twins(p, x, y):
    x, y = ((p["p"] * z - z.mean(0)) / z.std(0) for z in (x, y))
    return x.T @ y / len(x)


def contrasted(p, x):
    x = jnp.concatenate([x, jnp.roll(x, 1, 1)]) * p["p"]
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    similarity = jnp.where(jnp.eye(len(x), dtype=bool), -jnp.inf, x @ x.T / 0.5)
    count = len(x) // 2
    labels = jnp.concatenate([jnp.arange(count) + count, jnp.arange(count)])
    return -jnp.take_along_axis(jax.nn.log_softmax(similarity), labels[:, None], 1).mean()


def guided(p, x):
    half = jnp.sin(x[: len(x) // 2] * p["p"])
    first, second = jnp.split(jnp.concatenate([half, 2 * half]), 2)
    return second + 3 * (first - second)


def halves(p, x):
    y = jnp.pad(x, ((0, 0), (0, -x.shape[1] % 4)))
    return p["p"] * y, x[:, : x.shape[1] // 2], x[:, 1:-1], *jnp.split(x, [x.shape[1] // 3], 1)


def filled(p, x):
    x = (p["p"] * x).at[:, x.shape[1] // 2 :].set(0.5)
    return x + jnp.full((1,), 1 / x.shape[1]) + jnp.linspace(0, 1, x.shape[1])


def upsampled(p, x, y):
    shape = (len(x), *y.shape[1:3], x.shape[3])
    return [y + jax.image.resize(p["p"] * x, shape, method) for method in ("nearest", "bilinear", "cubic")]


def pooled(p, x):
    window = (1, 3, 3, 1), (1, 2, 2, 1), "SAME"
    kernel = jnp.ones((3, 3, 2, 2))
    return (
        lax.reduce_window(p["p"] * x, -jnp.inf, lax.max, *window),
        lax.reduce_window(p["p"] * x, 0.0, lax.add, *window),
        lax.conv_general_dilated(p["p"] * x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
    )


SIZES = {  # the function, the shapes with open sizes, and two shapes of each input, of which the first is traced
    "divided by a root": (lambda p, x: p["p"] * x / math.sqrt(x.shape[1]), "b, t", [((3, 5), (4, 9))]),
    "powers": (
        lambda p, x: p["p"] * x * x.shape[1] ** -0.5 * np.log(x.shape[1] + 1) * math.exp(1 / len(x)),
        "b, t",
        [((3, 5), (4, 9))],
    ),
    "centred": (lambda p, x: (p["p"] * x - (x.shape[1] - 1) / 2) * (2 / (len(x) + 1)), "b, t", [((3, 5), (4, 9))]),
    "variances": (
        lambda p, x: (p["p"] * x.var(1), x.std((0, 1)), x.var(0, ddof=1)),
        "b, t, 2",
        [((3, 5, 2), (4, 9, 2))],
    ),
    "median": (lambda p, x: (p["p"] * jnp.median(x, 1), jnp.quantile(x, 0.3, 1)), "b, t", [((3, 5), (4, 9))]),
    "barlow twins": (barlow_twins, "b, 4", [((3, 4), (5, 4))] * 2),
    "contrasted": (contrasted, "b, 4", [((3, 4), (5, 4))]),
    "guided": (guided, "2*half, 3", [((4, 3), (6, 3))]),
    "halves": (halves, "b, t", [((5, 7), (4, 9))]),
    "filled": (filled, "b, t", [((3, 6), (4, 9))]),
    "upsampled": (
        upsampled,
        ["b, h, w, 2", "b, k, l, 2"],
        [((2, 4, 6, 2), (3, 6, 5, 2)), ((2, 7, 9, 2), (3, 8, 5, 2))],
    ),
    "pooled": (pooled, "b, h, w, 2", [((2, 4, 6, 2), (3, 7, 5, 2))]),
    "windows": (lambda p, x: p["p"] * x.reshape(len(x), x.shape[1] // 4, 4), "b, 4*t", [((3, 8), (4, 12))]),
    "largest share": (lambda p, x: lax.top_k(p["p"] * x, max(1, x.shape[1] // 2))[0], "b, t", [((3, 6), (4, 9))]),
    "repeated": (
        lambda p, x: jnp.tile(x, (len(x), 1)).reshape(len(x), len(x), -1) - p["p"] * x[:, None],
        "b, 4",
        [((3, 4), (5, 4))],
    ),
    "mesh": (lambda p, x: p["p"] * x + sum(jnp.meshgrid(*map(jnp.arange, x.shape[::-1]))), "b, t", [((3, 6), (4, 9))]),
}


def drawn(shapes):
    return [jnp.asarray(np.random.default_rng(i).normal(size=shape)) for i, shape in enumerate(shapes)]


def traced(line, inputs, shapes):
    model = functools.partial(line, {"p": jnp.asarray(1.3)})
    return porting.trace(model, *inputs, dynamic_shapes=shapes if isinstance(shapes, list) else [shapes] * len(inputs))


@functools.cache
def ported_at(name):
    line, shapes, pairs = SIZES[name]
    return traced(line, drawn(a for a, _ in pairs), shapes)


FULL = pytest.mark.tier("full")
QUICK = ("divided by a root", "guided", "halves")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=FULL) for name in SIZES])
def test_other_sizes(name, backend):
    line, _, pairs = SIZES[name]
    for shapes in zip(*pairs, strict=True):
        inputs = drawn(shapes)
        outputs, gradients = jax_rows.original(line, {"p": np.asarray(1.3)}, inputs)
        with multiop.use_backend(backend):
            computed, slopes, _ = ported.ported(ported_at(name), inputs)
        assert ported.error_between(computed, outputs) < 1e-10
        assert ported.error_between(slopes, gradients) < 1e-9


@pytest.mark.parametrize(
    ("line", "traced_at", "other", "words"),
    [
        (lambda p, x: x * 2 if x.shape[1] > 4 else x * 3, 6, 3, "t >= 4 \\+ 1, got t = 3"),
        (lambda p, x: x * 2 if x.shape[1] > 4 else x * 3, 3, 6, "4 >= t, got t = 6"),
        (lambda p, x: x * 2 if x.shape[1] == 4 else x * 3, 6, 4, "t != 4, got t = 4"),
        (lambda p, x: x * 2 if x.shape[1] % 2 else x * 3, 6, 5, "t % 2 == 0, got t = 5"),
        (lambda p, x: x * 2 if x.shape == (3, 4) else x * 3, 6, 4, "t != 4, got t = 4"),
        (lambda p, x: x.reshape(len(x), x.shape[1] // 2, 2), 6, 5, "a multiple of 2, got 5"),
    ],
)
def test_sizes_where_the_original_does_something_else(line, traced_at, other, words):
    port = traced(line, drawn([(3, traced_at)]), ["3, 2*t" if "multiple" in words else "3, t"])
    with multiop.use_backend("jax"):
        port.function(port.params, port.state, np.ones((3, traced_at)))
        with pytest.raises(errors.ArgumentError, match=words):
            port.function(port.params, port.state, np.ones((3, other)))


@pytest.mark.parametrize(
    "line",
    [
        lambda p, x: x * int(x.shape[1] * 0.5),
        lambda p, x: x[:, x.shape[1] // 2],
        lambda p, x: sum(x[:, i] for i in range(x.shape[1])),
    ],
)
def test_what_no_open_size_can_do_is_refused_by_its_name(line):
    with pytest.raises(errors.TranslationError, match=r"with the open sizes b, t, at .*test_trace_jax_sizes.py:\d+"):
        traced(line, drawn([(3, 6)]), "b, t")


@pytest.mark.parametrize(
    "line", [lambda p, x: x * 2 if x.shape[1] == 4 else x * 3, lambda p, x: x * 2 if x.shape == (3, 4) else x * 3]
)
def test_a_size_that_has_a_name_and_is_fixed_is_refused(line):
    with pytest.raises(errors.TranslationError, match=r"size t is to stay open, and .*to 4, at .*jax_sizes.py:\d+$"):
        traced(line, drawn([(3, 4)]), ["3, t"])


def test_a_size_that_is_fixed_is_told():
    with pytest.warns(
        UserWarning, match="all sizes are fixed, since the model does not take others: .*open size batch"
    ):
        port = porting.trace(
            functools.partial(lambda p, x: sum(x[i] * p for i in range(len(x))), 1.3), *drawn([(3, 2)])
        )
    with multiop.use_backend("jax"), pytest.raises(errors.ArgumentError, match=r"must have the shape \(3, 2\)"):
        port.function(port.params, port.state, np.ones((4, 2)))


def test_what_a_trace_replaces_is_put_back():
    before = len, math.sqrt, math.log
    traced(SIZES["divided by a root"][0], drawn([(3, 5)]), "b, t")
    assert before == (len, math.sqrt, math.log)
    with pytest.raises(TypeError):
        len(jnp.asarray(1.0))
