"""A port: source, parameters and state of a model that ran on one framework, as a function of all."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import multiop
from multiop import errors, tree as _tree
from multiop.porting import _expressions, _files, _graph, _io, _map, _objects, _printing, _prove, _rows, _weights
from multiop.porting._reference import nudged
from multiop.testing import _html

_READERS = {
    "torch": "multiop.porting.torch.reader",
    "keras": "multiop.porting.tensorflow.reader",
    "tensorflow": "multiop.porting.tensorflow.reader",
}
_JAX = "multiop.porting.jax.reader"
MODULES = {  # what computes a port in the framework's own terms
    "torch": ("multiop.porting.torch.module", "PortedModule"),
    "flax": ("multiop.porting.jax.module", "PortedModule"),
    "keras": ("multiop.porting.tensorflow.module", "PortedLayer"),
}
_FEW = 1000  # entries of an example input that are kept with the port
_RECORDS = {False: "recorded", True: "recorded_training"}


class Port:
    """A model as source that runs on every backend, with its parameters and its state.

    Attributes:
        name: The name of the function in the source.
        source: The source of a Python module.
        params: Nested dicts of NumPy arrays under the original's names: what is trained.
        state: Nested dicts of NumPy arrays: running statistics, counters and other buffers.
        map: How these are made of the weights of the original; `None` where their names are not known.
    """

    def __init__(
        self,
        name: str,
        source: str,
        params: dict[str, Any],
        state: dict[str, Any],
        about: dict[str, Any],
        weight_map: _map.WeightMap | None = None,
    ):
        self.name, self.source, self.params, self.state = name, source, params, state
        self._about, self.map = about, weight_map
        self.original: Any = None  # while it is at hand: the model and what it was traced with
        self.weights: Any = None  # what the original computes with, if not with its own
        scope: dict[str, Any] = {}  # without __name__, by which torch.compile would import it
        exec(compile(source, f"<{name}.py>", "exec"), scope)
        self._function: Callable[..., Any] = scope[name]

    def __repr__(self) -> str:
        weights = _weights.Weights(self.params, self.state, self._about.get("framework"))
        return f"Port({self.name}, {self.operations} operations, {weights!r})"

    def _repr_html_(self) -> str:
        """Return what it is in a line, and its source, for a notebook."""
        return _html.source_fragment(repr(self), self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        return Port, (self.name, self.source, self.params, self.state, self._about, self.map)

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """Return the outputs in evaluation mode on the active backend, with the port's own weights."""
        return self.function(self.params, self.state, *inputs, training=False, **keywords)[0]

    def function(
        self, params: Any, state: Any, *inputs: Any, training: bool = False, seed: Any = None, **keywords: Any
    ) -> tuple[Any, Any]:
        """Compute what the original does, on the active backend.

        Args:
            params: The parameters, in the structure of `self.params`.
            state: The state, in the structure of `self.state`.
            *inputs: What the original takes, in its structure, or its tensors alone in the order of the source. An
                object is the dict of its tensors, by attribute.
            training: Whether to compute what the original does in training mode.
            seed: What `multiop.random` draws from, in training or where the original draws in evaluation too: an int
                or a key.
            **keywords: What the original takes by name.

        Returns:
            What the original returns, and the new state.

        Raises:
            ArgumentError: The model was traced in the other mode, or with other inputs.
        """
        self._check_mode(training)
        inputs = self.tensors_of(inputs, keywords)
        params, state, inputs = _tree.map(_tensor, (params, state, inputs))
        _check_sizes(self.name, self._about["shapes"], self._about.get("guards", []), inputs)
        return self._function(params, state, *inputs, training=training, seed=seed)

    @property
    def operations(self) -> int:
        """How many operations of the original the source computes."""
        return int(self._about["operations"])

    @property
    def narrowest(self) -> str:
        """The floating dtype with the fewest digits that something is computed in; the empty text if there is none."""
        return str(self._about.get("narrowest", ""))

    @property
    def limits(self) -> list[str]:
        """The numbers in the traced source that happen to be limits of a dtype, as text."""
        return self._about.get("limits", [])

    @property
    def bridged(self) -> list[str]:
        """The operations that stayed in the original's framework, each as often as it occurs."""
        return self._about.get("bridged", [])

    @property
    def is_of_jax(self) -> bool:
        """Whether the original is a model of JAX."""
        return self._about["framework"] not in ("PyTorch", "TensorFlow")

    @property
    def frozen(self) -> list[str]:
        """The parameters that the original does not train, by name: give these to no optimizer."""
        return self._about.get("frozen", [])

    @property
    def modes(self) -> list[bool]:
        """The values of `training` that `prove` can compare: those of which it is recorded what the original does."""
        self.complete()
        return [training for training in (False, True) if _RECORDS[training] in self._about]

    def complete(self) -> None:
        """Let the original compute, if it is at hand and has not done so."""
        if self.original is not None and not {*_RECORDS.values(), "raised"} & self._about.keys():
            self._record(self._about)

    def _record(self, about: dict[str, Any], change: Callable[[Any], Any] | None = None) -> None:
        """Put down what the original computes, of inputs that are changed or not."""
        model, reader, inputs, keywords, examples = self.original
        params, kept = _weights.flat(self.params), _weights.flat(self.state)
        for kinds in ("", "iub", "iubfcV"):  # a model may take no numbers but some: a permutation, lengths, variances
            about["given"] = _example_values(examples, about["inputs"], kinds)
            drawn = self.inputs() if change is None else tuple(map(change, self.inputs()))
            args, named = _objects.close_objects(self._arguments(drawn), (inputs, keywords))
            options: dict[str, Any] = {"keywords": named} if named else {}
            try:
                with contextlib.nullcontext(model) if self.weights is None else _holding(model, self.weights) as held:
                    for mode in about["modes"]:
                        if not self.draws(mode):
                            made = reader.run(held, tuple(args), _prove.weights, training=mode, **options)
                            outputs, gradients, state = made
                            own = kept | {path: leaf for path, leaf in state.items() if path in kept}  # not constants
                            about[_RECORDS[mode]] = _prove.digest(outputs, gradients, own, params)
            except Exception as error:
                about["raised"] = f"it raised {type(error).__name__}: {str(error).strip()}".partition("\n")[0]
                continue
            about.pop("raised", None)
            break

    def rounded(self, training: bool, seed: int | None) -> dict[str, Any]:
        """Return what the original computes now, as `recorded`, where its inputs move by some roundings or none."""
        about = self._about | {"modes": [training]}
        self._record(about, None if seed is None else functools.partial(nudged, seed=seed))
        return about[_RECORDS[training]]

    def draws(self, training: bool) -> bool:
        """Say whether random numbers are drawn in training, or in evaluation."""
        return bool(self._about.get("draws" if training else "draws always"))

    def recorded(self, training: bool = False) -> dict[str, Any]:
        """Return what the original computed for `inputs()`: sums of its outputs, gradients and new state.

        Args:
            training: Whether in training mode.

        Raises:
            ArgumentError: Nothing is recorded of this mode.
        """
        self.complete()
        if training in self.modes:
            return self._about[_RECORDS[training]]
        self._check_mode(training)
        if "raised" in self._about:
            raise errors.ArgumentError(f"{self.name} has nothing to be compared with: {self._about['raised']}")
        if not self.draws(training):
            raise errors.ArgumentError(f"{self.name} has other weights than the model had that was traced")
        mode = "training" if training else "evaluation"
        raise errors.ArgumentError(f"{self.name} draws random numbers in {mode}, which no other framework draws")

    def tensors_of(self, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """Return the tensors among the arguments, in the order of the source; other arguments must be as traced."""
        inputs, keywords = _objects.open_objects(inputs), _objects.open_objects(keywords)
        paths, constants = self._about.get("paths"), self._about.get("constants", [])
        others = (dict, tuple, list, str, bool, int, float, type(None))
        is_flat = not keywords and not any(isinstance(x, others) for x in inputs)
        if is_flat and paths is not None and len(inputs) == len(paths):
            return inputs
        if paths is None:
            if keywords:
                raise errors.ArgumentError(f"{self.name} takes no inputs by name, got {', '.join(keywords)}")
            leaves = [(path, leaf) for path, leaf in _objects.leaves(inputs) if leaf is not None]
            if any(isinstance(key, str) for path, _ in leaves for key in path):
                raise errors.ArgumentError(f"{self.name} was traced with its inputs one by one, got a dict of them")
            return tuple(leaf for _, leaf in leaves)
        given = {path[1:]: leaf for path, leaf in _objects.leaves((inputs, keywords))}
        for path, value in constants:
            leaf = given.pop(tuple(path), value)
            if leaf is not value and (type(leaf) is not type(value) or leaf != value):
                raise errors.ArgumentError(
                    f"{self.name} was traced with {value!r} as {_input_text(path)}, got {leaf!r}"
                )
        missing = [path for path in paths if tuple(path) not in given]
        more = [path for path in given if list(path) not in paths]
        if missing or more:
            what, path = ("needs", missing[0]) if missing else ("was traced without", more[0])
            raise errors.ArgumentError(f"{self.name} {what} {_input_text(path)}")
        return tuple(given[tuple(path)] for path in paths)

    def _arguments(self, tensors: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments of the original that hold some tensors."""
        paths = self._about.get("paths")
        if paths is None:
            return list(tensors), {}
        root: dict[int | str, Any] = {}
        placed = [*zip(paths, tensors, strict=True), *self._about.get("constants", [])]
        for path, leaf in placed:
            here = root
            for key in path[:-1]:
                here = here.setdefault(key, {})
            here[path[-1]] = leaf

        def build(tree: Any) -> Any:
            if not isinstance(tree, dict):
                return tree
            if all(isinstance(key, int) for key in tree):
                return tuple(build(tree[key]) for key in sorted(tree))
            return {key: build(part) for key, part in tree.items()}

        positional = sorted(key for key in root if isinstance(key, int))
        return [build(root[key]) for key in positional], {
            key: build(part) for key, part in root.items() if isinstance(key, str)
        }

    def _check_mode(self, training: bool) -> None:
        if training not in self._about["modes"]:
            mode = "training" if training else "evaluation"
            raise errors.ArgumentError(
                f"{self.name} was traced in the other mode than {mode}: trace it with training={training}"
            )

    def with_weights(self, weights: Any) -> Port:
        """Return the port with other weights of the original.

        Args:
            weights: The original with other weights, a checkpoint of it, or anything else that `read_weights` reads.

        Returns:
            A port with the same source. As long as the model that was traced is at hand, `prove` lets it compute with
            these weights; a port that was loaded has no record of what the original computes with them.

        Raises:
            ArgumentError: They are not weights of the original, or its names are not known.
        """
        if self.map is None:
            raise errors.ArgumentError(f"{self.name} does not know the names of the original's weights")
        weights = _io.read_weights(weights)
        made = self.map.apply(weights)
        params = _weights.nested(_weights.flat(self.params) | _weights.flat(made.params))
        state = _weights.nested(_weights.flat(self.state) | _weights.flat(made.state))
        records = (*_RECORDS.values(), "raised")
        about = {name: entry for name, entry in self._about.items() if name not in records}
        port = Port(self.name, self.source, params, state, about, self.map)
        port.original, port.weights = self.original, weights
        return port

    def as_module(self, framework: str, **options: Any) -> Any:
        """Return the port as a module of a framework, for its optimizers, checkpoints and data parallelism.

        Args:
            framework: "torch" for a `torch.nn.Module`, "flax" for an `nnx.Module`, "keras" for a `keras.layers.Layer`
                on Keras's backend.
            **options: On flax `rngs`, an `nnx.Rngs`, if the port draws random numbers. On Keras `seed`, and what a
                layer takes.

        Returns:
            A module with copies of the port's weights under the original's names: parameters are trained, state is
            what buffers, `nnx.BatchStat` and non-trainable weights are. In training mode, a call changes the state.
            Parameters that the original does not train are not trained: they need no gradient, or are a plain
            `nnx.Variable`. On PyTorch and flax it starts in evaluation mode.

        Raises:
            ArgumentError: There is no such framework.
            BackendError: The framework is not installed.
        """
        _check_framework(framework)
        path, name = MODULES[framework]
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            package = error.name
            raise errors.BackendError(f"a module of {framework} needs {package}: pip install {package}") from error
        params, state = _tree.map(lambda leaf: None, (self.params, self.state))
        bare = Port(self.name, self.source, params, state, self._about)
        return getattr(module, name)(bare, self.params, self.state, **options)

    def save(self, directory: str | Path, to: str | None = None) -> None:
        """Write `NAME.py`, `NAME.safetensors`, `NAME.map.toml` and `test_NAME.py` into a directory.

        Args:
            directory: The folder, which is made.
            to: "torch", "flax" or "keras" to write `NAME_torch.py` too, whose `make()` returns the port as a module.

        Raises:
            ArgumentError: There is no such framework.
        """
        if to is not None:
            _check_framework(to)
        self.complete()
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.py").write_text(self.source, encoding="utf-8")
        params, state = _weights.flat(self.params), _weights.flat(self.state)
        about = self._about | {"state": list(state)}
        _files.write_safetensors(folder / f"{self.name}.safetensors", params | state, json.dumps(about))
        if self.map is not None:
            self.map.save(folder / f"{self.name}.map.toml")
        (folder / f"test_{self.name}.py").write_text(_TEST.replace("NAME", self.name), encoding="utf-8")
        if to is not None:
            text = _MODULE.replace("NAME", self.name).replace("FRAMEWORK", to)
            (folder / f"{self.name}_{to}.py").write_text(text, encoding="utf-8")

    def inputs(self, seed: int = 0) -> tuple[Any, ...]:
        """Draw inputs of the shapes and dtypes that the model was traced with; integers stay below those seen.

        They are the example inputs where the model refuses others.
        """
        generator = np.random.default_rng(seed)
        drawn = []
        given = self._about.get("given", {})
        for number, (shape, dtype, top) in enumerate(self._about["inputs"]):
            if str(number) in given:
                drawn.append(np.resize(np.array(given[str(number)], dtype), shape))  # an example of 1 was repeated
            elif dtype.startswith(("float", "bfloat", "complex")):
                numbers = generator.standard_normal(shape)
                is_complex = dtype.startswith("complex")
                numbers = numbers + 1j * generator.standard_normal(shape) if is_complex else numbers
                drawn.append(np.asarray(numbers).astype(dtype))
            else:
                drawn.append(generator.integers(min(top, 0), max(top, 0) + 1, shape).astype(dtype))
        return tuple(drawn)


_MODULE = '''"""NAME as a module of FRAMEWORK, with the weights that stand beside this file."""

from pathlib import Path
from typing import Any

from multiop import porting


def make(**options: Any) -> Any:
    """Return the module; `options` are those of `Port.as_module`."""
    return porting.load(Path(__file__).parent, "NAME").as_module("FRAMEWORK", **options)
'''

_TEST = '''"""NAME computes what the original did, on every installed backend."""

from pathlib import Path

import pytest

import multiop
from multiop import porting

PORT = porting.load(Path(__file__).parent, "NAME")


@pytest.fixture(autouse=True)
def in_64_bits():
    multiop.enable_x64()


@pytest.mark.parametrize("training", PORT.modes)
@pytest.mark.parametrize("backend", multiop.available_backends())
def test_values_and_gradients_are_those_of_the_original(backend, training):
    proof = porting.prove(PORT, backend, training)
    assert proof.agrees, proof
'''


def trace(
    model: Any,
    *inputs: Any,
    training: bool = False,
    name: str | None = None,
    dynamic_shapes: Any = None,
    keywords: dict[str, Any] | None = None,
    partial: bool = False,
    taps: bool = False,
) -> Port:
    """Turn a model into source that runs on every backend.

    Args:
        model: A `torch.nn.Module`, or an `ExportedProgram` of one; a Keras model on TensorFlow, a `tf.Module`, a
            `tf.function`, a `ConcreteFunction`, or what `tf.saved_model.load` returned;
            `functools.partial(function, params)` of a function of JAX; `(module, variables)` of flax's linen; a module
            of nnx or equinox.
        *inputs: Example inputs: tensors, also in dicts, tuples, lists and the attributes of objects, which a port takes
            as dicts. The size of their first dimension stays open. Numbers and other arguments belong to the port: it
            takes no others.
        training: Whether to trace training mode: batch statistics, dropout. If evaluation does the same apart from
            these, the port has both modes.
        name: The name of the function; by default that of the model's class.
        dynamic_shapes: Which dimensions stay open: names of the first ones of each input, `"batch, length"`; or in the
            terms of `torch.export.export`, or a dict from axis to name for a tensor, or for all tensors in an argument;
            for a model of TensorFlow such a dict for each tensor; for one of JAX a list with the shape of each input,
            or of all arrays in it, in the terms of `jax.export.symbolic_shape`.
        keywords: Example inputs that the model takes by name.
        partial: Whether operations that have no translation stay what they are, each behind a `porting.bridge`; the
            port, and what it is saved as, needs the original's framework then.
        taps: Whether the source has a `porting.tap` at the result of each layer, under its name in the original, so
            that `compare(model, port, inputs)` says at which layer the two part.

    Returns:
        The port.

    Raises:
        TranslationError: Something in the model has no translation; the message lists all of it.
        ArgumentTypeError: `model` is of no framework that can be read.
    """
    _objects.open_objects((inputs, keywords))  # what cannot be taken apart is an error here
    reader = _reader(model, inputs)
    if isinstance(dynamic_shapes, str):
        dynamic_shapes = _name_axes(dynamic_shapes.split(","), reader.__name__, model, inputs, keywords or {})
    options: dict[str, Any] = {"dynamic_shapes": dynamic_shapes} | ({"keywords": keywords} if keywords else {})
    options |= {"partial": True} if partial else {}
    if hasattr(reader, "REPEATS"):
        options["fits"] = functools.partial(_takes, inputs=inputs, keywords=keywords or {})
    with _printing.limits.watch():
        graph = reader.read(model, inputs, training=training, **options)
    name = _printing.snake(graph.kind) if name is None else name
    modes = [training]
    if training:
        other = reader.read(model, inputs, training=False, **options)
        if _printing.alike(graph, _graph.evaluation_nodes(graph, reader.EVALUATED), other, other.nodes):
            modes = [True, False]  # apart from dropout and batch normalization, evaluation computes the same
    about = {
        "modes": modes,
        "name": name,
        "framework": graph.framework,
        "operations": len(graph.nodes),
        "shapes": _shapes_of(graph),
        "guards": graph.guards,
        "inputs": [
            _describe_example(reader.to_numpy(tensor, *filter(None, [graph.repeat])), value.shape)
            for tensor, value in zip(_in_order(graph, inputs, keywords or {}), graph.inputs, strict=True)
        ],
    }
    about |= {"frozen": graph.frozen} if graph.frozen else {}
    about |= {"narrowest": _graph.narrowest(graph.nodes)}
    bridged = [x.name for node in graph.nodes for x in _graph.walk(node.expression) if isinstance(x, _graph.Foreign)]
    about |= {"bridged": bridged} if bridged else {}
    about |= {"draws": True} if _graph.draws(graph.nodes) else {}
    about |= {"draws always": True} if _graph.draws_always(graph.nodes) else {}
    if graph.paths is not None and (graph.constants or graph.paths != [[i] for i in range(len(graph.paths))]):
        about |= {"paths": graph.paths, "constants": [list(constant) for constant in graph.constants]}
    text = _printing.source(graph, name, taps)
    limits = _printing.limits.written(text, _rows.FLOATS)
    about |= {"limits": limits} if limits else {}
    trees = _weights.nested(graph.params), _weights.nested(graph.state)
    port = Port(name, text, *trees, about, _map_from(model, *trees))
    port.original = (model, reader, inputs, keywords or {}, _in_order(graph, inputs, keywords or {}))
    port.complete()
    return port


@contextlib.contextmanager
def _holding(model: Any, weights: Any) -> Iterator[Any]:
    """Give a model with other weights; one that is changed in place gets its own back."""
    holder = weights_of(model)
    before = _io.read_weights(holder)
    made = _io.write_weights(holder, weights, cast=True, partial=True)
    try:
        if isinstance(model, functools.partial):
            yield functools.partial(model.func, made, **model.keywords)
        else:
            yield (model[0], made) if isinstance(model, tuple) else model if made is holder else made
    finally:
        if made is holder:
            _io.write_weights(holder, before)


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
    folder = Path(directory)
    names = [path.stem for path in sorted(folder.glob("*.safetensors")) if path.with_suffix(".py").exists()]
    if name is None and len(names) == 1:
        (name,) = names
    if name is None or name not in names:
        raise errors.ArgumentError(f"{folder} holds the ports {names}; got name={name!r}")
    leaves, metadata = _files.read_safetensors(folder / f"{name}.safetensors")
    if metadata is None:
        raise errors.ArgumentError(f"{folder / name}.safetensors holds weights, and is of no port")
    about = json.loads(metadata)
    state = {path: leaves.pop(path) for path in about.pop("state")}
    source = (folder / f"{name}.py").read_text(encoding="utf-8")
    path = folder / f"{name}.map.toml"
    weight_map = _map.WeightMap.load(path) if path.exists() else None
    return Port(name, source, _weights.nested(leaves), _weights.nested(state), about, weight_map)


def _check_framework(framework: str) -> None:
    if framework not in MODULES:
        raise errors.ArgumentError(f"the framework must be one of {', '.join(MODULES)}, got {framework!r}")


def _map_from(model: Any, params: dict[str, Any], state: dict[str, Any]) -> _map.WeightMap | None:
    """Return the map from the weights of a model to those of its port, if these have the model's names."""
    try:
        original = _io.read_weights(weights_of(model))
    except errors.MultiopError:
        return None
    arrays, target = original.arrays, _weights.Weights(params, state, original.framework, dict(original.kinds))
    names = {name.partition(".")[2]: name for name in _weights.flat(original.state)}  # without the collection of linen
    names = (names if _is_linen(model) else {}) | {name: name for name in arrays}
    wanted = target.arrays
    unknown = [name for name in wanted if name not in names and not name.startswith("constant")]
    if not set(names) & set(wanted) or (unknown and original.framework != "torch"):
        return None
    taken = {names[name] for name in wanted if name in names}
    left_out = [name for name in arrays if name not in taken]
    weight_map = _map.WeightMap({name: x.shape for name, x in arrays.items()}, target)
    weight_map._source = original
    for name in wanted:
        if name not in names:  # a constant of the source
            weight_map.kept.append(name)
            continue
        source = names[name]
        shared = [other for other in left_out if np.shares_memory(arrays[other], arrays[source])]
        weight_map.rows[name] = _map.Row(_expressions.equal(*map(_expressions.Name, (source, *shared))), "name")
    weight_map.settle()
    weight_map.ignore(*weight_map.unused)
    return weight_map


def weights_of(model: Any) -> Any:
    """Return what holds the weights of a model, as `read_weights` takes it."""
    kept = getattr(model, "state_dict", None)  # a dict of an ExportedProgram, which has no method of that name
    if isinstance(kept, dict):
        return kept
    if isinstance(model, functools.partial) and len(model.args) == 1:
        return model.args[0]
    return model[1] if isinstance(model, tuple) else model


def _is_linen(model: Any) -> bool:
    """Say whether a model is a module of flax's linen, bound or with its variables."""
    linen = sys.modules.get("flax.linen")
    module = model[0] if isinstance(model, tuple) else model
    return linen is not None and isinstance(module, linen.Module)


def _in_order(graph: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    """Return the example tensors in the order of the graph's inputs."""
    if graph.paths is None:
        return list(inputs)
    given = dict(_objects.leaves((_objects.open_objects(inputs), _objects.open_objects(keywords))))
    return [given[int(isinstance(path[0], str)), *path] for path in graph.paths]


def _name_axes(names: list[str], reader: str, model: Any, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return dynamic shapes in the terms of a reader, in which the first dimensions have names."""
    axes = {axis: name.strip() for axis, name in enumerate(names)}
    if reader == _READERS["torch"]:
        if not hasattr(model, "forward"):
            raise errors.ArgumentError(
                "an ExportedProgram has the open sizes that it was exported with: name them there"
            )
        return dict.fromkeys(inspect.signature(model.forward).bind(*inputs, **keywords).arguments, axes)
    tensors = [x for _, x in _objects.tensors((inputs, keywords))]
    if reader != _JAX:
        return [{axis: name for axis, name in axes.items() if axis < len(x.shape)} for x in tensors]
    texts = {id(x): ", ".join(str(axes.get(i, size)) for i, size in enumerate(x.shape)) for x in tensors}
    return list(_objects.map_leaves(inputs, lambda _, x: texts.get(id(x))))


def _shapes_of(graph: _graph.Graph) -> list[list[Any]]:
    return [[size if isinstance(size, int) else size.text for size in value.shape] for value in graph.inputs]


def _takes(graph: _graph.Graph, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Say whether a graph takes the examples that it was traced with."""
    try:
        _check_sizes("", _shapes_of(graph), graph.guards, _in_order(graph, inputs, keywords))
    except errors.ArgumentError:
        return False
    return True


def _describe_example(array: Any, sizes: Any) -> tuple[list[int], str, int]:
    """Return the shape of an example input, of the sizes that are fixed, its dtype and its largest integer."""
    shape = [size if isinstance(size, int) else length for size, length in zip(sizes, array.shape, strict=True)]
    return shape, str(array.dtype), 0 if array.dtype.kind in "fcV" or not array.size else int(array.max())


def _check_sizes(name: str, wanted: list[Any], guards: list[str], inputs: Any) -> None:
    """Refuse inputs of other sizes than those that a source was traced for, or with which the original differs."""
    leaves = [leaf for leaf in _tree.leaves(inputs) if leaf is not None]
    if len(leaves) != len(wanted):
        raise errors.ArgumentError(f"{name} takes {len(wanted)} inputs, got {len(leaves)}")
    known: dict[str, Any] = {}  # the open sizes, by name
    places: dict[str, str] = {}
    for number, (leaf, sizes) in enumerate(zip(leaves, wanted, strict=True)):
        shape = tuple(leaf.shape)
        fits = len(shape) == len(sizes) and all(
            not isinstance(a, int) or b in (None, a) for a, b in zip(sizes, shape, strict=True)
        )
        if not fits:
            shown = ", ".join(str(size) if isinstance(size, int) else "any" for size in sizes)
            raise errors.ArgumentError(f"input {number} of {name} must have the shape ({shown}), got {shape}")
        for axis, (size, length) in enumerate(zip(sizes, shape, strict=True)):
            factor, symbol = _multiple(size) if isinstance(size, str) else (1, "")
            place = f"dimension {axis} of input {number}"
            if isinstance(length, int) and length % factor:
                raise errors.ArgumentError(f"{place} of {name} must be a multiple of {factor}, got {length}")
            count = length // factor if isinstance(length, int) else None
            if known.get(symbol) is not None and count is not None and known[symbol] != count:
                raise errors.ArgumentError(
                    f"{place} of {name} must fit {places[symbol]}: both were traced as {symbol}, got {symbol} = "
                    f"{count} and {known[symbol]}"
                )
            if symbol and known.get(symbol) is None:
                known[symbol], places[symbol] = count, place
    for guard in guards:
        symbols = set(re.findall(r"(?<![.\w])[^\W\d]\w*\b(?!\()", guard)) & set(known)
        if all(isinstance(known[symbol], int) for symbol in symbols) and not eval(guard, {"math": math}, known):
            given = ", ".join(f"{each} = {known[each]}, {places[each]}" for each in sorted(symbols))
            raise errors.ArgumentError(
                f"the original computes something else where not {guard}, got {given}: trace it with such inputs"
            )


def _example_values(examples: list[Any], described: list[tuple[list[int], str, int]], kinds: str) -> dict[str, Any]:
    """Return the example inputs whose dtypes are of these kinds, as lists, unless they are large."""
    few = [
        (str(i), x if hasattr(x, "tolist") else np.asarray(x))
        for i, (x, (_, dtype, _)) in enumerate(zip(examples, described, strict=True))
        if np.dtype(dtype).kind in kinds and math.prod(np.shape(x)) <= _FEW
    ]
    return {i: x.tolist() for i, x in few}


def _multiple(size: str) -> tuple[int, str]:
    """Return the number of times that a size is a named one, and its name."""
    factor, _, name = size.rpartition("*")
    return (int(factor), name) if factor.isdigit() else (1, size)


def _input_text(path: Any) -> str:
    first, *rest = path
    name = f"the input {first}" if isinstance(first, int) else f"the input {first!r}"
    return name + "".join(f"[{step!r}]" for step in rest)


def _reader(model: Any, inputs: tuple[Any, ...]) -> Any:
    frameworks = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if any(kind.__name__ in ("Optimizer", "GradientTransformation") for kind in type(model).__mro__):
        raise errors.ArgumentTypeError(f"model must be a model, got the optimizer {type(model).__name__}")
    for framework, reader in _READERS.items():  # PyTorch first: Keras on PyTorch is a torch.nn.Module
        if framework in frameworks:
            return importlib.import_module(reader)
    if is_of_jax(model, inputs):
        return importlib.import_module(_JAX)
    raise errors.ArgumentTypeError(
        "model must be a torch.nn.Module or ExportedProgram, a Keras model, a tf.Module, a tf.function, a SavedModel, "
        f"a module of flax or equinox, or a function that is given arrays of JAX, got {type(model).__name__}"
    )


def is_of_jax(model: Any, inputs: tuple[Any, ...]) -> bool:
    """Say whether a model is a module of flax or equinox, or a function whose arrays are JAX's."""
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    if isinstance(model, tuple):
        return len(model) == 2 and is_of_jax(model[0], inputs)
    if any(kind.__module__.partition(".")[0] in ("flax", "equinox") for kind in type(model).__mro__):
        return True
    bound = (model.args, model.keywords) if isinstance(model, functools.partial) else ()
    return callable(model) and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((bound, inputs)))


def _tensor(leaf: Any) -> Any:
    return multiop.op_convert_to_tensor(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
