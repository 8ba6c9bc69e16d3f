"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import gc
import importlib.util
import itertools
import sys

if importlib.util.find_spec("torch"):  # torch must come before TensorFlow in one process
    import torch  # noqa: F401

import pytest

FINISHED = itertools.count(1)
pytest_plugins = ["multiop.testing.plugin"]


def pytest_addoption(parser):
    parser.addoption("--backends", dest="multiop_backends", default=None, help="the same as --multiop-backends")
    parser.addoption("--alarms", action="store_true", help="look for false alarms in 200 functions at 20 seeds")


@pytest.fixture
def backend(multiop_backend):
    """Run the test with this backend active; the value is the backend's name."""
    return multiop_backend


def pytest_runtest_teardown():
    """Drop what the frameworks have compiled, once in 250 tests: it grows by gigabytes."""
    if next(FINISHED) % 250 == 0:
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
        if "torch._dynamo" in sys.modules:
            sys.modules["torch"].compiler.reset()
        gc.collect()
