"""Each row of the table of ATen's operations: value and gradient against PyTorch, on each backend."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch_rows

import multiop

INEXACT = {"functional.hardsigmoid": 1e-7}  # PyTorch's slope there is 1/6 in float32, for float64 too


@pytest.mark.tier("full")
@pytest.mark.parametrize("case", torch_rows.ROWS)
def test_row(case, backend):
    port, (outputs, gradients, _) = torch_rows.traced(case)
    _, inputs = torch_rows.drawn(case)
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, inputs)
    assert [y.dtype.kind for y in computed] == [y.dtype.kind for y in outputs]
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < INEXACT.get(case, 1e-9)
