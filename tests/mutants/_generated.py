"""Faults drawn by a seed: one operator, applied at one place of one function; the files are taken in turn."""

from __future__ import annotations

import ast
import importlib.metadata
import random
from collections.abc import Iterator
from pathlib import Path

from _fault import FOLDERS, ROOT, Fault

_COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}
_COMMUTES = {
    "max", "min", "maximum", "minimum", "add", "mul", "multiply", "logical_and", "logical_or", "equal", "isinstance",
    "getattr", "zip", "range", "promote_types", "hasattr", "partial", "setattr", "enumerate", "cast",
}  # fmt: skip
_OPTIONS = {
    "args", "axes", "axis", "backend", "call", "dim", "dims", "dtype", "f", "fn", "fun", "keepdims", "level", "n",
    "name", "newshape", "padding", "paths", "primals", "rule", "self", "shape", "size", "spec", "strict", "strides",
    "tree", "width",
}  # fmt: skip
_LEFT_ALONE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.Subscript, ast.Try, ast.ImportFrom)
# they choose the faster way, or detect a wrong argument: the answer is the same, or the framework's own error
_FASTER = (
    "is_float",
    "are_floats",
    "is_float_along",
    "is_tracked",
    "is_known",
    "is_exact_scalar",
    "is_finite_number",
    "checks_indices",
)


def files() -> dict[str, list[Path]]:
    """Return the files that faults are planted in, by group."""
    found = {group: sorted((ROOT / folder).rglob("*.py")) for group, folder in FOLDERS.items()}
    left_out = {"__init__.py", *unloaded()}
    return {name: [path for path in paths if path.name not in left_out] for name, paths in found.items()}


def draw(seed: int, counts: dict[str, int]) -> list[Fault]:
    """Return faults, `counts` of them by group; the files of a group are taken in turn."""
    faults = []
    for group, paths in files().items():
        rng = random.Random(f"{seed} {group}")
        order = paths[:]
        rng.shuffle(order)
        turns, drawn, seen = 0, 0, set()
        while drawn < counts.get(group, 0) and turns < 20 * len(order):
            path = order[turns % len(order)]
            turns += 1
            fault = _one(group, path, rng)
            if fault is not None and fault.name not in seen:
                seen.add(fault.name)
                faults.append(fault)
                drawn += 1
    return faults


def unloaded() -> set[str]:
    """Return the files for versions of frameworks that are not the installed one: `nox -s versions` tests them."""
    found = set()
    for framework in ("jax", "torch"):
        try:
            installed = tuple(map(int, importlib.metadata.version(framework).split(".")[:2]))
        except importlib.metadata.PackageNotFoundError:
            installed = (1000, 0)  # it loads none; the part for the newest is as good as any
        parts = {"before": {}, "since": {}}
        for path in (ROOT / "multiop/backends" / framework).glob("_[bs]*_*_*.py"):
            if path.stem.split("_")[1] in parts:
                _, when, *version = path.stem.split("_")
                parts[when][tuple(map(int, version))] = path.name
        loaded = max((version for version in parts["since"] if version <= installed), default=None)
        found |= {name for version, name in parts["since"].items() if version != loaded}
        found |= {name for version, name in parts["before"].items() if version <= installed}
    return found


def _one(group: str, path: Path, rng: random.Random) -> Fault | None:
    """Return one fault in a file: a function is drawn first, then a place in it."""
    source = path.read_text()
    tree = ast.parse(source)
    unchanged = ast.dump(tree)
    functions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    functions = [node for node in functions if not node.name.endswith(("_fault", "_name", "Recorded"))]  # texts alone
    if group == "frontends":  # the others hand their arguments to the backend
        functions = [node for node in functions if "active()" not in ast.get_source_segment(source, node)]
    while functions:
        function = functions.pop(rng.randrange(len(functions)))
        places = list(_window_layout(function, source))
        kinds = sorted({kind for *_, kind in places})  # each kind equally often
        rng.shuffle(kinds)
        rng.shuffle(places)
        places.sort(key=lambda place: kinds.index(place[3]))
        for start, end, new, kind in places:
            old = source[start:end]
            changed = source[:start] + new + source[end:]
            try:
                if ast.dump(ast.parse(changed)) == unchanged:
                    continue
            except SyntaxError:
                continue
            line = source.count("\n", 0, start) + 1
            return Fault(
                name=f"{group}/{path.stem}.{function.name}:{_short(old)} -> {_short(new)}@{line}",
                group=group, path=str(path.relative_to(ROOT)), function=function.name, kind=kind, by_hand=False,
                changed=changed,
            )  # fmt: skip
    return None


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:40] + "..." + text[-15:]


def _offsets(source: str) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    return starts


