"""The shape of the package, held by reading its source: imports run one way, and backends mirror the frontends."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import architecture
import import_graph
import op_list
import private_parts
import pytest

import multiop

pytestmark = pytest.mark.tier("quick")

PACKAGE = Path(multiop.__file__).parent
BACKENDS = {"numpy": set(), "torch": {"torch"}, "jax": {"jax", "jaxlib"}, "tensorflow": {"tensorflow"}}
LAYERS_OF = {"tensorflow": {"keras"}, "jax": {"flax", "equinox"}}  # libraries of layers, whose models are ported
FRAMEWORKS = {framework for frameworks in BACKENDS.values() for framework in frameworks} | {"keras", "flax", "equinox"}

CONTRACT = {  # file -> the public functions that each backend defines in it, in this order
    "autodiff/custom_gradient": ["stop_gradient", "custom_call"],
    "autodiff/transforms": ["vjp", "jvp", "vmap", "jit", "checkpoint"],
    "autodiff/gradients": ["gradients"],
    "autodiff/tape": ["Tape"],
    "devices": ["device", "to_device"],
    "scopes": ["name_scope"],
}


known_modules = functools.cache(import_graph.modules)
outside = functools.cache(private_parts.outside)


def sources(folder=PACKAGE):
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports(path):
    """Return the dotted names that the statements of a file import, wherever in it, relative ones resolved."""
    known = known_modules(PACKAGE.parent)
    return [name for name, _ in import_graph.statements(module_name(path), path, [*ast.walk(parse(path))], known)]


def upward_imports(path):
    """Yield what is wrong with the order of a file's imports."""
    name = module_name(path)
    here = architecture.layer(name)
    for imported in imports(path):
        if imported.split(".")[0] != "multiop":
            continue
        there = architecture.layer(imported)
        if architecture.LAYERS.index(there) > architecture.LAYERS.index(here):
            yield f"{name} ({here}) imports {imported} ({there})"
        if here == "backends" and name != "multiop.backends":
            own = ".".join(name.split(".")[:3])
            is_below = architecture.LAYERS.index(there) < architecture.LAYERS.index("backends")
            if not (is_below or imported == "multiop.backends" or (imported + ".").startswith(own + ".")):
                yield f"{name} imports {imported}: a backend imports its siblings and what stands below all backends"


def foreign_frameworks(path):
    """Return the frameworks that a file imports and may not."""
    parts = module_name(path).split(".")
    frameworks = BACKENDS if parts[1:2] in (["backends"], ["porting"]) else {}
    allowed = frameworks.get(parts[2], set()) if len(parts) > 2 else set()
    if parts[1:2] == ["porting"] and allowed:
        allowed = allowed | LAYERS_OF.get(parts[2], set())
    if module_name(path) == "multiop.keras":  # imported where Keras is
        allowed = {"keras"}
    return ({name.split(".")[0] for name in imports(path)} & FRAMEWORKS) - allowed


def test_imports_run_one_way():
    assert [text for path in sources() for text in upward_imports(path)] == []


def test_only_a_backend_imports_its_framework():
    assert {module_name(path): found for path in sources() if (found := foreign_frameworks(path))} == {}


PRIVATE = {  # how the modules are called that a framework promises nothing about
    "torch": ("torch._",),
    "jax": ("jax._src", "jaxlib"),
    "tensorflow": ("tensorflow.python",),
}


def private(path, prefixes):
    """Return the private modules of a framework that a file imports, or reaches by their dotted names."""
    reached = [import_graph.dotted(node) for node in ast.walk(parse(path)) if isinstance(node, ast.Attribute)]
    return sorted(name for name in {*imports(path), *reached} if name.startswith(prefixes) and "__" not in name)


@pytest.mark.parametrize("backend", list(PRIVATE))
def test_one_file_of_a_backend_knows_its_frameworks_private_parts(backend):
    paths = [
        path
        for path in sources(PACKAGE / "backends" / backend)
        if path.stem != "_internals" and not path.stem.startswith(("_since_", "_before_"))
    ]
    assert {str(path): found for path in paths if (found := private(path, PRIVATE[backend]))} == {}
    assert private(PACKAGE / "backends" / backend / "_internals.py", PRIVATE[backend])


def test_private_attributes_of_others_are_named_in_the_modules_that_are_for_that(tmp_path):
    assert outside(PACKAGE) == []
    used = {
        (path.relative_to(PACKAGE).as_posix(), node.attr if isinstance(node, ast.Attribute) else node.value)
        for path in sources()
        for node in ast.walk(parse(path))
        if isinstance(node, (ast.Attribute, ast.Constant))
    }
    assert private_parts.ALLOWED.keys() <= used  # none that is no longer needed
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import torch._dynamo\ntorch.zeros(3)._base\ngetattr(torch, '_C')\nself._mine\ntorch.zeros(3).__len__\n"
        "x._version\ngetattr(node, '_schema')\n"
    )
    assert outside(tmp_path) == [
        "planted.py:1: torch._dynamo",
        "planted.py:2: torch.zeros(3)._base",
        "planted.py:3: getattr(torch, '_C')",
        "planted.py:6: x._version",
        "planted.py:7: getattr(node, '_schema')",
    ]


