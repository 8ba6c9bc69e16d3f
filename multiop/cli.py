"""The `multiop` command."""

from __future__ import annotations

import concurrent.futures
import io
import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import multiop
from multiop import _registry, config, errors
from multiop.testing import _html, _report, _results, _start

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)

_DTYPES = ("float64", "float32", "float16", "bfloat16")
_LARGEST = 1 << 26  # maximum size in bytes of a Python file
_STYLES = {"ok": "green", "failed": "bold red", "refused": "yellow", "note": "yellow", "none": "dim"}


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"multiop {multiop.__version__}")
        raise typer.Exit


@app.callback()
def _command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Write an operation and its gradient once; prove that it is the same on every backend."""


@app.command()
def check(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH[::NAME]...", help="Files, folders or modules; one function.")
    ],
    backends: Annotated[str, typer.Option(help="Comma-separated backends; all that are installed by default.")] = "",
    dtype: Annotated[str, typer.Option(help="Dtype of the inputs: float64, float32, float16 or bfloat16.")] = "float64",
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Limit for a function at one input on one backend; 0 for none.")
    ] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Run the functions of a file on every backend, and compare values, gradients and transforms.

    Checks the public functions marked with multiop.testing.example_inputs or made by op_custom_gradient; in a file that
    has neither, every public function whose parameters can be drawn. Without example_inputs, each required parameter is
    a vector of three random floats.

    A function that exceeds --timeout fails: the process of that backend is stopped, and a new one checks the rest. The
    limit also applies to importing a file, but not to starting a framework.

    Exit status: 0 if all agree, 1 if not, 2 if there is nothing to check or the command is wrong.
    """
    if dtype not in _DTYPES:
        _stop(f"--dtype must be one of {', '.join(_DTYPES)}; got {dtype!r}")
    if seed < 0:
        _stop(f"--seed must not be negative; got {seed}")
    if not 0 <= timeout < math.inf:
        _stop(f"--timeout must be a number of seconds, or 0 for none; got {timeout}")
    names = _backends(backends)
    targets = [target for path in paths for target in _targets(path)]
    runs = _run_all(names, {"targets": targets, "dtype": dtype, "seed": seed, "timeout": timeout})
    _stop_on_usage_errors(runs, targets)
    reports = _reports(runs)
    broken = {name: run.death for name, run in runs.items() if run.death}
    if not reports and not broken:
        _stop("nothing to check")
    agree = not broken and all(report.agrees for report in reports)
    versions = {name: run.version for name, run in runs.items()}
    if as_json:
        _print_json(reports, versions, broken, dtype, seed, timeout, agree)
    else:
        _print_tables(reports, versions, broken, dtype, seed, agree)
    raise typer.Exit(0 if agree else 1)


@app.command()
def report(
    results: Annotated[Path, typer.Argument(help="What pytest wrote with --multiop-results.")],
    html: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    table: Annotated[Path | None, typer.Option(help="Also write the table of ops as Markdown.")] = None,
) -> None:
    """Write a page of the results of the shared suite: op by backend by property.

    The results come from `pytest --pyargs multiop.testing --multiop-backends=NAME --multiop-results=PATH`, run once per
    backend on the same PATH. The exit status is 0 if nothing failed, 1 if something did, 2 if PATH holds no results.
    """
    try:
        found = _results.read(results)
        pages = {html: _html.page(found)} | ({} if table is None else {table: _results.table(found)})
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        _stop(str(error))
    failed = sum(one.outcome == _results.FAILED for one in found.cases.values())
    known = sum(one.outcome == _results.KNOWN for one in found.cases.values())
    counted = f"{len(found.cases)} cases on {', '.join(found.backends)}; {failed} failed, {known} known failures"
    typer.echo(_plain(f"{html}: {counted}"))
    raise typer.Exit(1 if failed else 0)


