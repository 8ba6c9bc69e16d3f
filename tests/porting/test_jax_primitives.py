"""Each row of the table of JAX's primitives: value and gradient against JAX, on each backend."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

import jax_rows
import ported

import multiop

INEXACT = {"attention": 1e-6, "causal attention": 1e-6}  # JAX takes their softmax in float32


@pytest.fixture(autouse=True)
def natively_in_64_bits(in_64_bits):
    with jax_rows.jax.enable_x64(True):
        yield


@pytest.mark.tier("full")
@pytest.mark.parametrize("case", jax_rows.ROWS)
def test_row(case, backend):
    port, (outputs, gradients) = jax_rows.traced(case)
    _, inputs = jax_rows.drawn(case)
    with multiop.use_backend(backend):
        computed, slopes, _ = ported.ported(port, inputs)
    assert [y.dtype.kind for y in computed] == [y.dtype.kind for y in outputs]
    assert jax_rows.error_between(computed, outputs) < INEXACT.get(case, 1e-10)
    assert jax_rows.error_between(slopes, gradients) < INEXACT.get(case, 1e-9)
