"""The submodules of a graph, and which of them are calls of one function."""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import multiop
from multiop import errors
from multiop.porting import _graph, _layers
from multiop.porting._graph import (
    SEED,
    TRAINING,
    Body,
    Call,
    Custom,
    Dim,
    Expression,
    Foreign,
    Graph,
    Item,
    Name,
    Node,
    Path,
    Scope,
    Value,
    is_call,
)
from multiop.porting._printing.simplify import simplify_graph

_CHOICES = ("ops.cond", "ops.switch")  # they call each function at most once


@dataclasses.dataclass(eq=False)
class Region:
    """One call of a submodule."""

    scope: Scope | None
    items: list[Node | Region]
    inputs: list[Value] = dataclasses.field(default_factory=list)
    outputs: list[Value] = dataclasses.field(default_factory=list)
    function: Function | None = None

    @property
    def prefix(self) -> str:
        """The path of the submodule, with the dot that its leaves have after it."""
        return "" if self.scope is None else _prefix(self.scope)

    def nodes(self) -> Iterator[Node]:
        """Yield the statements of the submodule and of those in it."""
        for item in self.items:
            if isinstance(item, Region):
                yield from item.nodes()
            else:
                yield item

    def relative(self, path: Path) -> str | None:
        """Return a name behind that of the submodule; `None` if it is none of the names in it."""
        inside = f"{path.text}.".startswith(self.prefix) if self.scope is not None else False
        return f"{path.text}.".removeprefix(self.prefix).rstrip(".") if inside else None

    def owns(self, value: Value) -> bool:
        """Say whether a value is a leaf of the submodule."""
        return value.kind in ("params", "state") and value.name.startswith(self.prefix)


@dataclasses.dataclass(eq=False)
class Function:
    """A kind of submodule: every call of it is an instance with the same statements."""

    kind: str
    instances: list[Region]
    height: int
    name: str = ""
    parameters: list[tuple[str, list[Any]]] = dataclasses.field(default_factory=list)  # with one value per instance
    varying: dict[int, str] = dataclasses.field(default_factory=dict)  # number of a literal -> its parameter
    uses: set[str] = dataclasses.field(default_factory=set)  # of: params, state, name, update, training, seed, draws
    custom: Custom | None = None  # the function with a gradient of its own that it is

    def values_of(self, region: Region) -> list[tuple[str, Any]]:
        """Return what the parameters are in an instance."""
        number = self.instances.index(region)
        return [(name, values[number]) for name, values in self.parameters]


Inside = Callable[[Body], Sequence[Node | Region]]


def _nodes_of(body: Body) -> Sequence[Node | Region]:
    return body.nodes


