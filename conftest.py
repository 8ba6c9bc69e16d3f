"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import importlib.util

if importlib.util.find_spec("torch"):  # torch must come before TensorFlow in one process
    import torch  # noqa: F401

import pytest

import multiop


def pytest_addoption(parser):
    parser.addoption("--backends", default=None, help="comma-separated backends to test; one that is asked for and missing fails")


def _backends(config):
    asked = config.getoption("--backends")
    return asked.split(",") if asked else multiop.available_backends()


def pytest_generate_tests(metafunc):
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", _backends(metafunc.config), indirect=True)


@pytest.fixture
def backend(request):
    """Run the test with this backend active; the value is the backend's name."""
    with multiop.use_backend(request.param):
        yield request.param
