"""Sessions that check multiop; `nox -l` lists them, `nox` runs those that are starred: lint, types, tests.

Sessions share one environment, which has all three frameworks and is made by the first session that needs it. What is
run now and then is a part of `full` (`-- --list` names them), or of `search` (`-- fuzz`).
A test belongs to a tier, `quick`, `default` or `full`: see CONTRIBUTING.md.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from typing import TypeAlias

import nox
import nox.command
from packaging.version import Version

nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True
nox.options.default_venv_backend = "virtualenv"
nox.options.sessions = ["lint", "types", "tests"]

BACKENDS = {  # name -> what an environment has that has it alone
    "torch": "torch,dev",
    "jax": "jax,dev",
    "tensorflow": "tensorflow-cpu,dev",
    "numpy": "dev",  # no framework
}
# a line for each package, with its size, as it comes; most of a framework's modules are never imported
BY_LINES = ["--progress-bar=off", "--no-compile"]
CONSTRAINTS = "--constraint=constraints.txt"
WORKERS = ["-n", "2", "--dist=worksteal"]  # the slow tests, which compile, stand beside each other
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "-1",
    "PYTHONDONTWRITEBYTECODE": "",  # what one process has compiled of the frameworks, the next one loads
    # what one process compiled, the next one reads: compiling small kernels is most of the time on JAX
    "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(".nox", "jax-cache").absolute()),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# what is compiled is run once, so that XLA may compile it in half the time; tests marked `compiler` and the full tier
# compile as users do; a process for each core needs no threads, which spin while they wait for each other
HASTY = ENVIRONMENT | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "OMP_NUM_THREADS": "1"}
# without the first, a small program compiles in half the time, with the second, a large one in two thirds; from
# JAX 0.11 on, a flag that ends the process
XLA_FLAGS = {"XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"}


def made(session: nox.Session, name: str = "everything", extras: str = "cpu,dev,bench") -> str:
    """Return the Python of a shared environment, made by the first session that asks for it."""
    folder = pathlib.Path(".nox", name)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = folder / "made-from", _requirements()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        session.log(f"making the environment {folder} for {extras}: pip names each package, with its size")
        session.run(sys.executable, "-m", "venv", str(folder), external=True)
        command = ["pip", "install", *BY_LINES, CONSTRAINTS, "-e", f".[{extras}]"]
        session.run(str(python), "-m", *command, external=True)
        stamp.write_text(wanted, encoding="utf-8")
        _compile_bytecode(python)
    return str(python)


def _compile_bytecode(python: pathlib.Path) -> None:
    """Import the frameworks once, beside what runs next, so that the tests' processes find their bytecode."""
    names = ("torch", "torch._inductor.compile_fx", "tensorflow", "jax", "keras")
    program = f"import contextlib, importlib\nfor name in {names}:\n"
    program += "    with contextlib.suppress(ImportError): importlib.import_module(name)"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([str(python), "-c", program], env=os.environ | ENVIRONMENT, **quiet)


def _requirements() -> str:
    return "".join(pathlib.Path(name).read_text(encoding="utf-8") for name in ("pyproject.toml", "constraints.txt"))


def run(
    session: nox.Session,
    *command: str,
    environment: dict[str, str] = ENVIRONMENT,
    python: str = "",
    success: Sequence[int] = (0,),
) -> None:
    """Run a module, or a script, with its arguments, in the shared environment."""
    module = [] if command[0].endswith(".py") else ["-m"]
    python = python or made(session)
    if environment.items() >= HASTY.items() and _version(python, "jax") < (0, 11):
        environment = environment | XLA_FLAGS
    command = (python, *module, *command)
    session.run(*command, env=environment, external=True, success_codes=success)


def _version(python: str, package: str) -> tuple[int, ...]:
    """Return the version of a package in an environment; that of one that is not there is 0."""
    installed = _installed(python, package)
    return tuple(map(int, installed.split(".")[:2])) if installed else (0,)


def _installed(python: str, package: str) -> str:
    """Return the version of a package in an environment, and nothing where it is not there."""
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", program], capture_output=True, text=True, check=False).stdout.strip()


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    """Check style, imports and format with ruff."""
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")


@nox.session(venv_backend="none", default=False)
def generate(session: nox.Session) -> None:
    """Write what follows from the frontends: `__init__.py`, `ops`, `boundaries.py` and `primitives.py`."""
    session.run(sys.executable, "tools/op_list.py", *session.posargs, external=True)


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    """Check types with mypy, strictly; `nox -s full -- --part pyright` asks the other checker."""
    run(session, "mypy")