@app.command()
def info() -> None:
    """Show versions, backends and settings.

    The exit status is 2 if there is no backend to use, or a setting is wrong.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    wrong = False

    def add(name: str, value: Any) -> None:
        table.add_row(name, Text(_plain(str(value), "")))  # rich would read the brackets of a pip command as markup

    def add_setting(name: str, read: Callable[[], Any]) -> None:
        nonlocal wrong
        try:
            add(name, read())
        except (errors.MultiopError, OSError) as error:
            add(name, f"wrong: {error}")
            wrong = True

    add("multiop", multiop.__version__)
    add("Python", sys.version.split()[0])
    for name in _registry.known():
        add(name, _described(name))
    add_setting("backend", _usable_backend)
    add_setting("floatx", multiop.floatx)
    add_setting("64-bit mode", lambda: "on" if multiop.x64() else "off")
    add_setting("configuration", _configuration)
    _console().print(table)
    typer.echo(f"next: {_next_step(wrong)}")
    raise typer.Exit(2 if wrong else 0)


def _next_step(wrong: bool) -> str:
    """Say what a newcomer does next."""
    if not any(map(_registry.is_installed, _registry.known())):
        return "install a framework, pip install 'multiop[torch]' or [jax] or [tensorflow]"
    if wrong:
        return "mend the setting that is wrong; MULTIOP_BACKEND, MULTIOP_FLOATX and MULTIOP_X64 come before the file"
    return "multiop check FILE.py proves the functions of a file of yours; help(multiop.op_custom_gradient) shows one"


def _described(name: str) -> str:
    if not _registry.is_installed(name):
        return f"not installed: {_registry.BUILT_IN[name][2]}"
    if name not in _registry.BUILT_IN:
        return f"plug-in {_registry.plugins()[name].value}"
    version = _results.version(name)
    if _results.is_unknown(version) or _registry.is_tested(name, version):
        return version
    return f"{version}, outside the tested versions: {_registry.tested(name)}"


def _usable_backend() -> str:
    name = multiop.backend()
    if name not in _registry.known():
        raise errors.BackendError(_registry.unknown(name))
    if not _registry.is_installed(name):
        raise errors.BackendError(f"backend {name!r} is not installed")
    return name


def _configuration() -> str:
    path = config.config_path()
    return f"{path}{'' if path.is_file() else ' (no such file)'}"


def main() -> None:
    """Run the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal may not support all characters of a name
    app()


def _plain(text: str, kept: str = "\n\t") -> str:
    """Return text that is safe to print: unprintable characters, such as escape sequences, are escaped."""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def _stop(message: str) -> NoReturn:
    """Report a user's mistake, and exit with status 2."""
    typer.echo(f"multiop: {_plain(message)}", err=True)
    raise typer.Exit(2)


def _backends(asked: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in asked.split(",") if name.strip()))
    if asked and not names:
        _stop(f"--backends names no backend: {asked!r}")
    for name in names:
        if name not in _registry.known():
            _stop(_registry.unknown(name))
        if not _registry.is_installed(name):
            _stop(f"backend {name!r} is not installed; install it with: {_registry.BUILT_IN[name][2]}")
    names = names or multiop.available_backends()
    if not names:
        _stop("no backend is installed; install one with: pip install 'multiop[torch]' (or [jax], [tensorflow])")
    return names


def _targets(path: str) -> list[tuple[str, str | None]]:
    """Split `PATH[::NAME]` or `module[:NAME]`; return each file or module with the requested function."""
    target, _, name = path.partition("::")
    if not target:
        _stop(f"{path!r} names no file")
    try:
        return _found(target, name)
    except OSError as error:
        _stop(f"{target!r} cannot be read: {error.strerror}")


