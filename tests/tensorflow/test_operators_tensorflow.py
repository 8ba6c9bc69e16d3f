"""The operators that `enable_tensorflow_numpy` gives to TensorFlow's tensors are ops."""

import itertools
import operator

import numpy as np
import pytest

import multiop as mo
from multiop._loading import tensorflow_operators
from multiop._values import dtypes as _dtypes

tf = pytest.importorskip("tensorflow")

OPS = tensorflow_operators.ARITHMETIC | tensorflow_operators.COMPARISONS
SOME = ("bool", "int32", "float32", "float64", "complex64")


@pytest.fixture(autouse=True)
def promoting(monkeypatch):
    """Replace the operators for one test; the switch itself cannot be undone."""
    names = [*OPS, *(name.replace("__", "__r", 1) for name in tensorflow_operators.ARITHMETIC)]
    for cls, name in itertools.product((tf.Tensor, tf.Variable), names):
        monkeypatch.setattr(cls, name, getattr(cls, name))
    with mo.use_backend("tensorflow"):
        tensorflow_operators.promote(tf)
        tensorflow_operators.promote(tf)  # twice is as once
        yield


def result(function, *args):
    """Return the dtype and the values of a result as text, in which NaN is NaN, or that there is none."""
    try:
        x = function(*args)
    except (TypeError, ValueError, tf.errors.OpError):
        return "error"
    return f"{mo.op_dtype(x)} {mo.op_convert_to_numpy(x).tolist()}"


def of_dtypes(dtypes):
    for pair in itertools.product(dtypes, repeat=2):
        yield [mo.op_cast([[3, 2], [n, 3]], dtype) for n, dtype in enumerate(pair, 1)]


@pytest.mark.parametrize("dtypes", [SOME, pytest.param(_dtypes.ALL, marks=pytest.mark.tier("full"))], ids=len)
def test_tensors_of_two_dtypes_promote_as_in_ops(dtypes):
    for (name, op), (x1, x2) in itertools.product(OPS.items(), list(of_dtypes(dtypes))):
        assert result(getattr(operator, name), x1, x2) == result(getattr(mo, op), x1, x2), (name, x1.dtype, x2.dtype)


@pytest.mark.parametrize("x2", [True, 2, 2.5, 2j, np.float32(2.5), np.arange(2, dtype=np.int8)], ids=repr)
def test_numbers_and_arrays_promote_as_in_ops(x2):
    tensors = [tf.constant(x) for x in ([1, 2], [True, False], [1.5, 2.5], [1j, 2])] + [tf.Variable([1, 2])]
    for (name, op), x1 in itertools.product(OPS.items(), tensors):
        if name != "__matmul__":
            python, op = getattr(operator, name), getattr(mo, op)
            assert result(python, x1, x2) == result(op, x1, x2), (name, x1)
            if name in tensorflow_operators.ARITHMETIC:
                assert result(python, x2, x1) == result(op, x2, x1), (name, x1)


def test_quotients_and_remainders_are_those_of_ops():
    assert result(operator.floordiv, tf.constant([1.0]), 0.1) == "float32 [9.0]"  # TensorFlow's own is 10
    assert result(operator.mod, tf.constant([-0.0]), tf.constant([2.0])) == "float32 [0.0]"
    assert result(operator.mod, tf.constant([0.0]), -2.0) == "float32 [-0.0]"


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_ops(compiled):
    x, w = tf.constant([1.5, 2.5]), tf.Variable([0.5, 4.0], dtype=tf.float64)
    n, z = tf.constant([2, 3]), tf.constant([1j, 2.0], tf.complex64)

    def by_operators():
        return tf.reduce_sum(tf.math.real((x * w - n) / (x + z) + w**2 * n))

    def by_ops(x, w):
        quotient = mo.op_divide(mo.op_subtract(mo.op_multiply(x, w), n), mo.op_add(x, z))
        return mo.op_sum(mo.op_real(mo.op_add(quotient, mo.op_multiply(mo.op_power(w, 2), n))))

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = (tf.function(by_operators) if compiled else by_operators)()
    value, gradients = mo.value_and_grad(by_ops, argnums=(0, 1))(x, tf.convert_to_tensor(w))
    for found, expected in zip((y, *tape.gradient(y, (x, w))), (value, *gradients), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_is_no_op_stays_as_it_was():
    x, text = tf.constant([1.5, 2.5]), tf.constant("a")
    assert result(operator.eq, tf.constant([1, 2]), tf.constant([1, 2, 3])) == "bool False"
    assert (text + text).numpy() == b"aa"
    assert (text == text).numpy()
    assert (x == None) is False  # noqa: E711
    assert (tf.sparse.from_dense([1.0, 0.0]) * x).values.numpy().tolist() == [1.5]
    v = tf.Variable(x)
    assert v in [v]
    assert len({v.ref(), tf.Variable(x).ref()}) == 2
