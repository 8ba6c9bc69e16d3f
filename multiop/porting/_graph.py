"""The graph that the readers fill and the printer reads: statements in the terms of multiop, each in its submodule.

An expression is a Python literal, a tuple or a list of expressions, or one of the classes below. A function in it is a
`Body` or a `Custom`. The scopes of statements inside of a function are full paths, as everywhere.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Expression: TypeAlias = Any
CONDITIONS = ("==", "!=", "<", "<=", ">", ">=", "and", "or")  # operators between numbers of Python


@dataclasses.dataclass(frozen=True)
class Dim:
    """A size that is open: an expression of symbols, such as `16*batch`."""

    text: str
    symbols: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Number:
    """A number that is computed from open sizes by operators and functions of Python: `Infix` and `Call`s of `Dim`s."""

    expression: Expression


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor: computed (`"local"`), an `"input"` of the model, or a leaf of its `"params"` or `"state"`."""

    shape: tuple[Any, ...]  # ints and Dims
    dtype: str
    kind: str = "local"
    name: str = ""  # the path of a leaf, the name of an input, a hint for the name of a variable
    own: str = ""  # the variable of the model's source that holds it

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@dataclasses.dataclass(frozen=True)
class Name:
    """A name of the function that is being printed."""

    text: str


@dataclasses.dataclass(frozen=True)
class Path:
    """The name of a submodule, as text: a function that stands for several submodules is told which one it is."""

    text: str


TRAINING = Name("training")
SEED = Name("seed")


@dataclasses.dataclass(frozen=True)
class DType:
    """A dtype; one that is the model's own is printed as the dtype of a tensor at hand, so that it stays open."""

    name: str
    is_open: bool = False  # whether it is that of a tensor at hand in any case


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit of a dtype: what `finfo` or `iinfo` says of the dtype that there is at run time."""

    function: str
    dtype: Expression
    name: str


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a function of `ops` or `random`, or of a function of `multiop.porting._layers`."""

    function: str
    args: tuple[Expression, ...] = ()
    kwargs: tuple[tuple[str, Expression], ...] = ()


@dataclasses.dataclass(frozen=True)
class Infix:
    """An operator between two expressions."""

    operator: str
    left: Expression
    right: Expression


@dataclasses.dataclass(frozen=True)
class Item:
    """`x[key]`, where the key holds ints, slices of ints, `None` and `Ellipsis`."""

    x: Expression
    key: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Scope:
    """One call of a submodule."""

    key: str  # differs between two calls of one submodule
    path: str  # with `*` at an end: the leaves that begin or end so, of several submodules that are written as one
    kind: str  # the name of its class
    is_container: bool
    ending: str = ""  # how the names in it end, where another submodule has the same ones with another ending


@dataclasses.dataclass(eq=False)
class Node:
    """A statement: the values that it computes, and the leaf or branch of the state that its last result replaces."""

    outputs: list[Value]
    expression: Expression
    scopes: tuple[Scope, ...] = ()
    update: str | None = None
    where: str = ""  # the user's files and lines, from the innermost outwards


@dataclasses.dataclass(eq=False)
class Body:
    """A function inside of the source; what it uses of the function around it, it closes over."""

    name: str  # a hint: "step", "body", "branch"
    parameters: Expression  # Values, in tuples or lists where the caller passes these; `None` where it passes `None`
    nodes: list[Node]
    outputs: Expression


@dataclasses.dataclass(eq=False)
class Custom:
    """A function with a gradient of its own."""

    name: str
    parameters: list[Value]
    nodes: list[Node]
    outputs: Expression
    residuals: list[Value]  # what of `parameters` and of the results of `nodes` the rule uses
    cotangents: list[Value]  # one per leaf of the outputs
    rule_nodes: list[Node]
    gradients: Expression  # one per parameter; `None` for what has none

    @property
    def rule(self) -> Body:
        """The rule, a function that closes over the residuals."""
        return Body("grad", tuple(self.cotangents), self.rule_nodes, self.gradients)


@dataclasses.dataclass(frozen=True)
class Foreign:
    """A function of the original's framework that has no translation: a bridge to it stays."""

    name: str
    source: str  # an expression of Python
    framework: str  # the name of its backend, and of what has to be imported
    modules: tuple[str, ...] = ()  # what else has to be


@dataclasses.dataclass(frozen=True, eq=False)
class Apply:
    """A call of a `Body`, a `Custom` or a `Foreign`."""

    function: Body | Custom | Foreign
    args: tuple[Expression, ...]


