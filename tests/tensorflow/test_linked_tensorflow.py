"""Ops whose node in a graph has a gradient of its own: it holds in saved models, maps and every order."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop as mo

INF = np.inf
OPS = {
    "maximum": lambda x, y: mo.op_maximum(x, y),
    "minimum of a column": lambda x, y: mo.op_minimum(x, y[:, :1]),
    "maximum with a number": lambda x, y: mo.op_maximum(x, 1.0),
    "relu": lambda x, y: mo.op_relu(x * y),
    "clip": lambda x, y: mo.op_clip(x, -1.0, 1.0),
    "clip to tensors": lambda x, y: mo.op_clip(x, y - 1, y[:1]),
    "clip from above": lambda x, y: mo.op_clip(x, None, y),
    "logsumexp": lambda x, y: mo.op_logsumexp(x * y, 1),
    "logsumexp of all": lambda x, y: mo.op_logsumexp(x * y, keepdims=True),
    "max_pool": lambda x, y: mo.op_max_pool(mo.op_reshape(x, (1, -1, 4, 1)), 2),
}
X = [[0.5, -2.0, 3.0, 1.5], [-0.5, 0.25, 1.25, -3.0], [1.0, -1.0, 0.0, 2.0], [1.0, 1.0, -2.0, 1.0]]
Y = [[1.5, 2.0, -1.0, 0.75], [2.5, 0.5, -0.25, 1.75], [1.0, 0.0, 0.0, 1.0], [1.0, 2.0, 1.0, -1.0]]
POINTS = {
    "finite": (X, Y),  # with ties
    "masked": (
        [[-INF, 1.0, 1.0, 2.0], [0.0, 1.0, -INF, -1.0], [2.0, 3.0, 0.0, 1.0], [-INF, -INF, -INF, -INF]],
        [[1.0, 2.0, 1.0, 3.0], [1.0, 1.0, 2.0, 1.0], [1.0, 1.0, 2.0, 4.0], [1.0, 1.0, 1.0, 1.0]],
    ),
}


def gradients(f, x, y):
    """Return the gradients of a weighted sum of `f`, and those of a weighted sum of these."""

    def weighted(zs):
        return tf.add_n([tf.reduce_sum(z * tf.reshape(tf.range(1, 1 + tf.size(z, z.dtype)), z.shape)) for z in zs])

    with tf.GradientTape() as second:
        second.watch([x, y])
        with tf.GradientTape() as first:
            first.watch([x, y])
            z = weighted([f(x, y)])
        found = first.gradient(z, [x, y], unconnected_gradients="zero")
        z = weighted(found)
    return [*found, *second.gradient(z, [x, y], unconnected_gradients="zero")]


def compiled(f):
    return tf.function(f, autograph=False)


@pytest.mark.rotating
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", OPS)
def test_a_graph_has_the_derivatives_of_an_eager_call(name, point):
    f, (x, y) = OPS[name], (tf.constant(values, tf.float64) for values in POINTS[point])
    inner = compiled(f)
    mapped = lambda x, y: tf.vectorized_map(lambda row: inner(row[0], row[1]), (x[None], y[None]))
    ways = {
        "graph": compiled(lambda x, y: gradients(f, x, y)),
        "call of a graph": lambda x, y: gradients(inner, x, y),
        "map": lambda x, y: gradients(mapped, x, y),
    }
    expected = gradients(f, x, y)
    for way, call in ways.items():
        # into a call, TensorFlow passes zeros where nothing depends on x; times NaN or infinity, they are NaN
        orders = 4 if way == "graph" or point == "finite" else 2
        for found, one in zip(call(x, y)[:orders], expected[:orders], strict=True):
            np.testing.assert_allclose(found, one, rtol=1e-12, atol=1e-12, err_msg=way)


MAPPED = {
    "exp2": mo.op_exp2,
    "cbrt": mo.op_cbrt,
    "power": lambda x: mo.op_power(x, x),
    "softsign": mo.op_softsign,
    "hypot": lambda x: mo.op_hypot(x, 2.0),
    "arctan2": lambda x: mo.op_arctan2(x, 2.0),
    "pinv": lambda x: mo.op_pinv(mo.op_reshape(x, (2, 2))),
    "complex det": lambda x: mo.op_real(mo.op_det(mo.op_reshape(tf.complex(x, x * x), (2, 2)))),
}


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", MAPPED)
def test_a_second_derivative_outside_of_a_map(name):
    f, x = MAPPED[name], tf.constant(np.abs(X) + 0.5, tf.float64)
    mapped = lambda x: mo.op_sum(mo.op_square(mo.vmap(f)(x)))
    apart = lambda x: mo.op_sum(mo.op_square(mo.op_stack([f(x[k]) for k in range(4)])))
    expected = mo.hvp(apart, (x,), (x,))
    for wrap in (lambda g: g, mo.jit):
        found = wrap(lambda x: mo.hvp(mapped, (x,), (x,)))(x)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", OPS)
def test_a_saved_model_keeps_the_gradient(tmp_path, name):
    model = tf.Module()
    model.f = compiled(OPS[name])
    x, y = (tf.constant(values, tf.float64) for values in POINTS["finite"])
    model.f(x, y)
    tf.saved_model.save(model, str(tmp_path))
    expected = gradients(OPS[name], x, y)[:2]
    for found, one in zip(gradients(tf.saved_model.load(str(tmp_path)).f, x, y), expected, strict=False):
        np.testing.assert_array_equal(found, one)
