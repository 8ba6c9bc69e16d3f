"""From a function of JAX to the graph: its jaxpr, equation by equation."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export
from jax.extend import core

from multiop import errors
from multiop.porting import _converters, _graph, _hosts, _objects, _rows
from multiop.porting._graph import Apply, Call, Dim, DType, Expression, Foreign, Graph, Infix, Node, Scope, Value, call
from multiop.porting._rows import Untranslated, single, words
from multiop.porting.jax import models, patterns, primitives, sizes

_INCONCLUSIVE = getattr(jax.errors, "InconclusiveDimensionOperation", None) or jax.core.InconclusiveDimensionOperation
_IGNORED = words(  # where and how an array is kept, and how a product is computed
    "accuracy algorithm branches_platforms differentiated dtype fill_value indices_are_sorted index_dtype mode "
    "out_sharding precision preferred_element_type sharding unique_indices update_consts update_jaxpr weak_type"
)
_INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat2": "jaxpr"}
_INLINED |= {"checkpoint": "jaxpr", "remat": "jaxpr", "custom_lin": "jaxpr"}
# of JAX 0.12: they say themselves what they compute, of which their derivatives are; others have derivatives of their own
_WRITTEN_OUT = ("CheckpointName", "Einsum", "Frexp", "Ldexp", "Nonzero", "RematTraced", "SearchSorted")
_UNCHANGED = ("copy", "copy_p", "optimization_barrier", "sharding_constraint", "device_put", "pvary")
_OF_NUMBERS = ("dynamic_slice", "dynamic_update_slice", "pad", "reduce", "reduce_window")  # whose scalars may be known
_FOLDED = 1 << 22  # the most entries of a constant that is computed while reading
_OF_INTEGERS = ("numpy.ldexp",)  # their result has the dtype of the first operand
_COMPILED = 1000  # the most equations of an original that runs as one program: XLA takes longer than linear time
_HASTE = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
_OF_KEYS = words("random_fold_in random_split slice squeeze reshape dynamic_slice gather broadcast_in_dim")


@dataclasses.dataclass(eq=False)
class Wide:
    """A tensor that broadcasts to a shape, as NumPy would."""

    value: Value
    shape: tuple[Any, ...]

    @property
    def dtype(self) -> str:
        return self.value.dtype


@dataclasses.dataclass(eq=False)
class Constant:
    """An array that broadcasts to a shape."""

    array: Any
    shape: tuple[Any, ...]
    dtype: str


@dataclasses.dataclass(eq=False)
class Size:
    """A number made of open sizes."""

    expression: Any
    dtype: str
    shape: tuple[Any, ...] = ()


class Key:
    """What random numbers are drawn from."""

    def __init__(self) -> None:
        self.is_used = False


def read(
    model: Any,
    inputs: tuple[Any, ...],
    training: bool = False,
    dynamic_shapes: Any = None,
    keywords: dict[str, Any] | None = None,
    partial: bool = False,
) -> Graph:
    """Return the graph of a model of JAX.

    Args:
        model: What `multiop.porting.jax.models` lists.
        inputs: Example inputs, arrays, also in pytrees.
        training: Whether the model is in training mode.
        dynamic_shapes: For each input, `None` or its shape in the terms of `jax.export.symbolic_shape`: `"batch, 3"`,
            which may be that of all arrays in a pytree; by default the first dimension of each input is open, if the
            model can be traced so.
        keywords: None: what is given by name is bound by `functools.partial`.
        partial: Whether a bridge may stay where a primitive has no translation.

    Raises:
        TranslationError: Something has no translation; the message lists all of it.
    """
    if keywords:
        raise errors.ArgumentError(f"bind {', '.join(keywords)} with functools.partial, or give it by position")
    form = models.model_of(model, training)
    leaves, structure = jax.tree.flatten(tuple(inputs))
    arrays, paths = [_array(x) for x in leaves], _paths(structure)
    given = _Inputs(structure, paths)
    if dynamic_shapes is not None:
        dynamic_shapes = [_shape_at(dynamic_shapes, path) for path in paths]
    key = jax.random.key(0) if training else None
    *attempts, last = _shapes(arrays, dynamic_shapes)
    reason = ""
    for texts in attempts:  # what fails with open sizes may work with those of the examples
        try:
            return _graph_of(form, given, sizes.Opened(arrays, texts), key, training, partial)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
    opened = sizes.Opened(arrays, last)
    graph = _graph_of(form, given, opened, key, training, partial)
    if dynamic_shapes is not None:
        opened.refuse_fixed(form.kind)
    if reason:
        warnings.warn(f"all sizes are fixed, since the model does not take others: {reason}", stacklevel=3)
    return graph


def _graph_of(
    form: models.Model, given: _Inputs, opened: sizes.Opened, key: Any, training: bool, partial: bool
) -> Graph:
    """Read a model, again and again, until what it asks about open sizes is settled as in the example."""
    while True:
        try:
            with opened.traced():
                graph = _Reader(form, given, opened.specs, key, training, partial).graph
        except _INCONCLUSIVE as error:
            if not opened.settle(error):
                words = _hosts.cannot_trace("JAX", form.kind, error, tuple(opened.example))
                raise errors.TranslationError(words) from error
            continue
        if not opened.settle_equal():
            graph.guards = opened.guards
            return graph


class _Inputs(NamedTuple):
    """How the inputs are nested: as a pytree of JAX, and where each array is."""

    structure: Any
    paths: list[list[int | str]]


def _paths(structure: Any) -> list[list[int | str]]:
    """Return where each array of the inputs is, if the objects among them are opened."""
    numbered = jax.tree.unflatten(structure, list(np.arange(structure.num_leaves)))
    paths = {int(number): list(path) for path, number in _objects.tensors(_objects.open_objects(numbered))}
    if len(paths) != structure.num_leaves:
        raise errors.ArgumentTypeError("inputs must be arrays, in dicts, tuples, lists or the attributes of objects")
    return [paths[number] for number in range(len(paths))]


def _shape_at(shapes: Any, path: list[int | str]) -> Any:
    """Return what is said about an array, or about what it is in."""
    for key in path:
        if shapes is None or isinstance(shapes, str):
            return shapes
        shapes = shapes[key]
    return shapes


def _array(value: Any) -> Any:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise errors.ArgumentTypeError(
            f"inputs must be arrays, got {type(value).__name__}: bind anything else with functools.partial"
        )
    return jax.numpy.asarray(value)


def _shapes(arrays: list[Any], dynamic_shapes: Any) -> Iterator[list[str | None]]:
    """Yield shapes to trace with: all first dimensions open, then those of the size of the first one, then none."""
    if dynamic_shapes is not None:
        yield list(dynamic_shapes)
        return
    firsts = list(dict.fromkeys(array.shape[0] for array in arrays if array.ndim))
    for count in dict.fromkeys((len(firsts), min(len(firsts), 1), 0)):
        names = dict(zip(firsts[:count], ("batch", *[f"size{i}" for i in range(1, count)]), strict=False))
        yield [
            ", ".join(map(str, (names[array.shape[0]], *array.shape[1:])))
            if array.shape[:1] and array.shape[0] in names
            else None
            for array in arrays
        ]


def _name_of(dtype: Any) -> str:
    return "key" if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key) else str(np.dtype(dtype))


def _number(array: Any) -> Any:
    """Return a scalar as a Python number: the shortest one that is the same in its dtype."""
    array = np.asarray(array)
    number = array.item() if array.dtype.kind != "V" else float(array)
    if isinstance(number, float) and math.isfinite(number):
        short = float(str(array[()]))
        return short if array.dtype.type(short) == array else number
    return number


_HOMES = {"jax.lax": jax.lax, "jax.lax.linalg": jax.lax.linalg}  # where primitives are public


def _jax_as_python(value: Any) -> str | None:
    """Return a parameter of a primitive that is JAX's own as an expression of Python."""
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return f'jax.numpy.dtype("{np.dtype(value)}")'
    home = f"jax.lax.{type(value).__name__}"
    if getattr(jax.lax, type(value).__name__, None) is not type(value):
        return None
    if isinstance(value, enum.Enum):
        return f"{home}.{value.name}"
    fields = [*getattr(value, "_fields", ()), *getattr(value, "__dataclass_fields__", ())]
    inner = ", ".join(f"{field}={_rows.as_python(getattr(value, field), _jax_as_python)}" for field in fields)
    return f"{home}({inner})" if fields else None


