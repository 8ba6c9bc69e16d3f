"""Derivatives from function values alone, in float64, each with an error estimate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
__tracebackhide__ = True  # pytest leaves out the frames of this module

_SHRINK = 1.4
_ROUNDS = 10
_ROUNDING = 4.0
_EPS = float(np.finfo(float).eps)
_SMALL = 1e-5
_SAME = 1e-5
_STEPS = (1e-2, 1e-3, 1e-1, 1e-4, 1e-5)  # first steps, relative to the point's size; most functions need only one


def derivative(phi: Callable[[float], float], scale: float = 1.0, size: float = 0.0) -> tuple[float, float]:
    """Return the derivative at zero of a function of one real number, and an estimate of its error.

    Central differences at shrinking steps are extrapolated to step zero, and the extrapolation that changes least is
    used. The first step is chosen by the resulting error. A step across a kink close to zero smoothly finds the mean
    slope of both sides, so the result must agree with that of very small steps.

    Args:
        phi: A smooth function near zero.
        scale: The size of the steps over which it changes.
        size: The size of the terms that it adds, which its rounding errors are relative to.

    Source: C. J. F. Ridders, Advances in Engineering Software 4 (1982) 75-76.
    """
    phi = functools.cache(phi)
    best, best_error = float("nan"), float("inf")
    small = _SMALL * scale
    near, nearer = ((phi(h) - phi(-h)) / (2 * h) for h in (small, small / 2))
    beside = (4 * nearer - near) / 3
    rounding = 4 * _ROUNDING * _EPS * max(size, abs(phi(small))) / small
    for step in _STEPS:
        found, error = _extrapolate(phi, step * scale, size)
        if abs(found - beside) > _SAME * abs(found) + rounding:
            error = max(error, abs(found - beside))
        if error < best_error:
            best, best_error = found, error
        if best_error <= 1e-10 * abs(best) or best_error == 0.0:
            break
    return best, best_error


def _extrapolate(phi: Callable[[float], float], step: float, size: float) -> tuple[float, float]:
    def difference(h: float) -> float:
        return (phi(h) - phi(-h)) / (2 * h)

    previous = [difference(step)]
    if not np.isfinite(previous[0]):
        return float("nan"), float("inf")
    best, best_error, rounding = previous[0], float("inf"), 0.0
    for _ in range(1, _ROUNDS):
        step /= _SHRINK
        row = [difference(step)]
        size = max(size, abs(phi(step)))
        factor = _SHRINK**2
        for older in previous:
            row.append((row[-1] * factor - older) / (factor - 1))
            factor *= _SHRINK**2
            error = max(abs(row[-1] - row[-2]), abs(row[-1] - older))
            if error <= best_error:
                best, best_error = row[-1], error
        # chance agreement cannot be more accurate than the differences, which are rounded to a few units in the last
        # place; smaller steps are rounded more
        rounding = _ROUNDING * _EPS * size / step
        if abs(row[-1] - previous[-1]) >= 2 * best_error or best_error <= rounding:
            break
        previous = row
    return best, max(best_error, rounding)


def directional(
    fn: Callable[..., Sequence[Array]], points: Sequence[Array], directions: Sequence[Array], weights: Sequence[Array]
) -> tuple[float, float]:
    """Return the derivative along `directions` of the weighted sum of the results of `fn`, and its error."""
    size = max([1e-3, *(float(np.abs(p[~np.isnan(p)]).max(initial=0.0)) for p in points)])
    reach = max([1e-30, *(float(np.abs(d).max(initial=0.0)) for d in directions)])
    terms = magnitude(fn(*points), weights)
    return derivative(_along(fn, points, directions, weights), min(size, 1.0) / reach, terms)


def _along(
    fn: Callable[..., Sequence[Array]], points: Sequence[Array], directions: Sequence[Array], weights: Sequence[Array]
) -> Callable[[float], float]:
    return lambda t: weighted_sum(fn(*(p + t * d for p, d in zip(points, directions, strict=True))), weights)


def weighted_sum(results: Sequence[Array], weights: Sequence[Array]) -> float:
    """Return the real part of the inner product of `weights` and `results`."""
    return float(sum(np.sum(np.conj(w) * y).real for w, y in zip(weights, results, strict=True)))


def magnitude(results: Sequence[Array], weights: Sequence[Array]) -> float:
    """Return the size of the terms of `weighted_sum`."""
    return float(sum(np.sum(np.abs(w * y)) for w, y in zip(weights, results, strict=True)))


def gradient(
    fn: Callable[..., Sequence[Array]], points: Sequence[Array], weights: Sequence[Array], analytic: bool = False
) -> tuple[list[Array], float]:
    """Return the gradient of the weighted sum of the results of `fn` with respect to each point, and the largest error.

    Complex gradients are in the conjugate convention: the derivative along the real part, plus i times that along the
    imaginary part.

    Args:
        fn: A function of float64 or complex128 arrays that returns a list of arrays.
        points: Where to differentiate.
        weights: One per result, of its shape.
        analytic: `fn` also takes complex input, and is analytic: real points are differentiated by a complex step,
            which is exact.
    """
    grads, worst, terms = [], 0.0, magnitude(fn(*points), weights)
    for k, point in enumerate(points):
        grad = np.zeros(point.shape, point.dtype)
        for where in np.ndindex(point.shape):
            for direction in (1.0, 1j) if point.dtype.kind == "c" else (1.0,):
                if analytic and not any(p.dtype.kind == "c" for p in points):
                    found, error = _complex_step(fn, points, k, where, weights), 0.0
                else:
                    moves = [np.zeros_like(p) for p in points]
                    moves[k][where] = direction
                    found, error = derivative(
                        _along(fn, points, moves, weights), min(max(1e-3, float(abs(point[where]))), 1.0), terms
                    )
                grad[where] = grad[where] + direction * found
                worst = max(worst, error)
        grads.append(grad)
    return grads, worst


def _complex_step(
    fn: Callable[..., Sequence[Array]], points: Sequence[Array], k: int, where: Any, weights: Sequence[Array]
) -> float:
    step = 1e-30
    moved = [p.astype(complex) for p in points]
    moved[k][where] += 1j * step
    return float(sum(np.sum(w * np.imag(y)) for w, y in zip(weights, fn(*moved), strict=True))) / step
