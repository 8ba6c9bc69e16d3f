"""The table of docs/versions.md: a version has a row only if its last whole run passed."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from version_table import HEAD, NOTES, VersionTable

from multiop.testing import _results

pytest_plugins = ["pytester"]

PYTHON = ".".join(platform.python_version_tuple()[:2])
OLDER = "| jax | 0.7.2 | 3.11 | 2.4.6 | 1805 | 3 |\n"
BEFORE = "| jax | 0.10.2 | 3.11 | 2.4.6 | 99 | 9 |\n"
NOTED = NOTES + "\nBy hand.\n"
PASSES = "import pytest\ndef test_one(): pass\ndef test_two(): pass\n"
KNOWN = "@pytest.mark.xfail(strict=True)\ndef test_three(): assert {}\n"


@pytest.fixture
def table(pytester, tmp_path, monkeypatch):
    """Run a file of tests on JAX 0.10.2, which has a row already; the value is what is in the table then."""
    monkeypatch.setattr(_results, "version", lambda backend: {"jax": "0.10.2"}[backend])
    path = tmp_path / "versions.md"
    path.write_text(HEAD + OLDER + BEFORE + NOTED, encoding="utf-8")

    def run(body):
        pytester.makepyfile(body)
        pytester.runpytest_inprocess(plugins=[VersionTable(path, "jax")], no_reraise_ctrlc=True)
        return path.read_text(encoding="utf-8")

    return run


def test_a_run_that_passes_is_a_row(table):
    row = f"| jax | 0.10.2 | {PYTHON} | {np.__version__} | 2 | 1 |\n"
    assert table(PASSES + KNOWN.format(False)) == HEAD + OLDER + row + NOTED


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
    assert table(PASSES + body) == HEAD + OLDER + NOTED


@pytest.mark.parametrize(
    "body", ["import nowhere", "def test_four(): raise KeyboardInterrupt", "def test_four(): pytest.exit('enough')"]
)
def test_a_run_that_is_cut_short_changes_nothing(table, body):
    assert table(PASSES + body) == HEAD + OLDER + BEFORE + NOTED
