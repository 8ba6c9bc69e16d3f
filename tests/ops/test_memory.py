"""Who sees what is written: into an array of NumPy after a call, and on PyTorch into a result (docs/memory.md)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop import ops
from multiop._values import tree as _tree
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"
SHARING = set(
    re.findall(r"(?<=[`.])\w+(?=`)", PAGE.read_text(encoding="utf-8").partition("\n- ")[2].rpartition("\n\n")[0])
)


def array(n, offset=0, dtype="float32"):
    """Return ones that start `offset` bytes behind a multiple of 64: frameworks keep arrays that are aligned."""
    memory = np.empty(n * np.dtype(dtype).itemsize + 64 + offset, np.uint8)
    ones = np.ndarray((n,), dtype, memory, -memory.ctypes.data % 64 + offset)
    ones[:] = 1
    return ones


@multiop.op_custom_gradient
def product(x, y):
    return x * y, lambda upstream: (upstream * y, None)


WAYS_IN = {
    "convert_to_tensor": ops.convert_to_tensor,
    "array": ops.array,
    "copy": ops.copy,
    "cast": lambda x: ops.cast(x, "float32"),
    "reshape": lambda x: ops.reshape(x, (2, -1)),
    "an operand": lambda x: ops.maximum(x, 0.5),
    "a key": lambda x: ops.get_item(ops.ones(2), x.view("int32") % 2),
    "indices": lambda x: ops.take(ops.convert_to_tensor([0.0, 1.0]), x.view("int32") * 0 + 1, axis=0),
    "in a list": lambda x: ops.convert_to_tensor([x, x]),
    "of a function's result": lambda x: ops.cond(True, lambda: x, lambda: x),
    "stop_gradient": ops.stop_gradient,
    "to_device": lambda x: multiop.to_device(x, "cpu"),
    "jit": multiop.jit(lambda x: x),
    "checkpoint": multiop.checkpoint(lambda x: x),
    "vjp": lambda x: multiop.vjp(lambda x: x, x)[0],
    "jvp": lambda x: multiop.jvp(lambda x: x, (x,), (x,))[1],
    "the rule's argument": lambda x: multiop.grad(lambda y: ops.sum(product(y, x)))(ops.ones(x.shape)),
    "an object with an array": lambda x: ops.convert_to_tensor(Holder(x)),
    "a strided array": lambda x: ops.convert_to_tensor(np.stack([x, x], 1)[:, 0] if x.size < 9 else x[::-1]),
}


class Holder:
    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


def hold_up_jax():
    """Give the threads of JAX on a CPU something to do, so that they copy arrays late."""
    import jax

    busy = jax.jit(lambda x: jax.lax.fori_loop(0, 400_000, lambda i, x: jax.numpy.sin(x), x))
    return [busy(float(i)) for i in range(8)]


QUICK = ("convert_to_tensor", "indices", "checkpoint", "to_device")


@pytest.mark.parametrize(
    "way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.tier("full")) for way in WAYS_IN]
)
def test_a_tensor_does_not_change_with_an_array(backend, way):
    for n, offset in ((8, 0), (8, 4), (40_000, 0), (40_000, 4)):
        for _ in range(2):  # the first time it is compiled
            x = array(n, offset)
            held = hold_up_jax() if backend == "jax" and n > 8 else None
            y = WAYS_IN[way](x)
            x[:] = 0
            assert (ops.convert_to_numpy(y) == 1).all(), (n, offset)
            del held


def test_an_array_of_a_tensor_may_be_written(backend):
    for dtype in ("float32", "bfloat16", "bool", "complex64", "int8", "float8_e5m2"):
        for x in (ops.cast(ops.ones((2, 3)), dtype), ops.cast(ops.ones(()), dtype)):
            found = ops.convert_to_numpy(x)
            assert found.flags.writeable
            found[...] = 0
            assert (ops.convert_to_numpy(x).astype("complex64") == 1).all()


def test_array_is_a_copy(backend):
    x = ops.ones((2, 3))
    for y in (ops.array(x), ops.array(x, "float32"), ops.copy(x)):
        assert y is not x
        if backend == "torch":
            y[0] = 0
            assert x.sum() == 6 and y.sum() == 3
    assert float(multiop.grad(lambda x: ops.sum(ops.array(x) * 3.0))(2.0)) == 3


def sharing(f, args, kwargs=None):
    """Return whether writing into a result of `f` would write into an argument; no op writes into an argument."""
    import torch

    def memory(tree):
        return {y.untyped_storage().data_ptr() for y in _tree.leaves(tree) if isinstance(y, torch.Tensor) and y.numel()}

    given = [x for x in _tree.leaves((args, kwargs or {})) if isinstance(x, torch.Tensor)]
    before = [x.numpy().tobytes() for x in given]
    found = bool(memory(f(*args, **kwargs or {})) & memory(given))
    assert [x.numpy().tobytes() for x in given] == before
    return found


def shared_calls():
    """Return calls with nothing to do, of which some ops have none in their case row."""
    import torch

    x, n, u = (
        torch.arange(6.0).reshape(2, 3) + 0.5,
        torch.arange(6, dtype=torch.int32),
        torch.ones(2, dtype=torch.uint8),
    )
    image, one = torch.rand(1, 4, 4, 3), torch.tensor([2.5])
    return [
        (ops.clip, x, None, None), (ops.amax, x, ()),
        (ops.moments, x, ()), (ops.average, x, ()), (ops.abs, u),
        (ops.relu, u), (ops.floor, n), (ops.image.pad_images, image, 0, 0, 0, 0), (ops.stop_gradient, x),
        (ops.einsum, "ij", x), (multiop.random.dropout, x, 0.0), (multiop.to_device, x, "cpu"), (ops.amin, x, ()),
        (ops.vectorized_map, lambda x: x, x), (ops.scan, lambda c, x: (c, x), one, x), (ops.cast, x, "float32"),
        (ops.switch, 0, [lambda x: x], x), (multiop.op_fftn, torch.complex(x, x), None, ()),
        (multiop.op_ifftn, torch.complex(x, x), None, ()),
        (multiop.op_fftshift, x, ()), (multiop.op_ifftshift, x, ()),
    ]  # fmt: skip


def test_results_share_memory_as_documented(multiop_backend):
    if multiop_backend != "torch":
        pytest.skip("tensors can be written on PyTorch alone")
    import torch

    x, n, two = torch.arange(6.0).reshape(2, 3) + 0.5, torch.arange(6, dtype=torch.int32), 2 * torch.eye(2)
    image, one = torch.rand(1, 4, 4, 3), torch.tensor([2.5])
    own = [
        (ops.array, x), (ops.copy, x), (ops.pad, x, 0), (ops.tile, x, 1), (ops.repeat, x, 1), (ops.roll, x, 0),
        (ops.flip, x, ()), (ops.rot90, x, 4), (ops.concatenate, [x]), (ops.concatenate, [x, x[:0]]),
        (ops.stack, [x]), (ops.append, x, x[:0], 0), (ops.where, torch.tensor(True), x, x), (ops.maximum, x, x),
        (ops.add, x, 0), (ops.multiply, x, 1), (ops.divide, x, 1), (ops.power, x, 1), (ops.floor_divide, n, 1),
        (ops.sort, one), (ops.median, one), (ops.cumsum, one), (ops.tril, x, 10), (ops.negative, x), (ops.sign, n),
        (ops.nan_to_num, n), (ops.take, x, [0, 1], 0), (ops.take, x, 0, 0), (ops.get_item, x, torch.tensor([0, 1])),
        (ops.matmul, x, torch.eye(3)), (ops.inv, two), (ops.vstack, [x]), (ops.softmax, x, ()), (ops.top_k, x, 3),
        (ops.set_item, x, ..., x + 1), (ops.set_item, x, (), one), (ops.set_item, x, slice(0, 0), x[:0]),
        (ops.slice_update, x, (0, 0), x + 1), (ops.slice_update, one[0], (), one[0]), (ops.add_at, x, 0, x[0]),
        (ops.average_pool, image, 1), (ops.max_pool, image, 1), (ops.image.resize, image, (4, 4)),
        (ops.leaky_relu, x, 1.0), (ops.bitwise_or, n, 0), (ops.unique, one), (ops.full, (2,), one),
        (ops.full_like, x, one), (ops.linspace, one, one, 1), (ops.map, lambda x: x, x), (ops.nextafter, x, x),
        (ops.select, [n > 9], [n], n), (ops.associative_scan, lambda a, b: a, one),
    ]  # fmt: skip
    assert [f.__name__ for f, *args in shared_calls() if not sharing(f, args)] == []
    assert [f.__name__ for f, *args in own if sharing(f, args)] == []
    assert {f.__qualname__ for f, *_ in shared_calls()} <= SHARING
    assert {f.__qualname__ for f, *_ in own} & SHARING == {"op_get_item"}


@pytest.mark.rotating
def test_the_ops_that_share_memory_are_documented(multiop_backend):
    if multiop_backend != "torch":
        pytest.skip("tensors can be written on PyTorch alone")
    found = set()
    for op, row in rows().items():
        for dtype in {"float32", "int32", "uint8", "complex64", "bool"} & {*row.dtypes}:
            for call in row.calls:
                problem = Problem(getattr(multiop, op), call, dtype=dtype)
                tensors = [multiop.op_convert_to_tensor(x, x.dtype.name) for x in problem.arrays]
                if op not in found and sharing(lambda *xs, p=problem: p.apply(p.f, xs), tensors):
                    found.add(op)
    assert found - SHARING == set()
    assert SHARING & {*rows()} - found <= {f.__qualname__ for f, *_ in shared_calls()}
