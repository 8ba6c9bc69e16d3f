"""Compare a function with the model that it was ported from, layer by layer, forward and backward."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import io
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

import multiop
from multiop import config, errors, extend, tree as _tree
from multiop.testing import _html
from multiop.testing._shared_process import x64_mode_for
from multiop.testing._tolerances import AGREEMENT_ULPS, eps, farthest, relative_error

from . import _causes, _expressions, _io, _map, _objects, _weights
from ._port import Port, is_of_jax, weights_of
from ._reference import NUDGE_ULPS, NUDGES, Array, Record, Reference, cotangents_from, is_inexact, nudged
from ._taps import Perturbed, Recorder, Replaced, recording

Arranged: TypeAlias = Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]]
Gradients: TypeAlias = tuple[
    Reference, dict[str, tuple[str, Array]]
]  # those of the parameters by the candidate's names
SINGLE, WHOLE = "single step", "end to end"
VALUE, GRADIENT, PARAMETER, INPUT, STATE = "value", "gradient", "parameter gradient", "input gradient", "statistics"
OK, DIFFERS, VACUOUS = "ok", "differs", "vacuous"
OUTPUT = "output"
ROUNDING_SHARE = 4.0  # a difference of this many times the largest movement may be rounding too


@dataclasses.dataclass
class Check:
    """One thing that was compared.

    Attributes:
        backend: The candidate's backend.
        mode: "single step", where each layer is given what the reference's was, or "end to end".
        layer: The layer that is right or wrong.
        quantity: "value", "gradient", "parameter gradient", "input gradient" or "statistics".
        name: Which value, parameter, input or statistic.
        status: "ok"; "differs"; or "vacuous", where no error could have been seen.
        error: The largest difference, relative to the largest entry.
        allowed: How large it may be.
        detail: What is wrong, in shapes and the worst entry.
        cause: Why, if a suspect gives exactly what was found.
    """

    backend: str
    mode: str
    layer: str
    quantity: str
    name: str
    status: str
    error: float
    allowed: float
    detail: str = ""
    cause: str | None = None

    def _repr_html_(self) -> str:
        """Return it as a line in words and a table of one row, for a notebook."""
        words = ": ".join(filter(None, (f"{self.quantity} of {self.name}: {self.status}", self.detail, self.cause)))
        return _html.fragment(words, self.status == OK, {"": (_COLUMNS, [_cells(self)])})


_COLUMNS = ("backend", "layer", "compared", "quantity", "name", "", "found", "allowed")


def _cells(check: Check) -> list[str]:
    names = [check.backend, check.layer, check.mode, check.quantity, check.name, check.status]
    return [*names, f"{check.error:.1e}", f"{check.allowed:.1e}"]


@dataclasses.dataclass
class Comparison:
    """What `compare` found; `print` shows it as a table.

    Attributes:
        reference: What the candidate was compared with.
        checks: All that was compared.
        not_compared: Taps, layers and parameters without a counterpart.
        accepted: The layers that may be vacuous.
    """

    reference: str
    checks: list[Check]
    not_compared: list[str]
    accepted: tuple[str, ...] = ()

    @property
    def differences(self) -> list[Check]:
        """What differs, the first layer first: values as they are computed, then gradients as they are."""
        return [check for check in self.checks if check.status == DIFFERS]

    @property
    def first_difference(self) -> Check | None:
        """The first layer that differs, in single steps where these were compared; `None` if none does."""
        matching = self.differences
        backend = matching[0].backend if matching else None
        matching = [check for check in matching if check.backend == backend]
        single = [check for check in matching if check.mode == SINGLE]
        return next(iter(single or matching), None)

    @property
    def cause(self) -> str | None:
        """Why the first layer differs, if a suspect gives exactly what was found."""
        first = self.first_difference
        return None if first is None else first.cause

    @property
    def vacuous(self) -> list[Check]:
        """What could not have differed: outputs that are constant, gradients that are zero."""
        return [check for check in self.checks if check.status == VACUOUS and check.layer not in self.accepted]

    @property
    def agree(self) -> bool:
        """Whether something was compared, nothing differs, and each check could have failed."""
        return bool(self.checks) and not self.differences and not self.vacuous

    @property
    def verdict(self) -> str:
        """The outcome in a few words."""
        first = self.first_difference
        if first is not None:
            why = first.cause or "no suspect gives this output; the layer's own code is where to look"
            return f"{first.layer} is the first layer that differs, on {first.backend}, in its {first.quantity}: {why}"
        if self.vacuous:
            layers = list(dict.fromkeys(check.layer for check in self.vacuous))
            return f"nothing differs, but {_weights.abridge(layers)} could not have differed: see `vacuous`"
        if self.checks:
            return "agree"
        return "nothing was compared: the candidate has no taps that the reference has layers for"

    def to_json(self) -> str:
        """Return everything as one JSON object."""
        said = {"reference": self.reference, "agree": self.agree, "verdict": self.verdict, "cause": self.cause}
        first = self.first_difference
        said |= {"first_difference": first and first.layer, "not_compared": self.not_compared}
        checks = [dataclasses.asdict(check) for check in self.checks]
        for check in checks:  # JSON has no infinity
            check |= {key: value if np.isfinite(value := check[key]) else None for key in ("error", "allowed")}
        return json.dumps(said | {"checks": checks})

    def to_html(self) -> str:
        """Return everything as one self-contained HTML page."""
        sections: dict[str, list[_html.Line]] = {}
        for check in self.checks:
            message = f"{check.detail}\n{check.cause}" if check.cause else check.detail
            names = (check.layer, check.mode, check.quantity, check.name)
            status = "failed" if check.status == DIFFERS else check.status
            line = (names, status, check.error, check.allowed, message)
            sections.setdefault(f"{self.reference} and its port on {check.backend}", []).append(line)
        notes = [f"not compared: {told}" for told in self.not_compared]
        return _html.comparison_page("multiop compare", self.verdict, sections, notes)

    def __str__(self) -> str:
        """Return the table, at most 80 columns wide."""
        from rich.console import Console

        stream = io.StringIO()
        console = Console(file=stream, width=80, color_system=None, highlight=False)
        for backend in dict.fromkeys(check.backend for check in self.checks):
            console.print(_table(self, backend))
        first = self.first_difference
        if first is not None:
            console.print(first.detail)
        for told in self.not_compared[:8]:
            console.print(f"not compared: {told}")
        if len(self.not_compared) > 8:
            console.print(f"not compared: {len(self.not_compared) - 8} more")
        console.print(self.verdict)
        return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())

    def __repr__(self) -> str:
        return f"Comparison({self.verdict})"

    def _repr_html_(self) -> str:
        """Return the verdict with a table of what differs, and one of all checks, for a notebook."""
        tables = {"": self.differences} if self.differences else {}
        rows = {name: list(map(_cells, checks)) for name, checks in (tables | {"all checks": self.checks}).items()}
        return _html.fragment(self.verdict, self.agree, {name: (_COLUMNS, found) for name, found in rows.items()})


COLUMNS = [(SINGLE, VALUE), (SINGLE, GRADIENT), (SINGLE, PARAMETER), (WHOLE, VALUE), (WHOLE, GRADIENT)]


def _table(comparison: Comparison, backend: str) -> Any:
    from rich.table import Table

    table = Table(
        box=None, pad_edge=False, title=f"{comparison.reference} and its port on {backend}", title_justify="left"
    )
    table.add_column("layer", overflow="fold")
    for title in ("value", "gradient", "parameters", "value,\nend to end", "gradient,\nend to end"):
        table.add_column(title, no_wrap=True)
    checks = [check for check in comparison.checks if check.backend == backend]
    for layer in dict.fromkeys(
        check.layer for check in sorted(checks, key=lambda c: (c.mode != WHOLE, c.quantity != VALUE))
    ):
        cells = []
        for mode, quantity in COLUMNS:
            also = (quantity, {GRADIENT: INPUT, VALUE: STATE}.get(quantity))
            here = [c for c in checks if c.layer == layer and c.mode == mode and c.quantity in also]
            cells.append(_cell(here))
        table.add_row(layer, *cells)
    return table


def _cell(checks: list[Check]) -> str:
    if not checks:
        return "-"
    for status in (DIFFERS, VACUOUS):
        matching = [check for check in checks if check.status == status]
        if matching:
            worst = max(check.error for check in matching)
            return f"DIFF {worst:.0e}" if status == DIFFERS else status
    return f"ok {max(check.error for check in checks):.0e}"


def compare(
    reference: Any,
    candidate: Port | Callable[..., Any],
    inputs: Any,
    *,
    params: Any = None,
    state: Any = None,
    weight_map: _map.WeightMap | None = None,
    names: Mapping[str, str] | None = None,
    backends: Sequence[str] | None = None,
    training: bool = False,
    channels_last: bool = False,
    end_to_end: bool = True,
    accept_vacuous: Sequence[str] = (),
    seed: int = 0,
) -> Comparison:
    """Compare a multiop function with the model that it was ported from, layer by layer, forward and backward.

    The candidate marks its layers with `tap`, under the names of the reference's. In *single steps*, the value at
    each tap is replaced by that of the reference before the function goes on, in both directions: a layer that
    differs is wrong by itself. *End to end* nothing is replaced.

    Args:
        reference: A `torch.nn.Module`, a Keras model, a module of flax's linen with its variables
            (`model.bind(variables)`), a module of nnx or of equinox (called with `inputs`, so with one example), a
            function of JAX as `trace` takes it, or a function of multiop ops with taps. Where the candidate is a
            `Port`, all that `trace` takes.
        candidate: A `Port`, or the function: `candidate(*inputs)`, or `candidate(params, *inputs)` where `params` is
            given, or `candidate(params, state, *inputs)`, which returns `(outputs, new_state)`, where `state` is given
            too.
        inputs: A list of NumPy arrays, also in dicts, tuples, lists and objects, or a lone array; for a port, arrays in
            the order of its source, too. Their dtype is that of the comparison: use float64.
        params: The candidate's parameters: nested dicts of NumPy arrays, or `Weights`, which have a state too.
        state: The candidate's state.
        weight_map: How `params` and `state` are made from the reference's; by default `map_weights` finds it.
        names: The reference's names for taps that have other ones.
        backends: The backends to run the candidate on; by default the active one. "all" stands for those that are
            installed.
        training: Whether the reference is in training mode.
        channels_last: Whether the candidate has images with channels last where the reference has them first.
        end_to_end: Whether to compare end to end too.
        accept_vacuous: Layers whose checks need not be able to fail.
        seed: Seeds the weights of the outputs in the gradient.

    Returns:
        A `Comparison`: `first_difference`, `cause`, `agree`; `print` shows a table.

    Raises:
        ReferenceRaisedError: The reference raised.
        ArgumentError: The candidate raised, or has a tap inside of compiled code.

    Example:
        >>> import numpy as np
        >>> from multiop import ops, porting
        >>> def network(x):
        ...     return porting.tap("tail", ops.sin(porting.tap("gelu", ops.gelu(x, approximate=False))))
        >>> def port(x):
        ...     return porting.tap("tail", ops.sin(porting.tap("gelu", ops.gelu(x))))
        >>> x = np.linspace(-2.0, 2.0, 5)
        >>> porting.compare(network, port, [x]).first_difference.layer
        'gelu'
    """
    port = candidate if isinstance(candidate, Port) else None
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]  # not the rows of a lone array
    given, arranged = _split_inputs(inputs, port)
    if isinstance(candidate, Port):
        params, state, weight_map = candidate.params, candidate.state, weight_map or candidate.map
        candidate = functools.partial(candidate.function, training=training)
    elif len(given) != len(inputs):
        candidate = _of_leaves(candidate, arranged, len(given))
    if isinstance(params, _weights.Weights):
        state = params.state if state is None and params.state else state
        params = params.params
    trees = [_weights.flat(_map_dicts(_array, tree)) for tree in (params, state) if isinstance(tree, Mapping)]
    dtypes = {x.dtype.name for x in [*given, *(x for tree in trees for x in tree.values())] if is_inexact(x)}
    width = "float64" if dtypes & {"float64", "complex128"} else "float32"
    framework = _framework_of(reference, port)

    def run(inputs: list[Array]) -> Reference:
        """Run the reference, whose own errors say that they are its."""
        try:
            if framework is not None:
                taps = importlib.import_module(f"multiop.porting.{_weights.OWNERS[framework]}.taps")
                recorded: Reference = taps.record(reference, inputs, cotangents_from(seed), training, arranged)
                return recorded
            if not callable(reference):
                raise errors.ArgumentTypeError(f"reference: a {type(reference).__name__} cannot be called")
            with x64_mode_for(width):
                return _run_function(reference, inputs, arranged, cotangents_from(seed))
        except errors.MultiopError:
            raise
        except Exception as error:
            name = getattr(reference, "__name__", type(reference).__name__)
            raise errors.ReferenceRaisedError(
                f"the reference, {name}, raised {type(error).__name__}, not the candidate: {error}"
            ) from error

    recorded = run(given)
    if backends == "all":
        backends = multiop.available_backends()
    elif isinstance(backends, str):
        backends = [backends]
    comparison = Comparison(recorded.title, [], [], tuple(accept_vacuous))
    gradients, states = _by_candidate_names(reference, recorded, params, state, weight_map, comparison)

    @functools.cache
    def gradients_nearby() -> list[Gradients]:
        """Return the gradients of the reference where its inputs differ by a few roundings."""
        moved = []
        for n in range(NUDGES):
            other, unseen = run([nudged(x, n) for x in given]), Comparison("", [], [])
            moved.append((other, _by_candidate_names(reference, other, params, state, weight_map, unseen)[0]))
        return moved

    for backend in backends or [multiop.backend()]:
        with multiop.use_backend(backend), x64_mode_for(width):
            about = (recorded, dict(names or {}), channels_last, comparison, gradients_nearby)
            _Run(candidate, given, params, state, *about).compare(gradients, states, end_to_end)
    return comparison


def _split_inputs(inputs: Sequence[Any], port: Port | None) -> tuple[list[Array], Arranged]:
    """Return the arrays among the inputs, and what makes of other such arrays the arguments of the original."""
    opened = _objects.open_objects(list(inputs))
    leaves, structure = _tree.flatten(opened)
    if port is None:
        return [_array(x) for x in leaves], lambda tensors: (
            list(_objects.close_objects(_tree.unflatten(structure, list(tensors)), list(inputs))),
            {},
        )
    leaves = leaves if len(leaves) == len(inputs) else list(port.tensors_of(tuple(opened), {}))

    def arguments(tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        args, keywords = port._arguments(tuple(tensors))
        has_objects = any(a is not b for a, b in zip(opened, inputs, strict=True)) and len(args) == len(inputs)
        return list(_objects.close_objects(args, list(inputs))) if has_objects else args, keywords

    return [_array(x) for x in leaves], arguments


def _of_leaves(candidate: Callable[..., Any], arranged: Arranged, count: int) -> Callable[..., Any]:
    """Return the candidate as a function of the arrays in its inputs, behind its parameters and its state."""

    @functools.wraps(candidate)
    def call(*args: Any) -> Any:
        first = len(args) - count
        return candidate(*args[:first], *arranged(args[first:])[0])

    return call


def _framework_of(reference: Any, port: Port | None) -> str | None:
    """Return the framework that a reference runs on; `None` for a function of ops."""
    owner = _weights.owner(reference)
    if owner is None and (is_of_jax(reference, ()) or (port is not None and port.is_of_jax)):
        return "jax"
    return owner


def _run_function(reference: Callable[..., Any], inputs: list[Array], arranged: Arranged, cotangents: Any) -> Reference:
    """Run a function of multiop ops with taps as a reference."""

    def function(*tensors: Any) -> Any:
        args, keywords = arranged(tensors)
        return reference(*args, **keywords)

    tensors = [multiop.op_convert_to_tensor(x) for x in inputs]
    with recording(Recorder()) as seen:
        outputs = [_numpy(y) for y in _tree.leaves(function(*tensors))]
    values = {name: _numpy(y) for name, y in seen.values.items()}
    weights = cotangents(outputs)
    gradients, (input_gradients, _) = _pull(lambda _, *xs: function(*xs), {}, tensors, values, weights)
    records = {name: Record(name, value, gradient=gradients.get(name)) for name, value in values.items()}
    previous = [x for x in inputs if is_inexact(x)][:1]
    for record in records.values():  # a chain is the best guess; a wrong input gives no cause
        record.inputs, previous = previous, [record.value]
    title = getattr(reference, "__name__", type(reference).__name__)
    return Reference(title, records, outputs, weights, input_gradients, {})


def _numpy(x: Any) -> Array:
    return np.array(multiop.op_convert_to_numpy(x))


def _fill(inputs: list[Any], which: list[int], some: Sequence[Any]) -> list[Any]:
    """Return the inputs with others in some places."""
    filled = list(inputs)
    for n, x in zip(which, some, strict=True):
        filled[n] = x
    return filled


def _pull(
    function: Callable[..., Any],
    params: Any,
    inputs: list[Any],
    values: Mapping[str, Array],
    weights: list[Array | None],
) -> tuple[dict[str, Array], tuple[list[Array | None], dict[str, Array]]]:
    """Return the gradients at the taps, of the inputs, and of the parameters by name, of the weighted outputs."""
    if all(w is None for w in weights):
        return {}, ([None] * len(inputs), {})
    leaves = _weights.flat(params) if isinstance(params, Mapping) else {}
    own = {name: x for name, x in leaves.items() if is_inexact(_numpy(x))}
    zeros = {name: multiop.op_convert_to_tensor(np.zeros_like(x)) for name, x in values.items() if is_inexact(x)}
    which = [n for n, x in enumerate(inputs) if is_inexact(_numpy(x))]

    def outputs(own: Any, zeros: Any, some: Any) -> Any:
        tree = _weights.rebuild_tree(params, {**leaves, **own}) if leaves else params
        with recording(Perturbed(zeros)):
            flat = _tree.leaves(function(tree, *_fill(inputs, which, some)))
        return [y for y, w in zip(flat, weights, strict=True) if w is not None]

    primals_out, pullback = multiop.vjp(outputs, own, zeros, [inputs[n] for n in which])
    kept = [w for w in weights if w is not None]
    of_own, of_zeros, of_inputs = pullback([_like(w, y) for w, y in zip(kept, primals_out, strict=True)])
    gradients = _fill([None] * len(inputs), which, list(map(_numpy, of_inputs)))
    at_taps, of_params = ({name: _numpy(g) for name, g in part.items()} for part in (of_zeros, of_own))
    return at_taps, (gradients, of_params)


def _like(x: Array, y: Any) -> Any:
    """Return an array as a tensor of the dtype of another."""
    return multiop.op_cast(multiop.op_convert_to_tensor(x), y.dtype)


def _by_candidate_names(
    reference: Any,
    gradients: Reference,
    params: Any,
    state: Any,
    weight_map: _map.WeightMap | None,
    comparison: Comparison,
) -> tuple[dict[str, tuple[str, Array]], dict[str, tuple[str, Array]]]:
    """Return the reference's gradients, and its new state, by the candidate's names, with the reference's names."""
    arrays = gradients.parameter_gradients | gradients.state
    if params is None or not arrays:
        return {}, {}
    target = _weights.Weights(*(_map_dicts(_array, tree) for tree in (params, state or {})))
    weight_map = weight_map or _identity(arrays, target)
    if weight_map is None:
        source = _io.read_weights(weights_of(reference))
        weight_map = _identity(source.arrays, target)
        if weight_map is None:
            weight_map = _map.map_weights(source, target)
            for line in weight_map.unresolved:
                comparison.not_compared.append(f"parameter {line}; give a weight_map")
    made = weight_map.apply_to_gradients(gradients.parameter_gradients)
    new = {}
    for name, row in weight_map.rows.items():
        if all(name in gradients.state for name in _expressions.names(row.expression)):
            new[name] = _expressions.evaluate(row.expression, gradients.state)
    origin = {name: _expressions.names(row.expression)[0] for name, row in weight_map.rows.items()}
    return {n: (origin[n], g) for n, g in made.items()}, {n: (origin[n], x) for n, x in new.items()}


