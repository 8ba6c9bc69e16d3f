"""Which ops a function of a backend can be reached from, and which tests are likeliest to see a fault in it."""

from __future__ import annotations

import ast
import collections
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from _fault import BACKENDS, FOLDERS, ROOT

# what stands on autodiff's own ground has tests of its own, in this order
AUTODIFF = {
    "attach_gradient": ["attach_gradient"],
    "checkpoint": ["transforms", "scale"],
    "stop_gradient": ["stop_gradient", "custom_gradient", "gradients"],
    "gradients": ["gradients", "tape"],
    "tape": ["tape", "gradients", "bad_input", "scale"],
    "_primitives": ["custom_gradient", "transforms", "scale", "tape", "gradients"],
    "implicit": ["implicit"],
    "sparse": ["sparse"],
    "_user_rule": ["custom_gradient", "transforms"],
    "_public": ["versions"],
    "_versions": ["versions"],
    "_tape": ["tape", "gradients", "scale"],
    "_recording": ["tape", "gradients"],
    "_recorded": ["tape", "gradients"],
    "_operations": ["tape", "gradients"],
    "transforms": ["transforms", "bad_input", "custom_gradient", "scale", "doors"],
    "custom_gradient": ["custom_gradient", "bad_input", "transforms", "scale", "tape", "gradients"],
    "_rules": ["custom_gradient", "scale", "transforms"],
    "_untraced": ["custom_gradient", "transforms"],
    "_linear": ["custom_gradient", "transforms"],
    "_linearity": ["custom_gradient", "transforms"],
    "_closed_over": ["custom_gradient", "transforms"],
    "_flat": ["custom_gradient", "transforms", "bad_input", "gradients", "tape", "attach_gradient"],
    "_internals": ["custom_gradient", "transforms", "tape"],
    "random": ["random"],
    "devices": ["devices"],
}
USUAL = ["custom_gradient", "transforms", "tape", "gradients"]


@functools.cache
def op_rows() -> frozenset[str]:
    """Return the ops that the shared suite has rows for."""
    sys.path.insert(0, str(ROOT))
    from multiop.testing.cases import rows

    return frozenset(rows())


@functools.cache
def callers(group: str) -> dict[str, set[str]]:
    """Return, for each name that is defined at the top of a file of a group, those whose definition uses it."""
    files = sorted((ROOT / FOLDERS[group]).rglob("*.py"))
    pairs = [pair for file in files for node in ast.parse(file.read_text()).body for pair in _used(node)]
    defined = {name for name, _ in pairs}
    siblings = {file.stem for file in files} | {file.stem.strip("_") for file in files}
    found: dict[str, set[str]] = collections.defaultdict(set)
    for name, node in pairs:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                used = inner.id
            elif isinstance(inner, ast.Attribute) and getattr(inner.value, "id", None) in siblings:
                used = inner.attr
            else:
                continue
            if used in defined and used != name:
                found[used].add(name)
    return found


