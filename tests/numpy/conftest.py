"""The tests of this folder run on NumPy alone."""

import pytest

import multiop


@pytest.fixture(autouse=True)
def on_numpy():
    """Run each test here with this backend active, whichever is the default."""
    with multiop.use_backend("numpy"):
        yield
