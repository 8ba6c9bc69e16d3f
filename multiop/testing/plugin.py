"""Run tests on each backend under pytest: the option `--multiop-backends` and the fixture `multiop_backend`.

pytest loads this by itself where multiop is installed. To hold a backend, your own included, against the shared suite:
`pytest --pyargs multiop.testing --multiop-backends=NAME`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

IMPLIED = {  # -> the one that is tested; derivatives are tested in float64 all the same
    "float16": "bfloat16",
    "float64": "float32",
    "int8": "int32",
    "uint8": "int32",
    "int64": "int32",
    "complex128": "complex64",
}


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
        "--multiop-quick",
        action="store_true",
        help="leave out of the shared suite the dtypes of which another of the same kind is tested "
        f"({', '.join(IMPLIED)}); compile and vmap one call of each op, and take two for all else but the value in one "
        "dtype; on JAX, where a step by itself is compiled too, compile the whole of what is run",
    )
    parser.addoption(
        "--multiop-results",
        type=Path,
        default=None,
        metavar="PATH",
        help="write the outcomes of the shared suite to PATH, as JSON, beside what earlier runs left there; "
        "`multiop report` shows them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of the suite, and what collects its results."""
    path: Path | None = config.getoption("multiop_results")
    if path is not None:
        from . import _results
        from ._collector import Collector

        try:
            if path.is_file():  # something else is refused now, not when the tests are done
                _results.read(path)
        except ValueError as error:
            raise pytest.UsageError(f"--multiop-results: {error}") from error
        config.pluginmanager.register(Collector(path))
    config.addinivalue_line(
        "markers", "cross: compares backends with each other, so it needs several of them installed"
    )
    config.addinivalue_line("markers", "compiled: compiles, which takes seconds")


def backends(config: pytest.Config) -> list[str]:
    """Return the names of the backends to test."""
    import multiop

    from ._several import torch_first

    asked = config.getoption("multiop_backends")
    names = [name.strip() for name in asked.split(",") if name.strip()] if asked else multiop.available_backends()
    torch_first(names)
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses `multiop_backend` once per backend."""
    if "multiop_backend" in metafunc.fixturenames:
        metafunc.parametrize("multiop_backend", backends(metafunc.config), indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not asked for; mark what is known to fail as such, strictly."""
    from .known_failures import KNOWN_FAILURES

    if config.getoption("multiop_quick"):
        implied = {item: _is_implied(item) for item in items}
        config.hook.pytest_deselected(items=[item for item in items if implied[item]])
        items[:] = [item for item in items if not implied[item]]
    items[:] = _by_op(items)
    for item in items:
        parameters: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
        if "multiop_backend" in parameters:
            for known in KNOWN_FAILURES:
                if known.matches(getattr(item, "originalname", item.name), parameters):
                    reason = f"{known.reason} ({known.url})"
                    item.add_marker(pytest.mark.xfail(reason=reason, raises=known.raises, strict=True))


def _by_op(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put the tests of an op beside each other, so that they share what the framework has compiled for it."""
    from ._collector import case_of

    asked = {item: case[:2] for item in items if (case := case_of(item))}
    order = {op: n for n, op in enumerate(dict.fromkeys(asked.values()))}
    together = iter(sorted(asked, key=lambda item: order[asked[item]]))
    return [next(together) if item in asked else item for item in items]


def _is_implied(item: pytest.Item) -> bool:
    """Say whether `item` tests an op in a dtype of a kind of which another is tested."""
    from ._collector import case_of
    from .cases import rows

    op, _, what, dtype = case_of(item) or ("", "", "", "")
    return what == "value" and IMPLIED.get(dtype.partition(",")[0]) in rows()[op].dtypes


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
    from ._several import wide

    with wide("float64"):
        yield


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Callable[[float, str], None]:
    """Note the relative error that a test found in `dtype`, for the report."""
    from multiop import _dtypes

    from ._tolerances import eps

    def note(error: float, dtype: str) -> None:
        if math.isfinite(error):
            unit = eps(_dtypes.to_numpy(dtype))
            record_property("ulps", error / unit if unit else error)

    return note
