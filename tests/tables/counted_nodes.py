"""What training pays for in a graph: nodes of an op and its gradient, ours against TensorFlow's own.

Counted is what is left after TensorFlow's optimizer of graphs, but for constants, arguments, names for tensors, and
changes of a shape alone. The counts are exact.
"""

from __future__ import annotations

import sys

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import meta_graph
from tensorflow.python.grappler import tf_optimizer

import multiop as mo

GROUPS = 4
FREE = {"Const", "Placeholder", "Identity", "IdentityN", "StopGradient", "NoOp", "Shape", "Reshape", "ExpandDims"}
CHOICES = {"If", "StatelessIf", "Switch", "Case", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall"}


def nodes(function, xs):
    """Return the types of the nodes that compute `function` and its gradient with respect to the floats of `xs`."""

    def step(*given):
        *xs, upstream = given
        floats = [x for x in xs if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            y = function(*xs)
            y = y[0] if isinstance(y, (tuple, list)) else y
        return y, tape.gradient(y, floats, upstream)

    with tf.Graph().as_default() as graph:
        given = [tf.compat.v1.placeholder(x.dtype, x.shape) for x in xs]
        y = function(*given)
        y = y[0] if isinstance(y, (tuple, list)) else y
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in (*xs, y)]
    graph = tf.function(step, autograph=False).get_concrete_function(*specs).graph
    wanted = meta_graph.export_scoped_meta_graph(graph_def=graph.as_graph_def(), graph=graph)[0]
    fetched = wanted.collection_def["train_op"].node_list.value
    fetched.extend(x.name for x in (*graph.inputs, *graph.outputs))
    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    optimized = tf_optimizer.OptimizeGraph(config, wanted)
    return sorted(node.op for node in optimized.node if node.op not in FREE)


def named(module, names, *xs):
    """Return the rows of ops whose names and operands are those of functions of TensorFlow."""
    return [(name, getattr(mo, f"op_{name}"), getattr(module, name), xs) for name in names.split()]


def rows(dtype):
    """Return `(name, multiop's function, TensorFlow's, operands)` of what people train with."""

    def given(*shape, dtype=dtype):
        return tf.TensorSpec(shape, dtype)

    def constant(*shape):
        return tf.ones(shape, dtype)

    x, other, vector, shift, weight = given(8, 32, 16), given(8, 32, 16), given(16), given(16), given(16, 16)
    image, kernel, heads, logits = given(4, 12, 12, 16), given(3, 3, 16, 16), given(2, 8, 4, 16), given(32, 10)
    classes, ids = given(32, dtype=tf.int32), given(8, 4, dtype=tf.int32)

    def standardize(x, axes, gamma, beta):
        mean, variance = tf.nn.moments(x, axes, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-5)

    def group_norm(x, gamma, beta):
        parts = tf.reshape(x, (4, 12, 12, GROUPS, 4))
        gamma, beta = tf.reshape(gamma, (GROUPS, 4)), tf.reshape(beta, (GROUPS, 4))
        return tf.reshape(standardize(parts, [1, 2, 4], gamma, beta), (4, 12, 12, 16))

    def attention(query, key, value):
        logits = tf.einsum("bqhd,bkhd->bhqk", query, key) * 0.25
        return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(logits), value)

    hard_sigmoid = lambda x: tf.nn.relu6(x + 3.0) / 6.0
    return [
        ("gelu_tanh", mo.op_gelu, lambda x: tf.nn.gelu(x, True), [x]),
        ("gelu", lambda x: mo.op_gelu(x, approximate=False), tf.nn.gelu, [x]),
        *named(tf.nn, "relu relu6 leaky_relu elu selu silu sigmoid tanh softplus softsign softmax log_softmax", x),
        ("hard_sigmoid", mo.op_hard_sigmoid, hard_sigmoid, [x]),
        ("hard_silu", mo.op_hard_silu, lambda x: x * hard_sigmoid(x), [x]),
        ("logsumexp", lambda x: mo.op_logsumexp(x, -1), lambda x: tf.reduce_logsumexp(x, -1), [x]),
        (
            "layer_normalization",
            lambda x, g, b: mo.op_layer_normalization(x, g, b, epsilon=1e-5),
            lambda x, g, b: standardize(x, [-1], g, b),
            [x, vector, shift],
        ),
        (
            "group_normalization",
            lambda x, g, b: mo.op_group_normalization(x, GROUPS, g, b, epsilon=1e-5),
            group_norm,
            [image, vector, shift],
        ),
        (
            "rms_normalization",
            lambda x, g: mo.op_rms_normalization(x, g, epsilon=1e-5),
            lambda x, g: x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-5) * g,
            [x, vector],
        ),
        (
            "batch_normalization",
            lambda x, g, b: mo.op_batch_normalization(x, constant(16), constant(16), -1, b, g, 1e-5),
            lambda x, g, b: tf.nn.batch_normalization(x, constant(16), constant(16), b, g, 1e-5),
            [image, vector, shift],
        ),
        (
            "batch_normalization_with_moments",
            lambda x, g, b: mo.op_batch_normalization_with_moments(x, -1, b, g, 1e-5),
            lambda x, g, b: standardize(x, [0, 1, 2], g, b),
            [image, vector, shift],
        ),
        *named(tf.math, "abs square exp log", x),
        *named(tf.math, "maximum minimum add multiply", x, other),
        ("clip", lambda x: mo.op_clip(x, -1.0, 1.0), lambda x: tf.clip_by_value(x, -1.0, 1.0), [x]),
        ("matmul", mo.op_matmul, tf.matmul, [x, weight]),
        ("mean", lambda x: mo.op_mean(x, -1), lambda x: tf.reduce_mean(x, -1), [x]),
        ("sum", lambda x: mo.op_sum(x, -1), lambda x: tf.reduce_sum(x, -1), [x]),
        ("var", lambda x: mo.op_var(x, -1), lambda x: tf.math.reduce_variance(x, -1), [x]),
        ("max", lambda x: mo.op_max(x, -1), lambda x: tf.reduce_max(x, -1), [x]),
        ("max_pool", lambda x: mo.op_max_pool(x, 2), lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), [image]),
        ("average_pool", lambda x: mo.op_average_pool(x, 2), lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"), [image]),
        (
            "conv",
            lambda x, w, b: mo.op_conv(x, w, padding="same", bias=b),
            lambda x, w, b: tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b),
            [image, kernel, vector],
        ),
        ("take", lambda e, i: mo.op_take(e, i, axis=0), tf.gather, [weight, ids]),
        (
            "sparse_categorical_crossentropy",
            lambda x, k: mo.op_sparse_categorical_crossentropy(k, x, from_logits=True),
            lambda x, k: tf.nn.sparse_softmax_cross_entropy_with_logits(k, x),
            [logits, classes],
        ),
        (
            "categorical_crossentropy",
            lambda x: mo.op_categorical_crossentropy(constant(32, 10), x, from_logits=True),
            lambda x: tf.nn.softmax_cross_entropy_with_logits(constant(32, 10), x),
            [logits],
        ),
        (
            "binary_crossentropy",
            lambda x: mo.op_binary_crossentropy(constant(32, 10), x, from_logits=True),
            lambda x: tf.nn.sigmoid_cross_entropy_with_logits(constant(32, 10), x),
            [logits],
        ),
        ("attention", mo.op_dot_product_attention, attention, [heads, heads, heads]),
    ]


def main():
    names = sys.argv[1:]
    mo.set_backend("tensorflow")
    for dtype in (tf.float32, tf.bfloat16, tf.float16):
        print(f"{dtype.name}: nodes / native")
        for name, ours, native, xs in rows(dtype):
            if not names or name in names:
                mine, theirs = nodes(ours, xs), nodes(native, xs)
                late = " <" if len(mine) > len(theirs) + 2 or CHOICES & set(mine) else ""
                print(f"  {name:34} {len(mine):3} / {len(theirs)}{late}")
                if names:
                    print("   ", mine, theirs)


if __name__ == "__main__":
    main()
