"""What training pays for: an op and its gradient are TensorFlow's own nodes, or two more, and choose no form."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from counted_nodes import CHOICES, nodes, rows
from python_calls import count_calls, leave_alone

import multiop as mo
from multiop.backends.tensorflow.autodiff import _programs

DTYPES = {"float32": tf.float32, "bfloat16": tf.bfloat16, "float16": tf.float16}
MORE = 2
DEARER = {  # what is pinned, and its price in nodes beyond TensorFlow's, in float32
    "selu": (9, "tf.nn.selu has another gradient at 0 eagerly and by XLA"),
    "max_pool": (4, "the kernel ignores NaN"),
    "sparse_categorical_crossentropy": (7, "a class that is out of range makes NaN where no value can be read"),
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
    "group_normalization",
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
    "segment_sum": (24, lambda: mo.op_segment_sum(X, PLACES, 4)),
    "get_item of a tensor": (24, lambda: mo.op_get_item(X, PLACES)),
    "scatter_update": (26, lambda: mo.op_scatter_update(X, ROWS, X)),
    "sparse_categorical_crossentropy": (26, lambda: mo.op_sparse_categorical_crossentropy(PLACES, X, True)),
}


@pytest.mark.parametrize("name", MOST_CALLS)
def test_python_calls(name, monkeypatch):
    leave_alone(monkeypatch, "tensorflow")
    most, call = MOST_CALLS[name]
    assert count_calls(call, warm=_programs.CALLS_BEFORE + 1) <= most  # then there is a program


BY_ONE_MATRIX = {  # products of an activation with one matrix, and the kernel that is all of each
    "matmul": ("MatMul", mo.op_matmul),
    "dot": ("MatMul", mo.op_dot),
    "tensordot": ("MatMul", lambda x, w: mo.op_tensordot(x, w, 1)),
    "einsum": ("Einsum", lambda x, w: mo.op_einsum("...d,df->...f", x, w)),
    "einsum, transposed": ("Einsum", lambda x, w: mo.op_einsum("fd, ... d", mo.op_transpose(w), x)),
}
SHAPES = [(2, 5, 4), (2, 3, 5, 4), (2, 1, 2, 5, 4), (2, 3, 2, 2, 5, 4), (0, 5, 4), (2, 0, 4), (2, 5, 0), (0, 4)]


@pytest.mark.parametrize("name", BY_ONE_MATRIX)
def test_a_product_with_one_matrix_is_one_kernel_and_so_are_its_gradients(name):
    kernel, product = BY_ONE_MATRIX[name]
    for shape in SHAPES[:4]:
        found = nodes(product, [tf.TensorSpec(shape), tf.TensorSpec((4, 3))])
        assert [op for op in found if op != "Transpose"] == [kernel] * 3


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", BY_ONE_MATRIX)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int32"])
def test_products_with_one_matrix_are_numpys(name, dtype):
    product, rng = BY_ONE_MATRIX[name][1], np.random.default_rng(0)
    room = {"bfloat16": 0.05, "float16": 5e-3, "int32": 0}.get(dtype, 1e-5)

    def draw(*shape):  # numbers that every dtype holds
        x = rng.integers(-8, 8, shape) if dtype == "int32" else rng.integers(-8, 8, shape) / 4
        return x + 1j * rng.integers(-8, 8, shape) if dtype == "complex64" else x

    def check(found, *expected):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(mo.op_convert_to_numpy(x).astype(y.dtype), y, room, room * 9)

    for shape in SHAPES:
        x, w = draw(*shape), draw(shape[-1], 3)
        given, y, k = [tf.cast(v, dtype) for v in (x, w)], x @ w, len(shape) - 1
        openly = tf.function(product, autograph=False)
        openly = openly.get_concrete_function(
            tf.TensorSpec([None] * k + [shape[-1]], dtype), tf.TensorSpec(w.shape, dtype)
        )
        for run in (product, mo.jit(product), openly):
            check([run(*given)], y)
            if dtype == "int32":
                continue
            upstream = draw(*y.shape)
            pulled = mo.vjp(run, *given)[1](tf.cast(upstream, dtype))
            rows = np.conj(x).reshape(int(np.prod(shape[:-1])), shape[-1])
            check(pulled, upstream @ np.conj(w).T, rows.T @ upstream.reshape(len(rows), 3))
            check(mo.jvp(run, given, [given[0] * 2, given[1]]), y, 3 * y)
            if dtype == "float32":
                curved = mo.hvp(lambda x, w: mo.op_sum(run(x, w) ** 2) / 2, given, [given[0], given[1] * 0])
                check(curved, y @ w.T, 2 * rows.T @ y.reshape(len(rows), 3))
        if dtype != "float32":
            continue
        twice = [tf.stack([v] * 2) for v in given]
        check([mo.vmap(product, in_axes=(0, None))(twice[0], given[1])], np.stack([y, y]))
        check([mo.vmap(product, in_axes=(None, 0))(given[0], twice[1])], np.stack([y, y]))
        check([product(given[0], given[1][:, :0])], y[..., :0])
        check([mo.vmap(product, in_axes=(None, 0))(given[0], twice[1][..., :0])], np.stack([y, y])[..., :0])