class Outline:
    """The functions that the source of a graph is made of."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.packs: dict[int, list[Value]] = {}  # a list that a submodule takes -> what is in it
        self.customs: dict[Any, Function] = {}  # the functions with a gradient of their own
        self._by_key: dict[Any, Function] = {}
        self._inside: dict[int, list[Node | Region]] = {}  # a function in an expression -> what is in it
        _fill_scopes(graph.nodes)
        _part_scopes(graph.nodes)
        _lift_updates(graph.nodes)
        nodes = simplify_graph(graph)
        self._find_customs([node.expression for node in nodes])
        self.foreign: dict[Foreign, str] = {  # the bridges that stay -> their names
            part: "" for node in nodes for part in _graph.walk(node.expression) if isinstance(part, Foreign)
        }
        root = Region(None, self._inline_regions(_tree(nodes, 0)))
        self._connect(root, set(map(id, _graph.values(graph.outputs))))
        self._group(root, is_root=True)
        assert root.function is not None
        self.root = root.function
        self.submodules = list(self._by_key.values())
        self._share_outputs()
        for function in self._by_height():
            self._parametrize(function)

    @property
    def functions(self) -> list[Function]:
        """The functions in the order in which they are printed, each behind those that it calls."""
        return [*self.customs.values(), *self._by_height()]

    def _by_height(self) -> list[Function]:
        return sorted(self.submodules, key=lambda function: function.height)

    def custom(self, function: Custom) -> Function:
        """Return the function of the module that a function with a gradient of its own is."""
        return self.customs[_form_of_custom(function)]

    def statements_of(self, body: Body) -> Sequence[Node | Region]:
        """Return the statements and the submodules inside of a function."""
        return self._inside.get(id(body), list(body.nodes))

    # functions in expressions

    def _find_customs(self, expressions: Sequence[Expression]) -> None:
        """Make a function of the module of each function with a gradient of its own; equal ones are one function."""
        for expression in expressions:
            for function in _graph.functions(expression):
                self._find_customs(_graph.parts(function))
                if not isinstance(function, Custom):
                    continue
                _check_custom(function)
                form = _form_of_custom(function)
                if form not in self.customs:
                    nodes = without_scopes([*function.nodes])
                    inputs = [*function.parameters, *closed_over(function)]
                    region = Region(None, list(nodes), inputs, _graph.values(function.outputs))
                    self.customs[form] = Function(function.name, [region], 0, custom=function)

    def _open(self, node: Node) -> None:
        """Find the statements and the submodules inside of the functions that a statement has."""
        functions = _graph.functions(node.expression)
        depth, keys = len(node.scopes), [scope.key for scope in node.scopes]
        for function in functions:
            if isinstance(function, Custom):
                continue
            for inner in function.nodes:
                if inner.update is not None:
                    raise errors.TranslationError(f"{inner.update} is updated inside of a branch or a loop")
                if [scope.key for scope in inner.scopes[:depth]] != keys:
                    inner.scopes = node.scopes
            self._inside[id(function)] = self._inline_regions(_tree(function.nodes, depth))
        takes = node.expression.function if isinstance(node.expression, Call) else ""
        if takes not in _CHOICES and any(part == SEED for function in functions for part in _graph.walk(function)):
            raise errors.TranslationError("each step of a loop draws random numbers")

    def _submodules(self, items: Sequence[Node | Region]) -> Iterator[Region]:
        """Yield the calls of submodules among some statements, those inside of functions included."""
        for item in items:
            if isinstance(item, Region):
                yield item
            else:
                for body in _graph.bodies(item.expression):
                    yield from self._submodules(self.statements_of(body))

    # from statements to functions

    def _inline_regions(self, items: list[Node | Region]) -> list[Node | Region]:
        """Put containers, short submodules and those that only the caller can tell a size into what is around them."""
        kept: list[Node | Region] = []
        for item in items:
            if isinstance(item, Node):
                self._open(item)
            else:
                item.items = self._inline_regions(item.items)
                assert item.scope is not None
                is_short = item.scope.is_container or len(item.items) <= 2
                if (is_short and not item.scope.ending) or _lacks_a_size(item):
                    kept += item.items
                    continue
            kept.append(item)
        return kept

    def _connect(self, region: Region, wanted: set[int]) -> None:
        """Find the inputs and outputs of each submodule; `wanted` is used outside of this one."""
        computed: set[int] = set()
        self._connect_inner(region.items, wanted)
        for node in region.nodes():
            for value in self._values(node.expression):
                if id(value) not in computed and not region.owns(value) and value not in region.inputs:
                    region.inputs.append(value)
            computed.update(map(id, node.outputs))
        if region.scope is None:
            region.inputs = list(self.graph.inputs)
        else:
            self._pack(region)
        region.outputs = [value for node in region.nodes() for value in node.outputs if id(value) in wanted]

    def _connect_inner(self, items: Sequence[Node | Region], wanted: set[int]) -> None:
        uses: list[set[int]] = []
        for item in items:
            nodes = item.nodes() if isinstance(item, Region) else [item]
            uses.append({id(value) for node in nodes for value in self._values(node.expression)})
        for number, item in enumerate(items):
            if isinstance(item, Region):
                self._connect(item, set().union(*uses[number + 1 :]) | wanted)
                continue
            for body in _graph.bodies(item.expression):
                self._connect_inner(self.statements_of(body), set(map(id, _graph.values(body.outputs))))

    def _values(self, expression: Expression) -> list[Value]:
        """Return the tensors in an expression, those in lists that a submodule takes included."""
        return [part for value in _graph.values(expression) for part in self.packs.get(id(value), [value])]

    def _pack(self, region: Region) -> None:
        """Make one parameter of the tensors that a submodule only takes as a list."""
        counts = collections.Counter(id(value) for node in region.nodes() for value in self._values(node.expression))
        for node in region.items:
            if isinstance(node, Region):
                continue
            parts = list(_graph.walk(node.expression, inside=False))
            joined = [part.args[0] for part in parts if is_call(part, "ops.concatenate")]
            for listed in [part for part in parts if type(part) is list]:
                is_taken = all(isinstance(value, Value) and value in region.inputs for value in listed)
                is_list = len(listed) > 1 or (listed and any(listed is operand for operand in joined))
                if not is_list or not is_taken or any(counts[id(value)] > 1 for value in listed):
                    continue
                pack = Value((), "list", name="features")
                self.packs[id(pack)] = list(listed)
                swap = functools.partial(swap_values, old=listed, new=pack)
                node.expression = _graph.rebuild(node.expression, swap, inside=False)
                first = region.inputs.index(listed[0])
                region.inputs = [value for value in region.inputs if value not in listed]
                region.inputs.insert(first, pack)

    def _group(self, region: Region, is_root: bool = False) -> int:
        """Give the submodule, and those in it, the functions that they call; return how deep they are nested."""
        heights = [self._group(inner) for inner in self._submodules(region.items)]
        height = 1 + max(heights, default=0)
        kind = region.scope.kind if region.scope else self.graph.kind
        key = (kind, is_root, _structure(region, self.packs, self.statements_of))
        function = region.function = self._by_key.setdefault(key, Function(kind, [], height))
        function.instances.append(region)
        function.uses |= self._uses(region)
        return height

    def _share_outputs(self) -> None:
        """Let each call of a function return what any of them is asked for."""
        for function in reversed(self._by_height()):  # a caller asks for more of what it calls
            made = [[value for node in region.nodes() for value in node.outputs] for region in function.instances]
            pairs = [(set(region.outputs), values) for region, values in zip(function.instances, made, strict=True)]
            wanted = {n for asked, values in pairs for n, value in enumerate(values) if value in asked}
            for region, values in zip(function.instances, made, strict=True):
                region.outputs = [values[n] for n in sorted(wanted)]
                for inner in self._submodules(region.items):
                    inner.outputs = [*inner.outputs, *region.outputs]  # what is not its own is left out there

    def _uses(self, region: Region) -> set[str]:
        uses = set()
        for item in region.items:
            read: list[Any] = [] if isinstance(item, Region) else list(_graph.walk(item.expression))
            if isinstance(item, Node):
                uses |= set() if item.update is None else {"update", "state"}
                uses |= {"draws"} if _graph.draws_always([item]) else set()
            for inner in self._submodules([item]):
                assert inner.function is not None
                uses |= inner.function.uses
                read += inner.inputs
            for part in read:
                if part == TRAINING:
                    uses.add("training")
                elif part == SEED:
                    uses.add("seed")
                elif isinstance(part, Path) and region.relative(part) is not None:
                    uses.add("name")
                elif isinstance(part, Value) and region.owns(part):
                    uses.add(part.kind)
        return uses

    def _parametrize(self, function: Function) -> None:
        """Make parameters of the literals that differ between the instances."""
        endings = [region.scope.ending if region.scope else "" for region in function.instances]
        if any(endings):
            function.parameters.append(("ending", endings))
        rows = [_literals(region.items, self.statements_of) for region in function.instances]
        groups: dict[tuple[str, str], str] = {}
        for number, (base, _) in enumerate(rows[0]):
            values = [row[number][1] for row in rows]
            if all(repr(value) == repr(values[0]) for value in values):
                continue
            group = (base, repr(values))
            if group not in groups:
                base = _PLAINER.get(base, re.sub(r"_\d+$", "", base))
                groups[group] = fresh(base, set(groups.values()) | TAKEN)
                function.parameters.append((groups[group], values))
            function.varying[number] = groups[group]


_PLAINER = {"newshape": "shape"}  # names of arguments that read badly as those of a parameter
TAKEN = {"product", "params", "state", "new_state", "training", "seed", "keys", "ops", "random", "i", "Any", "Tensor"}
TAKEN |= {"self", "cls", "new", "new_features", "math", "np", "vjp", "finfo", "iinfo", "porting", "name", "ending"}


def fresh(base: str, taken: set[str]) -> str:
    """Return a name that is not taken: the one that is asked for, or that with a number."""
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def swap_values(expression: Expression, old: Expression, new: Expression) -> Expression:
    """Return `new` for `old`: a value, or a list of values."""
    if type(expression) is not list or type(old) is not list:
        return new if expression is old else expression
    is_same = len(expression) == len(old) and all(map(operator.is_, expression, old))
    return new if is_same else expression


# the tree of submodules


def _tree(nodes: Sequence[Node], depth: int) -> list[Node | Region]:
    items: list[Node | Region] = []
    start = 0
    while start < len(nodes):
        if len(nodes[start].scopes) <= depth:
            items.append(nodes[start])
            start += 1
            continue
        scope = nodes[start].scopes[depth]
        end = start
        while end < len(nodes) and len(nodes[end].scopes) > depth and nodes[end].scopes[depth].key == scope.key:
            end += 1
        items.append(Region(scope, _tree(nodes[start:end], depth + 1)))
        start = end
    return items


def _fill_scopes(nodes: Sequence[Node]) -> None:
    """Put a statement whose submodule is not known where both of its neighbours are."""
    for before, node, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
        if not node.scopes:
            pairs = zip(before.scopes, after.scopes, strict=False)
            node.scopes = tuple(a for a, b in pairs if a.key == b.key)


def _part_scopes(nodes: Sequence[Node]) -> None:
    """Let a submodule that another one calls, but does not hold, own no leaves: it is given them as tensors."""
    for node in nodes:
        scopes: list[Scope] = []
        for scope in node.scopes:
            around = scopes[-1].path if scopes else "*"  # a block of several submodules holds what it calls
            if not around.startswith("*") and not f"{scope.path}.".startswith(_prefix(scopes[-1])):
                scope = dataclasses.replace(scope, path=f"{around}.({scope.path})")  # no leaf has such a name
            scopes.append(scope)
        node.scopes = tuple(scopes)
        for body in _graph.bodies(node.expression):
            _part_scopes(body.nodes)


def _lift_updates(nodes: Sequence[Node]) -> None:
    """Put a statement that updates what is not in its submodule where it is: a function returns its own state alone."""
    for node in nodes:
        if node.update is None:
            continue
        fits = [f"{node.update}.".startswith(_prefix(scope)) for scope in node.scopes]
        node.scopes = node.scopes[: [*fits, False].index(False)]


def _lacks_a_size(region: Region) -> bool:
    """Say whether a submodule needs an open size that no tensor has which it takes, or has computed by then."""
    nodes = list(region.nodes())
    computed = {id(value) for node in nodes for value in node.outputs}
    taken = [value for node in nodes for value in _graph.values(node.expression) if id(value) not in computed]
    known = {size for value in taken for size in value.shape}
    for node in nodes:
        needed = {symbol for part in _graph.walk(node.expression) if isinstance(part, Dim) for symbol in part.symbols}
        if any(Dim(symbol, (symbol,)) not in known for symbol in needed):
            return True
        known.update(size for value in node.outputs for size in value.shape)
    return False


def _prefix(scope: Scope) -> str:
    """Return what the paths of the leaves of a submodule begin with."""
    return scope.path[:-1] if scope.path.endswith("*") else f"{scope.path}."


def without_scopes(nodes: Sequence[Node]) -> list[Node]:
    """Return copies of statements, and of the functions in them, that are in no submodule."""

    def change(part: Expression) -> Expression:
        if isinstance(part, Body):
            return dataclasses.replace(part, nodes=without_scopes(part.nodes))
        if isinstance(part, Custom):
            nodes, rule_nodes = without_scopes(part.nodes), without_scopes(part.rule_nodes)
            return dataclasses.replace(part, nodes=nodes, rule_nodes=rule_nodes)
        return part

    return [
        dataclasses.replace(node, expression=_graph.rebuild(node.expression, change, inside=False), scopes=())
        for node in nodes
    ]


# what two submodules have in common, and the literals in which they may differ


def alike(graph: Graph, nodes: list[Node], other: Graph, other_nodes: list[Node]) -> bool:
    """Say whether two lists of statements, of two graphs of one model, compute the same."""
    forms = []
    for each, statements in ((graph, nodes), (other, other_nodes)):
        copy = dataclasses.replace(each, nodes=without_scopes(statements))
        region = Region(None, [*simplify_graph(copy), Node([], copy.outputs)], list(each.inputs))
        forms.append((_structure(region), repr(_literals(region.items))))
    return forms[0] == forms[1]


def is_hole(expression: Expression) -> bool:
    """Say whether an expression is a literal in which two instances of a function may differ."""
    return expression is not None and not isinstance(expression, str) and _graph.is_literal(expression)


def _structure(region: Region, packs: dict[int, list[Value]] | None = None, inside: Inside = _nodes_of) -> Any:
    """Return what instances of one function have in common: everything but the values of literals."""
    numbers = {id(value): f"input {i}" for i, value in enumerate(region.inputs)}

    def token(value: Value | None) -> Any:
        if value is None:
            return None
        if id(value) in numbers:
            return numbers[id(value)]
        if packs and id(value) in packs:
            return tuple(map(token, packs[id(value)]))
        return (value.kind, value.name.removeprefix(region.prefix))

    def form(expression: Expression, is_key: bool = False) -> Any:
        if isinstance(expression, Value):
            return token(expression)
        if is_hole(expression):
            return repr(expression) if is_key else type(expression).__name__
        if isinstance(expression, Path):
            path = region.relative(expression)
            return ("name", path is None, expression.text if path is None else path)
        if isinstance(expression, Custom):
            return ("custom", _form_of_custom(expression), *map(token, closed_over(expression)))
        if isinstance(expression, Body):
            for value in _graph.values(expression.parameters):
                numbers[id(value)] = f"local {len(numbers)}"
            inner = forms(inside(expression))
            return ("def", _pattern_of(expression.parameters), inner, form(expression.outputs))
        unfolded = _graph.unfold(expression)
        if unfolded is None:
            return repr(expression)
        is_item = isinstance(expression, Item)  # its key belongs to the structure
        return (unfolded.label, *[form(part, is_key or (is_item and i > 0)) for i, part in enumerate(unfolded.parts)])

    def forms(items: Sequence[Node | Region]) -> tuple[Any, ...]:
        listed: list[Any] = []
        for item in items:
            if isinstance(item, Region):
                has_leaves = item.function is not None and item.function.uses & {"params", "state", "name"}
                path = item.prefix.removeprefix(region.prefix) if has_leaves else ""
                listed.append((id(item.function), path, *map(token, item.inputs)))
            else:
                update = None if item.update is None else item.update.removeprefix(region.prefix.rstrip(".")).strip(".")
                listed.append((form(item.expression), update))
            for node in item.nodes() if isinstance(item, Region) else [item]:
                for value in node.outputs:  # whether or not it is asked for
                    numbers[id(value)] = f"local {len(numbers)}"
        return tuple(listed)

    return (len(region.inputs), *forms(region.items))


def _pattern_of(parameters: Expression) -> Any:
    if isinstance(parameters, (tuple, list)):
        return (type(parameters).__name__, *map(_pattern_of, parameters))
    return parameters is not None


def _literals(items: Sequence[Node | Region], inside: Inside = _nodes_of) -> list[tuple[str, Any]]:
    """Return the literals of a submodule, each with a name for it, in the order in which they are written."""
    literals: list[tuple[str, Any]] = []
    for item in items:
        if isinstance(item, Region):
            assert item.function is not None
            literals += item.function.values_of(item)
        else:
            literals += _holes(item.expression, "size", inside)
    return literals


def _holes(expression: Expression, name: str, inside: Inside) -> list[tuple[str, Any]]:
    if is_hole(expression):
        return [(name, expression)]
    if isinstance(expression, Body):
        return _literals(inside(expression), inside) + _holes(expression.outputs, name, inside)
    parts = hole_parts(expression)
    names = [name] * len(parts)
    if isinstance(expression, Call):
        positional = list(signature(expression.function))[: len(expression.args)]
        names[: len(positional)] = positional
        names[len(expression.args) :] = [keyword for keyword, _ in expression.kwargs]
    return [hole for part, own in zip(parts, names, strict=True) for hole in _holes(part, own, inside)]


def hole_parts(expression: Expression) -> Sequence[Expression]:
    """Return the parts of an expression that literals of it may be in: all but the key of an item."""
    return _graph.children(expression)[: 1 if isinstance(expression, Item) else None]


LAYERS: dict[str, Callable[..., Any]] = {
    name: layer
    for name, layer in vars(_layers).items()
    if inspect.isfunction(layer) and layer.__module__ == _layers.__name__
}


def signature(function: str) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function of `ops`, `random` or the layers."""
    parts = function.split(".")
    home: Any = multiop if parts[0] in ("ops", "random") else _layers
    for part in parts:
        home = getattr(home, part, None)
    return {} if home is None else dict(inspect.signature(home).parameters)


