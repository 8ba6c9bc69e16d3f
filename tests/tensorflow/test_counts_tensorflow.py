"""What training pays for: an op and its gradient are TensorFlow's own nodes, or two more, and choose no form."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from counted_nodes import CHOICES, nodes, rows
from python_calls import count_calls, leave_alone

import multiop as mo

DTYPES = {"float32": tf.float32, "bfloat16": tf.bfloat16, "float16": tf.float16}
MORE = 2
DEARER = {  # what is pinned, and its price in nodes beyond TensorFlow's, in float32
    "selu": (9, "tf.nn.selu has another gradient at 0 eagerly and by XLA"),
    "max_pool": (4, "the kernel ignores NaN"),
    "sparse_categorical_crossentropy": (8, "a class that is out of range makes NaN where no value can be read"),
    "categorical_crossentropy": (12, "0 * log(0) is 0 where a class is masked"),
    "logsumexp": (6, "a row of -inf is masked"),
    "maximum": (6, "a tie is split, and XLA ignores NaN"),
    "minimum": (6, "a tie is split, and XLA ignores NaN"),
    "max": (4, "XLA ignores NaN"),
    "take": (12, "an index that is out of range makes NaN where no value can be read; the gradient is dense"),
}
WIDE = {  # in 16 bits, they are computed in float32: a CPU's kernels round each sum to 16 bits; casts are not counted
    "softmax",
    "log_softmax",
    "logsumexp",
    "layer_normalization",
    "rms_normalization",
    "batch_normalization",
    "batch_normalization_with_moments",
    "matmul",
    "mean",
    "sum",
    "var",
    "average_pool",
    "conv",
    "take",
    "sparse_categorical_crossentropy",
    "categorical_crossentropy",
    "attention",
    "elu",  # whose kernel subtracts 1 from a rounded exponential
    "selu",
    "gelu_tanh",  # whose cube overflows in float16
    "silu",  # whose sigmoid vanishes in float16 before the product does
    "clip",
    "maximum",
    "minimum",
    "max",
}


@pytest.mark.parametrize(
    "dtype", ["float32", *(pytest.param(d, marks=pytest.mark.tier("full")) for d in ("bfloat16", "float16"))]
)
def test_no_op_has_more_nodes_than_its_native_form(dtype):
    late, stale = {}, {}
    for name, ours, native, xs in rows(DTYPES[dtype]):
        mine, theirs = nodes(ours, xs), nodes(native, xs)
        counted = [op for op in mine if dtype == "float32" or name not in WIDE or op != "Cast"]
        more, bound = len(counted) - len(theirs), DEARER.get(name, (MORE, ""))[0]
        if more > bound or CHOICES & set(mine):
            late[name] = mine, theirs
        if dtype == "float32" and name in DEARER and more != bound:
            stale[name] = more
    assert not late
    assert not stale


def test_the_count_sees_a_formula_and_a_choice():
    x = tf.TensorSpec((4, 4))
    assert nodes(tf.nn.relu, [x]) == ["Relu", "ReluGrad"]
    assert len(nodes(lambda x: tf.where(x > 0, x, 0.0), [x])) > 2
    assert CHOICES & set(nodes(lambda x: tf.cond(tf.reduce_all(x > 0), lambda: x, lambda: x * 2), [x]))


X, PLACES, ROWS = tf.ones((4, 8)), tf.constant([0, 1, 2, 3]), tf.constant([[0], [1], [2], [3]])
MOST_CALLS = {  # of Python functions, eagerly, the test's own among them
    "sum": (20, lambda: mo.op_sum(X, (0, 1))),
    "sum of all": (20, lambda: mo.op_sum(X)),
    "one_hot": (19, lambda: mo.op_one_hot(PLACES, 8)),
    "segment_sum": (28, lambda: mo.op_segment_sum(X, PLACES, 4)),
    "get_item of a tensor": (29, lambda: mo.op_get_item(X, PLACES)),
    "scatter_update": (44, lambda: mo.op_scatter_update(X, ROWS, X)),
}


@pytest.mark.parametrize("name", MOST_CALLS)
def test_python_calls(name, monkeypatch):
    leave_alone(monkeypatch, "tensorflow")
    most, call = MOST_CALLS[name]
    assert count_calls(call, warm=3) <= most  # then there is a program
