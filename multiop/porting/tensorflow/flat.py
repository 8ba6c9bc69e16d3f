"""A TensorFlow graph as one list of operations: calls inlined, shapes with open sizes, what depends on shapes alone computed.

Sizes are found by trying: the shapes of all tensors are inferred by TensorFlow at several sizes of the open dimensions,
and a size that varies is the polynomial of them that passes through all of these points.
"""

from __future__ import annotations

import collections
import dataclasses
import inspect
import itertools
import math
import re
from typing import Any

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop.porting import _hosts
from multiop.porting._graph import Dim, Expression, Scope, Value
from multiop.porting._rows import Untranslated, size_text, spellings
from multiop.porting.tensorflow import _internals
from multiop.porting.tensorflow.operations import UPDATES

_FLOW = spellings(
    "If=_branches StatelessIf=_branches Case=_branches StatelessCase=_branches While=_while StatelessWhile=_while"
)
CALLS = ("PartitionedCall", "StatefulPartitionedCall")
ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
_PRIMES = [n for n in range(101, 640) if all(n % k for k in range(2, 26))][:89]  # a prime number of them: points differ
_INTEGERS = ("int32", "int64")
_LARGE = 64  # entries of what is computed here rather than in the source
_RANDOM = ("Random", "Rng")
_ALL = 2**31 - 1  # the end of a slice that has none
_OF_SHORTER = ("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "Qr", "Svd")  # of the two last dimensions
# what keeps a polynomial of sizes one: at all sizes its result is the polynomial that passes through the points
_OF_POLYNOMIALS = set(
    "Add AddN AddV2 BroadcastArgs BroadcastGradientArgs BroadcastTo Cast Concat ConcatV2 Cumsum Div ExpandDims Fill "  # noqa: SIM905
    "Gather GatherV2 Identity Mul Neg OnesLike Pack Prod Range RealDiv Reshape ReverseV2 Select SelectV2 Slice Snapshot "
    "Split SplitV Square Squeeze StridedSlice Sub Sum TensorScatterUpdate Tile Transpose Unpack ZerosLike".split()
)
_INFIX = {"AddV2": "+", "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%"}
_CHOICES = {"Maximum": ">=", "Minimum": "<="}  # the first operand is taken where it ...
_COMPARISONS = {"Greater": ">", "GreaterEqual": ">=", "Less": "<", "LessEqual": "<=", "Equal": "==", "NotEqual": "!="}
_OPPOSITE = {">": "<=", "<=": ">", "<": ">=", ">=": "<", "==": "!=", "!=": "=="}
_HOLDS: dict[str, Any] = {  # what is known of a comparison with 0 of a number from `low` to `high`
    ">": lambda low, high: True if low > 0 else False if high <= 0 else None,
    ">=": lambda low, high: True if low >= 0 else False if high < 0 else None,
    "<": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "<=": lambda low, high: True if high <= 0 else False if low > 0 else None,
    "==": lambda low, high: True if low == high == 0 else False if low > 0 or high < 0 else None,
    "!=": lambda low, high: False if low == high == 0 else True if low > 0 or high < 0 else None,
}


class Unfit(errors.TranslationError):
    """The sizes of the example do something else than larger ones do."""


@dataclasses.dataclass(eq=False)
class Edge:
    """A tensor between two operations."""

    operation: Operation
    index: int
    dtype: str
    shapes: list[tuple[int, ...] | None]  # at each point
    shape: tuple[Any, ...] = ()
    static: Any = None  # an array of numbers and Dims, where it depends on shapes alone
    points: list[Any] | None = None  # that array at each point
    variable: str | None = None  # the path of the variable that it is the value of
    changed: bool = False  # ... after an assignment
    items: tuple[str, Any] | None = None  # of a list of tensors: what it was made of
    placed: dict[int, Any] = dataclasses.field(default_factory=dict)  # a tensor of its shape, at each point
    expression: Expression = None
    takers: int = 0  # how many operations take it


@dataclasses.dataclass(eq=False)
class Operation:
    """An operation, in the submodule that it belongs to."""

    kind: str
    name: str
    node: Any
    inputs: list[Edge]
    scopes: tuple[Scope, ...] = ()
    where: str = ""
    outputs: list[Edge] = dataclasses.field(default_factory=list)
    variable: str | None = None  # the path of the variable that it reads or writes
    functions: list[Function] = dataclasses.field(default_factory=list)
    rule: Rule | None = None
    loop: Loop | None = None
    is_nested: bool = False

    @property
    def is_overridden(self) -> bool:
        """Whether its gradient is another one than that of its kind: by `gradient_override_map`."""
        return self.node is not None and self.kind not in CALLS and _internals.RULE in self.node.node_def.attr

    def attribute(self, name: str) -> Any:
        """Return an attribute, strings as `str`; it has 32 bits, and as few digits as these need if nothing has 64."""
        value = self.node.get_attr(name)
        if isinstance(value, float) and not any(edge.dtype == "float64" for edge in self.inputs):
            return float(str(np.float32(value)))
        return value.decode() if isinstance(value, bytes) else value


@dataclasses.dataclass(eq=False)
class Function:
    """A function that an operation calls: its own inputs, what it does, its results."""

    inputs: list[Edge]
    operations: list[Operation]
    results: list[Any]


@dataclasses.dataclass(eq=False)
class Rule:
    """The gradient of a function that has one of its own."""

    name: str
    count: int  # of the results, which stand in front of the arguments
    cotangents: list[Edge]
    operations: list[Operation]
    gradients: list[Edge | None]  # one per argument


@dataclasses.dataclass(eq=False)
class Loop:
    """What a loop carries; of a loop that counts, how often it runs."""

    initial: list[Edge]  # of what changes from step to step
    outputs: list[Edge]
    trips: Edge | None = None
    counters: set[int] = dataclasses.field(default_factory=set)  # numbers of what is carried
    written: dict[int, Edge] = dataclasses.field(default_factory=dict)  # number of a list -> what each step writes
    last: set[int] = dataclasses.field(default_factory=set)  # lists that hold what the last step wrote


class Sizes:
    """The open sizes: what they are at each point, and the polynomials of them."""

    def __init__(self, symbols: dict[str, int], multiples: bool = True, assume: bool = False):
        """Make points for symbols.

        Args:
            symbols: The size that each symbol has in the example.
            multiples: Whether the sizes at the points are multiples of those in the example, as a reshape may need.
            assume: Whether what larger sizes do is taken for all, if the example does it too; the port then refuses
                sizes that do something else.
        """
        self.symbols, self.example, self.assume = list(symbols), symbols, assume
        degrees = [()] if not symbols else [()] + [(symbol,) for symbol in self.symbols]
        degrees += list(itertools.combinations_with_replacement(self.symbols, 2))
        self.monomials = degrees
        self.count = len(degrees) + 1 if symbols else 1
        self.values: dict[str, tuple[int, ...]] = {}
        for number, (symbol, size) in enumerate(symbols.items()):
            primes = _PRIMES[number:] + _PRIMES[:number]
            factor = max(size, 1) if multiples else 1
            drawn = [primes[(i * (number + 1)) % len(primes)] * factor for i in range(self.count)]
            self.values[symbol] = tuple(drawn)
        self.known: dict[tuple[int, ...], Any] = {}
        self.more: dict[tuple[int, ...], str] = {}
        self.coefficients: dict[str, dict[tuple[str, ...], int]] = {}  # of the polynomials, by their text
        self.guards: list[str] = []

    def holds(self, operator: str, a: Any, b: Any, assume: bool = False) -> bool | None:
        """Say whether a comparison of two sizes holds for all; `None`: for some, or that is not known.

        Args:
            operator: The operator of Python.
            a: A size.
            b: Another one.
            assume: Whether it is taken to hold for all if it does in the example and for large sizes.
        """
        for least in (0, 1):
            decided = _HOLDS[operator](*self._bounds(a, b, least))
            if decided is not None:
                if least:  # an empty tensor may be another matter
                    used = dict.fromkeys(name for size in (a, b) if isinstance(size, Dim) for name in size.symbols)
                    self._guard(*[f"{name} >= 1" for name in used])
                return bool(decided)
        text = f"{size_text(a)} {operator} {size_text(b)}"
        if not (assume or self.assume) or self._evaluate(text, self.example) is None:
            return None
        seen = {self._evaluate(text, {name: at[i] for name, at in self.values.items()}) for i in range(self.count)}
        if seen != {self._evaluate(text, self.example)}:
            return None
        (result,) = seen
        self._guard(f"{size_text(a)} {operator if result else _OPPOSITE[operator]} {size_text(b)}")
        return bool(result)

    def _guard(self, *guards: str) -> None:
        self.guards += [guard for guard in guards if guard not in self.guards]

    def _evaluate(self, text: str, sizes: dict[str, int]) -> bool | None:
        try:
            return bool(eval(text, {}, sizes))
        except NameError:  # a size that is known only when the model runs
            return None

    def _bounds(self, a: Any, b: Any, least: int) -> tuple[float, float]:
        """Return the least and the largest difference of two sizes, where each symbol is at least `least`."""
        if getattr(a, "text", a) == getattr(b, "text", b):
            return 0, 0
        shifted: collections.Counter[tuple[str, ...]] = collections.Counter()
        for size, sign in ((a, 1), (b, -1)):
            terms = self.coefficients.get(size.text) if isinstance(size, Dim) else {(): int(size)}
            if terms is None:
                return -math.inf, math.inf
            for term, factor in terms.items():  # a symbol is `least` and something that is not negative
                for count in range(len(term) + 1):
                    for rest in itertools.combinations(term, count):
                        shifted[rest] += sign * factor * least ** (len(term) - count)
        slopes = [factor for term, factor in shifted.items() if term]
        low = shifted[()] if all(factor >= 0 for factor in slopes) else -math.inf
        return low, shifted[()] if all(factor <= 0 for factor in slopes) else math.inf

    def computed(self, kind: str, a: Any, b: Any, column: tuple[int, ...]) -> Any:
        """Return the size that an operation makes of two sizes; `None` if it is not known.

        Args:
            kind: The kind of the operation.
            a: Its first operand.
            b: Its second operand.
            column: The result at each point.
        """
        if kind in _CHOICES:
            holds = self.holds(_CHOICES[kind], a, b)
            if holds is not None:
                return a if holds else b
            text, symbols = f"{'max' if kind == 'Maximum' else 'min'}({size_text(a)}, {size_text(b)})", (a, b)
        else:
            is_divided = kind in ("FloorDiv", "FloorMod")
            if kind not in _INFIX or (is_divided and self.holds(">", b, 0, assume=True) is None):
                return None
            polynomial = self.polynomial(column)
            if polynomial is not None and not (is_divided and self._is_chance(kind, a, b)):
                return polynomial
            text, symbols = f"{size_text(a)} {_INFIX[kind]} {size_text(b)}", (a, b)
        if len(set(column)) == 1 or self.polynomial(column) is not None:
            return None  # at other sizes it is another number, which would go unnoticed
        names = dict.fromkeys(name for size in symbols if isinstance(size, Dim) for name in size.symbols)
        size = Dim(text if kind in _CHOICES else f"({text})", tuple(names))
        return size if self.known.setdefault(column, size) == size else None

    def _is_chance(self, kind: str, a: Any, b: Any) -> bool:
        """Say whether the points may show a polynomial where a quotient or a rest is none."""
        terms = self.coefficients.get(a.text) if isinstance(a, Dim) else {(): a}
        return not isinstance(b, int) or terms is None or any(factor % b for term, factor in terms.items() if term)

    def size(self, sizes: tuple[int, ...]) -> Any:
        """Return the size that has these values at the points."""
        if len(set(sizes)) == 1:
            return int(sizes[0])
        if sizes not in self.known:
            polynomial = self.polynomial(sizes)
            if polynomial is None:
                name = self.more.setdefault(sizes, f"size{len(self.symbols) + len(self.more)}")
                polynomial = Dim(name, (name,))
            self.known[sizes] = polynomial
        return self.known[sizes]

    def polynomial(self, sizes: tuple[Any, ...]) -> Any:
        """Return the polynomial with whole coefficients that passes through the points, or their only number."""
        if len(set(sizes)) == 1:
            return int(sizes[0])
        points = range(self.count)
        rows = [[float(np.prod([self.values[s][i] for s in term])) for term in self.monomials] for i in points]
        scale = np.max(rows, 0)
        solution, *_ = np.linalg.lstsq(np.array(rows) / scale, np.array(sizes, "float64"), rcond=None)
        whole = [int(coefficient) for coefficient in np.rint(solution / scale)]
        exact = [sum(int(a) * b for a, b in zip(map(int, row), whole, strict=True)) for row in rows]
        if any(a != b for a, b in zip(exact, sizes, strict=True)):
            return None
        terms, used = [], []
        for term, factor in zip(self.monomials[1:] + self.monomials[:1], whole[1:] + whole[:1], strict=True):
            if not factor:
                continue
            used += [variable for variable in term if variable not in used]
            parts = ([] if factor == 1 and term else [str(factor)]) + list(term)
            terms.append("*".join(parts))
        text = " + ".join(terms).replace("+ -", "- ")
        size = Dim(f"({text})" if len(terms) > 1 else text, tuple(used))
        self.coefficients[size.text] = {t: n for t, n in zip(self.monomials, whole, strict=True) if n}
        return size


class Flat:
    """The list of operations of a function, with the values of its inputs and outputs."""

    def __init__(self, graph: Any, inputs: list[Any], sizes: Sizes, variables: dict[int, str], scopes: Any):
        """Read a function.

        Args:
            graph: A `FuncGraph`.
            inputs: For each input that is no capture, its shape at each point.
            sizes: The open sizes.
            variables: The path of each variable, by the id of its handle.
            scopes: The submodules that the operations of a graph belong to: `scopes(graph, number)`.
        """
        self.sizes, self.variables, self.scopes = sizes, variables, scopes
        self.operations: list[Operation] = []
        self.captured: dict[int, Any] = {}  # id of the edge -> array
        self.current: dict[str, Edge] = {}
        self.depth = 0
        self.added: set[tuple[int, str]] = set()
        self.scratch = [tf.Graph() for _ in range(sizes.count)]
        arguments = []
        for placeholder, shapes in zip(graph.inputs, inputs, strict=False):
            operation = Operation("Input", placeholder.op.name, None, [])
            arguments.append(self._edge(operation, 0, placeholder.dtype.name, shapes))
        self.inputs = arguments
        externals = [external for external, _ in graph.captures]
        arguments = arguments + [self._find_captured(external) for external in externals]
        self.results = self.inline(graph, arguments, ())

    def _edge(self, operation: Operation, index: int, dtype: str, shapes: list[Any]) -> Edge:
        edge = Edge(operation, index, dtype, shapes)
        if all(shape is not None for shape in shapes):
            by_axis = zip(*shapes, strict=True) if shapes[0] else ()
            edge.shape = tuple(self.sizes.size(axi) for axi in by_axis)
        operation.outputs.append(edge)
        return edge

    def _find_captured(self, external: Any) -> Any:
        """Return the path of a captured variable, or the edge of a captured array."""
        if external.dtype == tf.resource:
            path = self.variables.get(id(external)) or self.variables.get(_internals.address(external))
            return path if path is not None else external
        return self._constant(Operation("Const", "constant", None, []), external.dtype, np.asarray(external))

    def _constant(self, operation: Operation, dtype: Any, array: Any) -> Edge:
        edge = self._edge(operation, 0, dtype.name, [array.shape] * self.sizes.count)
        edge.static, edge.points = array.astype(object), [array] * self.sizes.count
        return edge

    def _leave_open(self, operation: Operation) -> list[Edge]:
        """Return the results of an operation whose shapes are not known."""
        for index, output in enumerate(operation.node.outputs):
            self._edge(operation, index, output.dtype.name, [None] * self.sizes.count)
        return operation.outputs

    # inlining

    def inline(self, graph: Any, arguments: list[Any], scopes: tuple[Scope, ...]) -> list[Any]:
        """Add the operations of a function that is called, and return its results."""
        edges: dict[Any, Any] = {}
        for placeholder, argument in zip(graph.inputs, arguments, strict=True):
            edges[(placeholder.op.name, placeholder.value_index)] = argument
        for number, node in enumerate(graph.get_operations()):
            is_argument = (node.name, 0) in edges and not node.inputs
            if is_argument or (id(graph), node.name) in self.added:
                continue
            own = (*scopes, *self.scopes(graph, number))
            given = [edges.get((x.op.name, x.value_index)) for x in node.inputs]
            for index, edge in enumerate(self._read(node, given, own)):
                edges[(node.name, index)] = edge
            if node.type == "IdentityN" and _internals.RULE in node.node_def.attr:
                self._rule(self.operations[-1], edges)
        return [edges.get((y.op.name, y.value_index)) for y in graph.outputs]

    def _read(self, node: Any, given: list[Any], scopes: tuple[Scope, ...]) -> list[Any]:
        if node.type in CALLS:
            function = node.get_attr("f").name
            return self.inline(_internals.function_graph(node, function), given, scopes)
        where = _hosts.own_places((frame.filename, frame.lineno) for frame in reversed(node.traceback or ()))
        operation = Operation(node.type, node.name, node, given, scopes, where, is_nested=self.depth > 0)
        for edge in given:
            if isinstance(edge, Edge):
                edge.takers += 1
        if node.type in _FLOW:
            return getattr(self, _FLOW[node.type])(operation)
        if node.type.startswith("TensorList") and all(isinstance(edge, Edge) for edge in given):
            return self._list(operation)
        if node.type in ("ReadVariableOp", *ASSIGNMENTS, *UPDATES):
            return self._variable(operation)
        if node.type == "ResourceGather" and isinstance(given[0], str):
            operation.inputs = [self._value(given[0]), given[1]]
        if node.type in ("NoOp", "Assert", "PrintV2"):
            return []
        self.operations.append(operation)
        if node.type == "Const":
            return [self._constant(operation, node.outputs[0].dtype, tf.make_ndarray(node.get_attr("value")))]
        if any(isinstance(edge, str) or not isinstance(edge, Edge) for edge in operation.inputs):
            return self._leave_open(operation)  # a variable that something else than the above uses
        try:
            self._outputs(operation)
        except (ValueError, tf.errors.InvalidArgumentError) as error:  # sizes that do not fit each other
            error.add_note('File "{}", line {}'.format(*operation.where.partition("\n")[0].rpartition(":")[::2]))
            raise
        return operation.outputs

    def _variable(self, operation: Operation) -> list[Edge]:
        path = operation.inputs[0]
        if not isinstance(path, str):
            self.operations.append(operation)
            return self._leave_open(operation)
        operation.variable = path
        if operation.kind == "ReadVariableOp":
            return [self._value(path)]
        self.operations.append(operation)
        new = operation.inputs[1:]
        old = self._value(path) if operation.kind != "AssignVariableOp" else new[0]
        edge = self._edge(operation, 0, old.dtype, old.shapes)
        edge.variable, edge.changed = path, True
        operation.inputs = new if operation.kind == "AssignVariableOp" else [old, *new]
        self.current[path] = edge
        return []

    def _value(self, path: str) -> Edge:
        """Return the value that a variable has at this place of the program."""
        if path not in self.current:
            variable = self.variables[path]
            operation = Operation("ReadVariableOp", path, None, [], variable=path)
            shape = tuple(variable.shape.as_list())
            self.current[path] = self._edge(operation, 0, variable.dtype.name, [shape] * self.sizes.count)
            self.current[path].variable = path
        return self.current[path]

    # functions inside

    def function(self, graph: Any, arguments: list[Any], scopes: tuple[Scope, ...]) -> Function:
        """Read a function that is called by an operation, apart from the operations around it."""
        outer, self.operations = self.operations, []
        self.depth += 1
        try:
            results = self.inline(graph, arguments, scopes)
            return Function([], self.operations, results)
        finally:
            self.operations = outer
            self.depth -= 1

    def _branches(self, operation: Operation) -> list[Any]:
        """Read a choice between functions; one that is settled already is that function."""
        node = operation.node
        chosen, *given = operation.inputs
        if node.type.endswith("If"):
            names = [node.get_attr(name).name for name in ("then_branch", "else_branch")]
        else:
            names = [branch.name for branch in node.get_attr("branches")]
        graphs = [_internals.function_graph(node, name) for name in names]
        if chosen.static is not None and not isinstance(chosen.static.item(), Dim):
            number = chosen.static.item()
            number = (0 if number else 1) if node.type.endswith("If") else number
            return self.inline(graphs[number if 0 <= number < len(graphs) else -1], given, operation.scopes)
        current = dict(self.current)
        for graph in graphs:
            operation.functions.append(self.function(graph, given, operation.scopes))
            self._undo(current)
        operation.inputs = [chosen]
        self.operations.append(operation)
        for index, output in enumerate(node.outputs):
            results = [branch.results[index] for branch in operation.functions]
            is_same = all(isinstance(branch, Edge) and branch.shapes == results[0].shapes for branch in results)
            shapes = results[0].shapes if is_same else [None] * self.sizes.count
            self._edge(operation, index, output.dtype.name, shapes)
        return operation.outputs

    def _undo(self, current: dict[str, Edge]) -> None:
        """Forget what a function that may not run assigned to variables: the reader refuses it."""
        for path, edge in list(self.current.items()):
            if edge.changed and current.get(path) is not edge:
                del self.current[path]
        self.current.update(current)

    def _while(self, operation: Operation) -> list[Any]:
        """Read a loop; what it passes on unchanged is closed over."""
        node, given = operation.node, operation.inputs
        body, condition = (_internals.function_graph(node, node.get_attr(name).name) for name in ("body", "cond"))
        current = dict(self.current)

        def starts() -> list[Any]:
            numbers: list[Any] = []
            for start in given:
                if not isinstance(start, Edge):  # a variable
                    numbers.append(start)
                    continue
                edge = self._edge(Operation("Input", "carried", None, []), 0, start.dtype, start.shapes)
                edge.items = start.items
                numbers.append(edge)
            return numbers

        first = starts()
        tried = self.function(body, first, operation.scopes)
        self._undo(current)
        varying = [
            i
            for i, result in enumerate(tried.results)
            if isinstance(result, Edge) and _skip_identities(result) is not first[i]
        ]
        functions = []
        for graph in (condition, body):
            fresh = starts()
            arguments = [fresh[i] if i in varying else operand for i, operand in enumerate(given)]
            read = self.function(graph, arguments, operation.scopes)
            self._undo(current)
            functions.append(Function([fresh[i] for i in varying], read.operations, read.results))
        holds, step = functions
        step.results = [step.results[i] for i in varying]
        operation.functions = functions
        operation.inputs = [given[i] for i in varying]
        self.operations.append(operation)
        loop = Loop(operation.inputs, [])
        operation.loop = loop
        self._count(holds, step, loop)
        for number, (start, result) in enumerate(zip(step.inputs, step.results, strict=True)):
            shapes, kind = (start.shapes if start.shapes == result.shapes else [None] * self.sizes.count), start.dtype
            if number in loop.written:
                item = loop.written[number]
                length = [1] * self.sizes.count if number in loop.last else [int(point) for point in loop.trips.points]
                shapes = [None if shape is None else (n, *shape) for n, shape in zip(length, item.shapes, strict=True)]
                kind = item.dtype
            edge = self._edge(operation, number, kind, shapes)
            if number in loop.written:
                edge.items = ("tensor", edge)
            if number in loop.counters:
                edge.static, edge.points = loop.trips.static, loop.trips.points
            loop.outputs.append(edge)
        outputs = iter(loop.outputs)
        return [next(outputs) if i in varying else operand for i, operand in enumerate(given)]

    def _count(self, holds: Function, step: Function, loop: Loop) -> None:
        """Find out how often a loop runs, if that does not depend on values."""
        counters = {}
        for number, (start, result) in enumerate(zip(loop.initial, step.results, strict=True)):
            if start.static is None or start.static.ndim or start.static.item() != 0 or start.dtype not in _INTEGERS:
                continue
            made = _skip_identities(result).operation
            if made.kind in ("AddV2", "Add"):
                for counting, other in (made.inputs, made.inputs[::-1]):
                    is_one = other.static is not None and other.static.size == 1 and other.static.item() == 1
                    if _skip_identities(counting) is step.inputs[number] and is_one:
                        counters[id(holds.inputs[number])] = number
        queue, bounds = [holds.results[0]], []
        while queue:
            edge = _skip_identities(queue.pop())
            if edge.operation.kind == "LogicalAnd":
                queue += edge.operation.inputs
                continue
            if edge.operation.kind != "Less":
                return
            counter, bound = map(_skip_identities, edge.operation.inputs)
            if id(counter) not in counters or bound.points is None or bound.static.ndim:
                return
            bounds.append(bound)
        least = [min(int(bound.points[i]) for bound in bounds) for i in range(self.sizes.count)] if bounds else []
        exact = [bound for bound in bounds if [int(point) for point in bound.points] == least]
        if not exact or min(least) < 1:
            return
        trips = exact[0]
        written = {}
        for number, (start, result) in enumerate(zip(step.inputs, step.results, strict=True)):
            if start.dtype != "variant":
                continue
            made = _skip_identities(result).operation
            is_written = made.kind == "TensorListSetItem" and _skip_identities(made.inputs[0]) is start
            if not is_written or start.items[0] != "reserved":
                return
            index, item = _skip_identities(made.inputs[1]), made.inputs[2]
            length = start.items[1]
            if index.static is not None and index.static.item() == 0 and length.points is not None:
                if any(int(point) != 1 for point in length.points):
                    return
                loop.last.add(number)
            else:
                own = {id(x) for i, x in enumerate(step.inputs) if i in counters.values()}
                if id(index) not in own or length.points is None or [int(point) for point in length.points] != least:
                    return
            written[number] = item
        loop.trips, loop.counters, loop.written = trips, set(counters.values()), written

    def _list(self, operation: Operation) -> list[Any]:
        """Read an operation on a list of tensors, which loops read from and write to."""
        kind, given = operation.kind, [_skip_identities(edge) for edge in operation.inputs]
        operation.inputs = given
        if kind in ("TensorListFromTensor", "TensorListReserve"):
            edge = self._edge(operation, 0, "variant", [()] * self.sizes.count)
            edge.items = ("tensor", given[0]) if kind == "TensorListFromTensor" else ("reserved", given[1])
            return [edge]
        origin = given[0].items
        if kind == "TensorListStack" and origin is not None and origin[0] == "tensor":
            return [origin[1]]
        if kind == "TensorListLength" and origin is not None and origin[0] == "reserved":
            return [origin[1]]
        self.operations.append(operation)
        if kind == "TensorListGetItem" and origin is not None and origin[0] == "tensor":
            operation.inputs = [origin[1], given[1]]
            shapes = [None if shape is None else shape[1:] for shape in origin[1].shapes]
            return [self._edge(operation, 0, origin[1].dtype, shapes)]
        if kind == "TensorListSetItem":
            edge = self._edge(operation, 0, "variant", [()] * self.sizes.count)
            edge.items = origin
            return [edge]
        return self._leave_open(operation)

    def _rule(self, operation: Operation, edges: dict[Any, Any]) -> None:
        """Let a gradient that was registered add its operations, and read them."""
        node = operation.node
        function = gradient_function(operation.attribute(_internals.RULE))
        cells = closed_over(function)
        if not is_rule_of(function, node):
            return
        graph = node.graph
        before = len(graph.get_operations())
        with graph.as_default():
            upstream = [tf.compat.v1.placeholder(y.dtype, y.shape) for y in node.outputs]
            gradients = function(*upstream)
        nodes = graph.get_operations()[before:]
        self.added.update((id(graph), node.name) for node in nodes)
        count = cells["flat_result_len"]
        outer, self.operations = self.operations, []
        self.depth += 1
        edges = dict(edges)
        cotangents = []
        for placeholder, output in zip(upstream, operation.outputs, strict=True):
            start = Operation("Input", placeholder.op.name, None, [])
            cotangents.append(self._edge(start, 0, output.dtype, output.shapes))
            edges[(placeholder.op.name, 0)] = cotangents[-1]
        for inner in nodes:
            if (inner.name, 0) in edges:
                continue
            given = [edges.get((edge.op.name, edge.value_index)) for edge in inner.inputs]
            for index, edge in enumerate(self._read(inner, given, operation.scopes)):
                edges[(inner.name, index)] = edge
        slopes = [
            None if gradient is None else edges[(gradient.op.name, gradient.value_index)]
            for gradient in gradients[count:]
        ]
        name = getattr(cells.get("grad_fn"), "__qualname__", "") or "custom"
        operation.rule = Rule(name, count, cotangents[:count], self.operations, slopes)
        self.operations = outer
        self.depth -= 1

    # shapes

    def _outputs(self, operation: Operation) -> None:
        node = operation.node
        kinds = [output.dtype.name for output in node.outputs]
        if node.type in ("Shape", "Size", "Rank", "ShapeN"):
            self._of_shapes(operation, kinds)
            return
        known = [output.shape.as_list() if output.shape.rank is not None else None for output in node.outputs]
        is_known = all(shape is not None and None not in shape for shape in known)
        is_function = any(attribute.WhichOneof("value") == "func" for attribute in node.node_def.attr.values())
        if is_function:  # the reader has no translation for it
            self._leave_open(operation)
            return
        if is_known:
            if any(isinstance(size, Dim) for edge in operation.inputs for size in edge.shape or ()):
                self._infer_shapes(operation, 0)  # raises where an open size can be but one
            shapes: list[Any] = [[tuple(shape)] * self.sizes.count for shape in known if shape is not None]
        else:
            columns = [self._infer_shapes(operation, point) for point in range(self.sizes.count)]
            shapes = [list(column) for column in zip(*columns, strict=True)]
        if shapes and shapes[0][0] is None:
            shapes[0] = [self._derive_shape(operation, point) for point in range(self.sizes.count)]
        for index, (kind, sizes) in enumerate(zip(kinds, shapes, strict=True)):
            self._edge(operation, index, kind, sizes)
        if not is_known:
            self._assume(operation)
        self._fold(operation)
        self._note_bounds(operation)

    def _assume(self, operation: Operation) -> None:
        """Let the port refuse sizes at which a result has another shape than at the points."""
        needed: list[tuple[str, Any, Any]] = []
        shape = operation.inputs[0].shape if operation.inputs else ()
        for edge in operation.outputs:
            if edge.shapes[0] is not None:
                needed += [(">=", size, 0) for size in edge.shape if isinstance(size, Dim)]
        if operation.kind == "StridedSlice":
            needed += self._inside(operation)
        elif operation.kind == "Squeeze" and not operation.attribute("squeeze_dims"):
            needed += [("!=", size, 1) for size in shape if isinstance(size, Dim)]
        elif operation.kind in _OF_SHORTER and not all(isinstance(size, int) for size in shape[-2:]):
            points = operation.inputs[0].shapes
            needed.append((">=" if points[0][-2] >= points[0][-1] else "<=", *shape[-2:]))
        for operator, a, b in needed:
            if not self.sizes.holds(operator, a, b, assume=True) and a.symbols[0] in self.sizes.symbols:
                place = (operation.where or operation.name).partition("\n")[0]
                raise Unfit(
                    f"{operation.kind} at {place} does something else where {size_text(a)} {operator} {size_text(b)}, "
                    "which the sizes of the example do not fulfil: give larger ones, or fix this size"
                )

    def _inside(self, operation: Operation) -> list[tuple[str, Any, Any]]:
        """Return what the sizes have to fulfil so that a slice begins and ends inside of its tensor, where that is open."""
        source = operation.inputs[0]
        bounds = [_items(edge) for edge in operation.inputs[1:3]]
        if source.shapes[0] is None or operation.attribute("ellipsis_mask") or operation.attribute("new_axis_mask"):
            return []
        needed = []
        for name, entries in zip(("begin", "end"), bounds, strict=True):
            for i, (size, bound) in enumerate(zip(source.shape, entries or (), strict=False)):
                is_open = isinstance(size, Dim) or isinstance(bound, Dim)
                is_masked = (operation.attribute(f"{name}_mask") | operation.attribute("shrink_axis_mask")) >> i & 1
                if is_masked or not is_open or not isinstance(bound, (int, Dim)) or not isinstance(size, (int, Dim)):
                    continue
                if isinstance(bound, int) and bound >= _ALL:
                    continue
                is_back = isinstance(bound, int) and bound < 0
                size, bound = (size, -bound) if is_back else (size, bound)
                needed.append((">=", size, bound) if isinstance(size, Dim) else ("<=", bound, size))
        return needed

    def _derive_shape(self, operation: Operation, point: int) -> tuple[int, ...] | None:
        """Return the shape of a result that TensorFlow does not infer: it follows from constants."""
        source = operation.inputs[0].shapes[point] if operation.inputs else None
        if source is None:
            return None
        if re.fullmatch(r"(Sparse)?Segment(Sum|Mean|SqrtN|Prod|Max|Min)", operation.kind):
            ids = operation.inputs[-1].points
            return None if ids is None else (int(ids[point].max(initial=-1)) + 1, *source[1:])
        if operation.kind == "Slice" and operation.inputs[2].points is not None:
            starts, lengths = _items(operation.inputs[1]), operation.inputs[2].points[point]
            if starts is None or any(n < 0 and not isinstance(a, int) for a, n in zip(starts, lengths, strict=True)):
                return None
            return tuple(int(n) if n >= 0 else size - a for a, n, size in zip(starts, lengths, source, strict=True))
        if operation.kind != "StridedSlice" or operation.attribute("ellipsis_mask"):
            return None
        begin, end = map(_items, operation.inputs[1:3])
        strides = operation.inputs[3].static
        if begin is None or end is None or strides is None or any(step != 1 for step in strides.ravel()):
            return None
        shape, sizes = [], iter(source)
        for i, (low, high) in enumerate(zip(begin, end, strict=True)):
            has = {name: operation.attribute(f"{name}_mask") >> i & 1 for name in ("begin", "end", "new_axis")}
            if has["new_axis"]:
                shape.append(1)
                continue
            size = next(sizes)
            if operation.attribute("shrink_axis_mask") >> i & 1:
                continue
            length = size if has["begin"] and has["end"] else _length(low, high, size, has["begin"], has["end"])
            if length is None:
                return None
            shape.append(length)
        return (*shape, *sizes)

    def _note_bounds(self, operation: Operation) -> None:
        """Note a number that two bounds determine, as `tf.math.bincount` has it."""
        opposite = {"Minimum": "Maximum", "Maximum": "Minimum"}.get(operation.kind)
        if opposite is None or operation.outputs[0].static is not None or operation.outputs[0].dtype not in _INTEGERS:
            return
        for bound, other in (operation.inputs, operation.inputs[::-1]):
            inner = _skip_identities(other).operation
            limits = [edge.static for edge in inner.inputs if edge.static is not None] if inner.kind == opposite else []
            if bound.static is None or not limits or bound.static.size != 1 or isinstance(bound.static.item(), Dim):
                continue
            limit, number = limits[0], bound.static.item()
            if limit.size != 1 or isinstance(limit.item(), Dim):
                continue
            if limit.item() >= number if opposite == "Maximum" else limit.item() <= number:
                shape = operation.outputs[0].shapes[0]
                self._set_static(operation.outputs[0], [np.full(shape, number, bound.dtype)] * self.sizes.count)
                return

    def _infer_shapes(self, operation: Operation, point: int) -> list[Any]:
        """Let TensorFlow infer the shapes of the results at a point."""
        node, graph = operation.node, self.scratch[point]
        attributes = {
            name: value
            for name, value in node.node_def.attr.items()
            if not name.startswith("_") or name == _internals.SHAPE
        }
        with graph.as_default():
            given = [self._place_edge(edge, point) for edge in operation.inputs]
            made = graph.create_op(
                node.type, given, [output.dtype for output in node.outputs], attrs=attributes, op_def=node.op_def
            )
        inferred = []
        for output in made.outputs:
            shape = output.shape
            is_full = shape.rank is not None and None not in shape.as_list()
            inferred.append(tuple(shape.as_list()) if is_full else None)
        return inferred

    def _place_edge(self, edge: Edge, point: int) -> Any:
        if point not in edge.placed:
            if edge.points is not None:
                edge.placed[point] = tf.constant(edge.points[point], edge.dtype)
            else:
                edge.placed[point] = tf.compat.v1.placeholder(edge.dtype, edge.shapes[point])
        return edge.placed[point]

    def _of_shapes(self, operation: Operation, kinds: list[str]) -> None:
        """Compute an operation that asks for a shape."""
        for index, (edge, kind) in enumerate(zip(operation.inputs, kinds, strict=True)):
            if edge.shapes[0] is None:
                self._edge(operation, index, kind, [None] * self.sizes.count)
                continue
            function = {"Size": np.prod, "Rank": len}.get(operation.kind, list)
            arrays = [np.asarray(function(shape), kind) for shape in edge.shapes]  # type: ignore[operator]
            own = self._edge(operation, index, kind, [array.shape for array in arrays])
            self._set_static(own, arrays)

    def _set_static(self, edge: Edge, arrays: list[Any]) -> None:
        """Note the values of a tensor at the points, if they are polynomials of the open sizes."""
        if len({array.shape for array in arrays}) > 1 or arrays[0].size > _LARGE:
            return
        entries = []
        for column in zip(*[array.ravel().tolist() for array in arrays], strict=True):
            if all(number == column[0] or (number != number and column[0] != column[0]) for number in column):
                entries.append(column[0])
                continue
            is_whole = not any(isinstance(number, (bool, complex)) or number != int(number) for number in column)
            polynomial = self.sizes.polynomial(column) if is_whole else None
            if polynomial is None and arrays[0].dtype.kind in "iu":
                size = self.sizes.known.get(tuple(column))
                polynomial = size if isinstance(size, Dim) else None
            if polynomial is None:
                return
            entries.append(polynomial)
        self._set_entries(edge, entries, arrays)

    def _set_entries(self, edge: Edge, entries: list[Any], arrays: list[Any]) -> None:
        static = np.empty(len(entries), object)
        static[:] = entries
        edge.static, edge.points = static.reshape(arrays[0].shape), arrays

    def _fold(self, operation: Operation) -> None:
        """Compute an operation whose inputs depend on shapes alone, if its results are small."""
        node = operation.node
        is_random = any(word in node.type for word in _RANDOM) or operation.is_overridden
        if not operation.inputs or node.op_def.is_stateful or is_random or node.type in ("StopGradient", "IdentityN"):
            return
        if any(edge.points is None for edge in operation.inputs) or any(e.dtype == "string" for e in operation.outputs):
            return
        shapes = [shape for edge in operation.outputs for shape in edge.shapes]
        if any(
            np.prod(shape) > _LARGE if shape is not None else node.type != "BroadcastGradientArgs" for shape in shapes
        ):
            return
        run = getattr(tf.raw_ops, node.type, None)
        if run is None:
            return
        columns = []
        for point in range(self.sizes.count):
            results = run(**self._arguments(operation, point, run))
            results = results if isinstance(results, (tuple, list)) else [results]
            columns.append([edge.numpy() for edge in results])
            constant = all(len({id(point) for point in edge.points or ()}) == 1 for edge in operation.inputs)
            if constant:
                columns *= self.sizes.count
                break
        is_open = any(not (edge.static == point).all() for edge in operation.inputs for point in edge.points[:1])
        for edge, arrays in zip(operation.outputs, zip(*columns, strict=True), strict=True):
            edge.shapes = [array.shape for array in arrays]
            if is_open and (node.type not in _OF_POLYNOMIALS or node.type in _INFIX):
                self._set_computed(operation, edge, list(arrays))
            else:
                self._set_static(edge, list(arrays))

    def _set_computed(self, operation: Operation, edge: Edge, arrays: list[Any]) -> None:
        """Note the values of a tensor that an operation makes of open sizes, if they are known for all of them."""
        kind = operation.kind
        is_compared = kind in _COMPARISONS
        if len(operation.inputs) != 2 or operation.inputs[0].dtype not in _INTEGERS:
            if kind in _OF_POLYNOMIALS:
                self._set_static(edge, arrays)
            return
        if len({array.shape for array in arrays}) > 1:
            return
        operands = np.broadcast_arrays(*[x.static for x in operation.inputs])
        columns = zip(*[array.ravel().tolist() for array in arrays], strict=True)
        entries = [
            self.sizes.holds(_COMPARISONS[kind], a, b) if is_compared else self.sizes.computed(kind, a, b, column)
            for a, b, column in zip(*[x.ravel().tolist() for x in operands], columns, strict=True)
        ]
        if all(entry is not None for entry in entries):
            self._set_entries(edge, entries, arrays)

    def _arguments(self, operation: Operation, point: int, run: Any) -> dict[str, Any]:
        given = iter(tf.constant((edge.points or [])[point], edge.dtype) for edge in operation.inputs)
        arguments: dict[str, Any] = {}
        wanted = [name for name in inspect.signature(run).parameters if name != "name"]
        for number, (name, count) in enumerate(inputs_of(operation.node)):
            name = name if name in wanted else wanted[number]  # some inputs have another name in Python
            arguments[name] = next(given) if count is None else [next(given) for _ in range(count)]
        attributes = [
            attribute.name for attribute in operation.node.op_def.attr if attribute.name in operation.node.node_def.attr
        ]
        rest = [name for name in wanted if name not in arguments and name not in attributes]
        for name in attributes:
            if name in wanted:
                arguments[name] = operation.node.get_attr(name)
            elif rest and not name.startswith(("T", "N")):
                arguments[rest.pop(0)] = operation.node.get_attr(name)
        return arguments

    def value(self, edge: Edge, kind: str = "local", name: str = "") -> Value:
        """Return a tensor without content."""
        if edge.shapes[0] is None:
            raise Untranslated("a size that depends on values")
        return Value(edge.shape, edge.dtype, kind, name)


def _skip_identities(edge: Any) -> Any:
    """Return the tensor that was passed on unchanged."""
    while isinstance(edge, Edge) and edge.operation.kind == "Identity" and edge.static is None:
        if edge.operation.is_overridden:
            break
        edge = edge.operation.inputs[0]
    return edge


def _items(edge: Any) -> list[Any] | None:
    """Return the entries of a short vector: the numbers that are known, and the tensors that are not."""
    edge = _skip_identities(edge)
    if edge.static is not None:
        return list(edge.static.ravel())
    if edge.operation.kind != "Pack":
        return None
    return [
        item if item.static is None or item.static.size != 1 else item.static.item()
        for item in map(_skip_identities, edge.operation.inputs)
    ]


def _length(low: Any, high: Any, size: int, is_first: bool, is_last: bool) -> int | None:
    """Return the length of a slice between numbers, or between a tensor and the same plus a number."""
    known = (low,) * (not is_first) + (high,) * (not is_last)
    if not any(isinstance(bound, (Edge, Dim)) for bound in known):
        return len(range(size)[slice(None if is_first else int(low), None if is_last else int(high))])
    if is_first or is_last or not isinstance(low, Edge) or not isinstance(high, Edge):
        return None
    if high.operation.kind not in ("Add", "AddV2"):
        return None
    a, b = map(_skip_identities, high.operation.inputs)
    if not _is_same(a, low):
        a, b = b, a
    is_number = b.static is not None and b.static.size == 1 and not isinstance(b.static.item(), Dim)
    return int(b.static.item()) if _is_same(a, low) and is_number else None


def _is_same(a: Edge, b: Edge) -> bool:
    """Say whether two tensors are computed in the same way from the same ones."""
    a, b = _skip_identities(a), _skip_identities(b)
    if a is b:
        return True
    if a.static is not None or b.static is not None:
        return a.static is not None and b.static is not None and np.array_equal(a.static, b.static)
    first, second = a.operation, b.operation
    if first.node is None or second.node is None or first.node.op_def.is_stateful or a.index != b.index:
        return False
    return (
        first.kind == second.kind
        and first.node.node_def.attr == second.node.node_def.attr
        and len(first.inputs) == len(second.inputs)
        and all(map(_is_same, first.inputs, second.inputs))
    )


def gradient_function(name: str) -> Any:
    """Return the function that was registered as a gradient: what `tf.custom_gradient` made of the user's."""
    function = _internals.gradient_of(name)
    return closed_over(function).get("tape_grad_fn", function)


def is_rule_of(function: Any, node: Any) -> bool:
    """Say whether a gradient was registered for this operation: after loading, names may be those of other functions."""
    cells = closed_over(function)
    if "flat_result_len" not in cells or "result" not in cells:
        return False
    results = [tensor for tensor in tf.nest.flatten(cells["result"]) if isinstance(tensor, tf.Tensor)]
    given = node.inputs[: cells["flat_result_len"]]
    return len(results) == len(given) and all(a is b for a, b in zip(results, given, strict=True))


def closed_over(function: Any) -> dict[str, Any]:
    """Return what a function closes over, by name."""
    code = getattr(function, "__code__", None)
    if code is None or not function.__closure__:
        return {}
    return dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__), strict=True))


def inputs_of(node: Any) -> list[tuple[str, int | None]]:
    """Return the names of the inputs of an operation, and for those that are lists how many there are."""
    names: list[tuple[str, int | None]] = []
    for argument in node.op_def.input_arg:
        if argument.number_attr:
            names.append((argument.name, node.get_attr(argument.number_attr)))
        elif argument.type_list_attr:
            names.append((argument.name, len(node.get_attr(argument.type_list_attr))))
        else:
            names.append((argument.name, None))
    return names
