"""Convolution and pooling inside tf.function, where sizes are known only at run time."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import multiop as mo
from multiop import errors

X = np.random.default_rng(0).normal(size=(2, 6, 5, 4)).astype(np.float32)
K = np.random.default_rng(1).normal(size=(3, 2, 4, 4)).astype(np.float32)
OPS = {
    "conv": lambda x: mo.op_conv(x, K, 2, "same"),
    "conv of groups": lambda x: mo.op_conv(x, K[:, :, :2], (2, 1), "same"),
    "conv of integers": lambda x: mo.op_conv(mo.op_cast(x, "int64"), np.ones((2, 3, 4, 1), np.int64), padding="same"),
    "depthwise": lambda x: mo.op_depthwise_conv(x, K, padding="same", dilation_rate=2),
    "transpose": lambda x: mo.op_conv_transpose(x, K, 2, "same"),
    "dilated transpose": lambda x: mo.op_conv_transpose(x, K, 1, "same", dilation_rate=2),
    "transpose of integers": lambda x: mo.op_conv_transpose(mo.op_cast(x, "int32"), np.ones((2, 3, 1, 4), np.int32), 2),
    "average": lambda x: mo.op_average_pool(x, 3, 2, "same"),
    "average of channels first": lambda x: mo.op_average_pool(x, 3, 2, "same", "channels_first"),
    "average of volumes": lambda x: mo.op_average_pool(mo.op_expand_dims(x, 1), (1, 2, 3), padding="same"),
    "max": lambda x: mo.op_max_pool(x, 3, 2, "same"),
    "max of inner windows": lambda x: mo.op_max_pool(x, (2, 3), 2),
    "conv with strides and dilation": lambda x: mo.op_conv(x, K, 2, "same", None, (1, 2)),
    "conv with padding": lambda x: mo.op_conv(x, K, 2, ((1, 0), 2)),
    "transpose of groups": lambda x: mo.op_conv_transpose(x, K, 2, (2, 1), 1, groups=2),
    "cropped transpose": lambda x: mo.op_conv_transpose(x, K, 2, (2, (0, 1)), 1),
    "padded average": lambda x: mo.op_average_pool(x, 3, 2, (1, (0, 2)), ceil_mode=True),
    "average with same": lambda x: mo.op_average_pool(x, 3, 2, "same", count_include_pad=True),
    "padded max": lambda x: mo.op_max_pool(x, 3, 2, (1, (0, 2)), ceil_mode=True),
    "depth_to_space": lambda x: mo.op_depth_to_space(x, 2),
}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
@pytest.mark.parametrize("shape", [(None, 6, 5, 4), (None, None, None, 4)])
def test_a_size_that_is_unknown(op, shape):
    found = tf.function(op, input_signature=[tf.TensorSpec(shape)], autograph=False)(X)
    np.testing.assert_allclose(found, op(tf.constant(X)), rtol=1e-5, atol=1e-5)


def test_an_adaptive_pool_needs_sizes():
    compiled = tf.function(
        lambda x: mo.op_adaptive_max_pool(x, 2), input_signature=[tf.TensorSpec((None, None, 5, 4))], autograph=False
    )
    with pytest.raises(errors.ArgumentError, match="sizes are known"):
        compiled(X)


def test_an_empty_batch_that_is_found_at_run_time_has_the_right_shape_or_raises():
    # https://github.com/tensorflow/tensorflow/pull/112639: with oneDNN's kernels, which TensorFlow chooses by the
    # processor, the result has the shape of the inputs; its other kernels are right
    compiled = tf.function(OPS["conv"], input_signature=[tf.TensorSpec((None, 6, 5, 4))], autograph=False)
    try:
        shape = compiled(X[:0]).shape
    except tf.errors.InvalidArgumentError:
        shape = None
    assert shape in (None, (0, 3, 3, 4))
    assert compiled(X).shape == (2, 3, 3, 4)
    assert mo.op_conv(X[:0], K, 2, "same").shape == (0, 3, 3, 4)
