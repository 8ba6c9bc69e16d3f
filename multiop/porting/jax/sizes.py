"""Open sizes of a trace: from the expressions of `jax.export` to those of Python, and what a model computes with them."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax import export

from multiop import errors
from multiop.porting import _hosts
from multiop.porting._graph import Dim

_INFIX = {"floordiv": ast.FloorDiv, "mod": ast.Mod}
_FUNCTIONS = {name: getattr(jax.numpy, name) for name in ("exp", "log", "log10", "log1p", "log2", "sqrt")}
_COMPARED = re.compile(r"comparison '(.+)' (>=|<=|>|<) '(.+)' is inconclusive")


class _Infix(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        operator = _INFIX.get(node.func.id) if isinstance(node.func, ast.Name) else None
        return node if operator is None else ast.BinOp(node.args[0], operator(), node.args[1])


def _parse_size(size: Any) -> ast.Expression:
    return ast.fix_missing_locations(_Infix().visit(ast.parse(str(size).replace("^", "**").strip(), mode="eval")))


def text_of(size: Any) -> str:
    """Return a size as an expression of Python; a product has no spaces."""
    return re.sub(r" (\*\*?) ", r"\1", ast.unparse(_parse_size(size)))


def symbols_of(size: Any) -> tuple[str, ...]:
    """Return the names in a size."""
    nodes = list(ast.walk(_parse_size(size)))
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return tuple(sorted({node.id for node in nodes if isinstance(node, ast.Name)} - called))


def dim(size: Any) -> Any:
    """Return a size as an int, or as the expression of open ones."""
    return int(size) if isinstance(size, (int, np.integer)) else Dim(text_of(size), symbols_of(size))


class Opened:
    """Which sizes of the inputs are open, what they are in the example, and what the trace assumes of them."""

    def __init__(self, arrays: Sequence[Any], texts: Sequence[str | None]):
        """Read shapes in the terms of `jax.export.symbolic_shape`; `None` for one that is fixed."""
        self.arrays, self.texts = arrays, texts
        self.constraints: list[str] = []
        self.differing: list[tuple[str, str]] = []
        self.places: dict[str, str] = {}  # a size of which it is assumed what it is -> where in the user's source
        self.example: dict[str, int] = {}
        for array, spec in zip(arrays, self.specs, strict=True):
            for size, length in zip(spec.shape, array.shape, strict=True):
                names = symbols_of(size)
                if len(names) == 1:  # the size is linear in its name, as a dimension of an input
                    start, step = (eval(text_of(size), {}, {names[0]: n}) for n in (0, 1))
                    self.example.setdefault(names[0], (length - start) // ((step - start) or 1))

    @property
    def specs(self) -> list[Any]:
        """What to trace with."""
        scope = export.SymbolicScope(self.constraints)
        shapes = [
            array.shape if text is None else export.symbolic_shape(text, scope=scope, like=array.shape)
            for array, text in zip(self.arrays, self.texts, strict=True)
        ]
        return [jax.ShapeDtypeStruct(shape, array.dtype) for array, shape in zip(self.arrays, shapes, strict=True)]

    @property
    def left(self) -> set[str]:
        """The names of the sizes that are open in spite of what is assumed."""
        return {name for spec in self.specs for size in spec.shape for name in symbols_of(size)}

    def refuse_fixed(self, kind: str) -> None:
        """Raise for a size that has a number for all that the caller gave it a name."""
        for name in self.example.keys() - self.left:
            number, place = self.example[name], self.places.get(name, "")
            raise errors.TranslationError(f"the size {name} is to stay open, and {kind} fixes it to {number}{place}")

    @property
    def guards(self) -> list[str]:
        """What sizes have to fulfil so that the model does what it does in the example."""
        left = self.left
        assumed = [re.fullmatch(r"(.+) (>=|==) (.+)", constraint).groups() for constraint in self.constraints]
        guards = [*assumed, *[(a, "!=", b) for a, b in self.differing]]
        known = [each for each in guards if left.issuperset(symbols_of(each[0]) + symbols_of(each[2]))]
        return list(dict.fromkeys(f"{text_of(a)} {operator} {text_of(b)}" for a, operator, b in known))

    def settle(self, error: Exception) -> bool:
        """Assume what holds in the example where a comparison is inconclusive; say whether that is possible."""
        compared = _COMPARED.search(str(error))
        if compared is None:
            return False
        a, operator, b = compared.groups()
        if not self._holds(a, operator, b):
            operator = {">=": "<", "<": ">=", "<=": ">", ">": "<="}[operator]
        if operator.startswith("<"):
            a, operator, b = b, operator.replace("<", ">"), a
        constraint = f"{a} >= {b}" if operator == ">=" else f"{a} >= {b} + 1"
        if constraint in self.constraints:
            return False
        self.constraints.append(constraint)
        return True

    def settle_equal(self) -> bool:
        """Assume that sizes are equal that are in the example, and that JAX took to differ; say whether there are any."""
        equal = [f"{a} == {b}" for a, b in self.differing if self._holds(a, "==", b)]
        self.constraints += [constraint for constraint in equal if constraint not in self.constraints]
        return bool(equal)

    def _holds(self, a: str, operator: str, b: str) -> bool:
        return bool(eval(f"({text_of(a)}) {operator} ({text_of(b)})", {}, self.example))

    @contextlib.contextmanager
    def traced(self) -> Iterator[None]:
        """Let a model compute with open sizes as it does with ints, and note which ones it compares.

        `len(x)`, functions of `math` and NumPy, and powers give numbers of JAX. What JAX takes to differ, because it is
        not equal for all sizes, is noted where the model itself asks.
        """
        self.differing.clear()
        kinds = {type(size) for spec in self.specs for size in spec.shape if export.is_symbolic_dim(size)}
        with _hosts.replacing() as replace:
            for kind in kinds:
                replace(kind, "__eq__", self._noting(vars(kind)["__eq__"]))
                replace(kind, "__bool__", lambda size: self._note(size, 0) is None)
                replace(kind, "__pow__", _power(vars(kind)["__pow__"]))
                for name, function in _FUNCTIONS.items():
                    replace(kind, name, lambda size, function=function: function(size))  # what NumPy calls
            if kinds:
                replace(builtins, "len", _length(builtins.len))
                for name, function in _FUNCTIONS.items():
                    replace(math, name, _either(getattr(math, name), function, (*kinds, jax.core.Tracer)))
            yield

    def _note(self, size: Any, other: Any) -> None:
        """Note that two sizes were compared, if it is the model that does so, and no library below it."""
        frame = inspect.currentframe()
        for _ in range(2):  # whoever called what notes this
            frame = frame and frame.f_back
        while frame is not None and frame.f_code.co_name == "__ne__":
            frame = frame.f_back
        name = frame.f_code.co_filename if frame is not None else ""
        if _hosts.is_own(name):
            self.differing.append((str(size), str(other)))
            place = f", at {name}:{frame.f_lineno}" if frame is not None else ""
            self.places |= dict.fromkeys(symbols_of(size) if not isinstance(size, int) else (), place)

    def _noting(self, equal: Callable[..., Any]) -> Callable[..., Any]:
        def compare(size: Any, other: Any) -> Any:
            result = equal(size, other)
            if result is False and (isinstance(other, int) or export.is_symbolic_dim(other)):
                self._note(size, other)
            return result

        return compare


def _length(length: Callable[[Any], int]) -> Callable[[Any], Any]:
    def of(x: Any, /) -> Any:
        try:
            return length(x)
        except TypeError:
            if isinstance(x, jax.core.Tracer) and x.shape:
                return x.shape[0]
            raise

    return of


def _power(power: Callable[..., Any]) -> Callable[..., Any]:
    def of(size: Any, exponent: Any, modulo: Any = None) -> Any:
        is_whole = not isinstance(exponent, float) and not (isinstance(exponent, int) and exponent < 0)
        return power(size, exponent, modulo) if is_whole else jax.numpy.power(1.0 * size, exponent)

    return of


def _either(function: Callable[..., Any], other: Callable[..., Any], kinds: tuple[type, ...]) -> Callable[..., Any]:
    return lambda *args: (other if any(isinstance(arg, kinds) for arg in args) else function)(*args)
