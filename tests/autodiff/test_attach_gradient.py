"""The contract of `op_attach_gradient`, sentence by sentence, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

construct = pytest.mark.construct
X = np.array([0.5, -1.0, 2.0], np.float32)


@construct("attach_gradient: value and gradient")
def test_value_and_gradient(backend, numpy):
    """What the tests of the TensorFlow 1 function hold: f(x) = x²/2 with the gradient (x - 1)³/3, zeros included."""
    points = np.linspace(-100, 100, 101).astype(np.float32)
    f = lambda x: mo.op_attach_gradient(x**2 / 2, (x - 1) ** 3 / 3, x)
    x = mo.op_convert_to_tensor(points)
    np.testing.assert_array_equal(numpy(f(x)), numpy(x**2 / 2))
    np.testing.assert_allclose(
        numpy(mo.grad(lambda x: mo.op_sum(f(x)))(x)), (points - 1) ** 3 / 3, rtol=1e-5, atol=1e-3
    )


@construct("attach_gradient: the value is exact where x · gx overflows")
@pytest.mark.parametrize(
    ("fx", "gx", "x"), [(1.5, 1e38, 1e38), (0.1, np.inf, 3.0), (2.0, np.nan, 1.0), (7.0, 1.0, np.inf)]
)
def test_exact(backend, fx, gx, x):
    f = lambda x: mo.op_attach_gradient(fx, gx, x)
    value, gradient = mo.value_and_grad(f)(x)
    assert float(value) == float(np.float32(fx))
    np.testing.assert_array_equal(mo.op_convert_to_numpy(gradient), np.float32(gx))


@construct("attach_gradient: upstream entry by entry")
def test_upstream(backend, numpy):
    g, u = np.array([3.0, 4.0, 5.0], np.float32), np.array([1.0, -2.0, 0.5], np.float32)
    _, pullback = mo.vjp(lambda x: mo.op_attach_gradient(X * 7, g, x), X)
    np.testing.assert_allclose(numpy(pullback(u)[0]), u * g)


M = np.arange(6, dtype=np.float32).reshape(2, 3)


@construct("attach_gradient: axis=()")
def test_axis_empty(backend, numpy):
    f = lambda x: mo.op_attach_gradient(M * 2, M + 1, x)
    np.testing.assert_allclose(numpy(f(M)), M * 2)
    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(f(x)))(M)), M + 1)


@construct("attach_gradient: axis=None")
def test_axis_none(backend, numpy):
    f = lambda x: mo.op_attach_gradient(5.0, M + 1, x, axis=None)
    assert float(f(M)) == 5.0
    np.testing.assert_allclose(numpy(mo.grad(lambda x: f(x) * 10)(M)), 10 * (M + 1))


@construct("attach_gradient: axis=None")
@pytest.mark.parametrize("gx", [M + 1, np.array([3.0], np.float32), [3.0], 3.0])
def test_axis_none_and_a_value_of_one_entry(backend, numpy, gx):
    f = lambda x: mo.op_attach_gradient(mo.op_convert_to_tensor([5.0]), gx, x, axis=None)
    value, pullback = mo.vjp(f, M)
    np.testing.assert_array_equal(numpy(value), [5.0])
    np.testing.assert_allclose(numpy(pullback(np.array([10.0], np.float32))[0]), 10 * np.broadcast_to(gx, M.shape))
    one = mo.vjp(f, M[0, :1])[1](np.array([10.0], np.float32))[0] if np.size(gx) == 1 else None
    assert one is None or numpy(one).tolist() == [30.0]


@construct("attach_gradient: axis an int or several")
@pytest.mark.parametrize("axis", [0, 1, -1, (0,), (0, 1), [1], (1, 0)])
def test_axis(backend, numpy, axis):
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shape = tuple(n for i, n in enumerate(M.shape) if i not in [a % 2 for a in axes])
    fx = np.full(shape, 5.0, np.float32)
    u = np.arange(1, fx.size + 1, dtype=np.float32).reshape(shape)
    value, pullback = mo.vjp(lambda x: mo.op_attach_gradient(fx, M + 1, x, axis=axis), M)
    np.testing.assert_array_equal(numpy(value), fx)
    np.testing.assert_allclose(numpy(pullback(u)[0]), (M + 1) * np.expand_dims(u, axes))


@construct("attach_gradient: one gx for all entries that f takes in")
def test_shared_gradient(backend, numpy):
    """The test of the TensorFlow 1 function for a vector: gx is a scalar, and is the gradient of each entry."""
    z = np.array([2.0, 3.0], np.float32)
    f = lambda z: mo.op_attach_gradient(z[0] * z[1], z[0] ** 2 * z[1] ** 2 / 2, z, axis=0)
    assert float(f(mo.op_convert_to_tensor(z))) == 6.0
    np.testing.assert_allclose(numpy(mo.grad(f)(z)), [18.0, 18.0])
    g = np.array([10.0, 20.0, 30.0], np.float32)  # one per column
    gradient = mo.grad(lambda x: mo.op_sum(mo.op_attach_gradient(g, g, x, axis=0)))(M)
    np.testing.assert_allclose(numpy(gradient), np.stack([g, g]))
    np.testing.assert_allclose(
        numpy(mo.grad(lambda x: mo.op_sum(mo.op_attach_gradient(M, 4.0, x)))(M)), np.full((2, 3), 4.0)
    )


@construct("attach_gradient: lists of x and gx")
def test_lists(backend, numpy):
    def f(x, y):
        return mo.op_attach_gradient(x * mo.op_sum(y), [mo.op_sum(y) * 2, x * y * 3], [x, y], axis=None)

    gx, gy = mo.grad(f, (0, 1))(2.0, X)
    np.testing.assert_allclose(float(gx), 2 * X.sum())
    np.testing.assert_allclose(numpy(gy), 6 * X)


@construct("attach_gradient: fx and gx are stopped")
def test_stopped(backend):
    """The side value y gets no gradient, and second derivatives are zero."""

    def f(x, y):
        return mo.op_attach_gradient(x * y, x * x * y, x)

    gx, gy = mo.grad(f, (0, 1))(2.0, 3.0)
    assert (float(gx), float(gy)) == (12.0, 0.0)
    assert float(mo.grad(mo.grad(f))(2.0, 3.0)) == 0.0
    with mo.GradientTape() as tape:
        y = tape.watch(mo.op_convert_to_tensor(3.0))
        z = mo.op_attach_gradient(y * 2.0, y, mo.op_convert_to_tensor(2.0))
    assert tape.gradient(z, y) is None


@construct("attach_gradient: fx_gx_manually_stopped")
def test_manually_stopped(backend):
    """The test of the TensorFlow 1 function: the x part of f and the y part of the point are stopped by hand."""
    stop = mo.op_stop_gradient

    def h(x, y):
        return mo.op_attach_gradient(stop(x) * y, stop(x * x) * y, x + stop(y), fx_gx_manually_stopped=True)

    x, y = 2.0, 3.0
    assert float(h(mo.op_convert_to_tensor(x), mo.op_convert_to_tensor(y))) == x * y
    gx, gy = mo.grad(h, (0, 1))(x, y)
    assert (float(gx), float(gy)) == (x * x * y, x)
    # second order: d(gx)/dy = x², the derivative of the gx that was given
    assert float(mo.grad(lambda y: mo.grad(h)(x, y))(y)) == x * x


@construct("attach_gradient: higher orders where nothing is stopped")
def test_nothing_stopped(backend):
    """fx = x², gx = x³, neither stopped: gradient 2 x + x³, second derivative 2 + 3 x²."""
    f = lambda x: mo.op_attach_gradient(x * x, x * x * x, x, fx_gx_manually_stopped=True)
    assert float(mo.grad(f)(2.0)) == 12.0
    assert float(mo.grad(mo.grad(f))(2.0)) == 14.0
    # fx stopped, gx not: gradient x³, second derivative 3 x²
    f = lambda x: mo.op_attach_gradient(mo.op_stop_gradient(x * x), x * x * x, x, fx_gx_manually_stopped=True)
    assert [float(mo.grad(f)(2.0)), float(mo.grad(mo.grad(f))(2.0)), float(mo.grad(mo.grad(mo.grad(f)))(2.0))] == [
        8.0,
        12.0,
        12.0,
    ]


@construct("attach_gradient: forward mode")
def test_forward(backend, numpy):
    t = np.array([1.0, 2.0, -3.0], np.float32)
    g = np.array([3.0, 4.0, 5.0], np.float32)
    value, tangent = mo.jvp(lambda x: mo.op_attach_gradient(1.5, g, x, axis=None), (X,), (t,))
    assert float(value) == 1.5
    np.testing.assert_allclose(float(tangent), float(g @ t))


@construct("attach_gradient: jit, vmap and native transforms")
def test_transforms(backend, beside, numpy):
    f = lambda x: mo.op_attach_gradient(x * x, x * x * x, x)
    x = mo.op_convert_to_tensor(X)
    np.testing.assert_allclose(numpy(mo.jit(mo.grad(lambda x: mo.op_sum(f(x))))(x)), X**3, rtol=1e-6)
    np.testing.assert_allclose(numpy(mo.vmap(mo.grad(f))(x)), X**3, rtol=1e-6)
    for name, way in beside.reverse().items():
        np.testing.assert_allclose(numpy(way(f)(x)), X**3, rtol=1e-6, err_msg=name)
    for name, way in beside.forward().items():
        np.testing.assert_allclose(numpy(way(f)(x, mo.op_ones_like(x))), X**3, rtol=1e-6, err_msg=name)


@pytest.mark.usefixtures("x64")
@construct("attach_gradient: dtypes")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(backend, numpy, dtype):
    x = mo.op_cast(mo.op_convert_to_tensor(X), dtype)
    f = lambda x: mo.op_attach_gradient(0.25, [1, 2, 3], x, axis=None)
    value, gradient = mo.value_and_grad(f)(x)
    assert mo.op_dtype(value) == mo.op_dtype(gradient) == dtype
    assert float(value) == 0.25
    np.testing.assert_array_equal(numpy(gradient), [1, 2, 3])


@construct("attach_gradient: complex")
def test_complex(backend, numpy):
    """gx is a gradient in the conjugate convention: for |z|² it is 2 z, for the holomorphic z² it is conj(2 z)."""
    z = mo.op_convert_to_tensor(np.array([3 + 4j, 1 - 2j], np.complex64))
    f = lambda z: mo.op_attach_gradient(mo.op_sum(mo.op_real(z * mo.op_conj(z))), 2 * z, z, axis=None)
    np.testing.assert_allclose(numpy(mo.grad(f)(z)), 2 * numpy(z))
    u = np.array([1 + 1j, 2j], np.complex64)
    _, pullback = mo.vjp(lambda z: mo.op_attach_gradient(z * z, mo.op_conj(2 * z), z), z)
    np.testing.assert_allclose(numpy(pullback(u)[0]), u * np.conj(2 * numpy(z)))


@construct("attach_gradient: bad arguments", error=True)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: mo.op_attach_gradient(x, x, x, axis=None), errors.ArgumentError, r"fx has shape \(3,\).*\(\)"),
        (lambda x: mo.op_attach_gradient(1.0, x[:2], x, axis=None), errors.ArgumentError, r"gx has shape \(2,\)"),
        (lambda x: mo.op_attach_gradient(1.0, x, x, axis=1), errors.ArgumentError, "axis 1 is out of range"),
        (lambda x: mo.op_attach_gradient(1.0, x, x, axis="0"), errors.ArgumentTypeError, "axis"),
        (lambda x: mo.op_attach_gradient(1.0, x, [x], axis=None), errors.ArgumentTypeError, "gx must be a list"),
        (
            lambda x: mo.op_attach_gradient(1.0, [x], [x, x], axis=None),
            errors.ArgumentError,
            "1 entries for the 2 of x",
        ),
        (lambda x: mo.op_attach_gradient(x, x, np.array([1, 2, 3])), errors.DTypeError, "x must be real or complex"),
        (lambda x: mo.op_attach_gradient(3, x, x, axis=None), errors.DTypeError, "fx must be real or complex"),
        (lambda x: mo.op_attach_gradient(x, mo.op_multiply(x, 1j), x), errors.DTypeError, "gx is complex"),
        (lambda x: mo.op_attach_gradient(x, "slope", x), errors.ArgumentTypeError, "gx"),
        (lambda x: mo.op_attach_gradient(x, x, x, name=3), errors.ArgumentTypeError, "name"),
        (
            lambda x: mo.op_attach_gradient(x, x, x, fx_gx_manually_stopped="yes"),
            errors.ArgumentTypeError,
            "fx_gx_manually_stopped",
        ),
    ],
)
def test_bad_arguments(backend, call, error, message):
    with pytest.raises(error, match=r"(?s)op_attach_gradient.*" + message):
        call(mo.op_convert_to_tensor(X))
