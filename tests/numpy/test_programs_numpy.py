"""Programs as they are written for NumPy and SciPy, in tutorials and in statistics, are differentiated unchanged."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import multiop as mo

rng = np.random.default_rng(0)
T = np.linspace(0, 4, 30)
Y = 2.5 * np.exp(-1.3 * T) + 0.5
X = np.column_stack([np.ones(40), rng.normal(size=(40, 2))])
COUNTS, RETURNS = rng.poisson(2, 40), rng.normal(size=30)


def rosenbrock(x):
    return sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


def enzyme(x):
    u = np.array([4.0, 2.0, 1.0, 0.5, 0.25])
    r = x[0] * (u**2 + x[1] * u) / (u**2 + x[2] * u + x[3]) - np.array([0.1, 0.2, 0.3, 0.35, 0.4])
    return 0.5 * np.dot(r, r)


def soft_l1(x):
    z = ((x[0] + x[1] * np.exp(x[2] * T) - Y) / 0.1) ** 2
    return 0.5 * np.sum(0.1**2 * 2 * ((1 + z) ** 0.5 - 1))


def huber(p):
    r = p[0] * np.exp(-((T - p[1]) ** 2) / (2 * p[2] ** 2)) - Y
    return np.where(np.abs(r) <= 0.1, 0.5 * r**2, 0.1 * (np.abs(r) - 0.05)).sum()


def pressure(flat):
    p = flat.reshape(4, 4)
    q = np.pad(p, 1)
    second = q[2:, 1:-1] - 4 * p + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2]
    return np.sum((second + 5 * np.cosh(p).mean() ** 2) ** 2)


def negative_binomial(params):
    size, mu = 1 / params[-1], np.exp(np.dot(X, params[:-1]))
    terms = scipy.special.gammaln(size + COUNTS) - scipy.special.gammaln(COUNTS + 1) - scipy.special.gammaln(size)
    return -np.sum(terms + size * np.log(size / (size + mu)) + COUNTS * np.log(mu / (size + mu)))


def volatility(params):
    omega, alpha, beta = params
    h, total = np.var(RETURNS), 0.0
    for r in RETURNS:
        total += 0.5 * (np.log(2 * np.pi) + np.log(h) + r**2 / h)
        h = omega + alpha * r**2 + beta * h
    return total


def gaussian_process(theta):
    distance = T[:, None] - T[None, :]
    covariance = theta[1] ** 2 * np.exp(-0.5 * (distance / theta[0]) ** 2) + theta[2] ** 2 * np.eye(len(T))
    factor = np.linalg.cholesky(covariance)
    weights = np.linalg.solve(factor.T, np.linalg.solve(factor, Y))
    return 0.5 * Y @ weights + np.log(np.diag(factor)).sum()


def lowpass(x):
    spectrum = np.fft.rfft(x)
    y = np.fft.irfft(spectrum * np.exp(-np.arange(len(spectrum)) / 3.0), n=len(x))
    return np.sum(y**2) + np.std(np.diff(y))


def lennard_jones(flat):
    x = flat.reshape(-1, 2)
    i, j = np.triu_indices(len(x), 1)
    r2 = np.sum((x[i] - x[j]) ** 2, axis=1) + 0.5
    return np.sum(4 * (r2**-6 - r2**-3))


def mixture(p):
    first = -0.5 * ((T - p[1]) / p[3]) ** 2 - np.log1p(np.exp(-p[0]))
    second = -0.5 * ((T - p[2]) / p[3]) ** 2 - np.log1p(np.exp(p[0]))
    return len(T) * np.log(p[3]) - np.logaddexp(first, second).sum()


def kalman(p):
    mean, variance, total = 0.0, 1.0, 0.0
    for y in RETURNS:
        variance = variance + p[0]
        gain, rest = variance / (variance + p[1]), y - mean
        total -= 0.5 * (np.log(2 * np.pi * (variance + p[1])) + rest**2 / (variance + p[1]))
        mean, variance = mean + gain * rest, (1 - gain) * variance
    return total


def hidden_states(p):
    steps, state = np.log(p[2:].reshape(2, 2)), np.log(p[:2])
    for y in RETURNS:
        state = np.logaddexp.reduce(state[:, None] + steps, axis=0) - 0.5 * (y - np.array([-1.0, 1.0])) ** 2
    return np.logaddexp(*state)


def weighted_least_squares(p):
    root = np.sqrt(p)[:, None]
    q, r = np.linalg.qr(X[:6] * root)
    return np.sum(np.linalg.solve(r, q.T @ (Y[:6] * root[:, 0])) ** 2)


def option(p):
    spot, strike, volatility = p
    up = (np.log(spot / strike) + volatility**2 / 2) / volatility
    price = spot * scipy.special.ndtr(up) - strike * scipy.special.ndtr(up - volatility)
    return np.select([price > 1, price > 0.1], [price, 2 * price], 0.0)


PROGRAMS = {
    rosenbrock: [1.3, 0.7, 0.8, 1.9, 1.2], enzyme: [2.5, 3.9, 4.15, 3.9], soft_l1: [1.0, 1.0, 0.0],
    huber: [1.0, 2.0, 1.0], pressure: rng.random(16), negative_binomial: [0.1, 0.2, 0.3, 0.5],
    volatility: [0.1, 0.1, 0.8], gaussian_process: [1.0, 0.5, 0.1], lowpass: rng.normal(size=16),
    lennard_jones: rng.normal(size=12), mixture: [0.5, 1.0, 3.0, 1.0], kalman: [0.5, 1.0],
    hidden_states: [0.3, 0.7, 0.9, 0.1, 0.2, 0.8], weighted_least_squares: [0.5, 1.0, 2.0, 1.5, 0.7, 1.2],
    option: [1.0, 1.1, 0.3],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_is_differentiated_unchanged(program):
    x = np.array(PROGRAMS[program])
    wanted = scipy.optimize.approx_fprime(x, program, 1e-7)
    gradient = mo.grad(program)
    np.testing.assert_allclose(gradient(x), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
    np.testing.assert_allclose(mo.jacfwd(program)(x), gradient(x), rtol=1e-9, atol=1e-10 * np.abs(wanted).max())
    second = scipy.optimize.approx_fprime(x, gradient, 1e-7)
    np.testing.assert_allclose(mo.hessian(program)(x), second, rtol=1e-4, atol=1e-5 * np.abs(second).max())


def test_what_is_recorded_is_not_written_to():
    def written(p):
        p[0] = 1.0
        return p.sum()

    with pytest.raises(mo.errors.UnsupportedError, match="op_set_item"):
        mo.grad(written)(np.ones(2))
