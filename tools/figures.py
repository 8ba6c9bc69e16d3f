"""Print the weight of code and pages: lines by layer and op, looks, functions that stand twice, names, cycles, words.

python tools/figures.py                  of this tree; a figure with a goal stands beside it
python tools/figures.py OTHER            of another tree too, side by side
python tools/figures.py --ops jax        of the ops of a backend: the lines of each with its helpers, and what these are
python tools/figures.py --dispatch       with what a call costs on each backend that is installed
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import difflib
import functools
import io
import itertools
import os
import re
import statistics
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

import private_parts
from import_graph import circles, graph, syntax

ROOT = Path(__file__).parent.parent
BACKENDS = ("torch", "jax", "tensorflow")
FRAMEWORKS = {"torch", "jax", "jnp", "np", "tf", "lax"}
LAYERS = {  # every file of the package is in one of these, or generated
    **{name: f"multiop/{name}/*.py" for name in ("_loading", "_values", "_call", "_rules")},
    "errors, config, extend": "multiop/errors.py multiop/config.py multiop/extend.py",
    "frontends": "multiop/frontends/*.py",
    "autodiff": "multiop/autodiff/*.py",
    "autodiff/sparse": "multiop/autodiff/sparse/*.py",
    "random": "multiop/random/*.py",
    "beside ops": " ".join(
        f"multiop/{name}.py" for name in ("devices", "dtypes", "keras", "namespaces", "operation", "scopes", "tree")
    ),
    "backends": "multiop/backends/*.py",
    **{f"backends/{name}": f"multiop/backends/{name}/**/*.py" for name in ("numpy", *BACKENDS)},
    **{
        f"backends/{name}/{part}": f"multiop/backends/{name}/{part}/**/*.py"
        for name in ("numpy", *BACKENDS)
        for part in ("ops", "kernels", "autodiff")
    },
    "testing": "multiop/testing/*.py",
    "rows of the suite": "multiop/testing/cases/*.py",
    "porting": "multiop/porting/*.py multiop/porting/_printing/*.py",
    **{f"porting/{name}": f"multiop/porting/{name}/**/*.py" for name in ("numpy", *BACKENDS)},
    "array_api": "multiop/array_api/*.py",
    "command": "multiop/cli.py multiop/__main__.py",
}
GENERATED = "made by tools/op_list.py"
GOALS = {  # the most that a figure may be
    "backends/torch/ops: lines of code": 2253,
    "backends/jax/ops: lines of code": 1992,
    "backends/tensorflow/ops: lines of code": 2542,
    "backends/torch/autodiff: lines of code": 1751,  # a fifteenth of it is one program for many sizes
    "backends/jax/autodiff: lines of code": 1750,
    "backends/tensorflow/autodiff: lines of code": 1220,
    "median lines of an op of torch with its helpers": 10,
    "median lines of an op of jax with its helpers": 9,
    "median lines of an op of tensorflow with its helpers": 10,
    "looks that choose in ops/ of torch": 2,  # integers that cannot be divided by or raised to are looked at once
    "looks that choose in ops/ of jax": 3,
    "looks that choose in ops/ of tensorflow": 6,  # indices are looked at before the one call, which cannot raise
    **{f"names shared by op files of {name}": 22 for name in BACKENDS},
    "backends/numpy/ops: lines of code": 896,
    "backends/numpy/autodiff: lines of code": 1087,
    "median lines of an op of numpy with its helpers": 3,
    "private parts in backends/numpy": 0,
    "members that a backend may leave out": 17,
    "circles of imports": 0,
    "private parts outside their modules": 0,
    "autodiff/sparse: lines of code": 1198,  # 190 of them colourings
    "functions called by a bare participle": 130,
    "words of the pages, without code": 30000,
    **{
        f"'{word}' in 1,000 words of {where}": most
        for where in ("prose", "CONTRIBUTING")
        for word, most in (("what", 2), ("that", 10), ("one", 3))
    },
}
LEAST = {f"'you' in 1,000 words of {where}": 4 for where in ("prose", "CONTRIBUTING")}  # the least that a figure may be
# past participles without -ed; not those that are verbs in the imperative as well, as `read`, `run` and `put`
IRREGULAR = """
borne bound broken brought built caught chosen dealt done drawn driven fed found given gone held hidden hung kept known
laid left lent lost made meant met paid said seen sent shown sought spent spoken spun struck taken taught thought thrown
told torn understood won wound written
"""
PARTICIPLE = re.compile(rf"_*(?:re|un|over)?(?:(?!need|seed|feed|speed|exceed)[a-z]+ed|{'|'.join(IRREGULAR.split())})")


def sources(root: Path, patterns: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a layer that are written by hand, and their text."""
    for pattern in patterns.split():
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            if GENERATED not in text[:400]:
                yield path, text


