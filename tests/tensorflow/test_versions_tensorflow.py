"""A TensorFlow whose parts are missing or not known: ops and transforms work, custom gradients in reverse mode."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")


@pytest.mark.parametrize(
    "parts",
    ["all", *(pytest.param(parts, marks=pytest.mark.tier("full")) for parts in ("missing", "other", "lacking"))],
)
def test_an_unknown_version(parts, passed_alone):
    assert passed_alone("unknown.py", MULTIOP_TEST_PARTS=parts) > 40