# functions with a gradient of their own


def _form_of_custom(custom: Custom) -> Any:
    """Return what is the same in two functions that compute the same, with the same rule."""
    inputs = [*custom.parameters, *closed_over(custom)]
    nodes = [*custom.nodes, Node([], (custom.outputs, rule_of(custom)))]
    region = Region(None, list(nodes), inputs)
    return (custom.name, _structure(region), repr(_literals(region.items)))


def closed_over(custom: Custom) -> list[Value]:
    """Return what a function closes over, each once."""
    return list(dict.fromkeys(_graph.values(custom)))


def rule_of(custom: Custom) -> Body:
    """Return the rule with one gradient for each argument: none for what the function closes over."""
    given = custom.gradients if isinstance(custom.gradients, (tuple, list)) else (custom.gradients,)
    gradients = (*given, *[None] * len(closed_over(custom)))
    return dataclasses.replace(custom.rule, outputs=gradients[0] if len(gradients) == 1 else gradients)


def _check_custom(custom: Custom) -> None:
    """Refuse what a function of the module cannot do, and gradients that would be lost."""
    for node in (*custom.nodes, *custom.rule_nodes):
        if node.update is not None:
            raise errors.TranslationError(f"{custom.name} has its own gradient and updates {node.update}")
    if any(part in (SEED, TRAINING) for part in _graph.walk(custom) if isinstance(part, Name)):
        raise errors.TranslationError(f"{custom.name} has its own gradient and depends on the mode")
    for value in closed_over(custom):
        if value.kind != "state" and "int" not in value.dtype and value.dtype != "bool":
            raise errors.TranslationError(
                f"{custom.name} closes over {value.name or 'a value'}, whose gradient its rule does not give"
            )
