"""Tests of only the TensorFlow backend."""

import pytest

import multiop


@pytest.fixture(autouse=True)
def on_tensorflow():
    """Run each test here with this backend active, whichever is the default."""
    with multiop.use_backend("tensorflow"):
        yield
