"""What the `multiop` command makes of hostile input: files that never end, names that are escape sequences."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from multiop.cli import app
from multiop.testing import _results

ROOT = Path(__file__).parent.parent


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder; return its result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return invoke


def refused(result, message):
    assert result.exit_code == 2
    assert message in result.stderr
    assert "\x1b" not in result.stderr
    assert result.stdout == ""


SHADOWS = ["typing", "sitecustomize", "usercustomize", "json", "math", "numbers", "multiop"]

ESCAPES = """
import multiop
import beside

RED = "\\x1b[31m"

class Odd:
    def __repr__(self):
        return RED + "odd"

@multiop.testing.example_inputs(multiop.testing.normal(2), Odd())
def escapes(x, odd):
    raise ValueError(RED + "red\\r\\u202e\\udc80")

class Unreadable(BaseException):
    def __str__(self):
        raise KeyError("no message")

@multiop.testing.example_inputs(multiop.testing.normal(2))
def unreadable(x):
    raise Unreadable

@multiop.testing.example_inputs(multiop.testing.normal(2))
def named(x):
    return x + beside.VALUE
globals()[RED + "name\\n"] = named
"""


def hostile_check(run, tmp_path, monkeypatch, backend, *options):
    """Check a file beside which lie modules of the names of Python's own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for where in (tmp_path, folder):
        for name in SHADOWS:
            (where / f"{name}.py").write_text(
                f"open({str(tmp_path / 'was_run')!r}, 'a').write('{name} in {where}; ')\n"
            )
    (folder / "beside.py").write_text("VALUE = 1.0\n")
    file = folder / "esc\x1b[31m\nape.py"
    file.write_text(ESCAPES, encoding="utf-8")
    # an empty entry is the current folder; where multiop itself is imported from comes behind it
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(folder), str(ROOT)]))
    result = run("check", f"folder/{file.name}", "--backends", backend, *options)
    assert not (tmp_path / "was_run").exists(), (tmp_path / "was_run").read_text()
    return result


def test_no_module_beside_a_file_is_run_for_pythons_own_and_no_escape_sequence_comes_out(run, tmp_path, monkeypatch):
    name = "numpy"  # which starts fastest
    result = hostile_check(run, tmp_path, monkeypatch, name)
    assert result.exit_code == 1, result.output
    for odd in ("\x1b", "\r", "\u202e", "\udc80"):
        assert odd not in result.output
    assert "folder/esc\\x1b[31m\\nape.py::escapes(normal(2), \\x1b[31modd)" in result.stdout
    assert f"value on {name}: ValueError: \\x1b[31mred\\r\\u202e\\udc80" in result.stdout
    assert f"value on {name}: Unreadable: (KeyError in its message)" in result.stdout
    assert "::\\x1b[31mname\\n(normal(2))" in result.stdout  # and it imported the modules next to it
    assert f"4 checks in float64, seed 0, on {name}" in result.stdout
    assert "2 fail" in result.stdout


@pytest.mark.tier("full")
def test_json_holds_escape_sequences_escaped(run, tmp_path, monkeypatch, backend):
    result = hostile_check(run, tmp_path, monkeypatch, backend, "--json")
    assert result.exit_code == 1, result.output
    assert "\x1b" not in result.stdout
    checks = {one["function"]: one for one in json.loads(result.stdout)["checks"]}
    assert checks["\x1b[31mname\n"]["agrees"]
    assert "\x1b[31mred" in checks["escapes"]["properties"]["value"][backend]["message"]


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def loop(path):
    path.symlink_to(path.name)


def folder(path):
    path.mkdir()


