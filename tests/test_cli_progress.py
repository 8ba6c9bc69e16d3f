"""What `multiop check`, and a run of the tests, show while they work; what is said of checks that prove little."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import progress
import pytest

from multiop import cli
from multiop.testing import _html, _processes, _progress, _report, integers, normal
from multiop.testing._case import call
from multiop.testing._checks import why_gradient_is_vacuous

ROOT = Path(__file__).parent.parent


@pytest.fixture
def start(toy_paths, tmp_path):
    """Start the command in a folder that holds the files given by name."""
    started = []

    def run(*arguments, stderr=subprocess.PIPE, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        paths = [*toy_paths, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TERM": "xterm", "COLUMNS": "150"}
        command = [sys.executable, "-m", "multiop", *arguments, "--backends", "toy"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=tmp_path, env=environment
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.send_signal(signal.SIGINT)  # so that it ends its own processes
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:  # where this signal is ignored
            process.kill()
            process.wait()
        for stream in filter(None, [process.stdout, process.stderr]):
            stream.close()


WAITS = """
import pathlib
import time

def first(x):
    return x * x

def second(x):
    while not pathlib.Path("was_seen").exists():  # the test makes this file when it has seen what is shown until now
        time.sleep(0.05)
    return x + x
"""


def test_a_function_is_shown_before_the_next_one_is_measured(start, tmp_path):
    process = start("check", "waits.py", waits=WAITS)
    row = process.stderr.readline()
    assert re.fullmatch(r" +\d+\.\d s  toy +1 of 2  waits\.py::first\(normal\(3\)\)  ok\n", row), row
    assert process.poll() is None
    (tmp_path / "was_seen").touch()
    table, rest = process.communicate()
    assert process.returncode == 0
    assert re.fullmatch(r" +\d+\.\d s  toy +2 of 2  waits\.py::second\(normal\(3\)\)  ok\n", rest), rest
    assert [line for line in table.splitlines() if "::" in line] == [
        "waits.py::first(normal(3))",
        "waits.py::second(normal(3))",
    ]
    assert "\x1b" not in table + row + rest
    assert "\r" not in row + rest


def test_a_terminal_shows_what_each_process_is_doing(start, tmp_path):
    ours, theirs = pty.openpty()
    process = start("check", "waits.py", stderr=theirs, waits=WAITS)
    os.close(theirs)
    shown = ""
    while "waits.py::second" not in shown:
        shown += re.sub(r"\x1b\[\d*m", "", os.read(ours, 1 << 16).decode())
    assert process.poll() is None
    assert re.search(r"toy +2 of 2 +waits\.py::second +value +0:\d\d:\d\d", shown), shown
    assert re.search(r"\d s  toy +1 of 2  waits\.py::first\(normal\(3\)\)  .*ok", shown), shown
    assert "\x1b[" in shown
    (tmp_path / "was_seen").touch()
    table, _ = process.communicate()
    os.close(ours)
    assert process.returncode == 0
    assert "\x1b" not in table  # which is no terminal


PHASES = """
from multiop.testing._processes import Run
from multiop.testing._progress import Progress

task = {"target": "f.py", "name": "g", "case": 0, "number": 2}
run = Run("jax")
run.tasks = [task, task, task]
with Progress(["jax"]) as progress:
    for at in [("starting jax",), ("importing f.py",), ("value", task), ("compiled", task)]:
        progress.at(1, run, *at)
        progress._display.refresh()
    progress.ended(1)
"""


def test_the_time_left_is_that_of_all_backends(monkeypatch, capsys):
    seconds = iter([0.0, 20.0, 21.0, 30.0, 40.0, 50.0, 60.0])  # the first function waits for imports
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(seconds))
    task = {"target": "f.py", "name": "g", "case": 0, "inputs": [], "heading": "", "properties": {}}
    runs = {name: _processes.Run(name) for name in ("torch", "jax")}
    shown = _progress.Progress(list(runs))
    for name in ("torch", "torch", "torch", "jax", "jax", "jax"):
        runs[name].tasks = [task] * 3
        runs[name].results.append(task)
        shown.finished(runs[name], task)
    left = [line.rpartition("(about ")[2] if "about" in line else "" for line in capsys.readouterr().err.splitlines()]
    assert left == ["", "4 s left)", "15 s left)", "13 s left)", "8 s left)", ""]


def test_slow_phases_have_names():
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PHASES], stderr=theirs, env=environment, check=False)
    os.close(theirs)
    assert done.returncode == 0
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    places = [
        shown.index(text)
        for text in ("jax", "starting jax", "importing f.py", "2 of 3", "f.py::g", "value", "compiling")
    ]
    assert places == sorted(places)


VACUOUS = """
import numpy as np
from multiop import ops
from multiop.testing import example_inputs, integers, normal

