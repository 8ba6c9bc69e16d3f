"""Keep a table of a page as data, in docs/tables: the site shows it where it stands, and programs can read it."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs/tables"


def as_csv(lines: list[str]) -> str:
    """Return a table of Markdown as CSV: header and rows, whose cells stay Markdown."""
    text = io.StringIO()
    rows = [[cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")] for line in lines]
    csv.writer(text, lineterminator="\n").writerows([rows[0], *rows[2:]])
    return text.getvalue()


def show_table(name: str, lines: list[str]) -> list[str]:
    """Return the lines that show a table of Markdown on a page, and write its file; with `--check`, compare it."""
    path, text = FOLDER / f"{name}.csv", as_csv(lines)
    if "--check" not in sys.argv[1:]:
        path.write_text(text, encoding="utf-8", newline="\n")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        raise SystemExit(f"docs/tables/{name}.csv is not current: run python {sys.argv[0]}")
    return [
        "```{csv-table}",
        f":file: tables/{name}.csv",
        ":header-rows: 1",
        "```",
        "",
        f"[As data](tables/{name}.csv)",
    ]