class _Reader:
    def __init__(self, model: models.Model, given: _Inputs, specs: list[Any], key: Any, training: bool, partial: bool):
        self.model, self.given, self.training, self.partial = model, given, training, partial
        self.nodes: list[Node] = []
        self.made_by: dict[int, Expression] = {}
        self.known: list[dict[Any, Any]] = [{}]  # expressions that were computed already, in each body
        self.missing: dict[str, list[str]] = collections.defaultdict(list)
        self.is_bridgeable = True  # what has no translation
        self.keys: dict[Any, Key] = {}
        self.rules: list[tuple[Any, list[Any], list[Value]]] = []  # the functions whose own gradients are being read
        self.scopes: tuple[Scope, ...] = ()
        self.where = ""
        self.leaves: dict[str, Value] = {}
        self.params, self.state = models.flat_order(model.params), models.flat_order(model.state)
        with jax.named_scope("multiop"), _hosts.refuse_draws():
            leaves = [
                {name: jax.numpy.asarray(leaf) for name, leaf in arrays.items()}
                for arrays in (model.params, model.state)
            ]
            try:
                closed, shapes = jax.make_jaxpr(self._call, return_shape=True)(*leaves, key, *specs)
            except (TypeError, ValueError, IndexError) as error:
                names = sorted({name for spec in specs for size in spec.shape for name in sizes.symbols_of(size)})
                if not names and not isinstance(error, (jax.errors.JAXTypeError, jax.errors.JAXIndexError)):
                    raise
                raise errors.TranslationError(_hosts.cannot_trace("JAX", model.kind, error, names)) from error
        arguments: list[Any] = []
        for kind, held, kept in (("params", model.params, self.params), ("state", model.state, self.state)):
            for name in sorted(held):
                leaf = jax.numpy.asarray(held[name])
                kept[name] = np.array(leaf)
                self.leaves[name] = Value(tuple(leaf.shape), _name_of(leaf.dtype), kind, name)
                arguments.append(self.leaves[name])
        arguments += [] if key is None else [Key()]
        taken: set[str] = set()
        self.inputs = []
        for (number, *keys), spec in zip(given.paths, specs, strict=True):
            name = model.names[number] if number < len(model.names) else "xyzuvw"[number % 6]
            name = re.sub(r"\W", "_", "_".join(map(str, (name, *keys))))
            name = name if name not in taken else f"{name}_{number}"
            taken.add(name)
            self.inputs.append(Value(tuple(map(sizes.dim, spec.shape)), _name_of(spec.dtype), "input", name))
        arguments += self.inputs
        consts = [self._closed_over(const) for const in closed.consts]
        results = self.run(closed.jaxpr, consts, arguments, (), [True] * len(closed.jaxpr.outvars))
        if self.missing:
            hint = "JAX" if not partial and self.is_bridgeable else ""
            raise errors.TranslationError(_graph.list_missing(self.missing, hint))
        outputs_tree, state_tree = jax.tree.structure(shapes[0]), jax.tree.structure(shapes[1])
        count = outputs_tree.num_leaves
        self.scopes = ()
        results_tree = jax.tree.unflatten(outputs_tree, [self.tensor(result) for result in results[:count]])
        outputs = _structure(_objects.open_objects(results_tree))
        new = jax.tree.unflatten(state_tree, results[count:])
        for name, result in new.items():
            if result is not self.leaves[name]:
                value = self.tensor(result)
                self.nodes.append(Node([Value(value.shape, value.dtype)], value, (), name))
        self.graph = self._finish_graph(outputs)
        self.graph.paths = given.paths

    def _call(self, params: Any, state: Any, key: Any, *arrays: Any) -> Any:
        outputs, state = self.model.call(params, state, key, *jax.tree.unflatten(self.given.structure, arrays))
        for leaf in jax.tree.leaves(outputs):
            if isinstance(leaf, (str, bytes)):
                raise errors.TranslationError(f"the model returns {leaf!r}, which is no array")
        return outputs, state

    # statements

    def made(self, x: Expression) -> Expression:
        """Return the expression that computed a tensor; anything else, or a tensor of the model's, is itself."""
        return self.made_by.get(id(x), x) if isinstance(x, Value) else x

    def bind(self, expression: Expression, out: Value) -> Any:
        """Add the statement that computes an expression, unless it is a tensor, or was computed already."""
        expression = patterns.merge_reshapes(patterns.simplify(expression, self.made), out, self.made)
        if isinstance(expression, Value) or primitives.is_number(expression):
            return expression
        is_drawn = any(isinstance(part, _graph.Name) and part == _graph.SEED for part in _graph.walk(expression))
        key = None if is_drawn else _identity(expression)
        bound = next((known[key, self.scopes] for known in self.known if (key, self.scopes) in known), None)
        if bound is not None:
            return bound
        self.nodes.append(Node([out], expression, self.scopes, None, self.where))
        self.made_by[id(out)] = expression
        if key is not None:
            self.known[-1][key, self.scopes] = out
        return out

    def emit(self, expression: Expression, *outputs: Value) -> list[Value]:
        """Add a statement that has several results."""
        self.nodes.append(Node(list(outputs), expression, self.scopes, None, self.where))
        return list(outputs)

    def tensor(self, entry: Any) -> Value:
        """Return what stands for a variable as a tensor of its whole shape."""
        if isinstance(entry, Value):
            return entry
        if isinstance(entry, Wide):
            out = Value(entry.shape, entry.dtype)
            inner = entry.value
            if (
                all(size == 1 for size in entry.shape[: len(entry.shape) - inner.ndim])
                and entry.shape[len(entry.shape) - inner.ndim :] == inner.shape
            ):
                count = len(entry.shape) - inner.ndim
                return self.bind(call("ops.expand_dims", inner, 0 if count == 1 else tuple(range(count))), out)
            return self.bind(call("ops.broadcast_to", inner, entry.shape), out)
        if isinstance(entry, Size):
            return self.bind(call("ops.cast", sizes.dim(entry.expression), DType(entry.dtype)), Value((), entry.dtype))
        if isinstance(entry, Constant):
            return self._constant(entry)
        raise Untranslated("a random key as a tensor")

    def _constant(self, entry: Constant) -> Value:
        if entry.dtype == "key":
            raise Untranslated("a random key as a tensor")
        out = Value(entry.shape, entry.dtype)
        if entry.array.ndim == 0:
            number, dtype = _number(entry.array), DType(entry.dtype)
            if not entry.shape:
                return self.bind(call("ops.convert_to_tensor", number, dtype=dtype), out)
            if number in (0, 1):
                return self.bind(call("ops.ones" if number else "ops.zeros", entry.shape, dtype=dtype), out)
            return self.bind(call("ops.full", entry.shape, number, dtype=dtype), out)
        inner = Value(tuple(entry.array.shape), entry.dtype)
        if entry.array.size <= 8:
            numbers = [_number(number) for number in entry.array.ravel()]
            listed: Any = np.array(numbers, object).reshape(entry.array.shape).tolist()
            inner = self.bind(call("ops.convert_to_tensor", listed, dtype=DType(entry.dtype)), inner)
        else:
            inner = self._leaf(entry.array)
        return inner if inner.shape == entry.shape else self.tensor(Wide(inner, entry.shape))

    def _leaf(self, array: Any) -> Value:
        """Keep an array that the model closes over, or makes of nothing, with its state."""
        for name, leaf in self.state.items():
            if name.startswith("constant") and leaf.dtype == array.dtype and np.array_equal(leaf, array):
                return self.leaves[name]
        number = 1 + sum(name.startswith("constant") for name in self.leaves)
        name = "constant" if number == 1 else f"constant_{number}"
        self.state[name] = np.array(array)
        self.leaves[name] = Value(tuple(array.shape), _name_of(array.dtype), "state", name)
        return self.leaves[name]

    def _closed_over(self, array: Any) -> Any:
        if _is_key(array):
            return Constant(array, tuple(array.shape), "key")
        array = np.asarray(array)
        return Constant(array, tuple(array.shape), _name_of(array.dtype))

    # equations

    def run(
        self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Any], scopes: tuple[Scope, ...], used: Sequence[bool]
    ) -> list[Any]:
        """Read the equations of a jaxpr whose results are used; return what stands for its results."""
        environment = dict(zip(jaxpr.constvars, consts, strict=True))
        environment |= dict(zip(jaxpr.invars, given, strict=True))

        def entry(variable: Any) -> Any:
            if _is_literal(variable):
                return Constant(np.asarray(variable.val, variable.aval.dtype), (), _name_of(variable.aval.dtype))
            return environment[variable]

        for equation, wanted in reversed(_live(jaxpr, used)[0]):
            own = [scope for scope in self.model.scopes_of(str(equation.source_info.name_stack)) if scope not in scopes]
            frames = getattr(equation.source_info.traceback, "frames", ())
            where = _hosts.own_places((frame.file_name, frame.line_num) for frame in frames)
            self.scopes, self.where = (*scopes, *own), where or self.where
            results = self._results(equation, [entry(variable) for variable in equation.invars], wanted)
            environment |= dict(zip(equation.outvars, results, strict=True))
        return [entry(variable) if is_used else None for variable, is_used in zip(jaxpr.outvars, used, strict=True)]

    def _results(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        scopes, where = self.scopes, self.where
        try:
            return self._translate_equation(equation, entries, used)
        except Untranslated as error:
            reason = str(error)
        except errors.ArgumentTypeError:  # of a converter of the user's
            raise
        except (ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError, TypeError) as error:
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        finally:
            self.scopes, self.where = scopes, where
        try:
            if self.partial:
                return self._bridge_primitive(equation, entries)
            self._foreign(equation)
        except Untranslated as error:
            self.is_bridgeable = False
            reason = reason or str(error)
        self._miss(equation, reason)
        return [
            Key() if _name_of(variable.aval.dtype) == "key" else self._skeleton(variable.aval)
            for variable in equation.outvars
        ]

    def _miss(self, equation: Any, reason: str = "") -> None:
        name = _title(equation)
        self.missing[f"{name}: {reason}" if reason else name].append(self.where)

    def _bridge_primitive(self, equation: Any, entries: list[Any]) -> list[Value]:
        """Leave a bridge to a primitive, if it is a function of its tensors and can be written down."""
        source, modules = self._foreign(equation)
        if len(equation.outvars) == 1 and equation.primitive.multiple_results:
            source += "[0]"
        foreign = Foreign(equation.primitive.name, source, "jax", modules)
        apply = Apply(foreign, tuple(self.tensor(entry) for entry in entries))
        return self.emit(apply, *self._outs(equation))

    def _foreign(self, equation: Any) -> tuple[str, tuple[str, ...]]:
        """Return a primitive as an expression of Python, and the modules that it needs."""
        name = equation.primitive.name
        homes = [home for home in _HOMES if getattr(_HOMES[home], f"{name}_p", None) is equation.primitive]
        has_key = any(_name_of(variable.aval.dtype) == "key" for variable in equation.outvars)
        if name == "pure_callback" and not has_key:
            return _callback(equation)
        if not homes or equation.effects or has_key:
            raise Untranslated("")
        names = [f"x{i + 1}" for i in range(len(equation.invars))]
        given = [*names, *[f"{word}={_rows.as_python(arg, _jax_as_python)}" for word, arg in equation.params.items()]]
        return f"lambda {', '.join(names)}: {homes[0]}.{name}_p.bind({', '.join(given)})", ()

    def _skeleton(self, aval: Any) -> Value:
        return Value(tuple(map(sizes.dim, aval.shape)), _name_of(aval.dtype))

    def _outs(self, equation: Any) -> list[Value]:
        return [self._skeleton(variable.aval) for variable in equation.outvars]

    def _translate_equation(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        name, params = equation.primitive.name, equation.params
        folded = self._fold_constants(equation, entries)
        if folded is not None:
            return folded
        own = _converters.find("jax", name)
        if own is not None:
            return self._row(own, equation, entries, params)
        if name in _UNCHANGED:
            return entries
        if name == "dim_as_value":
            return [Size(params["dim"], _name_of(equation.outvars[0].aval.dtype))]
        if all(isinstance(entry, Size) or _is_scalar(entry) for entry in entries) and entries:
            size = self._size(equation, entries)
            if size is not None:
                return [size]
        if name == "platform_index":  # of branches for platforms, the one for any other is what all compute
            platforms = params["platforms"]
            index = next((i for i, platform in enumerate(platforms) if platform is None or "cpu" in platform), 0)
            return [Constant(np.asarray(index, "int32"), (), "int32")]
        if name == "iota":
            out = self._skeleton(equation.outvars[0].aval)
            line = Value((out.shape[params["dimension"]],), out.dtype)
            line = self.bind(call("ops.arange", line.shape[0], dtype=DType(out.dtype)), line)
            return [self._broadcast(line, out, {"broadcast_dimensions": (params["dimension"],)})]
        if name == "broadcast_in_dim":
            return [self._broadcast(entries[0], self._skeleton(equation.outvars[0].aval), params)]
        if name == "reshape" and params["dimensions"] is None and isinstance(entries[0], (Value, Wide)):
            shape = self._skeleton(equation.outvars[0].aval).shape
            inner = entries[0].value if isinstance(entries[0], Wide) else entries[0]
            more = len(shape) - len(entries[0].shape)
            if more > 0 and shape == (*[1] * more, *entries[0].shape):
                return [Wide(inner, shape)]
        if name == "select_n" and isinstance(entries[0], Constant) and entries[0].array.ndim == 0:
            return [entries[1 + int(entries[0].array)]]
        if name.startswith("random_") or any(isinstance(entry, Key) for entry in entries):
            return self._random(equation, entries, used)
        if name in _INLINED:
            return self._inline_equation(equation, entries, used)
        if name == "call_hi_primitive":
            return self._written_out(equation, entries, used)
        if name in ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"):
            return self._custom(equation, entries, used)
        if name == "custom_linear_solve":
            return self._linear_solve(equation, entries, used)
        if name in ("scan", "while", "cond"):
            return getattr(self, f"_{name}")(equation, entries, used)
        if name in primitives.ENTRYWISE:
            return [self._entrywise(primitives.ENTRYWISE[name], equation, entries, params)]
        if name in primitives.ROWS:
            return self._row(primitives.ROWS[name], equation, entries, params)
        raise Untranslated("")

    def _fold_constants(self, equation: Any, entries: list[Any]) -> list[Any] | None:
        """Compute what depends on constants alone; one number for all entries stays one number."""
        name = equation.primitive.name
        if not all(isinstance(entry, Constant) for entry in entries) or name in ("iota", "dim_as_value"):
            return None
        outs = [variable.aval for variable in equation.outvars]
        scalars = all(entry.dtype != "key" and entry.array.ndim == 0 for entry in entries)
        if name in ("broadcast_in_dim", "reshape") and scalars:
            return [Constant(entries[0].array, tuple(map(sizes.dim, outs[0].shape)), entries[0].dtype)]
        shapes = [size for skeleton in outs for size in skeleton.shape]
        if scalars and name in primitives.ENTRYWISE:
            arrays = [entry.array for entry in entries]
        elif all(isinstance(n, (int, np.integer)) for n in [*shapes, *(s for entry in entries for s in entry.shape)]):
            if sum(math.prod(skeleton.shape) for skeleton in outs) > _FOLDED or not entries:
                return None
            arrays = [x.array if x.dtype == "key" else np.broadcast_to(x.array, x.shape) for x in entries]
        else:
            return None
        operands = [
            array if _is_key(array) else jax.numpy.asarray(array, variable.aval.dtype)
            for array, variable in zip(arrays, equation.invars, strict=True)
        ]
        with jax.ensure_compile_time_eval():
            computed = _evaluate_equation(equation, operands)
        results = []
        for array, aval in zip(computed, outs, strict=True):
            dtype = _name_of(aval.dtype)
            results.append(
                Constant(array if dtype == "key" else np.asarray(array), tuple(map(sizes.dim, aval.shape)), dtype)
            )
        return results

    def _size(self, equation: Any, entries: list[Any]) -> Any:
        """Return a sum, difference or product of sizes, or a size in another dtype."""
        name, dtype = equation.primitive.name, _name_of(equation.outvars[0].aval.dtype)
        if name == "convert_element_type" and dtype != "bool":
            return Size(entries[0].expression, dtype)
        numbers = [entry.expression if isinstance(entry, Size) else _number(entry.array) for entry in entries]
        if not dtype.startswith(("int", "uint")) or any(isinstance(number, float) for number in numbers):
            return None
        if name in ("add", "sub", "mul"):
            a, b = numbers
            return Size(a + b if name == "add" else a - b if name == "sub" else a * b, dtype)
        return None

    def _broadcast(self, entry: Any, out: Value, params: Any) -> Any:
        dims = [int(param) for param in params["broadcast_dimensions"]]
        if isinstance(entry, Constant) and entry.array.ndim == 0:
            return Constant(entry.array, out.shape, entry.dtype)
        if isinstance(entry, (Size, Constant)):
            entry = self.tensor(entry)
        value = entry.value if isinstance(entry, Wide) else entry
        own = dims[len(entry.shape) - value.ndim :]  # the dimensions of the tensor itself, which has fewer in front
        if not own:
            return value if value.shape == out.shape else Wide(value, out.shape)
        first = own[0]
        inner = [1] * (out.ndim - first)
        for size, dim in zip(value.shape, own, strict=True):
            inner[dim - first] = size
        added = tuple(axis for axis in range(first, out.ndim) if axis not in own)
        if added:
            value = self._expand_axes(value, tuple(axis - first for axis in added), tuple(inner))
        return value if value.shape == out.shape else Wide(value, out.shape)

    def _expand_axes(self, value: Value, axes: tuple[int, ...], shape: tuple[Any, ...]) -> Value:
        kept = self._keep_axes(value, axes, shape, 0)
        if kept is not None:
            return kept
        axis: Any = axes if len(axes) > 1 else axes[0] if axes[0] < len(shape) - 1 else -1
        return self.bind(call("ops.expand_dims", value, axis), Value(shape, value.dtype))

    def _keep_axes(self, value: Value, axes: tuple[int, ...], shape: tuple[Any, ...], depth: int) -> Value | None:
        """Return a tensor with more axes by keeping those that its reductions remove, if it is made of such."""
        expression = self.made(value)
        if expression is value or depth > 6 or not isinstance(expression, (Call, Infix)):
            return None
        if _graph.is_call(expression, *patterns._REDUCTIONS):
            x = expression.args[0]
            if patterns.option(expression, "keepdims") or not isinstance(x, Value) or x.ndim != len(shape):
                return None
            if patterns.axes(expression, x) != axes:
                return None
            kwargs = tuple((name, True if name == "keepdims" else arg) for name, arg in expression.kwargs)
            return self.bind(Call(expression.function, expression.args, kwargs), Value(shape, value.dtype))
        is_entrywise = isinstance(expression, Infix) or expression.function.removeprefix("ops.") in _BY_ENTRY
        operands = _graph.values(expression)
        if not is_entrywise or not operands or any(operand.shape != value.shape for operand in operands):
            return None
        replaced = {}
        for operand in operands:
            kept = self._keep_axes(operand, axes, shape, depth + 1)
            if kept is None:
                return None
            replaced[id(operand)] = kept
        changed = _graph.rebuild(expression, lambda x: replaced.get(id(x), x) if isinstance(x, Value) else x)
        return self.bind(changed, Value(shape, value.dtype))

    def _loose(self, entry: Any) -> Any:
        """Return an operand that broadcasts."""
        if isinstance(entry, Wide):
            return entry.value
        if isinstance(entry, Constant) and entry.dtype != "key" and entry.array.ndim == 0:
            return _number(entry.array)
        if isinstance(entry, Size):
            return sizes.dim(entry.expression)
        return self.tensor(entry)

    def _entrywise(self, row: Callable[..., Any], equation: Any, entries: list[Any], params: Any, **more: Any) -> Any:
        out = self._skeleton(equation.outvars[0].aval)
        operands = [self._loose(entry) for entry in entries]
        name = equation.primitive.name
        if any(isinstance(operand, Dim) for operand in operands):
            is_plain = name in ("mul", "div", "add", "sub") and any(isinstance(operand, Value) for operand in operands)
            if not is_plain or not primitives.is_floating(out):
                operands = [self.tensor(a) if isinstance(b, Dim) else b for a, b in zip(entries, operands, strict=True)]
        if not any(isinstance(operand, Value) for operand in operands):
            operands[0] = self.tensor(entries[0])
        if name == "sub" and primitives.is_number(operands[1]) and operands[1] == 0 and isinstance(operands[0], Value):
            return operands[0] if operands[0].shape == out.shape else Wide(operands[0], out.shape)
        if name == "add" and not primitives.is_floating(out):
            for number, other in ((operands[1], operands[0]), (operands[0], operands[1])):
                if primitives.is_number(number) and number == 0:
                    return other if other.shape == out.shape else Wide(other, out.shape)
        if name in ("mul", "div"):
            for number, other in ((operands[1], operands[0]), (operands[0], operands[1])):
                if primitives.is_number(number) and number == 1 and (name == "mul" or number is operands[1]):
                    return other if other.shape == out.shape else Wide(other, out.shape)
        inner = _joint([operand.shape for operand in operands if isinstance(operand, Value)])
        result = Value(inner, out.dtype)
        expression = row(*operands, **self._options(row, params, result, **more))
        bound = self.bind(expression, result)
        if primitives.is_number(bound):
            return Constant(np.asarray(bound, jax.numpy.dtype(out.dtype)), out.shape, out.dtype)
        return bound if bound.shape == out.shape else Wide(bound, out.shape)

    def _options(self, row: Callable[..., Any], params: Any, out: Any, **more: Any) -> dict[str, Any]:
        """Return what a row takes by name; a parameter that it does not take must be one that changes nothing."""
        parameters = inspect.signature(row).parameters
        options = {}
        for name, value in params.items():
            if (name in parameters and parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL) or (
                _converters.is_converter(row) and _rows.takes_all(row)
            ):
                options[name] = _plain(value)
            elif (name not in _IGNORED or _converters.is_converter(row)) and value is not None:
                raise Untranslated(f"with {name}={value}")
        return options | _rows.special(row, out=out, made=self.made, emit=self.emit, **more)

    def _row(self, row: Callable[..., Any], equation: Any, entries: list[Any], params: Any, **more: Any) -> list[Any]:
        outs = self._outs(equation)
        out = tuple(outs) if len(outs) > 1 or (equation.primitive.multiple_results and not more) else outs[0]
        name = equation.primitive.name
        operands: list[Any] = []
        for number, entry in enumerate(entries):
            is_known = isinstance(entry, Constant) and not any(isinstance(size, Dim) for size in entry.shape)
            if number == 1 and is_known and name.startswith(("gather", "scatter")):
                operands.append(np.broadcast_to(entry.array, entry.shape))
                continue
            is_free = name in _OF_NUMBERS or more
            if is_free and (isinstance(entry, Size) or _is_scalar(entry)) and entry.shape == ():
                operands.append(self._loose(entry))
            else:
                operands.append(entry if isinstance(entry, Key) else self.tensor(entry))
        if more:
            operands = [self._cast(operand, out) for operand in operands]
        expression = row(*operands, **self._options(row, params, out, **more))
        if not isinstance(out, tuple):
            return [self.bind(expression[0] if isinstance(expression, tuple) else expression, out)]
        if isinstance(expression, tuple):
            return [self.bind(part, skeleton) for part, skeleton in zip(expression, outs, strict=True)]
        return list(self.emit(expression, *outs))

    def _cast(self, operand: Any, out: Any) -> Any:
        """Return an operand in the dtype in which a function of JAX computes, as that casts it inside."""
        first = out[0] if isinstance(out, tuple) else out
        is_real = isinstance(operand, Value) and not operand.dtype.startswith("complex")
        if not is_real or not primitives.is_floating(first) or operand.dtype == first.dtype:
            return operand
        return self.bind(_rows.cast(operand, first.dtype), Value(operand.shape, first.dtype))

    # functions of functions

    def _inline_equation(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        params = equation.params
        inner = params[_INLINED[equation.primitive.name]]
        jaxpr, consts = (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())
        name = _origin(jaxpr)
        try:
            if name in primitives.NAMED and _takes(primitives.NAMED[name], len(entries)):
                return self._row(primitives.NAMED[name], equation, entries, {}, body=jaxpr)
            if name in primitives.NAMED_ENTRYWISE:
                out = self._skeleton(equation.outvars[0].aval)
                entries = [self._cast(entry, out) if name not in _OF_INTEGERS else entry for entry in entries]
                return [self._entrywise(primitives.NAMED_ENTRYWISE[name], equation, entries, {})]
        except Untranslated:
            if name.startswith("random."):
                raise
        return self.run(jaxpr, [self._closed_over(const) for const in consts], entries, self.scopes, used)

    def _written_out(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        """Read what a primitive that JAX makes of others computes."""
        primitive = equation.params["_prim"]
        kind = type(primitive).__name__
        if kind not in _WRITTEN_OUT:
            raise Untranslated(f"{kind} has a derivative of its own")

        def expand(*leaves: Any) -> Any:
            return primitive.expand(*jax.tree.unflatten(primitive.in_tree, leaves))

        structs = [jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for variable in equation.invars]
        closed = jax.make_jaxpr(expand)(*structs)
        return self.run(closed.jaxpr, list(map(self._closed_over, closed.consts)), entries, self.scopes, used)

    def _random(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        """Follow keys, and translate what is drawn from them; in evaluation mode nothing may be."""
        name = equation.primitive.name
        outs = [_name_of(variable.aval.dtype) for variable in equation.outvars]
        if name in _INLINED:
            inner = equation.params[_INLINED[name]]
            if _origin(getattr(inner, "jaxpr", inner)) not in primitives.NAMED:
                return self._inline_equation(equation, entries, used)
            if not self.training:
                raise Untranslated("random numbers outside of training")
            key = next(entry for entry in entries if isinstance(entry, Key))
            if key.is_used:
                raise Untranslated("a key from which numbers are drawn twice")
            key.is_used = True
            return self._inline_equation(equation, entries, used)
        is_derived = all(skeleton == "key" for skeleton in outs) and any(isinstance(entry, Key) for entry in entries)
        if is_derived and name in _OF_KEYS:  # one that is made twice in the same way is one key
            made_of = [entry.array.tobytes() if isinstance(entry, Constant) else id(entry) for entry in entries]
            made_by = (name, str(sorted(equation.params.items())), *made_of)
            return [self.keys.setdefault((*made_by, i), Key()) for i in range(len(outs))]
        raise Untranslated("")

    def _custom(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        """A function with a derivative of its own: JAX's are ops, or their derivative is that of their equations."""
        closed = equation.params["call_jaxpr"]
        jaxpr = closed.jaxpr
        name = _function_name(jaxpr)
        row = primitives.NAMED_ENTRYWISE.get(_origin(jaxpr))
        if row is not None:
            return [self._entrywise(row, equation, entries, {})]
        if any(isinstance(entry, Key) for entry in entries):
            raise Untranslated("with a random key")

        def compute(inner: list[Any]) -> list[Any]:
            return self.run(
                jaxpr, [self._closed_over(const) for const in closed.consts], inner, self.scopes, [True] * len(used)
            )

        return self._with_own_gradient(equation, entries, compute, (name, str(jaxpr)), bool(_origin(jaxpr)))

    def _linear_solve(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        """A solution of a linear system, whose gradient is another solution, however both are found."""
        lengths, jaxprs = equation.params["const_lengths"], equation.params["jaxprs"]
        start, rest = lengths.matvec + lengths.vecmat, sum(lengths)

        def compute(inner: list[Any]) -> list[Any]:
            consts = [self._closed_over(const) for const in jaxprs.solve.consts]
            own = [*inner[start : start + lengths.solve], *inner[rest:]]
            return self.run(jaxprs.solve.jaxpr, consts, own, self.scopes, [True] * len(used))

        if jaxprs.transpose_solve is None:  # JAX has no gradient either
            return compute(entries)
        return self._with_own_gradient(equation, entries, compute, ("linear_solve", str(jaxprs)), True)

    def _with_own_gradient(
        self, equation: Any, entries: list[Any], compute: Any, what: tuple[str, str], is_derivable: bool
    ) -> list[Any]:
        """The rule is what JAX's reverse mode makes of the function: what depends on the gradient from above.

        A rule that is made of the function itself would have no end: two deep, the function is written without its rule
        if it `is_derivable` without.
        """
        for rule, operands, results in self.rules:
            if rule == what and all(map(_is_same, operands, entries)):
                return list(results)  # the rule uses what the function returns
        if sum(rule[0] == what[0] for rule, _, _ in self.rules) > 1 and is_derivable:
            return compute(entries)
        if sum(rule == what for rule, _, _ in self.rules) > 2:
            raise Untranslated("its derivative is made of itself")
        outs = self._outs(equation)
        given = [None if isinstance(entry, Constant) else self.tensor(entry) for entry in entries]
        parameters = [Value(operand.shape, operand.dtype) for operand in given if operand is not None]
        cotangents = [Value(skeleton.shape, skeleton.dtype) for skeleton in outs]
        pulled = _pullback(equation, [operand is not None for operand in given])
        if any(isinstance(const, jax.core.Tracer) for const in pulled.consts):  # of a trace that is over
            if is_derivable:
                return compute(entries)
            raise Untranslated("its rule holds on to what it was traced with")
        with self._inside(is_closed=True) as nodes:
            fresh = iter(parameters)
            inner = [entry if operand is None else next(fresh) for operand, entry in zip(given, entries, strict=True)]
            scopes = self.scopes
            outputs = [self.tensor(entry) for entry in compute(inner)]
            arguments = [entry for entry, operand in zip(inner, given, strict=True) if operand is not None]
            arguments += [
                cotangent for cotangent, out in zip(cotangents, equation.outvars, strict=True) if _is_inexact(out.aval)
            ]
            arguments += [entry for entry, operand in zip(inner, given, strict=True) if operand is None]
            closed_over = [self._closed_over(const) for const in pulled.consts]
            self.rules.append((what, inner, outputs))
            slopes = self.run(pulled.jaxpr, closed_over, arguments, scopes, [True] * len(pulled.jaxpr.outvars))
            self.rules.pop()
            pulled_back = iter([self.tensor(slope) for slope in slopes])
            avals = [variable.aval for variable, entry in zip(equation.invars, given, strict=True) if entry is not None]
            gradients = [next(pulled_back) if _is_inexact(aval) else None for aval in avals]
        dependent = set(map(id, cotangents))
        rule_nodes = []
        for node in nodes:
            if any(id(value) in dependent for value in _graph.values(node.expression)):
                dependent.update(map(id, node.outputs))
                rule_nodes.append(node)
        ahead = [node for node in nodes if node not in rule_nodes]
        rule_nodes = _graph.without_dead(rule_nodes, gradients)
        used = {id(value) for node in rule_nodes for value in _graph.values(node.expression)}
        used |= set(map(id, _graph.values(gradients)))
        ahead = _graph.without_dead(ahead, [*outputs, *[y for node in ahead for y in node.outputs if id(y) in used]])
        residuals = [parameter for parameter in parameters if id(parameter) in used]
        residuals += [y for node in ahead for y in node.outputs if id(y) in used]
        name, slopes = re.sub(r"\W", "_", what[0]).strip("_") or "function", single(gradients)
        custom = _graph.Custom(name, parameters, ahead, single(outputs), residuals, cotangents, rule_nodes, slopes)
        return self.emit(_graph.Apply(custom, tuple(operand for operand in given if operand is not None)), *outs)

    @contextlib.contextmanager
    def _inside(self, is_closed: bool = False) -> Iterator[list[Node]]:
        """Collect the statements of a function inside of the source; one that is closed uses none from around it."""
        around, known = self.nodes, self.known
        self.nodes, self.known = [], [*([] if is_closed else known), {}]
        try:
            yield self.nodes
        finally:
            self.nodes, self.known = around, known

    def _function(
        self, name: str, parameters: Expression, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], used: Any
    ) -> tuple[_graph.Body, list[Value]]:
        """Read a jaxpr as a function; its outputs are still to be arranged."""
        with self._inside() as nodes:
            results = self.run(jaxpr, consts, arguments, self.scopes, used)
            outputs = [self.tensor(result) for result, is_used in zip(results, used, strict=True) if is_used]
        return _graph.Body(name, parameters, nodes, None), outputs

    def _scan(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        params = equation.params
        body = params["jaxpr"]
        if "ft_in" in params:  # from JAX 0.11 on
            count, carried, _ = (len(list(part)) for part in params["ft_in"].unpack())
        else:
            count, carried = params["num_consts"], params["num_carry"]
        jaxpr = body.jaxpr
        consts, init, xs = entries[:count], entries[count : count + carried], entries[count + carried :]
        # what is carried along for nothing but itself is left out
        keeps = list(used[:carried])
        while True:
            needed = _live(jaxpr, [*keeps, *used[carried:]])[1]
            now = [a or b for a, b in zip(keeps, needed[count : count + carried], strict=True)]
            if now == keeps:
                break
            keeps = now
        takes = needed[count + carried :]
        if any(isinstance(entry, Key) for entry, kept in zip([*init, *xs], [*keeps, *takes], strict=True) if kept):
            raise Untranslated("random numbers inside of it")
        starts = [self.tensor(entry) if kept else None for entry, kept in zip(init, keeps, strict=True)]
        rows = [self.tensor(entry) if kept else None for entry, kept in zip(xs, takes, strict=True)]
        invars = jaxpr.invars
        carry = [self._skeleton(v.aval) for v in invars[count : count + carried]]
        parts = [self._skeleton(v.aval) for v in invars[count + carried :]]
        listed = [entry for entry, kept in zip(carry, keeps, strict=True) if kept]
        taken = [entry for entry, kept in zip(parts, takes, strict=True) if kept]
        wanted = [*keeps, *used[carried:]]
        outs = [skeleton if kept else None for skeleton, kept in zip(self._outs(equation), wanted, strict=True)]
        results = [skeleton for skeleton in outs if skeleton is not None]
        parameters = (single(listed), single(taken)) if listed else single(taken)
        name = "step" if listed else "row"
        body_consts = [self._closed_over(const) for const in body.consts]
        function, outputs = self._function(name, parameters, jaxpr, body_consts, [*consts, *carry, *parts], wanted)
        given = single([row for row in rows if row is not None])
        ys = single(outputs[len(listed) :])
        length = sizes.dim(params["length"])
        counts = not taken and ys is None and isinstance(length, int)
        is_used = [entry for entry, kept in zip(used, keeps, strict=False) if kept]
        counted = self._counter(outputs, starts, listed, is_used) if counts else None
        if not listed:
            if not taken:
                raise Untranslated("a loop over nothing")
            function.outputs = ys
            expression: Expression = Call("ops.map", (function, given))
            if params["reverse"]:
                raise Untranslated("in reverse")
        elif counted:
            place, start = counted
            rest = [entry for i, entry in enumerate(listed) if i != place]
            function.name, function.parameters = "body", (listed[place], single(rest))
            function.outputs = single([entry for i, entry in enumerate(outputs) if i != place])
            others = [other for i, other in enumerate(filter(None, starts)) if i != place]
            expression = Call("ops.fori_loop", (start, start + length, function, single(others)))
            results = [entry for i, entry in enumerate(results) if i != place]
        else:
            function.outputs = (single(outputs[: len(listed)]), ys)
            first = single([start for start in starts if start is not None])
            kwargs = (("length", None if taken else length), ("reverse", bool(params["reverse"])))
            expression = Call("ops.scan", (function, first, given), kwargs)
        self.emit(expression, *results)
        return outs

    def _counter(
        self, outputs: list[Value], starts: list[Any], listed: list[Value], used: list[bool]
    ) -> tuple[int, int] | None:
        """Return which of the tensors that a loop carries counts its steps, and from where."""
        given = [start for start in starts if start is not None]
        if len(given) < 2:
            return None
        for place, (start, before, after) in enumerate(zip(given, listed, outputs, strict=False)):
            first, step = self.made(start), self.made(after)
            is_counted = isinstance(step, Infix) and step.operator == "+" and step.left is before and step.right == 1
            is_known = _graph.is_call(first, "ops.convert_to_tensor") and type(first.args[0]) is int
            if is_counted and not used[place] and is_known:
                return place, first.args[0]
        return None

    def _while(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        params = equation.params
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        first, second = params["cond_nconsts"], params["body_nconsts"]
        carry = [self.tensor(entry) for entry in entries[first + second :]]
        outs = self._outs(equation)
        is_mapped = bool(cond.out_avals[0].shape)  # by `vmap`: each row stops by itself

        def run(closed: Any, consts: list[Any], own: list[Value]) -> list[Value]:
            hoisted = [self._closed_over(const) for const in closed.consts]
            every = [True] * len(closed.jaxpr.outvars)
            return list(map(self.tensor, self.run(closed.jaxpr, hoisted, [*consts, *own], self.scopes, every)))

        def choose(holds: Value, new: Value, old: Value) -> Value:
            more = tuple(range(holds.ndim, new.ndim))
            condition = self._expand_axes(holds, more, (*holds.shape, *[1] * len(more))) if more else holds
            return self.tensor(self.bind(call("ops.where", condition, new, old), Value(new.shape, new.dtype)))

        own = self._outs(equation)
        with self._inside() as nodes:
            (holds,) = run(cond, entries[:first], own)
            if is_mapped:
                holds = self.bind(call("ops.any", holds), Value((), "bool"))
        functions = [_graph.Body("holds", tuple(own), nodes, holds)]
        own = self._outs(equation)
        with self._inside() as nodes:
            outputs = run(body, entries[first : first + second], own)
            if is_mapped:
                (holds,) = run(cond, entries[:first], own)
                outputs = [choose(holds, new, old) for new, old in zip(outputs, own, strict=True)]
        functions.append(_graph.Body("body", tuple(own), nodes, tuple(outputs)))
        self.emit(Call("ops.while_loop", (*functions, tuple(carry))), *outs)
        return list(outs)

    def _cond(self, equation: Any, entries: list[Any], used: list[bool]) -> list[Any]:
        index, branches = entries[0], equation.params["branches"]
        if isinstance(index, Constant):
            chosen = branches[min(max(int(index.array), 0), len(branches) - 1)]
            consts = [self._closed_over(const) for const in chosen.consts]
            return self.run(chosen.jaxpr, consts, entries[1:], self.scopes, used)
        outs = [skeleton if kept else None for skeleton, kept in zip(self._outs(equation), used, strict=True)]
        functions = []
        for branch in branches:
            consts = [self._closed_over(const) for const in branch.consts]
            function, outputs = self._function("branch", (), branch.jaxpr, consts, entries[1:], used)
            function.outputs = single(outputs)
            functions.append(function)
        index = self.tensor(index)
        cast = self.made(index)
        if _graph.is_call(cast, "ops.cast") and isinstance(cast.args[0], Value) and cast.args[0].dtype == "bool":
            expression = Call("ops.cond", (cast.args[0], functions[1], functions[0]))
        else:
            expression = Call("ops.switch", (index, functions))
        self.emit(expression, *[skeleton for skeleton in outs if skeleton is not None])
        return outs

    # what is left to do when all is read

    def _finish_graph(self, outputs: Expression) -> Graph:
        nodes = self._merge_tracked_norms(_graph.without_dead(self.nodes, outputs))
        nodes = _graph.without_dead(nodes, outputs)
        counts = _graph.count_uses(nodes, outputs)

        def written(part: Expression) -> Expression:
            return patterns.dropout(part, self.made, counts) or patterns.einsum_as_matmul(part, self.made)

        for node in nodes:
            node.expression = _graph.rebuild(node.expression, written)
            if len(node.outputs) == 1:
                self.made_by[id(node.outputs[0])] = node.expression
            linear = patterns.linear(node.expression, self.made, lambda part: getattr(part, "kind", "") == "params")
            node.expression = node.expression if linear is None else linear
        for node in nodes:
            node.expression = _graph.rebuild(node.expression, patterns.with_slope)
        nodes = _graph.without_dead(nodes, outputs)
        model = self.model
        return Graph(model.kind, self.inputs, self.params, self.state, nodes, outputs, self.leaves, model.framework)

    def _merge_tracked_norms(self, nodes: list[Node]) -> list[Node]:
        """Put a normalization by the batch and the new statistics into one statement, which has an evaluation mode."""
        statements = list(nodes)
        updates = {node.update: node for node in nodes if node.update is not None}
        for number, node in enumerate(nodes):
            if not _graph.is_call(node.expression, "ops.batch_normalization"):
                continue
            x, mean, variance, _, bias, scale, epsilon = node.expression.args
            axes = tuple(range(x.ndim - 1))
            moments = [self.made(mean), self.made(variance)]
            if not all(
                _graph.is_call(moment, op) and moment.args[0] is x and patterns.axes(moment, x) == axes
                for moment, op in zip(moments, ("ops.mean", "ops.var"), strict=True)
            ):
                continue
            fits = {name: self._average(name, update) for name, update in updates.items() if update in statements}
            of_mean = next((name for name, fit in fits.items() if fit and fit[1] is mean), None)
            of_variance = next((name for name, fit in fits.items() if fit and fit[1] is variance), None)
            if of_mean is None or of_variance is None or fits[of_mean][0] != fits[of_variance][0]:
                continue
            path = of_mean.rpartition(".")[0]
            if (of_mean, of_variance) != (f"{path}.mean".strip("."), f"{path}.var".strip(".")):
                continue
            kwargs = (("mean", self.leaves[of_mean]), ("var", self.leaves[of_variance]), ("scale", scale))
            kwargs += (("bias", bias), ("momentum", fits[of_mean][0]), ("epsilon", epsilon))
            expression = Call("tracked_channels_last_batch_norm", (x,), (*kwargs, ("training", _graph.TRAINING)))
            outputs = [*node.outputs, Value((), "dict")]
            statements[number] = Node(outputs, expression, node.scopes, path, node.where)
            merged = (updates[of_mean], updates[of_variance])
            statements = [statement for statement in statements if not any(statement is each for each in merged)]
        return statements

    def _average(self, name: str, update: Node) -> tuple[float, Value] | None:
        """Return the momentum of a moving average of a leaf of the state, and what it takes in."""
        expression = self.made(update.expression)
        if _graph.is_call(expression, "ops.stop_gradient"):
            expression = self.made(expression.args[0])
        if not patterns.is_infix(expression, "+"):
            return None
        momentum, old = patterns.factors(expression.left, self.made)
        share, new = patterns.factors(expression.right, self.made)
        if len(old) != 1 or len(new) != 1 or old[0] is not self.leaves[name]:
            return None
        return (momentum, new[0]) if math.isclose(momentum + share, 1, rel_tol=1e-6) else None


_BY_ENTRY = set(
    "abs add cast ceil cos cosh divide equal exp expm1 floor greater greater_equal isfinite less less_equal log log1p "  # noqa: SIM905
    "logical_and logical_not logical_or maximum minimum multiply negative not_equal power reciprocal rsqrt sigmoid "
    "sign sin sqrt square stop_gradient subtract tanh where".split()
)


def _is_literal(variable: Any) -> bool:
    return hasattr(variable, "val")


def _is_key(array: Any) -> bool:
    return isinstance(array, jax.Array) and jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)


def _is_same(entry: Any, other: Any) -> bool:
    """Say whether two operands are the same tensor, or the same number."""
    if _is_scalar(entry) and _is_scalar(other):
        return bool(entry.array == other.array) and entry.shape == other.shape
    return entry is other


def _is_scalar(entry: Any) -> bool:
    return isinstance(entry, Constant) and entry.dtype != "key" and entry.array.ndim == 0


def _evaluate_equation(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """Return the results of an equation for some operands."""
    variables = [core.Var(variable.aval) for variable in equation.invars]
    alone = equation.replace(invars=variables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a jaxpr should say which function it is made of
        jaxpr = core.Jaxpr((), variables, equation.outvars, [alone], equation.effects)
    return list(jax.core.eval_jaxpr(jaxpr, (), *operands))


def _pullback(equation: Any, is_open: list[bool]) -> Any:
    """Return the jaxpr of the gradients of an equation in its open operands.

    It takes these operands, the gradients of the results, and the operands that are constant.
    """
    operands = [jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for variable in equation.invars]
    inexact = [_is_inexact(variable.aval) for variable in equation.invars]
    results = [_is_inexact(variable.aval) for variable in equation.outvars]
    upstream = [
        jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)
        for variable in equation.outvars
        if _is_inexact(variable.aval)
    ]

    def arrange(opened: Sequence[Any], fixed: Sequence[Any]) -> list[Any]:
        sources = iter(opened), iter(fixed)
        return [next(sources[0] if is_opened else sources[1]) for is_opened in is_open]

    def gradients(opened: Any, upstream: Any, fixed: Any) -> Any:
        every = arrange(opened, fixed)
        chosen = [i for i, is_opened in enumerate(is_open) if is_opened and inexact[i]]

        def function(*differentiated: Any) -> list[Any]:
            replaced = dict(zip(chosen, differentiated, strict=True))
            computed = _evaluate_equation(equation, [replaced.get(i, operand) for i, operand in enumerate(every)])
            return [result for result, is_inexact in zip(computed, results, strict=True) if is_inexact]

        _, pull = jax.vjp(function, *[every[i] for i in chosen])
        return pull(list(upstream))

    opened = [operand for operand, is_one in zip(operands, is_open, strict=True) if is_one]
    fixed = [operand for operand, is_one in zip(operands, is_open, strict=True) if not is_one]
    return jax.make_jaxpr(gradients)(opened, upstream, fixed)


def _live(jaxpr: Any, used: Sequence[bool]) -> tuple[list[tuple[Any, list[bool]]], list[bool]]:
    """Return the equations that some results depend on, the last one first, with their results, and which operands."""
    needed = {x for x, is_used in zip(jaxpr.outvars, used, strict=True) if is_used and not _is_literal(x)}
    live = []
    for equation in reversed(jaxpr.eqns):
        wanted = [variable in needed for variable in equation.outvars]
        if any(wanted):
            needed.update(variable for variable in equation.invars if not _is_literal(variable))
            live.append((equation, wanted))
    return live, [variable in needed for variable in jaxpr.invars]


def _is_inexact(aval: Any) -> bool:
    return bool(jax.dtypes.issubdtype(aval.dtype, np.inexact))


def _takes(row: Callable[..., Any], count: int) -> bool:
    """Say whether a row takes so many operands."""
    return len(set(inspect.signature(row).parameters) - {"body", "emit", "made", "out"}) == count


def _origin(jaxpr: Any) -> str:
    """Return the part of JAX and the name of one of its own functions, such as `nn.relu`; of others nothing."""
    info = str(getattr(getattr(jaxpr, "debug_info", None), "func_src_info", ""))
    origin = re.match(r"(\w+) at .*[/\\]jax[/\\]_src[/\\](\w+)", info)
    return f"{origin[2]}.{origin[1]}" if origin else ""


def _callback(equation: Any) -> tuple[str, tuple[str, ...]]:
    """Return a call of a Python function as an expression, and the module that the function is in."""
    callback = equation.params["callback"]
    function, structure = getattr(callback, "callback_func", None), getattr(callback, "in_tree", None)
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    home: Any = sys.modules.get(module or "")
    for part in name.split("."):
        home = getattr(home, part, None)
    if function is None or home is not function or structure is None:
        raise Untranslated("of a function that is in no module, so that no source can name it")
    names = [f"x{i + 1}" for i in range(len(equation.invars))]
    args, kwargs = jax.tree.unflatten(structure, list(map(_Text, names)))
    given = [_rows.as_python(arg, _text) for arg in args]
    given += [f"{word}={_rows.as_python(arg, _text)}" for word, arg in kwargs.items()]
    known = {
        sizes.dim(size).text: f"x{i + 1}.shape[{axis}]"
        for i, variable in reversed(list(enumerate(equation.invars)))
        for axis, size in enumerate(variable.aval.shape)
        if isinstance(sizes.dim(size), Dim)
    }
    specs = []
    for variable in equation.outvars:
        extents = [sizes.dim(size) for size in variable.aval.shape]
        if any(isinstance(size, Dim) and size.text not in known for size in extents):
            raise Untranslated("whose result has a size of its own")
        shape = "".join(f"{known[size.text] if isinstance(size, Dim) else size}, " for size in extents)
        specs.append(f'jax.ShapeDtypeStruct(({shape.strip()}), jax.numpy.dtype("{_name_of(variable.aval.dtype)}"))')
    given_text, names_text = ", ".join(given), ", ".join(names)
    call_text = f"lambda {names_text}: jax.tree.leaves({module}.{name}({given_text}))"
    method = equation.params.get("vmap_method")
    vmapped = f', vmap_method="{method}"' if method else ""
    return f"lambda {names_text}: jax.pure_callback({call_text}, [{', '.join(specs)}], {names_text}{vmapped})", (
        module,
    )


class _Text(str):
    """The name of an operand in a source."""


def _text(value: Any) -> str | None:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_rows.as_python(part, _text)}" for key, part in value.items()) + "}"
    return str(value) if isinstance(value, _Text) else None


def _function_name(jaxpr: Any) -> str:
    info = getattr(jaxpr, "debug_info", None)
    return str(getattr(info, "func_src_info", "")).partition(" at ")[0]


def _title(equation: Any) -> str:
    """Return what a user would call an equation."""
    name = equation.primitive.name
    if name.startswith("custom_"):
        inner = equation.params.get("call_jaxpr") or equation.params.get("fun_jaxpr")
        return f"{name.removesuffix('_call')} {_function_name(getattr(inner, 'jaxpr', inner))}".strip()
    if name in _INLINED:
        return str(equation.params.get("name", name))
    return name


def _plain(value: Any) -> Any:
    """Return an option with sizes as ints and `Dim`s."""
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return tuple(_plain(part) for part in value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return value if hasattr(value, "name") else int(value)
    return sizes.dim(value) if export.is_symbolic_dim(value) else value


def _joint(shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the shape that shapes broadcast to."""
    ndim = max(map(len, shapes))
    result = []
    for axis in range(-ndim, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
        result.append(next((size for size in sizes if size != 1), 1))
    return tuple(result)


def _identity(expression: Expression) -> Any:
    """Return what two expressions have in common if they are the same."""
    if isinstance(expression, (Value, _graph.Body, _graph.Custom)):
        return id(expression)
    unfolded = _graph.unfold(expression)
    if unfolded is None:
        return (type(expression).__name__, repr(expression))
    return (unfolded.label, *map(_identity, unfolded.parts))


def _structure(tree: Any) -> Expression:
    """Return what the model returns as tuples and dicts."""

    def leaf(x: Any) -> Any:
        if isinstance(x, (bool, int, float, complex, np.generic)):
            return jax.numpy.asarray(x)
        is_known = x is None or isinstance(x, (Value, np.ndarray, jax.Array))
        return x if is_known else tuple(map(_structure, jax.tree.leaves(x)))

    return _objects.as_tuples(tree, leaf)


def run(
    model: Any, inputs: tuple[Any, ...], weights: Any, training: bool = False
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return what a model computes, the gradients of the weighted sum in its parameters, and its new state.

    The gradient in a complex parameter is the conjugate of what JAX gives.
    """
    form = models.model_of(model, training)
    params = {name: jax.numpy.asarray(leaf) for name, leaf in form.params.items()}
    state = {name: jax.numpy.asarray(leaf) for name, leaf in form.state.items()}
    key = jax.random.key(0) if training else None

    def total(params: Any, *arrays: Any) -> Any:
        outputs, new = form.call(params, state, key, *arrays)
        outputs = _structure(_objects.open_objects(outputs))
        leaves = _graph.leaves(outputs)
        parts = [part for leaf in leaves if jax.numpy.iscomplexobj(leaf) for part in (leaf.real, leaf.imag)]
        parts += [leaf for leaf in leaves if jax.numpy.issubdtype(leaf.dtype, np.floating)]
        terms = [jax.numpy.sum(part * jax.numpy.asarray(weights(part.shape), part.dtype)) for part in parts]
        return sum(terms[1:], terms[0]) if terms else jax.numpy.zeros(()), (outputs, new)

    def of_values(params: Any, *arrays: Any) -> Any:
        return total(params, *arrays), {}

    function: Any = jax.value_and_grad(total, has_aux=True) if params else of_values
    # as arguments: a division of constants by 0 would end the process
    arrays = jax.tree.map(jax.numpy.asarray, tuple(inputs))
    try:
        traced = jax.jit(function).trace(params, *arrays)
    except (NotImplementedError, ValueError):  # JAX has no gradient, as of a `while_loop`: values are compared alone
        function = of_values
        traced = jax.jit(function).trace(params, *arrays)
    if len(traced.jaxpr.jaxpr.eqns) < _COMPILED:  # else each operation would be compiled by itself
        function = traced.lower().compile(compiler_options=_HASTE)
    (_, (outputs, new)), gradients = function(params, *arrays)
    gradients = jax.tree.map(jax.numpy.conj, gradients)  # as PyTorch, TensorFlow and multiop have complex gradients
    return jax.tree.map(np.asarray, (outputs, gradients, new))


def to_numpy(value: Any) -> Any:
    """Return an example input as an array."""
    return np.asarray(_array(value))


def _without_update(part: Call) -> Call:
    of = dict(part.kwargs)
    args = (part.args[0], of["mean"], of["var"], -1, of["bias"], of["scale"], of["epsilon"])
    return Call("ops.batch_normalization", args)


EVALUATED = {"tracked_channels_last_batch_norm": _without_update}  # what is something else in evaluation
