"""Tests of only the PyTorch backend."""

import pytest

import multiop


@pytest.fixture(autouse=True)
def on_torch():
    """Run each test here with this backend active, whichever is the default."""
    with multiop.use_backend("torch"):
        yield
