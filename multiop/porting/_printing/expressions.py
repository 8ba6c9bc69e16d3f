"""The text of an expression."""

from __future__ import annotations

import cmath
import dataclasses
import inspect
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from multiop.porting import _graph
from multiop.porting._graph import (
    Apply,
    Body,
    Call,
    Dim,
    DType,
    Expression,
    Foreign,
    Infix,
    Item,
    Limit,
    Name,
    Number,
    Path,
    Value,
)
from multiop.porting._printing.endings import ending_of, original
from multiop.porting._printing.regions import Outline, Region, signature
from multiop.porting._printing.terms import Attribute, Branch, Spread

_LEVELS = {"+": 1, "-": 1, "**": 3} | dict.fromkeys(_graph.CONDITIONS, 0)


@dataclasses.dataclass
class Naming:
    """The names in a function, and in each function in it."""

    names: dict[int, str] = dataclasses.field(default_factory=dict)  # id of a value -> its name
    called: dict[int, str] = dataclasses.field(default_factory=dict)  # a function in this one -> its name
    visible: dict[int, dict[int, str]] = dataclasses.field(default_factory=dict)  # ... -> the names in it
    parameters: dict[int, list[tuple[str, Expression]]] = dataclasses.field(default_factory=dict)  # ... -> its own


class Text:
    """Writes the expressions of one function; a value that has no name yet is called `x`."""

    def __init__(
        self,
        outline: Outline,
        region: Region,
        lambdas: Collection[int],
        naming: Naming | None = None,
        names: Mapping[int, str] | None = None,
    ):
        self.outline, self.region, self.lambdas = outline, region, lambdas
        self.naming = Naming() if naming is None else naming
        self.names = self.naming.names if names is None else names

    def within(self, body: Body) -> Text:
        """Return what writes the expressions of a function inside of this one."""
        names = self.naming.visible.get(id(body), self.names)
        return Text(self.outline, self.region, self.lambdas, self.naming, names)

    def name(self, value: Value) -> str:
        """Return the name of a value."""
        return self.names.get(id(value), "x")

    def __call__(self, expression: Expression, level: int = 0) -> str:
        """Return the text of an expression.

        Args:
            expression: The expression.
            level: How tightly what is around it binds: 1 for sums, 2 for products, 3 for powers, 4 for calls.
        """
        match expression:
            case Value():
                if expression.kind in ("params", "state") and expression not in self.region.inputs:
                    return self.branch(Branch(expression.kind, expression.name.removeprefix(self.region.prefix)))
                return self.name(expression)
            case Attribute():
                return f"{self(expression.value)}.{expression.name}"
            case Name():
                return expression.text
            case Path():
                path = self.region.relative(expression)
                return literal(expression.text) if path is None else self.branch(Branch("name", path))
            case Foreign():
                return self.outline.foreign[expression]
            case Branch():
                return self.branch(expression)
            case Dim():
                return _size(expression.text, level)
            case Number():
                return self(expression.expression, level)
            case Limit():
                return f"{expression.function}({self(expression.dtype)}).{expression.name}"
            case DType():
                return f'"{expression.name}"'
            case Call() | Apply():
                return f"{self.function(expression)}({', '.join(text for text, _ in self.arguments(expression))})"
            case Body():
                return self._function(expression, level)
            case Infix():
                return self._infix(expression, level)
            case Item():
                return f"{self(expression.x, 4)}[{', '.join(map(self._key, expression.key))}]"
            case tuple() if not any(isinstance(part, slice) for part in expression):
                return f"({', '.join(map(self, expression))}{',' if len(expression) == 1 else ''})"
            case tuple() | slice():
                parts = expression if isinstance(expression, tuple) else [expression]
                return f"np.s_[{', '.join(map(self._key, parts))}]"
            case list():
                return f"[{', '.join(map(self, expression))}]"
            case dict():
                return "{" + ", ".join(f"{key(name)}: {self(part)}" for name, part in expression.items()) + "}"
            case str():
                return string_literal(expression) if "{ending}" in expression else literal(expression)
            case float():
                return _number(expression)
            case complex() if not cmath.isfinite(expression):
                return f"complex({_number(expression.real)}, {_number(expression.imag)})"
        return repr(expression)

    def _function(self, body: Body, level: int) -> str:
        if id(body) not in self.lambdas:
            return self.naming.called.get(id(body), body.name)
        parameters = ", ".join(name for name, _ in self.naming.parameters.get(id(body), ()))
        text = f"lambda{' ' if parameters else ''}{parameters}: {self.within(body)(body.outputs)}"
        return f"({text})" if level else text

    def _infix(self, expression: Infix, level: int) -> str:
        operator, right, own = operator_and_right(expression)
        is_power = operator == "**"  # which binds to the right
        text = f"{self(expression.left, own + (is_power or own == 0))} {operator} {self(right, own + (not is_power))}"
        return f"({text})" if own < level else text

    def _key(self, part: Any) -> str:
        if not isinstance(part, slice):
            return "..." if part is Ellipsis else self(part)
        bounds = ["" if bound is None else self(bound) for bound in (part.start, part.stop)]
        return ":".join(bounds) + ("" if part.step is None else f":{self(part.step)}")

    def function(self, expression: Call | Apply) -> str:
        """Return the text of what is called."""
        if isinstance(expression, Apply):
            return self(expression.function, 4)
        return expression.function.removeprefix("self.")

    def arguments(self, expression: Call | Apply) -> list[tuple[str, Expression]]:
        """Return the text of each argument of a call and what it is, without those that are the defaults."""
        args = [(self(arg), arg) for arg in expression.args]
        if isinstance(expression, Apply):
            return args
        parameters = {} if expression.function.startswith("self.") else signature(expression.function)
        for name, arg in expression.kwargs:
            if isinstance(arg, Spread):
                text = self.branch(arg.branch)
                args.append((f'**ending_in({text}, "{arg.suffix}")' if arg.suffix else f"**{text}", arg))
                continue
            default = parameters[name].default if name in parameters else inspect.Parameter.empty
            if _graph.is_literal(arg) and type(arg) is type(default) and arg == default:
                continue
            args.append((f"{name}={self(arg)}", arg))
        return args

    def branch(self, branch: Branch) -> str:
        """Return the text of a subtree of the parameters or of the state, or of the name of a submodule."""
        if branch.kind == "name":
            prefix = self.region.prefix  # which ends in a dot, or is what the names of several submodules begin with
            within = f"{{name}}{'.' if prefix.endswith('.') else ''}" if self.region.scope is not None else ""
            path = branch.path.removesuffix("*")
            return string_literal(path, within) if path else "name"
        keys = branch.path.split(".") if branch.path else []
        group = keys.pop() if keys and keys[-1].endswith("*") else ""
        text = branch.kind + "".join(
            "[str(i)]" if (own := original(key)) == "{i}" else f"[{string_literal(own)}]" for key in keys
        )
        ending = ending_of(group[:-1])
        if ending is not None:
            return f"ending_in({text}, {string_literal(ending)})"
        return f"part({text}, {string_literal(group[:-1])})" if group else text


