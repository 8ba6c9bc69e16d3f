"""What a reference is known by: the values and gradients at its layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from multiop.testing._tolerances import eps

NUDGES, NUDGE_ULPS = 3, 8.0  # how often, and how far, inputs are moved to see what rounding does

Array: TypeAlias = np.ndarray[Any, Any]


@dataclasses.dataclass
class Record:
    """One call of one layer.

    Attributes:
        name: The layer's name, numbered if it is called again.
        value: What it returned.
        inputs: The tensors that it was called with.
        gradient: The gradient with respect to `value`, of the outputs weighted by the cotangents; `None` if there is
            none.
        kind: The class of the layer.
        arrays: Its own parameters and state, by the names that the class gives them.
        options: Its options, by the names that PyTorch gives them.
        is_channels_first: Whether images have their channels before their spatial axes.
    """

    name: str
    value: Array
    inputs: list[Array] = dataclasses.field(default_factory=list)
    gradient: Array | None = None
    kind: str = ""
    arrays: dict[str, Array] = dataclasses.field(default_factory=dict)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    is_channels_first: bool = False


@dataclasses.dataclass
class Reference:
    """One run of a reference, forward and backward.

    Attributes:
        title: What it is, for messages.
        records: Its layers in the order in which they finished.
        outputs: The outputs.
        cotangents: Their weights in the gradients; `None` for outputs that are not differentiable.
        input_gradients: The gradients with respect to the inputs; `None` for integers.
        parameter_gradients: The gradients with respect to the parameters, by name.
        state: The state after the run, by name.
        before: The state before the run.
    """

    title: str
    records: dict[str, Record]
    outputs: list[Array]
    cotangents: list[Array | None]
    input_gradients: list[Array | None]
    parameter_gradients: dict[str, Array]
    state: dict[str, Array] = dataclasses.field(default_factory=dict)
    before: dict[str, Array] = dataclasses.field(default_factory=dict)


Cotangents: TypeAlias = Callable[[list[Array]], "list[Array | None]"]


def cotangents_from(seed: int) -> Cotangents:
    """Return a function that draws a weight for each output, the same for each function that is compared."""

    def draw(outputs: list[Array]) -> list[Array | None]:
        rng = np.random.default_rng([seed, 29])  # not the numbers that inputs were drawn from
        return [np.asarray(rng.normal(size=y.shape)).astype(y.dtype) if is_inexact(y) else None for y in outputs]

    return draw


def is_inexact(x: Array) -> bool:
    """Return whether an array holds floats or complex numbers, NumPy's own or not."""
    return x.dtype.kind in "fc" or x.dtype.name in ("bfloat16",) or x.dtype.name.startswith("float8")


def nudged(x: Array, seed: int) -> Array:
    """Return an array whose entries are a few roundings away."""
    if not is_inexact(x):
        return x
    signs = np.random.default_rng([seed, x.size]).choice([-1.0, 1.0], x.shape)
    return (x * (1 + NUDGE_ULPS * eps(x.dtype) * signs)).astype(x.dtype)


def number_call(name: str, counts: dict[str, int]) -> str:
    """Return the name of one more call of a layer."""
    counts[name] = counts.get(name, 0) + 1
    return name if counts[name] == 1 else f"{name}#{counts[name]}"
