"""Run tests on one backend in forked children: the framework is imported once, multiop by each child for itself.

Reads jobs as lines of JSON on stdin, writes a line of JSON per job on stdout: `python _server.py BACKEND`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import signal
import sys
import time
import warnings

FRAMEWORK = {"torch": "torch", "jax": "jax", "tensorflow": "tensorflow", "numpy": "numpy"}


# of the shared suite, cheapest first
ORDER = ["value", "pinned", "gradient", "second_order", "forward_mode", "vmap", "compiled"]
PRELOADED = [
    "numpy", "scipy.special", "scipy.signal", "scipy.linalg", "scipy.ndimage", "hypothesis", "hypothesis.strategies",
    "hypothesis.internal.observability", "hypothesis.extra.numpy", "optree", "rich.console", "mpmath", "typer",
    "torch._dynamo", "torch._inductor.compile_fx", "torch.func", "torch.fx.experimental.proxy_tensor",
    "torch.utils.checkpoint", "jax.numpy", "jax.scipy.special", "jax.experimental.checkify",
]  # fmt: skip


class Watch:
    """Bring the likeliest tests to the front, stop in time, and note the first failure."""

    def __init__(self, words, left_out, seconds):
        self.words, self.left_out, self.until = words, set(left_out), time.process_time() + seconds
        self.failure, self.ran, self.stopped, self.failed = None, 0, False, []

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid not in self.left_out]
        if self.words:
            items.sort(key=lambda item: -self.mentions(item))
        elif items and "test_conformance" in items[0].nodeid:
            items.sort(key=lambda item: ORDER.index(kind) if (kind := item.originalname[5:]) in ORDER else len(ORDER))

    def mentions(self, item):
        text = item.name + (inspect.getsource(item.function) if hasattr(item, "function") else "")
        return sum(word in text for word in self.words)

    def pytest_collectreport(self, report):
        if report.failed and not self.failure:
            self.failure = ("collection", report.nodeid, last_line(report))

    def pytest_runtest_logreport(self, report):
        self.ran += report.when == "call"
        if report.failed:
            self.failed.append(report.nodeid)
            self.failure = self.failure or ("test", report.nodeid, last_line(report))

    def pytest_runtest_protocol(self, item):
        if time.process_time() > self.until:
            self.stopped = True
            item.session.shouldstop = "out of time"


def last_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip()[:300]


def child(job):
    """Run the stages of a job, each a list of arguments of pytest, up to the first failure."""
    import pytest

    folder = job["folder"]
    os.chdir(folder)
    os.environ["PYTHONPATH"] = folder
    sys.path[:] = [folder, *[path for path in sys.path if os.path.realpath(path or ".") != os.path.dirname(__file__)]]
    answer = {"failure": None, "ran": 0, "stopped": False, "failed": []}
    if job["ops"]:
        import multiop.testing.cases as cases

        every, some = cases.rows, {op: row for op, row in cases.rows().items() if op in job["ops"]}
    for stage in job["stages"]:
        if job["ops"]:  # of the thousands of tests of the shared suite, collect those of these ops
            cases.rows = (lambda: some) if "tests/test_conformance.py" in stage["args"][0] else every
        watch = Watch(stage.get("words", []), job.get("left_out", []), stage["seconds"])
        code = int(pytest.main(["-q", "-p", "no:cacheprovider", *stage["args"]], plugins=[watch]))
        answer["failed"] += watch.failed
        answer["ran"] += watch.ran
        answer["stopped"] |= watch.stopped
        answer["failure"] = watch.failure
        if not watch.failure and code not in (0, 2, 5):  # 2: out of time, 5: nothing collected
            answer["failure"] = ("collection", "pytest", f"exit code {code}")
        if answer["failure"]:
            break
    multiop = sys.modules.get("multiop")
    path = getattr(multiop, "__file__", None)
    answer["path"] = path
    assert multiop is None or path is None or path.startswith(folder + os.sep), f"{path} was tested, not {folder}"
    return answer


def run(job):
    """Return what a child finds out, or that it was ended."""
    result = job["result"]
    pid = os.fork()
    if not pid:
        os.setsid()
        log = os.open(result + ".log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            answer = child(job)
            with open(result, "w") as file:
                json.dump(answer, file)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    until = time.monotonic() + job["limit"]
    status = None
    while status is None and time.monotonic() < until:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = code
        else:
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # and what it started
    if status is None:
        os.waitpid(pid, 0)
        return {"failure": None, "ran": 0, "stopped": True, "overran": True}
    if os.path.exists(result):
        with open(result) as file:
            return json.load(file)
    with open(result + ".log") as file:
        return {"failure": ("crash", "process", file.read()[-400:]), "ran": 0, "stopped": False}


def main():
    warnings.simplefilter("ignore")
    names = [name for name in PRELOADED if sys.argv[1] == "jax" or not name.startswith("jax")]
    for name in ("torch", FRAMEWORK[sys.argv[1]], "pytest", *names):  # torch must come before TensorFlow
        try:
            importlib.import_module(name)
        except ImportError:
            if name == FRAMEWORK[sys.argv[1]]:
                raise
    assert "multiop" not in sys.modules
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints is no answer
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
