"""From the graph to source: a function per kind of submodule, called as often as it occurs, and loops over blocks."""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import keyword
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import multiop
from multiop.porting import _graph, _layers
from multiop.porting._graph import (
    SEED,
    TRAINING,
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
    Item,
    Name,
    Node,
    Scope,
    Value,
    call,
)

_WIDTH = 120
_FOLDED = 92  # the longest line that grows by putting one expression into another
_TAKEN = {"product", "params", "state", "new_state", "training", "seed", "keys", "ops", "random", "i", "Any", "Tensor"}
_TAKEN |= {"self", "cls", "new", "new_features"}
_UNUSED = {"num_batches_tracked"}  # leaves that a layer takes and does not use
_PLAIN = set(dir(multiop.ops)) | {"act", "activation", "bn", "drop", "out", "output", "norm", "self_attn", "fc", "mlp"}
_LETTERS = ("x", "y", "z", "u", "v", "w")
_LAMBDA = 64  # the longest function that is written into the call that takes it
_CHOICES = ("ops.cond", "ops.switch")  # they call each function at most once


# the tree of submodules


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


@dataclasses.dataclass(eq=False)
class Function:
    """A kind of submodule: every call of it is an instance with the same statements."""

    kind: str
    instances: list[Region]
    height: int
    name: str = ""
    parameters: list[tuple[str, list[Any]]] = dataclasses.field(default_factory=list)  # with one value per instance
    varying: dict[int, str] = dataclasses.field(default_factory=dict)  # number of a literal -> its parameter
    uses: set[str] = dataclasses.field(default_factory=set)  # of: params, state, update, training, seed, draws
    custom: Custom | None = None  # the function with a gradient of its own that it is

    def values_of(self, region: Region) -> list[tuple[str, Any]]:
        """Return what the parameters are in an instance."""
        number = self.instances.index(region)
        return [(name, values[number]) for name, values in self.parameters]


@dataclasses.dataclass(frozen=True)
class Branch:
    """A subtree of the parameters or of the state."""

    kind: str
    path: str


@dataclasses.dataclass(frozen=True)
class Spread:
    """`**branch` among the arguments of a call."""

    branch: Branch
    suffix: str = ""  # of the leaves, in a recurrent network that has several layers


@dataclasses.dataclass(frozen=True)
class Attribute:
    """`value.name`."""

    value: Value
    name: str


@dataclasses.dataclass(eq=False)
class Statement:
    """`outputs = expression`; as a loop, `expression` for each `i` of a range."""

    outputs: list[Value | None]
    expression: Expression
    pattern: Expression = None  # the tuples that the outputs stand in; `None` if it is the list of them
    update: str | None = None  # the branch of the state that the last target replaces, relative to the function
    loop: range | str | None = None  # what `i` is: numbers, or letters
    carry: tuple[Any, Any] | None = None  # in a loop: what the first step takes, what the last one returns
    grows: Value | None = None  # in a loop: the list that each step takes, and adds its result to
    size: str = ""  # the symbol that the statement gives a value


def source(graph: Graph, name: str) -> str:
    """Return the source of the module that computes the graph; its function is called `name`."""
    return _Printer(graph, name).text


