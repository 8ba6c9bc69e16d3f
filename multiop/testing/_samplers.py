"""Random inputs inside an op's domain: each sampler draws a NumPy array of the requested dtype."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from multiop import errors, extend

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


@dataclasses.dataclass(frozen=True)
class Sampler:
    """A tensor argument that is drawn at random.

    Attributes:
        kind: The name of the distribution, for messages.
        shape: The shape to draw.
        real: Draws float64 values of a shape.
        integral: Draws integers of a shape, for integer dtypes.
        dtype: The argument's own dtype; `None` for that of the row.
        options: The keywords that made it, for messages.
    """

    kind: str
    shape: tuple[int, ...]
    real: Callable[[Rng, tuple[int, ...]], Array]
    integral: Callable[[Rng, tuple[int, ...]], Array]
    dtype: str | None = None
    options: str = ""

    def draw(self, rng: Rng, dtype: str) -> Array:
        """Draw a NumPy array of `dtype` (a name), or of the sampler's own dtype."""
        dtype = self.dtype or dtype
        if dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        if dtype in extend.INTEGER:
            drawn = self.integral(rng, self.shape)
            return (np.abs(drawn) if dtype in extend.UNSIGNED else drawn).astype(dtype)
        if dtype in extend.COMPLEX:
            return np.asarray(self.real(rng, self.shape) + 1j * self.real(rng, self.shape)).astype(dtype)
        return np.asarray(self.real(rng, self.shape)).astype(extend.to_numpy_dtype(dtype))

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join([*map(str, self.shape), *filter(None, [self.options])])})"


def normal(*shape: int, scale: float = 1.0) -> Sampler:
    """Any value: the normal distribution; integers from -9 to 9."""
    return Sampler(
        "normal",
        shape,
        lambda rng, s: rng.normal(size=s) * scale,
        lambda rng, s: rng.integers(-9, 10, s),
        options=f"scale={scale}" if scale != 1.0 else "",
    )


def uniform(*shape: int, low: float, high: float) -> Sampler:
    """Values from `low` to `high`."""
    first, last = int(np.ceil(low)), int(np.floor(high))
    return Sampler(
        "uniform",
        shape,
        lambda rng, s: rng.uniform(low, high, s),
        lambda rng, s: rng.integers(first, last + 1, s),
        options=f"low={low}, high={high}",
    )


def positive(*shape: int) -> Sampler:
    """Values from 0.1 to 4; integers from 1 to 9."""
    return Sampler("positive", shape, lambda rng, s: rng.uniform(0.1, 4.0, s), lambda rng, s: rng.integers(1, 10, s))


def nonzero(*shape: int) -> Sampler:
    """Values of either sign, 0.1 to 4 away from zero: for ops with a kink or pole at zero."""

    def sign(rng: Rng, s: tuple[int, ...]) -> Array:
        return rng.choice(np.array([-1, 1]), s)

    return Sampler(
        "nonzero",
        shape,
        lambda rng, s: sign(rng, s) * rng.uniform(0.1, 4.0, s),
        lambda rng, s: sign(rng, s) * rng.integers(1, 10, s),
    )


def distinct(*shape: int) -> Sampler:
    """Values at least 0.05 apart and away from zero: for maxima, sorting, ranks."""

    def draw_spaced(rng: Rng, s: tuple[int, ...]) -> Array:
        n = int(np.prod(s))
        ranks = rng.permutation(n).reshape(s)
        return (ranks - n // 2 + 0.5) * 0.1 + rng.uniform(-0.02, 0.02, s)

    def alternating(rng: Rng, s: tuple[int, ...]) -> Array:
        ranks = rng.permutation(int(np.prod(s))).reshape(s)
        return np.where(ranks % 2, -ranks, ranks)  # their magnitudes, which unsigned dtypes take, are distinct too

    return Sampler("distinct", shape, draw_spaced, alternating)


def unit(*shape: int) -> Sampler:
    """Values from -0.9 to 0.9: for arcsin, arctanh; integers -1, 0, 1."""
    return Sampler("unit", shape, lambda rng, s: rng.uniform(-0.9, 0.9, s), lambda rng, s: rng.integers(-1, 2, s))


def probabilities(*shape: int) -> Sampler:
    """Positive values that sum to one over the last axis."""

    def draw_normalized(rng: Rng, s: tuple[int, ...]) -> Array:
        drawn = rng.uniform(0.1, 1.0, s)
        return np.asarray(drawn / drawn.sum(-1, keepdims=True))

    return Sampler("probabilities", shape, draw_normalized, lambda rng, s: rng.integers(0, 2, s))


def integers(*shape: int, low: int = -9, high: int = 10, dtype: str | None = "int32") -> Sampler:
    """Integers from `low` up to but not including `high`, in `dtype` whatever the row's dtype: for indices, labels."""
    return Sampler(
        "integers",
        shape,
        lambda rng, s: rng.integers(low, high, s).astype(float),
        lambda rng, s: rng.integers(low, high, s),
        dtype,
        f"low={low}, high={high}",
    )


def booleans(*shape: int) -> Sampler:
    """Booleans, whatever the row's dtype is: for masks."""
    return Sampler(
        "booleans", shape, lambda rng, s: rng.integers(0, 2, s), lambda rng, s: rng.integers(0, 2, s), "bool"
    )


def spd(*shape: int) -> Sampler:
    """Symmetric positive definite matrices, eigenvalues from 0.5 to about 4: for factorisations."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise errors.ArgumentError(f"spd: shape: {shape} is given; one that ends in two equal sizes is accepted")

    def draw_definite(rng: Rng, s: tuple[int, ...]) -> Array:
        roots = rng.normal(size=s) / np.sqrt(s[-1])
        return np.asarray(roots @ np.swapaxes(roots, -1, -2) + 0.5 * np.eye(s[-1]))

    return Sampler("spd", shape, draw_definite, lambda rng, s: np.broadcast_to(np.eye(s[-1], dtype=int), s))
