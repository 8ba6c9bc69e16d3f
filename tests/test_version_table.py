"""The tested versions: what is said of them is the same everywhere, and each end of a range has passed the short suite.

A version has a row in docs/tables/versions.csv only if its last whole run passed.
"""

from __future__ import annotations

import csv
import datetime
import platform
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from version_table import HEAD, VersionTable

from multiop._loading import versions
from multiop.testing import _results

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
NAMES = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "numpy": "NumPy"}
PYTHON = ".".join(platform.python_version_tuple()[:2])
HEADER = 'framework,version,level,Python,NumPy,passed,"failed, as is known",measured\n'
OLDER = "jax,0.7.2,whole,3.11,2.4.6,1805,3,2026-01-02\n"
BEFORE = "jax,0.10.2,whole,3.11,2.4.6,99,9,2026-01-02\n"
PASSES = "import pytest\ndef test_one(): pass\ndef test_two(): pass\n"
KNOWN = "@pytest.mark.xfail(strict=True)\ndef test_three(): assert {}\n"


@pytest.fixture
def table(pytester, tmp_path, monkeypatch):
    """Run a file of tests on JAX 0.10.2, which has a row already; the value is what is in the table then."""
    monkeypatch.setattr(_results, "version", lambda backend: {"jax": "0.10.2"}[backend])
    path = tmp_path / "versions.csv"
    path.write_text(HEADER + OLDER + BEFORE, encoding="utf-8")

    def run(body):
        pytester.makepyfile(body)
        pytester.runpytest_inprocess(plugins=[VersionTable(path, "jax")], no_reraise_ctrlc=True)
        return path.read_text(encoding="utf-8")

    return run


def test_a_run_that_passes_is_a_row(table):
    today = datetime.date.today().isoformat()
    row = f"jax,0.10.2,whole,{PYTHON},{np.__version__},2,1,{today}\n"
    assert table(PASSES + KNOWN.format(False)) == HEADER + OLDER + row


@pytest.mark.parametrize(
    "body",
    [
        "def test_four(): assert False",
        "@pytest.fixture\ndef broken(): assert False\ndef test_four(broken): pass",
        "@pytest.fixture\ndef broken():\n    yield\n    assert False\ndef test_four(broken): pass",
        KNOWN.format(True),  # known to fail, and passes
    ],
)
def test_a_run_that_fails_takes_the_row_away(table, body):
    assert table(PASSES + body) == HEADER + OLDER


@pytest.mark.parametrize(
    "body", ["import nowhere", "def test_four(): raise KeyboardInterrupt", "def test_four(): pytest.exit('enough')"]
)
def test_a_run_that_is_cut_short_changes_nothing(table, body):
    assert table(PASSES + body) == HEADER + OLDER + BEFORE


def ends(backend):
    """Return the oldest version of a framework, the oldest on which everything works, and the newest."""
    oldest, whole, (major, minor) = versions.VERSIONS[backend]
    return [".".join(map(str, version)) for version in (oldest, whole, (major, minor - 1))]


@pytest.mark.parametrize("backend", NAMES)
def test_each_end_of_a_range_has_passed(backend):
    head, *lines = csv.reader((ROOT / "docs/tables/versions.csv").read_text(encoding="utf-8").splitlines())
    assert head == HEAD
    rows = {version.partition("+")[0]: level for name, version, level, *_ in lines if name == backend}
    assert all(any(f"{version}.".startswith(f"{end}.") for version in rows) for end in ends(backend))
    assert rows == {version: versions.level(backend, version) for version in rows}


@pytest.mark.parametrize("backend", NAMES)
def test_a_range_is_the_same_everywhere(backend):
    oldest, _, newest = ends(backend)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert f"{backend}>={oldest}" in (project["dependencies"] if backend == "numpy" else extras[backend])
    assert extras.get(f"{backend}-cpu", [f"{backend}-cpu>={oldest}"]) == [f"{backend}-cpu>={oldest}"]
    span = rf"{re.escape(oldest)}(,| and| to) {re.escape(newest)}\b"
    assert re.search(rf"{NAMES[backend]} {span}", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert re.search(rf"\| {NAMES[backend]} \| {span} \|", (ROOT / "docs/versions.md").read_text(encoding="utf-8"))
