"""Inside tf.function, where a dimension, or the number of them, is known only at run time."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop as mo
from multiop import errors

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
OPS = {
    "sum": lambda x: mo.op_sum(x, -1),
    "prod": lambda x: mo.op_prod(x, 0),
    "prod of all": lambda x: mo.op_prod(x),
    "max": lambda x: mo.op_max(x, (0, 1)),
    "max with initial": lambda x: mo.op_max(x, 0, initial=0.0),
    "var": lambda x: mo.op_var(x, 0, True),
    "std": lambda x: mo.op_std(x),
    "logsumexp": lambda x: mo.op_logsumexp(x, -1),
    "softmax": lambda x: mo.op_softmax(x),
    "argmax": lambda x: mo.op_argmax(x, keepdims=True),
    "transpose": lambda x: mo.op_transpose(x),
    "squeeze": lambda x: mo.op_squeeze(mo.op_expand_dims(x, 0), 0),
    "concatenate": lambda x: mo.op_concatenate([x, x], 1),
    "stack": lambda x: mo.op_stack([x, x]),
    "split": lambda x: mo.op_concatenate(mo.op_split(x, 2, axis=0)),
    "split at": lambda x: mo.op_split(x, [1, 2])[1],
    "matmul": lambda x: mo.op_matmul(x, mo.op_transpose(x)),
    "einsum": lambda x: mo.op_einsum("ij,kj->ik", x, x),
    "where": lambda x: mo.op_where(x > 0, x, 0.0),
    "clip": lambda x: mo.op_clip(x, -0.5, 0.5),
    "full_like": lambda x: mo.op_full_like(x, 3),
    "broadcast_to": lambda x: mo.op_broadcast_to(x, (2, *mo.op_shape(x))),
    "reshape": lambda x: mo.op_reshape(x, -1),
    "flip": lambda x: mo.op_flip(x),
    "moveaxis": lambda x: mo.op_moveaxis(x, 0, 1),
    "zeros": lambda x: mo.op_zeros(mo.op_shape(x)),
    "isnan": lambda x: mo.op_isnan(mo.op_cast(x, "int32")),
}


def traced(f, shape):
    return tf.function(f, input_signature=[tf.TensorSpec(shape, tf.float32)], autograph=False)


@pytest.mark.parametrize("shape", [[None, 6], [None, None]], ids=str)
@pytest.mark.parametrize("op", list(OPS))
def test_unknown_dimensions(op, shape):
    x = tf.constant(X)
    np.testing.assert_allclose(traced(OPS[op], shape)(x), OPS[op](x), rtol=1e-6, atol=1e-6)


def test_the_gradient_of_a_product_over_an_unknown_dimension():
    x = tf.constant([[2.0], [0.0], [3.0]])

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = mo.op_prod(x, 0)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(traced(slope, [None, 1])(x), [[0.0], [6.0], [0.0]])


@pytest.mark.parametrize("op", ["sum", "squeeze", "concatenate", "stack", "split", "flip", "moveaxis", "zeros"])
def test_an_unknown_number_of_dimensions_raises(op):
    with pytest.raises(errors.ArgumentError, match=r"known only at run time; say what it is with tf\.ensure_shape"):
        traced(OPS[op], None)(tf.constant(X))
    assert traced(lambda x: mo.op_sum(x), None)(tf.constant([1.0, 2.0])) == 3.0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("op", [mo.op_softmax, mo.op_log_softmax])
def test_the_last_axis_needs_no_number_of_dimensions(op, dtype):
    found = traced(lambda x: op(mo.op_cast(x, dtype)), None)(tf.constant(X))
    np.testing.assert_allclose(tf.cast(found, tf.float32), tf.cast(op(mo.op_cast(X, dtype)), tf.float32), rtol=1e-6)
    with pytest.raises(errors.ArgumentError, match="known only at run time"):
        traced(lambda x: op(mo.op_cast(x, dtype), 1), None)(tf.constant(X))
