"""The statements of one function, from those of its submodule."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from multiop import errors
from multiop.porting import _graph
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
    Infix,
    Item,
    Name,
    Node,
    Value,
    is_call,
)
from multiop.porting._printing import loops, recurrences
from multiop.porting._printing.expressions import Text
from multiop.porting._printing.regions import (
    LAYERS,
    Function,
    Outline,
    Region,
    closed_over,
    hole_parts,
    is_hole,
    rule_of,
    signature,
    swap_values,
    without_scopes,
)
from multiop.porting._printing.terms import Attribute, Branch, Loop, Spread, Statement, is_for

_FOLDED = 92  # the longest line that grows by putting one expression into another
_DEPTH = 4  # the most calls in one another
_LAMBDA = 64  # the longest function that is written into the call that takes it
_UNUSED = {"num_batches_tracked"}  # leaves that a layer takes and does not use


class Definition:
    """What is printed of one function: its statements, in a `Body`, with loops and folded expressions."""

    def __init__(self, outline: Outline, function: Function):
        self.outline, self.graph, self.function = outline, outline.graph, function
        self.region, self.custom = function.instances[0], function.custom
        self.is_root = function is outline.root
        self.lambdas: set[int] = set()  # the functions in this one that are written where they are used
        self._literals = 0
        outputs: Expression = self.graph.outputs if self.is_root else list(self.region.outputs)
        statements: Any = [self._statement(item) for item in self.region.items]
        if self.custom is not None:
            rule = rule_of(self.custom)
            rule.nodes = without_scopes(rule.nodes)
            outputs = self._put_parameters((self.custom.outputs, rule))
        self.block = Body(function.name, tuple(self.region.inputs), statements, outputs)
        self._open_sizes()
        leaves = [value for path, value in self.graph.leaves.items() if path.startswith(self.region.prefix)]
        self._arrange(self.block, [*self.region.inputs, *leaves])

    @property
    def statements(self) -> list[Statement]:
        """The statements of the function."""
        return self.block.nodes  # type: ignore[return-value]

    @property
    def outputs(self) -> Expression:
        """What the function returns."""
        return self.block.outputs

    def is_whole(self, block: Body) -> bool:
        """Say whether a block is the function itself, which returns a new state too."""
        return block is self.block and self.custom is None

    def is_rule(self, body: Body) -> bool:
        """Say whether a function in this one is the rule of its gradient."""
        return self.custom is not None and body in _graph.bodies(self.outputs)

    # from nodes and submodules to statements

    def _statement(self, item: Node | Region) -> Statement:
        prefix = self.region.prefix
        if isinstance(item, Node):
            update = None if item.update is None else f"{item.update}.".removeprefix(prefix).rstrip(".")
            expression = self._spread(self._put_parameters(item.expression))
            return Statement(list(item.outputs), expression, _pattern(item.expression), update)
        function = item.function
        assert function is not None
        path = item.prefix.removeprefix(prefix).rstrip(".")
        if item.scope is not None and item.scope.path.endswith("*"):
            path += "*"
        args: list[Expression] = [Branch(kind, path) for kind in ("params", "state", "name") if kind in function.uses]
        packs = self.outline.packs
        args += [list(packs[id(value)]) if id(value) in packs else value for value in item.inputs]
        kwargs = [(name, self._literal(value)) for name, value in function.values_of(item)]
        kwargs += [("seed", SEED)] if "seed" in function.uses else []
        kwargs += [("training", TRAINING)] if "training" in function.uses else []
        outputs: list[Value | None] = list(item.outputs)
        update = None
        if "update" in function.uses:
            outputs.append(Value((), "dict"))
            update = path
        return Statement(outputs, Call(f"self.{function.name}", tuple(args), tuple(kwargs)), None, update)

    def _literal(self, value: Expression) -> Expression:
        name = self.function.varying.get(self._literals)
        self._literals += 1
        return value if name is None else Name(name)

    def _put_parameters(self, expression: Expression) -> Expression:
        """Return an expression with the parameters of the function for literals that differ."""
        if is_hole(expression):
            return self._literal(expression)
        if isinstance(expression, Body):
            nodes: Any = [self._statement(item) for item in self.outline.statements_of(expression)]
            return Body(expression.name, expression.parameters, nodes, self._put_parameters(expression.outputs))
        unfolded = _graph.unfold(expression)
        if unfolded is None:
            return expression
        parts = [self._put_parameters(part) for part in hole_parts(expression)]
        if isinstance(expression, Apply) and isinstance(expression.function, Custom):
            name = self.outline.custom(expression.function).name
            return Call(f"self.{name}", (*parts[1:], *closed_over(expression.function)))
        return unfolded.fold([*parts, *unfolded.parts[len(parts) :]])

    def _spread(self, expression: Expression) -> Expression:
        """Write `**params["conv"]` where a layer takes all leaves of a submodule under their own names."""
        prefix = self.region.prefix

        def change(part: Expression) -> Expression:
            if not isinstance(part, Call) or part.function not in LAYERS:
                return part
            kwargs = dict(part.kwargs)
            accepted = set(signature(part.function))
            spreads: list[tuple[str, Expression]] = []
            for kind, leaves in (("params", self.graph.params), ("state", self.graph.state)):
                homes = {
                    value.name.rpartition(".")[0]
                    for name, value in kwargs.items()
                    if isinstance(value, Value) and value.kind == kind and value.name.rpartition(".")[2] == name
                }
                if len(homes) != 1:
                    numbered = _numbered_layer(kwargs, kind)
                    if numbered is not None:
                        path, suffix = numbered
                        path = path.removeprefix(prefix) if f"{path}." != prefix else ""
                        kwargs = {name: value for name, value in kwargs.items() if not isinstance(value, Value)}
                        spreads.append(("**", Spread(Branch(kind, path), suffix)))
                    continue
                (path,) = homes
                if not path or not f"{path}.".startswith(prefix):
                    continue
                names = {leaf.removeprefix(f"{path}.") for leaf in leaves if leaf.startswith(f"{path}.")}
                taken = {name for name in names if getattr(kwargs.get(name), "name", "") == f"{path}.{name}"}
                if names <= accepted and names <= taken | _UNUSED:
                    kwargs = {name: value for name, value in kwargs.items() if name not in names}
                    spreads.append(("**", Spread(Branch(kind, f"{path}.".removeprefix(prefix).rstrip(".")))))
            return Call(part.function, part.args, (*spreads, *kwargs.items()))

        return _graph.rebuild(expression, change, inside=False)

    # open sizes and dtypes

    def _open_sizes(self) -> None:
        """Give each size that is open a variable, taken from the shape of a tensor that is at hand."""
        symbols: collections.Counter[str] = collections.Counter()
        first: dict[str, int] = {}
        for number, expression in enumerate([*[statement.expression for statement in self.statements], self.outputs]):
            for part in _graph.walk(expression):
                if isinstance(part, Dim):
                    symbols.update(part.symbols)
                    for symbol in part.symbols:
                        first.setdefault(symbol, number)
        for symbol in symbols:
            at_hand = [(0, value) for value in self.region.inputs]
            inserted = sum(bool(statement.size) for statement in self.statements)
            for number, statement in enumerate(self.statements[: first[symbol] + inserted], 1):
                at_hand += [(number, value) for value in statement.outputs if value is not None]
            for number, value, axis, factor in _places(symbol, at_hand):
                item: Expression = Item(Call("ops.shape", (value,)), (axis,))
                item = item if factor == 1 else Infix("//", item, factor)
                self.statements.insert(number, Statement([], item, size=symbol))
                break
            else:
                raise errors.TranslationError(f"{self.function.name}: no tensor tells how large {symbol} is")

    def _arrange(self, block: Body, known: list[Value]) -> None:
        """Write loops, dtypes and longer expressions in a function, and in the functions in it."""
        block.nodes = loops.found_in(block)  # type: ignore[assignment]
        recurrences.fold_recurrences(block)
        statements: list[Any] = block.nodes
        returned = Statement([], block.outputs)
        for statement in (*statements, returned):
            for inner in _graph.bodies(statement.expression):
                self._arrange(inner, [*_graph.values(inner.parameters), *known])
            statement.expression = self._with_dtypes(statement.expression, known)
        if self.is_whole(block):
            kept = self._fold_statements(statements, returned.expression)
        else:
            *kept, returned = self._fold_statements([*statements, returned], None)
        block.nodes, block.outputs = kept, returned.expression  # type: ignore[assignment]
        if block is not self.block and not isinstance(block, Loop) and self._is_short(block):
            self.lambdas.add(id(block))

    def _is_short(self, block: Body) -> bool:
        """Say whether a function is one short expression, so that it can be written where it is used."""
        parameters = as_tuple(block.parameters)
        if block.nodes or self.is_rule(block) or any(isinstance(each, (tuple, list)) for each in parameters):
            return False
        inside = list(_graph.walk(block.outputs))
        if SEED in inside or any(isinstance(part, Body) for part in inside):
            return False
        return len(parameters) * 3 + len(self._text(block.outputs)) + 8 <= _LAMBDA

    def _text(self, expression: Expression) -> str:
        """Return an expression as it may be printed, with short names."""
        return Text(self.outline, self.region, self.lambdas)(expression)

    def _with_dtypes(self, expression: Expression, others: list[Value]) -> Expression:
        known = [*_graph.values(expression), *others]
        is_mixed = any(each.dtype == "int64" for each in others)  # given in 64 bits, beside those that ops return in 32

        def change(part: Expression) -> Expression:
            if is_mixed and isinstance(part, Call) and part.function.endswith(("set_item", "_at")):
                x, key, value = part.args
                given = value.x if isinstance(value, Item) else value
                if all(isinstance(each, Value) and each.dtype == "int64" for each in (x, given)):
                    return Call(part.function, (x, key, Call("ops.cast", (value, Attribute(x, "dtype")))), part.kwargs)
            if not isinstance(part, DType):
                return part
            if part.is_open or part.name in (self.graph.dtype, "int64"):
                for value in known:
                    is_leaf = value.kind in ("params", "state") and value not in self.region.inputs
                    if value.dtype == part.name and (not is_leaf or value.kind in self.function.uses):
                        return Attribute(value, "dtype")
            return "int32" if part.name == "int64" else part.name  # 64 bits are for programs that ask for them

        return _graph.rebuild(expression, change, inside=False)

    def _fold_statements(self, statements: Sequence[Statement], outputs: Expression) -> list[Statement]:
        """Put an expression that is used once, by the next statement, into it, as long as the line stays short."""
        counts = collections.Counter(id(value) for each in statements for value in uses_of(each.expression))
        counts.update(map(id, _graph.values(outputs)))
        kept: list[Statement] = []
        for statement in statements:
            while kept:
                before = kept[-1]
                target = before.outputs[0] if len(before.outputs) == 1 else None
                is_plain = before.update is None and before.loop is None and not before.size and before.pattern is None
                is_plain = is_plain and not is_for(before.expression) and not is_for(statement.expression)
                if target is None or not is_plain or statement.loop or counts[id(target)] != 1:
                    break
                if sum(part is target for part in _graph.walk(statement.expression, inside=False)) != 1:
                    break
                swap = functools.partial(swap_values, old=target, new=before.expression)
                merged = _graph.rebuild(statement.expression, swap, inside=False)
                if len(self._text(merged)) > _FOLDED or _depth(merged) > _DEPTH:
                    break
                kept.pop()
                statement.expression = merged
            kept.append(statement)
        return kept


def _places(symbol: str, at_hand: Sequence[tuple[int, Value]]) -> Iterator[tuple[int, Value, int, int]]:
    """Yield tensors, with where they stand, that have an axis of a size, and then those of a multiple of it."""
    for pattern in (rf"()({symbol})", rf"(\d+)\*({symbol})"):
        for number, value in at_hand:
            for axis, size in enumerate(value.shape):
                matched = re.fullmatch(pattern, size.text) if isinstance(size, Dim) else None
                if matched:
                    yield number, value, axis, int(matched[1] or 1)


def as_tuple(parameters: Expression) -> tuple[Expression, ...]:
    """Return the parameters of a function as a tuple."""
    return tuple(parameters) if isinstance(parameters, (tuple, list)) else (parameters,)


def uses_of(expression: Expression) -> list[Value]:
    """Return the tensors in an expression, those included of which it takes an attribute."""
    return [
        part.value if isinstance(part, Attribute) else part
        for part in _graph.walk(expression)
        if isinstance(part, (Value, Attribute))
    ]


def _pattern(expression: Expression) -> Expression:
    """Return the tuples in which a call returns its results; `None` if they are not nested."""
    pattern: Expression = None
    if isinstance(expression, Apply):
        pattern = None if isinstance(expression.function, Foreign) else expression.function.outputs
    elif is_call(expression, "ops.while_loop"):
        pattern = expression.args[2]
    elif isinstance(expression, Call) and _graph.functions(expression):
        pattern = _graph.functions(expression)[0].outputs
    return pattern if isinstance(pattern, (tuple, list)) else None


def _depth(expression: Expression) -> int:
    is_step = isinstance(expression, (Call, Infix))
    return is_step + max((_depth(part) for part in _graph.children(expression)), default=0)


def _numbered_layer(kwargs: dict[str, Any], kind: str) -> tuple[str, str] | None:
    """Return where the leaves of one recurrent layer are, and what their names end in."""
    homes = set()
    for name, value in kwargs.items():
        if not isinstance(value, Value):
            continue
        path, _, last = value.name.rpartition(".")
        if value.kind != kind or not last.startswith(f"{name}_l"):
            return None
        homes.add((path, last.removeprefix(name)))
    return homes.pop() if len(homes) == 1 else None