def _found(target: str, name: str) -> list[tuple[str, str | None]]:
    if not name and ":" in target and not Path(target).exists() and not target.endswith(".py"):
        target, _, name = target.rpartition(":")
    file = Path(target)
    if file.is_dir():
        if name:
            _stop(f"{target} is a folder; name the file that holds {name}")
        files = sorted(one for one in file.glob("*.py") if not one.name.startswith("_") and not one.is_dir())
        if not files:
            _stop(f"there are no Python files in {target}")
        return [found for one in files for found in _targets(str(one))]
    if not file.exists():
        if all(part.isidentifier() for part in target.split(".")) and not target.endswith(".py"):
            return [(target, name or None)]
        _stop(f"there is no file {target}")
    if file.suffix != ".py":
        _stop(f"{target} is not a Python file")
    if not file.is_file():  # reading a pipe or a device may never end
        _stop(f"{target} is not a regular file")
    if file.stat().st_size > _LARGEST:
        _stop(f"{target} has more than {_LARGEST} bytes")
    try:
        compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
    except SyntaxError as error:
        _stop(f"{target}{f', line {error.lineno}' if error.lineno else ''}: {error.msg}")
    except ValueError as error:
        _stop(f"{target} cannot be read: {error}")
    except (RecursionError, MemoryError):
        _stop(f"{target} is nested too deeply for Python")
    return [(str(file), name or None)]


