"""The pytest plugin beside a user's own tests."""

from __future__ import annotations

pytest_plugins = ["pytester"]

OWN = """
import pytest

@pytest.mark.tier("gold")
def test_one(): pass

@pytest.mark.multiop_tier("full")
def test_two(): pass
"""


def test_a_marker_called_tier_is_the_users(pytester):
    pytester.makeini("[pytest]\nmarkers =\n    tier(name): my own")
    pytester.makepyfile(OWN)
    done = pytester.runpytest_inprocess("--strict-markers", "-p", "multiop.testing.plugin", "--multiop-tier=quick")
    done.assert_outcomes(deselected=2)
    done = pytester.runpytest_inprocess("--strict-markers", "-p", "multiop.testing.plugin", "-m", "tier")
    done.assert_outcomes(passed=1, deselected=1)
    assert "multiop: tier" not in done.stdout.str()
