"""What is on the pages of docs/: their code, what it prints, and where their links lead.

Blocks of `python` on a page run from its top to its bottom in one namespace. A block of `text` after one is what it
prints, with `...` for what may vary; a block that imports a framework belongs to that framework's backend alone.
Blocks of `pycon` are doctests in the same namespace.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import multiop
from multiop._loading import registry

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FRAMEWORK = re.compile(r"^(?:import|from) (torch|jax|tensorflow)\b", re.M)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)
FLOWCHART = re.compile(r"^```mermaid\nflowchart .*?\n(.*?)^```$", re.M | re.S)
EDGE = re.compile(r'^\s*(\w+)(?:\[".*?"\])?\s*(?:-->|-\. "(.*?)" \.->)\s*(\w+)', re.M)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclasses.dataclass(frozen=True)
class Block:
    """A piece of code on a page.

    Attributes:
        line: Its first line on the page.
        kind: `python` or `pycon`.
        source: The code.
        output: What it prints, as the page says; `None` if the page says nothing.
        backend: The only backend that it runs on, or "" for any.
    """

    line: int
    kind: str
    source: str
    output: str | None
    backend: str


def blocks(text: str) -> list[Block]:
    """Return the code of a page, in order."""
    found = [(match[1], match[2], text[: match.start()].count("\n") + 2) for match in BLOCK.finditer(text)]
    return [
        Block(line, kind, source, _output(found[n + 1 : n + 2]), (FRAMEWORK.findall(source) or [""])[0])
        for n, (kind, source, line) in enumerate(found)
        if kind in ("python", "pycon")
    ]


def _output(following: list[tuple[str, str, int]]) -> str | None:
    return following[0][1] if following and following[0][0] == "text" else None


def run(path: Path, backend: str, replace: dict[str, str] | None = None) -> dict[str, Any]:
    """Run the code of a page on the active backend, and return its names.

    Args:
        path: The page.
        backend: The active backend.
        replace: What stands in the code, and what is run in its place; outputs are then not compared.

    Raises:
        AssertionError: A block prints something else than the page says.
    """
    with everywhere(backend):
        return _run(path, backend, replace or {})


@contextlib.contextmanager
def everywhere(backend: str) -> Iterator[None]:
    """Make a backend that of all threads, as MULTIOP_BACKEND does: TensorFlow runs replicas in threads of its own."""
    before = registry._backend
    if backend:
        multiop.set_backend(backend)
    try:
        yield
    finally:
        registry._backend = before


def _run(path: Path, backend: str, replace: dict[str, str]) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "page"}
    checker = doctest.OutputChecker()
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.backend not in ("", backend):
            continue
        where = f"{path.name}:{block.line}"
        if block.kind == "pycon":
            test = doctest.DocTestParser().get_doctest(block.source, names, where, str(path), block.line)
            told = io.StringIO()
            runner = doctest.DocTestRunner(checker, verbose=False, optionflags=OPTIONS)
            runner.run(test, out=told.write, clear_globs=False)
            assert not told.getvalue(), told.getvalue()
            names |= test.globs
            continue
        source = block.source
        for old, new in replace.items():
            source = source.replace(old, new)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + source, str(path), "exec", dont_inherit=True), names)
        if block.output is not None and not replace:
            found = printed.getvalue()
            assert checker.check_output(block.output, found, OPTIONS), f"{where} printed\n{found}, not\n{block.output}"
    return names


def flowcharts_as_tables(text: str) -> str:
    """Return a page with each flowchart of Mermaid, which is drawn by a script from elsewhere, as a table."""
    return FLOWCHART.sub(lambda found: _table(found[1]), text)


def _table(flowchart: str) -> str:
    named = {key: label.split("<br/>") for key, label in re.findall(r'(\w+)\["(.*?)"\]', flowchart)}
    to: dict[str, list[str]] = {}
    for start, told, end in EDGE.findall(flowchart):
        to.setdefault(start, []).append(named.get(end, [end])[0] + (f" ({told})" if told else ""))
    lines = ["| | | leads to |", "|---|---|---|"]
    for key in {**named, **to}:
        name, *what = named.get(key, [key])
        lines.append(f"| {name} | {', '.join(what)} | {'; '.join(to.get(key, []))} |")
    return "\n".join(lines)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", outside, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def broken(path: Path) -> list[str]:
    """Return the links of a page that lead nowhere inside of the repository."""
    text = path.read_text(encoding="utf-8")
    found = []
    for target, anchor in LINK.findall(re.sub(r"^```(?!\{).*?^```$|`[^`\n]*`", "", text, flags=re.M | re.S)):
        to = (path.parent / target) if target else path
        if "reference/" in target:
            continue  # made when the site is built
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to.read_text(encoding="utf-8"))):
            found.append(f"{target}#{anchor}" if anchor else target)
    return found


def navigation(page: Path = DOCS / "index.md") -> list[Path]:
    """Return the pages that the site's navigation names; those of the reference are made when it is built."""
    found = []
    for body in TOCTREE.findall(page.read_text(encoding="utf-8")):
        names = [line for line in body.splitlines() if line and line[0] != ":"]
        found += [DOCS / f"{name}.md" for name in names if not name.startswith("reference/")]
    return found
