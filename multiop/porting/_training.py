"""Training that goes on in another framework, and the proof: steps of the original beside steps of its port."""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import multiop
from multiop import errors
from multiop.porting import _io, _prove, _weights
from multiop.porting._map import WeightMap
from multiop.porting._optimizers import OptimizerState
from multiop.testing import _html


@dataclasses.dataclass(frozen=True)
class Training:
    """How far two trainings are from each other.

    Attributes:
        losses: The losses of both at each step.
        loss: The largest difference of the losses, relative to the largest loss.
        parameter: The largest difference of a parameter after the last step, relative to how far it was moved.
        tolerance: What each may be at most.
        vacuous: Parameters that are not compared: their gradient is 0 but for rounding, as that of a bias in front of a
            normalization, and some optimizers move them as far as others nevertheless.
    """

    losses: list[tuple[float, float]]
    loss: float
    parameter: float
    tolerance: float
    vacuous: list[str] = dataclasses.field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether the two trainings agree; never where no parameter was moved."""
        return max(self.loss, self.parameter) <= self.tolerance

    def __repr__(self) -> str:
        word = "agree" if self.agrees else "differ"
        return (
            f"Training({len(self.losses)} steps {word}: losses by {self.loss:.1e}, parameters by "
            f"{self.parameter:.1e} of what they moved; {self.tolerance:.0e} is allowed)"
        )

    def _repr_html_(self) -> str:
        """Return the verdict and the losses of both at each step, for a notebook."""
        losses = [[str(n), f"{a:.6g}", f"{b:.6g}"] for n, (a, b) in enumerate(self.losses)]
        said = repr(self).removeprefix("Training(").removesuffix(")")
        return _html.fragment(said, self.agrees, {"losses": (("step", "original", "port"), losses)})


def read_optimizer(optimizer: Any, model: Any = None) -> OptimizerState:
    """Read what an optimizer has learned.

    Args:
        optimizer: A `torch.optim` SGD, Adam, AdamW or RMSprop; such an optimizer of Keras; a state of optax, or an
            `nnx.Optimizer`.
        model: The model whose parameters it trains: on PyTorch and Keras, it gives their names.

    Returns:
        The state, by the names that `read_weights` gives the parameters.

    Raises:
        ArgumentError: It is an optimizer of another kind, has made no step, or trains what `model` does not have.
        ArgumentTypeError: It is no optimizer.
    """
    state: OptimizerState = _module(optimizer).read(optimizer, model)
    return state


def write_optimizer(destination: Any, state: OptimizerState, model: Any = None) -> Any:
    """Write what an optimizer has learned to another one of its kind.

    Args:
        destination: What `read_optimizer` takes; a state of optax may be one that `init` has just made.
        state: What `read_optimizer` returned, `mapped` if the parameters have other names or layouts.
        model: The model whose parameters `destination` trains, on PyTorch and Keras.

    Returns:
        `destination`, which is changed in place; of optax, a new state.

    Raises:
        ArgumentError: The optimizers are of different kinds or have different settings, or the parameters differ.
        ArgumentTypeError: `destination` is no optimizer.
    """
    return _module(destination).write(destination, state, model)


def _module(optimizer: Any) -> Any:
    framework = _owner(optimizer)
    if framework is None:
        raise errors.ArgumentTypeError(
            "optimizer must be one of torch.optim or Keras, a state of optax or an nnx.Optimizer, got "
            f"{type(optimizer).__name__}"
        )
    return importlib.import_module(f"multiop.porting.{_weights.OWNERS[framework]}.optimizers")


def _owner(optimizer: Any) -> str | None:
    """Return the package that an optimizer, or the first state in nested tuples, is of."""
    parts = optimizer if isinstance(optimizer, tuple) else ()
    return _weights.owner(optimizer) or next(filter(None, map(_owner, parts)), None)


def prove_training(
    original: tuple[Any, Any],
    port: tuple[Any, Any],
    loss: Callable[..., Any],
    batches: Sequence[tuple[Any, ...]],
    weight_map: WeightMap | None = None,
) -> Training:
    """Make steps of a training and of its port on the same batches, and compare them.

    Both are trained: give copies if that matters. Dropout must be off, since no other framework draws the same.

    Args:
        original: A model and its optimizer: a `torch.nn.Module` with one of `torch.optim`, an `nnx.Module` with an
            `nnx.Optimizer`, or a model or layer of Keras with one of Keras.
        port: Another model and its optimizer, such as `port.as_module("flax")`.
        loss: Takes a model and the arrays of a batch as tensors, and returns a scalar; written with multiop ops, it
            serves both.
        batches: A tuple of NumPy arrays for each step.
        weight_map: What `map_weights` returned for the two models, if their parameters differ in names or layouts.

    Returns:
        The differences.

    Raises:
        ArgumentError: The models have other parameters.
        ArgumentTypeError: A model is of no framework that can be trained here.
    """
    is_mapped = weight_map is not None
    names = _params(port[0], is_mapped)
    before = _params(original[0], is_mapped, names)
    sides = [[_step(model, optimizer, loss, batch) for batch in batches] for model, optimizer in (original, port)]
    after = _params(original[0], is_mapped, names)
    moved = {name: after[name] - before[name] for name in after}
    carried = dict if weight_map is None else weight_map.apply_to_gradients
    ours = _params(port[0], is_mapped, carried(after))
    _weights.check_names(ours, carried(after), "the parameters of the port")
    quiet = _without_gradient(*original[::-1])
    after, moved = (carried({name: x for name, x in xs.items() if name not in quiet}) for xs in (after, moved))
    sizes = {name: float(np.max(np.abs(x), initial=0)) for name, x in moved.items()}
    # what is hardly moved is moved by rounding
    floor = 1e-4 * max(sizes.values(), default=0.0)
    differences = [
        float(np.max(np.abs(ours[name] - after[name]), initial=0)) / max(size, floor, 1e-30)
        for name, size in sizes.items()
    ]
    losses = list(zip(*sides, strict=True))
    largest = max((abs(a) for a, _ in losses), default=0.0)
    return Training(
        losses,
        _prove.finite(max((abs(a - b) for a, b in losses), default=math.inf) / (largest or 1.0)),
        _prove.finite(max(differences, default=math.inf) if floor else math.inf),
        _prove.tolerance_of(str(x.dtype) for x in ours.values()),
        quiet,
    )


def _without_gradient(optimizer: Any, model: Any) -> list[str]:
    """Return the parameters whose gradients so far were 0 but for rounding, as the optimizer has seen them."""
    slots = read_optimizer(optimizer, model).slots
    second = slots.get("second", {})
    sizes = {name: float(np.sqrt(np.max(x, initial=0))) for name, x in second.items()}
    largest = max(sizes.values(), default=0.0)
    return [name for name, size in sizes.items() if size < largest * float(np.finfo(second[name].dtype).eps) ** 0.5]


def _params(model: Any, has_tied: bool, known: Collection[str] = ()) -> dict[str, Any]:
    """Return the parameters, and what is one where `known` is from: nnx keeps what is frozen with its state."""
    weights = _io.read_weights(model)
    arrays = _weights.flat(weights.params)
    arrays |= {name: x for name, x in _weights.flat(weights.state).items() if name in known}
    first = {id(x): name for name, x in reversed(arrays.items())}  # what is tied is one array
    return {name: np.array(x) for name, x in arrays.items() if has_tied or first[id(x)] == name}


def _step(model: Any, optimizer: Any, loss: Callable[..., Any], batch: tuple[Any, ...]) -> float:
    framework = _weights.owner(model)
    if framework not in ("torch", "flax", "keras"):
        raise errors.ArgumentTypeError(
            f"a {type(model).__name__} cannot be trained here: give a module of PyTorch, of nnx or of Keras"
        )
    module = importlib.import_module(f"multiop.porting.{_weights.OWNERS[framework]}.training")
    with multiop.use_backend(module.backend()):
        return float(module.step(model, optimizer, loss, batch))
