"""Sessions that check multiop; `nox -l` lists them, `nox` runs all that are starred.

Each `tests-<backend>` session has one framework installed alone. The sessions that need all three share one
environment, which is made once.
"""

from __future__ import annotations

import os
import pathlib
import sys

import nox

nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = True
nox.options.default_venv_backend = "virtualenv"

BACKENDS = {"torch": "torch", "jax": "jax", "tensorflow": "tensorflow-cpu"}  # name -> extra
QUIETLY = ["-q", "--no-compile"]  # most of a framework's modules are never imported
CONSTRAINTS = "--constraint=constraints.txt"
WORKERS = ["-n", "2", "--dist=worksteal"]  # the slow tests, which compile, stand beside each other
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "-1",
    # what one process compiled, the next one reads: compiling small kernels is most of the time on JAX
    "JAX_COMPILATION_CACHE_DIR": str(pathlib.Path(".nox", "jax-cache").absolute()),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
QUICK = ENVIRONMENT | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}  # what is compiled is run once


def everything(session: nox.Session) -> str:
    """Return the Python of the environment that has all three frameworks, made by the first session that asks."""
    folder = pathlib.Path(".nox", "everything")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        session.run(sys.executable, "-m", "venv", str(folder), external=True)
    session.run(str(python), "-m", "pip", "install", *QUIETLY, CONSTRAINTS, "-e", ".[cpu,dev,bench]", external=True)
    return str(python)


def test_alone(session: nox.Session, backend: str) -> None:
    """Run the tests and the shared suite, a dtype of each kind, in an environment that has one framework."""
    session.install(*QUIETLY, CONSTRAINTS, "-e", f".[{BACKENDS[backend]},dev]")
    chosen = [f"--backends={backend}", f"--multiop-backends={backend}", "--multiop-quick", "-m", "not cross"]
    session.run("pytest", *WORKERS, *chosen, *session.posargs, env=QUICK | {"MULTIOP_BACKEND": backend})


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, imports and format with ruff."""
    session.install(*QUIETLY, CONSTRAINTS, "ruff")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types with mypy, strictly; no framework is installed."""
    session.install(*QUIETLY, CONSTRAINTS, "-e", ".[types]")
    session.run("mypy")


@nox.session(default=False)
def tests(session: nox.Session) -> None:
    """Run the suite on each backend, installed alone: tests-torch, tests-jax and tests-tensorflow."""
    for backend in BACKENDS:
        session.notify(f"tests-{backend}", session.posargs)


@nox.session(name="tests-torch")
def tests_torch(session: nox.Session) -> None:
    """Run the suite on PyTorch, installed alone."""
    test_alone(session, "torch")


@nox.session(name="tests-jax")
def tests_jax(session: nox.Session) -> None:
    """Run the suite on JAX, installed alone."""
    test_alone(session, "jax")


@nox.session(name="tests-tensorflow")
def tests_tensorflow(session: nox.Session) -> None:
    """Run the suite on TensorFlow, installed alone."""
    test_alone(session, "tensorflow")


@nox.session(venv_backend="none")
def cross(session: nox.Session) -> None:
    """Compare the three backends with each other, all installed together."""
    chosen = [*WORKERS, "--multiop-quick", "-m", "cross"]
    session.run(everything(session), "-m", "pytest", *chosen, *session.posargs, env=QUICK, external=True)


@nox.session(venv_backend="none", default=False)
@nox.parametrize("backend", list(BACKENDS))
def conformance(session: nox.Session, backend: str) -> None:
    """Run the shared suite, every op in every dtype on each backend; add its results to results.json.

    In parts too: `nox -s conformance -- -k op_conv`, or `nox -s "conformance(backend='jax')"`.
    """
    chosen = [f"--multiop-backends={backend}", "--multiop-results=results.json", "-m", "not cross"]
    what = ["-m", "pytest", *WORKERS, "--pyargs", "multiop.testing", *chosen, *session.posargs]
    session.run(everything(session), *what, env=ENVIRONMENT | {"MULTIOP_BACKEND": backend}, external=True)


@nox.session(venv_backend="none", default=False)
def report(session: nox.Session) -> None:
    """Make report.html and docs/ops.md from results.json; `nox -s conformance report` makes all of it anew."""
    command = pathlib.Path(everything(session)).with_name("multiop")
    what = ["report", "results.json", "--html", "report.html", "--table", "docs/ops.md"]
    session.run(str(command), *what, env=ENVIRONMENT, external=True)


@nox.session(venv_backend="none", default=False)
def alarms(session: nox.Session) -> None:
    """Look for false alarms: check 200 right functions at 20 seeds in every float dtype, on each backend."""
    python = everything(session)
    for backend in BACKENDS:
        chosen = ["-m", "pytest", *WORKERS, "--alarms", f"--backends={backend}", "tests/testing/test_false_alarms.py"]
        session.run(python, *chosen, *session.posargs, env=ENVIRONMENT | {"MULTIOP_BACKEND": backend}, external=True)


@nox.session(venv_backend="none")
def doctests(session: nox.Session) -> None:
    """Run the examples in docstrings and in the README, on each backend."""
    python = everything(session)
    what = [
        "--doctest-modules",
        "--ignore=multiop/backends",
        "--ignore=multiop/testing/test_suite.py",
        "multiop",
        "--doctest-glob=README.md",
        "README.md",
    ]
    for backend in BACKENDS:
        environment = QUICK | {"MULTIOP_BACKEND": backend}
        session.run(python, "-m", "pytest", *WORKERS, *what, *session.posargs, env=environment, external=True)


@nox.session(venv_backend="none")
def examples(session: nox.Session) -> None:
    """Check the functions of the examples on all three backends: `multiop check examples`."""
    command = pathlib.Path(everything(session)).with_name("multiop")
    session.run(str(command), "check", "examples", env=ENVIRONMENT, external=True)


@nox.session(venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """Measure everything, about ten minutes: nox -s bench -- --write docs/performance.md puts it into the document."""
    session.run(everything(session), "benchmarks", *session.posargs, env=ENVIRONMENT, external=True)
