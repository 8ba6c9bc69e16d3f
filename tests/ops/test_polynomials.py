"""Polynomials, and functions that are known at points: what a row of the case table cannot say."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import errors

P = np.array([2.0, -3.0, 0.5, 4.0])
MATRIX = np.array([[2.0, 1.0, 0.0], [0.5, -1.0, 0.25], [0.0, 1.0, 3.0]])


def values(x):
    return mo.op_convert_to_numpy(x)


@pytest.mark.parametrize("p", [P, [1.0, -6.0, 11.0, -6.0, 0.0], P * (1 + 2j)], ids=["complex", "a root 0", "rotated"])
def test_roots_are_those_of_numpy(backend, multiop_x64, p):
    found = values(mo.op_roots(np.asarray(p)))
    expected = np.roots(p)
    assert found.dtype == complex
    nearest = np.abs(found[:, None] - expected).argmin(1)
    assert sorted(nearest) == [*range(len(expected))]
    np.testing.assert_allclose(found, expected[nearest], rtol=1e-10, atol=1e-12)


def test_gradients_of_roots(backend, multiop_x64):
    def loss(p):  # the sum of the roots is -p1 / p0, that of their squares (p1 / p0)**2 - 2 p2 / p0
        roots = mo.op_roots(p)
        return mo.op_real(mo.op_sum(roots + roots * roots))

    p0, p1, p2, _ = P
    slopes = [p1 / p0**2 - 2 * p1**2 / p0**3 + 2 * p2 / p0**2, -1 / p0 + 2 * p1 / p0**2, -2 / p0, 0.0]
    np.testing.assert_allclose(values(mo.grad(loss)(mo.op_convert_to_tensor(P))), slopes, atol=1e-10)


def test_poly_of_a_matrix(backend, multiop_x64):
    np.testing.assert_allclose(values(mo.op_poly(MATRIX)), np.poly(MATRIX), rtol=1e-12)
    # the last coefficient is -det, with the cofactors as its gradient; the second one is -trace
    gradient = mo.grad(lambda x: mo.op_sum(mo.op_take(mo.op_poly(x), [1, 3])))(mo.op_convert_to_tensor(MATRIX))
    cofactors = np.linalg.det(MATRIX) * np.linalg.inv(MATRIX).T
    np.testing.assert_allclose(values(gradient), -np.eye(3) - cofactors, atol=1e-10)


def test_mixed_derivatives_of_a_polynomial_are_those_of_its_powers(backend, multiop_x64):
    x, weights = np.array([1.5, -0.5]), [1.0, 10.0, 100.0, 1000.0]  # of the derivatives in each coefficient

    def weighted(x):
        slopes = mo.grad(lambda p: mo.op_sum(mo.op_multiply(mo.op_polyval(p, x), [1.0, 2.0])))(
            mo.op_convert_to_tensor(P)
        )
        return mo.op_sum(mo.op_multiply(slopes, weights))

    found = mo.grad(weighted)(mo.op_convert_to_tensor(x))
    np.testing.assert_allclose(values(found), np.polyval(np.polyder(weights), x) * [1.0, 2.0], rtol=1e-12)


def test_covariances_have_gradients_in_the_weights(backend, multiop_x64):
    x, w = np.array([[1.0, 2.0, 4.0], [3.0, -1.0, 0.0]]), np.array([0.5, 1.0, 2.5])
    step = 1e-6 * np.eye(3)
    expected = [(np.cov(x, aweights=w + e).sum() - np.cov(x, aweights=w - e).sum()) / 2e-6 for e in step]
    found = mo.grad(lambda w: mo.op_sum(mo.op_cov(x, aweights=w)))(mo.op_convert_to_tensor(w))
    np.testing.assert_allclose(values(mo.op_cov(x, aweights=w)), np.cov(x, aweights=w), rtol=1e-12)
    np.testing.assert_allclose(values(found), expected, atol=1e-7)


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("is_even", [True, False])
def test_slopes_have_the_digits_of_their_dtype_at_any_distance(backend, multiop_x64, edge_order, is_even):
    x = np.array([0, 1, 2, 3] if is_even else [0, 1, 3, 3.5]) * 0.1
    y, distance = np.sin(x), 0.1 if is_even else x
    found = values(mo.op_gradient(y, distance, edge_order=edge_order))
    np.testing.assert_allclose(found, np.gradient(y, distance, edge_order=edge_order), rtol=1e-13)
    for scale in (1e-25, 1e25, 1e38):  # products of distances leave the range
        far = np.array([0.0, 1, 2.5, 0.5, 2], "float32") * np.float32(scale)
        distance = scale if is_even else np.array([0.0, 1, 2, 2.5, 3], "float32") * np.float32(scale)
        slopes = mo.jit(lambda f: mo.op_gradient(f, distance, edge_order=edge_order))(mo.op_convert_to_tensor(far))
        want = np.gradient(far.astype(float), np.asarray(distance, "float64"), edge_order=edge_order)
        np.testing.assert_allclose(values(slopes), want, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mo.op_roots([0.0, 1.0, 2.0]), errors.ArgumentError, "op_roots: p must be"),
        (lambda: mo.op_roots([[1.0, 2.0]]), errors.ArgumentError, "p must be a vector"),
        (lambda: mo.op_poly(np.ones((2, 3), "float32")), errors.ArgumentError, "op_poly"),
        (lambda: mo.op_polyval([[1.0]], 2.0), errors.ArgumentError, "p must be a vector"),
        (lambda: mo.op_polyfit([1.0, 2.0], [1.0], 1), errors.ArgumentError, "y must be"),
        (lambda: mo.op_polyfit([1.0, 2.0], [1.0, 2.0], -1), errors.ArgumentError, "deg must"),
        (lambda: mo.op_polyfit([1.0, 2.0], [1.0, 2.0], 1, w=[1.0]), errors.ArgumentError, "w must be"),
        (lambda: mo.op_polyfit([1.0, 2.0], [1.0, 2.0], 1, cov=True), errors.ArgumentError, "cov: 2 points"),
        (lambda: mo.op_polyfit([1.0, 2.0], [1.0, 2.0], 1, cov="scaled"), errors.ArgumentError, "cov must be"),
        (lambda: mo.op_interp(1.0, [1.0, 2.0], [1.0]), errors.ArgumentError, "xp and fp"),
        (lambda: mo.op_interp(1.0, [], []), errors.ArgumentError, "xp and fp"),
        (lambda: mo.op_interp(1.0, [1.0], [1.0], period=0), errors.ArgumentError, "period must"),
        (lambda: mo.op_interp(1j, [1.0], [1.0]), errors.DTypeError, "x: complex"),
        (lambda: mo.op_gradient([1.0]), errors.ArgumentError, "axis 0 has 1"),
        (lambda: mo.op_gradient([1.0, 2.0], edge_order=2), errors.ArgumentError, "edge_order 2 needs 3"),
        (lambda: mo.op_gradient([1.0, 2.0], edge_order=3), errors.ArgumentError, "edge_order must"),
        (lambda: mo.op_gradient([1.0, 2.0], [1.0, 2.0, 4.0]), errors.ArgumentError, "varargs: coordinates"),
        (lambda: mo.op_gradient(np.ones((2, 2), "float32"), 1.0, 1.0, 1.0), errors.ArgumentError, "varargs are 3"),
        (lambda: mo.op_unwrap(np.ones(2, "complex64")), errors.DTypeError, "op_unwrap"),
        (lambda: mo.op_unwrap([1.0], period=0), errors.ArgumentError, "period must"),
        (lambda: mo.op_convolve([], [1.0]), errors.ArgumentError, "x1 must be"),
        (lambda: mo.op_cov([1.0, 2.0], fweights=[0.5, 1.0]), errors.DTypeError, "fweights must be"),
        (lambda: mo.op_cov([1.0, 2.0], aweights=[0.5]), errors.ArgumentError, "aweights must be"),
        (lambda: mo.op_cov([1.0, 2.0], [1.0]), errors.ArgumentError, "observations"),
        (lambda: mo.op_cov(np.ones((1, 1, 1), "float32")), errors.ArgumentError, "x must have"),
        (lambda: mo.op_hfft(([1.0], [0.0])), errors.ArgumentError, "n must be given"),
        (lambda: mo.op_fftn([[1.0]]), errors.ArgumentTypeError, "x must be a pair"),
        (lambda: mo.op_fftn(([1.0, 2.0], [1.0])), errors.ArgumentError, "not of one tensor"),
        (lambda: mo.op_ifft(([1.0], [0.0]), norm="both"), errors.ArgumentError, "norm must be"),
        (lambda: mo.op_ifft(([1.0], [0.0]), n=0), errors.ArgumentError, "n must be"),
        (lambda: mo.op_rfftn([1.0], axes=()), errors.ArgumentError, "axes must"),
        (lambda: mo.op_rfftn(np.ones(2, "complex64")), errors.DTypeError, "op_rfftn"),
        (lambda: mo.op_fftn(([1.0], [0.0]), s=(1, 2), axes=(0,)), errors.ArgumentError, "s has 2"),
        (lambda: mo.op_fftfreq(0), errors.ArgumentError, "n must"),
        (lambda: mo.op_rfftfreq(4, d=0.0), errors.ArgumentError, "d must"),
    ],
)
def test_what_is_wrong_is_named(backend, call, error, text):
    with pytest.raises(error, match=text):
        call()