def prove_pyright(session: nox.Session, *_: str) -> None:
    program = pathlib.Path(made(session, "pyright", "pyright")).with_name("basedpyright")
    run(session, "tests/typing/type_lines.py", f"--pyright={program}")


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """Prove every op and every sentence of the contract once, on all backends together."""
    names_files = any(pathlib.Path(word.partition("::")[0]).exists() for word in session.posargs)
    prove_parts(session, *[] if names_files else ["core"])


@nox.session(venv_backend="none", default=False)
def compilers(session: nox.Session) -> None:
    """Prove what is about the frameworks' own compilers, which the other sessions run without."""
    # that vectors compile is taken for granted: to try takes ten seconds
    compiled = ENVIRONMENT | {"TORCHINDUCTOR_VEC_ISA_OK": "1"}
    chosen = ["--tier=default", "--week=this", *COMPILED, "-m", "compiler", *session.posargs]
    run(session, "pytest", *WORKERS, *chosen, environment=compiled, success=[0, 5])


def announce(session: nox.Session, *parts: str) -> None:
    """Say how long parts of the tests take, as `--record` measured it."""
    record = json.loads(pathlib.Path("tests/durations.json").read_text(encoding="utf-8"))
    session.log(f"{sum(map(record['parts'].get, parts)) / 60:.0f} minutes of one core, and the start of two processes")
    if record["unmeasured"]:
        session.log(f"files of tests that are not measured yet, of all parts: {len(record['unmeasured'])}")


COMPILED = [  # the files of tests that are marked so: to collect the others would take longer than to run these
    str(path) for path in sorted(pathlib.Path("tests").rglob("test_*.py")) if "mark.compiler" in path.read_text("utf-8")
]


@nox.session(venv_backend="none", default=False)
def porting(session: nox.Session) -> None:
    """Prove that models are ported right, and compared, and their weights read."""
    prove_parts(session, "porting")


@nox.session(venv_backend="none", default=False)
def tools(session: nox.Session) -> None:
    """Prove the command, the checkers and tools, kernels, what an import costs, other devices and versions."""
    prove_parts(session, "tools")


@nox.session(venv_backend="none", default=False)
def apart(session: nox.Session) -> None:
    """Prove `porting` and `tools` in one run, then `compilers`, as CI does."""
    prove_parts(session, "porting", "tools")
    compilers(session)


def prove_parts(session: nox.Session, *names: str) -> None:
    if names:
        announce(session, *names)
    chosen = ["--tier=default", *(f"--part={name}" for name in names), "--hasty", *session.posargs]
    run(session, "pytest", *WORKERS, *chosen, environment=HASTY)


@nox.session(venv_backend="none", default=False)
def quick(session: nox.Session) -> None:
    """Give a contributor a first answer, on one backend, `-- jax` (or torch, tensorflow, numpy).

    Lint, types, the layout, every op's value, gradient and pinned answers, and the autodiff contract.
    """
    backend, *more = (
        session.posargs if session.posargs and session.posargs[0] in BACKENDS else ["torch", *session.posargs]
    )
    lint(session)
    types(session)
    chosen = ["--tier=quick", "--week=every", "--hasty", f"--backends={backend}", "-m", "not cross"]
    run(session, "pytest", *WORKERS, *chosen, *more, environment=HASTY | {"MULTIOP_BACKEND": backend})


@nox.session(venv_backend="none", default=False)
def op(session: nox.Session) -> None:
    """Prove all there is to prove of some ops, `-- op_erf op_max`, on all backends.

    Every property, keyword and dtype, their docstrings' examples and their rows of the benchmark.
    """
    ops = [name for name in session.posargs if name.startswith("op_")]
    if not ops:
        session.error("which ops? nox -s op -- op_erf op_max")
    more = [argument for argument in session.posargs if argument not in ops]
    names = ",".join(ops)
    chosen = ["--doctest-modules", "multiop/frontends", f"--multiop-ops={names}", *more]
    run(
        session,
        "pytest",
        *WORKERS,
        "tests/test_conformance.py",
        *chosen,
        environment=ENVIRONMENT | {"MULTIOP_BACKEND": "torch"},
    )
    others = [f"--tx=popen//env:MULTIOP_BACKEND={backend}" for backend in BACKENDS if backend != "torch"]
    run(session, "pytest", "--dist=each", *others, *chosen)  # the examples, in a process for each
    run(session, "benchmarks/bench_ops.py", "--rounds", "15", "--only", names)


