"""The text of functions and of the module, with lines broken as a formatter would."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from multiop.porting import _graph
from multiop.porting._graph import SEED, Apply, Body, Call, Expression, Infix, Name, Value
from multiop.porting._printing.endings import ending_of, original
from multiop.porting._printing.expressions import Naming, Text, key, operator_and_right, string_literal
from multiop.porting._printing.regions import LAYERS, Outline, Region
from multiop.porting._printing.statements import Definition, as_tuple, uses_of
from multiop.porting._printing.terms import Branch, Loop, Spread, Statement, is_for
from multiop.porting._rows import size_text

_WIDTH = 120


def module(outline: Outline, functions: Sequence[str]) -> str:
    """Return the source of a module with some functions, and the layers and imports that these need."""
    framework = outline.graph.framework
    parts = [*_layers_used(functions), *functions]
    bridges = [
        line
        for foreign, name in outline.foreign.items()
        for line in _break_call(f"{name} = porting.bridge(", f'{foreign.source}, "{foreign.framework}"')
    ]
    if bridges:
        parts.insert(0, "\n".join([f"# no translation: these run in {framework}", *bridges]))
    text = "\n\n\n".join(parts)
    lines = [
        f'"""{outline.graph.kind}, ported from {framework}; it runs on every backend of multiop."""',
        "",
        "from __future__ import annotations",
        "",
    ]
    standard = {
        r"(?<![.\w])math\.": "import math",
        r"\bSequence\b": "from collections.abc import Sequence",
        r"\bproduct\(": "from itertools import product",
        r"\bAny\b": "from typing import Any",
    }
    imports = [line for name, line in standard.items() if re.search(name, text)]
    lines += [*imports, ""] if imports else []
    imported = {name for foreign in outline.foreign for name in (foreign.framework, *foreign.modules)}
    imported |= {"numpy as np"} if "np.s_[" in text else set()
    lines += [f"import {name}\n" for name in sorted(imported)]
    names = [
        name
        for name in ("Tensor", "finfo", "iinfo", "ops", "porting", "random", "vjp")
        if re.search(rf"\b{name}\b", text)
    ]
    lines += [f"from multiop import {', '.join(names)}", "", *([] if bridges else ["", ""])]
    return "\n".join(lines) + ("\n" if bridges else "") + text + "\n"


def _break_call(left: str, inner: str) -> list[str]:
    """Return the lines of a call."""
    is_long = len(left) + len(inner) + 1 > _WIDTH
    return [left, f"    {inner}", ")"] if is_long else [f"{left}{inner})"]


def _layers_used(texts: Sequence[str]) -> list[str]:
    """Return the source of the layers that are called, and of those that these call."""
    used: set[str] = set()
    waiting = list(texts)
    while waiting:
        text = waiting.pop()
        called = {name for name in LAYERS if re.search(rf"(?<![.\w]){name}\(", text)} - used
        used |= called
        waiting += [inspect.getsource(LAYERS[name]) for name in called]
    return [inspect.getsource(layer).rstrip() for name, layer in LAYERS.items() if name in used]


def function(definition: Definition, naming: Naming) -> str:
    """Return the source of a function."""
    return "\n".join(_Lines(definition, naming).lines())


class _Lines:
    """The lines of one function."""

    def __init__(self, definition: Definition, naming: Naming):
        self.definition, self.function, self.region = definition, definition.function, definition.region
        self.custom, self.is_root, self.naming = definition.custom, definition.is_root, naming
        self.text = Text(definition.outline, definition.region, definition.lambdas, naming)
        self.keys = sum(_keys_of(statement) for statement in definition.statements)
        self.key = 0  # the number of the next one
        self.looped = (0, 0)  # the number of the first one in a loop, and where the loop starts

    def lines(self) -> list[str]:
        lines = [*self._header(), *self._docstring(), *self._new_state()]
        if self.keys > 1:
            mode = "seed is not None" if "draws" in self.function.uses else "training"
            lines.append(f"    keys = random.split(seed, {self.keys}) if {mode} else [None] * {self.keys}")
        return [*lines, *self._block(self.definition.block, 4)]

    # the head

    def _header(self) -> list[str]:
        uses, outputs = self.function.uses, self.definition.outputs
        leaves = [kind for kind in ("params", "state") if self.is_root or kind in uses]
        parameters = [f"{kind}: dict[str, Any]" for kind in leaves]
        parameters += ["name: str"] if "name" in uses and not self.is_root else []
        parameters += [
            f"{self.text.name(value)}: {'list[Tensor]' if value.dtype == 'list' else 'Tensor'}"
            for value in self.region.inputs
        ]
        options = [f"{name}: {_type(values)}" for name, values in self.function.parameters]
        if self.is_root:
            options += ["training: bool = False", "seed: Any = None"]
        else:
            options += [text for text, use in (("seed: Any", "seed"), ("training: bool", "training")) if use in uses]
        parameters += ["*", *options] if options else []
        tensors = ["Tensor"] * len(self.region.outputs)
        if self.custom is not None:
            result = "Any"
        elif self.is_root:
            result = f"tuple[{'Tensor' if isinstance(outputs, Value) else 'Any'}, dict[str, Any]]"
        elif "update" in uses:
            result = f"tuple[{', '.join([*tensors, 'dict[str, Any]'])}]"
        else:
            result = f"tuple[{', '.join(tensors)}]" if len(tensors) > 1 else "".join(tensors) or "None"
        decorators = ["@ops.custom_gradient"] if self.custom is not None else []
        return [*decorators, *_head(self.function.name, parameters, result)]

    def _docstring(self) -> list[str]:
        instances = self.function.instances
        letters: dict[tuple[Any, ...], str] = {}

        def shape(of: Callable[[Region], Value]) -> str:
            sizes = []
            for axis in range(len(of(instances[0]).shape)):
                shapes = [of(region).shape for region in instances]
                column = tuple(size_text(each[axis]) if axis < len(each) else "?" for each in shapes)
                if len(set(column)) == 1:
                    sizes.append(column[0])
                else:
                    sizes.append(letters.setdefault(column, "abcdefghjklmnopq"[len(letters) % 16]))
            return f"`({', '.join(sizes)}{',' if len(sizes) == 1 else ''})`"

        given = []
        for i, value in enumerate(self.region.inputs):
            name = f"`{self.text.name(value)}`"
            given.append(name if value.dtype == "list" else f"{name}: {shape(lambda region, i=i: region.inputs[i])}")  # type: ignore[misc]
        back = [shape(lambda region, i=i: region.outputs[i]) for i in range(len(self.region.outputs))]  # type: ignore[misc]
        returned = _graph.leaves(self.definition.graph.outputs) if self.is_root else []
        if not all(isinstance(leaf, Value) for leaf in returned):  # a number beside tensors
            back = [shape(lambda _, x=x: x) if isinstance(x, Value) else f"`{self.text(x)}`" for x in returned]  # type: ignore[misc]
        new = ["the new state"] if "update" in self.function.uses else ["the state"] if self.is_root else []
        text = f"Compute `{self.function.kind}` of {_and(given)}; return {_and([*back, *new])}."
        if self.custom is not None:
            text = f"Compute {_and(back)} of {_and(given)}, with a gradient of its own."
        return wrapped_docstring(text)

    def _new_state(self) -> list[str]:
        """Start the new state: from nothing where every part is replaced, else from a copy."""
        statements = [each for each in self.definition.statements if each.update is not None]
        if [each.update for each in statements] in ([], [""]):
            return []
        prefix = self.region.prefix
        leaves = [path.removeprefix(prefix) for path in self.definition.graph.state if path.startswith(prefix)]
        covered = [str(each.update).replace("{i}", str(i)) for each in statements for i in each.loop or "0"]
        groups = tuple(path[:-1] for path in covered if path.endswith("*"))

        def entries(path: str) -> list[str]:
            parts: dict[str, list[str] | None] = {}
            below = sorted({leaf.removeprefix(path).partition(".")[0] for leaf in leaves if leaf.startswith(path)})
            for name in below:
                if f"{path}{name}" in covered or f"{path}{name}".startswith(groups):
                    continue
                is_above = any(other.startswith(f"{path}{name}.") for other in covered)
                parts[name] = entries(f"{path}{name}.") if is_above else None
            inner = [
                f"{key(original(name))}: {{{', '.join(texts)}}}" for name, texts in parts.items() if texts is not None
            ]
            if None in parts.values():
                inner.insert(0, f"**{self.text.branch(Branch('state', path.rstrip('.')))}")
            return inner

        left, inner = "    new_state: dict[str, Any] = {", entries("")
        text = f"{left}{', '.join(inner)}}}"
        return [text] if len(text) <= _WIDTH else [left, *[f"        {entry}," for entry in inner], "    }"]

    # statements

    def _block(self, block: Body, indent: int) -> list[str]:
        """Return the lines of the statements of a function, and of what it returns."""
        lines: list[str] = []
        printed: dict[Any, str] = {}
        statements: list[Any] = block.nodes
        result = None
        for number, statement in enumerate(statements, 1):
            lines = self._with_functions(lines, statement.expression, indent, printed, block)
            result = self._result(block, statement, indent) if number == len(statements) else None
            lines += self._statement(statement, indent) if result is None else result
        if result is None:
            lines = self._with_functions(lines, block.outputs, indent, printed, block)
            lines += self._return(block, indent)
        return lines

    def _with_functions(
        self, lines: list[str], expression: Expression, indent: int, printed: dict[Any, str], block: Body
    ) -> list[str]:
        """Return the lines with the functions that an expression uses; equal ones are printed once."""
        for body in _graph.bodies(expression):
            if id(body) in self.definition.lambdas or isinstance(body, Loop):
                continue
            text = self._local(body, indent)
            name = self.naming.called[id(body)]
            head = text[0].replace(f"def {name}(", "def (", 1)
            key = (head, *text[1:], *[id(value) for value in uses_of(body)])
            if key in printed:
                self.naming.called[id(body)] = printed[key]
                continue
            printed[key] = name
            is_first = not lines and block is not self.definition.block
            lines = [*lines, *([] if is_first or (lines and not lines[-1]) else [""]), *text, ""]
        return lines

    def _local(self, body: Body, indent: int) -> list[str]:
        """Return the lines of a function inside of this one."""
        around, self.text = self.text, self.text.within(body)
        space = " " * indent
        own = self.naming.parameters[id(body)]
        parameters = []
        for (name, pattern), parameter in zip(own, as_tuple(body.parameters), strict=True):
            is_tensor = pattern is None and isinstance(parameter, Value)
            parameters.append(name if parameter is None else f"{name}: {'Tensor' if is_tensor else 'Any'}")
        result = "Tensor" if not isinstance(body.outputs, (tuple, list, dict)) else "Any"
        lines = [f"{space}{line}" for line in _head(self.naming.called[id(body)], parameters, result, indent)]
        lines += [f"{space}    {self._write_tuple(pattern)} = {name}" for name, pattern in own if pattern is not None]
        lines += self._block(body, indent + 4)
        self.text = around
        return lines

    def _write_tuple(self, pattern: Expression) -> str:
        """Write the names of what is in a tuple."""

        def text(part: Expression) -> str:
            if isinstance(part, (tuple, list)):
                if all(text(inner) == "_" for inner in part):
                    return "_"
                return f"({', '.join(map(text, part))}{',' if len(part) == 1 else ''})"
            return "_" if part is None else self.text.names.get(id(part), "_")

        return f"{', '.join(map(text, pattern))}{',' if len(pattern) == 1 else ''}"

    def _statement(self, statement: Statement, indent: int) -> list[str]:
        space = " " * indent
        if statement.size:
            return [f"{space}{statement.size} = {self.text(statement.expression)}"]
        if is_for(statement.expression):
            return self._for(statement, indent)
        results = statement.outputs[: statement.results]
        targets = ["_" if value is None else self.text.name(value) for value in results]
        whole: list[str] = []
        if statement.update is not None:
            target, whole = self._target_of_branch(statement.update)
            targets.append(target)
        if statement.pattern is not None:
            targets = [self._write_tuple(_fill_pattern(statement.pattern, iter(statement.outputs)))]
        if statement.loop is None:
            return self._assignment(targets, statement.expression, indent) + [space + line for line in whole]
        lines = []
        expression = statement.expression
        init, result = statement.carry or (None, None)
        if init is not None and result is not None and self.text(init) != self.text.name(result):
            lines.append(f"{space}{self.text.name(result)} = {self.text(init)}")
            expression = _graph.rebuild(expression, lambda part: result if part == init else part, inside=False)
        if isinstance(statement.loop, str):
            lines.append(f'{space}for i in "{statement.loop}":')
        else:
            start, stop = statement.loop.start, statement.loop.stop
            lines.append(f"{space}for i in range({f'{start}, ' if start else ''}{stop}):")
            self.looped = (self.key, start)
        if statement.grows is not None:
            grown = self.text.name(statement.grows)
            text = f"{space}    {grown}.append({self.text(expression)})"
            if not targets and len(text) <= _WIDTH and self.keys < 2:
                return [*lines, text]
            targets, whole = ["new_features", *targets], [*whole, f"{grown}.append(new_features)"]
        lines += self._assignment(targets, expression, indent + 4, in_loop=True)
        lines += [f"{space}    {line}" for line in whole]
        self.key += _keys_of(statement) - _seeds_in(expression)
        return lines

    def _for(self, statement: Statement, indent: int) -> list[str]:
        """Return the lines of a loop: what it starts with, its steps, and what each leaves to the next one."""
        space = " " * indent
        loop, inits, starts = statement.expression.args
        finals, appended = loop.outputs
        names = [self.text.name(value) for value in statement.outputs]  # type: ignore[arg-type]
        lists = names[len(finals) :]
        lines = []
        for name, start in [*zip(lists, starts, strict=True), *zip(names, inits, strict=False)]:
            if self.text(start) != name:
                lines += laid_out(self.text, f"{name} = ", start, "", indent)
        first, stop, step = loop.numbers
        if step == -1:
            numbers = f"reversed(range({f'{stop + 1}, ' if stop + 1 else ''}{first + 1}))"
        else:
            bounds = [stop] if (first, step) == (0, 1) else [first, stop] if step == 1 else [first, stop, step]
            numbers = f"range({', '.join(map(self.text, bounds))})"
        around, self.text = self.text, self.text.within(loop)
        body: list[str] = []
        printed: dict[Any, str] = {}
        nodes: Any = loop.nodes
        for inner in nodes:
            body = self._with_functions(body, inner.expression, indent + 4, printed, loop)
            body += self._statement(inner, indent + 4)
        for name, value in zip(lists, appended, strict=True):
            body += laid_out(self.text, f"{name}.append(", value, ")", indent + 4)
        left = [(name, value) for name, value in zip(names, finals, strict=False) if self.text(value) != name]
        if left:
            values = tuple(value for _, value in left)
            targets = f"{', '.join(name for name, _ in left)} = "
            text = f"{space}    {targets}{', '.join(map(self.text, values))}"
            is_short = len(left) > 1 and len(text) <= _WIDTH
            given = values if left[1:] else values[0]
            body += [text] if is_short else laid_out(self.text, targets, given, "", indent + 4)
        self.text = around
        return [*lines, f"{space}for {self.text.name(loop.parameters[0])} in {numbers}:", *body]

    def _target_of_branch(self, path: str) -> tuple[str, list[str]]:
        """Return what a new branch of the state is assigned to, and the lines that put that of a block in its place."""
        if not path.endswith("*"):
            return self.text.branch(Branch("new_state", path)), []
        above, _, group = path[:-1].rpartition(".")
        ending = ending_of(group)
        back = (
            f"whole(new, {string_literal(group)})" if ending is None else f"with_ending(new, {string_literal(ending)})"
        )
        return "new", [f"{self.text.branch(Branch('new_state', above))} |= {back}"]

    def _assignment(
        self, targets: list[str], expression: Expression, indent: int, in_loop: bool = False, left: str = ""
    ) -> list[str]:
        def change(part: Expression) -> Expression:
            if part != SEED:
                return part
            number = self.key
            self.key += 1
            if self.keys <= 1:
                return Name("seed")
            if not in_loop:
                return Name(f"keys[{number}]")
            offset = number - self.looped[1]
            return Name(f"keys[i {'+' if offset > 0 else '-'} {abs(offset)}]" if offset else "keys[i]")

        expression = _graph.rebuild(expression, change, inside=False)
        return laid_out(self.text, f"{', '.join(targets)} = " if targets else left, expression, "", indent)

    # what is returned

    def _return(self, block: Body, indent: int) -> list[str]:
        if self.definition.is_whole(block):
            new = self._returned_state()
            if self.is_root:
                return laid_out(self.text, "return ", block.outputs, "".join(f", {name}" for name in new), indent)
            names = [self.text(value) for value in block.outputs] + new
            return [f"{' ' * indent}return {', '.join(names)}"]
        outputs = block.outputs
        if type(outputs) is tuple and len(outputs) > 1 and not _seeds_in(outputs, inside=False):
            text = f"{' ' * indent}return {', '.join(map(self.text, outputs))}"
            if len(text) <= _WIDTH:
                return [text]
        return self._assignment([], outputs, indent, left="return ")

    def _returned_state(self) -> list[str]:
        return ["new_state"] if "update" in self.function.uses else ["state"] if self.is_root else []

    def _result(self, block: Body, statement: Statement, indent: int) -> list[str] | None:
        """Return the lines that return what the last statement computes, if that is all that is returned."""
        is_whole = self.definition.is_whole(block)
        outputs = block.outputs if is_whole and not self.is_root else [block.outputs]
        is_plain = statement.update is None and statement.loop is None and not statement.size
        is_plain = is_plain and not is_for(statement.expression)
        if len(outputs) != 1 or not is_plain or statement.pattern is not None:
            return None
        if len(statement.outputs) != 1 or statement.outputs[0] is not outputs[0]:
            return None
        lines = self._assignment([], statement.expression, indent, left="return ")
        new = self._returned_state() if is_whole else []
        if not new:
            return lines
        return [f"{lines[0]}, {new[0]}"] if len(lines) == 1 and len(lines[0]) + 12 <= _WIDTH else None


def laid_out(write: Text, left: str, expression: Expression, right: str, indent: int, level: int = 0) -> list[str]:
    """Break a line that is too long as a formatter would: at the arguments of its outermost call."""
    text = write(expression, level)
    space = " " * indent
    if indent + len(left) + len(text) + len(right) <= _WIDTH:
        return [f"{space}{left}{text}{right}"]
    if isinstance(expression, Infix):
        operator, operand, own = operator_and_right(expression)
        return [
            f"{space}{left}(",
            *laid_out(write, "", expression.left, "", indent + 4, own),
            *laid_out(write, f"{operator} ", operand, "", indent + 4, own + 1),
            f"{space}){right}",
        ]
    if isinstance(expression, (Call, Apply)):
        opened, closed = f"{write.function(expression)}(", ")"
        parts = write.arguments(expression)
    elif isinstance(expression, (list, tuple)):
        opened, closed = ("[", "]") if isinstance(expression, list) else ("(", ")")
        parts = [(write(part), part) for part in expression]
    elif isinstance(expression, dict):
        opened, closed = "{", "}"
        parts = [(f"{key(name)}: {write(part)}", part) for name, part in expression.items()]
    else:
        return [f"{space}{left}{text}{right}"]
    inner = ", ".join(text for text, _ in parts)
    comma = "," if isinstance(expression, tuple) and len(parts) == 1 else ""
    if indent + 4 + len(inner) + len(comma) <= _WIDTH and not isinstance(expression, dict):
        return [f"{space}{left}{opened}", f"{space}    {inner}{comma}", f"{space}{closed}{right}"]
    lines = [f"{space}{left}{opened}"]
    for text, part in parts:
        if indent + 5 + len(text) <= _WIDTH or isinstance(part, Spread):
            lines.append(f"{space}    {text},")
        else:
            lines += laid_out(write, text.removesuffix(write(part)), part, ",", indent + 4)
    return [*lines, f"{space}{closed}{right}"]


def _seeds_in(expression: Expression, inside: bool = True) -> int:
    return sum(part == SEED for part in _graph.walk(expression, inside))


def _keys_of(statement: Statement) -> int:
    return _seeds_in(statement.expression) * (len(statement.loop) if statement.loop else 1)


def _fill_pattern(pattern: Expression, outputs: Iterator[Any]) -> Expression:
    """Return the tuples with the results in the place of leaves."""
    if isinstance(pattern, (tuple, list)):
        return tuple(_fill_pattern(part, outputs) for part in pattern)
    return None if pattern is None else next(outputs)


def _type(values: list[Any]) -> str:
    kinds = {type(value).__name__ for value in values}
    (kind,) = kinds if len(kinds) == 1 else ("Any",)
    return {"tuple": "tuple[Any, ...]", "list": "list[Any]"}.get(kind, kind)


def _and(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts) or "nothing"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _head(name: str, parameters: list[str], result: str, indent: int = 0) -> list[str]:
    """Return the first lines of a function; one that is too long has its parameters in lines of their own."""
    inner = ", ".join(parameters)
    left, right = f"def {name}(", f") -> {result}:"
    if indent + len(left) + len(inner) + len(right) <= _WIDTH:
        return [f"{left}{inner}{right}"]
    if 4 + len(inner) <= _WIDTH:
        return [left, f"    {inner}", right]
    return [left, *[f"    {parameter}," for parameter in parameters], right]


def wrapped_docstring(text: str) -> list[str]:
    """Return the lines of a docstring; no line ends inside of backticks."""
    words, lines, line = re.findall(r"(?:`[^`]*`|[^` ])+", text), [], '    """'
    for word in words:
        if len(line) + 1 + len(word) > _WIDTH - 3:
            lines.append(line)
            line = f"    {word}"
        else:
            line += word if line.endswith('"""') else f" {word}"
    return [*lines, line, '    """'] if lines else [f'{line}"""']
