"""The examples of docs/porting.md, of the move to another framework and back, and of generation, give what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import multiop

DOCS = Path(multiop.__file__).parent.parent / "docs"
PROGRAM = """
import doctest, sys
flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
failed, tried = doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags)
print(tried, "examples")
sys.exit(failed > 0 or tried < 20)
"""


@pytest.mark.rotating
@pytest.mark.parametrize("page", ["porting.md", "tutorials/framework.md", "tutorials/generation.md"])
def test_the_guide_runs(page):
    """In a process of its own, whose Keras has the backend that the guide has: another test may have chosen one."""
    for name in ("torch", "jax", "keras", "tensorflow"):
        pytest.importorskip(name)
    environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
    command = [sys.executable, "-c", PROGRAM, str(DOCS / page)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
