"""docs/tables/versions.csv, of docs/versions.md: a row for each version of a framework that the short suite ran on."""

from __future__ import annotations

import collections
import csv
import datetime
import platform
import re

import numpy as np
import pytest

from multiop._loading import versions
from multiop.testing import _results

HEAD = ["framework", "version", "level", "Python", "NumPy", "passed", "failed, as is known", "measured"]


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
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        rows = [old for old in csv.reader(lines[1:]) if old[:2] != row[:2]] + [row] * passed
        rows.sort(key=lambda row: (row[0], [int(part) for part in re.findall(r"\d+", row[1])[:3]]))
        with self.path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