def operator_and_right(expression: Infix) -> tuple[str, Expression, int]:
    """Return the operator and the right operand as they are written, and how tightly the operator binds."""
    operator, right = expression.operator, expression.right
    if operator == "+" and isinstance(right, (int, float)) and right < 0:
        operator, right = "-", -right
    return operator, right, _LEVELS.get(operator, 2)


def literal(text: str) -> str:
    """Return the literal of a string, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def key(name: Any) -> str:
    """Return the text of the key of a dict."""
    return literal(name) if isinstance(name, str) else repr(name)


def string_literal(text: str, within: str = "") -> str:
    """Return the literal of a string with the variables `{i}` and `{ending}`, behind a part that may have fields."""
    if text == "{ending}" and not within:
        return "ending"
    doubled = re.sub(r"[{}]", r"\g<0>\g<0>", text)
    filled = re.sub(r"\{(\{(?:i|ending)\})\}", r"\1", doubled)
    return literal(text) if filled == doubled and not within else "f" + literal(within + filled)


def _size(text: str, level: int) -> str:
    own = 1 if re.search("[+-]", text) else 2 if re.search("[*/%]", text) else 3
    text = re.sub(r"(?<=[\w)])\*(?=[\w(])", " * ", text)
    return f"({text})" if own < level else text


def _number(number: float) -> str:
    if number in (float("inf"), -float("inf")):
        return 'float("inf")' if number > 0 else '-float("inf")'
    return 'float("nan")' if number != number else re.sub(r"e-0(?=\d)", "e-", repr(number))
