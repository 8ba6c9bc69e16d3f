"""The failures of a run of pytest, a line each."""


class Failures:
    """Add each failure to a file as it happens, so that a run that is cut short has named them."""

    def __init__(self, path):
        self.path = path
        path.touch()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = " ".join(str(report.longrepr if crash is None else crash.message).split())
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}: {message[:200]}\n")

    pytest_collectreport = pytest_runtest_logreport
