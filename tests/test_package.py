"""What is published: the wheel, the source distribution, and what stands around them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import multiop
from multiop.cli import app

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"


def built(what, folder, into):
    """Build a distribution of the tree in `folder`, with the build backend alone and no network; return its path."""
    command = [sys.executable, "-c", BUILD, f"build_{what}", str(into)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return into / done.stdout.split()[-1]


@pytest.mark.tier("full")
def test_wheel_of_the_source_distribution(tmp_path):
    """The source distribution builds the wheel, which has the package, its marker of types, and no tests."""
    source = built("sdist", ROOT, tmp_path)
    with tarfile.open(source) as file:
        file.extractall(tmp_path, filter="data")
    tree = tmp_path / source.name.removesuffix(".tar.gz")
    assert not [name for name in os.listdir(tree) if name in (".nox", ".venv", "build", ".git")]
    assert {"tests", "docs", "examples", "noxfile.py", "constraints.txt", "LICENSE"} <= {*os.listdir(tree)}
    wheel = built("wheel", tree, tmp_path)
    assert wheel.stat().st_size < 1_420_000
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        metadata = file.read(f"multiop-{PROJECT['version']}.dist-info/METADATA").decode()
    assert "multiop/py.typed" in names
    assert "multiop/testing/check.html" in names
    assert {name.partition("/")[0] for name in names} == {"multiop", f"multiop-{PROJECT['version']}.dist-info"}
    # multiop.testing is the product, and its suite of rows is what a third-party backend runs
    assert [name for name in names if re.search(r"(^|/)(tests|conftest)\b|test_(?!suite)", name)] == []
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "multiop").rglob("*.py")}
    assert package <= {*names}
    for name in ("torch", "jax", "tensorflow", "cpu", "all"):
        assert f"Provides-Extra: {name}\n" in metadata


def test_classifiers_name_every_python_that_is_tested():
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    tested = {*re.findall(r'\("\w+", "(3\.\d+)", "', text)}
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert named == tested
    assert (ROOT / "multiop/py.typed").exists()


def test_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert multiop.__version__ == PROJECT["version"]


def test_the_first_commands_of_the_readme():
    """They are what a stranger types, and what CI runs."""
    found = re.findall(r"^python3 -m venv .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert found == [
        "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e . "
        "&& .venv/bin/multiop check examples/log1pexp.py",
        "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[cpu,examples,porting]' "
        "&& .venv/bin/multiop check examples",
        "python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt nox && .venv/bin/nox",
    ]


def test_the_readme_ports_what_it_shows(tmp_path, monkeypatch):
    """Its second command installs what the port needs; the test of porting has the numbers."""
    pytest.importorskip("torch")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, shown = re.search(r"```python\n(import torch\n.*?)```\n\n```console\n(.*?)```", readme, re.S).groups()
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(program, encoding="utf-8")
    command, *told = shown.splitlines()
    found = CliRunner().invoke(app, [*command.split()[2:], "--backends=torch"])
    assert found.exit_code == 0, found.output
    printed = [line for line in found.output.splitlines() if line in told]
    assert printed[:1] == told[:1] and any(line.startswith("torch ") for line in found.output.splitlines())


def test_constraints_are_sorted_and_pin_once():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    names = [re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines]
    assert lines == sorted(lines, key=str.lower)
    assert len(names) == len({*names})
