"""The list of ops: what is made of it is current, it is all that a user sees, and an op is added in a few lines."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import op_list
import pytest

import multiop
from multiop import ops
from multiop._values import dtypes

ROOT = Path(__file__).parent.parent
SPACES = [ops, *(getattr(ops, name) for name in op_list.NAMESPACES)]
pytestmark = pytest.mark.tier("quick")


def test_generated_files_are_current():
    assert list(op_list.changed()) == [], "run: nox -s generate"


def test_the_list_holds_every_op_that_the_source_defines():
    defined = {}
    for module in {op.module for op in op_list.ops()}:
        found = vars(importlib.import_module(module))
        defined |= {name: f for name, f in found.items() if name.startswith("op_") and f.__module__ == module}
    assert defined == {op.name: getattr(multiop, op.name) for op in op_list.ops()}


def test_a_signature_is_that_of_the_function():
    for op in op_list.ops():
        parameters = inspect.signature(getattr(multiop, op.name)).parameters.values()
        bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
        assert normalized(str(inspect.Signature(bare))) == normalized(op.signature), op.name


def normalized(signature):
    return ast.unparse(ast.parse(f"def f{signature}: pass"))


def test_a_primitive_is_what_a_backend_defines(backend):
    module = multiop._loading.registry.load(backend)
    for op in op_list.ops():
        if op.module.startswith("multiop.frontends."):
            assert hasattr(module, op.name) >= op.is_primitive, op.name


def test_dir_shows_what_is_public_and_nothing_else():
    names = {name for names in op_list.OTHERS.values() for name in names.split()}
    assert set(dir(multiop)) == {op.name for op in op_list.ops()} | names | {"__version__"}
    of_keras = {name for module in op_list.IN_OPS for name in op_list.OTHERS[module].split()}
    assert set(dir(ops)) == {op.bare for op in op_list.ops()} | set(op_list.NAMESPACES) | of_keras
    for module in [multiop, *SPACES]:
        assert sorted({*module.__all__, "__version__"} if module is multiop else module.__all__) == dir(module)
        assert all(hasattr(module, name) for name in dir(module))


def test_an_op_has_the_name_that_it_has_in_ops():
    names = {name: value.__name__ for name, value in vars(ops).items() if inspect.isfunction(value) and name[0] != "_"}
    assert {name: found for name, found in names.items() if name != found} == {}
    for name in {*names} & {op.bare for op in op_list.ops()}:
        assert getattr(ops, name).__qualname__ == f"op_{name}"  # what Python's own errors and pickles say


def test_dtypes_are_the_objects_of_the_backend(backend):
    assert sorted(op_list.DTYPES) == sorted(dtypes.ALL) and not {*dtypes.ALL} & {*ops.__all__}
    for name in dtypes.ALL:
        found = getattr(ops, name)
        assert multiop.dtype_name(found) == name and not isinstance(found, str)
        if not (backend == "jax" and name in dtypes.WIDE):
            assert multiop.op_zeros(2, found).dtype == found
            assert getattr(multiop.namespace(multiop.op_zeros(2)), name) == found


@pytest.mark.parametrize("module", [multiop, *SPACES], ids=lambda module: module.__name__)
def test_a_star_import_brings_what_dir_shows(module):
    scope = {}
    exec(f"from {module.__name__} import *", scope)
    assert set(scope) - {"__builtins__"} == set(dir(module)) - {"__version__"}


BLOCK = re.compile(r"^In `([\w/.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples():
    """Return the additions that CONTRIBUTING.md shows, op by op: of a file and a text."""
    found = []
    for name, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        if name.startswith("multiop/frontends/"):
            found.append([])
        found[-1].append((name, text))
    return found


def add(root, name, text):
    """Add to a file: imports below those that are there, a row at the end of the rows, the rest at the end."""
    path = root / name
    lines = path.read_text(encoding="utf-8").splitlines()
    added = text.splitlines()
    while added and (added[0].startswith("from ") or not added[0]):
        place = max(n for n, line in enumerate(lines) if line.startswith("from ")) + 1
        lines[place:place] = [added.pop(0)]
    are_rows = name.startswith("multiop/testing/")
    place = max(n for n, line in enumerate(lines) if line == "]") if are_rows else len(lines)
    lines[place:place] = added if are_rows else ["", "", *added]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def size(name, text):
    """Return the lines of an addition without its docstring and its case row."""
    if name.startswith("multiop/testing/"):
        return sum(line.startswith("from ") for line in text.splitlines())
    if name.endswith(".md"):
        return text.count("\n")
    docstrings = [node.body[0] for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    docstrings = [node for node in docstrings if isinstance(node, ast.Expr)]
    documented = {n for node in docstrings for n in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(text.splitlines(), start=1)
    return sum(n not in documented and bool(line) and line[0] != "#" for n, line in lines)


@pytest.fixture
def copy(tmp_path):
    """Copy what is needed to add an op."""
    left_out = shutil.ignore_patterns("__pycache__")
    for name in ("multiop", "tools", "tests/tables"):  # conftest.py imports from tests/tables
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    for name in ("pyproject.toml", "conftest.py", "docs/architecture.md", "tests/test_layout.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(root, *command, **environment):
    """Run Python on a copy."""
    variables = os.environ | {"PYTHONPATH": str(root)} | environment
    return subprocess.run([sys.executable, *command], cwd=root, env=variables, capture_output=True, text=True)


def add_examples(root):
    for additions in examples():
        for name, text in additions:
            add(root, name, text)
    assert run(root, "tools/op_list.py").returncode == 0


def test_a_new_op_touches_few_files_and_takes_few_lines():
    composite, primitive = examples()
    assert [name for name, _ in primitive] == [
        "multiop/frontends/special.py",
        "multiop/backends/numpy/ops/special.py",
        "multiop/backends/numpy/autodiff/rules/special.py",
        *(f"multiop/backends/{backend}/ops/special.py" for backend in ("torch", "jax", "tensorflow")),
        "multiop/testing/cases/special.py",
    ]
    sizes = [size(name, text) for name, text in primitive]
    assert sizes == [3, 3, 1, 2, 2, 2, 0]  # as CONTRIBUTING.md says
    assert [name for name, _ in composite] == ["multiop/frontends/special.py", "multiop/testing/cases/special.py"]
    assert sum(size(name, text) for name, text in composite) == 4


def test_a_file_that_is_not_current_is_named_with_the_command(copy):
    (copy / "multiop/ops/nn.py").write_text("")
    found = run(copy, "tools/op_list.py", "--check")
    assert (found.returncode, found.stderr) == (1, "not current: multiop/ops/nn.py; run: nox -s generate\n")
    run(copy, "tools/op_list.py")
    assert run(copy, "tools/op_list.py", "--check").returncode == 0


def test_a_new_file_without_a_namespace_is_named(copy):
    shutil.copy(copy / "multiop/frontends/special.py", copy / "multiop/frontends/new.py")
    assert "not as multiop/frontends is: new" in run(copy, "tools/op_list.py").stderr


CALL = """
import multiop
from multiop import ops
print("found:", float(multiop.op_i1e(1.0)), float(ops.i1e(1.0)), float(multiop.op_cosm1(1.0)), float(ops.cosm1(0)))
"""


@pytest.mark.once
def test_an_op_is_added_to_a_copy_and_called(copy, backend):
    add_examples(copy)
    done = run(copy, "-c", CALL, MULTIOP_BACKEND=backend)
    assert done.returncode == 0, done.stderr
    expected = [0.2079104153497085, 0.2079104153497085, math.cos(1.0) - 1, 0.0]
    assert list(map(float, done.stdout.split()[1:])) == pytest.approx(expected, rel=1e-6)
    listed = run(copy, "-c", "import sys; sys.path.insert(0, 'tools'); import op_list; print(op_list.table())")
    assert "| `op_cosm1(x)` | Compute `cos(x)" in listed.stdout


@pytest.mark.tier("full")
def test_an_added_op_passes_the_suite(copy, backend):
    add_examples(copy)
    chosen = ["--multiop-ops=op_i1e,op_cosm1", f"--multiop-backends={backend}", "--backends=" + backend]
    for what in (["tests/test_layout.py"], ["--pyargs", "multiop.testing", *chosen]):
        done = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *what, MULTIOP_BACKEND=backend)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
