"""From a Keras model, `tf.Module`, `tf.function` or SavedModel to the graph: its `FuncGraph`, operation by operation."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop.porting import _converters, _graph, _hosts, _objects, _rows
from multiop.porting._graph import (
    Apply,
    Body,
    Call,
    Custom,
    Dim,
    DType,
    Expression,
    Foreign,
    Graph,
    Infix,
    Node,
    Scope,
    Value,
    is_call,
)
from multiop.porting._printing import snake
from multiop.porting._rows import FLOATS, Untranslated, single, words
from multiop.porting.tensorflow import _internals, blocks, operations, patterns, weights
from multiop.porting.tensorflow.flat import (
    Edge,
    Flat,
    Function,
    Operation,
    Rule,
    Sizes,
    closed_over,
    gradient_function,
    inputs_of,
    is_rule_of,
)
from multiop.porting.tensorflow.sizes import Compared

_CONTAINERS = ("Functional", "Sequential")
_SEEDS = ("StatelessRandomGetKeyCounter", "RngReadAndSkip", "StatelessRandomGetKeyCounterAlg")
_IGNORED = words("N grad_a grad_b incompatible_shape_error use_cudnn_on_gpu validate_indices")
_OTHER_SIZES = (ValueError, TypeError, tf.errors.InvalidArgumentError)  # what sizes meet that do not fit


@dataclasses.dataclass
class _Model:
    """What is read: how it is called, its variables, its submodules."""

    call: Callable[..., Any]
    kind: str
    variables: dict[str, Any]  # path -> tf.Variable
    state: set[str]
    modules: dict[int, tuple[str, str, bool]]  # id -> path, class, whether it is a container
    layers: list[Any]
    concrete: Any = None
    has_layers: bool = False  # of Keras
    frozen: Sequence[str] = ()  # the parameters that are not trained


def read(
    model: Any,
    inputs: tuple[Any, ...],
    training: bool = False,
    dynamic_shapes: Any = None,
    keywords: dict[str, Any] | None = None,
    partial: bool = False,
) -> Graph:
    """Return the graph of a Keras model on TensorFlow, a `tf.Module`, a `tf.function` or a SavedModel.

    Args:
        model: What is called with `inputs`.
        inputs: Example inputs.
        training: Whether the model is in training mode.
        dynamic_shapes: The open dimensions: for each tensor a dict from axis to name; by default the first of each.
        keywords: Example inputs by name.
        partial: Whether a bridge may stay where an operation has no translation.

    Raises:
        TranslationError: Something has no translation; the message lists all of it.
    """
    arguments = Arguments(inputs, keywords)
    examples = arguments.examples
    described = describe_model(model, training, arguments)
    choices = _choices(described, examples, dynamic_shapes)
    for number, opened in enumerate(choices, 1):
        watch = _Watch(described)
        try:
            compared = Compared()
            with compared.noted() if described.concrete is None and any(opened) else contextlib.nullcontext():
                concrete = described.concrete or _concrete(described, examples, opened, watch)
            symbols = {
                name: example.shape[axis]
                for example, names in zip(examples, opened, strict=True)
                for axis, name in names.items()
            }
            fixed = [{} for _ in opened]
            again = functools.partial(_concrete, described, examples, fixed, contextlib.nullcontext())
            guards = compared.guards(symbols, described.kind, again, dynamic_shapes is not None)
            given = (described, concrete, examples, opened)
            graph = _graph_of(symbols, functools.partial(_Reader, *given, watch=watch, partial=partial))
            graph.paths, graph.constants = arguments.paths, arguments.constants
            graph.guards += [guard for guard in dict.fromkeys(guards) if guard not in graph.guards]
            graph.frozen = [name for name in described.frozen if name in graph.params]
            return graph
        except errors.TranslationError:
            if number == len(choices) or not any(choices[number]):
                raise
        except _OTHER_SIZES as error:
            if dynamic_shapes is not None:
                names = list(dict.fromkeys(name for axes in opened for name in axes.values()))
                words = _hosts.cannot_trace("TensorFlow", described.kind, error, names, line=-1)
                raise errors.TranslationError(words) from error
            if number == len(choices):
                raise
            if not any(choices[number]):
                reason = str(error).strip().partition("\n")[0]
                warnings.warn(f"all sizes are fixed, since the model does not take others: {reason}", stacklevel=3)
    raise AssertionError


def _graph_of(symbols: dict[str, int], read: Callable[..., _Reader]) -> Graph:
    """Read a graph with other points, and then with assumptions, where open sizes are not understood."""
    first: Exception | None = None
    for options in ({}, {"multiples": False}, {"assume": True}) if symbols else ({},):
        sizes = Sizes(symbols, **options)
        try:
            graph = read(sizes=sizes).graph
        except (errors.TranslationError, *_OTHER_SIZES) as error:
            first = first or error
            continue
        graph.guards = sizes.guards
        return graph
    assert first is not None
    raise first


class Arguments:
    """Arguments of a model: tensors, also in dicts, tuples and lists, and others, which stay as they are."""

    def __init__(self, inputs: tuple[Any, ...], keywords: dict[str, Any] | None):
        self.trees: tuple[list[Any], dict[str, Any]] = (list(inputs), dict(keywords or {}))
        found = [(list(path), x) for tree in self.trees for path, x in _objects.tensors(tree)]
        self.paths, self.tensors = [path for path, _ in found], [x for _, x in found]
        self.constants = [(list(path), x) for tree in self.trees for path, x in _objects.settings(tree)]
        self.examples = list(map(_tensor, self.tensors))
        self.is_plain = self.paths == [[number] for number in range(len(self.paths))] and not self.constants

    def built(self, tensors: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments, with other tensors."""
        left = iter(tensors)
        built: tuple[list[Any], dict[str, Any]] = _objects.map_leaves(
            self.trees, lambda _, leaf: next(left) if _objects.is_tensor(leaf) else leaf
        )
        return built


def _concrete(described: _Model, examples: list[Any], opened: list[dict[int, str]], watch: Any) -> Any:
    specs = [
        tf.TensorSpec(
            [None if axis in names else size for axis, size in enumerate(example.shape)], example.dtype, f"x{i}"
        )
        for i, (example, names) in enumerate(zip(examples, opened, strict=True))
    ]
    if described.has_layers and tf.executing_eagerly():
        sys.modules["keras"].random.uniform(())  # the first time, Keras draws a seed from Python
    with watch, _hosts.refuse_draws():
        return tf.function(described.call, autograph=False).get_concrete_function(*specs)


def _tensor(leaf: Any) -> Any:
    return leaf if isinstance(leaf, (tf.Tensor, tf.Variable)) else tf.convert_to_tensor(np.asarray(leaf))


def _choices(described: _Model, examples: list[Any], dynamic_shapes: Any) -> list[list[dict[int, str]]]:
    """Return the names of the open dimensions of each input, in the ways that are tried, one after another.

    First dimensions are open, at first each by itself. If sizes then do not fit each other, those are one that are
    equal in the example, then those alone are open that equal the first, then none.
    """
    if dynamic_shapes is not None:
        opened = [{int(axis): str(name) for axis, name in (spec or {}).items()} for spec in dynamic_shapes]
        specs = _specs(described.concrete) if described.concrete is not None else ()
        for spec, names in zip(specs, opened, strict=False):
            for axis, name in names.items():
                if spec.shape.rank is not None and spec.shape[axis] is not None:
                    words = f"the size {name} is to stay open, and the signature fixes it to {spec.shape[axis]}"
                    raise errors.TranslationError(f"{words}, at {spec.name}")
        return [opened]
    if described.concrete is not None:
        shapes = [spec.shape for spec in _specs(described.concrete)]
        first = [bool(shape.rank) and shape.as_list()[0] is None for shape in shapes]
    else:
        first = [len(example.shape) > 0 for example in examples]
    keys = [
        (i, int(example.shape[0])) if is_open else None
        for i, (example, is_open) in enumerate(zip(examples, first, strict=True))
    ]
    known = [key for key in keys if key is not None]
    if not known:
        return [[{} for _ in keys]]
    choices = []
    for merge in (
        lambda key: key,
        lambda key: key[1],
        lambda key: key[1] if key[1] == known[0][1] else None,
        lambda key: None,
    ):
        names: dict[Any, str] = {}
        opened = []
        for key in keys:
            merged = None if key is None else merge(key)
            name = names.setdefault(merged, f"size{len(names)}" if names else "batch") if merged is not None else None
            opened.append({} if name is None else {0: name})
        if opened not in choices:
            choices.append(opened)
    return choices[:2] if described.concrete is not None else choices


