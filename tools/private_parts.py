"""Find what the package reaches of others' private attributes, outside the modules that are for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# names of this package's own, which another module of it reads
OURS = {"_dtype", "_explained", "_processes", "_settle_x64", "_waiting", "_x64"}
# of Python, which documents them, or of a framework that cannot be imported there: file, name -> reason
ALLOWED = {
    ("_host.py", "_getframe"): "sys, of CPython",
    ("_symbolic.py", "_getframe"): "sys, of CPython",
    ("dtypes.py", "_fields"): "of a named tuple, and documented",
    ("_late.py", "_initializing"): "tells that a module is half imported; without it, it is taken for whole",
    ("_built_in.py", "_dynamo_marked_constant"): "what torch.compiler.assume_constant_result sets, without torch",
    ("backends/jax/random.py", "_trace"): "has a stand-in, because random numbers need public parts alone",
}


def is_for_that(path: Path) -> bool:
    """Say whether a module is one that names the private parts of a framework."""
    return path.stem == "_internals" or path.stem.startswith("_since_")


def reached(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each access of a private attribute that is neither our own nor allowed."""
    tree, own = ast.parse(path.read_text(encoding="utf-8")), {"self", "cls"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).partition(".")[0] == "multiop"):
            own |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            own |= {alias.asname or alias.name for alias in node.names if alias.name.partition(".")[0] == "multiop"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            holder, name = node.value, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "hasattr", "delattr"):
            holder, name = node.args[0], getattr(node.args[1], "value", "")
        else:
            continue
        is_private = isinstance(name, str) and name.startswith("_") and not name.startswith(("__", "_multiop_"))
        is_own = name in OURS or (isinstance(holder, ast.Name) and holder.id in own)
        if is_private and not is_own and (path.relative_to(package).as_posix(), name) not in ALLOWED:
            yield node.lineno, ast.unparse(node)


def outside(package: Path) -> list[str]:
    """Return all of them in the package but its readers of models, which are asked by a test of their own."""
    return [
        f"{path.relative_to(package)}:{line}: {text}"
        for path in sorted(package.rglob("*.py"))
        if not is_for_that(path) and path.relative_to(package).parts[0] != "porting"
        for line, text in reached(path, package)
    ]
