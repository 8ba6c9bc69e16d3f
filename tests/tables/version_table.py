"""The table of docs/versions.md: a row for each version of a framework that the short suite ran on."""

from __future__ import annotations

import collections
import datetime
import platform
import re

import numpy as np
import pytest

from multiop._loading import versions
from multiop.testing import _results

HEAD = """# Versions

| | supported |
|---|---|
| Python | 3.11 to 3.13 |
| PyTorch | 2.6 to 2.15 |
| JAX | 0.5.3 to 0.12 |
| TensorFlow | 2.18 to 2.21 |
| NumPy | 2.0 to 2.5 |

`multiop info` shows what you have, whether it was tested, and its level, which `multiop/_loading/versions.py` sets:

- *whole*: everything works.
- *reverse*, for newer versions than these, with a warning: ops, transforms and `jit` work by public API alone, and
  [custom gradients](#a-newer-version) have reverse mode, to any order.
- *refused*, for older ones: the backend does not load, and pip does not install it, because results would be wrong
  without an error.

**All three in one environment** work on the CPU: `pip install -c constraints.txt -e '.[cpu]'` installs a set tested
together. `tensorflow` and `tensorflow-cpu` are the same package twice; install one of them.

## Measured

Every op's value, gradient and pinned answers, and the autodiff contract, for each version in its own environment
(NumPy's without a framework), by `nox -s versions`. The whole suite runs on PyTorch 2.13, JAX 0.10, TensorFlow 2.21 and
NumPy 2.4; the other versions of PyTorch are builds for CUDA, run on a CPU.

| framework | version | level | Python | NumPy | passed | failed, as is known | measured |
|---|---|---|---|---|---|---|---|
"""
NOTES = "\n## What fails\n"


class VersionTable:
    """Count what passes on the one backend of a run, and put it into the table if nothing failed.

    A version that failed has no row, also no earlier one; a run that was cut short leaves the table alone.
    """

    def __init__(self, path, backend):
        self.path, self.backend, self.counts = path, backend, collections.Counter()

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            self.counts["known" if hasattr(report, "wasxfail") else report.outcome] += 1

    def pytest_sessionfinish(self, session, exitstatus):
        passed, failed = exitstatus == pytest.ExitCode.OK, exitstatus == pytest.ExitCode.TESTS_FAILED
        if hasattr(session.config, "workerinput") or not (passed or failed):
            return
        version = _results.version(self.backend)
        python = ".".join(platform.python_version_tuple()[:2])
        row = [self.backend, version, versions.level(self.backend, version), python, np.__version__]
        row += [str(self.counts["passed"]), str(self.counts["known"]), datetime.date.today().isoformat()]
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        known = tuple(f"| {name} |" for name in versions.VERSIONS)
        lines = [line for line in text.splitlines() if line.startswith(known)]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        rows = [old for old in rows if old[:2] != row[:2]] + [row] * passed
        rows.sort(key=lambda row: (row[0], [int(part) for part in re.findall(r"\d+", row[1])[:3]]))
        _, heading, notes = text.partition(NOTES)  # written by hand
        table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
        self.path.write_text(HEAD + table + heading + notes, encoding="utf-8")
