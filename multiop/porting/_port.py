"""A port: source, parameters and state of a model that ran on one framework, as a function of all."""

from __future__ import annotations

import functools
import importlib
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import multiop
from multiop import _tree, errors
from multiop.porting import _prove, _source, _weights

_READERS = {"torch": "multiop.porting.torch.reader"}
_JAX = "multiop.porting.jax.reader"


class Port:
    """A model as source that runs on every backend, with its parameters and its state.

    Attributes:
        name: The name of the function in the source.
        source: The source of a Python module.
        params: Nested dicts of NumPy arrays under the original's names: what is trained.
        state: Nested dicts of NumPy arrays: running statistics, counters and other buffers.
    """

    def __init__(self, name: str, source: str, params: dict[str, Any], state: dict[str, Any], about: dict[str, Any]):
        self.name, self.source, self.params, self.state = name, source, params, state
        self._about = about
        module = types.ModuleType(name)
        exec(compile(source, f"<{name}.py>", "exec"), vars(module))
        self._function: Callable[..., Any] = getattr(module, name)

    def function(
        self, params: Any, state: Any, *inputs: Any, training: bool = False, seed: Any = None
    ) -> tuple[Any, Any]:
        """Compute what the original does, on the active backend.

        Args:
            params: The parameters, in the structure of `self.params`.
            state: The state, in the structure of `self.state`.
            *inputs: What the original takes.
            training: Whether to compute what the original does in training mode.
            seed: In training, what `multiop.random` draws from: an int or a key.

        Returns:
            What the original returns, and the new state.

        Raises:
            ArgumentError: The model was traced in the other mode.
        """
        if training not in self._about["modes"]:
            mode = "training" if training else "evaluation"
            raise errors.ArgumentError(
                f"{self.name} was traced in the other mode than {mode}: trace it with training={training}"
            )
        params, state, inputs = _tree.map(_tensor, (params, state, inputs))
        self._check(inputs)
        return self._function(params, state, *inputs, training=training, seed=seed)

    @property
    def recorded(self) -> dict[str, Any]:
        """What the original computed in evaluation mode for `inputs()`: sums of its outputs and gradients."""
        if "recorded" not in self._about:
            raise errors.ArgumentError(f"{self.name} was traced in training mode alone, which draws random numbers")
        return self._about["recorded"]

    def _check(self, inputs: tuple[Any, ...]) -> None:
        """Refuse inputs of other sizes than those that the source was traced for."""
        wanted = self._about["shapes"]
        leaves = [leaf for leaf in _tree.leaves(inputs) if leaf is not None]
        if len(leaves) != len(wanted):
            raise errors.ArgumentError(f"{self.name} takes {len(wanted)} inputs, got {len(leaves)}")
        for number, (leaf, sizes) in enumerate(zip(leaves, wanted, strict=True)):
            found = tuple(leaf.shape)
            fits = len(found) == len(sizes) and all(
                a in (None, b) or b is None for a, b in zip(sizes, found, strict=True)
            )
            if not fits:
                shown = ", ".join("any" if size is None else str(size) for size in sizes)
                raise errors.ArgumentError(f"input {number} of {self.name} must have the shape ({shown}), got {found}")

    def save(self, directory: str | Path) -> None:
        """Write `NAME.py`, `NAME.safetensors` and `test_NAME.py` into a directory."""
        from safetensors.numpy import save_file

        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.py").write_text(self.source, encoding="utf-8")
        params, state = _weights.flat(self.params), _weights.flat(self.state)
        about = self._about | {"state": list(state)}
        arrays = {name: np.ascontiguousarray(leaf) for name, leaf in (params | state).items()}
        save_file(arrays, folder / f"{self.name}.safetensors", metadata={"multiop": json.dumps(about)})
        (folder / f"test_{self.name}.py").write_text(_TEST.replace("NAME", self.name), encoding="utf-8")

    def inputs(self, seed: int = 0) -> tuple[Any, ...]:
        """Draw inputs of the shapes and dtypes that the model was traced with; integers stay below those seen."""
        generator = np.random.default_rng(seed)
        drawn = []
        for shape, dtype, top in self._about["inputs"]:
            if dtype.startswith(("float", "bfloat")):
                drawn.append(generator.standard_normal(shape).astype(dtype))
            else:
                drawn.append(generator.integers(0, top + 1, shape).astype(dtype))
        return tuple(drawn)


