"""The page docs/contract.md: lists of the constructs that are the same on every backend, and a table of the rest."""

from __future__ import annotations

BACKENDS = ("torch", "jax", "tensorflow", "numpy")
HEADER = """# Autodiff constructs on each backend

The contract tests made this page: `python -m pytest tests/autodiff --contract-table=docs/contract.md`.
[The mathematics of a rule](mathematics.md) explains the constructs.
*Right*: values and gradients agree with a closed form or finite differences. *Clear error*: refused, with a message
naming the culprit. *Not there*: the framework has no such thing.
"""
LISTS = {"right": "Right on every backend", "clear error": "A clear error on every backend"}
REST = "Where backends differ"


def text(rows: dict[str, dict[str, str]]) -> str:
    """Return the page for the verdict of each construct on each backend."""
    backends = [backend for backend in BACKENDS if any(backend in row for row in rows.values())]
    verdicts = {name: [row.get(backend, "not there") for backend in backends] for name, row in rows.items()}
    everywhere = {name: row[0] for name, row in verdicts.items() if len({*row}) == 1 and row[0] in LISTS}
    lines = [HEADER]
    for verdict, title in LISTS.items():
        lines += [f"## {title}", "", *_items([name for name in everywhere if everywhere[name] == verdict]), ""]
    lines += [f"## {REST}", "", _row(["construct", *backends]), "|---" * (len(backends) + 1) + "|"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, row in verdicts.items():
        if name not in everywhere:
            alike.setdefault(tuple(row), []).append(name)
    lines += [_row(["<br>".join(names), *row]) for row, names in alike.items()]
    return "\n".join(lines) + "\n"


def _items(names: list[str]) -> list[str]:
    """Return the lines of a list; those of one subject, as `tape: ...`, share one."""
    by_subject: dict[str, list[str]] = {}
    for name in names:
        subject, colon, rest = name.partition(": ")
        by_subject.setdefault(subject if colon else "", []).append(rest if colon else name)
    return [f"- **{subject}**: {'; '.join(rest)}" for subject, rest in by_subject.items() if subject] + [
        f"- {name}" for name in by_subject.get("", [])
    ]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def read(page: str) -> dict[str, dict[str, str]]:
    """Return the verdict of each construct on each backend, as a page has them."""
    parts = dict(part.split("\n", 1) for part in page.split("\n## ")[1:])
    heading, _, *table = [line.strip("| ").split(" | ") for line in parts[REST].splitlines() if line[:1] == "|"]
    rows = {name: dict(zip(heading[1:], row[1:], strict=True)) for row in table for name in row[0].split("<br>")}
    for verdict, title in LISTS.items():
        for line in parts[title].splitlines():
            if line[:2] == "- ":
                subject, bold, rest = line[2:].removeprefix("**").partition("**: ")
                names = [f"{subject}: {name}" for name in rest.split("; ")] if bold else [line[2:]]
                rows |= {name: dict.fromkeys(heading[1:], verdict) for name in names}
    return rows
