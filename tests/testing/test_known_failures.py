"""The registry of known failures is strict: each entry has a URL and a test, and fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multiop._loading import registry
from multiop.testing.cases import rows
from multiop.testing.known_failures import KNOWN_FAILURES, KnownFailure, _version

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent.parent


def test_each_entry_has_a_url_and_a_test():
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("multiop/testing/test_*.py")]
    tests = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())}
    assert "test_value" in tests
    for known in KNOWN_FAILURES:
        assert re.match(r"https://\S+$", known.url), known
        assert known.reason, known
        assert known.backend in registry.BUILT_IN, known
        assert known.test in tests, known
        assert known.parameters.get("op", "op_add") in rows(), known


def test_entries_are_distinct():
    keys = [(known.test, known.backend, tuple(sorted(known.parameters.items()))) for known in KNOWN_FAILURES]
    assert len(set(keys)) == len(keys)


def test_matching():
    known = KnownFailure("test_value", "jax", "https://example.org/1", "reason", {"op": "op_add", "dtype": "int8"})
    here = {"multiop_backend": "jax", "op": "op_add", "dtype": "int8", "other": 1}
    assert known.matches("test_value", here)
    assert not known.matches("test_gradient", here)
    for changed in ({"multiop_backend": "torch"}, {"op": "op_exp"}, {"dtype": "int32"}):
        assert not known.matches("test_value", here | changed)
    assert KnownFailure("test_value", "jax", "https://example.org/1", "reason").matches("test_value", here)


@pytest.mark.parametrize(
    ("version", "fails"), [("0.9.2", True), ("0.10.0", False), ("0.12.0.1", False), ("1.0", False)]
)
def test_an_entry_of_old_versions(version, fails, monkeypatch):
    monkeypatch.setattr("multiop.testing.known_failures._version", _version.__wrapped__)
    monkeypatch.setattr("multiop.testing._results.version", lambda backend: version)
    known = KnownFailure("test_value", "jax", "https://example.org/1", "reason", before=(0, 10))
    assert known.matches("test_value", {"multiop_backend": "jax"}) == fails


@pytest.mark.parametrize(
    ("body", "outcomes"),
    [
        ("assert False", {"xfailed": 1}),
        ("pass", {"failed": 1}),  # a stale entry
        ("raise ValueError", {"failed": 1}),  # not the failure that is known
    ],
)
def test_registry_is_strict(pytester, monkeypatch, body, outcomes, backend):
    entry = KnownFailure("test_planted", backend, "https://example.org/1", "planted")
    monkeypatch.setattr("multiop.testing.known_failures.KNOWN_FAILURES", [entry])
    pytester.makepyfile(f"def test_planted(multiop_backend):\n    {body}\n")
    result = pytester.runpytest_inprocess("-p", "multiop.testing.plugin", f"--multiop-backends={backend}")
    result.assert_outcomes(**outcomes)