def constant(x):
    return ops.ones((3,), dtype="float64")

def dead(x):
    return ops.maximum(x - 100.0, 0.0)

def steps(x):
    return x * 0.0 + ops.where(x > 0.0, 1.0, 2.0)

@example_inputs(integers(3))
def whole(n):
    return n + n

def undefined(x):
    return x * np.nan

def healthy(x):
    return x * x

@example_inputs({f"w{k}": normal(8, 16) for k in range(11)})
def many(p):
    return p["w0"] * p["w10"]
"""


def test_checks_that_prove_little_are_told_from_those_that_pass(start, tmp_path):
    process = start("check", "vacuous.py", "--json", "--html", "page.html", vacuous=VACUOUS + MARKED)
    out, _ = process.communicate()
    assert process.returncode == 0, out
    report = json.loads(out)
    assert report["agree"] is True
    checks = {one["function"]: one for one in report["checks"]}
    status = {
        name: {which: cells["toy"]["status"] for which, cells in one["properties"].items()}
        for name, one in checks.items()
    }
    differentiated = ("gradient", "second order", "finite differences")
    for name, reason in [
        ("constant", "the result is the same at other inputs"),
        ("dead", "every result is 0"),
        ("undefined", "no result is finite"),
    ]:
        assert checks[name]["vacuous"][0] == reason
        assert status[name]["value"] == "vacuous"
        assert {status[name][which] for which in differentiated} <= {"vacuous", "note", "none"}
    assert checks["steps"]["vacuous"] == ["the gradient is 0 everywhere"]
    assert status["steps"]["value"] == "ok"
    assert {status["steps"][which] for which in differentiated} == {"vacuous"}
    assert checks["whole"]["vacuous"] == ["no input is a float, so nothing is differentiated"]
    assert status["whole"]["gradient"] == "none"
    for name in ("healthy", "many"):
        assert checks[name]["vacuous"] == []
        assert "vacuous" not in status[name].values()
    assert checks["many"]["heading"] == "{w0: [8, 16], … 11 arrays}"
    assert checks["many"]["inputs"].count("normal(8, 16)") == 11
    page = (tmp_path / "page.html").read_text()
    assert page.count("<section>") == len(checks)
    assert "every result is 0" in page
    assert "<td class=vacuous>vacuous" in page


MARKED = "".join(
    f"\n{name} = example_inputs(normal(3))({name})" for name in ["constant", "dead", "steps", "undefined", "healthy"]
)


def test_a_failure_says_what_is_allowed_and_how_to_repeat_it(start):
    text = "import numpy as np\n\ndef noisy(x):\n    return x * np.random.default_rng().normal()\n"
    process = start("check", "noisy.py", "--seed", "3", noisy=text)
    out, _ = process.communicate()
    assert process.returncode == 1
    assert re.search(r"relative error [\d.e+-]+, [\d.e+-]+ is allowed", out), out
    assert "again: multiop check noisy.py::noisy --backends=toy --dtype=float64 --seed=3" in out


MANY = """
import os
import pathlib
import time

def _noted(x):
    pathlib.Path(f"process {os.getpid()}").touch()
    return x * x

def first(x):
    pathlib.Path(f"process {os.getpid()}").touch()
    while len(list(pathlib.Path().glob("process *"))) < 2:  # until another process runs another function
        time.sleep(0.05)
    return x + x

""" + "".join(f"def f{k}(x):\n    return _noted(x)\n\n" for k in range(7))


class Quiet:
    """A watcher that takes no note."""

    def at(self, *_): ...

    def finished(self, *_): ...

    def ended(self, *_): ...


def test_where_there_are_places_a_backend_has_several_processes(toy_paths, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = [*toy_paths, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setattr(_processes, "places", lambda: 2)
    (tmp_path / "many.py").write_text(MANY)
    request = {"targets": [("many.py", None)], "dtype": "float64", "seed": 0, "timeout": 120, "kernels": True}
    runs = _processes.run_all(["toy"], request, Quiet())
    assert runs["toy"].death == ""
    names = ["first", *(f"f{k}" for k in range(7))]
    assert [task["name"] for task in runs["toy"].tasks] == names
    assert sorted(task["name"] for task in runs["toy"].results) == sorted(names)
    told = [task["properties"]["value"].get("message", "") for task in runs["toy"].results]
    assert told == [""] * len(names)
    assert len(list(tmp_path.glob("process *"))) == 2
    assert [report.name for report in cli._reports(runs, allow_refused=False)] == names


@pytest.mark.parametrize(("cores", "memory", "places"), [(4, 64, 4), (4, 2.5, 2), (4, 0.1, 1), (1, 64, 1)])
def test_processes_fit_the_cores_and_the_memory(monkeypatch, cores, memory, places):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores), raising=False)
    monkeypatch.setattr(_processes, "_free_memory", lambda: int(memory * 2**30))
    assert _processes.places() == places


HOSTILE = """
import os

