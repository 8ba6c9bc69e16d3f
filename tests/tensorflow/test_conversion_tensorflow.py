"""Conversion of what only TensorFlow has."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop as mo
from multiop import errors


def test_a_variable_is_a_tensor_and_keeps_its_gradient():
    x = tf.Variable([1.5])
    assert mo.op_is_tensor(x)
    assert isinstance(mo.op_convert_to_tensor(x), tf.Tensor)
    with tf.GradientTape() as tape:
        y = mo.op_exp(x) + mo.op_convert_to_tensor([x[0]]) + mo.op_cast(x, "float64").dtype.size
    np.testing.assert_allclose(tape.gradient(y, x), np.exp([1.5]) + 1, rtol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.ragged.constant([[1.0], [2.0, 3.0]]),
        lambda: tf.sparse.from_dense([[1.0, 0.0]]),
        lambda: tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([3, 2])),
    ],
)
def test_what_is_not_dense_raises(make):
    for call in (mo.op_exp, mo.op_convert_to_tensor, lambda x: mo.op_add(x, 1.0), mo.op_shape):
        with pytest.raises(errors.ArgumentTypeError, match="dense"):
            call(make())


@pytest.mark.parametrize("dtype", [tf.string, tf.qint8])
def test_odd_dtypes_raise(dtype):
    x = tf.constant(["a"]) if dtype is tf.string else tf.quantization.quantize([1.0], 0.0, 1.0, dtype).output
    for call in (mo.op_exp, lambda x: mo.op_add(x, x), lambda x: mo.op_cast(x, "float32"), mo.op_dtype):
        with pytest.raises(errors.DTypeError, match="not supported"):
            call(x)


def test_a_symbolic_tensor_has_no_array():
    with pytest.raises(errors.ArgumentTypeError, match="symbolic"):
        tf.function(lambda x: mo.op_convert_to_numpy(x), autograph=False)(tf.ones(2))


def test_unknown_dimensions():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])], autograph=False)
    def f(x):
        rows, columns = mo.op_shape(x)
        assert columns == 3
        return mo.op_reshape(x, (columns, rows)), mo.op_zeros((rows, 2))

    reshaped, zeros = f(tf.ones((2, 3)))
    assert reshaped.shape == (3, 2)
    assert zeros.shape == (2, 2)


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_unsigned_integers_are_cumulated_by_xla(dtype):
    x = tf.constant([200, 3, 250], dtype)
    for op, expected in ((mo.op_cumsum, [200, 203, 453]), (mo.op_cumprod, [200, 600, 150000])):
        for dtype_of_result in (None, dtype):
            found = tf.function(lambda x, o=op, d=dtype_of_result: o(x, dtype=d), jit_compile=True, autograph=False)(x)
            assert found.dtype == op(x, dtype=dtype_of_result).dtype
            wrapped = np.array(expected).astype(found.dtype.as_numpy_dtype)
            np.testing.assert_array_equal(found, wrapped)
