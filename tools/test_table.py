"""Write the table of CONTRIBUTING.md that says which tests of ops are about which domain.

    python tools/test_table.py

A file of tests/ops is about a domain, as `reduction`, if it names three of its ops or half of them, or has its name.
An op that a quarter of the files name, as `op_cast`, is what tests are written with, and does not count.
"""

from __future__ import annotations

import collections
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
HEAD = "| domain | files of `tests/ops` |\n|---|---|\n"


def domains() -> dict[str, str]:
    """Return the domain of each op: the file of the frontends that defines it."""
    files = sorted((ROOT / "multiop" / "frontends").glob("[a-z]*.py"))
    return {op: file.stem for file in files for op in re.findall(r"^def (op_\w+)", file.read_text("utf-8"), re.M)}


def table() -> str:
    """Return the table: a row for each domain, the files that name most of its ops first."""
    domain_of = domains()
    sizes = collections.Counter(domain_of.values())
    texts = {
        path.stem.removeprefix("test_"): path.read_text("utf-8") for path in (ROOT / "tests/ops").glob("test_*.py")
    }
    named = {
        file: {f"op_{word}" for word in re.findall(r"\b(?:op_|[\"'])([a-z]\w+)", text)} & domain_of.keys()
        for file, text in sorted(texts.items())
    }
    users = collections.Counter(op for ops in named.values() for op in ops)
    counts = {
        file: collections.Counter(domain_of[op] for op in ops if 4 * users[op] < len(named))
        for file, ops in named.items()
    }
    lines = []
    for domain, size in sorted(sizes.items()):
        files = [file for file in named if counts[file][domain] >= min(3, size / 2) or file == domain]
        lines.append(f"| {domain} | {', '.join(sorted(files, key=lambda file: -counts[file][domain]))} |")
    every = [file for file in named if re.search(r"testing\.cases import rows|dir\((multiop|mo)\)", texts[file])]
    return HEAD + "\n".join([*lines, f"| each, by walking all ops | {', '.join(every)} |"]) + "\n"


def written(page: str) -> str:
    """Return the page with the table of today."""
    start = page.index(HEAD)
    return page[:start] + table() + page[page.index("\n\n", start) + 1 :]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
