"""docs/keras.md says how each function of Keras differs, and nothing else differs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
@pytest.mark.cross
@pytest.mark.tier("full")
def test_the_page_is_current():
    command = [sys.executable, "tools/keras_table.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
