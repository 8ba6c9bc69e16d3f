"""The proof of a port: values, gradients and statistics against what the original computed, on each backend."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

import multiop
from multiop import ops, tree
from multiop.porting import _graph, _weights
from multiop.testing import _html
from multiop.testing._shared_process import x64_mode_for

_NUMBERS = (bool, int, float, complex)
_TOLERANCES = {"float64": 1e-9, "float32": 1e-4}  # relative to the sum of the magnitudes; 2e-2 for fewer bits
_ROUNDED = 0.1  # differences that are larger are no rounding
# by tolerance: how small beside the largest gradient is rounding
_NOISE = {1e-9: 2.0**-40, 1e-4: 2.0**-17, 2e-2: 2.0**-5}


@dataclasses.dataclass(frozen=True)
class Proof:
    """How far a port is from its original on one backend: differences relative to the size of what is compared.

    Attributes:
        backend: The name of the backend.
        value: The largest difference of an output.
        gradient: The largest difference of the gradient in a parameter.
        tolerance: What each may be at most.
        compared: How many outputs and gradients were compared that are not zero.
        training: Whether this is about training mode.
        state: The largest difference of an array of the new state.
        vacuous: The parameters whose gradient is zero but for rounding, in the original and here, where the two
            rounding errors differ by more than the tolerance.
    """

    backend: str
    value: float
    gradient: float
    tolerance: float
    compared: int
    training: bool = False
    state: float = 0.0
    vacuous: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the port agrees with the original; never where there was nothing to compare."""
        return self.compared > 0 and max(self.value, self.gradient, self.state) <= self.tolerance

    @property
    def hint(self) -> str:
        """What to try where the port differs by no more than rounding may, at a scale of few digits; else empty."""
        is_close = self.tolerance < max(self.value, self.gradient, self.state) < _ROUNDED
        if not is_close or self.tolerance <= _TOLERANCES["float64"]:
            return ""
        return "rounding may do that: trace the model in float64 and prove that, to tell it from a fault"

    def _repr_html_(self) -> str:
        """Return the verdict and the numbers as a table, for a notebook."""
        word = "agrees with the original" if self.agrees else "differs from the original"
        numbers = {"value": self.value, "gradient": self.gradient, "state": self.state, "allowed": self.tolerance}
        row = [self.backend, *(f"{x:.1e}" for x in numbers.values()), str(self.compared)]
        tables = {"": (("backend", *numbers, "arrays compared"), [row])}
        return _html.fragment(f"the port {word}" + (f"; {self.hint}" if self.hint else ""), self.agrees, tables)


def weights(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the weights of the entries of an output in the sum that is differentiated: they are all different."""
    return np.cos(np.arange(math.prod(shape))).reshape(shape)


def digest(
    outputs: list[Any], gradients: dict[str, Any], state: dict[str, Any]
) -> dict[str, list[list[float]] | dict[str, list[float]]]:
    """Return two sums of each array, one weighted and one of magnitudes, which a file can hold."""

    def sums(leaf: Any) -> list[float]:
        leaf = np.asarray(leaf)
        leaf = leaf.astype("complex128" if leaf.dtype.kind == "c" else "float64")
        leaf = np.nan_to_num(leaf, nan=3.0, posinf=2.0, neginf=-2.0)  # so that the others count
        leaf = np.where(np.abs(leaf) < 1e300, leaf, np.sign(leaf))
        own = weights(leaf.shape)
        return [float(np.sum(leaf.real * own) + np.sum(leaf.imag * own**2)), float(np.abs(leaf).sum())]

    return {
        "outputs": [sums(leaf) for leaf in outputs],
        "gradients": {name: sums(leaf) for name, leaf in gradients.items()},
        "state": {name: sums(leaf) for name, leaf in state.items()},
    }


def compute_port(
    port: Any, inputs: tuple[Any, ...], training: bool = False, differentiate: bool = True, compiled: bool = False
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return outputs, gradients of their weighted sum in the parameters, and new state of a port, as NumPy arrays.

    The sum takes in the real and the imaginary part of what is complex.
    """
    numbers: dict[int, Any] = {}  # the outputs that are Python numbers
    flat = {name: ops.convert_to_tensor(leaf) for name, leaf in _weights.flat(port.params).items()}

    def total(params: dict[str, Any]) -> tuple[Any, tuple[list[Any], Any]]:
        outputs, state = port.function(_weights.nested(params), port.state, *inputs, training=training)
        leaves = _graph.comparable(outputs)
        numbers.update({i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, _NUMBERS)})
        leaves = [leaf for i, leaf in enumerate(leaves) if i not in numbers]
        parts = [part for leaf in leaves if "complex" in ops.dtype(leaf) for part in (ops.real(leaf), ops.imag(leaf))]
        parts += [leaf for leaf in leaves if "float" in ops.dtype(leaf)]
        terms = [ops.sum(part * ops.cast(weights(tuple(part.shape)), part.dtype)) for part in parts]
        return functools.reduce(ops.add, terms) if terms else ops.zeros(()), (leaves, state)

    if flat and differentiate:
        derivative: Any = multiop.value_and_grad(total, has_aux=True)
        derivative = multiop.jit(derivative) if compiled else derivative
        (_, (leaves, state)), gradients = derivative(flat)
    else:
        (_, (leaves, state)), gradients = total(flat), {}
    slopes, state = tree.map(ops.convert_to_numpy, (gradients, _weights.flat(state)))
    arrays = [ops.convert_to_numpy(leaf) for leaf in leaves]
    for number in sorted(numbers):
        arrays.insert(number, np.asarray(numbers[number]))
    return arrays, slopes, state


