"""Run tests on each backend under pytest: the option `--multiop-backends` and the fixture `multiop_backend`.

A test belongs to a tier, the smallest run that includes it: `quick`, `default` or `full`. The marker `multiop_tier`
sets it; the shared suite computes it for each of its tests. `--multiop-tier` selects the run.

pytest loads this plugin automatically if multiop is installed. To test a backend, including your own, with the shared
suite: `pytest --pyargs multiop.testing --multiop-backends=NAME`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ._tiers import TIERS, asked_backends, asked_tier, chosen_ops


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--multiop-backends`."""
    parser.addoption(
        "--multiop-backends",
        dest="multiop_backends",
        default=None,
        metavar="NAMES",
        help="comma-separated backends to test (default: all installed ones); one that is missing fails",
    )
    parser.addoption(
        "--multiop-tier",
        dest="multiop_tier",
        default=None,
        choices=TIERS,
        help="quick: each op's value, gradient and pinned answers; default: every property of the first calls of each "
        "op, in a dtype of each kind; full, if nothing is said: every property of every call in every dtype",
    )
    parser.addoption(
        "--multiop-device",
        dest="multiop_device",
        default=None,
        metavar="NAME",
        help="where tensors are made: a device's name, as multiop.device gives it, such as cuda or cpu:1",
    )
    parser.addoption(
        "--multiop-ops",
        dest="multiop_ops",
        default=None,
        metavar="NAMES",
        help="comma-separated ops: run what the shared suite proves of these alone, and their docstrings' examples",
    )
    parser.addoption(
        "--multiop-slice",
        dest="multiop_slice",
        default=None,
        metavar="K/N",
        help="run of the shared suite what is about each N-th op, from the K-th on",
    )
    parser.addoption(
        "--multiop-results",
        type=Path,
        default=None,
        metavar="PATH",
        help="write the outcomes of the shared suite to PATH, as JSON, beside what earlier runs left there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of the suite and the collector of its results."""
    path: Path | None = config.getoption("multiop_results")
    if path is not None:
        from . import _results
        from ._collector import Collector

        try:
            if path.exists():  # reject any other file now, not after the tests
                _results.read(path)
        except (OSError, ValueError) as error:
            raise pytest.UsageError(f"--multiop-results: {error}") from error
        config.pluginmanager.register(Collector(path))
    config.addinivalue_line(
        "markers", "cross: compares backends with each other, so it needs several of them installed"
    )
    config.addinivalue_line("markers", "multiop_tier(name): the smallest run that has the test; `default` where unsaid")


@pytest.fixture(scope="session", autouse=True)
def _multiop_device(pytestconfig: pytest.Config) -> None:
    """Make each framework create its tensors on the requested device."""
    asked = pytestconfig.getoption("multiop_device")
    if asked is not None:
        from ._shared_process import set_default_device

        for name in asked_backends(pytestconfig):
            set_default_device(asked, name)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Keep the compiler's traces out of what pytest 9 shows of a failure: dozens of lines, all empty."""
    traces = logging.getLogger("torch.__trace")
    for handler in list(traces.handlers):
        if type(handler).__module__ == "_pytest.logging":
            traces.removeHandler(handler)
    return (yield)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Report which tier runs, if one was asked for."""
    return f"multiop: tier {asked_tier(config)}" if config.getoption("multiop_tier") else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses `multiop_backend` once per backend."""
    if "multiop_backend" in metafunc.fixturenames and not hasattr(metafunc.function, "cases"):  # see test_suite
        metafunc.parametrize("multiop_backend", asked_backends(metafunc.config), indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that were not requested; mark known failures strictly."""
    from .known_failures import KNOWN_FAILURES

    asked = TIERS.index(asked_tier(config))
    chosen = chosen_ops(config)
    left_out = {item for item in items if TIERS.index(tier_of(item)) > asked}
    if chosen is not None:
        left_out |= {item for item in items if _op(item) not in chosen}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    items[:] = _by_op(items)
    for item in items:
        parameters = _parameters(item)
        if "multiop_backend" in parameters:
            for known in KNOWN_FAILURES:
                if known.matches(getattr(item, "originalname", item.name), parameters):
                    reason = f"{known.reason} ({known.url})"
                    item.add_marker(pytest.mark.xfail(reason=reason, raises=known.raises, strict=True))


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _op(item: pytest.Item) -> str | None:
    """Return the op that a test, or a docstring example, is about."""
    return item.name.rpartition(".")[2] if isinstance(item, pytest.DoctestItem) else _parameters(item).get("op")


def tier_of(item: pytest.Item) -> str:
    """Return the smallest tier that includes `item`."""
    mark = item.get_closest_marker("multiop_tier")
    if mark is not None:
        return mark.args[0]
    from ._collector import is_of_the_suite

    if is_of_the_suite(item):
        from .test_suite import smallest_tier

        return smallest_tier(getattr(item, "originalname", ""), _parameters(item), asked_backends(item.config))
    return "default"


def _by_op(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put the tests of an op next to each other, so that they share what they compute."""
    from ._collector import is_of_the_suite

    asked = {item: _parameters(item)["op"] for item in items if is_of_the_suite(item) and "op" in _parameters(item)}
    order = {op: n for n, op in enumerate(dict.fromkeys(asked.values()))}
    together = iter(sorted(asked, key=lambda item: order[asked[item]]))
    return [next(together) if item in asked else item for item in items]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Mark what a third-party backend declares as not implemented as an expected failure, with the reason it gives."""
    from multiop import errors, extend

    name = getattr(pyfuncitem, "callspec", None) and pyfuncitem.callspec.params.get("multiop_backend")
    try:
        return (yield)
    except errors.UnsupportedError as error:
        if name is None or name in extend.BUILT_IN:  # built-in backends list theirs in known_failures.py, with URLs
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
    from ._shared_process import x64_mode_for

    with x64_mode_for("float64"):
        yield


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[float, str], None]:
    """Record the relative error that a test found in `dtype`, for the report."""
    from multiop import extend

    from ._tolerances import eps

    def note(error: float, dtype: str) -> None:
        if math.isfinite(error):
            unit = eps(extend.to_numpy_dtype(dtype))
            record_property("ulps", error / unit if unit else error)

    return note