@dataclasses.dataclass(eq=False)
class Graph:
    """A model: its inputs, its leaves, its statements in order, and the structure of what it returns."""

    kind: str
    inputs: list[Value]
    params: dict[str, np.ndarray[Any, Any]]
    state: dict[str, np.ndarray[Any, Any]]
    nodes: list[Node]
    outputs: Expression
    leaves: dict[str, Value]
    framework: str
    paths: list[list[int | str]] | None = None  # where each input is among the arguments; `None`: it is one of them
    constants: list[tuple[list[int | str], Any]] = dataclasses.field(default_factory=list)  # arguments of other types
    guards: list[str] = dataclasses.field(default_factory=list)  # what the open sizes have to fulfil
    frozen: list[str] = dataclasses.field(default_factory=list)  # the parameters that the original does not train
    repeat: Callable[[Any], Any] | None = None  # what was done to each example before the model was traced

    @functools.cached_property
    def dtype(self) -> str:
        """The floating dtype that most parameters have; that of the inputs if there are none."""
        dtypes = collections.Counter(str(leaf.dtype) for leaf in self.params.values() if leaf.dtype.kind in "fV")
        floating = [value.dtype for value in self.inputs if value.dtype.startswith(("float", "bfloat"))]
        return dtypes.most_common(1)[0][0] if dtypes else floating[0] if floating else "float32"


def call(function: str, *args: Expression, **kwargs: Expression) -> Call:
    """Return a call, with lists as tuples, so that it can be compared."""
    return Call(function, args, tuple(kwargs.items()))


def is_call(expression: Expression, *functions: str) -> bool:
    """Say whether an expression calls one of some functions."""
    return isinstance(expression, Call) and expression.function in functions


_LEAVES = {Value, Dim, Name, Path, DType, Body, Custom, Foreign, int, float, bool, str, type(None)}


class Unfolded(NamedTuple):
    """An expression, taken apart."""

    label: Any  # what it is, without its parts; hashable
    parts: Sequence[Expression]  # in the order in which they are written
    fold: Callable[[Sequence[Expression]], Expression]  # puts it together again, of other parts


def unfold(expression: Expression) -> Unfolded | None:
    """Take an expression apart; return `None` for what has no parts: a leaf, or a function, which has statements.

    No other function knows the parts of each kind, but for the one that writes them.
    """
    if type(expression) in _LEAVES:  # most of all there are
        return None
    if isinstance(expression, Call):
        function, count = expression.function, len(expression.args)
        names = tuple(name for name, _ in expression.kwargs)
        return Unfolded(
            ("call", function, count, names),
            (*expression.args, *(part for _, part in expression.kwargs)),
            lambda parts: Call(function, tuple(parts[:count]), tuple(zip(names, parts[count:], strict=True))),
        )
    if isinstance(expression, Apply):
        return Unfolded(("apply",), (expression.function, *expression.args), lambda new: Apply(new[0], tuple(new[1:])))
    if isinstance(expression, Limit):
        told, name = expression.function, expression.name
        return Unfolded(("limit", told, name), (expression.dtype,), lambda parts: Limit(told, parts[0], name))
    if isinstance(expression, Number):
        return Unfolded(("number",), (expression.expression,), lambda parts: Number(parts[0]))
    if isinstance(expression, Infix):
        operator = expression.operator
        return Unfolded((operator,), (expression.left, expression.right), lambda parts: Infix(operator, *parts))
    if isinstance(expression, Item):
        return Unfolded(("item",), (expression.x, *expression.key), lambda parts: Item(parts[0], tuple(parts[1:])))
    if isinstance(expression, slice):
        return Unfolded(("slice",), (expression.start, expression.stop, expression.step), lambda parts: slice(*parts))
    if isinstance(expression, (tuple, list)):
        return Unfolded((type(expression).__name__,), expression, type(expression))
    if isinstance(expression, Mapping):
        keys = tuple(expression)
        return Unfolded(("dict", keys), tuple(expression.values()), lambda parts: dict(zip(keys, parts, strict=True)))
    return None


def children(expression: Expression) -> Sequence[Expression]:
    """Return the expressions that an expression is made of; a function has none."""
    unfolded = unfold(expression)
    return () if unfolded is None else unfolded.parts


def walk(
    expression: Expression, inside: bool = True, bound: frozenset[int] | None = frozenset()
) -> Iterator[Expression]:
    """Yield an expression and everything in it, in the order in which it is written.

    Args:
        expression: The expression.
        inside: Whether to yield what is inside of functions, too.
        bound: The ids of values that are left out: those that a function makes itself; `None` leaves out none.
    """
    if bound is not None and id(expression) in bound:
        return
    yield expression
    if isinstance(expression, (Body, Custom)):
        if inside:
            bound = None if bound is None else bound | frozenset(map(id, own(expression)))
            for part in parts(expression):
                yield from walk(part, True, bound)
        return
    for child in children(expression):
        yield from walk(child, inside, bound)


