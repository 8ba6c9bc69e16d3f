"""Write the pages of the reference, one for each domain, from the source and the rows.

docs/conf.py calls this at each build of the site; nothing of it is kept.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import numpy as np
import op_list

from multiop import extend
from multiop.testing import _case, cases

LONGEST = 90  # characters of a pinned answer

# page -> its title, the module whose members it shows, and their names, or none for all that are public
OTHERS = {
    "autodiff": ("Gradients and transforms", "multiop", "op_custom_gradient op_stop_gradient op_attach_gradient op_jvp "
                 "grad value_and_grad vjp jvp linearize jacobian jacrev jacfwd hessian hvp sparse_jacobian "
                 "sparse_hessian SparseDerivative vmap jit checkpoint linear_solve root "
                 "gradients AggregationMethod GradientTape UnconnectedGradients"),
    "tree": ("Pytrees", "multiop.tree", ""),
    "random": ("Random numbers", "multiop.random", ""),
    "porting": ("Porting", "multiop.porting", ""),
    "testing": ("Testing", "multiop.testing", ""),
    "config": ("Configuration", "multiop", "available_backends backend set_backend use_backend namespace floatx "
               "set_floatx x64 enable_x64 narrowing enable_narrowing enable_tensorflow_numpy"),
    "devices": ("Devices", "multiop", "device to_device"),
    "types": ("Types", "multiop", "Tensor ArrayLike DType PyTree dtype_name native_dtype finfo iinfo"),
    "keras": ("Code written for Keras", "multiop", "Operation name_scope"),
    "errors": ("Errors", "multiop.errors", ""),
}  # fmt: skip
INTRODUCTIONS = {
    "autodiff": "What works on each backend is in :doc:`../contract`; what a framework cannot do, in :doc:`../limits`.",
    "tree": "How a class of your own becomes a pytree is in :doc:`../howto/trees`.",
    "random": "How the numbers are computed, and how far the backends agree, is in :doc:`../random`.",
    "porting": "How to take a model from one framework to the others is in :doc:`../porting`.",
    "testing": "With the command and the pytest plugin, they are in :doc:`../testing`.",
    "keras": "How each function differs from Keras's, and how ops become layers of its models, is in :doc:`../keras`.",
    "config": "The variables and the file that set the same are in :doc:`../configuration`.",
    "devices": "What waits for an accelerator, and what a GPU changes, is in :doc:`../devices`.",
    "types": "What they are for is in :doc:`../architecture`.",
    "errors": "Each is also an instance of the built-in exception that a caller expects.",
}


def write(folder: Path) -> None:
    """Write all pages into `folder`; leave those that are as they would be written."""
    folder.mkdir(exist_ok=True)
    texts = {folder / f"{name}.rst": text for name, text in pages().items()}
    for path in folder.iterdir():
        if path not in texts:
            path.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


def pages() -> dict[str, str]:
    """Return the text of each page, by name."""
    found = {name: "\n".join(other(name)) + "\n" for name in OTHERS}
    found["extend"] = "\n".join(door()) + "\n"
    found |= {file: "\n".join(domain(file)) + "\n" for file in op_list.NAMESPACE_OF_FILE}
    return found | {"index": "\n".join(contents()) + "\n"}


def contents() -> Iterator[str]:
    """Yield the lines of the page that lists the others."""
    yield from heading("Reference")
    yield "Each page is made from docstrings when the site is built. Below each op are what is tested of it"
    yield "and the answers that are pinned and tested on four backends. :doc:`../ops` has all ops"
    yield "with their signatures on one page."
    for caption, names in (
        ("Gradients, tools and settings", [*OTHERS, "extend"]),
        ("Ops, by domain", op_list.NAMESPACE_OF_FILE),
    ):
        yield from ["", ".. toctree::", "   :maxdepth: 1", f"   :caption: {caption}", ""]
        yield from (f"   {name}" for name in names)


def heading(text: str) -> list[str]:
    """Return the lines of a page's title."""
    return [text, "=" * len(text), ""]


def other(name: str) -> Iterator[str]:
    """Yield the lines of a page that is not about a domain of ops."""
    title, module, names = OTHERS[name]
    yield from heading(title)
    yield from [INTRODUCTIONS[name], ""]
    space = importlib.import_module(module)
    for member in names.split() or public(space):
        yield from entry(module, member, getattr(space, member))
        yield ""


def door() -> Iterator[str]:
    """Yield the lines of the page for authors of backends: each name of `multiop.extend` and what its line says."""
    yield from heading("For authors of backends")
    yield from [f"``multiop.extend``: {inspect.getdoc(extend).partition(': ')[2].replace('`', '``')}", ""]
    yield from [":doc:`contributing` says how a backend is added.", ""]
    for title, lines in doors().items():
        yield from [title, "-" * len(title), ""]
        yield from grid("names", [["name", "what it is"], *([f"``{name}``", told] for name, told in lines)])