@pytest.mark.parametrize("backend", list(PRIVATE))
def test_the_fallback_is_imported_in_one_place_and_on_a_condition(backend):
    fallbacks = [
        node in tree.body
        for path in sources(PACKAGE / "backends" / backend)
        for tree in [parse(path)]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and "_public" in [*(node.module or "").split("."), *(a.name for a in node.names)]
    ]
    assert fallbacks == [False]


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_one_file_of_a_reader_knows_its_frameworks_private_parts(framework):
    porting = PACKAGE / "porting"
    assert not [text for text in outside(PACKAGE) if text.startswith("porting")]
    assert list(private_parts.reached(porting / framework / "_internals.py", PACKAGE))


def test_derivatives_of_ops_on_jax_are_held():
    """`jax.custom_jvp` forgets its rule inside of a loop that is differentiated twice, see `_held`."""
    uses = [path.name for path in (PACKAGE / "backends" / "jax").rglob("*.py") if "jax.custom_jvp(" in path.read_text()]
    assert uses == ["_held.py"]


def test_the_planted_cycle_is_seen(tmp_path, monkeypatch):
    planted = tmp_path / "multiop" / "frontends" / "planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text("from multiop.autodiff import transforms\nimport torch\n")
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / "multiop")
    assert "imports multiop.autodiff" in next(upward_imports(planted))
    assert foreign_frameworks(planted) == {"torch"}


def test_no_file_imports_itself_by_way_of_others():
    edges = {name: {*others} for name, others in architecture.graph(PACKAGE.parent).items()}
    assert len(edges) > 300
    assert import_graph.circles(edges) == []
    edges["multiop.errors"].add("multiop.frontends.shapes")
    assert "multiop.errors" in import_graph.circles(edges)[0]


