"""The command that proves multiop on an accelerator: what it says where a package or a device is missing."""

import json
import subprocess
import sys
from types import SimpleNamespace

import accelerator
import pytest

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
    found = accelerator.has
    monkeypatch.setattr(accelerator, "has", lambda name: name != "optree" and found(name))
    monkeypatch.setattr(sys, "argv", ["accelerator.py", f"--out={tmp_path}"])
    assert accelerator.main() == 2
    assert "missing: optree." in capsys.readouterr().out


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
    assert rows[0]["outcome"] == "out of time"
