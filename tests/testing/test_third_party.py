"""The shared suite runs for a backend that somebody else wrote, from anywhere, with one command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def suite(toy_paths, tmp_path):
    """Run the shared suite on the toy backend, from an empty folder, and return the finished process."""

    def run(*arguments):
        command = [sys.executable, "-m", "pytest", "--pyargs", "multiop.testing", "-p", "multiop.testing.plugin"]
        paths = os.pathsep.join([*toy_paths, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        folder = tmp_path / "elsewhere"
        folder.mkdir()
        options = ["--multiop-backends=toy", "-q", "-rxf", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(
            [*command, *options], cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths}
        )

    return run


def test_suite_runs_for_a_third_party_backend(suite):
    done = suite("-k", "op_add or op_exp")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    assert "test_value[toy-op_add-float32]" not in done.stdout  # it passes: nothing to tell
    assert "XFAIL" in done.stdout  # what the toy declares as not implemented, with its reason
    assert "the toy backend has no op_" in done.stdout


@pytest.mark.tier("full")
def test_fault_of_a_third_party_backend_is_found(suite, tmp_path):
    (tmp_path / "conftest.py").write_text("")
    fault = tmp_path / "planted_fault.py"
    fault.write_text(
        "import toy_backend\n\nright = toy_backend.op_add\ntoy_backend.op_add = lambda x1, x2: right(x1, x2) + 1\n"
    )
    done = suite("-k", "test_value and op_add", "-p", "planted_fault")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_value[toy-op_add-float32]" in done.stdout
    assert "relative error" in done.stdout


@pytest.mark.tier("full")
def test_backend_that_is_missing_fails(suite):
    done = suite("-k", "op_exp", "--multiop-backends=no_such_backend")
    assert done.returncode == 1
    assert "unknown backend 'no_such_backend'" in done.stdout