def prove_product(session: nox.Session, backend: str, *more: str) -> None:
    chosen = [f"--multiop-backends={backend}", "--multiop-results=results.json", "-m", "not cross"]
    what = ["pytest", *WORKERS, "--pyargs", "multiop.testing", *chosen, *more]
    run(session, *what, environment=ENVIRONMENT | {"MULTIOP_BACKEND": backend})


def prove_others(session: nox.Session, backend: str, *more: str) -> None:
    chosen = ["--tier=full", f"--backends={backend}", "-m", "not cross", "--ignore=tests/test_conformance.py"]
    chosen += [f"--ignore=tests/{other}" for other in BACKENDS if other != backend]
    run(session, "pytest", *WORKERS, *chosen, *more, environment=ENVIRONMENT | {"MULTIOP_BACKEND": backend})


def prove_alone(session: nox.Session, backend: str, *more: str) -> None:
    python = made(session, backend, BACKENDS[backend])
    chosen = ["pytest", *WORKERS, "--week=every", "--hasty", f"--backends={backend}", "-m", "not cross", *more]
    variables = HASTY | {"MULTIOP_BACKEND": backend}
    run(session, *chosen, "--tier=quick", environment=variables, python=python)
    run(session, *chosen, "--tier=default", *AT_HAND, environment=variables, python=python)


def prove_doctests(session: nox.Session, backend: str, *more: str) -> None:
    left_out = ["--ignore=multiop/backends", "--ignore=multiop/testing/test_suite.py"]
    what = ["--doctest-modules", *left_out, "multiop", "--doctest-glob=*.md", "README.md", "docs/devices.md", *more]
    run(session, "pytest", *WORKERS, *what, environment=ENVIRONMENT | {"MULTIOP_BACKEND": backend})


def prove_cross(session: nox.Session, backend: str, *more: str) -> None:
    run(session, "pytest", *WORKERS, "--tier=full", "-m", "cross", *more)
    run(session, "multiop.cli", "check", "examples")


def prove_loaded(session: nox.Session, backend: str, *more: str) -> None:
    run(session, "pytest", "--tier=full", "tests/loaded", *more)