def _identity(arrays: Mapping[str, Array], target: _weights.Weights) -> _map.WeightMap | None:
    """Return the map to weights of the same names and shapes; `None` if one is missing."""
    shapes = {name: x.shape for name, x in arrays.items()}
    if any(shapes.get(name) != x.shape for name, x in target.arrays.items()):
        return None
    weight_map = _map.WeightMap(shapes, target)
    weight_map.rows = {n: _map.Row(_expressions.Name(n), "name") for n in target.arrays}
    return weight_map


def _map_dicts(change: Callable[[Any], Any], tree: Any) -> Any:
    return {k: _map_dicts(change, v) for k, v in tree.items()} if isinstance(tree, Mapping) else change(tree)


def _array(x: Any) -> Array:
    """Return an array of what is one, or a tensor of any framework, of any dtype, on any device."""
    owner = extend.framework_of(x)
    if owner not in multiop.available_backends():
        return np.asarray(x)
    with config.use_backend(owner):
        return _numpy(x)


class _Run:
    """The candidate on one backend, against the reference."""

    def __init__(
        self,
        candidate: Callable[..., Any],
        inputs: list[Array],
        params: Any,
        state: Any,
        reference: Reference,
        names: dict[str, str],
        channels_last: bool,
        comparison: Comparison,
        nudged: Callable[[], list[Gradients]],
    ) -> None:
        self.candidate, self.reference, self.nudged = candidate, reference, nudged
        self.params, self.state = (
            _map_dicts(multiop.op_convert_to_tensor, tree) if isinstance(tree, Mapping) else tree
            for tree in (params, state)
        )
        self.names, self.channels_last, self.comparison = names, channels_last, comparison
        self.backend = multiop.backend()
        self.inputs = [multiop.op_convert_to_tensor(self.there(x)) for x in inputs]

    # between the two layouts of images

    def there(self, x: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if self.channels_last and x.ndim in (4, 5) else x

    def back(self, x: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(x, -1, 1)) if self.channels_last and x.ndim in (4, 5) else x

    def call(self, params: Any, *inputs: Any) -> Any:
        try:
            if self.params is None:
                return self.candidate(*inputs)
            if self.state is None:
                return self.candidate(params, *inputs)
            return self.candidate(params, self.state, *inputs)[0]
        except errors.MultiopError:
            raise
        except Exception as error:
            name = getattr(self.candidate, "__name__", type(self.candidate).__name__)
            raise errors.ArgumentError(
                f"the candidate, {name} on {self.backend}, raised {type(error).__name__}, not the reference: {error}"
            ) from error

    def known(self, name: str, value: Array) -> str:
        """Return the reference's name for a tap; of a layer that returns several values, that of its shape."""
        bare, mark, number = name.partition("#")
        full = self.names.get(name, self.names.get(bare, bare) + mark + number)
        records, shape = self.reference.records, self.back(value).shape
        parts = itertools.takewhile(records.__contains__, (f"{full}.{n}" for n in itertools.count()))
        alike = [part for part in parts if records[part].value.shape == shape]
        return alike[0] if full not in records and len(alike) == 1 else full

    def told_apart(self, known: dict[str, str], values: dict[str, Array]) -> dict[str, str]:
        """Return the reference's names for the taps, where the calls of one layer are told apart by what they return.

        The candidate may call a layer in another order, or leave out a call whose result is not used.
        """
        calls: dict[str, list[str]] = {}
        for name in self.reference.records:
            calls.setdefault(_of_all_calls(name), []).append(name)
        left = {layer: names for layer, names in calls.items() if len(names) > 1}
        chosen = dict(known)
        for name, full in known.items():
            names = left.get(_of_all_calls(full), [])
            if names:
                value = self.back(values[name])
                chosen[name] = min(names, key=lambda n: _distance(self.reference.records[n].value, value))
                names.remove(chosen[name])
        return chosen

    def compare(
        self, gradients: dict[str, tuple[str, Array]], states: dict[str, tuple[str, Array]], end_to_end: bool
    ) -> None:
        records = self.reference.records
        with recording(Recorder()) as seen:
            outputs = self.plain(self.call(self.params, *self.inputs))
        values = {name: self.plain(y)[0] for name, y in seen.values.items()}
        known = self.told_apart({name: self.known(name, y) for name, y in values.items()}, values)
        shared = {name: records[full] for name, full in known.items() if full in records}
        for name, full in known.items():
            if full not in records:
                self.miss(f"tap {name}: the reference has no layer of this name")
        self.miss_layers(set(known.values()))
        checks: list[Check] = []
        self.statistics = set(states)
        self.single_steps(shared, values, outputs, gradients, checks)
        if self.state is not None:
            self.new_state(shared, states, checks)
        if end_to_end:
            self.end_to_end(shared, values, outputs, gradients, checks)
        self.comparison.checks += checks

    def plain(self, tree: Any) -> list[Array]:
        try:
            return [_numpy(y) for y in _tree.leaves(tree)]
        except Exception as error:
            if isinstance(error, errors.MultiopError) and "tracer" not in str(error).lower():
                raise
            raise errors.ArgumentError(
                "a tap is inside of compiled or traced code, where it has no value: call the function uncompiled, or "
                "move the tap out"
            ) from error

    def miss(self, told: str) -> None:
        if told not in self.comparison.not_compared:
            self.comparison.not_compared.append(told)

    def miss_layers(self, tapped: set[str]) -> None:
        records = self.reference.records
        for name in records:
            inner = any(other.startswith(name.partition("#")[0] + ".") for other in records)
            if name not in tapped and not inner and (records[name].arrays or not tapped):
                self.miss(f"layer {name}: the candidate has no tap of this name")

    # the checks

    def check(
        self,
        mode: str,
        layer: str,
        quantity: str,
        name: str,
        wanted: Array,
        computed: Array,
        depth: int,
        floor: float = 0.0,
    ) -> Check:
        """Compare two arrays: relative to the largest entry, in units of the reference's dtype times the depth."""
        allowed = AGREEMENT_ULPS * eps(wanted.dtype) * depth * (4 if quantity != VALUE else 1)
        check = Check(self.backend, mode, layer, quantity, name, OK, 0.0, allowed)
        if wanted.shape != computed.shape:
            check.status, check.error = DIFFERS, float("inf")
            check.detail = f"{quantity} of {name}: shape {computed.shape} where the reference has {wanted.shape}"
            return check
        if wanted.size == 0:
            check.status, check.detail = VACUOUS, "it is empty"
            return check
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        exact = not is_inexact(wanted)
        scale = 0.0 if exact else float(np.abs(wanted[np.isfinite(wanted)].astype(wide)).max(initial=0.0))
        kept = np.asarray(computed, wanted.dtype) if not exact and is_inexact(computed) else computed
        check.error = (
            relative_error(kept, wanted)
            if exact
            else relative_error(kept, wanted, np.full(wanted.shape, max(scale, floor)), wanted.dtype)
        )
        is_noise = quantity != STATE and not exact and scale <= floor
        largest = float(np.abs(computed.astype(wide)).max(initial=0.0)) if is_noise else math.inf
        if not check.error <= allowed and not largest <= floor:
            check.status = DIFFERS
            where = farthest(computed.astype(wide), wanted.astype(wide))
            check.detail = (
                f"{quantity} of {name}, shape {wanted.shape}: relative error {check.error:.3g}, {allowed:.1g} is "
                "allowed; worst is entry "
                f"{list(where)}: {computed.astype(wide)[where]:.9g} where {wanted.astype(wide)[where]:.9g} is expected"
            )
        elif quantity == VALUE and wanted.size > 1 and (wanted == wanted.flat[0]).all():
            check.status, check.detail = VACUOUS, f"all entries are {wanted.flat[0]!s}"
        elif is_noise:
            check.status = VACUOUS
            check.detail = f"it is at most {scale:.1g}, a rounding error" if scale else "it is zero"
        return check

    def in_order(self, shared: dict[str, Record]) -> list[str]:
        """Return the taps in the order in which the reference computes their layers."""
        return sorted(shared, key=lambda n: list(self.reference.records).index(shared[n].name))

    def noise(self, record: Record | None, others: Sequence[Array] = ()) -> float:
        """Return how small a gradient is a rounding error, given the other gradients of the layer."""
        sizes = [np.abs(x.astype(np.float64)).max(initial=0.0) for x in others if x.dtype.kind != "c"]
        if record is not None and record.gradient is not None and record.gradient.dtype.kind != "c":
            sizes.append(np.abs(record.gradient.astype(np.float64)).max(initial=0.0))
        dtype = others[0].dtype if others else np.dtype("float64") if record is None else record.value.dtype
        return 64 * eps(dtype) * max(sizes, default=0.0)

    def single_steps(
        self,
        shared: dict[str, Record],
        values: dict[str, Array],
        outputs: list[Array],
        gradients: dict[str, tuple[str, Array]],
        checks: list[Check],
    ) -> None:
        """Give each layer what the reference's was given, in both directions."""
        fitting = {n: r for n, r in shared.items() if self.there(r.value).shape == values[n].shape}
        forced = {n: self.there(r.value) for n, r in fitting.items()}
        wanted = {n: r.gradient for n, r in fitting.items() if r.gradient is not None and is_inexact(values[n])}
        weights = [
            w if y is not None and is_inexact(y) else None
            for w, y in itertools.zip_longest(self.reference.cotangents, outputs[: len(self.reference.cotangents)])
        ]
        leaves = _weights.flat(self.params) if isinstance(self.params, Mapping) else {}
        own = {n: x for n, x in leaves.items() if is_inexact(_numpy(x))}
        free = {n: multiop.op_convert_to_tensor(x) for n, x in forced.items() if is_inexact(x)}
        fixed = {n: multiop.op_convert_to_tensor(x) for n, x in forced.items() if n not in free}
        which = [n for n, x in enumerate(self.inputs) if is_inexact(_numpy(x))]

        def everything(own: Any, free: Any, some: Any) -> Any:
            tree = _weights.rebuild_tree(self.params, {**leaves, **own}) if leaves else self.params
            with recording(Replaced({**fixed, **free})) as recorder:
                results = _tree.leaves(self.call(tree, *_fill(self.inputs, which, some)))
            return {"taps": {n: recorder.values[n] for n in wanted}, "outputs": results}, dict(recorder.values)

        def only_float(own: Any, free: Any, some: Any) -> Any:
            made, all_values = everything(own, free, some)
            kept = [y for y, w in zip(made["outputs"], weights, strict=False) if w is not None]
            return {"taps": made["taps"], "outputs": kept}, (all_values, made["outputs"])

        primals = own, free, [self.inputs[n] for n in which]
        differentiated = bool(wanted) or any(w is not None for w in weights)
        if differentiated:
            made, pullback, (all_values, results) = multiop.vjp(only_float, *primals, has_aux=True)
        else:
            made, (all_values, results) = only_float(*primals)
        seen = {n: self.plain(y)[0] for n, y in all_values.items()}
        ends = self.plain(results)
        order = self.in_order(shared)
        for name in order:
            record = shared[name]
            computed = self.back(seen[name])
            check = self.check(SINGLE, record.name, VALUE, record.name, record.value, computed, 1)
            if check.status == DIFFERS:
                before = list(self.reference.records.values())
                before = before[: next(k for k, r in enumerate(before) if r is record)]
                check.cause = _narrower(record.value, computed, check.error) or _causes.explain(
                    computed, record.value, record, earlier=before
                )
            checks.append(check)
        self.outputs(SINGLE, ends, checks, 1)
        cotangents = [w for w in weights if w is not None]
        fits = [self.back(self.plain(y)[0]).shape == w.shape for y, w in zip(made["outputs"], cotangents, strict=False)]
        if not differentiated or len(cotangents) != len(made["outputs"]) or not all(fits):
            return
        pulled = {n: _like(self.there(g), made["taps"][n]) for n, g in wanted.items()}
        ends_weights = [_like(self.there(w), y) for w, y in zip(cotangents, made["outputs"], strict=True)]
        of_own, of_free, of_inputs = pullback({"taps": pulled, "outputs": ends_weights})
        later: list[Check] = []
        for name in reversed(order):
            record = shared[name]
            if name in of_free and record.gradient is not None:
                computed = self.back(_numpy(of_free[name]))
                consumers, layer, floor = self.consumers(record, shared)
                told = f"{record.name}, which goes into {', '.join(r.name for r in consumers) or 'the output'}"
                check = self.check(SINGLE, layer, GRADIENT, told, record.gradient, computed, 1, floor)
                self.explain(check, record.gradient, computed, record.name)
                later.append(check)
        for n, g in zip(which, of_inputs, strict=True):
            wanted_gradient = self.reference.input_gradients[n]
            if wanted_gradient is not None:
                computed = self.back(_numpy(g))
                x = self.back(_numpy(self.inputs[n]))
                _, layer, floor = self.consumers(Record("", x), shared)
                check = self.check(SINGLE, layer, INPUT, f"input {n}", wanted_gradient, computed, 1, floor)
                self.explain(check, wanted_gradient, computed, n)
                later.append(check)
        later += self.parameters(SINGLE, {n: _numpy(g) for n, g in of_own.items()}, gradients, shared, 1)
        checks += later

    def explain(self, check: Check, wanted: Array, computed: Array, key: Any) -> None:
        """Say why the gradient at `key` differs; where rounding its inputs moves it as far, it is not compared."""
        if check.status != DIFFERS:
            return
        check.cause = _causes.explain(computed, wanted)
        if check.cause is not None or wanted.shape != computed.shape:
            return
        if check.quantity == PARAMETER:
            moved: list[Array | None] = [of_params[key][1] for _, of_params in self.nudged()]
        elif check.quantity == INPUT:
            moved = [run.input_gradients[key] for run, _ in self.nudged()]
        else:
            moved = [run.records[key].gradient for run, _ in self.nudged()]
        by = max(math.inf if x is None else _distance(wanted, x) for x in moved)
        if _distance(wanted, computed) <= ROUNDING_SHARE * by < math.inf:
            check.status = VACUOUS
            check.detail = f"it moves by {by:.1g} where the inputs move by {NUDGE_ULPS:.0f} roundings; {check.detail}"

    def consumers(self, record: Record, shared: dict[str, Record]) -> tuple[list[Record], str, float]:
        """Return the tapped layers that were given what a layer returned, the first one, and their rounding error."""
        names = list(self.reference.records)
        start = names.index(record.name) + 1 if record.name else 0
        later = [self.reference.records[name] for name in names[start:]]
        tapped = {r.name for r in shared.values()}
        takes = [
            r for r in later if any(np.array_equal(x, record.value) for x in r.inputs if x.shape == record.value.shape)
        ]
        consumers = [r for r in takes if r.name in tapped] or [r for r in later if r.name in tapped][:1]
        floor = self.noise(None, [r.gradient for r in consumers if r.gradient is not None])
        return consumers, consumers[0].name if consumers else OUTPUT, floor

    def parameters(
        self,
        mode: str,
        computed: dict[str, Array],
        wanted: dict[str, tuple[str, Array]],
        shared: dict[str, Record],
        depth: int,
    ) -> list[Check]:
        checks = []
        layers = sorted((r.name for r in shared.values()), key=len, reverse=True)
        for name, gradient in computed.items():
            if name not in wanted:
                if name not in self.statistics:  # which the reference does not differentiate
                    self.miss(f"gradient of {name}")
                continue
            origin, expected = wanted[name]
            layer = next(
                (layer for layer in layers if (origin + ".").startswith(layer + ".")),
                origin.rpartition(".")[0] or OUTPUT,
            )
            same = [g for o, g in wanted.values() if o.rpartition(".")[0] == origin.rpartition(".")[0]]
            record = self.reference.records.get(layer)
            floor = self.noise(record, [*same, expected])
            check = self.check(mode, layer, PARAMETER, name, expected, gradient, depth, floor)
            self.explain(check, expected, gradient, name)
            checks.append(check)
        return checks

    def outputs(self, mode: str, computed: list[Array], checks: list[Check], depth: int) -> None:
        wanted = self.reference.outputs
        if len(computed) != len(wanted):
            detail = f"{len(computed)} outputs where the reference has {len(wanted)}"
            checks.append(Check(self.backend, mode, OUTPUT, VALUE, OUTPUT, DIFFERS, float("inf"), 0.0, detail))
        for n, (y, other) in enumerate(zip(computed, wanted, strict=False)):
            name = OUTPUT if len(wanted) == 1 else f"{OUTPUT}.{n}"
            y = self.back(y)
            check = self.check(mode, name, VALUE, name, other, y, depth)
            if check.status == DIFFERS:
                earlier = list(self.reference.records.values())
                inputs = [earlier[-1].value] if earlier else []
                check.cause = _causes.explain(y, other, Record(name, other, inputs), earlier=earlier)
            checks.append(check)

    def new_state(self, shared: dict[str, Record], states: dict[str, tuple[str, Array]], checks: list[Check]) -> None:
        """Compare the state after the run; without a tap the statistics follow from the inputs alone."""
        records = self.reference.records
        forced = {name: multiop.op_convert_to_tensor(self.there(record.value)) for name, record in shared.items()}
        with recording(Replaced(forced)):
            new = _map_dicts(_numpy, self.candidate(self.params, self.state, *self.inputs)[1])
        for name, x in _weights.flat(new).items():
            if name not in states:
                self.miss(f"state {name}")
                continue
            origin, wanted = states[name]
            layer, _, leaf = origin.rpartition(".")
            if wanted.dtype.kind in "iu" and x.dtype.kind in "iu":
                x = x.astype(wanted.dtype)
            check = self.check(SINGLE, layer or OUTPUT, STATE, name, wanted, x, 1)
            if check.status == DIFFERS and layer in records and origin in self.reference.before:
                check.cause = _causes.explain(
                    x, wanted, records[layer], leaf=leaf, before=self.reference.before[origin]
                )
            checks.append(check)

    def end_to_end(
        self,
        shared: dict[str, Record],
        values: dict[str, Array],
        outputs: list[Array],
        gradients: dict[str, tuple[str, Array]],
        checks: list[Check],
    ) -> None:
        """Compare the values and gradients of the whole, where errors add up."""
        order = self.in_order(shared)
        for depth, name in enumerate(order, 1):
            record, computed = shared[name], self.back(values[name])
            checks.append(self.check(WHOLE, record.name, VALUE, record.name, record.value, computed, depth))
        depth = len(order) + 1
        self.outputs(WHOLE, outputs, checks, depth)
        weights = self.reference.cotangents
        if [self.back(y).shape for y in outputs] != [y.shape for y in self.reference.outputs]:
            return
        there = [
            self.there(w) if w is not None and is_inexact(y) else None for w, y in zip(weights, outputs, strict=True)
        ]
        at_taps, (of_inputs, of_params) = _pull(self.call, self.params, self.inputs, values, there)
        for name in reversed(order):
            record = shared[name]
            if record.gradient is not None and name in at_taps:
                computed = self.back(at_taps[name])
                floor = self.noise(None, [r.gradient for r in shared.values() if r.gradient is not None])
                check = self.check(
                    WHOLE, record.name, GRADIENT, record.name, record.gradient, computed, 2 * depth, floor
                )
                self.explain(check, record.gradient, computed, record.name)
                checks.append(check)
        for n, (wanted, computed) in enumerate(zip(self.reference.input_gradients, of_inputs, strict=True)):
            if wanted is not None and computed is not None:
                first = shared[order[0]].name if order else OUTPUT
                computed = self.back(computed)
                check = self.check(WHOLE, first, INPUT, f"input {n}", wanted, computed, 2 * depth)
                self.explain(check, wanted, computed, n)
                checks.append(check)
        checks += self.parameters(WHOLE, of_params, gradients, shared, 2 * depth)


def _of_all_calls(name: str) -> str:
    """Return the name of a layer without the numbers of its calls."""
    return re.sub(r"#\d+", "", name)


def _distance(wanted: Array, computed: Array) -> float:
    if wanted.shape != computed.shape:
        return math.inf
    difference = np.abs(wanted.astype(np.complex128) - computed.astype(np.complex128)).max(initial=0.0)
    return float(np.nan_to_num(difference, nan=math.inf))


def _narrower(wanted: Array, computed: Array, error: float) -> str | None:
    is_narrower = is_inexact(computed) and eps(wanted.dtype) < eps(computed.dtype)
    if not is_narrower or error > AGREEMENT_ULPS * eps(computed.dtype):
        return None
    return f"computed in {computed.dtype} where the reference has {wanted.dtype}"