WAYS = {  # of importing `multiop.b` in `multiop/a.py`
    "a statement": "from multiop import b",
    "a relative one, in a function": "def f():\n    from . import b",
    "for a type checker": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import multiop.b",
    "its name": "import importlib\nimportlib.import_module('multiop.b')",
    "its name in a table": "import importlib\nO = {1: 'multiop.b'}\ndef f(x):\n    importlib.import_module(O[x])",
    "a part of its name": "from importlib import import_module\ndef f(x):\n    import_module(f'multiop.{x}')",
    "a relative name": "import importlib\nimportlib.import_module('.b', __package__)",
    "its own name and a part": "import importlib\ndef f(x):\n    importlib.import_module(f'{__package__}.{x}')",
    "what is loaded": "import sys\nsys.modules['multiop.b']",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_import_is_counted(tmp_path, way):
    (tmp_path / "multiop").mkdir()
    (tmp_path / "multiop" / "__init__.py").write_text("")
    (tmp_path / "multiop" / "a.py").write_text(WAYS[way])
    (tmp_path / "multiop" / "b.py").write_text("import json\n")
    edges = import_graph.graph(tmp_path)
    assert "multiop.b" in edges["multiop.a"]
    assert import_graph.circles(edges) == []
    (tmp_path / "multiop" / "b.py").write_text("from multiop import a\n")
    assert import_graph.circles(import_graph.graph(tmp_path)) == [["multiop.a", "multiop.b"]]


def test_a_module_that_hands_itself_over_is_imported(tmp_path):
    (tmp_path / "multiop").mkdir()
    (tmp_path / "multiop" / "a.py").write_text("import sys\nfrom multiop import b\nb.above = sys.modules[__name__]\n")
    (tmp_path / "multiop" / "b.py").write_text("above = None\n")
    assert import_graph.circles(import_graph.graph(tmp_path)) == [["multiop.a", "multiop.b"]]


@pytest.mark.parametrize("name", ["_loading/registry", "_loading/kernels", "_call/boundary", "_call/recover"])
def test_the_registry_knows_no_framework_by_name(name):
    words = set(re.findall(r"[a-z]+", (PACKAGE / f"{name}.py").read_text().lower()))
    assert not words & {"torch", "pytorch", "dynamo", "jax", "xla", "tensorflow", "tf", "autograph"}


def primitives(path):
    """Return the ops of a frontend file that call the active backend, in order."""
    return [function.name for function in op_list.functions(path) if op_list.is_primitive(function)]


def defined(path):
    """Return the public functions, classes and aliases at the top level of a file, in order."""
    found = []
    for node in parse(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in dict.fromkeys(found) if not name.startswith("_")]


FRONTENDS = [path for path in sources(PACKAGE / "frontends") if path.stem != "__init__"]


@pytest.mark.parametrize("name", BACKENDS)
def test_backend_defines_every_primitive_in_the_frontends_order(name):
    wanted, found = {}, {}
    for frontend in FRONTENDS:
        file = PACKAGE.joinpath("backends", name, *op_list.place(frontend.stem).split(".")).with_suffix(".py")
        wanted[frontend.stem] = primitives(frontend)
        found[frontend.stem] = [op for op in defined(file) if op.startswith("op_")] if file.exists() else []
    assert found == wanted


@pytest.mark.parametrize("name", BACKENDS)
def test_meaning_knows_no_kernel_and_a_kernel_falls_through_to_it(name):
    backend = PACKAGE / "backends" / name
    for path in sources(backend / "ops"):
        assert not {part for module in imports(path) for part in module.split(".") if "kernels" in part}, path
    kernels = [(path, function) for path in sources(backend / "kernels") for function in op_list.functions(path)]
    assert kernels
    for path, function in kernels:
        assert [keyword.arg for keyword in function.args.kwonlyargs] == ["otherwise"], (path, function.name)
        calls = [node.id for node in ast.walk(function) if isinstance(node, ast.Name)]
        assert "otherwise" in calls, (path, function.name)


def test_the_picture_and_the_tree_are_those_of_the_source():
    text = architecture.PAGE.read_text(encoding="utf-8")
    assert text == architecture.page(text), "run: python tools/architecture.py"
    assert {architecture.layer(module_name(path)) for path in sources()} == {*architecture.LAYERS}
    assert [path for path in sources() if not architecture.summary(path)] == []


# what stands outside of the core: it takes public names and `multiop.extend`, as anybody's package would
GUESTS = ("testing", "porting", "cli", "keras")
OUTSIDE = [path for path in sources() if architecture.layer(module_name(path)) in GUESTS]
OUTSIDE += sources(Path(__file__).parent / "toy_backend")


def private_of_the_core(path):
    """Return the private modules and names of the core that a file imports, or reaches by their names."""
    found = set()
    for node in ast.walk(parse(path)):
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                found |= {f"{module}.{alias.name}" for alias in node.names}
            case ast.Import():
                found |= {alias.name for alias in node.names}
            case ast.Attribute():
                found.add(ast.unparse(node))
            case ast.Constant(value=str(text)):
                found.add(text)
    private = [name for name in found if re.match(r"multiop(\.\w+)*\._[a-z]\w*", name)]
    return sorted(name for name in private if architecture.layer(name) not in GUESTS)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.relative_to(path.parents[2]).as_posix())
def test_code_outside_of_the_core_uses_public_names_and_extend(path):
    assert private_of_the_core(path) == []


def test_a_private_name_outside_of_the_core_is_seen(tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import multiop._values.host\nfrom multiop._loading import registry\nfrom multiop import _rules, extend\n"
        "import multiop\nmultiop._call.recover\nmultiop.ops.add\nmultiop.__version__\n"
        "import importlib\nimportlib.import_module('multiop.backends.jax._internals')\n"
    )
    assert private_of_the_core(planted) == [
        "multiop._call",
        "multiop._call.recover",
        "multiop._loading.registry",
        "multiop._rules",
        "multiop._values.host",
        "multiop.backends.jax._internals",
    ]


def test_every_frontend_file_has_primitives_or_composites():
    assert FRONTENDS
    for path in FRONTENDS:
        assert any(name.startswith("op_") for name in defined(path)), f"{path.name} has no op"


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("file", CONTRACT)
def test_backend_defines_the_autodiff_contract(name, file):
    found = defined(PACKAGE / "backends" / name / f"{file}.py")
    assert [one for one in found if one in CONTRACT[file]] == CONTRACT[file]


def test_backends_have_the_same_files():
    for folder in (".", "ops", "autodiff"):
        files = {
            name: {path.name for path in (PACKAGE / "backends" / name / folder).glob("[a-z]*.py")} for name in BACKENDS
        }
        assert (
            files["torch"] == files["jax"] == files["tensorflow"] == files["numpy"] | ({"random.py"} & files["torch"])
        )


def test_no_module_is_called_after_nothing():
    for path in sources():
        assert path.stem.strip("_") not in ("utils", "util", "common", "helpers", "helper", "misc"), path


def test_every_op_has_the_error_boundary():
    functions = [function for path in FRONTENDS for function in op_list.functions(path)]
    outermost = {function.name: [ast.unparse(node) for node in function.decorator_list[:1]] for function in functions}
    assert {name: found for name, found in outermost.items() if found != ["boundary"]} == {}
