"""The tests of this folder run on NumPy alone."""

import pytest

import multiop


@pytest.fixture(autouse=True)
def _on_numpy():
    with multiop.use_backend("numpy"):
        yield