def _specs(concrete: Any) -> list[Any]:
    return list(concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)])


# models


def describe_model(model: Any, training: bool, arguments: Arguments) -> _Model:
    """Return a model, whatever it is made of, as a function of its tensors, with its variables by name."""
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(model, keras.Layer):
        return _keras(keras, model, training, arguments)
    if hasattr(model, "captured_inputs") and hasattr(model, "structured_outputs"):
        return _loose(model, _captured_variables(model), getattr(model, "name", ""), model, training, arguments)
    if hasattr(model, "get_concrete_function"):
        concrete = _concrete_function(model, training, arguments)
        return _loose(model, _captured_variables(concrete), getattr(model, "__name__", ""), None, training, arguments)
    signatures = getattr(model, "signatures", None)
    if signatures and not callable(model):
        signature = signatures.get("serving_default", next(iter(signatures.values())))
        return _loose(signature, _captured_variables(signature), "", signature, training, arguments)
    if isinstance(model, tf.Module):
        names, _, state, _ = weights._read_variables(model)
        variables = dict(_once(names))
        modules, layers = {}, []
        for path, module in _internals.leaves(model, lambda leaf: isinstance(leaf, tf.Module)):
            modules.setdefault(id(module), (".".join(map(str, path)), type(module).__name__, False))
            layers.append(module)
        function, kind = _as_function(model, training, arguments), type(model).__name__
        return _Model(function, kind, variables, state & set(variables), modules, layers)
    if callable(model):  # what `tf.saved_model.load` returns
        concrete = _concrete_function(model.__call__, training, arguments)
        return _loose(model, _captured_variables(concrete), "", None, training, arguments)
    raise errors.ArgumentTypeError(f"model: a {type(model).__name__} cannot be called")


def _captured_variables(concrete: Any) -> list[Any]:
    """Return the variables of a function, in the order in which it reads them."""
    order = {id(x): number for number, x in enumerate(concrete.captured_inputs)}
    return sorted(concrete.graph.variables, key=lambda span: order.get(id(span.handle), len(order)))


_BLOCK = re.compile(r"(\w*?block_?\d+[a-z]?_|\w*conv_\d+_(?=expand|depthwise|squeeze|project|add))")


def _group(nodes: list[Node], paths: list[str]) -> None:
    """Make a submodule of layers that stand together and whose names say that they are one block.

    Their weights are those whose names begin with that of the block; another block has weights of the same names.
    """

    def block(node: Node) -> str | None:
        matched = _BLOCK.match(node.scopes[0].path) if node.scopes else None
        return matched[1] if matched else None

    names = [block(node) for node in nodes]
    owners = {path.partition(".")[0] for path in paths}
    free = [not node.scopes or node.scopes[0].path.partition(".")[0] not in owners for node in nodes]
    start = 0
    while start < len(nodes):  # what stands between two layers of a block, and has no weights, belongs to it
        end = start
        while end < len(nodes) and names[end] is None and free[end]:
            end += 1
        if start and end < len(nodes) and names[start - 1] == names[end]:
            names[start:end] = [names[end]] * (end - start)
        start = end + 1
    _join_shortcuts(nodes, names, free)
    runs = [name for i, name in enumerate(names) if name is not None and (i == 0 or names[i - 1] != name)]
    counts = collections.Counter(runs)
    leaves: dict[str, set[str]] = collections.defaultdict(set)
    for node, name in zip(nodes, names, strict=True):
        if name is not None:
            used = [value.name for value in _graph.values(node.expression) if value.kind in ("params", "state")]
            leaves[name].update(path.removeprefix(name) for path in used)
    alike = collections.Counter(map(frozenset, leaves.values()))
    for node, name in zip(nodes, names, strict=True):
        if name is not None and counts[name] == 1 and alike[frozenset(leaves[name])] > 1:
            node.scopes = (Scope(name, f"{name}*", "Block", False), *node.scopes)


def _join_shortcuts(nodes: list[Node], names: list[str | None], free: list[bool]) -> None:
    """Give a block what stands beside it and belongs to its shortcut: what only it uses, and the sum with its input."""
    users: dict[int, list[int]] = collections.defaultdict(list)
    kinds = ("local", "input")
    takes = [[id(value) for value in _graph.values(node.expression) if value.kind in kinds] for node in nodes]
    gives = [[id(y) for y in node.outputs] for node in nodes]
    for number, taken in enumerate(takes):
        for value in taken:
            users[value].append(number)
    start = 0
    while start < len(nodes):
        end = start + 1
        while end < len(nodes) and names[end] == names[start]:
            end += 1
        if names[start] is not None:
            block = set(range(start, end))
            own = {value for number in block for value in gives[number]}
            inputs = {value for number in block for value in takes[number]} - own
            before = start - 1
            is_shortcut = before >= 0 and names[before] is None and free[before] and inputs.issuperset(takes[before])
            shortcut = set(gives[before]) if is_shortcut and takes[before] else set()
            if end < len(nodes) and names[end] is None and free[end]:
                results, others = own.intersection(takes[end]), set(takes[end]) - own
                if results and others and others <= inputs | shortcut and all(users[edge] == [end] for edge in results):
                    names[end] = names[start]
                    block.add(end)
                    end += 1
            if shortcut and all(number in block for value in shortcut for number in users[value]):
                names[before] = names[start]
        start = end


def _in_depth(nodes: list[Node], outputs: Expression, depth: int = 0) -> list[Node]:
    """Order statements as a person would write them: all that leads to one operand, then all that leads to the next.

    Keras computes the layers of a model level by level, so that parallel branches stand in pieces.
    """
    together: dict[Any, list[Node]] = {}  # the statements of one call of a layer, or of one block
    for node in nodes:
        together.setdefault(node.scopes[depth].key if len(node.scopes) > depth else id(node), []).append(node)
    units = list(together.values())
    for unit in units:
        if len(unit[0].scopes) > depth and unit[0].scopes[depth].ending:
            used = {id(value) for node in unit for value in _graph.values(node.expression)}
            results: Any = [y for node in unit for y in node.outputs if id(y) not in used]
            unit[:] = _in_depth(unit, results, depth + 1)
    makers = {id(value): number for number, unit in enumerate(units) for node in unit for value in node.outputs}

    def needed_nodes(expressions: list[Expression]) -> list[int]:
        return [makers[id(value)] for each in expressions for value in _graph.values(each) if id(value) in makers]

    updates = [number for number, unit in enumerate(units) if any(node.update is not None for node in unit)]
    ordered: list[Node] = []
    done: set[int] = set()
    waiting = [*reversed(updates), *reversed(needed_nodes([outputs]))]
    while waiting:
        number = waiting[-1]
        before = [n for n in needed_nodes([node.expression for node in units[number]]) if n not in done | {number}]
        if number not in done and before:
            waiting += reversed(before)
            continue
        if number not in done:
            done.add(number)
            ordered += units[number]
        waiting.pop()
    return ordered