class _Run:
    """One backend's process, and the events that it sent; a process that had to be stopped is followed by another."""

    def __init__(self, backend: str) -> None:
        self.backend, self.version = backend, ""
        self.events: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.death = ""
        self.process: subprocess.Popen[str] | None = None
        self._skip: list[list[Any]] = []  # files and functions that are done

    def follow(self, request: dict[str, Any], tell: Callable[[str, str], None]) -> None:
        """Start a process and read its events until it ends; the next process skips what exceeded the limit."""
        overran = True
        while overran:
            overran = self._follow(request | {"backend": self.backend, "skip": self._skip}, tell)

    def _follow(self, request: dict[str, Any], tell: Callable[[str, str], None]) -> bool:
        """Follow one process; say whether it exceeded the limit and was stopped."""
        environment = os.environ | {
            "MULTIOP_BACKEND": self.backend,
            "MULTIOP_FLOATX": request["dtype"],
            "MULTIOP_X64": "1" if request["dtype"] == "float64" else "0",
            "PYTHONUNBUFFERED": "1",
        }
        unsafe, environment["PYTHONPATH"] = _import_paths(request["targets"])
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as noise:
            command = [sys.executable, "-P", str(Path(_start.__file__)), *unsafe]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=noise, text=True, env=environment)
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            try:
                self.process.stdin.write(json.dumps(request) + "\n")
                self.process.stdin.close()
            except BrokenPipeError:
                pass  # it died at once; its exit status says why
            lines = _lines(self.process.stdout)
            task: dict[str, Any] = {}  # the task that the limit now applies to
            deadline = math.inf
            while True:
                try:
                    line = lines.get(timeout=None if deadline == math.inf else max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    self.process.kill()
                    self.process.wait()
                    self._overrun(task, request["timeout"])
                    return True
                if line is None:
                    break
                try:
                    event = json.loads(line)
                    kind = event["event"]
                except (ValueError, TypeError, KeyError, RecursionError):  # a function wrote to the event stream
                    self.process.kill()
                    self.process.wait()
                    self.death = f"the process of {self.backend} sent what cannot be read"
                    return False
                if kind in ("importing", "running"):
                    task = event | {"properties": {}, "property": "value"}
                    deadline = time.monotonic() + (request["timeout"] or math.inf)
                    if kind == "running":
                        tell(self.backend, _plain(event["name"], ""))
                elif kind == "measuring":
                    task["property"] = event["property"]
                elif kind == "measured":
                    task["properties"][event["property"]] = event["found"]
                elif kind == "finished":
                    self._finish(task)
                    task, deadline = {}, math.inf
                elif kind == "start":
                    self.version = event["version"]
                elif kind == "failed":
                    self.death = event["message"]
                elif kind == "end":
                    self.process.kill()  # threads that a function left behind would keep it from exiting
                    self.process.wait()
                    return False
                else:
                    self.events.append(event)
            status = self.process.wait()
            if not self.death:
                noise.seek(0)
                during = f" while checking {task['name']}" if "name" in task else ""
                how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
                self.death = f"the process of {self.backend} {how}{during}\n" + "".join(noise.readlines()[-12:])
        return False

    def _finish(self, task: dict[str, Any]) -> None:
        self.results.append(task)
        self._skip.append([task["target"], task["name"], task["case"]])

    def _overrun(self, task: dict[str, Any], limit: float) -> None:
        """Record a task that did not end in time as failed."""
        late = f"did not end within {limit:g} s on {self.backend}; --timeout sets the limit"
        if task["event"] == "importing":
            self.events.append({"event": "import", "target": task["target"], "message": f"its code {late}"})
            self._skip.append([task["target"]])
        else:
            message = f"{task['name']} {late}"
            task["properties"][task["property"]] = {"raised": "TimeoutError", "message": message, "refused": False}
            self._finish(task)

    def having(self, event: str) -> dict[str, dict[str, Any]]:
        """Return the events of one kind, by target."""
        return {e["target"]: e for e in self.events if e["event"] == event}


def _import_paths(targets: list[tuple[str, str | None]]) -> tuple[list[str], str]:
    """Return a worker's import folders that come after the standard library, and PYTHONPATH, which comes before.

    If the current folder, or that of a file, came before the standard library, a `typing.py` in it would shadow it.
    """
    here = {Path.cwd(), *(Path(target).resolve().parent for target, _ in targets if target.endswith(".py"))}
    given = os.environ.get("PYTHONPATH", "")
    entries = [os.path.abspath(entry) for entry in given.split(os.pathsep)] if given else []
    unsafe = [entry for entry in dict.fromkeys(entries) if Path(entry).resolve() in here]
    own = str(Path(multiop.__file__).resolve().parent.parent)
    return [own, *unsafe], os.pathsep.join(entry for entry in entries if entry not in unsafe)


def _lines(stream: IO[str]) -> queue.SimpleQueue[str | None]:
    """Return a queue of the lines of `stream`, then `None`, so that waiting for a line can have a time limit."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _run_all(names: list[str], request: dict[str, Any]) -> dict[str, _Run]:
    """Run every backend in its own process, as many at once as there are cores; show progress on stderr."""
    runs = {name: _Run(name) for name in names}
    at, lock = {}, threading.Lock()
    console = Console(stderr=True)
    with console.status("starting backends") if console.is_terminal else _nothing() as status:

        def tell(backend: str, function: str) -> None:
            with lock:
                at[backend] = function
                if status is not None:
                    status.update(Text("   ".join(f"{b}: {f}" for b, f in at.items())))

        workers = min(len(names), os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            try:
                for done in [pool.submit(run.follow, request, tell) for run in runs.values()]:
                    done.result()
            except BaseException:
                for run in runs.values():
                    if run.process is not None and run.process.poll() is None:
                        run.process.kill()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return runs


class _nothing:
    """The stand-in for the progress display where there is no terminal."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _stop_on_usage_errors(runs: dict[str, _Run], targets: list[tuple[str, str | None]]) -> None:
    """Exit with status 2 if the file itself is at fault: it fails on every backend, or has nothing to check."""
    alive = [run for run in runs.values() if not run.death]
    for run in alive:
        for target, event in run.having("usage").items():
            _stop(f"{target}: {event['message']}")
    for target, _ in targets:
        failed = [run.having("import")[target] for run in alive if target in run.having("import")]
        if failed and len(failed) == len(alive):
            _stop(f"{target} cannot be imported: {failed[0]['message']}")
        empty = [run.having("empty")[target] for run in alive if target in run.having("empty")]
        if empty and len(empty) == len(alive):
            if len(targets) == 1:
                _stop(f"{target}: {empty[0]['message']}")
            typer.echo(_plain(f"multiop: {target}: {empty[0]['message']}"), err=True)
        for event in [run.having("left out")[target] for run in alive if target in run.having("left out")][:1]:
            told = f"multiop: {target}: left out, no inputs known: {', '.join(event['names'])}"
            typer.echo(_plain(told), err=True)


def _reports(runs: dict[str, _Run]) -> list[_report.Report]:
    """Compare the backends, function by function."""
    measured: dict[tuple[str, str, int], dict[str, Any]] = {}
    imports: dict[str, dict[str, Any]] = {}
    for run in runs.values():
        for one in run.results:
            measured.setdefault((one["target"], one["name"], one["case"]), {})[run.backend] = one
        imports[run.backend] = run.having("import")
    reports = []
    for (target, function, _), by_backend in measured.items():
        inputs = next(iter(by_backend.values()))["inputs"]
        for name, run in runs.items():
            if name not in by_backend and not run.death:
                failed = imports[name].get(target)
                message = f"the file cannot be imported: {failed['message']}" if failed else "the function is not there"
                missing = {"raised": "ImportError", "message": message, "refused": False}
                by_backend[name] = {"properties": {"value": missing}}
        ordered = {name: by_backend[name] for name in runs if name in by_backend}
        reports.append(_report.compare(target, function, inputs, ordered))
    return reports


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=160)