AT_HAND = ["tests/testing", "tests/porting", "tests/test_cli.py", "tests/test_config.py", "tests/test_pages.py"]
SLICES = 3
MINUTES = {  # on two cores: of the product, the other tests, docstrings, a framework alone or none
    "torch": (7.0, 10.0, 0.5, 3.5),
    "jax": (21.5, 50.0, 0.5, 4.0),
    "tensorflow": (4.5, 8.5, 0.5, 3.5),
    "numpy": (4.5, 9.5, 0.5, 3.0),
}
Prove: TypeAlias = Callable[..., None]
OPTIONS = ("--backend", "--part", "--shard")


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the full tier."""

    name: str
    backend: str
    minutes: float
    prove: Prove
    arguments: tuple[str, ...] = ()
    is_asked_for: bool = False  # left out unless it is named


def parts() -> list[Part]:
    """Return the parts of the full tier."""
    found = []
    for backend, (product, rest, docstrings, one) in MINUTES.items():
        for k in range(1, SLICES + 1):
            chosen = (f"--multiop-slice={k}/{SLICES}",)
            found.append(Part(f"product {k}/{SLICES}", backend, product / SLICES, prove_product, chosen))
        found.append(Part("tests", backend, rest, prove_others))
        found.append(Part("docstrings", backend, docstrings, prove_doctests))
        found.append(Part("alone", backend, one, prove_alone))
    apart = [Part("cross", "all", 9.5, prove_cross), Part("pyright", "all", 0.5, prove_pyright)]
    apart.append(Part("loaded", "all", 9.0, prove_loaded))
    apart += [Part(name, "all", minutes, prove, is_asked_for=True) for name, (minutes, prove) in ASKED_FOR.items()]
    return [*found, *apart]


@nox.session(venv_backend="none", default=False)
def full(session: nox.Session) -> None:
    """Prove everything, before a release.

    On each backend, `product` (ops, properties, calls and dtypes; its results go into results.json), `tests` (all the
    others), `docstrings` and `alone` (the framework installed alone, or none); `cross` (the backends together, the
    examples), `pyright` and `loaded` (each framework by itself, with multiop loaded). Only where they are named: `ends`
    (the oldest and the newest of all dependencies), `port` (models of eight libraries), `array-api` (the standard's own
    suite), `libraries` (einops, autoray and kymatio on multiop), `distributed` and `accelerator`.
    `-- --list` says how long each takes; `-- --shard 2/5`, `-- --backend jax` and `-- --part product` run some. What
    stands after these is the part's own: `-- --part port BERT`, `-- --part array-api torch`.
    """
    words = [word for argument in session.posargs for word in argument.split("=", argument.startswith(OPTIONS))]
    options = {word: value for word, value in itertools.pairwise(words) if word in OPTIONS}
    more = [word for word in words if word not in (*OPTIONS, *options.values(), "--list")]
    chosen = [part for part in parts() if options.get("--backend", part.backend) == part.backend]
    if "--part" in options:
        chosen = [part for part in chosen if part.name.partition(" ")[0] == options["--part"]]
    elif "--list" not in words:
        chosen = [part for part in chosen if not part.is_asked_for]
    if not chosen:
        session.error("no part is named so; nox -s full -- --list")
    if "--shard" in options:
        k, n = map(int, options["--shard"].split("/"))
        chosen = shards(chosen, n)[k - 1]
    session.log(f"{len(chosen)} parts, about {sum(part.minutes for part in chosen):.0f} minutes on 2 cores:")
    for part in chosen:
        session.log(f"  {part.minutes:4.1f}  {part.name}, {part.backend}")
    failed = []
    for part in chosen if "--list" not in words else []:
        session.log(f"{part.name}, {part.backend}")
        try:
            part.prove(session, part.backend, *part.arguments, *more)
        except nox.command.CommandFailed:
            failed.append(f"{part.name}, {part.backend}")
    if failed:
        session.error(f"failed: {'; '.join(failed)}")


def shards(chosen: list[Part], n: int) -> list[list[Part]]:
    """Deal the parts out to `n` shards that take about equally long."""
    dealt: list[list[Part]] = [[] for _ in range(n)]
    for part in sorted(chosen, key=lambda part: -part.minutes):
        min(dealt, key=lambda one: sum(part.minutes for part in one)).append(part)
    return dealt


VERSIONS = [  # backend, Python, what pip is asked for, MB to download: both ends of each range, and what is between
    ("jax", "3.11", "jax==0.5.*", 150),
    ("jax", "3.11", "jax==0.6.*", 150),
    ("jax", "3.11", "jax==0.7.2", 150),
    ("jax", "3.11", "jax==0.8.*", 150),
    ("jax", "3.12", "jax==0.9.*", 150),
    ("jax", "3.12", "jax==0.10.*", 150),
    ("jax", "3.13", "jax==0.11.*", 150),
    ("jax", "3.13", "jax", 150),
    ("tensorflow", "3.11", "tensorflow-cpu==2.18.* numpy==2.0.*", 320),
    ("tensorflow", "3.11", "tensorflow-cpu==2.19.*", 350),
    ("tensorflow", "3.12", "tensorflow-cpu==2.20.*", 350),
    ("tensorflow", "3.13", "tensorflow-cpu", 350),
    ("numpy", "3.11", "numpy==2.0.*", 60),
    ("numpy", "3.13", "numpy", 60),
    ("torch", "3.11", "torch==2.6.* numpy==2.0.*", 2700),
    ("torch", "3.11", "torch==2.7.*", 2900),
    ("torch", "3.11", "torch==2.8.*", 3000),
    ("torch", "3.11", "torch==2.9.*", 3000),
    ("torch", "3.11", "torch==2.10.*", 3000),
    ("torch", "3.11", "torch==2.11.*", 2500),
    ("torch", "3.11", "torch==2.12.*", 2500),
    ("torch", "3.11", "torch==2.13.*", 2500),
    ("torch", "3.11", "torch==2.14.*", 2500),
    ("torch", "3.11", "torch==2.15.*", 2500),
]
NEXT = [  # the same for what is not released yet, with `-- --pre`
    ("jax", "3.13", "--pre jax", 150),
    ("tensorflow", "3.13", "--pre tf-nightly-cpu", 350),
    ("torch", "3.13", "--pre torch", 2500),
]
MEASURED = pathlib.Path(".nox", "versions.json")  # name of a row -> digest of the source that passed or failed on it


@nox.session(venv_backend="none", default=False)
def versions(session: nox.Session) -> None:
    """Run a short suite on the oldest and the newest version of each framework: `-- jax`, `-- 0.9`.

    Every op's value and gradient, the autodiff contract, and what was silently wrong in some version, in an environment
    of their own; docs/versions.md is made of what comes out. It fails if a test does that is not known to fail on that
    version. A version that this source has passed on is left out, so that a run that was cut short goes on where it
    was: `-- --again` repeats it.
    PyTorch's wheels bring CUDA, 5 GB for each version, so they have to be named: `-- torch`, `-- torch==2.15`.
    `-- --pre` reports what the next version of each framework breaks, and never fails. See CONTRIBUTING.md.
    """
    words = [word for word in session.posargs if not word.startswith("--")]
    rows = NEXT if "--pre" in session.posargs else VERSIONS
    chosen = [row for row in rows if all(word in "{0} {2} {1}".format(*row) for word in words)]
    chosen = [row for row in chosen if words or rows is NEXT or row[0] != "torch"]
    if not chosen:
        session.error(f"no version is named {' '.join(words)!r}; there are: {rows}")
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    source = _digest()
    if "--again" not in session.posargs and rows is not NEXT:
        passed = [row for row in chosen if measured.get(_folder(row).name) == source]
        session.log(f"passed by this source already: {', '.join(row[2] for row in passed) or 'none'}")
        chosen = [row for row in chosen if row not in passed]
    for row in chosen:
        size = "made already" if _folder(row).exists() else f"about {row[3]} MB to download"
        session.log(f"  {row[2]} on Python {row[1]}: {size}")
    failed = []
    for row in chosen:
        backend, interpreter, requirement, _ = row
        python = _made_for(session, row)
        if rows is NEXT and not Version(installed := _installed(python, requirement.split()[-1])).is_prerelease:
            session.warn(f"there is no {backend} newer than {installed}, which is released; CONTRIBUTING.md")
            continue
        environment = ENVIRONMENT | {"MULTIOP_BACKEND": backend}
        environment["JAX_COMPILATION_CACHE_DIR"] = str(pathlib.Path(python).absolute().parents[1] / "jax-cache")
        what = ["tests/test_conformance.py", "tests/autodiff", "--tier=quick", "--hasty", f"--backends={backend}"]
        what += ["-m", "not cross and not once"]
        what += ["--as-tested"] if rows is NEXT else ["--versions-table=docs/tables/versions.csv"]
        silent = sorted(map(str, pathlib.Path("tests", backend).glob("test_versions_*.py")))
        of_versions = [*silent, "--tier=full", f"--backends={backend}", *["--as-tested"] * (rows is NEXT)]
        failures = _folder(row).with_name(f"{_folder(row).name}.failures").absolute()
        failures.unlink(missing_ok=True)
        is_whole = True
        for command in ([of_versions] if silent else []) + [what]:
            command = [*WORKERS, *command, f"--failures={failures}"]
            try:
                run(session, "pytest", *command, environment=environment, python=python)
            except nox.command.CommandFailed:
                is_whole = False
                if rows is not NEXT:  # then there is no row to measure
                    break
        if is_whole:
            measured[_folder(row).name] = source
            MEASURED.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        else:
            failed.append(f"{requirement} on Python {interpreter}")
            session.warn(f"{failed[-1]} fails:\n{failures.read_text(encoding='utf-8') if failures.exists() else ''}")
    if failed and rows is NEXT:
        session.warn(f"the next version breaks tests: {'; '.join(failed)}")
    elif failed:
        session.error(f"failed: {'; '.join(failed)}")


def _digest() -> str:
    """Return a digest of what a row of the table is measured with."""
    digest = hashlib.sha256()
    of_versions = sorted(pathlib.Path("tests").glob("*/test_versions_*.py"))
    for path in map(
        pathlib.Path, ("multiop", "tests/autodiff", "tests/test_conformance.py", "conftest.py", *of_versions)
    ):
        for part in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(part.as_posix().encode() + part.read_bytes())
    return digest.hexdigest()[:16]


def _folder(row: tuple[str, str, str, int]) -> pathlib.Path:
    name = row[2].replace("==", "-").replace(".*", "").replace("--pre ", "next-")
    return pathlib.Path(".nox", f"{row[1]}-{name.replace(' ', '-')}")


def _made_with(session: nox.Session, folder: pathlib.Path, interpreter: str) -> str:
    """Return the Python of an environment of its own, which is empty if it is new."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        found = shutil.which(f"python{interpreter}")
        if found is None:
            session.error(f"there is no python{interpreter} here")
        chosen = {"PYENV_VERSION": interpreter}  # pyenv hides all Pythons but one
        session.run(found, "-m", "venv", str(folder), env=chosen, external=True)
    return str(python)


