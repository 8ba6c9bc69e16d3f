"""The `multiop` command."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import math
import shlex
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import multiop
from multiop import config, errors, extend, porting
from multiop.porting._port import MODULES, weights_of
from multiop.testing import _discovery, _html, _processes, _progress, _report, _results
from multiop.testing._processes import Run
from multiop.testing._progress import STYLES, plain

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)

_DTYPES = ("float64", "float32", "float16", "bfloat16")
_TIMEOUT = 300.0  # seconds
_NARROWEST = 80  # columns in which the tables fit; a narrower terminal breaks their lines
_PIPED = 1000  # columns where no terminal breaks lines
_LARGEST = 1 << 26  # maximum size in bytes of a Python file


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"multiop {multiop.__version__}")
        raise typer.Exit


@app.callback()
def _command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Write an operation and its gradient once; prove that it is the same on every backend."""


@app.command(
    short_help="Prove the functions of a file on every backend.",
    epilog="Example: multiop check ops.py::softplus --backends torch,jax --html softplus.html",
)
def check(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH[::NAME]...", help="Files, folders or modules; one function.")
    ],
    backends: Annotated[str, typer.Option(help="Comma-separated backends; all that are installed by default.")] = "",
    dtype: Annotated[str, typer.Option(help="Dtype of the inputs: float64, float32, float16 or bfloat16.")] = "float64",
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Limit for a function at one input on one backend; 0 for none.")
    ] = _TIMEOUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write the results to an HTML file.")] = None,
    no_kernels: Annotated[
        bool, typer.Option("--no-kernels", help="Leave out the faster forms of ops: compute each by its meaning.")
    ] = False,
    allow_refused: Annotated[
        bool,
        typer.Option(
            "--allow-refused", help="Let pass documented errors of every backend, and numbers read where compiled."
        ),
    ] = False,
) -> None:
    """Run the functions of a file on every backend, and compare values, gradients and transforms.

    Checks the public functions marked with multiop.testing.example_inputs or made by op_custom_gradient; in a file that
    has neither, every public function whose parameters can be drawn. Without example_inputs, each required parameter is
    a vector of three random floats.

    A function that exceeds --timeout fails: the process of that backend is stopped, and a new one checks the rest. The
    limit also applies to importing a file, but not to starting a framework.

    Prints a line on stderr for each function as soon as it is measured on a backend.

    A gradient that differs from finite differences fails, unless the function has the mark `check: differs, REASON` in
    a comment or its docstring: a straight-through estimator, a clipped gradient.

    Interrupted, it shows what was measured until then.

    Exit status: 0 if all agree, 1 if not, 2 if there is nothing to check or the command is wrong.
    """
    if dtype not in _DTYPES:
        _stop(f"--dtype must be one of {', '.join(_DTYPES)}; got {dtype!r}")
    if seed < 0:
        _stop(f"--seed must not be negative; got {seed}")
    if not 0 <= timeout < math.inf:
        _stop(f"--timeout must be a number of seconds, or 0 for none; got {timeout}")
    if html is not None and not html.parent.is_dir():  # said before minutes of work, not after them
        _stop(f"{html} cannot be written: there is no folder {html.parent}")
    names = _backends(backends)
    targets = [target for path in paths for target in _targets(path)]
    kernels = config.uses_kernels() and not no_kernels
    request = {"targets": targets, "dtype": dtype, "seed": seed, "timeout": timeout, "kernels": kernels}
    with _progress.Progress(names, allow_refused) as progress:
        runs = _processes.run_all(names, request, progress)
    _stop_on_usage_errors(runs, targets)
    reports = _reports(runs, allow_refused)
    broken = {name: run.death for name, run in runs.items() if run.death}
    if not reports and not broken:
        _stop("nothing to check")
    agree = not broken and all(report.agrees for report in reports)
    versions = {name: run.version for name, run in runs.items()}
    interrupted = any(run.interrupted for run in runs.values())
    outcome = _Outcome(reports, versions, broken, dtype, seed, timeout, agree, kernels, interrupted, allow_refused)
    if html is not None:
        page = _html.check_page(reports, outcome.summary(), list(broken.values()), list(map(outcome.again, reports)))
        try:
            html.write_text(page, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            _stop(f"{html} cannot be written: {error.strerror}")
    if as_json:
        _print_json(outcome)
    else:
        _print_tables(outcome)
    raise typer.Exit(0 if agree else 1)


@app.command(
    short_help="Turn a model into source for every backend.",
    epilog="Example: multiop port model.py::make --out ported --to flax",
)
def port(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="FILE.py::MAKE", help="A function that returns a model and inputs.")],
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    backends: Annotated[str, typer.Option(help="Comma-separated backends; all that are installed by default.")] = "",
    training: Annotated[
        bool, typer.Option("--training", help="Trace training mode: batch statistics, dropout.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave bridges to the original where something has no translation.")
    ] = False,
    taps: Annotated[
        bool, typer.Option("--taps", help="Write a tap at the result of each layer, for porting.compare.")
    ] = False,
    dynamic: Annotated[str, typer.Option(help="Names of the first dimensions, which stay open: batch,length.")] = "",
    weights: Annotated[Path | None, typer.Option(help="A checkpoint of the model, which the port gets.")] = None,
    to: Annotated[str, typer.Option(help="torch, flax or keras: write NAME_torch.py too, which makes a module.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Turn a model into source that runs on every backend, and prove it against the original.

    MAKE takes nothing and returns the model and a tuple of example inputs, and a dict of those by name if it takes
    some. Writes NAME.py, NAME.safetensors,
    NAME.map.toml and test_NAME.py, and compares values and gradients with those of the original on each backend; with
    --training also those of a step in training mode and the new statistics, unless it draws random numbers. With --to,
    a file more has a function that returns the port as a module of PyTorch, flax (nnx) or Keras. With --taps,
    multiop.porting.compare(model, multiop.porting.load(OUT), inputs) says at which layer a port that you have edited
    parts from the original.

    On stderr, a line tells of each step as it begins, and every ten seconds that it takes.

    Exit status: 0 if all agree, 1 if not, 2 if the command is wrong or a part of the model has no translation.
    """
    names = _backends(backends)
    if to and to not in MODULES:
        _stop(f"--to must be one of {', '.join(MODULES)}; got {to!r}")
    if importlib.util.find_spec("safetensors") is None:
        _stop("safetensors is not installed, which keeps the weights: pip install 'multiop[porting]'")
    start = time.monotonic()

    steps: list[str] = []

    def begin(step: str) -> None:
        steps.append(step)
        typer.echo(plain(f"{time.monotonic() - start:6.1f} s  {step}"), err=True)

    def tell() -> None:
        while not done.wait(_PATIENCE):
            begin(f"still {steps[-1].removeprefix('still ')}")

    done = threading.Event()
    context.call_on_close(done.set)
    threading.Thread(target=tell, daemon=True).start()
    begin(f"making the model of {target}")
    model, inputs, keywords = _make_model(target)
    proofs = []
    try:
        begin("tracing the model and computing what it gives")
        options: dict[str, Any] = {"dynamic_shapes": dynamic or None, "keywords": keywords}
        try:
            ported = porting.trace(model, *inputs, training=training, partial=partial, taps=taps, **options)
            if weights is not None:
                begin(f"reading {weights}")
                ported = ported.with_weights(porting.read_weights(weights, like=weights_of(model)))
        except errors.MultiopError:
            raise
        except Exception as error:  # the model's own, or of its framework
            _stop(f"{target} cannot be traced{_at(error, target.partition('::')[0])}: {type(error).__name__}: {error}")
        ported.save(out, to or None)
        if not ported.modes and not ported.draws(training):
            ported.recorded(training)  # says why there is nothing to compare
        if any(str(leaf.dtype) == "float64" for leaf in ported.inputs()):
            multiop.enable_x64()
        for name in names:
            for mode in ported.modes:
                begin(f"comparing on {name}, {_MODES[mode]}")
                proofs.append(porting.prove(ported, name, mode))
    except errors.MultiopError as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"{error.filename or out} cannot be written: {error.strerror}")
    agree = bool(proofs) and all(proof.agrees for proof in proofs)
    lines = len(ported.source.splitlines())
    if as_json:
        found = [dataclasses.asdict(proof) | {"agrees": proof.agrees} for proof in proofs]
        told = {"name": ported.name, "lines": lines, "bridged": ported.bridged, "agree": agree, "backends": found}
        typer.echo(json.dumps(told, indent=1))
        raise typer.Exit(0 if agree else 1)
    modes = ["mode", "state"] if training else []
    table = Table("backend", *modes[:1], "value", "gradient", *modes[1:], "tolerance", "", box=None, pad_edge=False)
    for proof in proofs:
        status = "ok" if proof.agrees else "failed"
        word = Text("agrees" if proof.agrees else "differs" if proof.compared else "nothing compared", STYLES[status])
        cells = [f"{one:.1e}" for one in (proof.value, proof.gradient, proof.state)[: 3 if training else 2]]
        table.add_row(proof.backend, *[_MODES[proof.training]][: len(modes)], *cells, f"{proof.tolerance:.0e}", word)
    typer.echo(plain(f"{out / ported.name}.py: {lines} lines"))
    if to:
        typer.echo(plain(f"{out / ported.name}_{to}.py: make() returns it as a module of {to}"))
    if ported.bridged:
        typer.echo(plain(f"bridges stay for {', '.join(dict.fromkeys(ported.bridged))}"))
    if training and True not in ported.modes:
        typer.echo(f"{ported.name} draws random numbers in training: that mode is not compared")
    _print_table(table)
    for hint in dict.fromkeys(proof.hint for proof in proofs if proof.hint):
        typer.echo(hint)
    raise typer.Exit(0 if agree else 1)


_PATIENCE = 10.0  # seconds after which a step tells that it is still at work
_MODES = {False: "evaluation", True: "training"}


def _make_model(target: str) -> tuple[Any, Any, Any]:
    """Return the model and the inputs that the function makes that `FILE.py::MAKE` names, and those by name."""
    path, _, name = target.partition("::")
    if not path.endswith(".py") or not name:
        _stop(f"name a file and a function, FILE.py::MAKE; got {target!r}")
    ((file, _),) = _targets(path)
    try:
        make = getattr(_discovery.load(file), name, None)
    except Exception as error:
        _stop(f"{file} cannot be imported{_at(error, file)}: {type(error).__name__}: {error}")
    if not callable(make):
        _stop(f"{file} has no function {name!r}")
    try:
        made = make()
    except Exception as error:
        _stop(f"{name}() failed{_at(error, file)}: {type(error).__name__}: {error}")
    made = (*made, {}) if isinstance(made, tuple) and len(made) == 2 else made
    is_made = isinstance(made, tuple) and len(made) == 3 and isinstance(made[2], dict)
    if not is_made or not isinstance(made[1], (tuple, list)):
        found = [type(one).__name__ for one in made] if isinstance(made, tuple) else type(made).__name__
        _stop(f"{name}() must return a model and a tuple of inputs, such as `return Net(), (x,)`; got {found}")
    return made


def _at(error: Exception, file: str) -> str:
    """Say at which line of a file an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [one.lineno for one in frames if one.filename == str(Path(file).resolve())]
    return f", line {lines[-1]}" if lines else ""


@app.command()
def info() -> None:
    """Show versions, backends and settings.

    The exit status is 2 if there is no backend to use, or a setting is wrong.
    """
    table = Table(box=None, show_header=False, pad_edge=False)
    wrong = False

    def add(name: str, value: Any) -> None:
        table.add_row(name, Text(plain(str(value), "")))  # rich would read the brackets of a pip command as markup

    def add_setting(name: str, read: Callable[[], Any]) -> None:
        nonlocal wrong
        try:
            add(name, read())
        except (errors.MultiopError, OSError) as error:
            add(name, f"wrong: {error}")
            wrong = True

    add("multiop", multiop.__version__)
    add("Python", sys.version.split()[0])
    for name in extend.known():
        add(name, _describe_backend(name))
    for name in extend.known():
        for fault in extend.known_faults(name, _results.version(name)) if extend.is_installed(name) else ():
            state = f"prevented in {fault.mended}" if fault.mended else "see docs/limits.md"
            add(f"fault of {name}", f"{fault.what} ({state}): {' '.join(fault.urls)}")
    add_setting("backend", _usable_backend)
    add_setting("floatx", multiop.floatx)
    add_setting("64-bit mode", lambda: "on" if multiop.x64() else "off")
    add_setting("kernels", lambda: "on" if config.uses_kernels() else "off")
    add_setting("configuration", _configuration)
    add("arrays of other libraries", "see docs/meeting.md")
    _print_table(table)
    typer.echo(f"next: {_next_step(wrong)}")
    raise typer.Exit(2 if wrong else 0)


def _next_step(wrong: bool) -> str:
    """Say what a newcomer does next."""
    if wrong:
        return "correct the setting marked wrong; MULTIOP_BACKEND, MULTIOP_FLOATX and MULTIOP_X64 override the file"
    step = (
        "prove a function of yours with multiop check FILE.py; help(multiop.op_custom_gradient) has one to start from"
    )
    if any(extend.is_installed(name) for name in extend.known() if name != extend.EMBEDDED):
        return step
    return f"{step}; pip install 'multiop[torch]' (or [jax], [tensorflow]) brings a framework to compare with"


def _describe_backend(name: str) -> str:
    if not extend.is_installed(name):
        return f"not installed: {extend.BUILT_IN[name][2]}"
    if name not in extend.BUILT_IN:
        return f"plug-in {extend.plugins()[name].value}"
    version = _results.version(name)
    if _results.is_unknown(version):
        return version
    return version + _LEVELS[extend.level(name, version)].format(whole=extend.tested_versions(name))


_LEVELS = {
    "whole": "",
    "reverse": ", custom gradients in reverse mode alone, no GradientTape; everything: {whole}",
    "refused": ", too old: {whole}",
    "untested": ", outside the tested versions: {whole}",
}


def _usable_backend() -> str:
    name, reason = extend.chosen()
    if name not in extend.known():
        raise errors.BackendError(extend.unknown(name))
    if not extend.is_installed(name):
        raise errors.BackendError(f"backend {name!r} is not installed")
    return f"{name} ({reason})"


def _configuration() -> str:
    path = config.config_path()
    return f"{path}{'' if path.is_file() else ' (no such file)'}"


def main() -> None:
    """Run the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # the terminal may not support all characters of a name
    app()


def _stop(message: str) -> NoReturn:
    """Report a user's mistake, and exit with status 2."""
    typer.echo(f"multiop: {plain(message)}", err=True)
    raise typer.Exit(2)


def _backends(asked: str) -> list[str]:
    names = list(dict.fromkeys(name.strip() for name in asked.split(",") if name.strip()))
    if asked and not names:
        _stop(f"--backends names no backend: {asked!r}")
    for name in names:
        if name not in extend.known():
            _stop(extend.unknown(name))
        if not extend.is_installed(name):
            _stop(f"backend {name!r} is not installed; install it with: {extend.BUILT_IN[name][2]}")
    return names or multiop.available_backends()


def _targets(path: str) -> list[tuple[str, str | None]]:
    """Split `PATH[::NAME]` or `module[:NAME]`; return each file or module with the requested function."""
    target, _, name = path.partition("::")
    if not target:
        _stop(f"{path!r} names no file")
    try:
        return _find_targets(target, name)
    except OSError as error:
        _stop(f"{target!r} cannot be read: {error.strerror}")


def _find_targets(target: str, name: str) -> list[tuple[str, str | None]]:
    if not name and ":" in target and not Path(target).exists() and not target.endswith(".py"):
        target, _, name = target.rpartition(":")
    file = Path(target)
    if file.is_dir():
        if name:
            _stop(f"{target} is a folder; name the file that holds {name}")
        files = sorted(one for one in file.glob("*.py") if not one.name.startswith("_") and not one.is_dir())
        files = files or [one for one in [file / "__init__.py"] if one.is_file()]
        if not files:
            _stop(f"there are no Python files in {target}")
        return [found for one in files for found in _targets(str(one))]
    if not file.exists():
        if target in extend.known():  # `--backends jax torch`, or `check torch`
            _stop(f"{target} is a backend; choose backends with --backends, and commas between them")
        if all(part.isidentifier() for part in target.split(".")) and not target.endswith(".py"):
            return [(target, name or None)]
        beside = [one.name for one in file.parent.glob("*.py")] if file.parent.is_dir() else []
        _stop(f"there is no file {target}{extend.similar(file.name, beside)}")
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


def _stop_on_usage_errors(runs: dict[str, Run], targets: list[tuple[str, str | None]]) -> None:
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
            typer.echo(plain(f"multiop: {target}: {empty[0]['message']}"), err=True)
        for event in [run.having("left out")[target] for run in alive if target in run.having("left out")][:1]:
            for reason, names in (("no inputs known", event["names"]), ("not marked", event["unmarked"])):
                if names:
                    typer.echo(plain(f"multiop: {target}: left out, {reason}: {', '.join(names)}"), err=True)


def _reports(runs: dict[str, Run], allow_refused: bool) -> list[_report.Report]:
    """Compare the backends, function by function, in the order of the files."""
    tasks = {(one["target"], one["name"], one["case"]): one for run in runs.values() for one in run.tasks}
    measured: dict[tuple[str, str, int], dict[str, Any]] = {key: {} for key in tasks}
    imports: dict[str, dict[str, Any]] = {}
    for run in runs.values():
        for one in run.results:
            measured[one["target"], one["name"], one["case"]][run.backend] = one
        imports[run.backend] = run.having("import")
    reports = []
    for (target, function, case), by_backend in measured.items():
        for name, run in runs.items():
            if by_backend and name not in by_backend and not run.death:
                failed = imports[name].get(target)
                message = f"the file cannot be imported: {failed['message']}" if failed else "the function is not there"
                missing = {"raised": "ImportError", "message": message, "refused": False}
                by_backend[name] = {"properties": {"value": missing}}
        ordered = {name: by_backend[name] for name in runs if name in by_backend}
        task = tasks[target, function, case]
        if ordered:
            reports.append(_report.compare(target, function, task["inputs"], ordered, task["heading"], allow_refused))
    return reports


def _console() -> Console:
    console = Console()
    return Console(width=max(console.width, _NARROWEST) if console.is_terminal else _PIPED)


def _print_table(table: Table) -> None:
    """Print a table; into a pipe or a file, a line for each row, without spaces at its end."""
    console = _console()
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


@dataclasses.dataclass
class _Outcome:
    """What `multiop check` found, and with which options."""

    reports: list[_report.Report]
    versions: dict[str, str]
    broken: dict[str, str]
    dtype: str
    seed: int
    timeout: float
    agree: bool
    kernels: bool = True
    interrupted: bool = False
    allow_refused: bool = False

    def summary(self) -> str:
        """Return the last line."""
        against = ", ".join(f"{name} {version or '(did not start)'}" for name, version in self.versions.items())
        wrong = sum(not report.agrees for report in self.reports)
        vacuous = sum(report.agrees and bool(report.vacuous) for report in self.reports)
        differing = sum(report.agrees and report.differs for report in self.reports)
        refusing = sum(report.agrees and bool(report.refused) for report in self.reports)
        died = "; " + ", ".join(self.broken) + " died" if self.broken else ""
        ended = "; interrupted" if self.interrupted else died
        outcome = "all agree" if self.agree else f"{wrong} {'fails' if wrong == 1 else 'fail'}{ended}"
        if self.agree and len(self.versions) == 1:
            outcome = "ok, though there is no second backend to compare with"
        if differing:
            outcome += f"; {differing} {'differs' if differing == 1 else 'differ'} from finite differences"
        if refusing:
            outcome += f"; {refusing} {'is' if refusing == 1 else 'are'} refused in part"
        if vacuous:
            outcome += f"; {vacuous} {'is' if vacuous == 1 else 'are'} vacuous"
        counted = f"{len(self.reports)} check{'s' if len(self.reports) != 1 else ''}"
        without = "" if self.kernels else ", without kernels"
        return f"{counted} in {self.dtype}, seed {self.seed}, on {against}{without}: {outcome}"

    def again(self, report: _report.Report) -> str:
        """Return the command that repeats the check of one function."""
        words = [f"{report.target}::{report.name}", f"--backends={','.join(self.versions)}", f"--dtype={self.dtype}"]
        limit = [f"--timeout={self.timeout:g}"] * (self.timeout != _TIMEOUT)
        without = ["--no-kernels"] * (not self.kernels) + ["--allow-refused"] * self.allow_refused
        return shlex.join(["multiop", "check", *words, f"--seed={self.seed}", *limit, *without])


def _print_tables(outcome: _Outcome) -> None:
    console = _console()
    for report in outcome.reports:
        name = plain(f"{report.target}::{report.name}", "")
        title = Text.assemble((name, "bold"), plain(f"({report.heading})", ""))
        console.print(title, soft_wrap=True)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("  backend", no_wrap=True)
        for which in _report.PROPERTIES:
            table.add_column(which.replace("finite differences", "finite diff."))
        for backend in report.cells["value"]:
            cells = [report.cells[which][backend] for which in _report.PROPERTIES]
            table.add_row(f"  {backend}", *(Text(_cell(cell), STYLES[cell.status]) for cell in cells))
        _print_table(table)
        for which in _report.PROPERTIES:
            told = {b: c for b, c in report.cells[which].items() if c.status in (_report.FAILED, _report.REFUSED)}
            if which == "finite differences" and told:  # alike on all backends, or the gradient would have failed
                told = {", ".join(told): next(iter(told.values()))}
            for backend, cell in told.items():
                message = plain(cell.message).replace("\n", "\n      ")
                console.print(Text(f"    {which} on {backend}: {message}", STYLES[cell.status]), soft_wrap=True)
        if report.differs:  # alike, too
            cells = [cell for cell in report.cells["finite differences"].values() if cell.error is not None]
            message = next(cell.message for cell in cells if cell.status == _report.NOTE)
            for line in plain(message).splitlines()[1:]:
                console.print(Text(f"    {line}", STYLES[_report.NOTE]), soft_wrap=True)
        if report.differs or not report.agrees:
            console.print(Text(plain(f"    again: {outcome.again(report)}", "")), soft_wrap=True)
        suspect = report.vacuous or report.differs
        status = _report.FAILED if not report.agrees else _report.VACUOUS if suspect else _report.OK
        console.print(Text(plain(f"  {report.verdict}"), STYLES[status]), soft_wrap=True)
        console.print()
    for message in outcome.broken.values():
        console.print(Text(plain(message), "bold red"), soft_wrap=True)
    console.print(Text(outcome.summary(), "green" if outcome.agree else "bold red"), soft_wrap=True)


def _cell(cell: _report.Cell) -> str:
    error = "" if cell.error is None else f" {cell.error:.0e}" if cell.error else " 0"
    return {
        _report.OK: f"ok{error}",
        _report.VACUOUS: "vacuous",
        _report.FAILED: f"FAIL{error}",
        _report.REFUSED: "refused",
        _report.NOTE: f"differs{error}" if cell.error is not None else "no estimate",
        _report.NONE: "-",
    }[cell.status]


def _print_json(outcome: _Outcome) -> None:
    def number(x: float | None) -> float | str | None:
        return x if x is None or math.isfinite(x) else str(x)  # JSON has no infinity

    def cell(one: _report.Cell) -> dict[str, Any]:
        found = {"status": one.status, "error": number(one.error), "message": one.message}
        return found | {"allowed": number(one.allowed)}

    result = {
        "agree": outcome.agree,
        "dtype": outcome.dtype,
        "seed": outcome.seed,
        "timeout": outcome.timeout,
        "kernels": outcome.kernels,
        "backends": outcome.versions,
        "died": outcome.broken,
        "checks": [
            {
                "target": report.target,
                "function": report.name,
                "inputs": report.inputs,
                "heading": report.heading,
                "custom_gradient": report.custom,
                "agrees": report.agrees,
                "vacuous": report.vacuous,
                "verdict": report.verdict,
                "again": outcome.again(report),
                "properties": {
                    which: {backend: cell(one) for backend, one in by_backend.items()}
                    for which, by_backend in report.cells.items()
                },
            }
            for report in outcome.reports
        ],
    }
    typer.echo(json.dumps(result, indent=2, allow_nan=False))


if __name__ == "__main__":
    main()
