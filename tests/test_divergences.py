"""Where the frameworks disagree, multiop gives the answer that docs/divergences.md has, on every backend."""

from __future__ import annotations

import pytest
from divergence_rows import DIVERGENCES, agrees


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_divergence(backend, divergence):
    assert agrees(divergence.found(), divergence.answer)


def test_a_wrong_answer_is_no_agreement(backend):
    assert not agrees(DIVERGENCES[0].found(), [1.0])
    assert not agrees(DIVERGENCES[0].found(), [[0.0]])