def asks(x):
    return x * float(input("how many? "))

def fine(x):
    return x * x

def writes(x):
    for file in range(3, 64):
        try:
            os.write(file, b"this is no event\\n")
        except OSError:
            pass
    return x
"""


def test_a_function_neither_reads_the_tasks_nor_writes_events_unnoticed(start):
    process = start("check", "hostile.py", hostile=HOSTILE)
    out, _ = process.communicate()
    assert process.returncode == 1
    assert "value on toy: EOFError" in out
    assert "hostile.py::fine(normal(3))" in out
    assert "the process of toy sent what cannot be read" in out
    assert "1 fails; toy died" in out


def test_the_page_escapes_what_it_shows_and_has_both_numbers():
    cells = {"value": {"jax": _report.Cell("failed", 0.5, "is <b>off</b>\x1b", 1e-13), "toy": _report.Cell("ok", 0.0)}}
    report = _report.Report("<script>.py", "f", "normal(3)", False, cells)
    page = _html.check_page([report], "1 check & more", ["died <i>"], ["multiop check '<script>.py::f'"])
    assert not any(odd in page for odd in ("<script>", "<b>", "<i>", "\x1b"))
    assert "<td>0.5<td>1e-13<td>" in page
    assert "multiop check &#x27;&lt;script&gt;.py::f&#x27;" in page


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((normal(3),), "normal(3)"),
        (
            ({"embedding": normal(8, 16), **{f"w{k}": normal(16) for k in range(10)}},),
            "{embedding: [8, 16], … 11 arrays}",
        ),
        (([np.zeros((2, 20))] * 8, 3), "[[2, 20], … 8 arrays], 3"),
        (({"w": normal(2)}, integers(3)), "{'w': normal(2)}, integers(3, low=-9, high=10)"),
        (("a" * 100,), f"'{'a' * 58}…"),
        ((np.zeros((27, 3)),), "array[27, 3]"),
    ],
)
def test_headings_say_shapes(args, told):
    assert call(*args).abridged() == told


@pytest.mark.parametrize(
    ("gradient", "reason"),
    [
        ([np.zeros(3), np.array([0.0, 1e-300])], ""),
        ([np.zeros(3), np.zeros(())], "the gradient is 0 everywhere"),
        ([np.full(2, np.nan)], "no entry of the gradient is finite"),
        ([np.array([np.nan, 0.0])], ""),
    ],
)
def test_a_gradient_that_proves_nothing(gradient, reason):
    assert why_gradient_is_vacuous(gradient) == reason


@pytest.mark.parametrize(("is_ready", "counted"), [(True, 12.0), (False, 300.0)])
def test_a_worker_that_waits_for_a_core_is_not_out_of_time(monkeypatch, is_ready, counted):
    """Ready for 300 seconds with 12 of CPU, it has had 12; asleep for as long, it has had 300."""
    now, cpu = [1000.0], [5.0]
    monkeypatch.setattr(_processes.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(_processes, "_work_of", lambda _: (cpu[0], is_ready))
    clock = _processes._Clock(0, 300.0)
    for _ in range(600):
        now[0], cpu[0] = now[0] + 0.5, cpu[0] + 0.02
        clock._count()
    assert clock.counted == pytest.approx(counted)
    assert clock.describe() == "; it had 12 s of CPU in 300 s"
    now[0] += 3600  # the command was stopped
    clock._count()
    assert clock.counted < counted + 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the work of a process is read from /proc")
def test_the_work_of_a_process_and_its_children_is_seen():
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    wanted = {busy: lambda cpu, is_ready: is_ready and cpu > 0.5, "input()": lambda _, is_ready: not is_ready}
    for program, is_seen in wanted.items():
        command = [sys.executable, "-c", program]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        try:
            deadline = time.monotonic() + 60
            while not is_seen(*_processes._work_of(process.pid)):
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def test_a_run_of_tests_says_how_far_it_is(monkeypatch):
    lines, seconds = [], iter([0, 10, 40, 300, 330])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    plugins = {"terminalreporter": types.SimpleNamespace(write=lines.append)}
    config = types.SimpleNamespace(pluginmanager=types.SimpleNamespace(get_plugin=plugins.get))
    shown = progress.Progress()
    shown.pytest_sessionstart(types.SimpleNamespace(testscollected=4, config=config))
    for _ in range(4):
        shown.pytest_runtest_logstart()
        shown.pytest_runtest_logfinish()
    assert lines == [
        "\n[###############...............] 50 %, about 40 seconds left\n",
        "\n[######################........] 75 %, about 2 minutes left\n",
    ]
