"""Numerical derivatives: right where there is one, and honest about their error."""

import numpy as np
import pytest

from multiop.testing import _numerical


@pytest.mark.parametrize(
    ("phi", "expected"),
    [
        (np.exp, 1.0),
        (lambda t: np.sin(3 * t + 1), 3 * np.cos(1)),
        (lambda t: 1 / (0.1 + t), -100.0),
        (lambda t: np.log(0.1 + t), 10.0),
        (lambda t: (t + 2) ** 7, 7 * 2**6),
        (lambda t: 4.0, 0.0),
        (lambda t: 1e12 + 2 * t, 2.0),
        (lambda t: np.sin(200 * t), 200.0),
    ],
)
def test_derivative_is_within_its_error_estimate(phi, expected):
    found, error = _numerical.derivative(phi)
    assert abs(found - expected) <= 10 * error + 1e-14 * abs(expected)
    assert error <= 1e-5 * abs(expected) + 1e-10 * abs(phi(0.0))  # what rounding of the values leaves to be seen


@pytest.mark.parametrize("phi", [lambda t: np.sqrt(abs(t)), lambda t: 1.0 if t > 0 else 0.0])
def test_derivative_at_a_kink_has_a_large_error_estimate(phi):
    found, error = _numerical.derivative(phi)
    assert not error <= 1e-5 * abs(found) or found == 0


def test_derivative_in_a_bend_that_larger_steps_pass_over():
    found, error = _numerical.derivative(lambda t: np.sin(t) + t * np.exp(-((t / 3e-4) ** 2)))
    assert abs(found - 2.0) <= 10 * error
    assert error <= 1e-5


@pytest.mark.filterwarnings("ignore:invalid value")
def test_derivative_that_is_nan_says_so():
    found, error = _numerical.derivative(lambda t: np.log(-1.0 + 0 * t))
    assert np.isnan(found)
    assert error == np.inf


def test_gradient_matches_the_closed_form():
    x, y, w = np.array([0.3, -1.2]), np.array([[1.0], [2.0]]), np.array([[2.0, -1.0], [0.5, 3.0]])
    found, error = _numerical.gradient(lambda x, y: [np.sin(x) * y], [x, y], [w])
    np.testing.assert_allclose(found[0], (w * np.cos(x) * y).sum(0), rtol=1e-10)
    np.testing.assert_allclose(found[1], (w * np.sin(x)).sum(1, keepdims=True), rtol=1e-10)
    assert 0 <= error < 1e-9


def test_complex_step_is_exact():
    x = np.array([0.3, -1.2])
    found, error = _numerical.gradient(lambda x: [np.exp(x) / x], [x], [np.ones(2)], analytic=True)
    np.testing.assert_array_max_ulp(found[0], np.exp(x) / x - np.exp(x) / x**2, maxulp=4)
    assert error == 0


def test_complex_gradient_is_in_the_conjugate_convention():
    z, w = np.array([3.0 + 4.0j]), np.array([2.0 - 1.0j])
    (holomorphic,), _ = _numerical.gradient(lambda z: [z * z], [z], [w])
    np.testing.assert_allclose(holomorphic, w * np.conj(2 * z), rtol=1e-9)
    (norm,), _ = _numerical.gradient(lambda z: [np.abs(z) ** 2], [z], [np.ones(1)])
    np.testing.assert_allclose(norm, 2 * z, rtol=1e-9)  # 6 + 8i


def test_directional_is_the_gradient_along_the_direction():
    x, d, w = np.array([0.5, 2.0]), np.array([1.0, -3.0]), np.array([1.0, 2.0])
    found, error = _numerical.directional(lambda x: [x**3], [x], [d], [w])
    np.testing.assert_allclose(found, np.sum(w * 3 * x**2 * d), rtol=1e-10)
    assert error < 1e-8
