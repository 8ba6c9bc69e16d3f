"""A PyTorch whose parts are not known: ops and transforms work, custom gradients in reverse mode."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent


@pytest.mark.parametrize("parts", ["all", "missing", "other"])
def test_an_unknown_version(parts):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "unknown.py")]
    environment = os.environ | {"MULTIOP_BACKEND": "torch", "MULTIOP_TEST_PARTS": parts}
    run = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1], env=environment, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) > 20
