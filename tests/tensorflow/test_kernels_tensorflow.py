"""Ops are TensorFlow's own kernels, with kernels for gradients where those are right, whatever the numbers are."""

from __future__ import annotations

import math
import re
import weakref
from pathlib import Path

import numpy as np
import pytest
from scipy import special

tf = pytest.importorskip("tensorflow")

import multiop as mo
from multiop._rules.lru import Recent
from multiop._values import tree
from multiop.backends.tensorflow import _internals
from multiop.backends.tensorflow.autodiff import _programs
from multiop.testing.cases import rows


def operations(f, *xs):
    """Return the operations of `f` and those of its gradient."""
    forward, backward = [], []
    with tf.GradientTape() as tape:
        tape.watch([x for x in xs if x.dtype.is_floating])
        with _internals.operations_reported_to(lambda op, *_: forward.append(op)):
            results = f(*xs)
    results = [y for y in tree.leaves(results) if tf.is_tensor(y) and y.dtype.is_floating]
    upstream = [tf.ones_like(y) for y in results]
    with _internals.operations_reported_to(lambda op, *_: backward.append(op)):
        tape.gradient(results, xs, upstream)
    return [[op for op in found if op not in ("Identity", "Const", "_EagerConst")] for found in (forward, backward)]


def derivatives(f, x, upstream=lambda _: None, direction=None):
    """Return `y = f(x)`, its gradient for `upstream(y)`, and the gradient of that, along `direction`."""
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            y = f(x)
        grad = first.gradient(y, x, upstream(y))
    return y, grad, second.gradient(grad, x, direction, unconnected_gradients="zero")


ALWAYS = {  # an op that is a kernel whatever its numbers are, and the kernels of its gradient
    "clip": (lambda x: mo.op_clip(x, -1.0, 1.0), ["Maximum", "Minimum"]),
    "maximum": (lambda x: mo.op_maximum(x, 0.5), ["Maximum"]),
    "minimum": (lambda x: mo.op_minimum(0.5, x), ["Minimum"]),
    "max": (mo.op_max, ["Max"]),
    "erf": (mo.op_erf, ["Erf"]),
}


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [0.0, np.nan, np.inf]])
@pytest.mark.parametrize("name", ALWAYS)
def test_an_op_is_a_kernel(name, x):
    f, kernels = ALWAYS[name]
    assert operations(f, tf.constant(x))[0][-len(kernels) :] == kernels


REVERSE = {
    "relu": (mo.op_relu, ["Greater", "SelectV2"]),
    "relu6": (mo.op_relu6, ["Relu6Grad", "Greater", "SelectV2"]),
    "leaky_relu": (lambda x: mo.op_leaky_relu(x, 0.2), ["LeakyReluGrad"]),
    "softsign": (mo.op_softsign, ["SoftsignGrad"]),
    "elu": (mo.op_elu, ["EluGrad"]),
}


@pytest.mark.parametrize("beside", [2.0, np.nan])
@pytest.mark.parametrize("name", REVERSE)
def test_the_gradient_is_a_kernel_whatever_the_numbers_are(name, beside):
    f, kernels = REVERSE[name]
    assert operations(f, tf.constant([-1.0, 0.5, beside]))[1] == kernels


NAN, INF = np.nan, np.inf


CHOOSING = {  # a loop runs as its values say; others ask if a matrix is singular, has a root, or how large it is
    "op_det",
    "op_expm",
    "op_logm",
    "op_lu_factor",
    "op_sqrtm",
    "op_while_loop",
}


def at_pins(row, most):
    """Yield, for pins of a row, the op as a function of its floats, those that are pinned, and ordinary ones."""
    draw = np.random.default_rng(0)
    for pin in [pin for pin in row.pins if pin.dtype == "float32"][:most]:
        places = [place for place, value in enumerate(pin.args) if isinstance(value, (list, float)) and np.size(value)]
        hard = [tf.constant(pin.args[place], pin.dtype) for place in places]

        def f(*xs, pin=pin, places=places):
            filled = dict(zip(places, xs, strict=True))
            args = [filled.get(place, value) for place, value in enumerate(pin.args)]
            return getattr(mo, row.op)(*args, **pin.kwargs)

        yield f, hard, [tf.constant(draw.uniform(0.2, 0.8, x.shape), x.dtype) for x in hard]