def _made_for(session: nox.Session, row: tuple[str, str, str, int]) -> str:
    _, interpreter, requirement, _ = row
    python = _made_with(session, _folder(row), interpreter)
    pip = [python, "-m", "pip", "install", *BY_LINES, "--upgrade"]
    tools = ["-e", ".[testing]", "hypothesis", "mpmath", "pytest-timeout", "pytest-xdist"]
    if requirement.startswith("--pre"):  # an index of nightly builds has little else
        session.run(*pip, *tools, external=True)
        session.run(*pip, *requirement.split(), external=True)
    else:
        session.run(*pip, *tools, *requirement.split(), external=True)  # the newest by now
    return python


ENDS = {"oldest": ("3.11", "=="), "newest": ("3.13", ">=")}  # Python, and how pip is asked for what is needed


def prove_ends(session: nox.Session, _: str, *names: str) -> None:
    """Run all frameworks together with the oldest, and the newest, of all that pyproject.toml allows.

    The examples, the quick tier of the shared suite on each backend, several devices and processes. `oldest` is one of
    them; PyTorch's wheel brings CUDA, 3 GB to download.
    """
    for name in names or ENDS:
        interpreter, sign = ENDS[name]
        python = _made_with(session, pathlib.Path(".nox", name), interpreter)
        needed = _needed("torch", "jax", "tensorflow-cpu", "porting", "testing", "examples")
        asked = [requirement.replace(">=", sign) for requirement in needed]
        pip = [python, "-m", "pip", "install", *BY_LINES, "--upgrade", "-e", ".", "pytest-timeout", *asked]
        session.run(*pip, external=True)
        for backend in BACKENDS:
            chosen = ["--tier=quick", "--hasty", f"--backends={backend}", "-m", "not cross"]
            environment = HASTY | {"MULTIOP_BACKEND": backend}
            run(session, "pytest", "tests/test_conformance.py", *chosen, environment=environment, python=python)
        run(session, "pytest", "--tier=full", "tests/distributed", python=python)
        run(session, "multiop.cli", "check", "examples", python=python)


