"""How far a run of the tests is, and how long the rest takes: a line from time to time."""

from __future__ import annotations

import time

WIDTH = 30


class Progress:
    """Print a bar and the time left, at most once in `every` seconds; with pytest-xdist, of all processes together."""

    def __init__(self, every=30.0):
        self.every, self.done, self.start = every, 0, None

    def pytest_sessionstart(self, session):
        self.session, self.reporter = session, session.config.pluginmanager.get_plugin("terminalreporter")

    pytest_collection_finish = pytest_sessionstart  # a conftest.py that is found while tests are collected comes late

    def pytest_runtest_logstart(self):
        if self.start is None:
            self.start = self.told = time.monotonic()

    def pytest_runtest_logfinish(self):
        self.done += 1
        now, total = time.monotonic(), self.session.testscollected
        if self.reporter is not None and now - self.told >= self.every and self.done < total:
            self.told = now
            self.reporter.write(f"\n{bar(self.done, total, now - self.start)}\n")  # dots stand before it


def bar(done, total, seconds):
    """Return a bar, the share of tests that are done, and the time left if the others take as long as these."""
    filled, left = WIDTH * done // total, seconds * (total - done) / done
    told = f"{left / 60:.0f} minutes" if left >= 90 else f"{left:.0f} seconds"
    return f"[{'#' * filled}{'.' * (WIDTH - filled)}] {100 * done // total} %, about {told} left"
