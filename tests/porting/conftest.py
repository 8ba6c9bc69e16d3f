"""Ports are compared in float64."""

import pytest

import multiop


@pytest.fixture(autouse=True)
def in_64_bits():
    before = multiop.x64()
    multiop.enable_x64()
    yield
    multiop.enable_x64(before)