def _needed(*extras: str) -> list[str]:
    """Return what multiop needs, with some extras, as pyproject.toml asks for it."""
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(name for extra in extras for name in project["optional-dependencies"][extra])]


def prove_port(session: nox.Session, _: str, *names: str) -> None:
    """Port models of eight libraries, prove them, and write benchmarks/ported.md.

    `BERT` is one of them, `jax` those of a framework.
    """
    python = made(session, "port", "cpu,porting")
    libraries = ["torchvision", "timm", "transformers", "torch_geometric", "diffusers", "flax", "equinox"]
    session.run(python, "-m", "pip", "install", *BY_LINES, CONSTRAINTS, *libraries, external=True)
    run(session, "tools/port_table.py", *names, python=python)


@nox.session(venv_backend="none", default=False)
def search(session: nox.Session) -> None:
    """Look for what nobody thought of: `-- alarms`, `-- edges` or `-- fuzz`, with options after it.

    `alarms`: 200 right functions at 20 seeds in every float dtype, on each backend, raise no alarm: an hour.
    `edges`: ops of one or two numbers, of rows and of complex numbers, held to many digits at the edges of every dtype:
    hours. `-- edges --ops op_divide --backends jax --dtypes float32 --ways jit` is a part; `-- edges --pairs
    op_logical_not` compiles pairs of ops, those with that text in their name, and holds them to eager calls.
    `fuzz`: 500 random programs of each generator on each backend, an hour; each that differs is made smaller and
    printed as source. `modes` compares the backends in every mode; `seams` (training loops of nested transforms) and
    `sized` (ops at the sizes and dtypes where compilers change) compare with NumPy.
    `-- fuzz --generators seams --programs 50 --seed 1000` is a part.
    """
    match session.posargs:
        case ["alarms", *more]:
            for backend in BACKENDS:
                chosen = ["--alarms", "--tier=full", f"--backends={backend}", "tests/testing/test_false_alarms.py"]
                environment = ENVIRONMENT | {"MULTIOP_BACKEND": backend}
                run(session, "pytest", *WORKERS, *chosen, *more, environment=environment)
        case ["edges" | "fuzz" as name, *more]:
            run(session, f"tests/{name}/__main__.py", *more, environment=ENVIRONMENT | {"PYTHONPATH": "."})
        case _:
            session.error("look for what? nox -s search -- alarms, edges or fuzz")


@nox.session(venv_backend="none", default=False)
def mutants(session: nox.Session) -> None:
    """Prove the tests' power: plant faults in copies of the package, count what the tests catch.

    `nox -s mutants -- --tier full`, `-- --seed 1`, `-- --backends torch`, `-- --only op_max`, `-- --list`.
    """
    run(session, "tests/mutants/__main__.py", *session.posargs, environment=HASTY)


ARRAY_API_TESTS = ("https://github.com/data-apis/array-api-tests", "2026.02.26")


