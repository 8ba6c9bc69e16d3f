"""Print what the code weighs: lines per layer, functions that stand more than once, names, cycles, dispatch.

python tools/figures.py                  of this tree
python tools/figures.py OTHER            of another tree too, side by side
python tools/figures.py --dispatch       with what a call costs on each backend that is installed
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import itertools
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import private_parts
from import_graph import circles, graph

ROOT = Path(__file__).parent.parent
BACKENDS = ("torch", "jax", "tensorflow")
FRAMEWORKS = {"torch", "jax", "jnp", "np", "tf", "lax"}
LAYERS = {
    "ground": "multiop/_*.py multiop/errors.py multiop/config.py multiop/devices.py",
    "frontends": "multiop/frontends/*.py",
    "autodiff": "multiop/autodiff/*.py",
    **{f"backends/{name}": f"multiop/backends/{name}/**/*.py" for name in BACKENDS},
    **{
        f"backends/{name}/{part}": f"multiop/backends/{name}/{part}/*.py"
        for name in BACKENDS
        for part in ("ops", "kernels", "autodiff")
    },
    "testing": "multiop/testing/*.py",
    "rows of the suite": "multiop/testing/cases/*.py",
    "command": "multiop/cli.py",
}
GENERATED = "made by tools/op_list.py"


def sources(root: Path, patterns: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a layer that are written by hand, and their text."""
    for pattern in patterns.split():
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            if GENERATED not in text[:400]:
                yield path, text


def lines_without_docstrings(text: str) -> int:
    """Count the lines of a file that are neither empty nor of a docstring."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            documented.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    return sum(bool(line.strip()) and n not in documented for n, line in enumerate(text.splitlines(), start=1))


def lines_of_error_handling(root: Path) -> int:
    """Count the lines of the frontends that only have errors explained: `try`, `except` and what it raises."""
    found = 0
    for _, text in sources(root, LAYERS["frontends"]):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Try) and "explain(" in ast.unparse(node):
                found += 1 + sum((h.end_lineno or 0) - h.lineno + 1 for h in node.handlers)
            elif isinstance(node, ast.ImportFrom) and any(name.name == "explain" for name in node.names):
                found += 1
            elif isinstance(node, ast.FunctionDef):
                found += sum("boundary" in ast.unparse(decorator) for decorator in node.decorator_list)
    return found


def tokens(function: ast.FunctionDef) -> list[str]:
    """Return a function's tokens, without its docstring, each framework under one name."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    text = ast.unparse(ast.Module(body=body, type_ignores=[]))
    found = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    return ["framework" if token in FRAMEWORKS else token for token in found]


def repeated(root: Path, least: float = 0.6) -> tuple[int, int]:
    """Return how many functions of one name are alike in all backends, and how many lines they take.

    Args:
        root: The tree.
        least: The share of their tokens that any two have in common, at least.
    """
    by_name: dict[str, list[tuple[int, list[str]]]] = {}
    for backend in BACKENDS:
        for _, text in sources(root, LAYERS[f"backends/{backend}"]):
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef):
                    by_name.setdefault(node.name, []).append(((node.end_lineno or 0) - node.lineno + 1, tokens(node)))
    alike = [
        sum(n for n, _ in found)
        for found in by_name.values()
        if len(found) == len(BACKENDS) and sum(n for n, _ in found) > 9
        and all(
            difflib.SequenceMatcher(None, a, b, autojunk=False).ratio() >= least
            for (_, a), (_, b) in itertools.combinations(found, 2)
        )
    ]  # fmt: skip
    return len(alike), sum(alike)


def shared_names(root: Path, backend: str) -> int:
    """Return how many names, ops aside, the op files of a backend take from one another."""
    names: set[str] = set()
    for _, text in sources(root, f"multiop/backends/{backend}/ops/*.py"):
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                names.update(alias.name for alias in node.names if not alias.name.startswith("op_"))
    return len(names)


def optional_members(root: Path) -> int:
    """Return how many names a backend may leave out."""
    tree = ast.parse((root / "multiop/_contract.py").read_text(encoding="utf-8"))
    (optional,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Optional")
    return sum(isinstance(node, (ast.AnnAssign, ast.FunctionDef)) for node in optional.body)


RUN = """
import os, sys, timeit, warnings
warnings.simplefilter("ignore")
import multiop
from multiop import _registry
print("dir", len(dir(multiop)))
module = _registry.ready()
names = [name for name, member in vars(module).items() if name[0] != "_" and type(member).__name__ != "module"]
print("names", len(names))
if "--dispatch" in sys.argv:
    class Toy:
        def op_sigmoid(self, x): return x
        def op_sum(self, x, axis, keepdims): return x
    _registry._backend = Toy()
    for call in ("op_sigmoid(0)", "op_sum(0)"):
        took = min(timeit.repeat(f"multiop.{call}", "import multiop", number=20000, repeat=20)) / 20000
        print(f"nanoseconds of {call}", round(took * 1e9))
"""


def measured(root: Path, backend: str, dispatch: bool) -> dict[str, str]:
    """Return what takes an import to know, of a backend."""
    command = [sys.executable, "-c", RUN, *["--dispatch"] * dispatch]
    environment = os.environ | {"PYTHONPATH": str(root), "MULTIOP_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def figures(root: Path, dispatch: bool) -> dict[str, str]:
    """Return the figures of a tree, by name."""
    found = {}
    for layer, patterns in LAYERS.items():
        texts = [text for _, text in sources(root, patterns)]
        found[f"{layer}: lines"] = str(sum(text.count("\n") for text in texts))
        found[f"{layer}: lines without docstrings"] = str(sum(map(lines_without_docstrings, texts)))
    found["frontends: lines of error handling"] = str(lines_of_error_handling(root))
    places, lines = repeated(root)
    found["functions alike in three backends"] = f"{places} ({lines} lines)"
    found["circles of imports"] = str(len(circles(graph(root))))
    found |= {f"names shared by op files of {backend}": str(shared_names(root, backend)) for backend in BACKENDS}
    found["private parts outside their modules"] = str(len(private_parts.outside(root / "multiop")))
    found["members that a backend may leave out"] = str(optional_members(root))
    for backend in BACKENDS:
        known = measured(root, backend, dispatch)
        found["names in dir(multiop)"] = known.pop("dir", "?")
        found[f"names in the namespace of {backend}"] = known.pop("names", "not installed")
        found |= known
    guide = re.search(r"A primitive touches (\w+) files", (root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    found["files that a new primitive touches"] = guide[1] if guide else "?"
    guide = re.search(r"A composite touches (\w+) files", (root / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    found["files that a new composite touches"] = guide[1] if guide else "?"
    return found


def main() -> None:
    """Print the figures of one or two trees as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("other", nargs="?", type=Path, help="another tree, whose figures stand before this one's")
    parser.add_argument(
        "--dispatch", action="store_true", help="measure what an op costs around the backend's function"
    )
    given = parser.parse_args()
    trees = [tree for tree in (given.other, ROOT) if tree is not None]
    columns = [figures(tree, given.dispatch) for tree in trees]
    print("|", " | ".join(["", *(["before", "after"] if given.other else ["now"])]), "|")
    print("|---" * (len(trees) + 1) + "|")
    for name in columns[-1]:
        print("|", " | ".join([name, *(column.get(name, "") for column in columns)]), "|")


if __name__ == "__main__":
    main()
