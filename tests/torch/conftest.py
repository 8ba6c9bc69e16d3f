"""Tests of the PyTorch backend alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import multiop

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def on_torch():
    """Run each test here with this backend active, whichever is the default."""
    with multiop.use_backend("torch"):
        yield


@pytest.fixture
def passed_alone():
    """Run the tests of a file here in a process of their own, where none may fail; return how many passed."""

    def run(name, **variables):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / name)]
        environment = os.environ | {"MULTIOP_BACKEND": "torch"} | variables
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=HERE.parents[1], env=environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return int(re.search(r"(\d+) passed", done.stdout)[1])

    return run
