"""Find what the package reaches of others' private attributes, outside the modules that are for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from import_graph import dotted, syntax

# names of this package's own, which another module of it reads
OURS = {
    "_add", "_arguments", "_check", "_dtype", "_explained", "_floats", "_processes", "_settle_x64", "_source",
    "_waiting", "_watched", "_x64",
}  # fmt: skip
OF_NAMED_TUPLES = {"_asdict", "_fields", "_replace"}  # which Python documents
# of Python, which documents them, or of a framework that cannot be imported there: file, name -> reason
ALLOWED = {
    ("_values/host.py", "_getframe"): "sys, of CPython",
    ("_call/frames.py", "_getframe"): "sys, of CPython",
    ("_call/keras_symbols.py", "_getframe"): "sys, of CPython",
    ("_rules/doors.py", "_getframe"): "sys, of CPython",
    ("porting/torch/custom_functions.py", "_getframe"): "sys, of CPython",
    ("_loading/imports.py", "_initializing"): "tells that a module is half imported; without it, it is taken for whole",
    (
        "_loading/built_in.py",
        "_dynamo_marked_constant",
    ): "what torch.compiler.assume_constant_result sets, without torch",
    ("backends/jax/random.py", "_trace"): "has a stand-in, because random numbers need public parts alone",
}


def is_for_that(path: Path) -> bool:
    """Say whether a module is one that names the private parts of a framework."""
    return path.stem == "_internals" or path.stem.startswith(("_since_", "_before_"))


def reached(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each private attribute or module that is neither our own nor allowed."""
    nodes, own = syntax(path.read_text(encoding="utf-8")), {"self", "cls"}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).partition(".")[0] == "multiop"):
            own |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            own |= {alias.asname or alias.name for alias in node.names if alias.name.partition(".")[0] == "multiop"}
            yield from ((node.lineno, alias.name) for alias in node.names if has_private_part(alias.name))
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((node.lineno, name) for name in names if has_private_part(name))
    for node in nodes:
        if isinstance(node, ast.Attribute):
            holder, name = node.value, node.attr
        elif isinstance(node, ast.Call) and dotted(node.func) in ("getattr", "setattr", "hasattr", "delattr"):
            holder, name = node.args[0], getattr(node.args[1], "value", "")
        else:
            continue
        is_private = isinstance(name, str) and name.startswith("_") and not name.startswith(("__", "_multiop_"))
        is_own = name in OURS | OF_NAMED_TUPLES or (isinstance(holder, ast.Name) and holder.id in own)
        if is_private and not is_own and (path.relative_to(package).as_posix(), name) not in ALLOWED:
            yield node.lineno, ast.unparse(node)


def has_private_part(name: str) -> bool:
    """Say whether a dotted name of another package has a part that is private."""
    first, *parts = name.split(".")
    return first not in ("multiop", "__future__") and any(p.startswith("_") and not p.startswith("__") for p in parts)


def outside(package: Path) -> list[str]:
    """Return all of them in the package."""
    return [
        f"{path.relative_to(package)}:{line}: {text}"
        for path in sorted(package.rglob("*.py"))
        if not is_for_that(path)
        for line, text in reached(path, package)
    ]
