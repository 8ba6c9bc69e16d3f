"""The parts of the suite that have a session of their own, and the record of how long each file of tests takes."""

from __future__ import annotations

import collections
import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# the parts of the suite that have a session of their own: files of tests, by how their paths begin; the rest is `core`
APART = {
    "porting": ("tests/porting/",),
    "tools": (  # the command, the checkers, kernels, other devices and versions, and what stands around them
        "tests/jax/test_devices_",
        "tests/jax/test_kernels_",
        "tests/jax/test_others_",
        "tests/jax/test_versions_",
        "tests/loaded/",
        "tests/tensorflow/test_effects_",
        "tests/tensorflow/test_kernels_",
        "tests/tensorflow/test_versions_",
        "tests/test_array_api",
        "tests/test_cli",
        "tests/test_divergences",
        "tests/test_examples",
        "tests/test_figures",
        "tests/test_fuzz",
        "tests/test_half_imported",
        "tests/test_import_cost",
        "tests/test_kernels",
        "tests/test_package",
        "tests/test_programs",
        "tests/test_toy_backend",
        "tests/test_types",
        "tests/test_version_table",
        "tests/testing/",
        "tests/torch/test_devices_",
        "tests/torch/test_kernels_",
        "tests/torch/test_versions_",
    ),
}


def part_of(path):
    """Return the part of the suite that a file of tests belongs to."""
    name = Path(path).relative_to(ROOT).as_posix() if Path(path).is_relative_to(ROOT) else ""
    return next((part for part, beginnings in APART.items() if name.startswith(beginnings)), "core")


def core_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Record:
    """Add up the core seconds of each test function, also of those in the processes of pytest-xdist.

    A hasty run replaces what is there of the files that it runs; one that is not, as the compilers', adds to it.
    """

    def __init__(self, path, parts, is_hasty):
        self.path, self.parts, self.is_hasty = path, parts or (), is_hasty
        self.seconds = collections.Counter()
        self.last = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.last = core_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        report = yield
        now = core_seconds()
        report.user_properties = [*report.user_properties, ("core seconds", now - self.last)]
        self.last = now
        return report

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid.partition("[")[0]] += dict(report.user_properties)["core seconds"]

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workerinput"):
            return
        known = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        functions, files = collections.Counter(known.get("functions", {})), collections.Counter(known.get("files", {}))
        run = collections.Counter()
        for name, seconds in self.seconds.items():
            run[name.partition("::")[0]] += seconds
        if self.is_hasty:
            functions = collections.Counter({k: v for k, v in functions.items() if k.partition("::")[0] not in run})
            files = collections.Counter({k: v for k, v in files.items() if k not in run})
        functions += self.seconds
        files.update(run)
        paths = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
        unmeasured = set(known.get("unmeasured", [])) - run.keys()
        paths = [path for path in paths if path in files or part_of(ROOT / path) in self.parts]
        parts = collections.Counter()
        for path in paths:
            parts[part_of(ROOT / path)] += files[path]
        record = {
            "parts": {name: round(seconds) for name, seconds in sorted(parts.items())},
            "unmeasured": sorted(path for path in unmeasured if part_of(ROOT / path) not in self.parts),
            "files": {path: round(files[path], 1) for path in paths},
            "functions": {name: round(seconds, 1) for name, seconds in sorted(functions.items()) if seconds >= 0.1},
        }
        self.path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