def _bound_inverse_roots(nodes: list[Node]) -> None:
    """Give `1 / sqrt(x)` the gradient that TensorFlow gives it where it is infinite and a bound is taken instead: 0."""
    roots = {id(node.outputs[0]): node for node in nodes if is_call(node.expression, "ops.rsqrt")}
    for node in nodes:
        for part in _graph.walk(node.expression, inside=False):
            if is_call(part, "ops.clip", "ops.minimum", "smaller"):
                for root in [roots[id(arg)] for arg in part.args if id(arg) in roots]:
                    root.expression = Call("inverse_root", root.expression.args)


def _once(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each variable under its first name."""
    seen = set()
    for name, variable in names.items():
        if id(variable) not in seen:
            seen.add(id(variable))
            yield name, variable


def _concrete_function(function: Any, training: bool, arguments: Arguments) -> Any:
    return tf.function(_as_function(function, training, arguments), autograph=False).get_concrete_function(
        *[tf.TensorSpec(example.shape, example.dtype) for example in arguments.examples]
    )


def _as_function(model: Any, training: bool, arguments: Arguments) -> Callable[..., Any]:
    """Return a model as a function of its tensors alone."""
    function = getattr(model, "python_function", None)
    try:
        takes = "training" in inspect.signature(function or model).parameters
    except (TypeError, ValueError):
        takes = False
    options = {"training": training} if takes else {}

    def call(*xs: Any) -> Any:
        positional, named = arguments.built(xs)
        return model(*positional, **options | named)

    return call


def _loose(model: Any, variables: Any, name: str, concrete: Any, training: bool, arguments: Arguments) -> _Model:
    """Describe a function, whose variables are known by their own names."""
    variables = [variable for variable in variables if variable.dtype != tf.resource]
    names, _, state, _ = weights._read_variables(list(variables))
    kind = name if re.fullmatch(r"[A-Za-z]\w*", str(name)) else "Model"
    if concrete is None:
        return _Model(_as_function(model, training, arguments), kind, names, state, {}, [])
    if not arguments.is_plain:
        raise errors.ArgumentError(
            "a ConcreteFunction and a signature take tensors alone, in the order of their inputs"
        )
    order = [spec.op.name for spec in _specs(concrete)]

    def call(*xs: Any) -> Any:
        if concrete.structured_input_signature[1]:
            return concrete(**dict(zip(order, xs, strict=True)))
        return concrete(*xs)

    return _Model(call, "Model", names, state, {}, [], concrete)


def _keras(keras: Any, model: Any, training: bool, arguments: Arguments) -> _Model:
    engine = keras.config.backend()
    if engine != "tensorflow":
        raise errors.ArgumentTypeError(f"model: Keras runs on {engine}; set KERAS_BACKEND=tensorflow")
    wanted = getattr(model, "inputs", None)
    in_list = isinstance(wanted, (list, tuple)) and 1 < len(wanted) == len(arguments.examples)

    def call(*xs: Any) -> Any:
        positional, named = arguments.built(xs)
        if in_list and arguments.is_plain:
            positional = [positional]
        return model(*positional, **{"training": training} | named)

    if not model.built:
        call(*arguments.examples)
    names, _, state, _ = weights._read_variables(model)
    paths = {id(variable): name for name, variable in names.items()}
    modules, layers = {}, []
    for layer in _internals.layers(model):
        kind = type(layer).__name__
        if kind == "InputLayer":
            continue
        inners = _internals.children(layer)
        own = [paths[id(variable)] for variable in layer.variables if id(variable) in paths]
        prefixes = [name.split(".")[:-1] for name in own if "seed_generator" not in name]
        common = []
        for parts in zip(*prefixes, strict=False):
            if len(set(parts)) > 1:
                break
            common.append(parts[0])
        if len(common) > 1 and common[-1] in {inner.name for inner in inners}:
            common.pop()
        path = ".".join(common) if prefixes else layer.name
        is_simple = weights.is_keras(layer) and type(layer).__module__.startswith("keras.") and not inners
        modules[id(layer)] = (path, kind, not path or is_simple)
        layers.append(layer)
    variables = {name: getattr(variable, "value", variable) for name, variable in names.items()}
    own = type(model).__name__
    auto = re.fullmatch(r"(functional|sequential|model)(_\d+)?", model.name)
    kind = model.name if own in _CONTAINERS and not auto else own
    frozen = [name for name, variable in names.items() if not variable.trainable and name not in state]
    return _Model(call, kind, variables, state, modules, layers, has_layers=True, frozen=frozen)


class _Watch:
    """Notes which operations each submodule adds to a graph while it is called."""

    def __init__(self, described: _Model):
        self.described = described
        self.spans: dict[int, list[tuple[int, int, Scope]]] = collections.defaultdict(list)
        self.graphs: list[Any] = []
        self.counts: collections.Counter[str] = collections.Counter()
        self.undo = contextlib.ExitStack()
        self.table: dict[int, list[tuple[Scope, ...]]] = {}

    def __enter__(self) -> _Watch:
        classes: dict[type, Any] = {}
        for layer in self.described.layers:
            if "__call__" not in dir(type(layer)):
                continue
            if _internals.has_layers(layer):
                object.__setattr__(layer, "call", self.watch_call(layer.call, layer))
                self.undo.callback(layer.__dict__.pop, "call", None)
                continue
            owner = next((kind for kind in type(layer).__mro__ if "__call__" in vars(kind)), None)
            if owner is not None:
                classes[owner] = vars(owner)["__call__"]
        for owner, original in classes.items():
            self.undo.callback(setattr, owner, "__call__", original)
            type.__setattr__(owner, "__call__", self._method(original))
        return self

    def __exit__(self, *_: Any) -> None:
        self.undo.close()

    def _method(self, original: Any) -> Any:
        watch = self

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            bound = original.__get__(module, type(module))
            if id(module) not in watch.described.modules:
                return bound(*args, **kwargs)
            return watch.watch_call(bound, module)(*args, **kwargs)

        return call

    def watch_call(self, call: Any, layer: Any) -> Any:
        path, kind, is_container = self.described.modules[id(layer)]

        def run(*args: Any, **kwargs: Any) -> Any:
            graph = tf.compat.v1.get_default_graph()
            start = len(graph.get_operations())
            result = call(*args, **kwargs)
            self.counts[path] += 1
            key = f"{path}@{self.counts[path]}"
            self.spans[id(graph)].append((start, len(graph.get_operations()), Scope(key, path, kind, is_container)))
            self.graphs.append(graph)  # so that its id stays its own
            return result

        return run

    def scopes(self, graph: Any, number: int) -> tuple[Scope, ...]:
        """Return the submodules that an operation belongs to, outermost first."""
        if id(graph) not in self.table:
            rows: list[tuple[Scope, ...]] = [()] * len(graph.get_operations())
            for start, end, scope in sorted(self.spans[id(graph)], key=lambda span: span[0] - span[1]):
                for i in range(start, end):
                    rows[i] = (*rows[i], scope)
            self.table[id(graph)] = rows
            self.graphs.append(graph)
        return self.table[id(graph)][number]


# the graph


def _is_pure(operation: Operation) -> bool:
    """Say whether an operation is a function of tensors alone, so that a bridge to it may stay."""
    edges = [*operation.inputs, *operation.outputs]
    return (
        hasattr(tf.raw_ops, operation.kind)
        and not operation.node.op_def.is_stateful
        and not operation.functions
        and not operation.is_overridden
        and not operation.kind.startswith("StatelessRandom")
        and all(isinstance(edge, Edge) and getattr(tf, edge.dtype, None) in _TENSORS for edge in edges)
    )


_TENSORS = {getattr(tf, f"{kind}{bits}") for kind in ("float", "int", "uint") for bits in (16, 32, 64)}
_TENSORS |= {tf.bool, tf.int8, tf.uint8, tf.bfloat16, tf.complex64, tf.complex128}


def _tensorflow_as_python(value: Any) -> str | None:
    """Return an attribute of TensorFlow's own as an expression of Python."""
    if isinstance(value, tf.DType):
        return f"tensorflow.{value.name}"
    if isinstance(value, tf.TensorShape):
        return "None" if value.rank is None else repr(value.as_list())
    return repr(value.decode()) if isinstance(value, bytes) else None


def _target(operation: Operation) -> Any:
    """Return the variable that an assignment changes: its path, or the id of one that is not the model's."""
    return operation.variable or id(operation.inputs[0])


def _is_write(operation: Operation) -> bool:
    """Say whether an operation changes a variable."""
    is_update = operation.node is not None and operation.kind.startswith("Resource") and not operation.node.outputs
    return operation.kind.startswith("Assign") or is_update


def _inputs(listed: list[Operation]) -> set[int]:
    """Return the ids of the tensors that operations take, and those inside of these."""
    inner = [inner for operation in listed for function in operation.functions for inner in function.operations]
    return {id(edge) for operation in listed for edge in operation.inputs} | (_inputs(inner) if inner else set())


class _Reader:
    def __init__(
        self,
        described: _Model,
        concrete: Any,
        examples: list[Any],
        opened: list[Any],
        sizes: Sizes,
        watch: _Watch,
        partial: bool,
    ):
        self.described, self.sizes, self.partial = described, sizes, partial
        self.nodes: list[Node] = []
        self.missing: dict[str, list[str]] = collections.defaultdict(list)
        self.is_bridgeable = True  # what has no translation
        self.leaves: dict[str, Value] = {}
        trained = [path for path in described.variables if path not in described.state]
        self.params = {path: np.array(described.variables[path].numpy()) for path in trained}  # those not used too
        self.state: dict[str, Any] = {}
        self.current: Operation | None = None
        self.listed: list[Operation] = []
        self.needed: set[int] = set()
        self.alone: dict[int, Value] = {}  # the one item of a list
        self.lifted: set[int] = set()  # leaves that are parameters of a function inside

        def shape(example: Any, names: dict[int, str], at: int) -> tuple[int, ...]:
            known = enumerate(example.shape)
            return tuple(sizes.values[names[axis]][at] if axis in names else size for axis, size in known)

        pairs = zip(examples, opened, strict=True)
        shapes = [[shape(*pair, at) for at in range(sizes.count)] for pair in pairs]
        handles: dict[Any, Any] = {}
        for path, variable in described.variables.items():
            address = _internals.address(variable.handle)
            handles |= {id(variable.handle): path, path if address is None else address: path, path: variable}
        self.flat = Flat(concrete.graph, shapes, sizes, handles, watch.scopes)
        self.inputs = []
        for number, edge in enumerate(self.flat.inputs):
            edge.expression = self.flat.value(edge, "input", self._input_name(concrete, number))
            self.inputs.append(edge.expression)
        self.plans: dict[int, Callable[[], None]] = {}
        self._find_tracked()
        self._statements(self.flat.operations, [result for result in self.flat.results if isinstance(result, Edge)])
        outputs = None if self.missing else self._outputs(concrete)
        if self.missing:
            hint = "TensorFlow" if not partial and self.is_bridgeable else ""
            raise errors.TranslationError(_graph.list_missing(self.missing, hint))
        nodes = _graph.without_dead(self.nodes, outputs)
        _bound_inverse_roots(nodes)
        if described.has_layers:
            nodes = _in_depth(nodes, outputs)
            _group(nodes, list(described.variables))
            if blocks.nested(nodes, outputs) | blocks.mark_blocks(nodes, outputs):
                nodes = _in_depth(nodes, outputs)
        self.graph = Graph(
            described.kind, self.inputs, self.params, self.state, nodes, outputs, self.leaves, "TensorFlow"
        )

    def _input_name(self, concrete: Any, number: int) -> str:
        names = [x.op.name for x in concrete.inputs]
        name = re.sub(r"\W", "_", names[number])
        if re.fullmatch(r"x\d+|xs_\d+|args_\d+", name):
            return "x" if len(self.flat.inputs) == 1 else f"x{number + 1}"
        return name

    # which operations are needed, and how each is written

    def _find_tracked(self) -> None:
        """Find the batch normalizations that keep moving statistics, and the assignments that are part of them."""
        random = self._random_state()
        operations = self.flat.operations
        assigned = [assignment for assignment in operations if assignment.kind.startswith("Assign")]
        writes = [assignment for assignment in assigned if _target(assignment) not in random]
        self.left_out = {id(assignment) for assignment in assigned if _target(assignment) in random}
        self.tracked: dict[int, tuple[patterns.Match, str]] = {}
        read = set(map(id, self.flat.results)) | _inputs(operations)
        for operation in operations:
            if writes and operation.kind in ("AddV2", "Add"):
                tracked = patterns.match_tracked_norm(operation, writes)
                if tracked is not None and not any(
                    id(assignment) in self.left_out or id(assignment.outputs[0]) in read for assignment in tracked[1]
                ):
                    self.tracked[id(operation)] = tracked[0], tracked[2]
                    self.left_out.update(map(id, tracked[1]))

    def _statements(self, listed: list[Operation], wanted: list[Edge]) -> None:
        """Add the statements that compute some tensors."""
        self._plan(listed, wanted)
        self._run_all(listed)

    def _plan(self, listed: list[Operation], wanted: list[Edge]) -> None:
        """Choose, from the last operation backwards, which are needed and how each is written."""
        needed = set(map(id, wanted))
        outer, self.listed, self.needed = (self.listed, self.needed), listed, needed
        for operation in reversed(listed):
            if id(operation) in self.left_out:
                continue  # others do what it does
            is_write = _is_write(operation)
            if not is_write and not any(id(edge) in needed for edge in operation.outputs):
                continue
            is_known = operation.kind == "Input" or all(edge.static is not None for edge in operation.outputs)
            if is_known and not is_write:
                continue
            self.current = operation
            try:
                edges = self._plan_operation(operation)
            except Untranslated as reason:
                edges = [edge for edge in operation.inputs if isinstance(edge, Edge)]
                if self.partial and _is_pure(operation):
                    self.plans[id(operation)] = functools.partial(self._bridge, operation, str(reason))
                else:
                    self._miss(operation, str(reason))
            needed.update(map(id, edges))
        self.listed, self.needed = outer

    def _run_all(self, listed: list[Operation]) -> None:
        for operation in listed:
            if id(operation) in self.plans:
                self._run(operation)

    def _read_inner(self, listed: list[Operation], results: list[Edge]) -> tuple[list[Node], list[Expression]]:
        """Return the statements of a function inside of the source, and its results."""
        outer, self.nodes = self.nodes, []
        current = self.current
        try:
            self._run_all(listed)
            self.current = current
            return self.nodes, [self._operand(edge, as_tensor=True) for edge in results]
        finally:
            self.nodes, self.current = outer, current

    def _plan_operation(self, operation: Operation) -> list[Edge]:
        """Choose how an operation is written, and return the tensors that this takes."""
        if id(operation) in self.tracked:
            match, prefix = self.tracked[id(operation)]
            self.plans[id(operation)] = lambda: self._update_norm(operation, match, prefix)
            return match.edges
        if _is_write(operation) and operation.variable is not None:
            if operation.is_nested:
                raise Untranslated(f"it changes {operation.variable} in a branch or a loop")
            self.plans[id(operation)] = lambda: self._assign(operation)
            return operation.inputs
        if operation.kind == "IdentityN":
            return self._custom(operation)
        if operation.loop is not None:
            return self._read_counting_loop(operation) if operation.loop.trips is not None else self._while(operation)
        if operation.functions:
            return self._choice(operation)
        item = _only_item(operation)
        if item is not None:
            self.plans[id(operation)] = lambda: self._bind(self._alone(item), operation.outputs)
            return [item]
        row = _converters.find("tensorflow", operation.kind)
        match = patterns.find(operation) if row is None else None
        if match is not None:
            self.plans[id(operation)] = lambda: self._bind(
                match.build(*map(self._operand, match.edges)), operation.outputs[:1]
            )
            return match.edges
        row = row or operations.ROWS.get(operation.kind)
        if row is None:
            raise Untranslated("")
        if operation.is_overridden:
            raise Untranslated("a gradient of its own, by gradient_override_map")
        if any(edge.shapes[0] is None and id(edge) in self.needed for edge in operation.outputs):
            if not any(isinstance(edge, Edge) and edge.shapes[0] is None for edge in operation.inputs):
                raise Untranslated("a size that depends on values")
            self.plans[id(operation)] = lambda: None  # where the size comes from is listed
            return operation.inputs
        self.plans[id(operation)] = lambda: self._row(operation, row)
        return operation.inputs

    def _random_state(self) -> set[Any]:
        """Return the variables that seeds are drawn from; a port has explicit keys in their place."""
        variables = set()
        for operation in self.flat.operations:
            if operation.kind not in _SEEDS:
                continue
            queue = list(operation.inputs)
            while queue:
                edge = queue.pop()
                if not isinstance(edge, Edge):
                    variables.add(edge if isinstance(edge, str) else id(edge))
                elif edge.variable is not None and not edge.changed:
                    variables.add(edge.variable)
                else:
                    queue += edge.operation.inputs
        return variables

    def _alone(self, item: Any) -> Value:
        if id(item) not in self.alone:
            raise Untranslated("an item of a list whose loop has no translation")
        return self.alone[id(item)]

    def _miss(self, operation: Operation, reason: str = "") -> None:
        sizes = all(edge.shapes[0] is not None for edge in operation.outputs)
        self.is_bridgeable = self.is_bridgeable and sizes and _is_pure(operation)
        scopes = [scope.path for scope in operation.scopes]
        place = f"{scopes[-1]} ({operation.scopes[-1].kind})" if scopes else operation.where
        self.missing[f"{operation.kind}: {reason}" if reason else operation.kind].insert(0, place)

    # statements

    def _run(self, operation: Operation) -> None:
        self.current = operation
        try:
            try:
                self.plans[id(operation)]()
            except Untranslated as reason:
                if not (self.partial and _is_pure(operation)):
                    raise
                self._bridge(operation, str(reason))
        except Untranslated as reason:
            self._miss(operation, str(reason))
            for edge in operation.outputs:
                edge.expression = Value(edge.shape, edge.dtype)

    def _add(self, outputs: list[Value], expression: Expression, update: str | None = None) -> None:
        assert self.current is not None
        self.nodes.append(Node(outputs, expression, self.current.scopes, update, self.current.where))

    def _emit(self, expression: Expression, *outputs: Value) -> list[Value]:
        self._add(list(outputs), expression)
        return list(outputs)

    def _hint(self) -> str:
        scopes = [scope for scope in self.current.scopes if not scope.is_container] if self.current is not None else []
        return scopes[-1].path.rpartition(".")[2] if scopes else ""

    def _bind(self, expression: Expression, edges: list[Edge]) -> None:
        """Add the statement that computes an expression; one that is a tensor already needs none."""
        if isinstance(expression, tuple):
            for part, edge in zip(expression, edges, strict=False):
                if part is not None:
                    self._bind(part, [edge])
            return
        if isinstance(expression, Value) and len(edges) == 1:
            edges[0].expression = expression
            return
        values = [self.flat.value(edge, name=self._hint()) for edge in edges]
        self._add(values, expression)
        for edge, value in zip(edges, values, strict=True):
            edge.expression = value

    def _bridge(self, operation: Operation, reason: str) -> None:
        """Leave a bridge to an operation; raise for `reason` if it cannot be written down."""
        function = getattr(tf.raw_ops, operation.kind)
        tensors: list[Expression] = []
        given = []
        edges = iter(operation.inputs)

        def word(edge: Edge) -> str:
            sizes = None if edge.static is None or edge.dtype != "int32" else edge.static
            if sizes is not None and not any(isinstance(size, Dim) for size in sizes.flat):
                return repr(sizes.astype(int).tolist())
            tensors.append(self._operand(edge, as_tensor=True))
            return f"x{len(tensors)}"

        for name, count in inputs_of(operation.node):
            words = [word(next(edges)) for _ in range(1 if count is None else count)]
            given.append(f"{name}={words[0] if count is None else '[' + ', '.join(words) + ']'}")
        named = {edge.partition("=")[0] for edge in given}
        taken = set(inspect.signature(function).parameters) - {"name"}
        if not named <= taken:
            raise Untranslated(reason)
        given += [
            f"{name}={_rows.as_python(operation.attribute(name), _tensorflow_as_python, reason)}"
            for name in sorted(taken - named)
        ]
        names = ", ".join(f"x{i + 1}" for i in range(len(tensors)))
        source = f"lambda {names}: tensorflow.raw_ops.{operation.kind}({', '.join(given)})"
        self._bind(Apply(Foreign(snake(operation.kind), source, "tensorflow"), tuple(tensors)), operation.outputs)

    def _row(self, operation: Operation, row: Any) -> None:
        out = [Value(edge.shape, edge.dtype) for edge in operation.outputs]
        is_single = len(operation.node.op_def.output_arg) == 1 and not any(
            argument.number_attr or argument.type_list_attr for argument in operation.node.op_def.output_arg
        )
        expression = row(**self._bind_arguments(operation, row, out[0] if is_single else out))
        self._bind(expression, operation.outputs)

    def _bind_arguments(self, operation: Operation, row: Any, out: Any) -> dict[str, Any]:
        parameters = inspect.signature(row).parameters
        takes_all = _rows.takes_all(row)
        given = iter(operation.inputs)
        arguments: dict[str, Any] = {}
        named = inputs_of(operation.node)[: len(operation.inputs)]  # the shape of a list's entries is no input here
        of_sizes = all(edge.static is not None for edge in operation.inputs)  # as Python has no dtypes
        for name, count in named:
            if len(named) == 1 and count is None and name not in parameters:
                name = "x"
            if count is not None:
                arguments[name] = [self._operand(next(given), as_tensor=True) for _ in range(count)]
                continue
            edge = next(given)
            is_place = operation.kind == "XlaDynamicUpdateSlice" and name == "indices"
            if is_place or (name in ("begin", "end") and edge.static is None):
                arguments[name] = self._entries(edge)
            elif name in operations.STATIC:
                arguments[name] = _static(name, edge)
            elif name in ("scale", "translation", "value_range") and operation.kind in operations.KNOWN:
                arguments[name] = self._operand(edge) if edge.static is None else _static(name, edge)
            elif name in ("indices", "start", "limit", "delta"):
                arguments[name] = self._operand(edge) if edge.static is None else _literal(edge)
            else:
                is_pair = [label for label, _ in named] == ["x", "y"]
                is_open = of_sizes and any(isinstance(size, Dim) for size in edge.static.flat)
                shown = _shorten_vector(edge, operation.inputs[name == "x"]) if is_pair else edge
                arguments[name] = self._operand(shown, as_tensor=is_open)
        defaults = {attribute.name: attribute for attribute in operation.node.op_def.attr}
        for name in operation.node.node_def.attr:
            if name.startswith("_") or name not in defaults or defaults[name].type == "type":
                continue
            value = operation.attribute(name)
            if name in parameters or takes_all:
                arguments[name] = value
            elif name in _IGNORED or defaults[name].type == "list(type)":
                continue
            elif not defaults[name].HasField("default_value") or value != _default(defaults[name]):
                raise Untranslated(f"with {name}={value}")
        return arguments | _rows.special(row, out=out, emit=self._emit, keep=self._keep)

    def _entries(self, edge: Edge) -> list[Expression]:
        """Return the entries of a short vector: numbers, sizes and what is computed."""
        edge = patterns.seen_through(edge)
        if edge.static is not None:
            return list(edge.static.ravel())
        if edge.operation.kind == "Pack":
            return [self._operand(item) for item in edge.operation.inputs]
        vector = self._operand(edge, as_tensor=True)
        return [_graph.Item(vector, (i,)) for i in range(_known_size(edge.shape[0]))]

    def _operand(self, edge: Edge, as_tensor: bool = False) -> Expression:
        """Return what stands for a tensor: numbers for what is constant and has no dimensions."""
        if edge.static is None:
            if edge.variable is not None and not edge.changed and id(edge) not in self.lifted:
                return self._leaf(edge)
            if edge.expression is None:
                if self.missing:  # there is an error to raise anyway
                    return Value(edge.shape, edge.dtype)
                raise Untranslated("a tensor of a kind that has no translation")
            return edge.expression
        if edge.static.size == 1 and edge.static.ndim == 0 and not as_tensor:
            return _literal(edge)
        if edge.expression is not None:
            return edge.expression
        if edge.static.size > 16 and not any(isinstance(number, Dim) for number in edge.static.flat):
            edge.expression = self._constant(edge)
            return edge.expression
        value = self.flat.value(edge)
        self._add([value], Call("ops.array", (_listed_entries(edge),), (("dtype", DType(edge.dtype)),)))
        return value

    def _constant(self, edge: Edge) -> Value:
        """Keep an array that the model has in it as a leaf of the state."""
        return self._keep(np.asarray((edge.points or [])[0]), edge.operation.scopes, edge.dtype)

    def _keep(self, array: Any, scopes: Any = None, dtype: str = "") -> Value:
        """Keep an array as a leaf of the state."""
        if scopes is None:
            scopes = self.current.scopes if self.current is not None else ()
        base = f"{scopes[-1].path}.constant" if scopes else "constant"
        for path, known in self.state.items():
            if path.startswith(base) and known.dtype == array.dtype and np.array_equal(known, array, equal_nan=True):
                return self.leaves[path]
        path, number = base, 1
        while path in self.leaves:
            number += 1
            path = f"{base}_{number}"
        self.state[path] = array
        self.leaves[path] = Value(array.shape, dtype or str(array.dtype), "state", path)
        return self.leaves[path]

    def _leaf(self, edge: Edge) -> Value:
        """Return the leaf of the parameters or of the state that a variable is."""
        path = str(edge.variable)
        if path not in self.leaves:
            is_state = path in self.described.state
            if is_state:
                self.state[path] = np.array(self.described.variables[path].numpy())
            self.leaves[path] = self.flat.value(edge, "state" if is_state else "params", path)
        return self.leaves[path]

    def _assign(self, operation: Operation) -> None:
        path = str(operation.variable)
        if path not in self.described.state:
            raise Untranslated(f"it changes {path}, which is a parameter")
        expression = self._operand(operation.inputs[-1], as_tensor=True)
        if operation.kind in operations.UPDATES:
            row = operations.ROWS[operation.kind]
            expression = row(**self._bind_arguments(operation, row, None))
        elif operation.kind != "AssignVariableOp":
            sign, op = ("+", "add") if operation.kind == "AssignAddVariableOp" else ("-", "subtract")
            old = self._operand(operation.inputs[0])
            is_float = operation.outputs[0].dtype in FLOATS
            expression = Infix(sign, old, expression) if is_float else Call(f"ops.{op}", (old, expression))
        if path not in self.leaves:  # it is written, never read
            self.state[path] = np.array(self.described.variables[path].numpy())
            self.leaves[path] = self.flat.value(operation.outputs[0], "state", path)
        edge = operation.outputs[0]
        self._bind(expression, [edge])
        self._add([self.flat.value(edge)], edge.expression, update=path)
        made = {id(y): node for node in self.nodes for y in node.outputs}
        if edge.dtype in FLOATS and _graph.is_differentiated(edge.expression, made):
            self._bind(Call("ops.stop_gradient", (edge.expression,)), [edge])  # a variable does not know of what it is

    def _update_norm(self, operation: Operation, match: patterns.Match, prefix: str) -> None:
        out = self.flat.value(operation.outputs[0], name=self._hint())
        statistics = Value((), "dict")
        self._add([out, statistics], match.build(*map(self._operand, match.edges)), update=prefix)
        operation.outputs[0].expression = out

    def _custom(self, operation: Operation) -> list[Edge]:
        """A function with a gradient of its own; without one, tensors that are passed on."""
        if _internals.RULE not in operation.node.node_def.attr:
            self.plans[id(operation)] = lambda: [
                self._bind(self._operand(given), [out])
                for given, out in zip(operation.inputs, operation.outputs, strict=True)
            ]
            return operation.inputs
        rule = gradient_function(operation.attribute(_internals.RULE))
        function = closed_over(rule).get("grad_fn") if is_rule_of(rule, operation.node) else None
        where = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
        if re.search(r"nn_impl\.(silu|swish)\b", where):
            silu = ("Mul", "x", ("Sigmoid", ["x", ("Mul", 1.0, "x")]))
            match = next(patterns.matches(silu, operation.inputs[0]), None)
            if match is not None:
                self.plans[id(operation)] = lambda: self._bind(
                    Call("ops.silu", (self._operand(match["x"]),)), operation.outputs[:1]
                )
                return [match["x"]]
        if operation.rule is None:
            raise Untranslated("a gradient of its own that is not known, as in a SavedModel")
        return self._with_rule(operation, operation.rule)

    def _with_rule(self, operation: Operation, rule: Rule) -> list[Edge]:
        """Plan a function with a gradient of its own, which is traced too."""
        arguments = [patterns.seen_through(edge) for edge in operation.inputs[rule.count :]]
        results = operation.inputs[: rule.count]
        slopes = [gradient for gradient in rule.gradients if gradient is not None]
        self._plan(rule.operations, slopes)
        made = {id(edge) for operation in rule.operations for edge in operation.outputs} | set(map(id, rule.cotangents))
        body, outside = _between(
            self.listed, arguments, [*results, *self._outer_tensors(rule.operations, slopes, made)]
        )
        self._plan(body, results)
        parameters = list({id(edge): edge for edge in [*arguments, *outside]}.values())

        def run() -> None:
            values, given = [], []
            before = [(edge, edge.expression) for inner in body for edge in inner.outputs]
            before += [(edge, edge.expression) for edge in parameters]
            given.extend(self._operand(edge, as_tensor=True) for edge in parameters)
            for edge in parameters:
                edge.expression = self.flat.value(edge)
                values.append(edge.expression)
            lifted, self.lifted = self.lifted, self.lifted | set(map(id, parameters))
            nodes, outputs = self._read_inner(body, results)
            for edge in rule.cotangents:
                edge.expression = self.flat.value(edge)
            rule_nodes, rule_outputs = self._read_inner(rule.operations, slopes)
            known = dict(zip(map(id, slopes), rule_outputs, strict=True))
            own = dict(zip(map(id, arguments), rule.gradients, strict=False))
            gradients = [known.get(id(own.get(id(edge)))) for edge in parameters]
            inner = {id(value) for node in rule_nodes for value in node.outputs}
            inner |= {id(edge.expression) for edge in rule.cotangents}
            used = [value for node in rule_nodes for value in _graph.values(node.expression)]
            used += _graph.values(tuple(gradients))
            residuals = list({id(edge): edge for edge in used if id(edge) not in inner}.values())
            self.lifted = lifted
            for edge, expression in before:
                edge.expression = expression
            residuals = [residual for residual in residuals if residual.kind == "local"]
            ends = [single(outputs), residuals, [edge.expression for edge in rule.cotangents]]
            custom = Custom(_plain_name(rule.name), values, nodes, *ends, rule_nodes, single(gradients))
            self._bind(Apply(custom, tuple(given)), operation.outputs[: rule.count])

        self.plans[id(operation)] = run
        return parameters

    def _outer_tensors(self, listed: list[Operation], results: list[Edge], made: set[int]) -> list[Edge]:
        """Return the tensors that planned operations take from outside."""
        taken: dict[int, Edge] = {}
        for edge in [*results, *[edge for item in listed if id(item) in self.plans for edge in item.inputs]]:
            if isinstance(edge, Edge) and id(edge) not in made and edge.static is None:
                taken[id(edge)] = edge
        return list(taken.values())

    # branches and loops

    def _inside(self, function: Function, results: list[Edge]) -> list[Edge]:
        """Plan a function inside, and return the tensors that it closes over."""
        self._plan(function.operations, results)
        made = {id(edge) for each in function.operations for edge in each.outputs} | set(map(id, function.inputs))
        return self._outer_tensors(function.operations, results, made)

    def _choice(self, operation: Operation) -> list[Edge]:
        functions = operation.functions
        taken = [edge for function in functions for edge in self._inside(function, function.results)]

        def run() -> None:
            bodies = []
            for function in functions:
                nodes, outputs = self._read_inner(function.operations, function.results)
                bodies.append(Body("branch", (), nodes, single(outputs)))
            chosen = self._operand(operation.inputs[0])
            if operation.kind.endswith("Case"):
                made = patterns.seen_through(operation.inputs[0]).operation
                if made.kind != "Cast" or made.inputs[0].dtype != "bool":  # TensorFlow's choice below 0 is the last one
                    chosen = Call("ops.where", (Call("ops.less", (chosen, 0)), len(bodies) - 1, chosen))
                expression: Expression = Call("ops.switch", (chosen, bodies))
            else:
                if operation.inputs[0].dtype != "bool":
                    chosen = Call("ops.not_equal", (chosen, 0))
                expression = Call("ops.cond", (chosen, *bodies))
            self._bind(expression, operation.outputs)

        self.plans[id(operation)] = run
        return [operation.inputs[0], *taken]

    def _while(self, operation: Operation) -> list[Edge]:
        """A loop that runs as long as something holds."""
        loop, (holds, step) = operation.loop, operation.functions
        assert loop is not None
        if any(edge.dtype == "variant" for edge in loop.initial):
            raise Untranslated("a loop over a TensorArray that does not count its steps, or not from 0 on")
        counted = [
            number
            for number, edge in enumerate(operation.outputs)
            if id(edge) not in self.needed and not self._is_read(operation, number)
        ]
        kept = [number for number in range(len(loop.initial)) if number not in counted]
        results = [step.results[number] for number in kept]
        taken = self._inside(holds, holds.results) + self._inside(step, results)

        def run() -> None:
            initial = tuple(self._operand(loop.initial[number], as_tensor=True) for number in kept)
            bodies = []
            for name, function in (("cond", holds), ("body", step)):
                parameters = tuple(self._parameter(function.inputs[number]) for number in kept)
                nodes, outputs = self._read_inner(
                    function.operations, function.results if function is holds else results
                )
                bodies.append(Body(name, parameters, nodes, outputs[0] if function is holds else tuple(outputs)))
            outputs = [operation.outputs[number] for number in kept]
            self._bind(Call("ops.while_loop", (*bodies, initial)), outputs)

        self.plans[id(operation)] = run
        return [*[loop.initial[number] for number in kept], *taken]

    def _is_read(self, operation: Operation, number: int) -> bool:
        """Say whether anything but what counts it reads what a loop carries."""
        holds, step = operation.functions
        for function, results in ((holds, holds.results), (step, step.results)):
            others = [edge for edge in results if edge is not (function is step and step.results[number])]
            self._plan(function.operations, others)
            own = {id(function.inputs[number])}
            if any(id(edge) in own for edge in self._outer_tensors(function.operations, others, set())):
                return True
            for inner in function.operations:
                self.plans.pop(id(inner), None)
        return False

    def _parameter(self, edge: Edge) -> Value:
        edge.expression = self.flat.value(edge)
        return edge.expression

    def _read_counting_loop(self, operation: Operation) -> list[Edge]:
        """A loop that counts its steps: it reads the items of lists one by one, and writes such items."""
        loop, step = operation.loop, operation.functions[1]
        assert loop is not None
        assert loop.trips is not None
        counters = {id(step.inputs[number]) for number in loop.counters}
        lists: dict[int, tuple[Edge, list[Edge]]] = {}
        for inner in step.operations:
            if inner.kind == "TensorListGetItem" and id(patterns.seen_through(inner.inputs[1])) in counters:
                source = inner.inputs[0]
                if source.shape[:1] == (_size(loop.trips),):
                    lists.setdefault(id(source), (source, []))[1].append(inner.outputs[0])
                    self.left_out.add(id(inner))
        carried = [n for n in range(len(step.inputs)) if n not in loop.counters and n not in loop.written]
        results = [patterns.seen_through(step.results[n]) for n in carried]
        writes = {n: patterns.seen_through(edge) for n, edge in loop.written.items()}
        for number in sorted(loop.last):  # what the last step wrote is carried anyway
            if not any(edge is writes[number] for edge in results):
                raise Untranslated("a loop that keeps what its last step wrote")
        rows = [n for n in sorted(loop.written) if n not in loop.last]
        written = [writes[n] for n in rows]
        taken = self._inside(step, [*results, *written])
        items = {id(edge) for _, edges in lists.values() for edge in edges}
        self._plan(step.operations, [*results, *written])
        used = self._outer_tensors(step.operations, [*results, *written], set())
        counts = any(id(edge) in counters for edge in used)
        taken = [edge for edge in taken if id(edge) not in items]

        def run() -> None:
            trips = _size(loop.trips)
            sources = [self._operand(source) for source, _ in lists.values()]
            initial = [self._operand(loop.initial[n], as_tensor=True) for n in carried]
            parameters = [self._parameter(step.inputs[n]) for n in carried]
            xs = []
            for _, edges in lists.values():
                xs.append(self._parameter(edges[0]))
                for edge in edges[1:]:
                    edge.expression = xs[-1]
            count = None
            if counts:
                count = Value((), "int32", name="i")
                for number in loop.counters:
                    step.inputs[number].expression = count
            nodes, outputs = self._read_inner(step.operations, [*results, *written])
            new, ys = outputs[: len(carried)], outputs[len(carried) :]
            values = [self.flat.value(operation.outputs[n]) for n in (*carried, *rows)]
            if not sources and not ys:
                count = Value((), "int32", name="i") if count is None else count
                body = Body("body", (count, single(parameters)), nodes, single(new))
                expression = Call("ops.fori_loop", (0, trips, body, single(initial)))
            else:
                if count is not None:
                    xs.append(count)
                    sources.append(Call("ops.arange", (trips,), (("dtype", DType("int32")),)))
                body = Body("step", (single(parameters), single(xs)), nodes, (single(new), single(ys)))
                length = () if sources else (("length", trips),)
                expression = Call("ops.scan", (body, single(initial), single(sources)), length)
            self._add(values, expression)
            for number, value in zip((*carried, *rows), values, strict=True):
                operation.outputs[number].expression = value
            for number in loop.last:
                place = next(i for i, edge in enumerate(results) if edge is writes[number])
                self.alone[id(operation.outputs[number])] = values[place]
                self._bind(Call("ops.expand_dims", (values[place], 0)), [operation.outputs[number]])

        self.plans[id(operation)] = run
        return [*[loop.initial[n] for n in carried], *[source for source, _ in lists.values()], *taken]

    # outputs

    def _outputs(self, concrete: Any) -> Expression:
        self.current = Operation("Output", "output", None, [])
        results = iter(self.flat.results)

        def with_structure(tree: Any) -> Expression:
            if isinstance(tree, (tf.Tensor, tf.TensorSpec)):
                return self._operand(next(results), as_tensor=True)
            if isinstance(tree, collections.abc.Mapping):  # in the order in which TensorFlow flattens it
                parts = {name: with_structure(tree[name]) for name in sorted(tree)}
                return {str(name): parts[name] for name in tree}
            if isinstance(tree, (tuple, list)):
                return tuple(with_structure(part) for part in tree)
            return tree

        try:
            return with_structure(concrete.graph.structured_outputs)
        except Untranslated as reason:
            self.missing[f"an output: {reason}"].append("")
            return None


def _between(every: list[Operation], arguments: list[Edge], results: list[Edge]) -> tuple[list[Operation], list[Edge]]:
    """Return the operations that lead from arguments to results, in order, and the other tensors that these take."""
    inside = set(map(id, arguments))
    for operation in every:
        if any(id(edge) in inside for edge in operation.inputs):
            inside.update(map(id, operation.outputs))
    own = set(map(id, arguments))
    listed: dict[int, Operation] = {}
    outside: dict[int, Edge] = {}

    def visit(edge: Edge) -> None:
        if id(edge) in own or edge.static is not None:
            return
        if id(edge) not in inside:
            outside[id(edge)] = edge
            return
        if id(edge.operation) not in listed:
            for source in edge.operation.inputs:
                visit(source)
            listed[id(edge.operation)] = edge.operation

    for edge in results:
        visit(edge)
    return list(listed.values()), list(outside.values())


def _plain_name(name: str) -> str:
    """Return the name of the user's function in that of its rule: `outer.<locals>.f.<locals>.grad`."""
    parts = [part for part in name.split(".") if part != "<locals>"]
    name = parts[-2] if len(parts) > 1 else parts[-1]
    return name if name.isidentifier() else "custom"


def _only_item(operation: Operation) -> Edge | None:
    """Return the list with one item, written by the last step of a loop, that an operation takes the item of."""
    if operation.kind != "StridedSlice" or operation.attribute("shrink_axis_mask") != 1:
        return None
    source = patterns.seen_through(operation.inputs[0])
    loop = source.operation.loop
    is_last = loop is not None and any(source is loop.outputs[number] for number in loop.last)
    return source if is_last and operation.inputs[1].shape == (1,) else None


def _size(edge: Edge) -> Any:
    return edge.static.item()


def _known_size(size: Any) -> int:
    if isinstance(size, Dim):
        raise Untranslated("an open number of indices")
    return int(size)


def _shorten_vector(edge: Edge, other: Edge) -> Edge:
    """Return a vector that was reshaped to meet a tensor, which has the dimensions that the result has."""
    is_met = 2 <= len(edge.shape) <= len(other.shape) and any(size != 1 for size in other.shape[:-1])
    return patterns.leaf(edge) if is_met and edge.static is None else edge


def _static(name: str, edge: Edge) -> Any:
    if edge.static is None:
        raise Untranslated(f"{name} that depends on values")
    return _nested(edge.static.tolist())


def _nested(part: Any) -> Any:
    return tuple(map(_nested, part)) if isinstance(part, list) else part


def _literal(edge: Edge) -> Any:
    if edge.static.ndim == 0:
        return patterns.number(edge.static.item(), edge.dtype)
    return _listed_entries(edge)


def _listed_entries(edge: Edge) -> Any:
    def plain(part: Any) -> Any:
        return [plain(inner) for inner in part] if isinstance(part, list) else patterns.number(part, edge.dtype)

    return plain(edge.static.tolist())


def _default(attribute: Any) -> Any:
    value = attribute.default_value
    kind = value.WhichOneof("value")
    if kind == "list":
        return [*value.list.i, *value.list.s, *value.list.f]
    default = getattr(value, kind) if kind else None
    return default.decode() if isinstance(default, bytes) else default


# what a port is compared with


def run(
    model: Any, inputs: tuple[Any, ...], weights_of: Any, keywords: dict[str, Any] | None = None, training: bool = False
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return what a model computes, the gradients of the weighted sum in its parameters, and its new state."""
    arguments = Arguments(inputs, keywords)
    tensors = arguments.examples
    described = describe_model(model, training, arguments)
    before = {name: variable.numpy() for name, variable in described.variables.items() if name in described.state}
    params = {name: variable for name, variable in described.variables.items() if name not in described.state}

    def compute() -> tuple[Any, Any]:
        every = _objects.as_tuples(described.call(*tensors))
        leaves = [leaf for leaf in _graph.leaves(every) if isinstance(leaf, tf.Tensor)]
        complexes = [leaf for leaf in leaves if leaf.dtype.is_complex]
        parts = [part for leaf in complexes for part in (tf.math.real(leaf), tf.math.imag(leaf))]
        parts += [leaf for leaf in leaves if leaf.dtype.is_floating]
        terms = [tf.reduce_sum(part * tf.cast(weights_of(tuple(part.shape)), part.dtype)) for part in parts]
        return every, tf.add_n([tf.cast(term, terms[0].dtype) for term in terms]) if terms else None

    slopes: dict[str, Any] = {}
    try:
        with tf.GradientTape() as tape:
            tape.watch(list(params.values()))
            outputs, total = compute()
        if params and total is not None:
            gradients = tape.gradient(total, list(params.values()), unconnected_gradients=tf.UnconnectedGradients.ZERO)
            slopes = {name: np.array(tf.convert_to_tensor(g)) for name, g in zip(params, gradients, strict=True)}
    except (LookupError, TypeError, tf.errors.NotFoundError, tf.errors.UnimplementedError):
        # of some kernels TensorFlow has no gradient, or none in float64: values are compared alone
        for name, value in before.items():
            described.variables[name].assign(value)
        outputs, _ = compute()
    state = {name: described.variables[name].numpy() for name in before}
    for name, value in before.items():
        described.variables[name].assign(value)
    plain = (bool, int, float, complex, str)
    outputs = _graph.map_leaves(lambda leaf: leaf if isinstance(leaf, plain) else np.array(leaf), outputs)
    return outputs, slopes, state


def _without_update(part: Call) -> Call:
    kwargs = tuple((name, value) for name, value in part.kwargs if name not in ("momentum", "training"))
    return Call("batch_normalization", part.args, kwargs)


EVALUATED = {"tracked_batch_normalization": _without_update}  # what is something else in evaluation


def to_numpy(value: Any) -> Any:
    """Return an example input as an array."""
    return np.asarray(_tensor(value))
