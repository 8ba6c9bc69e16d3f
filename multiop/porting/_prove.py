"""The proof of a port: values, gradients and statistics against what the original computed, on each backend."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import multiop
from multiop import errors, extend, ops, tree
from multiop.porting import _graph, _reference, _weights
from multiop.porting._printing import limits
from multiop.testing import _html
from multiop.testing._shared_process import x64_mode_for

_TENSOR = object()  # stands for one in a structure
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
        form: Where structure, shapes or dtypes of parameters, outputs, gradients or state first differ; else empty.
        moved: If the two differ, and the original is at hand: how far its own results move if its inputs move by 8
            roundings; else 0.
    """

    backend: str
    value: float
    gradient: float
    tolerance: float
    compared: int
    training: bool = False
    state: float = 0.0
    vacuous: tuple[str, ...] = ()
    form: str = ""
    moved: float = 0.0

    @property
    def distance(self) -> float:
        """The largest difference of all."""
        return max(self.value, self.gradient, self.state)

    @property
    def agrees(self) -> bool:
        """Whether the port agrees with the original; never where there was nothing to compare."""
        return self.compared > 0 and not self.form and self.distance <= self.tolerance

    @property
    def hint(self) -> str:
        """What differs in form, or what to try where rounding to few digits may be all that differs; else empty."""
        if self.form:
            return self.form
        if self.tolerance < self.distance <= self.moved:
            return f"rounding does that: the original moves by {self.moved:.0e} if its inputs move by 8 roundings"
        is_close = self.tolerance < self.distance < _ROUNDED
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


