"""Extrema of integers of 8 bits, which Inductor gets wrong on a CPU: https://github.com/pytorch/pytorch/issues/191499."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import multiop as mo

OPS = ("max", "min", "argmax", "argmin")
POSITIVE = np.random.default_rng(0).integers(3, 127, (2, 36))


def extrema(x):
    return [getattr(mo, f"op_{name}")(x, axis) for name in OPS for axis in (None, 1)]


@pytest.mark.rotating
@pytest.mark.compiler
@pytest.mark.parametrize("compiled", [mo.jit, torch.compile])
@pytest.mark.parametrize(("dtype", "sign"), [("int8", 1), ("int8", -1), ("uint8", 1)])
def test_extrema_of_bytes(dtype, sign, compiled):
    x = (sign * POSITIVE).astype(dtype)
    results = compiled(extrema)(torch.from_numpy(x))
    expected = [getattr(np, name)(x, axis) for name in OPS for axis in (None, 1)]
    for result, exact in zip(results, expected, strict=True):
        np.testing.assert_array_equal(mo.op_convert_to_numpy(result), exact)
