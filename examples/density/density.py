"""Kernel density estimates, written once for every backend: the pattern of a small library of one's own.

A library in this style has plain functions of tensors, one custom gradient where autodiff is not good enough, and tests
that run on every backend. Nothing in it names a framework, and its users pass and get the tensors of theirs.

    multiop check examples/density/density.py                 the same values and derivatives on every backend
    pytest examples/density                                   its own tests, on every backend that is installed
    pytest examples/density --multiop-backends=torch,jax
"""

from __future__ import annotations

import math
from typing import Any

import multiop
from multiop import ops
from multiop.testing import example_inputs, normal, positive, uniform


@example_inputs(uniform(2, 4, low=0.0, high=9.0))
@multiop.op_custom_gradient
def log_mean_kernel(distances: Any) -> Any:
    """Compute the logarithm of the mean of `exp(-distances / 2)` over the last axis.

    Far from all data every exponential is 0, and autodiff would divide 0 by 0. The rule uses the shares of the entries
    in the sum, which stay right.
    """
    logs = ops.multiply(distances, -0.5)
    total = ops.logsumexp(logs, axis=-1)

    def grad(upstream: Any) -> Any:
        shares = ops.exp(logs - ops.expand_dims(total, -1))
        return ops.expand_dims(upstream, -1) * shares * -0.5

    return total - math.log(ops.shape(distances)[-1]), grad


def squared_distances(x: Any, data: Any, bandwidth: Any) -> Any:
    """Return the squared distances between points `x` (m, d) and `data` (n, d), in units of `bandwidth` (d)."""
    gaps = (ops.expand_dims(x, 1) - ops.expand_dims(data, 0)) / bandwidth
    return ops.sum(gaps * gaps, axis=-1)


def log_scale(data: Any, bandwidth: Any) -> Any:
    """Return the logarithm of the integral of a kernel."""
    dimensions = ops.shape(data)[1]
    return ops.sum(ops.log(bandwidth * ops.ones_like(data[0]))) + dimensions * math.log(2 * math.pi) / 2


@example_inputs(normal(3, 2), normal(5, 2), positive(2))
def log_density(x: Any, data: Any, bandwidth: Any) -> Any:
    """Estimate the logarithm of the density of `data` (n, d) at points `x` (m, d) with Gaussian kernels.

    Args:
        x: Points, of shape (m, d).
        data: Samples of the distribution, of shape (n, d).
        bandwidth: Standard deviation of the kernels: a number, or one for each of the d dimensions.

    Returns:
        Tensor of shape (m,).
    """
    return log_mean_kernel(squared_distances(x, data, bandwidth)) - log_scale(data, bandwidth)


@example_inputs(positive(2), normal(5, 2))
def log_likelihood(bandwidth: Any, data: Any) -> Any:
    """Return the mean of the logarithms of the density at each sample, estimated from all the others."""
    n = ops.shape(data)[0]
    distances = squared_distances(data, data, bandwidth)
    others = ops.where(ops.eye(n, dtype="bool"), math.inf, distances)
    return ops.mean(log_mean_kernel(others)) - log_scale(data, bandwidth) + math.log(n / (n - 1))


def best_bandwidth(data: Any, steps: int = 100, rate: float = 0.5) -> Any:
    """Return the bandwidth of each dimension that makes `log_likelihood` largest, by gradient ascent."""
    start = ops.log(ops.std(data, axis=0) * ops.shape(data)[0] ** -0.2)
    slope = multiop.grad(lambda logs: log_likelihood(ops.exp(logs), data))
    ascend = multiop.jit(lambda logs: logs + rate * slope(logs))
    for _ in range(steps):
        start = ascend(start)
    return ops.exp(start)
