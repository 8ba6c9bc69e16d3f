"""Results as one self-contained HTML file: those of `multiop check`, and of a comparison."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TypeAlias

from . import _report

Line: TypeAlias = tuple[Sequence[str], str, float | None, float | None, str]  # names, status, found, allowed, message


def check_page(reports: Sequence[_report.Report], summary: str, broken: Sequence[str], again: Sequence[str]) -> str:
    """Return the page of `multiop check`: each function, with what was found, what is allowed, and how to repeat it."""
    parts = [f"<p>{_text(summary)}</p>", *(f"<pre class=failed>{_text(message)}</pre>" for message in broken)]
    for report, command in zip(reports, again, strict=True):
        status = "failed" if not report.agrees else "vacuous" if report.vacuous or report.differs else "ok"
        parts += [
            f"<section><h2>{_text(report.target)}::{_text(report.name)}</h2>",
            f"<p><code>{_text(report.inputs)}</code></p>",
            _table(
                ("property", "backend"),
                [
                    ((which, backend), cell.status, cell.error, cell.allowed, cell.message)
                    for which, by_backend in report.cells.items()
                    for backend, cell in by_backend.items()
                ],
            ),
            f"<p class={status}>{_text(report.verdict)}</p>",
            f"<p>Again: <code>{_text(command)}</code></p></section>",
        ]
    return _fill_page("multiop check", parts)


def comparison_page(title: str, summary: str, sections: Mapping[str, Sequence[Line]], notes: Sequence[str]) -> str:
    """Return the page of a comparison layer by layer: a table for each backend, whose lines name what was compared."""
    columns = ("layer", "compared", "quantity", "name")
    parts = [f"<p>{_text(summary)}</p>"]
    for heading, lines in sections.items():
        parts.append(f"<section><h2>{_text(heading)}</h2>{_table(columns, lines)}</section>")
    parts += [f"<p class=note>{_text(note)}</p>" for note in notes]
    return _fill_page(title, parts)


def fragment(summary: str, agrees: bool, tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]]) -> str:
    """Return what a notebook shows of a report: a line in words, and tables, by caption: their columns and rows.

    A table whose caption is empty is open, the others are folded.
    """
    colour = "#1a7f4b" if agrees else "#c62839"
    parts = [f'<p style="color: {colour}">{_text(summary)}</p>']
    for caption, (columns, rows) in tables.items():
        head = "".join(f"<th>{_text(title)}</th>" for title in columns)
        body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        parts.append(f"<details><summary>{_text(caption)}</summary>{table}</details>" if caption else table)
    return f"<div>{''.join(parts)}</div>"


def source_fragment(summary: str, source: str) -> str:
    """Return what a notebook shows of source: a line in words, and the source as it is."""
    return f"<div><p>{_text(summary)}</p><pre>{_text(source)}</pre></div>"


def _fill_page(title: str, parts: Sequence[str]) -> str:
    page = (resources.files(__package__) / "check.html").read_text(encoding="utf-8")
    return page.replace("<!--TITLE-->", _text(title)).replace("<!--RESULTS-->", "\n".join(parts))


def _table(columns: Sequence[str], lines: Sequence[Line]) -> str:
    titles = "".join(f"<th>{title}</th>" for title in (*columns, "", "found", "allowed", ""))
    rows = [
        f"<tr>{''.join(f'<td>{_text(name)}' for name in names)}<td class={status}>{status}"
        f"<td>{_number(error)}<td>{_number(allowed)}<td><pre>{_text(message)}</pre>"
        for names, status, error, allowed, message in lines
    ]
    return f"<div class=scroll><table><thead><tr>{titles}</thead>{''.join(rows)}</table></div>"


def _number(x: float | None) -> str:
    return "" if x is None else f"{x:.2g}"


def _text(text: str) -> str:
    shown = "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
    return html.escape(shown)
