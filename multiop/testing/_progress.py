"""What `multiop check` shows on stderr while it works.

Each function is one line for each backend, as soon as it is measured there. On a terminal, the lines below it say what
each process is doing.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import Progress as Display, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from . import _report
from ._processes import Event, Run

STYLES = {
    _report.OK: "green",
    _report.VACUOUS: "yellow",
    _report.FAILED: "bold red",
    _report.REFUSED: "yellow",
    _report.NOTE: "yellow",
    _report.NONE: "dim",
}
_SLOW = {"compiled": "compiling"}  # property -> what is done to measure it


def plain(text: str, kept: str = "\n\t") -> str:
    """Return text that is safe to print: unprintable characters, such as escape sequences, are escaped."""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


class Progress:
    """Shows what the processes of `multiop check` do, and what they found."""

    def __init__(self, backends: list[str], allow_refused: bool = False) -> None:
        self._allow_refused = allow_refused
        self._start, self._width = time.monotonic(), max(map(len, backends))
        self._runs: dict[str, Run | None] = dict.fromkeys(backends)
        self._first = 0.0  # when the first function was measured, and the frameworks were imported
        self._console = Console(stderr=True)
        self._is_live = sys.stderr.isatty() and self._console.is_interactive
        column = Column(no_wrap=True, overflow="ellipsis")
        texts = [TextColumn(f"{{task.fields[{name}]}}", markup=False, table_column=column) for name in _FIELDS]
        self._display = Display(SpinnerColumn(), *texts, TimeElapsedColumn(), console=self._console, transient=True)
        self._lines: dict[int, tuple[TaskID, tuple[str, str]]] = {}
        self._measured: dict[tuple[str, str, int], dict[str, Event]] = {}

    def __enter__(self) -> Progress:
        if self._is_live:
            self._display.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._is_live:
            self._display.stop()

    def at(self, process: int, run: Run, what: str, task: Event | None = None) -> None:
        """Show what a process does: it starts, imports a file, or measures a property of a function."""
        if not self._is_live:
            return
        if task is None:
            count, function, phase = "", plain(what, ""), ""
        else:
            count, phase = f"{task['number']} of {len(run.tasks)}", _SLOW.get(what, what)
            function = plain(f"{task['target']}::{task['name']}", "")
        shown: dict[str, Any] = dict(zip(_FIELDS, (run.backend, count, function, phase), strict=True))
        line, before = self._lines.get(process, (None, None))
        if line is None:
            line = self._display.add_task("", total=None, **shown)
        elif before != (count, function):
            self._display.reset(line)  # the time shown is that of one function
        self._lines[process] = line, (count, function)
        self._display.update(line, **shown)

    def finished(self, run: Run, task: Event) -> None:
        """Show what was found about a function on a backend; it is compared with the backends that are ahead."""
        measured = self._measured.setdefault((task["target"], task["name"], task["case"]), {})
        measured[run.backend] = task
        told = task["target"], task["name"], task["inputs"], measured, task["heading"]
        report = _report.compare(*told, self._allow_refused)
        cells = {which: by_backend[run.backend] for which, by_backend in report.cells.items()}
        outcome, status = _outcome(cells, task["properties"].get("value", {}).get("undifferentiated", ""))
        elapsed, count = time.monotonic() - self._start, f"{len(run.results)} of {len(run.tasks)}"
        function = plain(f"{task['target']}::{task['name']}({task['heading']})", "")
        line = Text(f"{elapsed:6.1f} s  {run.backend:{self._width}}  {count:>9}  {function}  ")
        line.append(outcome, STYLES[status]).append(self._left(run, elapsed), "dim")
        self._display.console.print(line, soft_wrap=True)

    def _left(self, run: Run, elapsed: float) -> str:
        """Say how long the rest takes, at the pace until now; a backend that has not begun has as many functions."""
        self._runs[run.backend] = run
        runs = [each for each in self._runs.values() if each]
        done = sum(len(each.results) for each in runs)
        if done == 1:
            self._first = elapsed
            return ""
        left = len(self._runs) * max(len(each.tasks) for each in runs) - done
        seconds = left * (elapsed - self._first) / (done - 1)
        told = f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
        return f"  (about {told} left)" if left else ""

    def ended(self, process: int) -> None:
        """Remove the line of a process."""
        if process in self._lines:
            self._display.remove_task(self._lines.pop(process)[0])


def _outcome(cells: dict[str, _report.Cell], undifferentiated: str) -> tuple[str, str]:
    """Say in a few words what was found on one backend, and return the status that it has as a whole."""
    having = {status: [which for which, cell in cells.items() if cell.status == status] for status in STYLES}
    told = [f"FAIL {', '.join(having[_report.FAILED])}"] * bool(having[_report.FAILED])
    told += [f"refused {', '.join(having[_report.REFUSED])}"] * bool(having[_report.REFUSED])
    told += [_report.first_line(cells[which].message) for which in having[_report.NOTE]]
    reasons = dict.fromkeys(cells[which].message for which in having[_report.VACUOUS])
    told += [f"vacuous: {', '.join(reasons)}"] * bool(reasons)
    told += [undifferentiated] * bool(undifferentiated)
    status = next((one for one in _WORST_FIRST if having[one]), _report.OK)
    return ("" if status == _report.FAILED else "ok, but " if told else "ok") + "; ".join(told), status


_FIELDS = ("backend", "count", "function", "phase")
_WORST_FIRST = (_report.FAILED, _report.REFUSED, _report.NOTE, _report.VACUOUS)