@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.tier("full"))])
def test_no_look_chooses(most, monkeypatch):
    """At a kink, a tie, NaN or an infinity, the operations are those at ordinary numbers."""
    monkeypatch.setattr(_programs, "CALLS_BEFORE", math.inf)  # each call runs step by step
    monkeypatch.setattr(_programs, "_signatures", Recent(1024))
    compared, differing = 0, set()
    for row in rows().values():
        for f, hard, plain in at_pins(row, most):
            try:
                found = [operations(f, *xs) for xs in (hard, plain)]
            except mo.errors.MultiopError:  # the numbers are indices
                continue
            compared += 1
            differing |= {row.op} if found[0] != found[1] else set()
    assert compared > 150
    assert not differing - CHOOSING


def test_no_graph_branches():
    """A branch of a graph keeps a program from being fused, and costs more than either side of it."""
    folder = Path(_internals.__file__).parent / "ops"
    branching = {
        path.stem
        for path in folder.glob("*.py")
        if re.search(r"\b(tf.cond|tf.switch_case|tf.case)\(", path.read_text())
    }
    assert branching == {"control_flow"}


RESIZED = {  # which the kernel computes from exact places, and what it would not
    "twice as large": ((6, 8), "float32", True),
    "half as wide": ((6, 2), "float32", True),
    "two thirds as high": ((2, 8), "float32", True),
    "three times as large": ((9, 12), "float32", False),
    "as high as before": ((3, 8), "float32", False),
    "in float64": ((6, 8), "float64", False),
}


@pytest.mark.parametrize("name", RESIZED)
def test_a_kernel_resizes_images_where_it_is_exact(name):
    size, dtype, is_exact = RESIZED[name]
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 3)).astype(dtype)
    resize = lambda x: mo.op_image_resize(x, size)
    kernels = [["ResizeBilinear"], ["ResizeBilinearGrad"]]
    assert (operations(resize, tf.constant(x)) == kernels) == is_exact
    assert ("ResizeBilinearGrad" in operations(resize, tf.Variable(x))[1]) == is_exact
    x[0, 0, 0, 0] = np.nan
    assert operations(resize, tf.constant(x)) != kernels


INDEXED = {
    "segment_sum": (lambda x, k: mo.op_segment_sum(x, k, 3), ["UnsortedSegmentSum"]),
    "take_along_axis": (lambda x, k: mo.op_take_along_axis(x[None], k[None], 1), [*["StridedSlice"] * 2, "GatherV2"]),
    "left_shift": (lambda x, k: mo.op_left_shift(tf.constant([1, 2, 3]), k), ["LeftShift"]),
}


