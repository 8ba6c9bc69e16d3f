"""The results of the shared suite are kept, merged and shown: JSON, table, page."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from multiop._loading import registry
from multiop.testing import _html, _results
from multiop.testing._divergences import DIVERGENCES, agrees
from multiop.testing._results import FAILED, KNOWN, PASSED, Result, Results

ROOT = Path(__file__).parent.parent.parent


VERSIONS = {"torch": {"torch": "2.0", "multiop": "1.2.3"}, "jax": {"jax": "0.1", "multiop": "1.2.3"}}


def results(*cases, versions=VERSIONS):
    found = Results(dict(versions))
    for case in cases:
        found.add(Result(*case))
    return found


def test_a_package_is_found_under_the_name_of_its_nightly_builds(monkeypatch):
    def version(distribution):
        if distribution == "tf-nightly":
            return "2.99.0.dev1"
        raise importlib.metadata.PackageNotFoundError(distribution)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: {"tensorflow": ["tf-nightly"]})
    monkeypatch.setattr(registry, "is_package", lambda name: name == "tensorflow")
    assert _results.version("tensorflow") == "2.99.0.dev1"
    assert _results.is_unknown(_results.version("jax"))


EXAMPLE = results(
    ("op_add", "torch", "value", "float32", PASSED, 0.5),
    ("op_add", "torch", "value", "float64", PASSED, 0.25),
    ("op_add", "jax", "value", "float32", PASSED, 3.0),
    ("op_add", "jax", "value", "float64", FAILED, None, "op_add is off </script><b>by 1</b>"),
    ("op_add", "torch", "vmap", "", PASSED, 0.0),
    ("op_add", "jax", "vmap", "", KNOWN, None, "no rule (https://example.org/1)"),
    ("op_max", "torch", "value", "float32", PASSED, 0.0),
    ("op_max", "jax", "value", "float32", PASSED, 0.0),
    ("op_exp", "torch", "gradient", "", PASSED, 1.0),
)


def run_suite(backend, path, *options):
    command = [sys.executable, "-m", "pytest", "--pyargs", "multiop.testing", "-p", "multiop.testing.plugin", "-q"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    options = [f"--multiop-backends={backend}", f"--multiop-results={path}", *options]
    return subprocess.run([*command, *options], cwd=path.parent, env=environment, capture_output=True, text=True)


@pytest.mark.once
def test_a_run_is_kept(backend, tmp_path):
    path = tmp_path / "results.json"
    done = run_suite(backend, path, "-k", "(op_floor and not floor_divide) or (divergence and abs)")
    assert done.returncode == 0, done.stdout + done.stderr
    found = _results.read(path)
    assert found.backends == [backend]
    assert found.versions == {backend: {backend: _results.version(backend), "multiop": _results.own_version()}}
    what = {one.what for one in found.cases.values()}
    assert what == {"value", "gradient", "second order", "forward mode", "vmap", "compiled", "pinned answers"}
    assert all(one.op == "op_floor" and one.outcome == PASSED for one in found.cases.values())
    assert {one.case for one in found.cases.values() if one.what == "value"} >= {"float32", "float64", "bfloat16"}
    natives = {"torch": "[0.]", "jax": "[1.]", "tensorflow": "[0.]"}
    assert found.natives == ({"gradient of abs at 0": {backend: natives[backend]}} if backend in natives else {})


@pytest.mark.tier("full")
def test_the_quick_run_leaves_out_what_is_implied(backend, tmp_path):
    path = tmp_path / "results.json"
    done = run_suite(backend, path, "-k", "op_logical_not and (value or compiled)", "--multiop-tier=default")
    assert done.returncode == 0, done.stdout + done.stderr
    cases = _results.read(path).cases
    dtypes = {one.case.partition(",")[0] for one in cases.values() if one.what == "value"}
    assert {"bool", "int32", "float32", "bfloat16"} <= dtypes
    assert not {"float16", "float64", "int8", "uint8", "int64", "complex128"} & dtypes
    (case,) = [one.case for one in cases.values() if one.what == "compiled"]
    assert case.startswith("first calls")  # not the case of all calls


def test_a_dtype_counts_once_however_it_was_checked():
    cases = [
        ("op_add", "jax", "float32"),
        ("op_add", "jax", "int32, first calls, compiled"),
        ("op_add", "torch", "float32"),
    ]
    given = [
        (op, name, "value", case, PASSED, 1.0) for op, name, case in [*cases, ("op_add", "torch", "int32, first calls")]
    ]
    given.append(("op_add", "jax", "vmap", "int32", FAILED, None))
    assert "| op_add | all 2 | all 2 |" in _results.table(results(*given, versions=VERSIONS))


def test_runs_are_merged_by_case(tmp_path):
    path = tmp_path / "results.json"
    EXAMPLE.write(path)
    again = results(
        ("op_add", "jax", "value", "float64", PASSED, 1.0),
        ("op_abs", "jax", "value", "float32", PASSED, 2.0),
        versions={"jax": VERSIONS["jax"]},
    )
    again.natives = {"a": {"jax": "1"}}
    again.write(path)
    found = _results.read(path)
    assert found.versions == VERSIONS
    assert found.natives == {"a": {"jax": "1"}}
    assert found.cases == EXAMPLE.cases | again.cases
    assert found.cases["op_add", "jax", "value", "float64"].outcome == PASSED  # it had failed


@pytest.mark.parametrize("package", ["jax", "multiop"])
def test_nothing_of_another_version_stays(tmp_path, package):
    path = tmp_path / "results.json"
    before = results(*(tuple(vars(one).values()) for one in EXAMPLE.cases.values()))
    before.natives = {"a": {"jax": "1", "torch": "2"}, "b": {"jax": "3"}}
    before.write(path)
    newer = VERSIONS["jax"] | {package: "9.9"}
    again = results(("op_add", "jax", "value", "float32", PASSED, 1.0), versions={"jax": newer})
    again.write(path)
    found = _results.read(path)
    assert found.versions == VERSIONS | {"jax": newer}
    assert found.natives == {"a": {"torch": "2"}}
    of_torch = {key: one for key, one in EXAMPLE.cases.items() if one.backend == "torch"}
    assert found.cases == of_torch | again.cases
    others = {"jax": "0.1", "multiop": "1.2.3"} | {package: "9.9"}
    assert set(found.packages) == {"torch 2.0", "multiop 1.2.3", *(f"{name} {of}" for name, of in others.items())}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "\x00",
        '{"versions": {}, "natives": {}, "cases": [{"op": 1}]}',
        '{"versions": {"torch": "2.0"}, "natives": {}, "cases": []}',
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="holds no results"):
        _results.read(path)


@pytest.mark.once
def test_a_file_of_something_else_is_refused_before_the_run(backend, tmp_path):
    path = tmp_path / "results.json"
    path.write_text("{}")
    done = run_suite(backend, path, "-k", "op_logical_not and value")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--multiop-results: {path} holds no results" in done.stderr
    assert path.read_text() == "{}"


def test_the_table():
    assert "\nMeasured with jax 0.1, multiop 1.2.3, torch 2.0.\n" in _results.table(EXAMPLE)
    lines = [line for line in _results.table(EXAMPLE).splitlines() if line.startswith("| op_")]
    assert lines == [
        "| op_add | jax: failed float64 | jax: failed float64 | – | – | – | jax: known failure | – | – |",
        "| op_exp | – | – | jax: not run | – | – | – | – | – |",
    ]
    assert "\n1 of 3 ops are right on jax, torch: in values" in _results.table(EXAMPLE)
    right = results(*(tuple(vars(one).values()) for one in EXAMPLE.cases.values() if one.op == "op_max"))
    assert "\n1 of 1 ops are right" in _results.table(right) and "|" not in _results.table(right)


def test_the_page_holds_the_results_and_no_way_out_of_the_script():
    page = _html.page(EXAMPLE)
    assert page.count("</script>") == 1
    (text,) = re.findall(r"const data = (.*);", page)
    data = json.loads(text)
    assert len(data["cases"]) == len(EXAMPLE.cases)
    assert data["packages"] == ["jax 0.1", "multiop 1.2.3", "torch 2.0"]
    assert not re.search(r"(src|href)=", page)  # it needs nothing else


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
@pytest.mark.parametrize(("search", "shown"), [("", ["op_add", "op_exp", "op_max"]), ("MAX", ["op_max"])])
def test_the_page_in_a_browser(tmp_path, search, shown):
    path = tmp_path / "report.html"
    path.write_text(_html.page(EXAMPLE), encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [str(BROWSER), *options, f"{path.as_uri()}#{search}"], capture_output=True, text=True, timeout=120
    )
    assert re.findall(r"<tr><th>(op_\w+)</th>", done.stdout) == shown
    assert f"{len(shown)} of 3 ops" in done.stdout
    assert "CONSOLE" not in done.stderr  # where script errors are reported
    assert ('class="cell failed"' in done.stdout) == (not search)


def test_the_command(tmp_path):
    def report(*arguments):
        command = [sys.executable, "-m", "multiop.cli", "report", *arguments]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    EXAMPLE.write(tmp_path / "results.json")
    done = report("results.json", "--table", "ops.md")
    assert done.returncode == 1  # something failed
    assert done.stdout.strip() == "report.html: 9 cases on jax, torch; 1 failed, 1 known failures"
    assert (tmp_path / "ops.md").read_text(encoding="utf-8") == _results.table(EXAMPLE)
    assert "multiop conformance" in (tmp_path / "report.html").read_text(encoding="utf-8")
    missing = report("no_such_file.json")
    assert missing.returncode == 2
    assert missing.stderr.startswith("multiop: ")
    assert "Traceback" not in missing.stderr


def test_a_wrong_answer_is_no_agreement(backend):
    for divergence in DIVERGENCES:
        assert agrees(divergence.found(), divergence.answer)
    assert not agrees(DIVERGENCES[0].found(), [1.0])
    assert not agrees(DIVERGENCES[0].found(), [[0.0]])