def digest(outputs: Any, gradients: dict[str, Any], state: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return two sums of each array, one weighted and one of magnitudes, and the form of all, which a file can hold."""

    def sums(leaf: Any) -> list[float]:
        leaf = np.asarray(leaf)
        leaf = leaf.astype("complex128" if leaf.dtype.kind == "c" else "float64")
        leaf = np.nan_to_num(leaf, nan=3.0, posinf=2.0, neginf=-2.0)  # so that the others count
        leaf = np.where(np.abs(leaf) < 1e300, leaf, np.sign(leaf))
        own = weights(leaf.shape)
        return [float(np.sum(leaf.real * own) + np.sum(leaf.imag * own**2)), float(np.abs(leaf).sum())]

    return {
        "outputs": [sums(leaf) for leaf in _graph.comparable(outputs)],
        "gradients": {name: sums(leaf) for name, leaf in gradients.items()},
        "state": {name: sums(leaf) for name, leaf in state.items()},
        "form": form_of({"params": params, "outputs": outputs, "gradients": gradients, "state": state}),
    }


def form_of(tree: Any) -> Any:
    """Return what a file can hold of the structure, the shapes and the dtypes of what a model returns."""
    if isinstance(tree, Mapping):
        return {str(name): form_of(part) for name, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        return [form_of(part) for part in tree]
    if tree is None:
        return None
    if isinstance(tree, str):
        return repr(tree)
    if isinstance(tree, _NUMBERS) and not isinstance(tree, np.generic):
        return type(tree).__name__
    return f"{tree.dtype.name} {tree.shape}"


def difference_of_forms(computed_here: Any, expected: Any, path: str = "") -> str:
    """Return where two forms first differ, and how; the empty text if they do not.

    A gradient or an array of state is expected only where the original has one.
    """
    if isinstance(expected, dict) and isinstance(computed_here, dict):
        parts: list[Any] = list(expected)
        missing = [name for name in expected if name not in computed_here]
        more = [name for name in computed_here if name not in expected and path != ".gradients"]
        if missing or more:
            what = f"{missing[0]!r} is missing" if missing else f"{more[0]!r} is more than the original has"
            return f"{path.removeprefix('.')}: {what}"
        names = [f"{path}.{name}" for name in parts]
    elif isinstance(expected, list) and isinstance(computed_here, list) and len(expected) == len(computed_here):
        parts = list(range(len(expected)))
        names = [f"{path}[{number}]" for number in parts]
    elif computed_here in (expected, _narrowed(expected)):
        return ""
    else:
        here, there = (_form_text(form) for form in (computed_here, expected))
        return f"{path.removeprefix('.')}: {here} where the original has {there}"
    told = (
        difference_of_forms(computed_here[part], expected[part], name) for part, name in zip(parts, names, strict=True)
    )
    return next(filter(None, told), "")


def _narrowed(form: Any) -> Any:
    """Return the form that a wide array has in a port: integers always, as its source says, floats in 32-bit mode."""
    dtype, _, shape = str(form).partition(" ")
    is_narrow = dtype in ("int64", "uint64") or (dtype in extend.WIDE and not multiop.x64())
    return f"{extend.WIDE[dtype]} {shape}" if is_narrow else form


def _form_text(form: Any) -> str:
    return f"a sequence of {len(form)}" if isinstance(form, list) else "a dict" if isinstance(form, dict) else str(form)


def compute_port(
    port: Any, inputs: tuple[Any, ...], training: bool = False, differentiate: bool = True, compiled: bool = False
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return outputs, gradients of their weighted sum in the parameters, and new state of a port, as NumPy arrays.

    The sum takes in the real and the imaginary part of what is complex.
    """
    structure: list[Any] = [None]  # of the outputs, with their numbers and texts
    flat = {name: ops.convert_to_tensor(leaf) for name, leaf in _weights.flat(port.params).items()}

    def total(params: dict[str, Any]) -> tuple[Any, tuple[list[Any], Any]]:
        outputs, state = port.function(_weights.nested(params), port.state, *inputs, training=training)
        leaves: list[Any] = []

        def keep(leaf: Any) -> Any:
            if isinstance(leaf, (*_NUMBERS, str)):
                return leaf
            leaves.append(leaf)
            return _TENSOR

        structure[0] = _graph.map_leaves(keep, outputs)
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
    arrays = iter([ops.convert_to_numpy(leaf) for leaf in leaves])
    outputs = _graph.map_leaves(lambda leaf: next(arrays) if leaf is _TENSOR else leaf, structure[0])
    return outputs, slopes, state


def prove(port: Any, backend: str | None = None, training: bool = False) -> Proof:
    """Compare a port with the numbers that were recorded from its original.

    Args:
        port: What `trace` or `load` returned.
        backend: The backend to compute on; by default the active one.
        training: Whether to compare training mode, with the new state.

    Returns:
        The differences.

    Raises:
        ArgumentTypeError: `port` is no port.
        ArgumentError: Nothing is recorded of this mode: the port was traced in the other one, draws random numbers in
            training, or has other weights; or what is recorded has no shapes.
    """
    if not hasattr(port, "recorded"):
        raise errors.ArgumentTypeError(f"port must be what `trace` or `load` returned, got {type(port).__name__}")
    expected = port.recorded(training)
    if "form" not in expected:
        raise errors.ArgumentError(
            f"{port.name}: an older multiop recorded what the original computes, without shapes: trace it again"
        )
    backend = backend or multiop.backend()
    dtypes = {str(x.dtype) for x in (*_weights.flat(port.params).values(), *port.inputs())}
    width = "float64" if dtypes & {"float64", "complex128"} else "float32"
    params = _weights.flat(port.params)
    with multiop.use_backend(backend), x64_mode_for(width):
        computed_here = digest(*compute_port(port, port.inputs(), training, bool(expected["gradients"])), params)
        form = difference_of_forms(computed_here["form"], expected["form"])
    new = [text for text in limits.written(port.source, dtypes) if text not in port.limits]
    form = form or (f"{new[0]} is a limit of a dtype: finfo(x.dtype) gives that of each" if new else "")
    if form:
        return Proof(backend, math.inf, math.inf, 0.0, 1, training, form=form)
    dtypes.add(port.narrowest)  # what is computed in float32 has no more digits than that
    compared = functools.partial(_compared, port, backend, training, expected, tolerance_of(dtypes))
    proof = compared(computed_here)
    if proof.agrees or proof.distance > _ROUNDED or port.original is None:
        return proof
    again, *others = [compared(port.rounded(training, seed)) for seed in (None, *range(_reference.NUDGES))]
    # an original that has been trained since tells nothing
    moved = max(each.distance for each in others) if again.agrees else 0.0
    return dataclasses.replace(proof, moved=moved)


def _compared(
    port: Any, backend: str, training: bool, expected: dict[str, Any], tolerance: float, computed_here: dict[str, Any]
) -> Proof:
    """Compare two records."""
    pairs = list(zip(computed_here["outputs"], expected["outputs"], strict=True))
    named = {name: (computed_here["gradients"][name], wanted) for name, wanted in expected["gradients"].items()}
    slopes = list(named.values())
    states = [(computed_here["state"][name], wanted) for name, wanted in expected["state"].items()]
    # rounding is what is left of some gradients, and of the mean of what is normalized already
    floor = 1e-4 * max((pair[1] for _, pair in slopes), default=0.0)
    kinds = {name: leaf.dtype.kind for name, leaf in _weights.flat(port.state).items()}
    low = 1e-4 * max((wanted[1] for name, wanted in expected["state"].items() if kinds.get(name) != "i"), default=0.0)
    noise = _NOISE.get(tolerance, 0.0) * max((pair[1] for _, pair in slopes), default=0.0)
    vacuous = tuple(
        name for name, (a, b) in named.items() if max(a[1], b[1]) <= noise and _difference(a, b, floor) > tolerance
    )
    slopes = [pair for name, pair in named.items() if name not in vacuous]
    compared = ((pairs, 0.0), (slopes, floor), (states, low))
    value, gradient, new = (max((_difference(a, b, least) for a, b in xs), default=0.0) for xs, least in compared)
    count = sum(pair[1] > 0 for _, pair in [*pairs, *slopes])
    return Proof(backend, value, gradient, tolerance, count, training, new, vacuous)


def tolerance_of(dtypes: Iterable[str]) -> float:
    """Return how far results of computations in these dtypes may be apart: as the narrowest of the floats has it."""
    return max((_TOLERANCES.get(name, 2e-2) for name in dtypes if "float" in name), default=1e-4)


def finite(difference: float) -> float:
    """Return a difference, infinity for one that is NaN."""
    return difference if math.isfinite(difference) else math.inf


def _difference(computed_here: list[float], expected: list[float], floor: float) -> float:
    size = max(expected[1], floor, 1e-30)
    return finite(max(abs(a - b) for a, b in zip(computed_here, expected, strict=True)) / size)
