"""Which modules of the package import which, in whatever way.

An import counts at the top of a file, inside of a function, for a type checker alone, and as a string: a file that
calls `import_module` imports each module of ours that a string in it names, and each that fits an f-string; another
one those that it takes from `sys.modules`. A module that assigns to an attribute of another one is imported by that: it
hands itself over.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

# what is loaded by its name alone, where its framework is used, as a third party's is: it stands above who loads it
PLUG_INS = {"multiop._loading.built_in": "multiop.backends", "multiop._call.keras_symbols": "multiop.keras"}
BY_NAME = ("importlib.import_module", "import_module", "__import__")


@functools.cache
def syntax(text: str) -> list[ast.AST]:
    """Return the tree of a file, and every node in it; what asks for many files forgets them with `cache_clear`."""
    return list(ast.walk(ast.parse(text)))


def dotted(node: ast.AST) -> str:
    """Return the text of names and attributes, `a.b`; what is called or indexed on the way is `a.b()`, `a[]`."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{dotted(node.value)}.{node.attr}"
        case ast.Call():
            return f"{dotted(node.func)}()"
        case ast.Subscript():
            return f"{dotted(node.value)}[]"
    return ""


def modules(root: Path) -> dict[str, Path]:
    """Return the modules of a tree's package, by dotted name."""
    paths = (path for path in sorted(root.glob("multiop/**/*.py")) if "__pycache__" not in path.parts)
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def package_of(name: str, path: Path) -> str:
    """Return the package that a module is in: what it calls `__package__`."""
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


def statements(name: str, path: Path, nodes: list[ast.AST], known: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """Yield each module that the statements of a file import, as a dotted name, and what the file calls it."""
    package = package_of(name, path).split(".")
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, alias.asname or alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            inside = [alias for alias in node.names if f"{base}.{alias.name}" in known]
            for alias in inside:  # `from multiop import errors` imports multiop.errors
                yield f"{base}.{alias.name}", alias.asname or alias.name
            if len(inside) < len(node.names):
                yield base, ""


def named(name: str, path: Path, nodes: list[ast.AST], known: dict[str, Path]) -> set[str]:
    """Return the modules that a file imports by name: by its strings, or by those it looks up what is loaded with."""
    if not any(dotted(node) in BY_NAME for node in nodes if isinstance(node, (ast.Attribute, ast.Name))):
        asking = [node for node in nodes if isinstance(node, (ast.Subscript, ast.Call))]
        nodes = [inner for node in asking if dotted(node).startswith("sys.modules") for inner in ast.walk(node)]
    package = package_of(name, path)
    here = {"{__name__}": name, "{__package__}": package}
    patterns = []
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = map(ast.unparse, node.values)
            patterns.append("".join(here.get(part, r"\w+") if part[0] == "{" else part.strip("'") for part in parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"\.*\w+(\.\w+)+|\.+\w+", node.value)
        ):
            patterns.append(node.value)
        elif isinstance(node, ast.Call) and dotted(node.func) in BY_NAME:  # `multiop` alone is many things elsewhere
            patterns += [ast.unparse(argument).strip("'") for argument in node.args[:1]]
    patterns = [f"{package}{pattern}" if pattern[0] == "." else pattern for pattern in patterns if pattern]
    patterns = [pattern.replace(".", r"\.") for pattern in patterns if pattern.startswith("multiop")]
    return {other for other in known for pattern in patterns if re.fullmatch(pattern, other)}


def graph(root: Path) -> dict[str, set[str]]:
    """Return the modules of the package that each of them imports."""
    known = modules(root)
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        nodes = syntax(path.read_text(encoding="utf-8"))
        called: dict[str, str] = {}
        for other, here in statements(name, path, nodes, known):
            if other in known:
                found[name].add(other)
                called[here] = other
        found[name] |= named(name, path, nodes, known)
        for node in nodes:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                if isinstance(target, ast.Attribute) and (other := called.get(dotted(target.value))):
                    found[other].add(name)
    return {
        name: {other for other in others - {name} if not other.startswith(PLUG_INS.get(name, "-"))}
        for name, others in found.items()
    }


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules of which each imports each other one, by way of others."""
    reached = {name: reach(name, edges) for name in edges}
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in edges}
    return sorted(sorted(group) for group in groups if group)


def reach(name: str, edges: dict[str, set[str]]) -> set[str]:
    """Return every module that a module imports, by way of others too."""
    seen: set[str] = set()
    left = [*edges[name]]
    while left:
        other = left.pop()
        if other not in seen:
            seen.add(other)
            left += edges[other]
    return seen
