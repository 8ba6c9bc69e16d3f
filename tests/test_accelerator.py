"""The command that proves multiop on an accelerator: what it says where a package or a device is missing."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import accelerator
import pytest
from failures import Failures

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.once


@pytest.fixture
def runs(backend, monkeypatch, tmp_path):
    """Run the command with a backend that knows some devices; what its parts run is kept, and passes."""
    kept = []

    def run(*arguments, devices=(), kind=""):
        def ran(command, **options):
            if command[1] == "-c":
                return SimpleNamespace(stdout=json.dumps({"version": "1.0", "devices": devices, "kind": kind}))
            kept.append(command[1:])
            return SimpleNamespace(returncode=0)

        monkeypatch.setattr(subprocess, "run", ran)
        monkeypatch.setattr(sys, "argv", ["accelerator.py", f"--backends={backend}", f"--out={tmp_path}", *arguments])
        return accelerator.main(), kept, json.loads((tmp_path / "results.json").read_text())

    return run


def test_what_is_missing_is_named(runs, monkeypatch, capsys, tmp_path):
    imported = importlib.import_module

    def lacking(name):
        lost = {"optree": "optree", "scipy": "scipy", "pytest": "pluggy"}.get(name)
        if lost is not None:
            raise ModuleNotFoundError(f"No module named {lost!r}", name=lost)
        return imported(name)

    monkeypatch.setattr(importlib, "import_module", lacking)
    monkeypatch.setattr(sys, "argv", ["accelerator.py", f"--out={tmp_path}"])
    assert accelerator.main() == 2
    said = capsys.readouterr().out
    assert "missing: scipy, optree, pytest (No module named 'pluggy')." in said
    assert "pip install --target .deps optree pytest\n" in said  # with what they need
    assert "pip install --no-deps --target .deps scipy\n" in said


def test_a_part_that_does_not_exist(runs, capsys):
    with pytest.raises(SystemExit):
        runs("--parts=sweet")
    assert "no part is called sweet; there are suite, waits" in capsys.readouterr().err


def test_without_a_device_it_says_what_is_left_out(runs, capsys):
    status, kept, rows = runs("--parts=suite,waits,rows")
    assert status == 0
    assert [row["outcome"].startswith("left out: there is no acc") for row in rows] == [False, True, True]
    assert "no accelerator" in capsys.readouterr().out
    assert len(kept) == 1
    assert "--tier=quick" in kept[0]


def test_on_a_device_all_parts_run_there(runs):
    _, kept, rows = runs("--parts=suite,waits,rows,kernels", devices=["one GPU"], kind="cuda")
    assert len(kept) == 4
    assert all(any(word.endswith("device=cuda") for word in command) for command in kept)
    assert {row["device"] for row in rows} == {"cuda"}


def test_a_part_that_fails_is_the_status(runs, monkeypatch):
    monkeypatch.setattr(accelerator, "outcome", lambda *_: {"status": 1, "outcome": "1 failed"})
    assert runs("--parts=suite")[0] == 1


def test_a_part_that_outlasts_the_time_is_said(runs, monkeypatch):
    def late(command, **options):
        raise subprocess.TimeoutExpired(command, options["timeout"])

    outcome = accelerator.outcome

    def timed(*arguments):
        monkeypatch.setattr(subprocess, "run", late)
        return outcome(*arguments)

    monkeypatch.setattr(accelerator, "outcome", timed)
    status, _, rows = runs("--parts=suite")
    assert status == 1
    assert rows[0]["outcome"] == "out of time, 0 failed"


def test_a_part_that_has_no_time_left_is_not_begun(runs):
    status, kept, rows = runs("--parts=suite,counts", "--minutes=0")
    assert (status, kept) == (1, [])
    assert rows[0]["outcome"] == "not begun: out of time"


def test_failures_outlast_a_run_that_is_cut_short(runs, monkeypatch, capsys, tmp_path):
    def late(command, **options):
        (path,) = [word.removeprefix("--failures=") for word in command if word.startswith("--failures=")]
        Path(path).write_text("tests/a.py::test_b: no\ntests/a.py::test_c: neither\n")
        options["stdout"].write("..F. [ 12%]\n.F [ 41%]")
        raise subprocess.TimeoutExpired(command, options["timeout"])

    outcome = accelerator.outcome

    def timed(*arguments):
        monkeypatch.setattr(subprocess, "run", late)
        return outcome(*arguments)

    monkeypatch.setattr(accelerator, "outcome", timed)
    status, _, rows = runs("--parts=suite")
    assert status == 1
    assert rows[0]["failures"] == ["tests/a.py::test_b: no", "tests/a.py::test_c: neither"]
    summary = (tmp_path / "summary.txt").read_text()
    assert summary == capsys.readouterr().out
    assert "out of time at 41%, 2 failed\n    tests/a.py::test_b: no\n    tests/a.py::test_c: neither\n" in summary


def test_each_failure_is_a_line_as_it_happens(backend, pytester, tmp_path):
    path = tmp_path / "failures"
    body = """
        import pathlib, pytest

        def test_a(): assert "one\\nof two" == "two"
        def test_b(): assert len(pathlib.Path({!r}).read_text().splitlines()) == 2
        def test_c(): pytest.skip("not this")
        @pytest.mark.xfail
        def test_d(): assert False
        @pytest.mark.xfail(strict=True)
        def test_e(): pass
        @pytest.fixture
        def broken(): raise KeyError("x" * 1000)
        def test_f(broken): pass
        """
    pytester.makepyfile(test_it=body.format(str(path)), test_other="import nowhere")
    pytester.runpytest_inprocess("-pno:randomly", "--continue-on-collection-errors", plugins=[Failures(path)])
    lines = path.read_text().splitlines()
    names = ["test_other.py", *(f"test_it.py::test_{letter}" for letter in "aef")]
    assert [line.partition(": ")[0] for line in lines] == names
