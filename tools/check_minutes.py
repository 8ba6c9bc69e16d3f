"""Run the README's `multiop check examples`, and write there how many minutes it takes, on how many cores, and when."""

from __future__ import annotations

import datetime
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
SENTENCE = re.compile(r"took \d+ minutes? on \w+ cores \([-\d]+\)")


def write_minutes(text: str, seconds: float, cores: int, day: datetime.date) -> str:
    """Return the README with what was measured, in whole minutes, rounded up."""
    minutes = math.ceil(seconds / 60)
    told = f"took {minutes} minute{'s' * (minutes > 1)} on {'two' if cores == 2 else cores} cores ({day})"
    written, count = SENTENCE.subn(told, text)
    if count != 1:
        raise SystemExit(f"README.md says {count} times, not once, how long the check takes: {SENTENCE.pattern}")
    return written


if __name__ == "__main__":
    start, command = time.monotonic(), [sys.executable, "-m", "multiop.cli", "check", "examples"]
    with tempfile.TemporaryDirectory() as folder:  # a new user has compiled nothing
        variables = os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder}
        subprocess.run(command, check=True, cwd=README.parent, env=variables)
    text = README.read_text(encoding="utf-8")
    written = write_minutes(text, time.monotonic() - start, os.cpu_count() or 1, datetime.date.today())
    README.write_text(written, encoding="utf-8")
