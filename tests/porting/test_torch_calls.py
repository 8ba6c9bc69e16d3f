"""Each row of the table of ATen calls: value and gradient against PyTorch, on each backend."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch_rows

import multiop


@pytest.mark.parametrize("case", torch_rows.ROWS)
def test_row(case, backend):
    port, (outputs, gradients, _) = torch_rows.traced(case)
    _, inputs = torch_rows.drawn(case)
    with multiop.use_backend(backend):
        found, slopes, _ = torch_rows.ported(port, inputs)
    assert [one.dtype for one in found] == [one.dtype for one in outputs]
    assert torch_rows.error_between(found, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9
