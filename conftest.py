"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import gc
import importlib.util
import itertools
import sys

if importlib.util.find_spec("torch"):  # torch must come before TensorFlow in one process
    import torch

import pytest

FINISHED = itertools.count(1)
pytest_plugins = ["multiop.testing.plugin"]


def pytest_addoption(parser):
    parser.addoption("--backends", dest="multiop_backends", default=None, help="the same as --multiop-backends")
    parser.addoption("--tier", dest="multiop_tier", default=None, help="the same as --multiop-tier")
    parser.addoption("--alarms", action="store_true", help="look for false alarms in 200 functions at 20 seeds")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "once: does not depend on the backend, so that outside the full tier one backend is enough"
    )
    config.addinivalue_line(
        "markers", "compiler: about what PyTorch's compiler makes of a program, so that it runs in every tier"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave to the full tier what depends on no backend, and its repeats on the others."""
    from multiop.testing.plugin import backends

    names = backends(config)
    one = "jax" if "jax" in names else names[0]  # the one that starts fastest
    for item in items:
        if item.get_closest_marker("once") and item.callspec.params["multiop_backend"] != one:
            item.add_marker(pytest.mark.tier("full"), append=False)


@pytest.fixture
def backend(multiop_backend):
    """Run the test with this backend active; the value is the backend's name."""
    return multiop_backend


@pytest.fixture(scope="session", autouse=True)
def _traced_alone(pytestconfig):
    """Outside the full tier, have PyTorch run what it has traced as it is: its compiler takes seconds each time."""
    from multiop.testing._several import traced_alone
    from multiop.testing.plugin import asked_tier, backends

    with traced_alone(asked_tier(pytestconfig) != "full" and "torch" in backends(pytestconfig)):
        yield


@pytest.fixture(autouse=True)
def _compiled(request):
    """Give a test that is about PyTorch's compiler that compiler."""
    if "torch" in sys.modules and request.node.get_closest_marker("compiler"):
        with torch.compiler.set_stance("default"):
            yield
    else:
        yield


def pytest_runtest_teardown():
    """Drop what the frameworks have compiled, once in 250 tests: it grows by gigabytes."""
    if next(FINISHED) % 250 == 0:
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
        if "torch._dynamo" in sys.modules:
            sys.modules["torch"].compiler.reset()
        gc.collect()