def prove_array_api(session: nox.Session, _: str, *words: str) -> None:
    """Hold `multiop.array_api` to the standard's own suite, data-apis/array-api-tests, on each backend.

    `torch` is one of them. ARRAY_API_TESTS is the path of a checkout with its submodule; without it, one is cloned.
    What is left out, and why, is in tests/array_api; other arguments are the suite's, as `--max-examples=100`.
    """
    folder = pathlib.Path(os.environ.get("ARRAY_API_TESTS", ".nox/array-api-tests")).absolute()
    if not folder.exists():
        address, tag = ARRAY_API_TESTS
        clone = ["clone", "--quiet", "--recurse-submodules", "--branch", tag, address, str(folder)]
        session.run("git", *clone, external=True)
    python = str(pathlib.Path(made(session)).absolute())
    needed = ["ndindex", "pytest-json-report"]
    session.run(python, "-m", "pip", "install", *BY_LINES, CONSTRAINTS, *needed, external=True)
    backends = [word for word in words if word in BACKENDS]
    more = [word for word in words if word not in BACKENDS]
    here = pathlib.Path("tests", "array_api").absolute()
    variables = {
        "ARRAY_API_TESTS_MODULE": "multiop.array_api",
        "ARRAY_API_TESTS_MAX_ARRAY_SIZE": "128",
        "MULTIOP_X64": "1",
        "MULTIOP_TENSORFLOW_NUMPY": "1",
        "PYTHONPATH": os.pathsep.join([str(pathlib.Path().absolute()), str(here)]),
    }
    suite = ["-m", "pytest", "--rootdir=.", "-cpytest.ini", "-p", "suite_plugin", "-p", "no:randomly", "-q", "-Wignore"]
    suite += ["--disable-deadline", "--derandomize", "--max-examples=20", "array_api_tests", *more]
    with session.chdir(folder):
        for backend in backends or BACKENDS:
            environment = HASTY | variables | {"MULTIOP_BACKEND": backend}
            skips = f"--skips-file={here / f'skips_{backend}.txt'}"
            session.run(python, *suite, skips, env=environment, external=True)


LIBRARIES = {  # release -> what pytest is given of its source distribution
    # Flax is not among our packages
    "einops==0.8.2": ("einops/tests", "-k", "not flax"),
    "autoray==0.11.0": ("tests/test_autoray.py", "tests/test_linalg.py"),
    # these need names that JAX, SciPy, pytest and Keras have no more; the last asks for the bits of another formula
    "kymatio==0.3.0": (
        *("tests", "--ignore=tests/general/test_jnp_vs_np.py", "--ignore=tests/scattering1d/test_correctness.py"),
        "--deselect=tests/scattering3d/test_utils_scattering3d.py::test_utils",
        "--deselect=tests/scattering1d/test_keras_scattering1d.py::test_Scattering1D",
        "--deselect=tests/scattering3d/test_torch_scattering3d.py::test_complex_modulus",
    ),
}
CLONED = {"kymatio": "https://github.com/kymatio/kymatio"}  # which has no source distribution of this release


