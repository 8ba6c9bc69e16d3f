"""Collect the outcomes of the shared suite under pytest."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from . import _results
from ._results import FAILED, KNOWN, PASSED, PROPERTIES, Result, Results
from ._tiers import asked_tier
from ._tolerances import Mismatch


class Collector:
    """Collect the outcomes of the shared suite under pytest, also from the processes of pytest-xdist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = Results()
        self.multiop = _results.own_version()  # read now, since the source may be edited while the tests run

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Attach to each report the case that it belongs to."""
        for item in items:
            found = case_of(item)
            if found is not None:
                item.user_properties.append(("multiop", found))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
        """Attach to the report by how much a case failed."""
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, Mismatch) and error.allowed is not None and math.isfinite(error.error):
            item.user_properties += [("error", error.error), ("allowed", error.allowed)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one outcome."""
        told: dict[str, Any] = dict(report.user_properties)
        if "multiop" not in told or (report.when != "call" and report.outcome == "passed"):
            return
        reason = getattr(report, "wasxfail", None)
        outcome = {"passed": PASSED, "failed": FAILED, "skipped": KNOWN}[report.outcome]
        if outcome == KNOWN and reason is None:
            return  # skipped: no outcome
        message = "" if outcome == PASSED else reason or _message(report)
        op, backend, what, case = told["multiop"]
        self.results.add(
            Result(op, backend, what, case, outcome, told.get("ulps"), message, told.get("error"), told.get("allowed"))
        )
        if backend not in self.results.versions:
            self.results.versions[backend] = {backend: _results.version(backend), "multiop": self.multiop}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, in the process that received every outcome."""
        if not hasattr(session.config, "workerinput"):
            self.results.write(self.path)


def is_of_the_suite(item: pytest.Item) -> bool:
    """Say whether a test belongs to the shared suite."""
    return getattr(getattr(item, "function", None), "__module__", "") == f"{__package__}.test_suite"


def case_of(item: pytest.Item) -> tuple[str, str, str, str] | None:
    """Return the op, backend, property and case that a test of the shared suite is about."""
    name = getattr(item, "originalname", "")
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if not is_of_the_suite(item) or name not in PROPERTIES or not {"op", "multiop_backend"} <= set(parameters):
        return None
    op, backend = parameters["op"], parameters["multiop_backend"]
    case = repr(parameters["pin"]) if "pin" in parameters else parameters.get("dtype", "")
    if asked_tier(item.config) != "full":  # it covers less than the same case in a full run, and must not replace it
        from .test_suite import runs_few, runs_whole

        less = ["first calls"] * runs_few(name, op, case) + ["compiled"] * runs_whole(name, op, backend, item.config)
        less += ["traced alone"] * (name == "test_compiled" and backend == "torch")
        case = ", ".join([case] * bool(case) + less)
    return op, backend, PROPERTIES[name], case


def _message(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longreprtext))[:2000]