def _print_tables(
    reports: list[_report.Report], versions: dict[str, str], broken: dict[str, str], dtype: str, seed: int, agree: bool
) -> None:
    console = _console()
    for report in reports:
        name = _plain(f"{report.target}::{report.name}", "")
        title = Text.assemble((name, "bold"), _plain(f"({report.inputs})", ""))
        console.print(title, soft_wrap=True)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("  backend")
        for which in _report.PROPERTIES:
            table.add_column(which.replace("finite differences", "finite diff."))
        for backend in report.cells["value"]:
            cells = [report.cells[which][backend] for which in _report.PROPERTIES]
            table.add_row(f"  {backend}", *(Text(_cell(cell), _STYLES[cell.status]) for cell in cells))
        console.print(table)
        for which in _report.PROPERTIES:
            for backend, cell in report.cells[which].items():
                if cell.status in (_report.FAILED, _report.REFUSED):
                    message = _plain(cell.message).replace("\n", "\n      ")
                    console.print(Text(f"    {which} on {backend}: {message}", _STYLES[cell.status]), soft_wrap=True)
        console.print(Text(_plain(f"  {report.verdict}"), "green" if report.agrees else "bold red"), soft_wrap=True)
        console.print()
    for message in broken.values():
        console.print(Text(_plain(message), "bold red"), soft_wrap=True)
    against = ", ".join(f"{name} {version or '(did not start)'}" for name, version in versions.items())
    wrong = sum(not report.agrees for report in reports)
    outcome = "all agree" if agree else f"{wrong} fail" + ("; " + ", ".join(broken) + " died" if broken else "")
    if agree and len(versions) == 1:
        outcome = "consistent, but one backend has none to be compared with"
    counted = f"{len(reports)} check{'s' if len(reports) != 1 else ''}"
    summary = f"{counted} in {dtype}, seed {seed}, on {against}: {outcome}"
    console.print(Text(summary, "green" if agree else "bold red"), soft_wrap=True)


def _cell(cell: _report.Cell) -> str:
    error = "" if cell.error is None else f" {cell.error:.0e}" if cell.error else " 0"
    return {
        _report.OK: f"ok{error}",
        _report.FAILED: f"FAIL{error}",
        _report.REFUSED: "refused",
        _report.NOTE: f"differs{error}" if cell.error is not None else "no estimate",
        _report.NONE: "-",
    }[cell.status]


def _print_json(
    reports: list[_report.Report],
    versions: dict[str, str],
    broken: dict[str, str],
    dtype: str,
    seed: int,
    timeout: float,
    agree: bool,
) -> None:
    def cell(one: _report.Cell) -> dict[str, Any]:
        error = one.error if one.error is None or math.isfinite(one.error) else str(one.error)  # JSON has no infinity
        return {"status": one.status, "error": error, "message": one.message}

    result = {
        "agree": agree,
        "dtype": dtype,
        "seed": seed,
        "timeout": timeout,
        "backends": versions,
        "died": broken,
        "checks": [
            {
                "target": report.target,
                "function": report.name,
                "inputs": report.inputs,
                "custom_gradient": report.custom,
                "agrees": report.agrees,
                "verdict": report.verdict,
                "properties": {
                    which: {backend: cell(one) for backend, one in by_backend.items()}
                    for which, by_backend in report.cells.items()
                },
            }
            for report in reports
        ],
    }
    typer.echo(json.dumps(result, indent=2, allow_nan=False))


if __name__ == "__main__":
    main()
