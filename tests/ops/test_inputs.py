"""What comes in: whatever says that it is an array or a sequence becomes a tensor, and the rest is refused by name."""

from __future__ import annotations

import array
import collections
import sys
import types

import numpy as np
import pytest

import multiop as mo
from multiop import errors


class Sequence:
    """A sequence that has a length and entries alone, as the vectors of fitting libraries have."""

    def __init__(self, *entries):
        self.entries = entries

    def __len__(self):
        return len(self.entries)

    def __getitem__(self, k):
        return self.entries[k]


class WithArray:
    """A labelled column."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1, 2, 3], np.int16)


class WithInterface:
    """What describes its memory by NumPy's protocol."""

    kept = np.array([1, 2, 3], np.int16)
    __array_interface__ = kept.__array_interface__


class WithDLPack:
    """What hands its memory over by DLPack."""

    kept = np.array([1, 2, 3], np.int16)

    def __dlpack__(self, **kwargs):
        return self.kept.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.kept.__dlpack_device__()


def of_framework(name, make):
    """Return what a framework makes, if it is loaded already."""
    if name not in sys.modules:
        pytest.skip(f"{name} is not loaded")
    return make(sys.modules[name])


def tensor_shape():
    return of_framework("tensorflow", lambda tf: tf.TensorShape([1, 2, 3]))


def torch_size():
    return of_framework("torch", lambda torch: torch.Size([1, 2, 3]))


def series():
    return pytest.importorskip("pandas").Series([1, 2, 3], dtype="int16")


INPUTS = {  # what makes 1, 2, 3, and the dtype of its tensor
    "range": (lambda: range(1, 4), "int32"),
    "sequence": (lambda: Sequence(1, 2, 3), "int32"),
    "sequence of floats": (lambda: Sequence(1.0, 2.0, 3.0), "float32"),
    "deque": (lambda: collections.deque([1, 2, 3]), "int32"),
    "values of a dict": (lambda: {"a": 1, "b": 2, "c": 3}.values(), "int32"),
    "keys of a dict": (lambda: {1: "a", 2: "b", 3: "c"}.keys(), "int32"),
    "list of NumPy's scalars": (lambda: [np.int8(1), np.int8(2), np.int8(3)], "int8"),
    "list of arrays of no dimensions": (lambda: [np.array(k, np.int8) for k in (1, 2, 3)], "int8"),
    "memoryview": (lambda: memoryview(np.array([1, 2, 3], np.int16)), "int16"),
    "array.array": (lambda: array.array("h", [1, 2, 3]), "int16"),
    "array.array of floats": (lambda: array.array("f", [1, 2, 3]), "float32"),
    "__array__": (WithArray, "int16"),
    "__array_interface__": (WithInterface, "int16"),
    "__dlpack__": (WithDLPack, "int16"),
    "array that cannot be written": (lambda: np.broadcast_to(np.int16([1, 2, 3]), (3,)), "int16"),
    "tf.TensorShape": (tensor_shape, "int32"),
    "torch.Size": (torch_size, "int32"),
    "pandas.Series": (series, "int16"),
}


def numpy(x):
    return mo.op_convert_to_numpy(x).tolist()


@pytest.mark.parametrize("name", INPUTS)
def test_it_becomes_a_tensor(backend, name):
    make, dtype = INPUTS[name]
    x = mo.op_convert_to_tensor(make())
    assert mo.op_dtype(x) == mo.op_dtype(make()) == dtype
    assert numpy(x) == [1, 2, 3]
    assert numpy(mo.op_add(make(), x)) == [2, 4, 6]
    assert numpy(mo.op_sum(make(), axis=np.int64(0))) == 6
    assert numpy(mo.op_convert_to_tensor(make(), "float32")) == [1.0, 2.0, 3.0]


