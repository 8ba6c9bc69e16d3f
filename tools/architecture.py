"""Write the tree and the picture of docs/architecture.md, from the first lines of docstrings and from the imports.

python tools/architecture.py            writes them
python tools/architecture.py --check    fails if the page is not current
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import import_graph

graph = functools.cache(import_graph.graph)
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "multiop"

# the floors of the house, from the ground up: a layer may import itself and what is named before it. `multiop` is the
# public face, which all above it use
FLOORS = (
    ("errors",),
    ("_loading", "_rules"),
    ("config", "scopes", "_values"),
    ("_call",),
    ("backends",),
    ("tree", "devices", "dtypes", "frontends", "operation"),
    ("array_api", "autodiff"),
    ("ops", "random"),
    ("namespaces",),
    ("multiop", "extend"),
    ("keras", "testing"),
    ("porting",),
    ("cli", "__main__"),
)
LAYERS = [layer for floor in FLOORS for layer in floor]
OPEN = ("_loading", "_rules", "_values", "_call")  # packages whose files are named one by one
IN_A_BACKEND = {  # the folders of each backend, which have no docstring of their own
    "ops/": "What each primitive means: file names, function names and their order are those of frontends/.",
    "kernels/": "Faster forms of ops, primitive or composite, which fall through to them.",
    "autodiff/": "Custom gradients, the tape and the transforms.",
}


def layer(module: str) -> str:
    """Return the layer of a dotted module name below `multiop`."""
    return module.split(".")[1] if "." in module else "multiop"


def summary(path: Path) -> str:
    """Return the first line of a file's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def source(layer: str) -> Path:
    """Return the file whose docstring speaks for a layer."""
    folder = PACKAGE if layer == "multiop" else PACKAGE / layer
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def tree() -> str:
    """Return the tree: each layer from the top down, and the files of those that are open."""
    lines = [("multiop/", "")]
    for name in reversed(LAYERS):
        path = source(name)
        is_package = path.name == "__init__.py" and name != "multiop"
        lines.append((f"  {name}/" if is_package else f"  {path.name}", summary(path)))
        if name in OPEN:
            files = sorted(path.parent.glob("*.py"))
            lines += [(f"    {file.name}", summary(file)) for file in files if file != path]
        if name == "backends":
            built_in = sorted(one.parent.name for one in path.parent.glob("*/__init__.py"))
            lines.append((f"    {', '.join(built_in)}", ""))
            lines += [(f"      {folder}", told) for folder, told in IN_A_BACKEND.items()]
    width = max(len(name) for name, told in lines if told) + 2
    return "\n".join(f"{name:{width}}{told}".rstrip() for name, told in lines)


def picture() -> str:
    """Return the picture: the floors, and an arrow to each that another one imports and that no arrow leads to yet."""
    edges: dict[str, set[str]] = {str(n): set() for n in range(len(FLOORS))}
    for module, others in graph(ROOT).items():
        here = str(floor_of(module))
        edges[here] |= {
            str(below) for other in others if (below := floor_of(other)) < int(here)
        }  # not by name, upwards
    return "\n".join(["flowchart TD", *labels(), *arrows(edges)])


def labels() -> Iterator[str]:
    """Yield the box of each floor, from the top down."""
    for n, floor in reversed([*enumerate(FLOORS)]):
        names = [f"{name}/" if source(name).name == "__init__.py" and name != "multiop" else name for name in floor]
        yield f'  f{n}["{", ".join(names)}"]'


def arrows(edges: dict[str, set[str]]) -> Iterator[str]:
    """Yield the arrows from the top down, without those that follow from others."""
    for floor in sorted(edges, key=int, reverse=True):
        below = edges[floor]
        for other in sorted(below, key=int, reverse=True):
            if not any(other in import_graph.reach(one, edges) for one in below - {other}):
                yield f"  f{floor} --> f{other}"
    yield f'  f{floor_of("multiop._loading")} -. "loads on first use" .-> f{floor_of("multiop.backends")}'


def floor_of(module: str) -> int:
    """Return the number of a module's floor."""
    return next(n for n, floor in enumerate(FLOORS) if layer(module) in floor)


def page(text: str) -> str:
    """Return the page with its tree and its picture as the source has them now."""
    for kind, made in (("text", tree()), ("mermaid", picture())):
        start = f"<!-- made by tools/architecture.py, do not edit -->\n```{kind}\n"
        pattern = re.compile(rf"{re.escape(start)}.*?^```$", re.M | re.S)
        if not pattern.search(text):
            raise SystemExit(f"docs/architecture.md has no place for the {kind}: {start!r}")
        text = pattern.sub(lambda found, whole=f"{start}{made}\n```": whole, text)
    return text


def main() -> None:
    """Write the page, or check it."""
    text = PAGE.read_text(encoding="utf-8")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(text), encoding="utf-8", newline="\n")
    elif page(text) != text:
        raise SystemExit("docs/architecture.md is not current: run python tools/architecture.py")


if __name__ == "__main__":
    main()