def prove_libraries(session: nox.Session, _: str, *words: str) -> None:
    """Run the own tests of three libraries on the adapters in examples/, on each backend, and of einops patched.

    `torch` and `autoray` are some of them. What they expect to fail on a framework may pass.
    """
    python = str(pathlib.Path(made(session)).absolute())
    path = os.pathsep.join([str(pathlib.Path(python).parent), os.environ["PATH"]])  # tests of einops start `python`
    root, folder = pathlib.Path().absolute(), pathlib.Path(".nox", "libraries").absolute()
    backends = [word for word in words if word in BACKENDS] or list(BACKENDS)
    for requirement, tests in LIBRARIES.items():
        name, _, version = requirement.partition("==")
        if (asked := [word for word in words if word not in BACKENDS]) and name not in asked:
            continue
        source = folder / f"{name}-{version}"
        if not source.exists() and name in CLONED:
            clone = ["clone", "--quiet", "--depth", "1", "--branch", version, CLONED[name], str(source)]
            session.run("git", *clone, external=True)
        elif not source.exists():
            pip = ["-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), requirement]
            session.run(python, *pip, external=True)
            shutil.unpack_archive(folder / f"{name}-{version}.tar.gz", folder)
        variables = ENVIRONMENT | {"MULTIOP_X64": "1", "PATH": path}
        variables["PYTHONPATH"] = os.pathsep.join(map(str, [source, root / "examples" / f"{name}_backend", root]))
        with session.chdir(source):
            for backend in backends:
                chosen = ["pytest", "-q", "-Wignore", "-p", f"{name}_tests", "-p", "no:cacheprovider", *tests]
                environment = variables | {"MULTIOP_BACKEND": backend}
                ours = [str(root / "examples" / f"{name}_backend"), f"--multiop-backends={backend}", "-q"]
                session.run(python, "-m", "pytest", "-p", "no:cacheprovider", *ours, env=environment, external=True)
                if (name, backend) != ("einops", "numpy"):  # its tests compare with NumPy
                    session.run(python, "-m", *chosen, env=environment, external=True)
        if name == "einops":
            _prove_patch(session, python, source, backends, variables, tests)


def _prove_patch(
    session: nox.Session,
    python: str,
    source: pathlib.Path,
    backends: Sequence[str],
    variables: dict[str, str],
    tests: Sequence[str],
) -> None:
    """Run einops's tests on a copy that `make_patch.py` has changed."""
    patched = source.with_name(f"{source.name}-patched")
    shutil.rmtree(patched, ignore_errors=True)
    shutil.copytree(source, patched)
    make = [python, "examples/einops_backend/make_patch.py", str(source)]
    patch = subprocess.run(make, check=True, capture_output=True).stdout
    subprocess.run(["git", "apply", "--unsafe-paths", f"--directory={patched}"], input=patch, check=True, cwd="/")
    variables = variables | {"PYTHONPATH": os.pathsep.join([str(patched), str(pathlib.Path().absolute())])}
    with session.chdir(patched):
        for backend in backends:
            names = ",".join(dict.fromkeys(["numpy", backend]))
            chosen = ["pytest", "-q", "-Wignore", "-p", "no:cacheprovider", *tests]
            session.run(python, "-m", *chosen, env=variables | {"EINOPS_TEST_BACKENDS": names}, external=True)


def prove_distributed(session: nox.Session, _: str, *more: str) -> None:
    """Hold several devices and processes to what one gives, over the loopback alone.

    JAX on four virtual CPUs, PyTorch in two processes with gloo, TensorFlow's MirroredStrategy on two CPUs.
    """
    run(session, "pytest", "--tier=full", "tests/distributed", *more)


def prove_accelerator(session: nox.Session, _: str, *more: str) -> None:
    """Prove multiop on the accelerator at hand: suite, waits, times, memory; `tools/accelerator.py` needs no nox.

    Without an accelerator: the quick tier, and what tensors without values can show.
    """
    run(session, "tools/accelerator.py", *more, environment={})


ASKED_FOR: dict[str, tuple[float, Prove]] = {  # what needs the network, an accelerator, or more than an hour
    "ends": (80.0, prove_ends),
    "port": (40.0, prove_port),
    "array-api": (10.0, prove_array_api),
    "libraries": (24.0, prove_libraries),
    "distributed": (5.0, prove_distributed),
    "accelerator": (6.0, prove_accelerator),
}


@nox.session(venv_backend="none", default=False)
def docs(session: nox.Session) -> None:
    """Build the site into build/site, with every warning and broken link as an error, and run its pages.

    `-- --build` builds alone; `-- --serve` builds and serves it at http://localhost:8000; `-- --links` also
    asks the addresses outside. The build has an environment of its own, without a framework.
    """
    python = made(session, "docs", "docs")
    build = ["sphinx", "--fail-on-warning", "--fresh-env", "-q"]
    run(session, *build, "-b", "html", "docs", "build/site", environment={}, python=python)
    if "--links" in session.posargs:
        run(session, *build, "-b", "linkcheck", "docs", "build/links", environment={}, python=python)
    if "--serve" in session.posargs:
        run(session, "http.server", "--directory", "build/site", "--bind", "localhost", environment={}, python=python)
    elif "--build" not in session.posargs:
        run(session, "tools/divergences.py", "--check")
        run(session, "tools/limits.py", "--check")
        run(session, "tools/meeting.py", "--check")
        run(session, "tools/scipy_table.py", "--check")
        run(session, "tools/effects.py", "--check")
        for backend in BACKENDS:
            run(session, "tools/notebook.py", "--run", environment=ENVIRONMENT | {"MULTIOP_BACKEND": backend})
        run(session, "pytest", *WORKERS, "--tier=full", "tests/test_pages.py")


@nox.session(venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """Measure everything: nox -s bench -- --write benchmarks/measured.md puts it into the document.

    `nox -s bench -- --all` walks every op that has a native counterpart, in search of outliers.
    """
    run(session, "benchmarks/__main__.py", *session.posargs)
