"""Options that take ints also take NumPy's arrays of them, its ints, and the shapes of the framework."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import multiop
from multiop import errors, ops
from multiop._call import recover
from multiop._values import tree

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
M = X[0]
V = M[0]
IMAGE = np.arange(72, dtype="float32").reshape(1, 6, 6, 2)
KERNEL = np.ones((3, 3, 2, 2), "float32")
PAIRS = ((1, 2), (0, 1))

CALLS = {
    "axis": lambda f: ops.sum(X, axis=f((0, 1))),
    "axes of softmax": lambda f: ops.softmax(X, axis=f((0, 2))),
    "single axis": lambda f: ops.cumsum(X, axis=f(1)),
    "axes": lambda f: ops.transpose(X, f((2, 0, 1))),
    "two axes": lambda f: ops.moveaxis(X, f((0, 1)), f((2, 0))),
    "axes of tensordot": lambda f: ops.tensordot(M, X[..., :3], axes=f(((0,), (2,)))),
    "pair of axes of tensordot": lambda f: ops.tensordot(M, X, axes=(f((0,)), f((1,)))),
    "number of axes of tensordot": lambda f: ops.tensordot(X, X, axes=f(3)),
    "shape": lambda f: ops.reshape(X, f((4, 6))),
    "repeats": lambda f: ops.tile(ops.repeat(M, f((1, 2, 0)), axis=0), f((2, 1))),
    "one of repeats": lambda f: ops.repeat(M, f(2), axis=f(0)),
    "shift": lambda f: ops.roll(X, f((1, 2)), axis=f((0, 1))),
    "pad_width": lambda f: ops.pad(M, f(PAIRS)),
    "places of a split": lambda f: ops.split(V, f((1, 3))),
    "parts of a split": lambda f: ops.array_split(V, f(3)),
    "ranks": lambda f: ops.argpartition(V, f((1,))),
    "padding": lambda f: ops.conv(IMAGE, KERNEL, padding=f((1, 2))),
    "pairs of padding": lambda f: ops.conv(IMAGE, KERNEL, padding=f(PAIRS)),
    "list of paddings": lambda f: ops.conv(IMAGE, KERNEL, padding=[f((1, 2)), f((0, 1))]),
    "strides": lambda f: ops.conv(IMAGE, KERNEL, strides=f((2, 1)), padding="same"),
    "padding of a transposed convolution": lambda f: ops.conv_transpose(IMAGE, KERNEL, f((2, 2)), padding=f((1, 1))),
    "pool_size": lambda f: ops.max_pool(IMAGE, f((2, 2)), strides=f((1, 2)), padding=f((1, 1))),
    "kernel_size": lambda f: ops.unfold(X[None], f((2, 2)), padding=f((1, 0))),
    "size": lambda f: ops.image.resize(IMAGE, f((3, 4))),
    "length": lambda f: ops.rfft(V, fft_length=f(8)),
    "shape of random numbers": lambda f: multiop.random.normal(f((2, 3)), seed=1),
    "in_axes": lambda f: multiop.vmap(lambda x: x * 2, in_axes=f(1))(M),
}


def numbers_of_numpy(value):
    return tuple(map(numbers_of_numpy, value)) if isinstance(value, tuple) else np.int16(value)


def shape_of_framework(value):
    is_flat = isinstance(value, tuple) and not isinstance(value[0], tuple)
    if multiop.backend() == "tensorflow" and is_flat:
        import tensorflow as tf

        return tf.TensorShape(value)
    if multiop.backend() == "torch" and is_flat:
        import torch

        return torch.Size(value)
    return value


@pytest.mark.parametrize("form", [np.array, np.uint8, numbers_of_numpy, shape_of_framework])
def test_options_as_arrays(backend, form):
    for name, call in CALLS.items():
        found, expected = tree.leaves(call(form)), tree.leaves(call(lambda value: value))
        for x, y in zip(found, expected, strict=True):
            x, y = multiop.op_convert_to_numpy(x), multiop.op_convert_to_numpy(y)
            assert x.dtype == y.dtype, name
            np.testing.assert_array_equal(x, y, err_msg=name)


def test_arrays_of_other_kinds_are_refused(backend):
    for axis in (np.array([0.0, 1.0]), np.array([True, False]), np.array([0, 0]), np.array([0, 9])):
        with pytest.raises(errors.MultiopError, match="op_sum: axis"):
            ops.sum(X, axis=axis)
    with pytest.raises(errors.MultiopError, match="op_conv: padding"):
        ops.conv(IMAGE, KERNEL, padding=np.array([1, 2, 3]))


def test_no_operand_is_an_option():
    """An operand may be an array of ints, which must stay one."""
    operands = {"x", "x1", "x2", "inputs", "indices", "a", "b", "images", "data", "values", "updates", "kernel"}
    for name in multiop.__all__:
        if name.startswith("op_"):
            assert not recover._options(inspect.unwrap(getattr(multiop, name))) & operands, name
