"""The results of the shared suite are kept and merged, as JSON."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from multiop._loading import registry
from multiop.testing import _results
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
    done = run_suite(backend, path, "-k", "op_floor and not floor_divide")
    assert done.returncode == 0, done.stdout + done.stderr
    found = _results.read(path)
    assert found.backends == [backend]
    assert found.versions == {backend: {backend: _results.version(backend), "multiop": _results.own_version()}}
    what = {one.what for one in found.cases.values()}
    assert what == {"value", "gradient", "second order", "forward mode", "vmap", "compiled", "pinned answers"}
    assert all(one.op == "op_floor" and one.outcome == PASSED for one in found.cases.values())
    assert {one.case for one in found.cases.values() if one.what == "value"} >= {"float32", "float64", "bfloat16"}


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


def test_runs_are_merged_by_case(tmp_path):
    path = tmp_path / "results.json"
    EXAMPLE.write(path)
    again = results(
        ("op_add", "jax", "value", "float64", PASSED, 1.0),
        ("op_abs", "jax", "value", "float32", PASSED, 2.0),
        versions={"jax": VERSIONS["jax"]},
    )
    again.write(path)
    found = _results.read(path)
    assert found.versions == VERSIONS
    assert found.cases == EXAMPLE.cases | again.cases
    assert found.cases["op_add", "jax", "value", "float64"].outcome == PASSED  # it had failed


@pytest.mark.parametrize("package", ["jax", "multiop"])
def test_nothing_of_another_version_stays(tmp_path, package):
    path = tmp_path / "results.json"
    before = results(*(tuple(vars(one).values()) for one in EXAMPLE.cases.values()))
    before.write(path)
    newer = VERSIONS["jax"] | {package: "9.9"}
    again = results(("op_add", "jax", "value", "float32", PASSED, 1.0), versions={"jax": newer})
    again.write(path)
    found = _results.read(path)
    assert found.versions == VERSIONS | {"jax": newer}
    of_torch = {key: one for key, one in EXAMPLE.cases.items() if one.backend == "torch"}
    assert found.cases == of_torch | again.cases


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "\x00",
        '{"versions": {}, "cases": [{"op": 1}]}',
        '{"versions": {"torch": "2.0"}, "cases": []}',
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="holds no results") as refused:
        _results.read(path)
    assert "Error(" not in str(refused.value)


@pytest.mark.once
def test_a_file_of_something_else_is_refused_before_the_run(backend, tmp_path):
    path = tmp_path / "results.json"
    path.write_text("{}")
    done = run_suite(backend, path, "-k", "op_logical_not and value")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--multiop-results: {path} holds no results" in done.stderr
    assert path.read_text() == "{}"
