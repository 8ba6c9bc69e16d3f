"""The examples of docs/porting.md give what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import multiop

GUIDE = Path(multiop.__file__).parent.parent / "docs" / "porting.md"


def test_the_guide_runs():
    pytest.importorskip("torch")
    pytest.importorskip("jax")
    before = multiop.backend()
    try:
        flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        failed, tried = doctest.testfile(str(GUIDE), module_relative=False, optionflags=flags)
    finally:
        multiop.set_backend(before)
    assert tried > 20
    assert not failed