def _window_layout(function: ast.AST, source: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield (start, end, new text, class of the fault) for each place where an operator applies."""
    lines = _offsets(source)
    raw = source.encode()

    def span(node: ast.AST) -> tuple[int, int]:
        first = lines[node.lineno - 1] + node.col_offset
        last = lines[node.end_lineno - 1] + node.end_col_offset
        return len(raw[:first].decode()), len(raw[:last].decode())

    def text(node: ast.AST) -> str:
        start, end = span(node)
        return source[start:end]

    for node in _answers(function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            left, right = node.left, node.comparators[0]
            new = f"({text(left)}) {_COMPARED[type(node.ops[0])]} ({text(right)})"
            yield *span(node), new, "tie or comparison"
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            new = f"(({text(node.left)}) {_COMPUTED[type(node.op)]} ({text(node.right)}))"
            if not isinstance(node.left, (ast.List, ast.Tuple, ast.Constant)) or not isinstance(node.op, ast.Add):
                kind = "wrong sign" if isinstance(node.op, (ast.Add, ast.Sub)) else "swapped operator"
                yield *span(node), new, kind
            if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
                yield *span(node), f"({text(node.left)})", "dropped term"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
            yield (
                *span(node),
                f"({text(node.operand)})",
                "wrong sign" if isinstance(node.op, ast.USub) else "negated condition",
            )
        elif isinstance(node, ast.BoolOp):
            word = "or" if isinstance(node.op, ast.And) else "and"
            yield *span(node), "(" + f" {word} ".join(f"({text(value)})" for value in node.values) + ")", "condition"
        elif isinstance(node, ast.IfExp):
            yield (
                *span(node),
                f"({text(node.orelse)}) if {text(node.test)} else ({text(node.body)})",
                "negated condition",
            )
        elif isinstance(node, ast.If):
            yield *span(node.test), f"not ({text(node.test)})", "negated condition"
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield *span(node), str(node.value + 1), "off by one"
        elif isinstance(node, ast.Constant) and type(node.value) is float and node.value:
            yield *span(node), repr(node.value * 1.5), "wrong constant"
        elif isinstance(node, ast.Call):
            yield from _calls(node, span, text)


def _calls(node: ast.Call, span, text) -> Iterator[tuple[int, int, str, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    if name == "where" and len(plain) == 3:
        new = f"{text(node.func)}({text(plain[0])}, {text(plain[2])}, {text(plain[1])})"
        yield *span(node), new, "swapped branches"
    elif len(plain) == len(node.args) >= 2 and name not in _COMMUTES and all(map(_is_operand, plain[:2])):
        args = [text(plain[1]), text(plain[0]), *map(text, plain[2:])]
        args += [f"{word.arg}={text(word.value)}" if word.arg else f"**{text(word.value)}" for word in node.keywords]
        yield *span(node), f"{text(node.func)}({', '.join(args)})", "swapped arguments"
    for word in node.keywords:
        if word.arg is None or word.arg in ("device", "name", "strict"):
            continue
        if isinstance(word.value, ast.Constant) and type(word.value.value) is bool:
            yield *span(word.value), str(not word.value.value), "keyword ignored"
        elif "raw_ops" not in text(node.func):  # which have no defaults
            words = [other for other in node.keywords if other is not word]
            args = [*map(text, node.args)]
            args += [f"{other.arg}={text(other.value)}" if other.arg else f"**{text(other.value)}" for other in words]
            yield *span(node), f"{text(node.func)}({', '.join(args)})", "keyword ignored"
    if (
        name in ("detach", "stop_gradient", "abs", "sign", "conj")
        and len(node.args) + isinstance(node.func, ast.Attribute) < 3
    ):
        if name == "detach" and not node.args:
            yield *span(node), text(node.func.value), "residual not stopped"
        elif node.args and name != "detach":
            yield *span(node), text(node.args[0]), "dropped function"


def _is_operand(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id not in _OPTIONS


def _answers(function: ast.AST) -> Iterator[ast.AST]:
    """Walk a function, but for annotations, errors and their texts, and conditions that only choose a faster way."""
    stack = [function]
    while stack:
        node = stack.pop()
        if isinstance(
            node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments, ast.Subscript, ast.Try, ast.ImportFrom)
        ):
            continue
        if isinstance(node, ast.If):
            body = node.body
            if any(isinstance(one, ast.Raise) for one in body) or _is_faster(node.test):
                stack.extend([*body, *node.orelse])
                continue
        if isinstance(node, (ast.IfExp, ast.BoolOp)) and _is_faster(node):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":  # text, and whose line it names
            continue
        yield node
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            children = node.body
        stack.extend(children)


def _is_faster(test: ast.AST) -> bool:
    names = {inner.id for inner in ast.walk(test) if isinstance(inner, ast.Name)}
    return any(name in names for name in _FASTER)