def _used(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield each name that a statement defines, and what may hold names that it depends on."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name, node
        for decorator in node.decorator_list:  # @f.defjvp: what it decorates is part of f
            yield from ((inner.id, ast.Name(node.name)) for inner in ast.walk(decorator) if isinstance(inner, ast.Name))
    elif isinstance(node, ast.Assign):
        targets = [inner for target in node.targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
        yield from ((target.id, node.value) for target in targets)
    elif isinstance(node, ast.Expr):  # f.defjvp(rule)
        yield from ((inner.id, node.value) for inner in ast.walk(node) if isinstance(inner, ast.Name))


def ops_reaching(group: str, function: str, most: int = 4) -> list[str]:
    """Return the ops from which `function` can be reached, the closest first."""
    uses = callers(group)
    order, seen, queue = [], {function}, collections.deque([function])
    while queue:
        name = queue.popleft()
        if name in op_rows():
            order.append(name)
        for user in sorted(uses.get(name, ()), key=lambda user: (user not in op_rows(), user)):
            if user not in seen:
                seen.add(user)
                queue.append(user)
    return order[:most]


def autodiff_using(backend: str, path: str, function: str) -> list[str]:
    """Return the stems of the files on autodiff's own ground that use a function of another file."""
    files = (ROOT / "multiop/backends" / backend).rglob("*.py")
    word = re.compile(rf"\b{re.escape(function)}\b")
    return [
        file.stem
        for file in sorted(files)
        if file.stem in AUTODIFF and file.stem != Path(path).stem and word.search(file.read_text())
    ]


def ops_of(path: str) -> list[str]:
    """Return the ops that a file defines."""
    names = [getattr(node, "name", "") for node in ast.parse((ROOT / path).read_text()).body]
    return [name for name in names if name in op_rows()]


@functools.cache
def _test_texts(backend: str) -> dict[str, str]:
    files = [*(ROOT / "tests/ops").glob("test_*.py"), *(ROOT / "tests" / backend).glob("test_*.py")]
    return {str(file.relative_to(ROOT)): file.read_text() for file in sorted(files)}


def files_about(backend: str, words: list[str], domain: str, most: int = 10) -> list[str]:
    """Return the test files of ops that name what is in `words`, the one that does it most often first."""
    if not words:
        return []
    pattern = re.compile(r"(?<![a-z])(?:" + "|".join(map(re.escape, words)) + r")(?![a-z])")
    counts = {file: len(pattern.findall(text)) + 50 * (domain in file) for file, text in _test_texts(backend).items()}
    return [file for file in sorted(counts, key=lambda file: -counts[file]) if counts[file]][:most]


def files_of_porting(path: str) -> list[str]:
    """Return the files of tests of porting: those named like the file or its folder first, then those that name it."""
    words = [word.strip("_") for word in Path(path).with_suffix("").parts[2:]]
    words += {"_printing": ["source"], "primitives": ["jax_primitives"]}.get(words[-1], [])
    words += ["source", "expressions"] * ("_printing" in path)
    files = {str(file.relative_to(ROOT)): file.read_text() for file in (ROOT / "tests/porting").glob("test_*.py")}
    counts = {
        file: [sum(word in Path(file).stem for word in words), sum(text.count(word) for word in words)]
        for file, text in files.items()
    }
    return sorted(files, key=lambda file: (counts[file], file), reverse=True)


# tests that have one of these words come first where the class of the fault, or the faulty text, says so
_TELLING = {
    "forward": ["jvp", "forward", "jacfwd"],
    "vmap": ["vmap", "vectorized"],
    "compiled": ["jit", "compile", "tf.function"],
    "second order": ["hessian", "second", "twice", "hvp"],
    "complex": ["complex"],
    "kept": ["weakref", "alive", "memory"],
    "freed": ["persistent", "again", "twice"],
    "silence": ["ClosedOver"],
    "not linear": ["NonLinear"],
    "keyword": ["keepdims=keepdims"],
}


def told_by(name: str, kind: str) -> list[str]:
    """Return words of the tests that are likeliest to see a fault in what is no op of a backend."""
    words = re.findall(r"[a-z_]{6,}", name.partition(":")[2])
    return [*words, *(word for part, more in _TELLING.items() if part in kind for word in more)]


def stages(
    backend: str, group: str, path: str, function: str, tier: str, week: str, told: list[str]
) -> tuple[list[dict], list[str]]:
    """Return what to run for a fault in `function` of the file `path`: the arguments of runs of pytest, and the ops."""
    chosen = [
        "--maxfail=1",
        f"--multiop-backends={backend}",
        f"--multiop-tier={tier}",
        f"--week={week}",
        "-m",
        "not cross",
    ]
    longer = 4 if tier == "full" else 1
    stem = Path(path).stem
    area = stem if stem in AUTODIFF else Path(path).parent.name
    if group == "random":
        files, words = ["tests/test_random.py", "tests/test_config.py"], [function, stem, *told]
        return [{"args": [file, *chosen], "words": words, "seconds": 60 * longer} for file in files], []
    if group == "porting":
        files, words = files_of_porting(path), [function, stem.strip("_"), *told]
        parts = [files[:3], files[3:]]
        return [{"args": [*part, *chosen], "words": words, "seconds": 60 * longer} for part in parts], []
    found = []
    ops = []
    if group == "frontends" or (group in BACKENDS and (stem not in AUTODIFF or stem == "_internals")):
        ops = ops_reaching(group, function) or ops_of(path)[:6]
    if ops:
        words = [op.removeprefix("op_") for op in ops]
        args = ["tests/test_conformance.py", f"--multiop-ops={','.join(ops)}", *chosen]
        found.append({"args": args, "seconds": 120 * longer})
        # the last two hold the answers of all ops
        every = ["tests/ops/test_pinned.py", "tests/ops/test_dtypes.py"]
        files = [*dict.fromkeys([*files_about(backend, words, stem), *every])]
        names = [f"op_{word}" for word in words] + [f".{word}(" for word in words] + [f'"{word}' for word in words]
        found.append({"args": [*files, *chosen], "words": [*names, *told], "seconds": 25 * longer})
    if "kernels" in Path(path).parts:  # that a kernel runs is seen there alone
        found.append({"args": ["tests/test_kernels.py", *chosen], "words": [*ops, *told], "seconds": 60 * longer})
    users = [area] if area in AUTODIFF or not ops else autodiff_using(backend, path, function)
    if users:
        about = [one for user in users for one in AUTODIFF.get(user, USUAL)]
        files = []
        for one in dict.fromkeys(about):
            for file in (
                f"tests/autodiff/test_{one}.py",
                f"tests/{backend}/test_{one}_{backend}.py",
                f"tests/test_{one}.py",
            ):
                files += [file] if (ROOT / file).exists() else []
        found.append({"args": [*files, *chosen], "words": told, "seconds": 60 * longer})
    return found, ops