def in_no_layer(root: Path) -> list[str]:
    """Return the files of the package that are written by hand and that no layer counts."""
    counted = {path for patterns in LAYERS.values() for path, _ in sources(root, patterns)}
    return sorted(str(path.relative_to(root)) for path, _ in sources(root, "multiop/**/*.py") if path not in counted)


def statements(tree: ast.AST) -> list[ast.AST]:
    """Return a tree and every statement in it, at any depth."""
    found = [tree]
    for node in found:
        for name in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(node, name, [])
            found += inner if isinstance(inner, list) else []
    return found


def documented(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines that are of a docstring."""
    lines: set[int] = set()
    for node in statements(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            lines.update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    return lines


@functools.cache
def count_code(text: str) -> int:
    """Count the lines of a file that are neither empty, nor of a docstring or an import."""
    tree, *inner = syntax(text)
    left_out = documented(tree)
    for node in inner:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    return sum(bool(line.strip()) and n not in left_out for n, line in enumerate(text.splitlines(), start=1))


def lines_of_error_handling(root: Path) -> int:
    """Count the lines of the frontends that only have errors explained: `try`, `except` and what it raises."""
    found = 0
    for _, text in sources(root, LAYERS["frontends"]):
        for node in syntax(text):
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


def alike(a: list[str], b: list[str], least: float) -> bool:
    """Say whether two lists of tokens have a share of `least` in common."""
    match = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return all(ratio() >= least for ratio in (match.real_quick_ratio, match.quick_ratio, match.ratio))


def repeated(root: Path, least: float = 0.6) -> tuple[int, int]:
    """Return how many functions of one name are alike in all backends, and how many lines they take.

    Args:
        root: The tree.
        least: The share of their tokens that any two have in common, at least.
    """
    by_name: dict[str, list[tuple[int, list[str]]]] = {}
    for backend in BACKENDS:
        for _, text in sources(root, LAYERS[f"backends/{backend}"]):
            for node in syntax(text)[0].body:
                if isinstance(node, ast.FunctionDef):
                    by_name.setdefault(node.name, []).append(((node.end_lineno or 0) - node.lineno + 1, tokens(node)))
    lines = [
        sum(n for n, _ in found)
        for found in by_name.values()
        if len(found) == len(BACKENDS) and sum(n for n, _ in found) > 9
        and all(alike(a, b, least) for (_, a), (_, b) in itertools.combinations(found, 2))
    ]  # fmt: skip
    return len(lines), sum(lines)


def shared_names(root: Path, backend: str) -> int:
    """Return how many names, ops aside, the op files of a backend take from one another."""
    names: set[str] = set()
    for _, text in sources(root, f"multiop/backends/{backend}/ops/*.py"):
        for node in syntax(text)[0].body:
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                names.update(alias.name for alias in node.names if not alias.name.startswith("op_"))
    return len(names)


@dataclasses.dataclass(frozen=True)
class Definition:
    """What an op file of a backend defines under a name: its lines of code, and the names that stand in it."""

    node: ast.stmt
    lines: int
    names: frozenset[str]


def definitions(root: Path, backend: str) -> dict[tuple[str, str], Definition | tuple[str, str]]:
    """Return what the op files of a backend define, by (file, name); an imported name leads to its origin."""
    found: dict[tuple[str, str], Definition | tuple[str, str]] = {}
    for path, text in sources(root, f"multiop/backends/{backend}/ops/*.py"):
        tree, lines = syntax(text)[0], text.splitlines()
        left_out = documented(tree) | {n for n, line in enumerate(lines, start=1) if not line.split("#")[0].strip()}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                origin = node.module or ""
                found |= {(path.stem, alias.asname or alias.name): (origin, alias.name) for alias in node.names}
            names = [node.name] if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
            count = len(set(range(first, (node.end_lineno or 0) + 1)) - left_out)
            inside = frozenset(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
            found |= {(path.stem, name): Definition(node, count, inside) for name in names}
    return found


def ops_with_helpers(root: Path, backend: str) -> dict[str, tuple[int, list[str]]]:
    """Return the lines of each op of a backend with those of its helpers, and the helpers' names.

    A helper is what an op reaches, directly or not, in the backend's op files: not another op, nor a constant. What
    `conversion.py` and `devices.py` have is the language in which ops are written, and is not counted.
    """
    known, found = definitions(root, backend), {}
    for key in known:
        if not key[1].startswith("op_") or isinstance(known[key], tuple):
            continue
        reached: dict[tuple[str, str], int] = {}
        left = [key]
        while left:
            place = left.pop()
            while isinstance(origin := known.get(place), tuple):
                place = origin
            is_other = place != key and (place[1].startswith("op_") or place[1].isupper())
            if origin is not None and place not in reached and not is_other:
                reached[place] = origin.lines
                left += [(place[0], name) for name in origin.names]
        found[key[1]] = sum(reached.values()), sorted(name for _, name in reached if name != key[1])
    return found


def looks(root: Path, backend: str) -> tuple[list[str], list[str]]:
    """Return which functions of the op files ask whether values can be read: to choose a form, and for an error.

    It is for an error where what the answer decides on raises, handles an error, or calls what does: the statement
    that asks, and, where that goes on if there are values, what follows it. What is called `is_*` or `are_*`
    asks in the place of its callers.
    """
    trees = {path.stem: syntax(text)[0] for path, text in sources(root, f"multiop/backends/{backend}/ops/*.py")}
    functions = [
        (stem, node) for stem, tree in trees.items() for node in tree.body if isinstance(node, ast.FunctionDef)
    ]
    checks = ast.parse((root / "multiop/_values/args.py").read_text(encoding="utf-8")).body
    raising: set[str] = set()
    asking = {"is_at_hand", "is_known"}

    def calls(node: ast.AST, names: set[str]) -> bool:
        called = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        return any(getattr(function, "attr", getattr(function, "id", None)) in names for function in called)

    def raises(node: ast.AST) -> bool:
        return any(isinstance(inner, (ast.Raise, ast.Try)) for inner in ast.walk(node)) or calls(node, raising)

    def is_predicate(function: ast.FunctionDef) -> bool:
        return function.name.startswith(("is_", "are_"))

    def decided(block: list[ast.stmt], after: Sequence[ast.stmt] = ()) -> Iterator[list[ast.stmt]]:
        """Yield, for each statement of a block that asks, the statements that the answer decides on."""
        for n, node in enumerate(block):
            parts = list(ast.iter_child_nodes(node))
            if any(calls(part, asking) for part in parts if not isinstance(part, ast.stmt)):
                goes_on = isinstance(node, ast.If) and (
                    isinstance(node.test, ast.UnaryOp) or all(isinstance(inner, ast.Assign) for inner in node.body)
                )
                yield [*block[n:], *after] if goes_on else [node]
            for inner in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
                yield from decided(inner, [*block[n + 1 :], *after])

    for _ in range(3):  # as deep as these call one another
        raising |= {node.name for node in checks if isinstance(node, ast.FunctionDef) and raises(node)}
        asking |= {node.name for _, node in functions if is_predicate(node) and calls(node, asking)}
    raising |= {node.name for _, node in functions if any(isinstance(inner, ast.Raise) for inner in ast.walk(node))}
    found: tuple[list[str], list[str]] = [], []
    for stem, function in functions:
        if not is_predicate(function):
            for following in decided(function.body):
                found[any(map(raises, following))].append(f"{stem}.{function.name}")
    return found


def bare_participles(root: Path) -> dict[str, list[str]]:
    """Return the functions, methods and those inside others that one past participle is the name of, by file."""
    found: dict[str, list[str]] = {}
    for path, text in sources(root, "multiop/**/*.py"):
        functions = [node for node in syntax(text) if isinstance(node, ast.FunctionDef)]
        if names := sorted(node.name for node in functions if PARTICIPLE.fullmatch(node.name)):
            found[str(path.relative_to(root))] = names
    return found


def words_of_pages(root: Path) -> dict[str, str]:
    """Return how long the pages are, and how often, in a thousand words of prose, some words occur there."""
    pages = [root / "README.md", *sorted(root.glob("docs/**/*.md"))]
    texts = {"prose": without_code(pages), "CONTRIBUTING": without_code([root / "CONTRIBUTING.md"])}
    found = {"words of the pages, without code": str(len(re.findall(r"\S*\w\S*", texts["prose"])))}
    for where, text in texts.items():
        words = re.findall(r"[a-z']+", re.sub(r"^ *\|.*", "", text, flags=re.M).lower())
        for word in ("what", "that", "one", "you"):
            found[f"'{word}' in 1,000 words of {where}"] = f"{1000 * words.count(word) / len(words):.1f}"
    return found


def without_code(pages: list[Path]) -> str:
    """Return the text of pages without their blocks of code, and of data."""
    texts = [page.read_text(encoding="utf-8") for page in pages]
    return "\n".join(re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S) for text in texts)


def optional_members(root: Path) -> int:
    """Return how many names a backend may leave out."""
    tree = ast.parse((root / "multiop/_loading/contract.py").read_text(encoding="utf-8"))
    (optional,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Optional")
    return sum(isinstance(node, (ast.AnnAssign, ast.FunctionDef)) for node in optional.body)


RUN = """
import os, sys, timeit, warnings
warnings.simplefilter("ignore")
import multiop
from multiop._loading import registry
print("dir", len(dir(multiop)))
module = registry.ready()
names = [name for name, member in vars(module).items() if name[0] != "_" and type(member).__name__ != "module"]
print("names", len(names))
if "--dispatch" in sys.argv:
    class Toy:
        def op_sigmoid(self, x): return x
        def op_sum(self, x, axis, keepdims): return x
    registry._backend = Toy()
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


@functools.cache
def of_source(root: Path) -> dict[str, str]:
    """Return the figures of a tree that its source tells, by name."""
    if left_out := in_no_layer(root):
        raise SystemExit(f"LAYERS of {__file__}: these files are in none: {', '.join(left_out)}")
    found = {}
    for layer, patterns in LAYERS.items():
        texts = [text for _, text in sources(root, patterns)]
        found[f"{layer}: lines"] = str(sum(text.count("\n") for text in texts))
        found[f"{layer}: lines of code"] = str(sum(map(count_code, texts)))
    found["frontends: lines of error handling"] = str(lines_of_error_handling(root))
    places, lines = repeated(root)
    found["functions alike in three backends"] = f"{places} ({lines} lines)"
    found["circles of imports"] = str(len(circles(graph(root))))
    for backend in ("numpy", *BACKENDS):
        weights = [lines for lines, _ in ops_with_helpers(root, backend).values()]
        found[f"median lines of an op of {backend} with its helpers"] = f"{statistics.median(weights):g}"
    for backend in BACKENDS:
        to_choose, for_errors = looks(root, backend)
        found[f"looks that choose in ops/ of {backend}"] = str(len(to_choose))
        found[f"looks for errors in ops/ of {backend}"] = str(len(for_errors))
    found |= {f"names shared by op files of {backend}": str(shared_names(root, backend)) for backend in BACKENDS}
    package = root / "multiop"
    of_numpy = [
        part for path in package.glob("backends/numpy/**/*.py") for part in private_parts.reached(path, package)
    ]
    found["private parts in backends/numpy"] = str(len(of_numpy))
    found["private parts outside their modules"] = str(len(private_parts.outside(package)))
    found["functions called by a bare participle"] = str(sum(map(len, bare_participles(root).values())))
    found["members that a backend may leave out"] = str(optional_members(root))
    for kind in ("primitive", "composite"):
        text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
        guide = re.search(rf"## Add a {kind}\n.*?touches (\w+) files", text, re.DOTALL)
        found[f"files that a new {kind} touches"] = guide[1] if guide else "?"
    syntax.cache_clear()  # a hundred megabytes
    return found | words_of_pages(root)


def missed(found: dict[str, str]) -> set[str]:
    """Return the figures that are above their goals, or below them."""
    above = {name for name, most in GOALS.items() if float(found[name]) > most}
    return above | {name for name, least in LEAST.items() if float(found[name]) < least}


def figures(root: Path, dispatch: bool) -> dict[str, str]:
    """Return the figures of a tree, by name."""
    found = of_source(root)
    for backend in BACKENDS:
        known = measured(root, backend, dispatch)
        found["names in dir(multiop)"] = known.pop("dir", "?")
        found[f"names in the namespace of {backend}"] = known.pop("names", "not installed")
        found |= known
    return found


def main() -> None:
    """Print the figures of one or two trees as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("other", nargs="?", type=Path, help="another tree, whose figures stand before this one's")
    parser.add_argument(
        "--dispatch", action="store_true", help="measure what an op costs around the backend's function"
    )
    parser.add_argument(
        "--ops", choices=("numpy", *BACKENDS), help="list a backend's ops by their lines, with their helpers"
    )
    given = parser.parse_args()
    if given.ops:
        for name, (lines, helpers) in sorted(ops_with_helpers(ROOT, given.ops).items(), key=lambda item: item[1][0]):
            print(f"{lines:4} {name}:", *helpers)
        return
    trees = [tree for tree in (given.other, ROOT) if tree is not None]
    columns = [figures(tree, given.dispatch) for tree in trees]
    print("|", " | ".join(["", *(["before", "after"] if given.other else ["now"]), "goal"]), "|")
    print("|---" * (len(trees) + 2) + "|")
    for name in columns[-1]:
        goal = f"≤ {GOALS[name]}" if name in GOALS else f"≥ {LEAST[name]}" if name in LEAST else ""
        print("|", " | ".join([name, *(column.get(name, "") for column in columns), goal]), "|")


if __name__ == "__main__":
    main()