def snake(kind: str) -> str:
    """Return the name of a class as that of a function."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[A-Z]{2})", "_", kind).lower()
    name = re.sub(r"\W", "_", name)
    name = re.sub("(res|dense|shuffle|reg|efficient|mobile)_net", r"\1net", name).replace("conv_ne_xt", "convnext")
    return name + "_" if keyword.iskeyword(name) or hasattr(_layers, name) or name in _TAKEN else name


class _Printer:
    def __init__(self, graph: Graph, name: str):
        self.graph = graph
        self.functions: list[Function] = []
        self.by_key: dict[Any, Function] = {}
        self.layers: set[str] = set()
        self.packs: dict[int, list[Value]] = {}  # a list that a submodule takes -> what is in it
        self.inside: dict[int, list[Node | Region]] = {}  # a function in an expression -> its statements and submodules
        self.customs: dict[Any, Function] = {}
        _fill_scopes(graph.nodes)
        _lift_updates(graph.nodes)
        nodes = _simplified(graph)
        self._find_customs([node.expression for node in nodes])
        self.foreign: dict[Foreign, str] = {
            one: "" for node in nodes for one in _graph.walk(node.expression) if isinstance(one, Foreign)
        }
        root = Region(None, self._inlined(_tree(nodes, 0)))
        self._connect(root, set(map(id, _graph.values(graph.outputs))), graph)
        self._group(root, is_root=True)
        for function in sorted(self.functions, key=lambda one: one.height):
            self._parametrize(function)
        self._name(name)
        order = [*self.customs.values(), *sorted(self.functions, key=lambda one: one.height)]
        self.text = self._module([_Writer(self, function).text for function in order])

    # functions in expressions

    def _find_customs(self, expressions: Sequence[Expression]) -> None:
        """Make a function of the module of each function with a gradient of its own; equal ones are one function."""
        for expression in expressions:
            for function in _graph.functions(expression):
                self._find_customs(_graph.parts(function))
                if not isinstance(function, Custom):
                    continue
                _check_custom(function)
                key = _form(function)
                if key not in self.customs:
                    nodes = _without_scopes([*function.nodes])
                    inputs = [*function.parameters, *_closed_over(function)]
                    region = Region(None, list(nodes), inputs, _graph.values(function.outputs))
                    self.customs[key] = Function(function.name, [region], 0, custom=function)

    def _open(self, node: Node) -> None:
        """Find the statements and the submodules inside of the functions that a statement has."""
        for function in _graph.functions(node.expression):
            if isinstance(function, Custom):
                continue
            depth, keys = len(node.scopes), [one.key for one in node.scopes]
            for one in function.nodes:
                if one.update is not None:
                    raise multiop.errors.TranslationError(f"{one.update} is updated inside of a branch or a loop")
                if [scope.key for scope in one.scopes[:depth]] != keys:
                    one.scopes = node.scopes
            self.inside[id(function)] = self._inlined(_tree(function.nodes, depth))
        takes = node.expression.function if isinstance(node.expression, Call) else ""
        if takes not in _CHOICES and any(
            one == SEED for function in _graph.functions(node.expression) for one in _graph.walk(function)
        ):
            raise multiop.errors.TranslationError("each step of a loop draws random numbers")

    def statements_of(self, function: Body) -> list[Node | Region]:
        """Return the statements and the submodules inside of a function."""
        return self.inside.get(id(function), list(function.nodes))

    def _submodules(self, items: Sequence[Node | Region]) -> Iterator[Region]:
        """Yield the calls of submodules among some statements, those inside of functions included."""
        for item in items:
            if isinstance(item, Region):
                yield item
            else:
                for function in _graph.functions(item.expression):
                    if isinstance(function, Body):
                        yield from self._submodules(self.statements_of(function))

    # from statements to functions

    def _inlined(self, items: list[Node | Region]) -> list[Node | Region]:
        """Put containers, short submodules and those that only the caller can tell a size into what is around them."""
        found: list[Node | Region] = []
        for item in items:
            if isinstance(item, Node):
                self._open(item)
            else:
                item.items = self._inlined(item.items)
                assert item.scope is not None
                if item.scope.is_container or len(item.items) <= 2 or _lacks_a_size(item):
                    found += item.items
                    continue
            found.append(item)
        return found

    def _connect(self, region: Region, wanted: set[int], graph: Graph) -> None:
        """Find the inputs and outputs of each submodule; `wanted` is used outside of this one."""
        made: set[int] = set()
        self._connect_inner(region.items, wanted, graph)
        for node in region.nodes():
            for value in self._values(node.expression):
                is_own = value.kind in ("params", "state") and value.name.startswith(region.prefix)
                if id(value) not in made and not is_own and value not in region.inputs:
                    region.inputs.append(value)
            made.update(map(id, node.outputs))
        if region.scope is None:
            region.inputs = list(graph.inputs)
        else:
            self._pack(region)
        region.outputs = [value for node in region.nodes() for value in node.outputs if id(value) in wanted]

    def _connect_inner(self, items: Sequence[Node | Region], wanted: set[int], graph: Graph) -> None:
        uses: list[set[int]] = []
        for item in items:
            nodes = item.nodes() if isinstance(item, Region) else [item]
            uses.append({id(value) for node in nodes for value in self._values(node.expression)})
        for number, item in enumerate(items):
            if isinstance(item, Region):
                self._connect(item, set().union(*uses[number + 1 :]) | wanted, graph)
                continue
            for function in _graph.functions(item.expression):
                if isinstance(function, Body):
                    outputs = set(map(id, _graph.values(function.outputs)))
                    self._connect_inner(self.statements_of(function), outputs, graph)

    def _values(self, expression: Expression) -> list[Value]:
        """Return the tensors in an expression, those in lists that a submodule takes included."""
        return [one for value in _graph.values(expression) for one in self.packs.get(id(value), [value])]

    def _pack(self, region: Region) -> None:
        """Make one parameter of the tensors that a submodule only takes as a list."""
        counts = collections.Counter(id(value) for node in region.nodes() for value in self._values(node.expression))
        for node in region.items:
            if isinstance(node, Region):
                continue
            parts = list(_graph.walk(node.expression, inside=False))
            joined = [one.args[0] for one in parts if isinstance(one, Call) and one.function == "ops.concatenate"]
            for one in [one for one in parts if type(one) is list]:
                is_taken = all(isinstance(value, Value) and value in region.inputs for value in one)
                is_list = len(one) > 1 or (one and any(one is other for other in joined))
                if not is_list or not is_taken or any(counts[id(value)] > 1 for value in one):
                    continue
                pack = Value((), "list", name="features")
                self.packs[id(pack)] = list(one)
                swap = functools.partial(_swapped, old=one, new=pack)
                node.expression = _graph.rebuild(node.expression, swap, inside=False)
                first = region.inputs.index(one[0])
                region.inputs = [value for value in region.inputs if value not in one]
                region.inputs.insert(first, pack)

    def _group(self, region: Region, is_root: bool = False) -> int:
        """Give the submodule, and those in it, the functions that they call; return how deep they are nested."""
        heights = [self._group(item) for item in self._submodules(region.items)]
        height = 1 + max(heights, default=0)
        kind = region.scope.kind if region.scope else self.graph.kind
        key = (kind, is_root, _structure(region, self.packs, self.statements_of))
        if key not in self.by_key:
            self.by_key[key] = Function(kind, [], height)
            self.functions.append(self.by_key[key])
        function = region.function = self.by_key[key]
        function.instances.append(region)
        function.uses |= self._uses(region)
        return height

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
            for one in read:
                if one == TRAINING:
                    uses.add("training")
                elif one == SEED:
                    uses.add("seed")
                elif isinstance(one, Value) and one.kind in ("params", "state") and one.name.startswith(region.prefix):
                    uses.add(one.kind)
        return uses

    def _parametrize(self, function: Function) -> None:
        """Make parameters of the literals that differ between the instances."""
        rows = [_literals(region.items, self.statements_of) for region in function.instances]
        groups: dict[tuple[str, str], str] = {}
        for number, (base, _) in enumerate(rows[0]):
            found = [row[number][1] for row in rows]
            if all(repr(one) == repr(found[0]) for one in found):
                continue
            group = (base, repr(found))
            if group not in groups:
                taken = set(groups.values()) | _TAKEN
                groups[group] = _fresh(base, taken)
                function.parameters.append((groups[group], found))
            function.varying[number] = groups[group]

    def _name(self, name: str) -> None:
        root = self.by_key[next(key for key in self.by_key if key[1])]
        root.name = name
        taken = {name} | set(vars(_layers))
        for foreign in self.foreign:
            self.foreign[foreign] = _fresh(snake(foreign.name.strip("_")), taken)
            taken.add(self.foreign[foreign])
        for custom in self.customs.values():
            custom.name = _fresh(snake(custom.kind), taken)
            taken.add(custom.name)
        same = collections.defaultdict(list)
        for function in self.functions:
            if function is not root:
                same[function.kind].append(function)
        for kind, functions in same.items():
            functions.sort(key=lambda one: -len(one.instances))
            first = _paths(functions[0])
            for function in functions:
                new = sorted(_paths(function) - first)
                hints = [one for one in new if one.isidentifier() and not re.search(r"\d", one)]
                base = snake(kind) + (f"_{snake(hints[0])}" if hints else "")
                function.name = _fresh(base, taken)
                taken.add(function.name)

    # the module

    def _module(self, bodies: Sequence[str]) -> str:
        layers = self._layers_used()
        bridges = []
        for one, name in self.foreign.items():
            left, inner = f"{name} = porting.bridge(", f'{one.source}, "{one.framework}"'
            is_long = len(left) + len(inner) + 1 > _WIDTH
            bridges.append(f"{left}\n    {inner}\n)" if is_long else f"{left}{inner})")
        if bridges:
            layers.insert(0, "\n".join([f"# no translation: these run in {self.graph.framework}", *bridges]))
        text = "\n\n\n".join([*layers, *bodies])
        names = [name for name in ("Tensor", "ops", "porting", "random") if re.search(rf"\b{name}\b", text)]
        lines = [
            f'"""{self.graph.kind}, ported from {self.graph.framework}; it runs on TensorFlow, PyTorch and JAX."""',
            "",
            "from __future__ import annotations",
            "",
        ]
        if re.search(r"\bSequence\b", text):
            lines.append("from collections.abc import Sequence")
        if re.search(r"\bproduct\(", text):
            lines.append("from itertools import product")
        if re.search(r"\bAny\b", text):
            lines.append("from typing import Any")
        if lines[-1]:
            lines.append("")
        lines += [f"import {framework}\n" for framework in sorted({one.framework for one in self.foreign})]
        lines += [f"from multiop import {', '.join(names)}", "", *([] if bridges else ["", ""])]
        return "\n".join(lines) + ("\n" if bridges else "") + text + "\n"

    def _layers_used(self) -> list[str]:
        used, queue = set(), list(self.layers)
        while queue:
            name = queue.pop()
            if name in used:
                continue
            used.add(name)
            code = inspect.getsource(getattr(_layers, name))
            queue += [other for other in _LAYERS if other != name and re.search(rf"(?<![.\w]){other}\(", code)]
        return [inspect.getsource(layer).rstrip() for name, layer in _LAYERS.items() if name in used]


_LAYERS = {
    name: layer
    for name, layer in vars(_layers).items()
    if inspect.isfunction(layer) and layer.__module__ == _layers.__name__
}


def _swapped(expression: Expression, old: Expression, new: Expression) -> Expression:
    """Return `new` for `old`: a value, or a list of values."""
    if type(expression) is not list or type(old) is not list:
        return new if expression is old else expression
    is_same = len(expression) == len(old) and all(map(operator.is_, expression, old))
    return new if is_same else expression


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


def _lift_updates(nodes: Sequence[Node]) -> None:
    """Put a statement that updates what is not in its submodule where it is: a function returns its own state alone."""
    for node in nodes:
        if node.update is None:
            continue
        fits = [f"{node.update}.".startswith(_prefix(scope)) for scope in node.scopes]
        node.scopes = node.scopes[: [*fits, False].index(False)]


def _lacks_a_size(region: Region) -> bool:
    """Say whether a submodule needs an open size that no tensor has which it takes, or has made by then."""
    nodes = list(region.nodes())
    made = {id(value) for node in nodes for value in node.outputs}
    taken = [value for node in nodes for value in _graph.values(node.expression) if id(value) not in made]
    known = {size for value in taken for size in value.shape}
    for node in nodes:
        needed = {symbol for one in _graph.walk(node.expression) if isinstance(one, Dim) for symbol in one.symbols}
        if any(Dim(symbol, (symbol,)) not in known for symbol in needed):
            return True
        known.update(size for value in node.outputs for size in value.shape)
    return False


def _prefix(scope: Scope) -> str:
    """Return what the paths of the leaves of a submodule begin with."""
    return scope.path[:-1] if scope.path.endswith("*") else f"{scope.path}."


def _simplified(graph: Graph) -> list[Node]:
    """Return the statements without exchanges of axes that undo each other, and the like."""
    nodes, graph.outputs = _shorter(graph.nodes, graph.outputs)
    return _graph.without_dead(nodes, graph.outputs)


def _shorter(nodes: Sequence[Node], outputs: Expression) -> tuple[list[Node], Expression]:
    made = {id(node.outputs[0]): node for node in nodes if len(node.outputs) == 1}
    counts = collections.Counter(id(value) for node in nodes for value in _graph.values(node.expression))
    counts.update(map(id, _graph.values(outputs)))

    def change(expression: Expression) -> Expression:
        if isinstance(expression, Call) and expression.function in ("ops.swapaxes", "ops.reshape"):
            inner = expression.args[0]
            if isinstance(inner, Value) and id(inner) in made and made[id(inner)].scopes == here:
                inner = made[id(inner)].expression
            if isinstance(inner, Call) and inner.function == expression.function:
                if expression.function == "ops.reshape":
                    return Call("ops.reshape", (inner.args[0], *expression.args[1:]))
                if inner.args[1:] == expression.args[1:]:
                    return inner.args[0]
            if expression.function == "ops.reshape":
                return _shuffled(expression, made) or _averaged(expression, made, counts) or expression
        if isinstance(expression, Call) and expression.function == "ops.cond" and len(expression.args) > 3:
            return _without_operands(expression)
        return expression

    for node in nodes:
        here = node.scopes
        node.expression = _graph.rebuild(node.expression, change, inside=False)
        for function in _graph.functions(node.expression):
            if isinstance(function, Custom):
                function.rule_nodes, function.gradients = _shorter(function.rule_nodes, function.gradients)
            function.nodes, function.outputs = _shorter(function.nodes, function.outputs)
    replaced: dict[int, Value] = {}

    def follow(expression: Expression) -> Expression:
        while isinstance(expression, Value) and id(expression) in replaced:
            expression = replaced[id(expression)]
        return expression

    for node in nodes:
        node.expression = _graph.rebuild(node.expression, follow)
        if isinstance(node.expression, Value) and node.update is None:
            replaced[id(node.outputs[0])] = node.expression
    kept: list[Node] = []
    for node in nodes:
        if node.update is not None or not isinstance(node.expression, Value):
            kept += _counted(node, made) or [node]
    return kept, _graph.rebuild(outputs, follow)


def _made(value: Expression, made: dict[int, Node]) -> Expression:
    """Return the expression that computes a value, or what is no value."""
    return made[id(value)].expression if isinstance(value, Value) and id(value) in made else value


def _shuffled(expression: Call, made: dict[int, Node]) -> Call | None:
    """Return the channel shuffle that a reshape is the last step of."""
    swap = _made(expression.args[0], made)
    if not isinstance(swap, Call) or swap.function != "ops.swapaxes" or swap.args[1:] != (1, 2):
        return None
    split = _made(swap.args[0], made)
    if not isinstance(split, Call) or split.function != "ops.reshape" or not isinstance(split.args[0], Value):
        return None
    x, shape = split.args[0], tuple(split.args[1])
    after = tuple(expression.args[1])
    is_split = len(shape) == x.ndim + 1 and x.ndim > 2 and shape[3:] == x.shape[2:] == after[2:]
    if not is_split or not all(isinstance(size, int) for size in (*shape[1:3], *after[1:])):
        return None
    is_same = shape[0] in (-1, x.shape[0]) and after[0] in (-1, x.shape[0]) and after[1] == x.shape[1]
    return Call("channel_shuffle", (x, shape[1])) if is_same and shape[1] * shape[2] == x.shape[1] else None


def _averaged(expression: Call, made: dict[int, Node], counts: collections.Counter[int]) -> Call | None:
    """Return the mean without the axes that a reshape of it takes away, or with those that it puts back."""
    value, mean = expression.args[0], _made(expression.args[0], made)
    if not isinstance(mean, Call) or mean.function != "ops.mean" or counts[id(value)] > 1:
        return None
    x, options = mean.args[0], dict(mean.kwargs)
    axes = options.get("axis")
    if not isinstance(x, Value) or not isinstance(axes, tuple):
        return None
    gone = {axis % x.ndim for axis in axes}
    keepdims = not options.get("keepdims", False)
    after = [1 if axis in gone else size for axis, size in enumerate(x.shape) if keepdims or axis not in gone]
    found = list(expression.args[1])
    is_same = len(found) == len(after) and all(a in (-1, b) for a, b in zip(found, after, strict=True))
    return call("ops.mean", x, **options | {"keepdims": keepdims}) if is_same and found.count(-1) < 2 else None


def _without_operands(expression: Call) -> Call:
    """Return a choice between functions of operands as one between functions that close over these."""
    pred, *branches = expression.args[:3]
    found = []
    for branch in branches:
        given = dict(zip(map(id, _graph.values(branch.parameters)), _flat(expression.args[3:]), strict=True))
        inner = _graph.rebuild(branch, functools.partial(_given, given))
        found.append(dataclasses.replace(inner, parameters=()))
    return Call(expression.function, (pred, *found))


def _given(given: dict[int, Expression], one: Expression) -> Expression:
    return given.get(id(one), one)


def _counted(node: Node, made: dict[int, Node]) -> list[Node]:
    """Return a loop that counts up to a fixed number as one over a range, which JAX differentiates; `[]` for others."""
    expression = node.expression
    if not isinstance(expression, Call) or expression.function != "ops.while_loop" or expression.kwargs:
        return []
    cond, body, init = expression.args
    if not isinstance(init, tuple) or len(init) < 2:
        return []
    tested = {id(one.outputs[0]): one.expression for one in cond.nodes}
    test = tested.get(id(cond.outputs), cond.outputs)
    if not (isinstance(test, Call) and test.function == "ops.less" and len(test.args) == 2):
        return []
    index, upper = test.args
    number = next((i for i, one in enumerate(cond.parameters) if one is index), None)
    if number is None or type(upper) not in (int, Dim):
        return []
    counter, after = body.parameters[number], body.outputs[number]
    counts = next((one for one in body.nodes if any(value is after for value in one.outputs)), None)
    step = counts.expression if counts else None
    adds = (isinstance(step, Infix) and step.operator == "+" and (step.left, step.right) == (counter, 1)) or (
        isinstance(step, Call) and step.function == "ops.add" and step.args == (counter, 1)
    )
    lower = init[number]
    if isinstance(lower, Value) and id(lower) in made:
        first = made[id(lower)].expression
        is_number = isinstance(first, Call) and first.function in ("ops.cast", "ops.convert_to_tensor", "ops.array")
        lower = first.args[0] if is_number else lower
    if not adds or type(lower) is not int or (isinstance(upper, Dim) and lower != 0):
        return []

    def others(items: Any) -> Any:
        found = tuple(one for i, one in enumerate(items) if i != number)
        return found if len(found) > 1 else found[0]

    rest = [one for one in body.nodes if one is not counts]
    used = [value for one in (*[one.expression for one in rest], others(body.outputs)) for value in _graph.values(one)]
    makes_ints = any(
        "int" in value.dtype for one in rest for value in one.outputs if counter in _graph.values(one.expression)
    )
    if after in used or makes_ints or counter in _graph.values(others(body.outputs)):
        return []
    loop = Body(body.name, (counter, others(body.parameters)), rest, others(body.outputs))
    last = node.outputs[number]
    total = upper if isinstance(upper, Dim) else max(lower, upper)
    return [
        dataclasses.replace(
            node,
            outputs=[one for one in node.outputs if one is not last],
            expression=Call("ops.fori_loop", (lower, upper, loop, others(init))),
        ),
        dataclasses.replace(node, outputs=[last], expression=Call("ops.cast", (total, DType(last.dtype)))),
    ]


def _flat(expression: Expression) -> list[Expression]:
    """Return the leaves of tuples and lists; `None` is none."""
    if isinstance(expression, (tuple, list)):
        return [leaf for one in expression for leaf in _flat(one)]
    return [] if expression is None else [expression]


def _structure(
    region: Region,
    packs: dict[int, list[Value]] | None = None,
    inside: Callable[[Body], Sequence[Node | Region]] = lambda body: body.nodes,
) -> Any:
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

    def form(expression: Expression) -> Any:
        if isinstance(expression, Value):
            return token(expression)
        if _is_hole(expression):
            return type(expression).__name__
        if isinstance(expression, Call):
            return (
                expression.function,
                tuple(map(form, expression.args)),
                tuple((name, form(one)) for name, one in expression.kwargs),
            )
        if isinstance(expression, Apply):
            return ("apply", form(expression.function), *map(form, expression.args))
        if isinstance(expression, Custom):
            return ("custom", _form(expression), *map(token, _closed_over(expression)))
        if isinstance(expression, Body):
            for value in _graph.values(expression.parameters):
                numbers[id(value)] = f"local {len(numbers)}"
            inner = forms(inside(expression))
            return ("def", _shape_of(expression.parameters), inner, form(expression.outputs))
        if isinstance(expression, Infix):
            return (expression.operator, form(expression.left), form(expression.right))
        if isinstance(expression, Item):
            return ("item", form(expression.x), tuple(map(form, expression.key)))
        if isinstance(expression, (tuple, list)):
            return (type(expression).__name__, *map(form, expression))
        return repr(expression)

    def forms(items: Sequence[Node | Region]) -> tuple[Any, ...]:
        found: list[Any] = []
        for item in items:
            if isinstance(item, Region):
                path = item.prefix.removeprefix(region.prefix)
                found.append((id(item.function), path, *map(token, item.inputs)))
                outputs = item.outputs
            else:
                update = None if item.update is None else item.update.removeprefix(region.prefix.rstrip(".")).strip(".")
                found.append((form(item.expression), update))
                outputs = item.outputs
            for value in outputs:
                numbers[id(value)] = f"local {len(numbers)}"
        return tuple(found)

    found = forms(region.items)
    return (len(region.inputs), *found, "return", *map(token, region.outputs))


def _shape_of(parameters: Expression) -> Any:
    if isinstance(parameters, (tuple, list)):
        return (type(parameters).__name__, *map(_shape_of, parameters))
    return parameters is not None


def alike(graph: Graph, nodes: list[Node], other: Graph, others: list[Node]) -> bool:
    """Say whether two lists of statements, of two graphs of one model, compute the same."""
    forms = []
    for one, listed in ((graph, nodes), (other, others)):
        copy = dataclasses.replace(one, nodes=_without_scopes(listed))
        region = Region(None, list(_simplified(copy)), list(one.inputs), _graph.values(copy.outputs))
        forms.append((_structure(region), repr(_literals(region.items))))
    return forms[0] == forms[1]


def _without_scopes(nodes: Sequence[Node]) -> list[Node]:
    """Return copies of statements, and of the functions in them, that are in no submodule."""

    def change(one: Expression) -> Expression:
        if isinstance(one, Body):
            return dataclasses.replace(one, nodes=_without_scopes(one.nodes))
        if isinstance(one, Custom):
            nodes, rule_nodes = _without_scopes(one.nodes), _without_scopes(one.rule_nodes)
            return dataclasses.replace(one, nodes=nodes, rule_nodes=rule_nodes)
        return one

    return [
        dataclasses.replace(node, expression=_graph.rebuild(node.expression, change, inside=False), scopes=())
        for node in nodes
    ]


# functions with a gradient of their own


def _form(custom: Custom) -> Any:
    """Return what is the same in two functions that compute the same, with the same rule."""
    inputs = [*custom.parameters, *_closed_over(custom)]
    rule = custom.rule
    rule.outputs = _gradients(custom)
    nodes = [*custom.nodes, Node([], (custom.outputs, rule))]
    region = Region(None, list(nodes), inputs)
    return (custom.name, _structure(region), repr(_literals(region.items)))


def _closed_over(custom: Custom) -> list[Value]:
    """Return what a function closes over, each once."""
    return list(dict.fromkeys(_graph.values(custom)))


def _gradients(custom: Custom) -> Expression:
    """Return one gradient for each argument: none for what the function closes over."""
    given = custom.gradients if isinstance(custom.gradients, (tuple, list)) else (custom.gradients,)
    found = (*given, *[None] * len(_closed_over(custom)))
    return found[0] if len(found) == 1 else found


def _check_custom(custom: Custom) -> None:
    """Refuse what a function of the module cannot do, and gradients that would be lost."""
    for node in (*custom.nodes, *custom.rule_nodes):
        if node.update is not None:
            raise multiop.errors.TranslationError(f"{custom.name} has its own gradient and updates {node.update}")
    if any(one in (SEED, TRAINING) for one in _graph.walk(custom) if isinstance(one, Name)):
        raise multiop.errors.TranslationError(f"{custom.name} has its own gradient and depends on the mode")
    for value in _closed_over(custom):
        if value.kind != "state" and "int" not in value.dtype and value.dtype != "bool":
            raise multiop.errors.TranslationError(
                f"{custom.name} closes over {value.name or 'a value'}, whose gradient its rule does not give"
            )


def _is_hole(expression: Expression) -> bool:
    return expression is not None and not isinstance(expression, str) and _graph.is_literal(expression)


def _literals(
    items: Sequence[Node | Region], inside: Callable[[Body], Sequence[Node | Region]] = lambda body: body.nodes
) -> list[tuple[str, Any]]:
    """Return the literals of a submodule, each with a name for it, in the order in which they are written."""
    found: list[tuple[str, Any]] = []
    for item in items:
        if isinstance(item, Region):
            assert item.function is not None
            found += item.function.values_of(item)
        else:
            found += _holes(item.expression, "size", inside)
    return found


def _holes(
    expression: Expression, name: str, inside: Callable[[Body], Sequence[Node | Region]]
) -> list[tuple[str, Any]]:
    if _is_hole(expression):
        return [(name, expression)]
    found = []
    if isinstance(expression, Call):
        names = list(_signature(expression.function))
        for i, one in enumerate(expression.args):
            found += _holes(one, names[i] if i < len(names) else name, inside)
        for own, one in expression.kwargs:
            found += _holes(one, own, inside)
        return found
    if isinstance(expression, Item):  # the key of an item belongs to the structure
        return _holes(expression.x, name, inside)
    if isinstance(expression, slice):
        return []
    if isinstance(expression, Body):
        return _literals(inside(expression), inside) + _holes(expression.outputs, name, inside)
    for one in _graph.children(expression):  # a function with a gradient of its own has none: they are its own
        found += _holes(one, name, inside)
    return found


def _signature(function: str) -> dict[str, Any]:
    """Return the parameters of a function of `ops`, `random` or the layers."""
    where: Any = _layers
    parts = function.split(".")
    if parts[0] in ("ops", "random"):
        where = multiop
    for part in parts:
        where = getattr(where, part, None)
    return {} if where is None else dict(inspect.signature(where).parameters)


def _fresh(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _paths(function: Function) -> set[str]:
    """Return the names of the children whose leaves a function uses."""
    region = function.instances[0]
    found = set()
    for node in region.nodes():
        for value in _graph.values(node.expression):
            if value.kind in ("params", "state") and value.name.startswith(region.prefix):
                found.add(value.name.removeprefix(region.prefix).partition(".")[0])
    return found


class _Writer:
    """The source of one function."""

    def __init__(self, printer: _Printer, function: Function):
        self.printer, self.function, self.graph = printer, function, printer.graph
        self.region = function.instances[0]
        self.custom = function.custom
        self.is_root = self.region.scope is None and self.custom is None
        self.literal = 0
        self.names = _Names({})
        self.lambdas: set[int] = set()
        self.visible: dict[int, dict[int, str]] = {}  # a function in this one -> the names in it
        self.called: dict[int, str] = {}  # a function in this one -> its name
        self.taken: dict[int, list[tuple[str, Expression]]] = {}  # a function in this one -> its parameters
        outputs: Expression = self.graph.outputs if self.is_root else list(self.region.outputs)
        statements: Any = [self._statement(item) for item in self.region.items]
        if self.custom is not None:
            rule = self.custom.rule
            rule.outputs, rule.nodes = _gradients(self.custom), _without_scopes(rule.nodes)
            outputs = self._parametrized((self.custom.outputs, rule))
        self.block = Body(function.name, tuple(self.region.inputs), statements, outputs)
        self._open_sizes()
        self._arrange(self.block, [*self.region.inputs, *self._leaves()])
        self._name()
        self.text = self._print()

    @property
    def statements(self) -> list[Statement]:
        """The statements of the function."""
        return self.block.nodes  # type: ignore[return-value]

    @property
    def outputs(self) -> Expression:
        """What the function returns."""
        return self.block.outputs

    def _leaves(self) -> list[Value]:
        return [value for path, value in self.graph.leaves.items() if path.startswith(self.region.prefix)]

    # statements

    def _statement(self, item: Node | Region) -> Statement:
        prefix = self.region.prefix
        if isinstance(item, Node):
            pattern = _pattern(item.expression)
            expression = self._parametrized(item.expression)
            update = None
            outputs: list[Value | None] = list(item.outputs)
            if item.update is not None:
                update = (item.update + ".").removeprefix(prefix).rstrip(".")
            return Statement(outputs, self._spread(expression), pattern, update)
        function = item.function
        assert function is not None
        path = item.prefix.removeprefix(prefix).rstrip(".")
        if item.scope is not None and item.scope.path.endswith("*"):
            path += "*"
        args: list[Expression] = [Branch(kind, path) for kind in ("params", "state") if kind in function.uses]
        args += [list(self.printer.packs[id(one)]) if id(one) in self.printer.packs else one for one in item.inputs]
        kwargs: list[tuple[str, Expression]] = []
        for name, value in function.values_of(item):
            kwargs.append((name, self._literal(value)))
        if "seed" in function.uses:
            kwargs.append(("seed", SEED))
        if "training" in function.uses:
            kwargs.append(("training", TRAINING))
        outputs = list(item.outputs)
        update = None
        if "update" in function.uses:
            outputs.append(Value((), "dict"))
            update = path
        return Statement(outputs, Call(f"self.{function.name}", tuple(args), tuple(kwargs)), None, update)

    def _literal(self, value: Expression) -> Expression:
        name = self.function.varying.get(self.literal)
        self.literal += 1
        return value if name is None else Name(name)

    def _parametrized(self, expression: Expression) -> Expression:
        """Return an expression with the parameters of the function for literals that differ."""
        if _is_hole(expression):
            return self._literal(expression)
        if isinstance(expression, Call):
            args = tuple(self._parametrized(one) for one in expression.args)
            kwargs = tuple((name, self._parametrized(one)) for name, one in expression.kwargs)
            return Call(expression.function, args, kwargs)
        if isinstance(expression, Apply) and isinstance(expression.function, Custom):
            function = self.printer.customs[_form(expression.function)]
            args = tuple(self._parametrized(one) for one in expression.args)
            return Call(f"self.{function.name}", (*args, *_closed_over(expression.function)))
        if isinstance(expression, Apply):
            inner = self._parametrized(expression.function)
            return Apply(inner, tuple(self._parametrized(one) for one in expression.args))
        if isinstance(expression, Body):
            nodes: Any = [self._statement(item) for item in self.printer.statements_of(expression)]
            return Body(expression.name, expression.parameters, nodes, self._parametrized(expression.outputs))
        if isinstance(expression, Infix):
            return Infix(expression.operator, self._parametrized(expression.left), self._parametrized(expression.right))
        if isinstance(expression, Item):
            return Item(self._parametrized(expression.x), expression.key)
        if isinstance(expression, (tuple, list)):
            return type(expression)([self._parametrized(one) for one in expression])
        return expression

    def _spread(self, expression: Expression) -> Expression:
        """Write `**params["conv"]` where a layer takes all leaves of a submodule under their own names."""

        def change(one: Expression) -> Expression:
            if not isinstance(one, Call) or one.function not in _LAYERS:
                return one
            kwargs = dict(one.kwargs)
            accepted = set(_signature(one.function))
            spreads: list[tuple[str, Expression]] = []
            for kind, leaves in (("params", self.graph.params), ("state", self.graph.state)):
                own = {
                    value.name.rpartition(".")[0]
                    for name, value in kwargs.items()
                    if isinstance(value, Value) and value.kind == kind and value.name.rpartition(".")[2] == name
                }
                if len(own) != 1:
                    suffix = _suffix(kwargs, kind)
                    if suffix is not None:
                        path = (
                            suffix[0].removeprefix(self.region.prefix) if suffix[0] + "." != self.region.prefix else ""
                        )
                        kwargs = {name: value for name, value in kwargs.items() if not isinstance(value, Value)}
                        self.printer.layers.add("layer")
                        spreads.append(("**", Spread(Branch(kind, path), suffix[1])))
                    continue
                (path,) = own
                if not path or not (path + ".").startswith(self.region.prefix):
                    continue
                inside = {leaf.removeprefix(path + ".") for leaf in leaves if leaf.startswith(path + ".")}
                taken = {name for name in inside if getattr(kwargs.get(name), "name", "") == f"{path}.{name}"}
                if inside <= accepted and inside <= taken | _UNUSED:
                    kwargs = {name: value for name, value in kwargs.items() if name not in inside}
                    branch = Branch(kind, (path + ".").removeprefix(self.region.prefix).rstrip("."))
                    spreads.append(("**", Spread(branch)))
            return Call(one.function, one.args, (*spreads, *kwargs.items()))

        return _graph.rebuild(expression, change, inside=False)

    # open sizes and dtypes

    def _open_sizes(self) -> None:
        """Give each size that is open a variable, taken from the shape of a tensor that is at hand."""
        used: collections.Counter[str] = collections.Counter()
        first: dict[str, int] = {}
        returned = [self.outputs] if self.custom is not None else []
        for number, expression in enumerate([*[one.expression for one in self.statements], *returned]):
            for one in _graph.walk(expression):
                if isinstance(one, Dim):
                    used.update(one.symbols)
                    for symbol in one.symbols:
                        first.setdefault(symbol, number)
        for symbol in used:
            at_hand = [(0, value) for value in self.region.inputs]
            inserted = sum(bool(one.size) for one in self.statements)
            for number, statement in enumerate(self.statements[: first[symbol] + inserted], 1):
                at_hand += [(number, value) for value in statement.outputs if value is not None]
            for number, value in at_hand:
                if Dim(symbol, (symbol,)) in value.shape:
                    axis = value.shape.index(Dim(symbol, (symbol,)))
                    size = Item(Call("ops.shape", (value,)), (axis,))
                    self.statements.insert(number, Statement([], size, size=symbol))
                    break
            else:
                raise multiop.errors.TranslationError(f"{self.function.name}: no tensor tells how large {symbol} is")

    def _arrange(self, block: Body, known: list[Value]) -> None:
        """Write loops, dtypes and longer expressions in a function, and in the functions in it."""
        statements: list[Any] = self._find_loops(block)
        returned = Statement([], block.outputs)
        for statement in (*statements, returned):
            for inner in _graph.bodies(statement.expression):
                self._arrange(inner, [*_graph.values(inner.parameters), *known])
            statement.expression = self._resolved(statement.expression, known)
        is_whole = block is self.block and self.custom is None
        statements = self._fold(statements if is_whole else [*statements, returned], returned.expression)
        kept: Any = statements if is_whole else statements[:-1]
        block.nodes, block.outputs = kept, returned.expression
        if block is not self.block and self._is_short(block):
            self.lambdas.add(id(block))

    def _is_short(self, block: Body) -> bool:
        """Say whether a function is one short expression, so that it can be written where it is used."""
        is_rule = self.custom is not None and block in _graph.bodies(self.outputs)
        if block.nodes or is_rule or any(isinstance(one, (tuple, list)) for one in _listed(block.parameters)):
            return False
        inside = list(_graph.walk(block.outputs))
        if SEED in inside or any(isinstance(one, Body) for one in inside):
            return False
        return len(_listed(block.parameters)) * 3 + len(self._render(block.outputs, _Names({}))) + 8 <= _LAMBDA

    def _resolved(self, expression: Expression, others: list[Value]) -> Expression:
        known = [*_graph.values(expression), *others]

        def change(one: Expression) -> Expression:
            if not isinstance(one, DType):
                return one
            if one.name in (self.graph.dtype, "int64"):
                for value in known:
                    is_leaf = value.kind in ("params", "state") and value not in self.region.inputs
                    if value.dtype == one.name and (not is_leaf or value.kind in self.function.uses):
                        return Attribute(value, "dtype")
            return "int32" if one.name == "int64" else one.name  # 64 bits are for programs that ask for them

        return _graph.rebuild(expression, change, inside=False)

    # loops

    def _find_loops(self, block: Body) -> list[Statement]:
        found: list[Statement] = []
        statements: Any = block.nodes
        number = 0
        while number < len(statements):
            end = number + 1
            while end < len(statements) and self._follows(block, statements[end - 1], statements[end]):
                end += 1
            if end - number >= 2:
                found.append(self._loop(statements[number:end]))
            else:
                while end < len(statements) and self._grows(statements[end - 1], statements[end]):
                    end += 1
                grown = self._growing_loop(block, number, end)
                end = end if grown else number + 1
                found += grown or [statements[number]]
            number = end
        return found

    def _parts(self, statement: Statement) -> tuple[str, int, str, bool] | None:
        """Return the path of the submodule that a statement calls: before its number, it, behind it.

        A letter behind a number counts too, as in `block5b`; the last item says that it is one.
        """
        expression = statement.expression
        if not isinstance(expression, Call) or not expression.function.startswith("self."):
            return None
        branches = [one for one in expression.args if isinstance(one, Branch)]
        if not branches:
            return None
        found = re.fullmatch(r"(.*?)(\d+)(_\*)?", branches[0].path)
        if found:
            return found[1], int(found[2]), found[3] or "", False
        found = re.fullmatch(r"(.*\d)([a-z])(_\*)?", branches[0].path)
        if found and SEED not in _graph.walk(expression):  # keys are numbered
            return found[1], ord(found[2]), found[3] or "", True
        return None

    def _is_next(self, before: Statement, after: Statement) -> bool:
        """Say whether a statement calls what the one before it calls, with the parts of the next number."""
        first, second = self._parts(before), self._parts(after)
        if first is None or second is None or (first[0], first[1] + 1, *first[2:]) != second:
            return False
        a, b = before.expression, after.expression
        return bool(a.function == b.function and a.kwargs == b.kwargs and len(a.args) == len(b.args))

    def _grows(self, before: Statement, after: Statement) -> bool:
        """Say whether a statement does what the one before it does, to the list of that one and its result."""
        if not self._is_next(before, after):
            return False
        a, b = before.expression, after.expression
        pairs = [(one, other) for one, other in zip(a.args, b.args, strict=True) if not isinstance(one, Branch)]
        lists = [(one, other) for one, other in pairs if type(one) is list and type(other) is list]
        rest = [one is other for one, other in pairs if type(one) is not list]
        if len(lists) != 1 or not all(rest) or len(before.outputs) - (before.update is not None) != 1:
            return False
        one, other = lists[0]
        return len(other) == len(one) + 1 and all(map(operator.is_, other, [*one, before.outputs[0]]))

    def _growing_loop(self, block: Body, start: int, end: int) -> list[Statement]:
        """Return the list, and the loop that adds to it, of such statements; `[]` if their results are used alone."""
        statements: Any = block.nodes
        steps = statements[start:end]
        if len(steps) < 2 or len(steps[-1].outputs) - (steps[-1].update is not None) != 1:
            return []
        first = steps[0]
        init = next(one for one in first.expression.args if type(one) is list)
        results = [one.outputs[0] for one in steps]
        grown = Value((), "list", name="features")
        swap = functools.partial(_swapped, old=[*init, *results], new=grown)
        others = statements[end:]
        changed = [_graph.rebuild(one.expression, swap, inside=False) for one in others]
        alone = [value for one in (*changed, block.outputs) for value in _graph.values(one) if value in results]
        if alone:
            return []
        for one, expression in zip(others, changed, strict=True):
            one.expression = expression
        loop = self._loop(steps, init)
        args = tuple(grown if one is init else one for one in loop.expression.args)
        loop.expression = Call(loop.expression.function, args, loop.expression.kwargs)
        loop.outputs, loop.carry, loop.grows = loop.outputs[1:], None, grown
        return [Statement([grown], list(init)), loop]

    def _follows(self, block: Body, before: Statement, after: Statement) -> bool:
        """Say whether a statement does to the result of the one before it what that one does."""
        if not self._is_next(before, after):
            return False
        a, b = before.expression, after.expression
        if len(before.outputs) - (before.update is not None) != 1:
            return False
        result = before.outputs[0]
        statements: Any = block.nodes
        others = [one for one in statements if one is not after]
        if any(value is result for one in others for value in _graph.values(one.expression)):
            return False
        if any(value is result for value in _graph.values(block.outputs)):
            return False
        pairs = [(one, other) for one, other in zip(a.args, b.args, strict=True) if not isinstance(one, Branch)]
        changed = [(one, other) for one, other in pairs if one is not other]
        return len(changed) == 1 and changed[0][1] is result and isinstance(changed[0][0], Value)

    def _loop(self, steps: list[Statement], init: Expression = None) -> Statement:
        first, last = steps[0], steps[-1]
        parts = self._parts(first)
        assert parts is not None
        path, start, behind, has_letters = parts
        if init is None:
            pairs = zip(first.expression.args, steps[1].expression.args, strict=True)
            init = next(one for one, other in pairs if other is first.outputs[0])
        marked = f"{path}{{i}}{behind}"
        args = tuple(Branch(one.kind, marked) if isinstance(one, Branch) else one for one in first.expression.args)
        call = Call(first.expression.function, args, first.expression.kwargs)
        update = None if first.update is None else marked
        loop = range(start, start + len(steps))
        letters = "".join(map(chr, loop)) if has_letters else loop
        return Statement(list(last.outputs), call, None, update, loop=letters, carry=(init, last.outputs[0]))

    # names

    def _uses_of(self, expression: Expression) -> list[Value]:
        return [
            one.value if isinstance(one, Attribute) else one
            for one in _graph.walk(expression)
            if isinstance(one, (Value, Attribute))
        ]

    def _fold(self, statements: list[Statement], outputs: Expression) -> list[Statement]:
        """Put an expression that is used once, by the next statement, into it, as long as the line stays short."""
        counts = collections.Counter(id(value) for one in statements for value in self._uses_of(one.expression))
        if not statements or statements[-1].expression is not outputs:
            counts.update(map(id, _graph.values(outputs)))
        names = _Names({})
        found: list[Statement] = []
        for statement in statements:
            while found:
                before = found[-1]
                target = before.outputs[0] if len(before.outputs) == 1 else None
                is_plain = before.update is None and before.loop is None and not before.size and before.pattern is None
                if target is None or not is_plain or statement.loop or counts[id(target)] != 1:
                    break
                uses = [one for one in _graph.walk(statement.expression, inside=False) if one is target]
                if len(uses) != 1:
                    break
                swap = functools.partial(_swapped, old=target, new=before.expression)
                merged = _graph.rebuild(statement.expression, swap, inside=False)
                if len(self._render(merged, names)) > _FOLDED or _depth(merged) > 4:
                    break
                found.pop()
                statement.expression = merged
            found.append(statement)
        return found

    def _name(self) -> None:
        """Give each value a name: that of the tensor it replaces, if that one is not used again."""
        names: dict[int, str] = {}
        sizes = {one.size for one in self.statements if one.size}
        reserved = _TAKEN | sizes | {name for name, _ in self.function.parameters} | set(_LAYERS)
        reserved |= {function.name for function in (*self.printer.functions, *self.printer.customs.values())}
        reserved |= set(self.printer.foreign.values())
        letters = list(_LETTERS)
        for value in self.region.inputs:
            hint = _identifier(value.name)
            keeps = self.is_root or value.kind == "input" or value.dtype == "list"
            if self.custom is not None and hint and not re.search(r"\d", hint) and not hasattr(_layers, hint):
                keeps = True
            base = value.name if keeps else (letters.pop(0) if letters else "x")
            names[id(value)] = _fresh(_identifier(base), reserved | set(names.values()))
        if not any(one.loop for one in self.statements):
            reserved.discard("i")
        self._name_block(self.block, names, dict(names), reserved)
        self.names = _Names(names)

    def _name_block(self, block: Body, names: dict[int, str], alive: dict[int, str], reserved: set[str]) -> None:
        """Name the results of statements; `alive` are the names of what the function has got so far."""
        statements: list[Any] = [*block.nodes, Statement([], block.outputs)]
        last: dict[int, int] = {}
        for number, statement in enumerate(statements):
            for value in self._uses_of(statement.expression):
                last[id(value)] = number
        for number, statement in enumerate(statements):
            for inner in _graph.bodies(statement.expression):
                reserved = self._name_function(inner, names, set(alive.values()), reserved)
            uses = self._uses_of(statement.expression)
            dying = [value for value in uses if last.get(id(value)) == number and id(value) in alive]
            live = {name for key, name in alive.items() if last.get(key, -1) > number}
            if statement.loop is not None:  # each step uses them
                live |= {
                    alive[id(value)]
                    for value in uses
                    if id(value) in alive and (statement.carry is None or value is not statement.carry[0])
                }
            for position, value in enumerate(statement.outputs):
                if value is None or (statement.update is not None and position == len(statement.outputs) - 1):
                    continue
                if id(value) not in last:
                    names[id(value)] = "_"
                    continue
                name = None
                if statement.carry is not None and value is statement.carry[1]:
                    init = statement.carry[0]
                    if alive.get(id(init)) not in live and id(init) in alive:
                        name = alive[id(init)]
                if (
                    name is None
                    and statement.loop is None
                    and value.dtype != "list"
                    and len(statement.outputs) - (statement.update is not None) == 1
                ):
                    free = [alive[id(one)] for one in dying if alive[id(one)] not in live and _may_hold(one, value)]
                    name = free[0] if free else None
                if name is None:
                    hint = _identifier(value.name)
                    hints = (
                        [hint] if len(hint) > 2 and not re.search(r"\d", hint) and len(statement.outputs) < 3 else []
                    )
                    hints = [one for one in hints if not hasattr(_layers, one) and one not in _PLAIN]
                    options = [one for one in (*hints, *_LETTERS) if one not in live | reserved]
                    name = options[0] if options else _fresh("x", live | reserved)
                names[id(value)] = name
                alive[id(value)] = name
                live.add(name)
            for value in dying:
                if alive.get(id(value)) and last[id(value)] == number:
                    alive.pop(id(value), None)

    def _name_function(self, body: Body, names: dict[int, str], alive: set[str], reserved: set[str]) -> set[str]:
        """Name a function in this one, and the values in it, apart from what it closes over."""
        if id(body) not in self.lambdas:
            self.called[id(body)] = _fresh(_identifier(body.name) or "body", reserved | alive)
            reserved = reserved | {self.called[id(body)]}
        closed = {names[id(value)] for value in self._uses_of(body) if id(value) in names}
        used = {id(value) for part in _graph.parts(body) for value in self._uses_of(part)}
        taken = reserved | closed
        own: dict[int, str] = {}
        self.taken[id(body)] = []
        is_rule = self.custom is not None and body in _graph.bodies(self.outputs)

        def chosen(options: Sequence[str]) -> str:
            free = [one for one in options if one not in taken]
            name = free[0] if free else _fresh(options[-1], taken)
            taken.add(name)
            return name

        def unpacked(parameter: Expression) -> Expression:
            if isinstance(parameter, (tuple, list)):
                return type(parameter)(map(unpacked, parameter))
            if parameter is not None and id(parameter) in used:
                hint = _identifier(parameter.name)
                fits = hint and not re.search(r"\d", hint) and not hasattr(_layers, hint)
                own[id(parameter)] = chosen([hint, *_LETTERS] if fits else _LETTERS)
            return parameter

        groups = iter(("carry", "inputs"))
        parameters = _listed(body.parameters)
        for parameter in parameters:
            is_group = isinstance(parameter, (tuple, list))
            if not any(id(value) in used for value in _graph.values(parameter)):
                name = chosen(["_"])
            elif is_rule:
                name = "upstream" if len(parameters) == 1 else f"upstream_{len(self.taken[id(body)]) + 1}"
                own[id(parameter)] = chosen([name])
            elif is_group:
                name = chosen([next(groups, "values")])
                unpacked(parameter)
            else:
                unpacked(parameter)
                name = own[id(parameter)]
            self.taken[id(body)].append((name, parameter if is_group and name != "_" else None))
        inner = {**names, **own}
        self._name_block(body, inner, dict(own), taken - set(own.values()))
        self.visible[id(body)] = inner
        return reserved

    # text

    def _print(self) -> str:
        lines = [*self._header()]
        lines += self._new_state()
        keys = sum(self._keys_of(statement) for statement in self.statements)
        if keys > 1:
            mode = "seed is not None" if "draws" in self.function.uses else "training"
            lines.append(f"    keys = random.split(seed, {keys}) if {mode} else [None] * {keys}")
        self.key, self.keys = 0, keys
        return "\n".join([*lines, *self._print_block(self.block, 4)])

    def _print_block(self, block: Body, indent: int) -> list[str]:
        """Return the lines of the statements of a function, and of what it returns."""
        lines: list[str] = []
        printed: dict[Any, str] = {}
        statements: list[Any] = block.nodes
        result = None
        for number, statement in enumerate(statements, 1):
            lines = self._with_functions(lines, statement.expression, indent, printed, block)
            result = self._result(block, statement, indent) if number == len(statements) else None
            lines += self._lines(statement, indent) if result is None else result
        if result is None:
            lines = self._with_functions(lines, block.outputs, indent, printed, block)
            lines += self._return(block, indent)
        return lines

    def _with_functions(
        self, lines: list[str], expression: Expression, indent: int, printed: dict[Any, str], block: Body
    ) -> list[str]:
        """Return the lines with the functions that an expression uses; equal ones are printed once."""
        for function in _graph.bodies(expression):
            if id(function) in self.lambdas:
                continue
            text = self._local(function, indent)
            name = self.called[id(function)]
            head = text[0].replace(f"def {name}(", "def (", 1)
            key = (head, *text[1:], *[id(value) for value in self._uses_of(function)])
            if key in printed:
                self.called[id(function)] = printed[key]
                continue
            printed[key] = name
            is_first = not lines and block is not self.block
            lines = [*lines, *([] if is_first or (lines and not lines[-1]) else [""]), *text, ""]
        return lines

    def _local(self, function: Body, indent: int) -> list[str]:
        """Return the lines of a function inside of this one."""
        around, self.names = self.names, _Names(self.visible[id(function)])
        space = " " * indent
        parameters = [
            f"{name}: {'Any' if pattern is not None or (one is not None and not isinstance(one, Value)) else 'Tensor'}"
            if one is not None
            else name
            for (name, pattern), one in zip(self.taken[id(function)], _listed(function.parameters), strict=True)
        ]
        result = "Tensor" if not isinstance(function.outputs, (tuple, list, dict)) else "Any"
        name = self.called[id(function)]
        head = f"{space}def {name}({', '.join(parameters)}) -> {result}:"
        lines = [head]
        if len(head) > _WIDTH:
            lines = [space + line for line in _exploded(f"def {name}(", parameters, f") -> {result}:")]
        for name, pattern in self.taken[id(function)]:
            if pattern is not None:
                lines.append(f"{space}    {self._unpacked(pattern)} = {name}")
        lines += self._print_block(function, indent + 4)
        self.names = around
        return lines

    def _unpacked(self, pattern: Expression) -> str:
        """Write the names of what is in a tuple."""

        def text(one: Expression) -> str:
            if isinstance(one, (tuple, list)):
                if all(text(part) == "_" for part in one):
                    return "_"
                return f"({', '.join(map(text, one))}{',' if len(one) == 1 else ''})"
            return "_" if one is None else self.names.get(one)

        return f"{', '.join(map(text, pattern))}{',' if len(pattern) == 1 else ''}"

    def _keys_of(self, statement: Statement) -> int:
        found = sum(one == SEED for one in _graph.walk(statement.expression))
        return found * (len(statement.loop) if statement.loop else 1)

    def _header(self) -> list[str]:
        uses = self.function.uses
        parameters = []
        if self.is_root:
            parameters += ["params: dict[str, Any]", "state: dict[str, Any]"]
        else:
            parameters += [f"{kind}: dict[str, Any]" for kind in ("params", "state") if kind in uses]
        kinds = {"list": "list[Tensor]"}
        parameters += [f"{self.names[value]}: {kinds.get(value.dtype, 'Tensor')}" for value in self.region.inputs]
        options = [f"{name}: {_type(values)}" for name, values in self.function.parameters]
        if self.is_root:
            options += ["training: bool = False", "seed: Any = None"]
        else:
            options += [text for text, use in (("seed: Any", "seed"), ("training: bool", "training")) if use in uses]
        if options:
            parameters += ["*", *options]
        if self.custom is not None:
            head = f"def {self.function.name}({', '.join(parameters)}) -> Any:"
            exploded = _exploded(f"def {self.function.name}(", parameters, ") -> Any:")
            return ["@ops.custom_gradient", *([head] if len(head) <= _WIDTH else exploded), *self._docstring()]
        count = len(self.region.outputs)
        result = "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]" if count else "None"
        if self.is_root:
            result = f"tuple[{'Tensor' if isinstance(self.outputs, Value) else 'Any'}, dict[str, Any]]"
        elif "update" in uses:
            result = f"tuple[{', '.join([*['Tensor'] * count, 'dict[str, Any]'])}]"
        head = f"def {self.function.name}({', '.join(parameters)}) -> {result}:"
        lines = (
            [head] if len(head) <= _WIDTH else _exploded(f"def {self.function.name}(", parameters, f") -> {result}:")
        )
        return [*lines, *self._docstring()]

    def _docstring(self) -> list[str]:
        instances = self.function.instances
        letters: dict[tuple[Any, ...], str] = {}

        def shape(of: Any) -> str:
            sizes = []
            for axis in range(len(of(instances[0]).shape)):
                found = tuple(_size(of(one).shape[axis]) if axis < len(of(one).shape) else "?" for one in instances)
                if len(set(found)) == 1:
                    sizes.append(found[0])
                else:
                    sizes.append(letters.setdefault(found, "abcdefghjklmnopq"[len(letters) % 16]))
            return f"`({', '.join(sizes)}{',' if len(sizes) == 1 else ''})`"

        given = [
            f"`{self.names[value]}`"
            if value.dtype == "list"
            else f"`{self.names[value]}`: {shape(lambda one, i=i: one.inputs[i])}"
            for i, value in enumerate(self.region.inputs)
        ]
        back = [shape(lambda one, i=i: one.outputs[i]) for i in range(len(self.region.outputs))]
        kind = self.function.kind
        new = ["the new state"] if "update" in self.function.uses else ["the state"] if self.is_root else []
        text = f"Compute `{kind}` of {_and(given)}; return {_and([*back, *new])}."
        if self.custom is not None:
            text = f"Compute {_and(back)} of {_and(given)}, with a gradient of its own."
        return _wrapped_docstring(text)

    def _new_state(self) -> list[str]:
        """Start the new state: from nothing where every part is replaced, else from a copy."""
        updates = [statement.update for statement in self.statements if statement.update is not None]
        if not updates or updates == [""]:
            return []
        prefix = self.region.prefix
        leaves = [path.removeprefix(prefix) for path in self.graph.state if path.startswith(prefix)]
        covered = []
        for statement in self.statements:
            if statement.update is None:
                continue
            covered += [statement.update.replace("{i}", str(i)) for i in statement.loop or "0"]

        groups = tuple(one[:-1] for one in covered if one.endswith("*"))

        def level(path: str) -> str:
            parts: dict[str, str | None] = {}
            below = sorted({one.removeprefix(path).partition(".")[0] for one in leaves if one.startswith(path)})
            for name in below:
                if f"{path}{name}" in covered or f"{path}{name}".startswith(groups):
                    continue
                if any(one.startswith(f"{path}{name}.") for one in covered):
                    parts[name] = level(f"{path}{name}.")
                else:
                    parts[name] = None
            inner = [f'"{name}": {text}' for name, text in parts.items() if text is not None]
            if None in parts.values():
                inner.insert(0, f"**{self._branch(Branch('state', path.rstrip('.')))}")
            return "{" + ", ".join(inner) + "}"

        return [*_broken("new_state: dict[str, Any] = ", level(""), 4)]

    def _lines(self, statement: Statement, indent: int) -> list[str]:
        space = " " * indent
        if statement.size:
            return [f"{space}{statement.size} = {self._render(statement.expression, self.names)}"]
        targets = []
        count = len(statement.outputs)
        whole: list[str] = []
        for position, value in enumerate(statement.outputs):
            if statement.update is not None and position == count - 1:
                target, whole = self._updated(statement.update)
                targets.append(target)
            else:
                targets.append("_" if value is None else self.names[value])
        if statement.pattern is not None:
            targets = [self._unpacked(_filled(statement.pattern, iter(statement.outputs)))]
        if statement.loop is None:
            return self._assignment(targets, statement.expression, indent) + [space + line for line in whole]
        lines = []
        init, result = statement.carry or (None, None)
        expression = statement.expression
        if init is not None and result is not None and self.names[init] != self.names[result]:
            lines.append(f"{space}{self.names[result]} = {self._render(init, self.names)}")
            expression = _graph.rebuild(expression, lambda one: result if one is init else one, inside=False)
        if isinstance(statement.loop, str):
            lines.append(f'{space}for i in "{statement.loop}":')
        else:
            start, stop = statement.loop.start, statement.loop.stop
            lines.append(f"{space}for i in range({f'{start}, ' if start else ''}{stop}):")
            self.looped = (self.key, start)
        if statement.grows is not None:
            grown = self.names[statement.grows]
            text = f"{space}    {grown}.append({self._render(expression, self.names)})"
            if not targets and len(text) <= _WIDTH and self.keys < 2:
                return [*lines, text]
            targets, whole = ["new_features", *targets], [*whole, f"{grown}.append(new_features)"]
        lines += self._assignment(targets, expression, indent + 4, in_loop=True)
        lines += [f"{space}    {line}" for line in whole]
        self.key += self._keys_of(statement) - sum(one == SEED for one in _graph.walk(expression))
        return lines

    def _updated(self, path: str) -> tuple[str, list[str]]:
        """Return what a new branch of the state is assigned to, and the lines that put that of a block in its place."""
        if not path.endswith("*"):
            return self._branch(Branch("new_state", path)), []
        above, _, group = path[:-1].rpartition(".")
        self.printer.layers.add("whole")
        prefix = f'{"f" * ("{i}" in group)}"{group}"'
        return "new", [f"{self._branch(Branch('new_state', above))} |= whole(new, {prefix})"]

    def _assignment(
        self, targets: list[str], expression: Expression, indent: int, in_loop: bool = False, left: str = ""
    ) -> list[str]:
        def change(one: Expression) -> Expression:
            if one != SEED:
                return one
            number = self.key
            self.key += 1
            if self.keys <= 1:
                return Name("seed")
            if in_loop:
                offset = number - self.looped[1]
                return Name("keys[i]" if not offset else f"keys[i {'+' if offset > 0 else '-'} {abs(offset)}]")
            return Name(f"keys[{number}]")

        expression = _graph.rebuild(expression, change, inside=False)
        return self._layout(f"{', '.join(targets)} = " if targets else left, expression, "", indent)

    def _layout(self, left: str, expression: Expression, right: str, indent: int) -> list[str]:
        """Break a line that is too long as a formatter would: at the arguments of its outermost call."""
        text = self._render(expression, self.names)
        space = " " * indent
        if indent + len(left) + len(text) + len(right) <= _WIDTH:
            return [f"{space}{left}{text}{right}"]
        if isinstance(expression, (Call, Apply)):
            name = self._function_name(expression)
            args = self._arguments(expression)
            inner = ", ".join(text for text, _ in args)
            if indent + 4 + len(inner) <= _WIDTH:
                return [f"{space}{left}{name}(", f"{space}    {inner}", f"{space}){right}"]
            lines = [f"{space}{left}{name}("]
            for text, one in args:
                if indent + 5 + len(text) <= _WIDTH or isinstance(one, Spread):
                    lines.append(f"{space}    {text},")
                else:
                    head = text[: text.index("=") + 1] if re.match(r"\w+=", text) else ""
                    lines += self._layout(head, one, ",", indent + 4)
            return [*lines, f"{space}){right}"]
        if isinstance(expression, Infix):
            lines = [f"{space}{left}("]
            lines += self._layout("", expression.left, "", indent + 4)
            lines += self._layout(f"{expression.operator} ", expression.right, "", indent + 4)
            return [*lines, f"{space}){right}"]
        if isinstance(expression, (list, tuple)):
            opened, closed = ("[", "]") if isinstance(expression, list) else ("(", ")")
            inner = ", ".join(self._render(one, self.names) for one in expression)
            if indent + 4 + len(inner) <= _WIDTH:
                return [f"{space}{left}{opened}", f"{space}    {inner}", f"{space}{closed}{right}"]
            lines = [f"{space}{left}{opened}"]
            for one in expression:
                lines += self._layout("", one, ",", indent + 4)
            return [*lines, f"{space}{closed}{right}"]
        return [f"{space}{left}{text}{right}"]

    def _return(self, block: Body, indent: int) -> list[str]:
        if block is self.block and self.custom is None:
            new = self._new()
            if self.is_root:
                return _broken("return ", ", ".join([self._render(self.outputs, self.names), *new]), indent)
            names = [self.names[value] for value in self.region.outputs] + new
            return [f"{' ' * indent}return {', '.join(names)}"]
        outputs = block.outputs
        if type(outputs) is tuple and len(outputs) > 1 and SEED not in list(_graph.walk(outputs, inside=False)):
            text = f"{' ' * indent}return {', '.join(self._render(one, self.names) for one in outputs)}"
            if len(text) <= _WIDTH:
                return [text]
        return self._assignment([], outputs, indent, left="return ")

    def _new(self) -> list[str]:
        return ["new_state"] if "update" in self.function.uses else ["state"] if self.is_root else []

    def _result(self, block: Body, statement: Statement, indent: int) -> list[str] | None:
        """Return the lines that return what the last statement computes, if that is all that is returned."""
        is_whole = block is self.block and self.custom is None
        outputs = list(self.region.outputs) if is_whole and not self.is_root else [block.outputs]
        is_plain = statement.update is None and statement.loop is None and not statement.size
        if len(outputs) != 1 or not is_plain or statement.pattern is not None:
            return None
        if len(statement.outputs) != 1 or statement.outputs[0] is not outputs[0]:
            return None
        lines = self._assignment([], statement.expression, indent, left="return ")
        new = self._new() if is_whole else []
        if not new:
            return lines
        return [f"{lines[0]}, {new[0]}"] if len(lines) == 1 and len(lines[0]) + 12 <= _WIDTH else None

    # expressions

    def _note(self, function: str) -> None:
        if function in _LAYERS:
            self.printer.layers.add(function)

    def _branch(self, branch: Branch) -> str:
        parts = branch.path.split(".") if branch.path else []
        keys = {part: "str(i)" if part == "{i}" else f'{"f" * ("{i}" in part)}"{part}"' for part in parts}
        group = parts.pop() if parts and parts[-1].endswith("*") else ""
        text = branch.kind + "".join(f"[{keys[part]}]" for part in parts)
        if not group:
            return text
        self.printer.layers.add("part")
        return f'part({text}, {"f" * ("{i}" in group)}"{group[:-1]}")'

    def _function_name(self, expression: Call | Apply) -> str:
        if isinstance(expression, Apply):
            return self._render(expression.function, self.names, 3)
        self._note(expression.function)
        return expression.function.removeprefix("self.")

    def _arguments(self, expression: Call | Apply, names: _Names | None = None) -> list[tuple[str, Expression]]:
        names = self.names if names is None else names
        args = [(self._render(one, names), one) for one in expression.args]
        if isinstance(expression, Apply):
            return args
        signature = {} if expression.function.startswith("self.") else _signature(expression.function)
        for name, one in expression.kwargs:
            if isinstance(one, Spread):
                text = self._branch(one.branch)
                args.append((f'**layer({text}, "{one.suffix}")' if one.suffix else f"**{text}", one))
                continue
            default = signature[name].default if name in signature else inspect.Parameter.empty
            if _graph.is_literal(one) and type(one) is type(default) and one == default:
                continue
            args.append((f"{name}={self._render(one, names)}", one))
        return args

    def _render(self, expression: Expression, names: _Names, level: int = 0) -> str:
        if isinstance(expression, Value):
            if expression.kind in ("params", "state") and expression not in self.region.inputs:
                path = expression.name.removeprefix(self.region.prefix)
                return self._branch(Branch(expression.kind, path))
            return names[expression]
        if isinstance(expression, Attribute):
            return f"{self._render(expression.value, names)}.{expression.name}"
        if isinstance(expression, Name):
            return expression.text
        if isinstance(expression, Foreign):
            return self.printer.foreign[expression]
        if isinstance(expression, Branch):
            return self._branch(expression)
        if isinstance(expression, Dim):
            return expression.text.replace("*", " * ")
        if isinstance(expression, DType):
            return f'"{expression.name}"'
        if isinstance(expression, (Call, Apply)):
            inner = ", ".join(text for text, _ in self._arguments(expression, names))
            return f"{self._function_name(expression)}({inner})"
        if isinstance(expression, Body):
            if id(expression) not in self.lambdas:
                return self.called.get(id(expression), expression.name)
            visible = self.visible.get(id(expression))
            given = ", ".join(name for name, _ in self.taken.get(id(expression), ()))
            inner = self._render(expression.outputs, names if visible is None else _Names(visible))
            text = f"lambda{' ' if given else ''}{given}: {inner}"
            return f"({text})" if level else text
        if isinstance(expression, Infix):
            right = expression.right
            if expression.operator == "+" and isinstance(right, (int, float)) and right < 0:
                return self._render(Infix("-", expression.left, -right), names, level)
            own = 1 if expression.operator in "+-" else 2
            left = self._render(expression.left, names, own)
            right = self._render(expression.right, names, own + 1)
            text = f"{left} {expression.operator} {right}"
            return f"({text})" if own < level else text
        if isinstance(expression, Item):
            inner = ", ".join(_key(one, lambda x: self._render(x, names)) for one in expression.key)
            return f"{self._render(expression.x, names, 3)}[{inner}]"
        if isinstance(expression, tuple):
            inner = ", ".join(self._render(one, names) for one in expression)
            return f"({inner},)" if len(expression) == 1 else f"({inner})"
        if isinstance(expression, list):
            return f"[{', '.join(self._render(one, names) for one in expression)}]"
        if isinstance(expression, dict):
            return "{" + ", ".join(f'"{name}": {self._render(one, names)}' for name, one in expression.items()) + "}"
        if isinstance(expression, slice):
            return repr(expression)
        if isinstance(expression, str):
            return f'"{expression}"'
        if isinstance(expression, float) and expression in (float("inf"), -float("inf")):
            return 'float("inf")' if expression > 0 else '-float("inf")'
        if isinstance(expression, float) and expression != expression:
            return 'float("nan")'
        return re.sub(r"e-0(?=\d)", "e-", repr(expression)) if isinstance(expression, float) else repr(expression)


def _may_hold(before: Value, after: Value) -> bool:
    """Say whether the variable of one tensor may hold another: what is called `input_ids` stays ids."""
    if before.dtype == "list":
        return False
    hint = _identifier(before.name)
    is_letter = before.kind == "local" or hint in _LETTERS
    return is_letter or ("float" in before.dtype and "float" in after.dtype)


class _Names:
    """The names of values; before they have one, all are called `x`."""

    def __init__(self, names: dict[int, str]):
        self._names = names

    def __getitem__(self, value: Value) -> str:
        return self._names.get(id(value), "x")

    def get(self, value: Value) -> str:
        """Return the name of a value; `_` for one that is not used."""
        return self._names.get(id(value), "_")


def _listed(parameters: Expression) -> tuple[Expression, ...]:
    """Return the parameters of a function as a tuple."""
    return tuple(parameters) if isinstance(parameters, (tuple, list)) else (parameters,)


def _pattern(expression: Expression) -> Expression:
    """Return the tuples in which a call returns its results; `None` if they are not nested."""
    found: Expression = None
    if isinstance(expression, Apply):
        found = None if isinstance(expression.function, Foreign) else expression.function.outputs
    elif isinstance(expression, Call) and expression.function == "ops.while_loop":
        found = expression.args[2]
    elif isinstance(expression, Call) and _graph.functions(expression):
        found = _graph.functions(expression)[0].outputs
    return found if isinstance(found, (tuple, list)) else None


def _filled(pattern: Expression, outputs: Iterator[Any]) -> Expression:
    """Return the tuples with the results in the place of leaves."""
    if isinstance(pattern, (tuple, list)):
        return tuple(_filled(one, outputs) for one in pattern)
    return None if pattern is None else next(outputs)


def _depth(expression: Expression) -> int:
    own = isinstance(expression, (Call, Infix))
    return own + max((_depth(one) for one in _graph.children(expression)), default=0)


def _key(part: Any, render: Any) -> str:
    if not isinstance(part, slice):
        return "..." if part is Ellipsis else render(part)
    texts = ["" if one is None else render(one) for one in (part.start, part.stop)]
    return ":".join(texts) + ("" if part.step is None else f":{render(part.step)}")


def _suffix(kwargs: dict[str, Any], kind: str) -> tuple[str, str] | None:
    """Return where the leaves of one recurrent layer are, and what their names end in."""
    found = set()
    for name, value in kwargs.items():
        if not isinstance(value, Value):
            continue
        path, _, last = value.name.rpartition(".")
        if value.kind != kind or not last.startswith(f"{name}_l"):
            return None
        found.add((path, last.removeprefix(name)))
    return found.pop() if len(found) == 1 else None


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name.rpartition(".")[2]).strip("_").lower()
    name = re.sub(r"_(proj|projection|layer)$", "", name)
    name = "x" if name == "input" else name  # a builtin of Python
    return name if name.isidentifier() and not keyword.iskeyword(name) else ""


def _size(size: Any) -> str:
    return size.text if isinstance(size, Dim) else str(size)


def _type(found: list[Any]) -> str:
    kinds = {type(one).__name__ for one in found}
    (kind,) = kinds if len(kinds) == 1 else ("Any",)
    return {"tuple": "tuple[Any, ...]", "list": "list[Any]"}.get(kind, kind)


def _and(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts) or "nothing"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _exploded(head: str, parts: list[str], tail: str) -> list[str]:
    inner = ", ".join(parts)
    if 4 + len(inner) <= _WIDTH:
        return [head, f"    {inner}", tail]
    return [head, *[f"    {part}," if part != "*" else "    *," for part in parts], tail]


def _broken(left: str, text: str, indent: int) -> list[str]:
    space = " " * indent
    if indent + len(left) + len(text) <= _WIDTH:
        return [f"{space}{left}{text}"]
    if text.startswith("{"):
        parts, depth, start = [], 0, 1
        for place, character in enumerate(text):
            depth += (character in "{[(") - (character in "}])")
            if (character == "," and depth == 1) or (place == len(text) - 1):
                parts.append(text[start:place].strip())
                start = place + 1
        return [f"{space}{left}{{", *[f"{space}    {part}," for part in parts if part], f"{space}}}"]
    return [f"{space}{left}{text}"]


def _wrapped_docstring(text: str) -> list[str]:
    words, lines, line = re.findall(r"(?:`[^`]*`|[^` ])+", text), [], '    """'
    for word in words:
        if len(line) + 1 + len(word) > _WIDTH - 3:
            lines.append(line)
            line = f"    {word}"
        else:
            line += word if line.endswith('"""') else f" {word}"
    if not lines:
        return [f'{line}"""']
    return [*lines, line, '    """']
