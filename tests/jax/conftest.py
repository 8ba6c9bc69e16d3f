"""Tests of only the JAX backend."""

import pytest

import multiop


@pytest.fixture(autouse=True)
def on_jax():
    """Run each test here with this backend active, whichever is the default."""
    with multiop.use_backend("jax"):
        yield