def prove(port: Any, backend: str | None = None, training: bool = False) -> Proof:
    """Compare a port with the numbers that were recorded from its original.

    Args:
        port: What `trace` or `load` returned.
        backend: The backend to compute on; by default the active one.
        training: Whether to compare training mode, with the new state.

    Returns:
        The differences.

    Raises:
        ArgumentError: Nothing is recorded of this mode: the port was traced in the other one, draws random numbers in
            training, or has other weights.
    """
    expected = port.recorded(training)
    backend = backend or multiop.backend()
    dtypes = {str(x.dtype) for x in (*_weights.flat(port.params).values(), *port.inputs())}
    width = "float64" if dtypes & {"float64", "complex128"} else "float32"
    with multiop.use_backend(backend), x64_mode_for(width):
        computed_here: dict[str, Any] = digest(
            *compute_port(port, port.inputs(), training, bool(expected["gradients"]))
        )
    if len(computed_here["outputs"]) != len(expected["outputs"]):
        return Proof(backend, math.inf, math.inf, 0.0, 1, training)
    pairs = list(zip(computed_here["outputs"], expected["outputs"], strict=True))
    named = {name: (computed_here["gradients"][name], wanted) for name, wanted in expected["gradients"].items()}
    slopes = list(named.values())
    states = [(computed_here["state"][name], wanted) for name, wanted in expected["state"].items()]
    # rounding is what is left of some gradients, and of the mean of what is normalized already
    floor = 1e-4 * max((pair[1] for _, pair in slopes), default=0.0)
    kinds = {name: leaf.dtype.kind for name, leaf in _weights.flat(port.state).items()}
    low = 1e-4 * max((wanted[1] for name, wanted in expected["state"].items() if kinds.get(name) != "i"), default=0.0)
    dtypes.add(port.narrowest)  # what is computed in float32 has no more digits than that
    tolerance = tolerance_of(dtypes)
    noise = _NOISE.get(tolerance, 0.0) * max((pair[1] for _, pair in slopes), default=0.0)
    vacuous = tuple(
        name for name, (a, b) in named.items() if max(a[1], b[1]) <= noise and _difference(a, b, floor) > tolerance
    )
    slopes = [pair for name, pair in named.items() if name not in vacuous]
    return Proof(
        backend,
        max((_difference(a, b, 0.0) for a, b in pairs), default=0.0),
        max((_difference(a, b, floor) for a, b in slopes), default=0.0),
        tolerance,
        sum(pair[1] > 0 for _, pair in [*pairs, *slopes]),
        training,
        max((_difference(a, b, low) for a, b in states), default=0.0),
        vacuous,
    )


def tolerance_of(dtypes: Iterable[str]) -> float:
    """Return how far results of computations in these dtypes may be apart: as the narrowest of the floats has it."""
    return max((_TOLERANCES.get(name, 2e-2) for name in dtypes if "float" in name), default=1e-4)


def finite(difference: float) -> float:
    """Return a difference, infinity for one that is NaN."""
    return difference if math.isfinite(difference) else math.inf


def _difference(computed_here: list[float], expected: list[float], floor: float) -> float:
    size = max(expected[1], floor, 1e-30)
    return finite(max(abs(a - b) for a, b in zip(computed_here, expected, strict=True)) / size)