def doors() -> dict[str, list[tuple[str, str]]]:
    """Return the names of `multiop.extend` with their comments, under the comment that stands above them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in inspect.getsource(extend).splitlines():
        if line.startswith("# "):
            title = line.removeprefix("# ")
            lines = found[title[:1].upper() + title[1:]] = []
        elif name := re.match(r"(\w+) = _\S+(?:  # (.*))?$", line):
            lines.append((name[1], (name[2] or "").replace("`", "``")))
    return found


def public(space: types.ModuleType) -> list[str]:
    """Return the public names that a module defines or gathers from its own modules, in the order of its source."""
    found = getattr(space, "__all__", None) or [name for name in vars(space) if name[0] != "_"]
    return [
        name
        for name in found
        if not inspect.ismodule(getattr(space, name))
        and getattr(getattr(space, name), "__module__", "").startswith(space.__name__)
    ]


def entry(module: str, name: str, member: object) -> list[str]:
    """Return the directive that shows a function, a class or an alias of a type."""
    if inspect.isclass(member):
        lines = [f".. autoclass:: {module}.{name}"]
        own = [one for one, value in vars(member).items() if one[0] != "_" and getattr(value, "__doc__", None)]
        if own and not issubclass(member, BaseException):
            lines.append(f"   :members: {', '.join(own)}")
        return [*lines, "   :show-inheritance:", ""] if issubclass(member, BaseException) else [*lines, ""]
    kind = "autofunction" if callable(member) and inspect.isroutine(member) else "autodata"
    return [f".. {kind}:: {module}.{name}", *(["   :no-value:"] if kind == "autodata" else []), ""]


def domain(file: str) -> Iterator[str]:
    """Yield the lines of the page of a file of frontends."""
    doc = inspect.getdoc(importlib.import_module(f"multiop.frontends.{file}")) or ""
    summary, _, rest = doc.partition("\n")
    title, _, more = summary.removesuffix(".").partition(": ")
    yield from heading(title)
    yield from [f"{more[:1].upper()}{more[1:]}." if more else "", "", rest.strip(), ""]
    for op in op_list.ops():
        if op.module == f"multiop.frontends.{file}":
            yield from entry("multiop", op.name, lambda: None)
            yield from indented(described(op))
            yield ""


def indented(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines so that they belong to the directive before them."""
    return (f"   {line}".rstrip() for line in lines)


def described(op: op_list.Op) -> Iterator[str]:
    """Yield what an op's docstring does not have: where else it is, its results and its pinned answers."""
    kind = "A primitive, which each backend defines" if op.is_primitive else "A composite, written with other ops"
    names = [f"``ops.{op.bare}``"]
    if op.namespace:
        short = op.bare.removeprefix("image_") if op.namespace == "image" else op.bare
        names.append(f"``ops.{op.namespace}.{op_list.IMAGE_NAMES.get(op.name, short)}``")
    yield from [f"{kind}; also {' and '.join(names)}.", ""]
    yield from results(op.name)
    yield from pinned(op.name)


def results(name: str) -> Iterator[str]:
    """Yield what the suite tests of an op."""
    row = all_rows().get(name)
    if row is None:
        yield from ["It has no row in the shared suite: it is proved with gradients (:doc:`../contract`).", ""]
        return
    derivatives = ["gradient", *["second order"] * (row.order > 1), "forward mode"] if row.differentiable else []
    tested = [*derivatives, *["vmap"] * row.vmap, *["compiled"] * row.jit]
    values = f"values and dtypes in {', '.join(row.dtypes)}"
    told = "; ".join([values, *[", ".join(tested)] * bool(tested)])
    yield from [f"Tested on four backends: {told}.", ""]


@functools.cache
def all_rows() -> dict[str, Any]:
    """Return the rows of the shared suite, by op."""
    return cases.rows()


def pinned(name: str) -> Iterator[str]:
    """Yield the answers that are pinned for an op."""
    row = all_rows().get(name)
    pins = row.pins if row else ()
    if not pins:
        return
    lines = [
        [code(f"{name}({pin!r})"), "" if pin.value is None else code(told(pin.value)),
         code(told(pin.gradient)) if _case.has_gradient(pin) else ""]
        for pin in pins
    ]  # fmt: skip
    yield "Pinned, and tested on four backends:"
    yield ""
    table = [["call", "value", "gradient of the sum"], *lines]
    yield from grid("pins", table if any(line[2] for line in lines) else [row[:2] for row in table])


def told(x: Any) -> str:
    """Return a pinned answer as short text."""
    if isinstance(x, np.ndarray):
        return told(x.tolist()) if x.size <= 12 else f"an array of shape {x.shape}"
    if isinstance(x, (list, tuple)):
        inner = ", ".join(map(told, x))
        return f"[{inner}]" if isinstance(x, list) else f"({inner})"
    if isinstance(x, (float, np.floating)):
        return f"{float(x):.6g}" if math.isfinite(x) else str(float(x))
    return str(x) if isinstance(x, (bool, int, complex, str, type(None), np.generic)) else repr(x)


def code(text: str) -> str:
    """Return text as code, cut where it is long."""
    text = re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-f]+", "", text)).replace("<lambda>", "lambda")
    return f"``{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}``"


def grid(kind: str, rows: list[list[str]]) -> Iterator[str]:
    """Yield a table whose first row is its heading."""
    yield from [".. list-table::", "   :header-rows: 1", f"   :class: {kind}", ""]
    for row in rows:
        for n, cell in enumerate(row):
            yield f"   {'*' if n == 0 else ' '} - {cell}".rstrip()
    yield ""