def own(function: Body | Custom) -> list[Value]:
    """Return the values that a function makes itself: its parameters, and what its statements compute."""
    given = list(values(function.parameters))
    nodes = function.nodes
    if isinstance(function, Custom):
        given, nodes = given + function.cotangents, nodes + function.rule_nodes
    return given + [value for node in nodes for value in node.outputs if value is not None]


def parts(function: Body | Custom) -> list[Expression]:
    """Return the expressions of a function, in the order in which they are written."""
    expressions = [*[node.expression for node in function.nodes], function.outputs]
    if isinstance(function, Custom):
        expressions += [*[node.expression for node in function.rule_nodes], function.gradients]
    return expressions


def functions(expression: Expression) -> list[Body | Custom]:
    """Return the functions in an expression, without those inside of these."""
    return [part for part in walk(expression, inside=False) if isinstance(part, (Body, Custom))]


def bodies(expression: Expression) -> list[Body]:
    """Return the functions in an expression that have no gradient of their own."""
    return [function for function in functions(expression) if isinstance(function, Body)]


def puts_axes(expression: Expression) -> bool:
    """Say whether an expression is an item that puts axes into a tensor, and takes nothing away."""
    return isinstance(expression, Item) and all(part is None or part == slice(None) for part in expression.key)


def values(expression: Expression) -> list[Value]:
    """Return the tensors in an expression, as they are written; of a function, those that it closes over."""
    return [part for part in walk(expression) if isinstance(part, Value)]


def count_uses(nodes: Sequence[Node], outputs: Expression) -> collections.Counter[int]:
    """Count how often each tensor is taken, inside of functions too, by its id."""
    expressions = (*[node.expression for node in nodes], outputs)
    return collections.Counter(id(x) for each in expressions for x in walk(each, bound=None) if isinstance(x, Value))


def is_differentiated(expression: Expression, made: Mapping[int, Node]) -> bool:
    """Say whether an expression depends on a parameter, or on an input that is floating, by what made each value."""
    queue, seen = values(expression), set()
    while queue:
        value = queue.pop()
        if value.kind == "params" or (value.kind == "input" and "float" in value.dtype):
            return True
        if id(value) in made and id(value) not in seen:
            seen.add(id(value))
            queue += values(made[id(value)].expression)
    return False


def rebuild(expression: Expression, change: Callable[[Expression], Expression], inside: bool = True) -> Expression:
    """Return the expression with `change` applied to everything in it, from the inside out.

    Args:
        expression: The expression.
        change: What is applied.
        inside: Whether to rebuild functions, too; otherwise they stay the same objects, and `change` gets them.
    """

    def again(part: Expression) -> Expression:
        return rebuild(part, change, inside)

    if inside and isinstance(expression, (Body, Custom)):
        return change(_map_body(expression, again))
    unfolded = unfold(expression)
    return change(expression if unfolded is None else unfolded.fold([again(part) for part in unfolded.parts]))


def _map_body(function: Body | Custom, again: Callable[[Expression], Expression]) -> Body | Custom:
    def map_nodes(nodes: list[Node]) -> list[Node]:
        return [dataclasses.replace(node, expression=again(node.expression)) for node in nodes]

    nodes, outputs = map_nodes(function.nodes), again(function.outputs)
    if isinstance(function, Body):
        return dataclasses.replace(function, nodes=nodes, outputs=outputs)
    rule_nodes, gradients = map_nodes(function.rule_nodes), again(function.gradients)
    return dataclasses.replace(function, nodes=nodes, outputs=outputs, rule_nodes=rule_nodes, gradients=gradients)


def draws(nodes: Sequence[Node]) -> bool:
    """Say whether statements draw random numbers."""
    return any(part == SEED for node in nodes for part in walk(node.expression) if isinstance(part, Name))


def draws_always(nodes: Sequence[Node]) -> bool:
    """Say whether statements draw random numbers that do not depend on the mode."""
    calls = [expression for node in nodes for expression in walk(node.expression) if isinstance(expression, Call)]
    return any(SEED in _names_passed(expression) and TRAINING not in _names_passed(expression) for expression in calls)


def _names_passed(expression: Call) -> list[Expression]:
    """Return the arguments of a call that are names of a port's own: its seed, and whether it trains."""
    arguments = [*expression.args, *dict(expression.kwargs).values()]
    return [argument for argument in arguments if isinstance(argument, Name)]


