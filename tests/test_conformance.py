"""The shared suite, as part of this repository's tests."""

from multiop.testing.test_suite import *  # noqa: F403