def vast(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


def writes(content):
    def write(path):
        path.write_bytes(content)

    return write


DEEP = 100_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pipe, "odd.py is not a regular file"),
        (device, "odd.py is not a regular file"),
        (loop, "there is no file"),
        (vast, "odd.py has more than"),
        (writes(b"x = " + b"-" * DEEP + b"1\n"), "odd.py is nested too deeply for Python"),
        (writes(b"x = " + b"(" * DEEP + b"\n"), "odd.py, line 1: too many nested parentheses"),
        (writes(b"x = 1\0\n"), "null bytes"),
        (writes("# coding: utf-16\nx = 1\n".encode("utf-16")), "odd.py"),
        (writes(b"x = '\xff'\n"), "odd.py"),
    ],
)
@pytest.mark.parametrize("given", ["odd.py", "."])
def test_a_file_that_cannot_be_read_as_python(run, tmp_path, make, message, given):
    make(tmp_path / "odd.py")
    refused(run("check", given), message)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "names no file"),
        ("::f", "names no file"),
        ("a\0.py", "there is no file a\\x00.py"),
        ("\x1b[31mred.py", "there is no file \\x1b[31mred.py"),
        ("\udc80.py", "there is no file \\udc80.py"),
        ("x\0/a.py", "there is no file x\\x00/a.py"),
        ("a" * 5000 + ".py", "cannot be read: File name too long"),
        ("a" * 5000, "cannot be read: File name too long"),
    ],
)
def test_a_path_that_is_none(run, path, message):
    refused(run("check", path), message)


def test_a_misspelt_file_is_told_of_the_one_beside_it(run, tmp_path):
    (tmp_path / "mine.py").write_text("")
    refused(run("check", "minee.py"), "there is no file minee.py; did you mean 'mine.py'?")


@pytest.mark.parametrize("arguments", [("torch",), ("mine.py", "torch")])
def test_a_backend_among_the_files(run, tmp_path, arguments):
    (tmp_path / "mine.py").write_text("")
    message = "torch is a backend; choose backends with --backends, and commas between them"
    refused(run("check", *arguments), message)


def test_a_page_that_cannot_be_written_is_told_of_before_the_work(run, tmp_path):
    (tmp_path / "mine.py").write_text("raise SystemError('it was run')")
    refused(run("check", "mine.py", "--html", "nowhere/page.html"), "cannot be written: there is no folder nowhere")


def test_a_folder_that_holds_itself_is_looked_at_once(run, tmp_path):
    (tmp_path / "folder.py").symlink_to(tmp_path)
    refused(run("check", "."), "there are no Python files in .")


@pytest.mark.parametrize("variable", ["MULTIOP_CONFIG", "XDG_CONFIG_HOME"])
def test_info_tells_of_a_home_folder_that_there_is_not(run, monkeypatch, variable):
    monkeypatch.delenv("MULTIOP_CONFIG", raising=False)
    monkeypatch.setenv(variable, "~nosuchuser/config.toml")
    result = run("info")
    assert result.exit_code == 2
    assert f"wrong: {variable}='~nosuchuser/config.toml': there is no such home folder" in " ".join(
        result.stdout.split()
    )


# results of the suite


CASE = {"op": "op_a", "backend": "torch", "what": "value", "case": "float32", "outcome": "passed"}


def results(*cases, **changes):
    return json.dumps({"versions": {}, "cases": [CASE | case for case in cases]} | changes).encode()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (pipe, "not a regular file"),
        (device, "not a regular file"),
        (folder, "not a regular file"),
        (loop, "symbolic links"),
        (vast, "more than"),
        (writes(b"[" * DEEP), "nested too deeply"),
        (writes(b'{"versions": ' + b'{"a":' * DEEP), "nested too deeply"),
        (writes(b"1" * 5000), "no results of the suite"),
        (writes(b"\xff\xfe[\0"), "no results of the suite"),
        (writes(b"null"), "no results of the suite"),
        (writes(results({"op": 5})), "not an outcome of a case"),
        (writes(results({"outcome": "perhaps"})), "not an outcome of a case"),
        (writes(results({"ulps": "1"})), "ulps must be a number"),
        (writes(results({"nonesuch": 1})), "nonesuch"),
        (writes(results(versions={"a": ["b"]})), "an object of objects"),
        (writes(results(versions={"a": {"b": 1}})), "a text is expected"),
    ],
)
def test_a_file_that_holds_no_results(tmp_path, make, message):
    make(path := tmp_path / "results.json")
    with pytest.raises((OSError, ValueError), match=message):
        _results.read(path)
