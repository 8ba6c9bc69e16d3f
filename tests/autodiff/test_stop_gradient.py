"""The contract of `op_stop_gradient`, sentence by sentence, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

construct = pytest.mark.construct
X = np.array([0.5, -1.0, 2.0], np.float32)


def stopped_square(x):
    """x · stop(x): the derivative is x, the second derivative 1."""
    return x * mo.op_stop_gradient(x)


@construct("stop_gradient: identity for values")
@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float16", "bfloat16", "float32", "complex64"])
def test_identity(backend, dtype):
    x = mo.op_cast(mo.op_convert_to_tensor([0.0, 1.0, 2.0]), dtype)
    y = mo.op_stop_gradient(x)
    assert mo.op_is_tensor(y)
    assert mo.op_dtype(y) == dtype
    np.testing.assert_array_equal(mo.op_convert_to_numpy(y), mo.op_convert_to_numpy(x))


@construct("stop_gradient: identity for values")
def test_nan_and_inf(backend, numpy):
    x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    y = numpy(mo.op_stop_gradient(mo.op_convert_to_tensor(x)))
    np.testing.assert_array_equal(y, x)
    assert np.signbit(y[3])


@construct("stop_gradient: zero in reverse mode")
def test_reverse(backend, numpy):
    x = mo.op_convert_to_tensor(X)
    np.testing.assert_array_equal(numpy(mo.grad(lambda x: mo.op_sum(mo.op_stop_gradient(x)))(x)), [0, 0, 0])
    np.testing.assert_array_equal(numpy(mo.grad(lambda x: mo.op_sum(stopped_square(x)))(x)), X)


@construct("stop_gradient: zero in forward mode")
def test_forward(backend, numpy):
    np.testing.assert_array_equal(numpy(mo.jvp(mo.op_stop_gradient, (X,), (X,))[1]), [0, 0, 0])
    np.testing.assert_array_equal(numpy(mo.jvp(stopped_square, (X,), (np.ones(3, np.float32),))[1]), X)


@construct("stop_gradient: zero at every order")
def test_orders(backend):
    second = mo.grad(mo.grad(stopped_square))
    assert [float(stopped_square(3.0)), float(mo.grad(stopped_square)(3.0)), float(second(3.0))] == [9.0, 3.0, 0.0]
    # stopped twice over: the gradient x is not stopped again where it is used
    outer = mo.grad(lambda x: x * mo.grad(stopped_square)(x))
    assert float(outer(3.0)) == 3.0


@construct("stop_gradient: any pytree, Python scalars included")
def test_pytree(backend, numpy):
    x = mo.op_convert_to_tensor(X)
    tree = {"a": [x, 2.5], "b": (None, "text", 3, True), "c": np.ones(2, np.float32)}
    stopped = mo.op_stop_gradient(tree)
    assert stopped["a"][1] == 2.5
    assert stopped["b"] == (None, "text", 3, True)
    np.testing.assert_array_equal(numpy(stopped["a"][0]), X)
    np.testing.assert_array_equal(numpy(stopped["c"]), [1, 1])
    assert float(mo.op_stop_gradient(2.5)) == 2.5
    assert mo.op_stop_gradient(None) is None
    gradient = mo.grad(lambda p: mo.op_sum(p["w"] * mo.op_stop_gradient(p)["w"]))({"w": x})
    np.testing.assert_array_equal(numpy(gradient["w"]), X)


@construct("stop_gradient: variables")
def test_variable(backend, native):
    if backend == "jax":
        pytest.skip("JAX has no variables")
    weight = native.variable(3.0)
    with mo.GradientTape(persistent=True) as tape:
        x = tape.watch(mo.op_convert_to_tensor(2.0))
        y = mo.op_stop_gradient(weight) * weight * x
        z = mo.op_stop_gradient(weight) * x
    assert float(tape.gradient(y, weight)) == 6.0
    assert tape.gradient(z, weight) is None


@construct("stop_gradient under the framework's own transforms and compilers")
def test_native(backend, native, numpy):
    x = mo.op_convert_to_tensor(X)
    for name, way in native.reverse().items():
        np.testing.assert_allclose(numpy(way(stopped_square)(x)), X, err_msg=name)
    for name, way in native.forward().items():
        np.testing.assert_allclose(numpy(way(stopped_square)(x, mo.op_ones_like(x))), X, err_msg=name)
    for name, way in native.mapped().items():
        np.testing.assert_allclose(numpy(way(stopped_square)(x)), X**2, err_msg=name)
    reverse = next(iter(native.reverse().values()))
    for name, compiled in native.compilers().items():
        np.testing.assert_allclose(numpy(reverse(compiled(stopped_square))(x)), X, err_msg=name)


@construct("stop_gradient under jit, vmap and checkpoint")
def test_transforms(backend, numpy):
    x = mo.op_convert_to_tensor(X)
    for wrap in (mo.jit, mo.vmap, mo.checkpoint):
        gradient = mo.grad(lambda x: mo.op_sum(wrap(stopped_square)(x)))
        np.testing.assert_allclose(numpy(gradient(x)), X)
    np.testing.assert_allclose(numpy(mo.jit(mo.vmap(mo.grad(stopped_square)))(x)), X)


@construct("stop_gradient of a tensor of another framework", error=True)
def test_foreign(backend):
    class Foreign:
        __module__ = {"torch": "jax"}.get(backend, "torch")
        shape, dtype = (), "float32"

    with pytest.raises(errors.ForeignTensorError, match="op_stop_gradient"):
        mo.op_stop_gradient({"a": Foreign()})
