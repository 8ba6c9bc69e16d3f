"""The names of functions and of values."""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import functools
import keyword
import linecache
import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from multiop.porting import _graph, _layers
from multiop.porting._graph import Body, Call, Expression, Node, Value
from multiop.porting._printing.expressions import Naming
from multiop.porting._printing.regions import LAYERS, TAKEN, Function, Outline, fresh
from multiop.porting._printing.statements import Definition, as_tuple, uses_of
from multiop.porting._printing.terms import Statement, is_for

_LETTERS = ("x", "y", "z", "u", "v", "w")
_ROLES = {"ops.arange": "positions", "ops.argmax": "chosen", "ops.cos": "cos", "ops.sin": "sin"}
_VIEWS = {f"ops.{name}" for name in ("cast", "expand_dims", "reshape", "squeeze", "swapaxes", "transpose")}


def snake(kind: str) -> str:
    """Return the name of a class as that of a function: `BasicBlock` is `basic_block`, `SmallNet` is `smallnet`."""
    name = re.sub(r"(?<=[a-z])(?:[A-Z][a-z](?![a-z])){2,}", lambda syllables: syllables[0].lower(), kind)
    # `MoE`, `LoRA` and the `v2` of `GATv2` are words
    words = r"[A-Z][a-z](?:(?!V\d)[A-Z]){1,2}(?=[A-Z][a-z]|V\d|[\d_]|$)|(?<=[A-Z])v\d+|V\d+"
    name = re.sub(words, lambda word: f"_{word[0].lower()}_", name)
    # a number ends a word, but for `2D`
    ends = r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?!D(?![a-z]))(?=[A-Z])|(?<=\dD)(?=[A-Z])"
    name = re.sub(ends, "_", name).lower()
    name = "_" * kind.startswith("_") + re.sub(r"[\W_]+", "_", name).strip("_")
    name = re.sub(r"^([a-z]+)_net(?![a-z])", r"\1net", name)
    return name + "_" if keyword.iskeyword(name) or hasattr(_layers, name) or name in TAKEN else name


def name_functions(outline: Outline, name: str) -> None:
    """Give each function of a module a name; that of the whole model is given."""
    outline.root.name = name
    taken = {name} | set(vars(_layers))

    def take_name(base: str) -> str:
        chosen = fresh(base, taken)
        taken.add(chosen)
        return chosen

    for foreign in outline.foreign:
        outline.foreign[foreign] = take_name(snake(foreign.name.strip("_")))
    for custom in outline.customs.values():
        custom.name = take_name(snake(custom.kind))
    by_kind = collections.defaultdict(list)
    for function in outline.submodules:
        if function is not outline.root:
            by_kind[function.kind].append(function)
    for kind, functions in by_kind.items():
        functions.sort(key=lambda function: -len(function.instances))
        common = _children(functions[0])
        for function in functions:
            hints = sorted(_children(function) - common)
            hints = [hint for hint in hints if hint.isidentifier() and not re.search(r"\d", hint)]
            function.name = take_name(snake(kind) + (f"_{snake(hints[0])}" if hints else ""))


def _children(function: Function) -> set[str]:
    """Return the names of the children whose leaves a function uses."""
    region = function.instances[0]
    values = [value for node in region.nodes() for value in _graph.values(node.expression)]
    return {value.name.removeprefix(region.prefix).partition(".")[0] for value in values if region.owns(value)}


def take_from_source(graph: _graph.Graph) -> None:
    """Note the variables of the model's source that hold the results of its lines."""
    kinds, plural = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return), (ast.Tuple, ast.List, ast.Dict)

    @functools.cache
    def lines(file: str) -> dict[int, list[str] | None]:
        linecache.checkcache(file)
        found: dict[int, list[str] | None] = {}
        with contextlib.suppress(SyntaxError, ValueError):
            for each in ast.walk(ast.parse("".join(linecache.getlines(file)))):
                if isinstance(each, kinds) and not isinstance(each.value, (*plural, type(None))):
                    target = each.targets[0] if isinstance(each, ast.Assign) else getattr(each, "target", None)
                    names = [part.id for part in getattr(target, "elts", [target]) if isinstance(part, ast.Name)]
                    numbers = range(each.lineno, (each.end_lineno or each.lineno) + 1)
                    found |= dict.fromkeys(numbers, names if target is not None else None)
        return found

    def assigned(place: str) -> list[str] | None:
        """Return the names that a line assigns; `None` if it returns what the line assigns that called it."""
        file, _, number = place.partition("\n")[0].rpartition(":")
        return lines(file).get(int(number), [])

    def kind(node: Node) -> Any:  # lines are run again, in a loop over layers too
        made, scope = node.expression, re.sub(r"\d", "", node.scopes[-1].path) if node.scopes else ""
        return node.where, scope, type(made), getattr(made, "function", getattr(made, "operator", ""))

    def callers(node: Node) -> list[str]:
        places = node.where.splitlines()
        return ["\n".join(places[number:]) for number in range(len(places))]

    blocks = [graph.nodes]
    for nodes in blocks:
        blocks += [function.nodes for node in nodes for function in _graph.functions(node.expression)]
    every = [node for nodes in reversed(blocks) for node in nodes]
    last = {place: kind(node) for node in every for place in callers(node)}
    for node in every:
        own = (assigned(place) if last[place] == kind(node) else [] for place in callers(node))
        names = next((names for names in own if names is not None), [])
        for value, name in zip(node.outputs, names if len(names) == len(node.outputs) else [], strict=False):
            is_free = value.dtype != "bool" and not keyword.iskeyword(name) and not hasattr(builtins, name)
            value.own = name.strip("_") if is_free else ""
        if isinstance(made := _unviewed(node.expression), Value):
            node.outputs[0].own = node.outputs[0].own or made.own


