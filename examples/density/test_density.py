"""Tests of the library: each runs once per backend, which the fixture `multiop_backend` makes the active one."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import multiop
from multiop import ops
from multiop.testing import check_op, normal, positive

# a library of one's own is installed, and needs only `import density`
spec = importlib.util.spec_from_file_location("density", Path(__file__).parent / "density.py")
density = importlib.util.module_from_spec(spec)
spec.loader.exec_module(density)

DATA = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)


def kernels(x, data, bandwidth):
    """Estimate the density without logarithms, in NumPy."""
    return np.log(stats.norm.pdf(x[:, None], data, bandwidth * np.ones(2)).prod(-1).mean(-1))


@pytest.mark.parametrize("bandwidth", [positive(2), positive()], ids=["per dimension", "number"])
def test_the_density_and_its_derivatives(multiop_backend, bandwidth):
    check_op(density.log_density, normal(3, 2), normal(5, 2), bandwidth, backends=[multiop_backend], reference=kernels)


def test_far_from_all_data_value_and_gradient_are_those_of_the_nearest_sample(multiop_backend):
    x = ops.convert_to_tensor(DATA[:1] + np.float32([[1e3, 0]]))
    value, gradient = multiop.value_and_grad(lambda x: ops.sum(density.log_density(x, DATA, 0.5)))(x)
    gaps = (ops.convert_to_numpy(x) - DATA) / 0.5
    nearest = gaps[np.argmin((gaps**2).sum(-1))]
    assert float(value) == pytest.approx(-0.5 * (nearest**2).sum(), rel=1e-4)
    np.testing.assert_allclose(ops.convert_to_numpy(gradient)[0], -nearest / 0.5, rtol=1e-4)


def test_the_likelihood_leaves_each_sample_out(multiop_backend):
    found = float(density.log_likelihood(0.7, DATA))
    each = [kernels(DATA[i : i + 1], np.delete(DATA, i, 0), 0.7)[0] for i in range(len(DATA))]
    assert found == pytest.approx(np.mean(each), rel=1e-5)


def test_the_best_bandwidth_is_that_of_scipys_optimizer(multiop_backend):
    def cost(logs):
        each = [kernels(DATA[i : i + 1], np.delete(DATA, i, 0), np.exp(logs))[0] for i in range(len(DATA))]
        return -np.mean(each)

    best = np.exp(optimize.minimize(cost, np.zeros(2), tol=1e-8).x)
    np.testing.assert_allclose(ops.convert_to_numpy(density.best_bandwidth(DATA)), best, rtol=1e-3)