_TEST = '''"""NAME computes what the original did, on every installed backend."""

from pathlib import Path

import pytest

import multiop
from multiop import porting

PORT = porting.load(Path(__file__).parent, "NAME")


@pytest.fixture(autouse=True)
def in_64_bits():
    multiop.enable_x64()


@pytest.mark.parametrize("backend", multiop.available_backends())
def test_values_and_gradients_are_those_of_the_original(backend):
    proof = porting.prove(PORT, backend)
    assert proof.agrees, proof
'''


def trace(
    model: Any, *inputs: Any, training: bool = False, name: str | None = None, dynamic_shapes: Any = None
) -> Port:
    """Turn a model into source that runs on every backend.

    Args:
        model: A `torch.nn.Module`, or an `ExportedProgram` of one; `functools.partial(function, params)` of a function
            of JAX; `(module, variables)` of flax's linen; a module of nnx or equinox.
        *inputs: Example inputs. The size of their first dimension stays open if it is above 1.
        training: Whether to trace training mode: batch statistics, dropout. If evaluation does the same apart from
            these, the port has both modes.
        name: The name of the function; by default that of the model's class.
        dynamic_shapes: Which dimensions stay open, in the terms of `torch.export.export`, or a list with the shape of
            each input in those of `jax.export.symbolic_shape`.

    Returns:
        The port.

    Raises:
        TranslationError: Something in the model has no translation; the message lists all of it.
        ArgumentTypeError: `model` is of no framework that can be read.
    """
    reader = _reader(model, inputs)
    graph = reader.read(model, inputs, training=training, dynamic_shapes=dynamic_shapes)
    name = _source.snake(graph.kind) if name is None else name
    modes = [training]
    if training:
        other = reader.read(model, inputs, training=False, dynamic_shapes=dynamic_shapes)
        if _source.alike(graph, reader.evaluated(graph), other, other.nodes):
            modes = [True, False]  # apart from dropout and batch normalization, evaluation computes the same
    evaluates = not training or False in modes
    about = {
        "modes": modes,
        "name": name,
        "framework": graph.framework,
        "shapes": [[size if isinstance(size, int) else None for size in value.shape] for value in graph.inputs],
        "inputs": [reader.example(one) for one in inputs],
    }
    text = _source.source(graph, name)
    port = Port(name, text, _weights.nested(graph.params), _weights.nested(graph.state), about)
    if evaluates:
        about["recorded"] = _prove.digest(*reader.run(model, port.inputs(), _prove.weights))
    return port


def load(directory: str | Path, name: str | None = None) -> Port:
    """Return the port that `Port.save` wrote into a directory, without the framework of the original.

    The source in the directory is run, so load only what you trust.

    Args:
        directory: The folder.
        name: The name of the port, where the folder holds several.

    Returns:
        The port.

    Raises:
        ArgumentError: There is no port of that name in the folder, or there are several.
    """
    from safetensors import safe_open

    folder = Path(directory)
    names = [path.stem for path in sorted(folder.glob("*.safetensors")) if path.with_suffix(".py").exists()]
    if name is None and len(names) == 1:
        (name,) = names
    if name is None or name not in names:
        raise errors.ArgumentError(f"{folder} holds the ports {names}; got name={name!r}")
    with safe_open(folder / f"{name}.safetensors", framework="numpy") as file:
        about = json.loads(file.metadata()["multiop"])
        leaves = {path: file.get_tensor(path) for path in file.keys()}  # noqa: SIM118 - it is no dict
    state = {path: leaves.pop(path) for path in about.pop("state")}
    source = (folder / f"{name}.py").read_text(encoding="utf-8")
    return Port(name, source, _weights.nested(leaves), _weights.nested(state), about)


def _reader(model: Any, inputs: tuple[Any, ...]) -> Any:
    for kind in type(model).__mro__:
        framework = kind.__module__.partition(".")[0]
        if framework in _READERS:
            return importlib.import_module(_READERS[framework])
    if _is_of_jax(model, inputs):
        return importlib.import_module(_JAX)
    raise errors.ArgumentTypeError(
        "model must be a torch.nn.Module or ExportedProgram, a module of flax or equinox, or a function that is given "
        f"arrays of JAX, got {type(model).__name__}"
    )


def _is_of_jax(model: Any, inputs: tuple[Any, ...]) -> bool:
    """Say whether a model is a module of flax or equinox, or a function whose arrays are JAX's."""
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    if isinstance(model, tuple):
        return len(model) == 2 and _is_of_jax(model[0], inputs)
    if any(kind.__module__.partition(".")[0] in ("flax", "equinox") for kind in type(model).__mro__):
        return True
    bound = (model.args, model.keywords) if isinstance(model, functools.partial) else ()
    return callable(model) and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((bound, inputs)))


def _tensor(leaf: Any) -> Any:
    return multiop.op_convert_to_tensor(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