@pytest.mark.parametrize("name", INDEXED)
def test_indices_that_are_seen_to_be_inside_are_not_checked_again(name):
    f, kernels = INDEXED[name]
    x = tf.constant([1.0, 2.0, 3.0])
    assert operations(lambda x: f(x, tf.constant([2, 0, 1])), x)[0] == kernels


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("n", [1, 2, 32, 33, 70])
def test_cumprod_has_the_gradients_of_the_products_themselves(n, dtype):
    x = np.random.default_rng(n).normal(size=(n, 2)) + 1
    x[n // 2] = 0
    x, u = tf.constant(x, dtype), tf.ones((n, 2), dtype)

    def products(x):
        y = [x[0]]
        for row in x[1:]:
            y.append(y[-1] * row)
        return tf.stack(y)

    def derivatives(f):
        with tf.GradientTape() as second:
            second.watch([x, u])
            with tf.GradientTape() as first:
                first.watch(x)
                y = f(x)
            grad = first.gradient(y, x, u)
        return [y, grad, *second.gradient(grad, [x, u], u, unconnected_gradients="zero")]

    expected = derivatives(products)
    for f in (lambda x: mo.op_cumprod(x, 0), tf.function(lambda x: mo.op_cumprod(x, 0), autograph=False)):
        for found, one in zip(derivatives(f), expected, strict=True):
            rtol = 1e-4 if dtype is tf.float32 else 1e-12
            np.testing.assert_allclose(found, one, rtol=rtol, atol=rtol * float(tf.reduce_max(tf.abs(one))))


@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_a_gradient_that_needs_the_result_alone_keeps_no_operand(name):
    x = tf.constant([-1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        operand = 2 * x
        kept = weakref.ref(operand)
        y = REVERSE[name][0](operand)
        del operand
    assert kept() is None
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 2.0])


@pytest.mark.parametrize("way", ["eager", "graph"])
@pytest.mark.parametrize("name", ["relu", "relu6"])
def test_an_infinite_upstream_does_not_pass_where_the_slope_is_zero(name, way):
    f = lambda x: mo.op_log(REVERSE[name][0](x))
    f = tf.function(f, autograph=False) if way == "graph" else f
    x = tf.constant([-1.0, 0.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x), [0.0, 0.0, 0.5])


GRAPHS = {"relu": (mo.op_relu, ["Relu"]), "abs": (mo.op_abs, ["Abs"]), "softplus": (mo.op_softplus, ["Softplus"])}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_has_the_kernels_alone(name):
    f, kernels = GRAPHS[name]
    graph = tf.function(f, autograph=False).get_concrete_function(tf.TensorSpec((None, 3))).graph
    left_out = ("Placeholder", "Identity", "IdentityN", "StopGradient", "Const")
    assert [op.type for op in graph.get_operations() if op.type not in left_out] == kernels


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_a_triangle_may_reach_beyond_the_matrix(name, k):
    x = np.arange(1.0, 13).reshape(2, 2, 3)
    triangle, expected = getattr(mo, f"op_{name}"), getattr(np, name)(x, k)
    np.testing.assert_array_equal(triangle(tf.constant(x), k), expected)
    unknown = tf.function(lambda x: triangle(x, k), [tf.TensorSpec((None, None, None), tf.float64)], autograph=False)
    np.testing.assert_array_equal(unknown(tf.constant(x)), expected)


def test_a_bias_in_a_graph_is_added_by_a_kernel_whose_gradient_is_one():
    x, kernel, bias = tf.ones((1, 4, 4, 2)), tf.ones((2, 2, 2, 3)), tf.constant([1.0, 2.0, 3.0])
    convolved = lambda bias: mo.op_conv(x, kernel, bias=bias)
    compiled = tf.function(lambda bias: mo.vjp(convolved, bias)[1](tf.ones((1, 3, 3, 3))), autograph=False)
    graph = compiled.get_concrete_function(bias).graph
    assert {"BiasAdd", "BiasAddGrad"} <= {op.type for op in graph.get_operations()}
    np.testing.assert_array_equal(convolved(bias)[0, 0, 0], [9.0, 10.0, 11.0])
    np.testing.assert_array_equal(compiled(bias)[0], [9.0, 9.0, 9.0])


WAYS = {"eager": lambda f: f, "graph": tf.function, "XLA": lambda f: tf.function(f, jit_compile=True)}


@pytest.mark.parametrize("way", WAYS)
def test_no_part_of_an_activation_overflows_in_float16(way):
    x = tf.constant([-300.0, -100.0, 0.0, 100.0, 300.0], tf.float16)
    for f in (mo.op_gelu, mo.op_silu, mo.op_softsign, mo.op_elu, lambda x: mo.op_gelu(x, approximate=False)):
        for found in WAYS[way](lambda x, f=f: derivatives(f, x))(x):
            assert np.isfinite(found).all()
    grad = WAYS[way](
        lambda x: derivatives(mo.op_hard_silu, x, lambda y: tf.fill(y.shape, tf.constant(1e3, y.dtype)))[1]
    )
    np.testing.assert_array_equal(grad(x), [0, 0, 500, 1e3, 1e3])
    np.testing.assert_allclose(
        WAYS[way](mo.op_silu)(tf.constant([-17.5], tf.float16)), -17.5 * np.exp(-17.5), atol=6e-8
    )


@pytest.mark.parametrize("way", WAYS)
def test_softsign_has_its_third_derivative(way):
    first = lambda x: derivatives(mo.op_softsign, x)[1]
    x = np.array([-3.0, -0.5, 0.25, 1.0, 1e4])
    found = WAYS[way](lambda x: derivatives(first, x))(tf.constant(x))
    size = 1 + np.abs(x)
    for derivative, expected in zip(found, (size**-2.0, -2 * np.sign(x) * size**-3.0, 6 * size**-4.0), strict=True):
        np.testing.assert_allclose(derivative, expected, rtol=1e-13)


VARIANCES = {
    "var": (lambda x: mo.op_var(x, (0, 1)), ["Mean", "SquaredDifference", "Mean"]),
    "var of rows": (lambda x: mo.op_var(x, -1, keepdims=True), ["Mean", "SquaredDifference", "Mean"]),
}


@pytest.mark.parametrize("spec", [(4, 2, 3), (None, 2, None)])
@pytest.mark.parametrize("name", VARIANCES)
def test_a_variance_in_a_graph_has_a_gradient_that_divides_before_it_repeats(name, spec):
    f, kernels = VARIANCES[name]
    upstream = lambda y: tf.cast(tf.reshape(tf.range(1, tf.size(y) + 1), tf.shape(y)), y.dtype)
    by_tapes = lambda x, v: derivatives(f, x, upstream, v)
    specs = [tf.TensorSpec(spec, tf.float64)] * 2
    forward = tf.function(f, autograph=False).get_concrete_function(specs[0]).graph.get_operations()
    assert [op.type for op in forward if op.type in ("Mean", "SquaredDifference", "Sub", "Square")] == kernels
    compiled = tf.function(by_tapes, specs, autograph=False)
    draw = np.random.default_rng(0)
    x, v = (tf.constant(draw.normal(size=(4, 2, 3))) for _ in range(2))
    for found, expected in zip(compiled(x, v), by_tapes(x, v), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_gelu_in_a_graph_has_the_derivatives_of_the_formula(dtype):
    compiled = tf.function(lambda x: derivatives(lambda x: mo.op_gelu(x, approximate=False), x), autograph=False)
    x = np.array([-1e30, -50.0, -12.0, -5.0, -1.0, 0.0, 0.5, 5.0, 50.0, 1e30])
    values = [special.ndtr(x), np.exp(-np.square(x) / 2) / np.sqrt(2 * np.pi)]
    y, slope, bend = x * values[0], values[0] + x * values[1], (2 - np.square(x)) * values[1]
    rtol = 2e-5 if dtype is tf.float32 else 1e-12
    for found, expected in zip(compiled(tf.constant(x, dtype)), (y, slope, bend), strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-33 if dtype is tf.float32 else 0)


def test_digamma_of_float32_is_rounded_once():
    plain, of_scipy = np.array([1.5, -2.5, 1e-30], "float32"), pytest.importorskip("scipy.special").digamma
    wide = of_scipy(plain.astype("float64"))
    np.testing.assert_allclose(mo.op_digamma(tf.constant(plain)), wide, rtol=np.finfo("float32").eps)
    np.testing.assert_array_equal(mo.op_digamma(tf.constant([0.0, -0.0, -1.0])), [-INF, INF, NAN])


@pytest.mark.parametrize("op", [mo.op_floor_divide, mo.op_mod, mo.op_power])
def test_a_choice_keeps_the_shape(op):
    specs = [tf.TensorSpec((2, 3)), tf.TensorSpec((3,))]
    graph = tf.function(lambda *xs: mo.vjp(op, *xs)[1](tf.ones((2, 3))), autograph=False).get_concrete_function(*specs)
    assert [x.shape for x in graph.outputs] == [(2, 3), (3,)]
    assert tf.function(op, autograph=False).get_concrete_function(*specs).outputs[0].shape == (2, 3)