class Namer:
    """Give each value of a function a name: that of the tensor it replaces, if that one is not used again."""

    def __init__(self, definition: Definition):
        self.definition, self.naming = definition, Naming()
        outline, region, names = definition.outline, definition.region, self.naming.names
        reserved = TAKEN | {statement.size for statement in definition.statements if statement.size} | set(LAYERS)
        reserved |= {name for name, _ in definition.function.parameters} | set(outline.foreign.values())
        reserved |= {function.name for function in outline.functions}
        letters = list(_LETTERS)
        for place, value in enumerate(region.inputs):
            keeps = definition.is_root or value.kind == "input" or value.dtype == "list"
            keeps |= definition.custom is not None and _fits(_identifier(value.name))
            is_mask = value.dtype == "bool" and value.ndim
            own = {each.inputs[place].own for each in definition.function.instances}
            base = value.name if keeps else "mask" if is_mask else letters.pop(0) if letters else "x"
            base = _identifier(base) if keeps or len(own) > 1 else "".join(own) or base
            names[id(value)] = fresh(base, reserved | set(names.values()))
        if not any(statement.loop for statement in definition.statements):
            reserved.discard("i")
        self._name_block(definition.block, names, dict(names), reserved)

    def _name_block(
        self,
        block: Body,
        names: dict[int, str],
        alive: dict[int, str],
        reserved: set[str],
        kept_names: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """Name the results of statements.

        Args:
            block: The function, or the loop.
            names: What has a name; filled.
            alive: The names of what the function has got so far.
            reserved: The names that are not free.
            kept_names: The names of what a loop carries: those of what replaces it, where it is not used any more.
        """
        statements: list[Any] = [*block.nodes, Statement([], block.outputs)]
        last = {id(value): number for number, each in enumerate(statements) for value in uses_of(each.expression)}
        for number, statement in enumerate(statements):
            if is_for(statement.expression):
                self._name_loop(statement, names, alive, reserved, {key for key, use in last.items() if use > number})
                continue
            for inner in _graph.bodies(statement.expression):
                reserved = self._name_function(inner, names, set(alive.values()), reserved)
            uses = uses_of(statement.expression)
            dying = [value for value in uses if last.get(id(value)) == number and id(value) in alive]
            live = {name for key, name in alive.items() if last.get(key, -1) > number}
            init, carried = statement.carry or (None, None)
            if statement.loop is not None:  # each step uses them
                live |= {alive[id(value)] for value in uses if id(value) in alive and value is not init}
            # what is carried has the first choice
            for value in sorted(statement.outputs[: statement.results], key=lambda value: value is not carried):
                if value is None:
                    continue
                if id(value) not in last:
                    names[id(value)] = "_"
                    continue
                name = kept_names.get(id(value))
                if name is None or name in live:
                    kept = live | set(kept_names.values())
                    is_mask = value.dtype == "bool" and value.ndim and statement.results == 1 and statement.loop is None
                    role = _ROLES.get(getattr(_unviewed(statement.expression), "function", ""), "")
                    name = "mask" if is_mask else value.own or role
                    taken = kept | reserved
                    name = fresh(name, taken) if name == "mask" else name
                    if not name or name in taken:
                        name = _name_of_replaced(statement, value, dying, alive, kept) or _own(value, taken)
                names[id(value)] = alive[id(value)] = name
                live.add(name)
            for value in dying:
                alive.pop(id(value), None)

    def _name_loop(
        self, statement: Statement, names: dict[int, str], alive: dict[int, str], reserved: set[str], later: set[int]
    ) -> None:
        """Name what a loop carries, its lists, and what is in it; `later` is used behind it."""
        loop, inits, _ = statement.expression.args
        counter, *parameters = loop.parameters
        used = {id(value) for part in _graph.parts(loop) for value in uses_of(part)}
        live = {name for key, name in alive.items() if key in later or key in used}
        taken = live | reserved | {alive[id(init)] for init in inits if id(init) in alive}
        carried: dict[int, str] = {}
        results: list[Any] = statement.outputs
        for parameter, init, final in zip(parameters, inits, results, strict=False):
            own = alive.get(id(init), "")
            is_free = own == final.own or len(own.partition("_")[0]) == 1  # a letter stands for any tensor
            is_free &= own not in {"", *live, *carried.values()} and init.dtype != "list"
            name = own if is_free else _own(final, taken)
            taken.add(name)
            names[id(parameter)] = names[id(final)] = carried[id(final)] = name
        inner = {id(value) for each in loop.nodes for value in each.outputs}
        for value in results[len(carried) :]:
            if id(value) not in inner:  # a list, or what is computed where it is left behind
                names[id(value)] = name = _own(value, taken)
                taken.add(name)
        name = next((name for name in ("t", "s", "r") if name not in taken), fresh("t", taken))
        names[id(counter)] = name if id(counter) in used else "_"
        inside = {id(x): carried[id(final)] for x, final in zip(parameters, statement.outputs, strict=False)}
        blocked = live | reserved | {names[id(value)] for value in statement.outputs if id(value) in names}
        own = self.naming.visible[id(loop)] = dict(names)
        self._name_block(loop, own, inside, blocked | {names[id(counter)]}, carried)
        names |= {id(value): own[id(value)] for value in statement.outputs if id(value) not in names}
        for key in [key for key in alive if key not in later]:
            del alive[key]
        alive |= {id(value): names[id(value)] for value in statement.outputs if id(value) in later}

    def _name_function(self, body: Body, names: dict[int, str], alive: set[str], reserved: set[str]) -> set[str]:
        """Name a function in this one, and the values in it, apart from what it closes over."""
        if id(body) not in self.definition.lambdas:
            self.naming.called[id(body)] = fresh(_identifier(body.name) or "body", reserved | alive)
            reserved = reserved | {self.naming.called[id(body)]}
        used = {id(value) for part in _graph.parts(body) for value in uses_of(part)}
        taken = reserved | {names[id(value)] for value in uses_of(body) if id(value) in names}
        own: dict[int, str] = {}
        parameters = self.naming.parameters[id(body)] = []
        is_rule = self.definition.is_rule(body)

        def choose(options: Sequence[str]) -> str:
            name = next((option for option in options if option not in taken), "") or fresh(options[-1], taken)
            taken.add(name)
            return name

        def unpack(parameter: Expression) -> None:
            if isinstance(parameter, (tuple, list)):
                for part in parameter:
                    unpack(part)
            elif parameter is not None and id(parameter) in used:
                hint = _identifier(parameter.name)
                own[id(parameter)] = choose([hint, *_LETTERS] if _fits(hint) else _LETTERS)

        groups = iter(("carry", "inputs"))
        given = as_tuple(body.parameters)
        for parameter in given:
            is_group = isinstance(parameter, (tuple, list))
            if not any(id(value) in used for value in _graph.values(parameter)):
                name = choose(["_"])
            elif is_rule:
                name = "upstream" if len(given) == 1 else f"upstream_{len(parameters) + 1}"
                own[id(parameter)] = choose([name])
            elif is_group:
                name = choose([next(groups, "values")])
                unpack(parameter)
            else:
                unpack(parameter)
                name = own[id(parameter)]
            parameters.append((name, parameter if is_group and name != "_" else None))
        inner = {**names, **own}
        self._name_block(body, inner, dict(own), taken - set(own.values()))
        self.naming.visible[id(body)] = inner
        return reserved


def _name_of_replaced(
    statement: Any, value: Value, dying: Sequence[Value], alive: dict[int, str], live: Collection[str]
) -> str | None:
    """Return the name of a tensor that a result replaces."""
    before, after = statement.carry or (None, None)
    if value is after and (name := alive.get(id(before), "")) not in {"", *live}:
        return name
    if statement.loop is not None or value.dtype == "list" or statement.results != 1:
        return None
    held = [(alive[id(each)], each.own) for each in dying if each.dtype != "list"]
    free = [name for name, own in held if name in _LETTERS or (name != own and len(name.partition("_")[0]) == 1)]
    return next((name for name in free if name not in live), None)


def _unviewed(made: Any) -> Any:
    """Return what an expression casts, or gives another shape."""
    while (is_item := _graph.puts_axes(made)) or (isinstance(made, Call) and made.function in _VIEWS):
        made = made.x if is_item else made.args[0]
    return made


def _own(value: Value, taken: set[str]) -> str:
    """Return a name for a result: that in the model's source, or a letter."""
    options = [*filter(None, [value.own]), *_LETTERS]
    options = [f"{name.removesuffix('s')}s" for name in options] if value.dtype == "list" else options
    return next((name for name in options if name not in taken), "") or fresh("x", taken)


def _fits(hint: str) -> bool:
    return bool(hint) and not re.search(r"\d", hint) and not hasattr(_layers, hint)


def _identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name.rpartition(".")[2]).strip("_").lower()
    name = re.sub(r"_(proj|projection|layer)$", "", name)
    name = "x" if name == "input" else name  # a builtin of Python
    return name if name.isidentifier() and not keyword.iskeyword(name) else ""