REFUSED = {  # what is no tensor, and how it is named
    "text": (lambda: "123", "str"),
    "bytes": (lambda: b"123", "bytes"),
    "bytearray": (lambda: bytearray(b"123"), "bytearray"),
    "set": (lambda: {1, 2}, "set"),
    "dict": (lambda: {0: 1.0}, "dict"),
    "mapping": (lambda: types.MappingProxyType({0: 1.0}), "mappingproxy"),
    "generator": (lambda: (k for k in range(3)), "generator"),
    "None": (lambda: None, "NoneType"),
    "type": (lambda: np.float32, "type"),
    "sequence of texts": (lambda: Sequence("a", "b"), "Sequence holds more than numbers"),
    "array of datetimes": (lambda: np.array(["2024-01-01"], "M8[s]"), r"datetime64\[s\]"),
    "datetime": (lambda: np.datetime64("2024-01-01"), "datetime64"),
    "duration": (lambda: np.timedelta64(3, "s"), "timedelta64"),
    "array of texts": (lambda: np.array(["a"]), "<U1"),
    "array of objects": (lambda: np.array([object()]), "object"),
    "array of records": (lambda: np.zeros(2, [("a", "f4")]), "'a'"),
    "list of datetimes": (lambda: [np.datetime64("2024-01-01")], "datetime64"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("op", ["op_convert_to_tensor", "op_negative"])
def test_the_rest_is_refused_by_name(backend, name, op):
    make, named = REFUSED[name]
    with pytest.raises((errors.ArgumentTypeError, errors.DTypeError), match=named):
        getattr(mo, op)(make())


def test_tensors_in_a_sequence_keep_their_gradients_or_are_refused(backend):
    def loss(x):
        return mo.op_sum(mo.op_convert_to_tensor(Sequence(x, x)))

    for fun in (loss, lambda x: mo.op_sum(mo.op_convert_to_tensor({"a": x}.values()))):
        with pytest.raises(errors.ArgumentTypeError, match="give a list of its entries"):
            mo.grad(fun)(2.0)
    assert float(mo.grad(lambda x: mo.op_sum(mo.op_convert_to_tensor(list(Sequence(x, x)))))(2.0)) == 2.0


SHAPES = {
    "range": lambda: range(2, 4),
    "list": lambda: [2, 3],
    "array": lambda: np.array([2, 3]),
    "NumPy's integers": lambda: (np.int64(2), np.uint8(3)),
    "NumPy's integers and -1": lambda: (np.int32(2), np.int64(-1)),
    "sequence": lambda: Sequence(2, 3),
    "values of a dict": lambda: {"a": 2, "b": 3}.values(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_a_shape(backend, name):
    x = mo.op_reshape(mo.op_arange(6), SHAPES[name]())
    assert mo.op_shape(x) == (2, 3)
    if "-1" not in name:
        assert mo.op_shape(mo.op_zeros(SHAPES[name]())) == (2, 3)


@pytest.mark.parametrize(
    "shape", [(np.int64(-2), 3), (np.int64(-1), np.int64(-1)), (np.float32(2), 3), (np.bool_(True),)]
)
def test_it_is_no_shape(backend, shape):
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match="must hold"):
        mo.op_reshape(mo.op_arange(6), shape)
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError), match="must hold"):
        mo.op_zeros(shape)


def test_the_frameworks_own_shapes_are_shapes(backend):
    x = mo.op_reshape(mo.op_arange(6), mo.op_reshape(mo.op_arange(6), (2, 3)).shape)
    assert mo.op_shape(x) == (2, 3)


def test_axes_are_numpys_integers(backend):
    x = mo.op_reshape(mo.op_arange(6), (2, 3))
    for axis in (np.int64(-1), np.uint8(1), np.array(1)):
        assert numpy(mo.op_sum(x, axis)) == [3, 12]
    assert numpy(mo.op_sum(x, (np.int64(0), np.int32(1)))) == 15
    assert numpy(mo.op_expand_dims(x, np.int64(0))) == [numpy(x)]