def narrowest(nodes: Sequence[Node]) -> str:
    """Return the floating dtype with the fewest digits that something is computed in; none is the empty text."""
    functions_of = [part for node in nodes for part in walk(node.expression) if isinstance(part, (Body, Custom))]
    inner = [node for function in functions_of for node in function.nodes]
    dtypes = {value.dtype for node in (*nodes, *inner) for value in node.outputs if value is not None}
    return next((dtype for dtype in ("bfloat16", "float16", "float32", "float64") if dtype in dtypes), "")


def is_literal(expression: Expression) -> bool:
    """Say whether an expression is made of Python literals alone."""
    if isinstance(expression, (tuple, list)):
        return all(is_literal(part) for part in expression)
    return expression is None or isinstance(expression, (bool, int, float, complex, str))


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of what a model returns, dicts in the order of their names; `None` is none."""
    if isinstance(tree, Mapping):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree]


def comparable(tree: Any) -> list[Any]:
    """Return the leaves of what a model returns that are tensors or numbers."""
    return [leaf for leaf in leaves(tree) if not isinstance(leaf, str)]


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return what a model returns as tuples and dicts, with `change` of each leaf, in the order of `leaves`."""
    if isinstance(tree, Mapping):
        return {name: map_leaves(change, tree[name]) for name in sorted(tree)}
    if isinstance(tree, (tuple, list)):
        return tuple(map_leaves(change, part) for part in tree)
    return None if tree is None else change(tree)


def without_dead(nodes: Sequence[Node], outputs: Expression) -> list[Node]:
    """Return the statements that an output or the last new state depends on; functions lose their dead ones, too."""
    used = set(map(id, values(outputs)))
    newest = {node.update: node for node in nodes if node.update is not None}
    kept = []
    for node in reversed(nodes):
        is_used = any(id(value) in used for value in node.outputs)
        if is_used if node.update is None else newest[node.update] is node:
            for function in functions(node.expression):
                if isinstance(function, Custom):
                    function.rule_nodes = without_dead(function.rule_nodes, function.gradients)
                    function.nodes = without_dead(function.nodes, (function.outputs, function.rule))
                else:
                    function.nodes = without_dead(function.nodes, function.outputs)
            used.update(map(id, values(node.expression)))
            kept.append(node)
    return kept[::-1]


def evaluation_nodes(graph: Graph, evaluated: Mapping[str, Callable[[Call], Expression]]) -> list[Node]:
    """Return the statements of a graph that was traced in training mode, as evaluation would compute them.

    `evaluated` gives what calls of a function are there, beside dropout; a normalization returns no new statistics.
    """

    def change(part: Expression) -> Expression:
        if isinstance(part, Call) and part.function.endswith("dropout"):
            return part.args[0]
        return evaluated[part.function](part) if isinstance(part, Call) and part.function in evaluated else part

    statements = []
    for node in graph.nodes:
        is_norm = node.update is not None and len(node.outputs) > 1
        outputs, update = (node.outputs[:1], None) if is_norm else (node.outputs, node.update)
        statements.append(Node(outputs, rebuild(node.expression, change), node.scopes, update))
    return statements


def list_missing(missing: Mapping[str, Sequence[str]], bridged: str = "") -> str:
    """Return the words of an error: what has no translation, how often it occurs, and where.

    Args:
        missing: The places of each operation.
        bridged: The framework that bridges may stay to.
    """
    lines = [f"{len(missing)} operation{'s have' if len(missing) > 1 else ' has'} no translation:"]
    for name, places in sorted(missing.items()):
        different = list(dict.fromkeys(place.partition("\n")[0] for place in places if place))
        shown = ", ".join(different[:3]) + (", ..." if len(different) > 3 else "")
        lines.append(f"  {name}, {len(places)} time{'s' if len(places) > 1 else ''}{': ' + shown if shown else ''}")
    way = "trace(..., partial=True), or --partial, keeps them: each is a porting.bridge, which needs"
    lines += [f"{way} {bridged}"] if bridged else []
    return "\n".join(lines)


def join_keys(key: Sequence[Any], inner: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the key of a part of a part; `None` if both take a part of one axis."""
    parts = [*key, *[slice(None)] * (len(inner) - sum(isinstance(at, slice) for at in key))]
    for axis, at in zip([axis for axis, at in enumerate(parts) if isinstance(at, slice)], inner, strict=False):
        if slice(None) not in (parts[axis], at):
            return None
        parts[axis] = at if parts[axis] == slice(None) else parts[axis]
    return tuple(parts)
