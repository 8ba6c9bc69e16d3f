"""Write docs/tutorials/first_gradient.ipynb from the page of that name: `python tools/notebook.py`, or `--check`.

`--run` runs its cells from top to bottom, each by itself, as a notebook does.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/tutorials/first_gradient.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n?", re.M | re.S)


def cells(text: str) -> list[dict[str, Any]]:
    """Return a page as the cells of a notebook; what the page shows as printed is left to the notebook."""
    text = re.sub(r"The same page is\na notebook: .*\n", "", text)
    text = re.sub(r"^!\[.*\]\(.*\)\n", "", text, flags=re.M)  # a picture is a file, which a notebook has not beside it
    text = re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
    found, at = [], 0
    for fence in FENCE.finditer(text):
        found.append(cell("markdown", text[at : fence.start()]))
        if fence[1] != "text":
            found.append(cell("code", fence[2]) if fence[1] == "python" else cell("markdown", fence[0]))
        at = fence.end()
    return [one for one in [*found, cell("markdown", text[at:])] if one["source"]]


def cell(kind: str, source: str) -> dict[str, Any]:
    """Return a cell of a notebook, in the format of nbformat 4.5 but for its id."""
    more = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source.strip().splitlines(keepends=True), **more}


def notebook() -> str:
    """Return the notebook as JSON."""
    found = cells(PAGE.read_text(encoding="utf-8"))
    numbered = [{"id": f"cell-{n}", **one} for n, one in enumerate(found)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": numbered, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def run(path: Path = NOTEBOOK) -> str:
    """Run the cells of a notebook in one namespace, and return what they print."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for one in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if one["cell_type"] == "code":
                exec("".join(one["source"]), names)
    return printed.getvalue()


def main() -> None:
    """Write the notebook, check that it is current, or run it."""
    if "--run" in sys.argv[1:]:
        print(run(), end="")
    elif "--check" not in sys.argv[1:]:
        NOTEBOOK.write_text(notebook(), encoding="utf-8", newline="\n")
    elif not NOTEBOOK.exists() or NOTEBOOK.read_text(encoding="utf-8") != notebook():
        raise SystemExit(f"{NOTEBOOK.name} is not current: run python tools/notebook.py")


if __name__ == "__main__":
    main()
