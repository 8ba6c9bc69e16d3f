"""Fixtures of the tests that need a second backend, whichever frameworks are installed."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop import config
from multiop._loading import registry, settings
from multiop.testing._tiers import asked_tier

TOY = Path(__file__).parent / "toy_backend"


def install_toy(folder):
    """Lay out in `folder` what installing the toy package would, and return the paths to put on `sys.path`."""
    project = tomllib.loads((TOY / "pyproject.toml").read_text())["project"]
    info = folder / "toy_backend-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(points)
    return [str(folder), str(TOY)]


@pytest.fixture
def host_arrays(multiop_backend):
    """Skip the test where NumPy's arrays are the tensors: they keep their dtype, and are what a caller may change."""
    if multiop.op_is_tensor(np.zeros(1)):
        pytest.skip(f"on {multiop_backend}, an array of NumPy is a tensor")


@pytest.fixture
def every_backend():
    """Load what is installed."""
    for name in multiop.available_backends():
        registry.load(name)


@pytest.fixture
def pytester(every_backend, pytester):
    """Run tests within a test: what Python imports meanwhile is forgotten behind it, but by the registry."""
    return pytester


@pytest.fixture
def log_records():
    """The records that TensorFlow logs during one test."""
    records, handler, logger = [], logging.Handler(), logging.getLogger("tensorflow")
    handler.emit = records.append
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.fixture
def toy_paths(tmp_path):
    """The paths on which the toy backend is installed, for a subprocess."""
    return install_toy(tmp_path)


@pytest.fixture
def toy(toy_paths, monkeypatch):
    """Install the third-party backend of `tests/toy_backend` for one test; the value is its name."""
    for path in toy_paths:
        monkeypatch.syspath_prepend(path)
    yield "toy"
    registry._loaded.pop("toy", None)
    for module in [module for module in sys.modules if module.partition(".")[0] == "toy_backend"]:
        del sys.modules[module]


def pytest_collection_modifyitems(items):
    """Lift the limit of a test that runs a file of tests alone: each of those has the limit itself."""
    for item in items:
        if "passed_alone" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture
def week(pytestconfig):
    """The week whose turns run; in the full tier, those of every week."""
    return "every" if asked_tier(pytestconfig) == "full" else pytestconfig.getoption("week")


@pytest.fixture
def passed_alone(request, week):
    """Run the tests of files beside this one in a process of their own, where none may fail; return how many passed.

    The backend is the one that their folder is named after, the week that of this run.
    """

    def run(*names, **variables):
        folder = request.path.parent
        paths = [str(folder / name) for name in names]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--week={week}", *paths]
        environment = os.environ | {"MULTIOP_BACKEND": folder.name} | variables
        done = subprocess.run(command, capture_output=True, text=True, cwd=TOY.parents[1], env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return int(re.search(r"(\d+) passed", done.stdout)[1])

    return run


@pytest.fixture
def keras():
    """Keras on NumPy, for tests marked `cross`: those of porting, which train with theirs, run without these."""
    found = pytest.importorskip("keras")
    assert found.config.backend() == "numpy"  # as `pytest_configure` has it
    return found


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Forget every setting for one test, as in a new process without environment variables and without a file."""
    for variable in settings.VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("MULTIOP_CONFIG", str(tmp_path / "config.toml"))
    before = config.x64()
    monkeypatch.setattr(settings, "floatx", None)
    monkeypatch.setattr(settings, "x64", None)
    monkeypatch.setattr(settings, "narrowing", None)
    monkeypatch.setattr(registry, "_backend", registry._Unloaded())
    settings._file.cache_clear()
    settings._warn_of_unknown.cache_clear()
    yield tmp_path / "config.toml"
    settings._file.cache_clear()
    config._set_x64(before)
