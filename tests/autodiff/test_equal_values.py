"""At equal eigenvalues or singular values, vectors have no derivative, whatever the values of what comes back."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import ops

EYE = np.eye(2, dtype=np.float32)


def logarithm(x):
    w, v = mo.op_eigh(x)
    return ops.sum(v @ ops.diag(ops.log(w)) @ ops.transpose(v))


def logarithm_of_any(x):
    w, v = mo.op_eig(x)
    return ops.sum(ops.real(v @ ops.diag(ops.log(w)) @ mo.op_inv(v)))


USED = {
    "eigh, a logarithm": logarithm,  # what comes back to the vectors is 0: log(1) times anything
    "eigh": lambda x: ops.sum(mo.op_eigh(x)[0]) + 0 * ops.sum(mo.op_eigh(x)[1]),
    "svd": lambda x: ops.sum(mo.op_svd(x)[1]) + 0 * ops.sum(mo.op_svd(x)[0]),
    "eig": logarithm_of_any,
}
UNUSED = {
    "eigh": lambda x: ops.sum(mo.op_eigh(x)[0]),
    "svd": lambda x: ops.sum(mo.op_svd(x)[1]),
    "eig": lambda x: ops.sum(ops.real(mo.op_eig(x)[0])),
}


@pytest.mark.parametrize("used", USED)
def test_vectors_that_are_used(backend, numpy, used):
    found = numpy(mo.grad(USED[used])(mo.op_convert_to_tensor(EYE)))
    assert np.isnan(found).any()


@pytest.mark.parametrize("unused", UNUSED)
def test_vectors_that_are_not_used(backend, numpy, unused):
    x = mo.op_convert_to_tensor(EYE)
    np.testing.assert_allclose(numpy(mo.grad(UNUSED[unused])(x)), EYE, atol=1e-6)
    np.testing.assert_allclose(numpy(mo.jvp(UNUSED[unused], (x,), (x,))[1]), 2, rtol=1e-6)


def test_vectors_alone(backend, numpy):
    """Nothing comes back to the values."""
    x = mo.op_convert_to_tensor(np.array([[2.0, 0.5], [0.5, 1.0]], np.float32))
    f = lambda take: lambda x: ops.sum(ops.square(take(x))[..., 0, 0] * 1.0)
    for take in (lambda x: mo.op_eigh(x)[1], lambda x: mo.op_svd(x)[0], lambda x: mo.op_svd(x)[2]):
        step = 1e-2
        moved = [float(numpy(f(take)(x + sign * step * mo.op_convert_to_tensor(EYE * [1, 0])))) for sign in (1, -1)]
        found = numpy(mo.grad(f(take))(x))[0, 0]
        np.testing.assert_allclose(found, (moved[0] - moved[1]) / (2 * step), atol=1e-3)
