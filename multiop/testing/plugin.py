"""Run tests on each backend under pytest: the option `--multiop-backends` and the fixture `multiop_backend`.

pytest loads this by itself where multiop is installed. To hold a backend, your own included, against the shared suite:
`pytest --pyargs multiop.testing --multiop-backends=NAME`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--multiop-backends`."""
    parser.addoption(
        "--multiop-backends",
        dest="multiop_backends",
        default=None,
        metavar="NAMES",
        help="comma-separated backends to test (default: all installed ones); one that is missing fails",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of the suite."""
    config.addinivalue_line(
        "markers", "cross: compares backends with each other, so it needs several of them installed"
    )
    config.addinivalue_line("markers", "compiled: compiles, which takes seconds")


def backends(config: pytest.Config) -> list[str]:
    """Return the names of the backends to test."""
    import multiop

    asked = config.getoption("multiop_backends")
    names = [name.strip() for name in asked.split(",") if name.strip()] if asked else multiop.available_backends()
    if "tensorflow" in names and importlib.util.find_spec("torch"):
        importlib.import_module("torch")  # loaded after TensorFlow in one process, PyTorch may crash
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses `multiop_backend` once per backend."""
    if "multiop_backend" in metafunc.fixturenames:
        metafunc.parametrize("multiop_backend", backends(metafunc.config), indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is known to fail as such, strictly."""
    from .known_failures import KNOWN_FAILURES

    for item in items:
        parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if "multiop_backend" in parameters:
            for known in KNOWN_FAILURES:
                if known.matches(getattr(item, "originalname", item.name), parameters):
                    reason = f"{known.reason} ({known.url})"
                    item.add_marker(pytest.mark.xfail(reason=reason, raises=known.raises, strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Report what a third-party backend declares as not implemented as expected to fail, with the reason it gives."""
    from multiop import _registry, errors

    name = getattr(pyfuncitem, "callspec", None) and pyfuncitem.callspec.params.get("multiop_backend")
    try:
        return (yield)
    except errors.UnsupportedError as error:
        if name is None or name in _registry.BUILT_IN:  # theirs are listed in known_failures.py, each with its URL
            raise
        pytest.xfail(f"{name}: {error}")


@pytest.fixture
def multiop_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test with one backend active; the value is the backend's name."""
    import multiop

    with multiop.use_backend(request.param):
        yield request.param


@pytest.fixture
def multiop_x64() -> Iterator[None]:
    """Run the test with the 64-bit mode on."""
    import multiop

    before = multiop.x64()
    multiop.enable_x64()
    try:
        yield
    finally:
        multiop.enable_x64(before)
