"""Each row of the table of TensorFlow's operations: value and gradient against TensorFlow, on each backend."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

import tensorflow_rows
from ported import error_between, ported

import multiop

IN_SINGLE = {"fused_batch_norm", "fused_batch_norm training", "bilinear", "cast"}  # the kernel has no other dtype


@pytest.mark.filterwarnings("ignore:all sizes are fixed")
@pytest.mark.parametrize(
    "case",
    [
        case if case in tensorflow_rows.NEAR else pytest.param(case, marks=pytest.mark.tier("full"))
        for case in tensorflow_rows.ROWS
    ],
)
def test_row(case, backend):
    port, (outputs, gradients, _) = tensorflow_rows.traced(case)
    _, inputs = tensorflow_rows.drawn(case)
    with multiop.use_backend(backend):
        computed, slopes, _ = ported(port, inputs)
    tolerance = 1e-5 if case in IN_SINGLE or case.startswith("image ") else 1e-9
    assert [y.dtype.kind for y in computed] == [y.dtype.kind for y in outputs]
    assert error_between(computed, outputs) < tolerance
    assert error_between(slopes, gradients) < tolerance


def test_the_gradient_of_slices_behind_an_ellipsis_is_printed():
    port, _ = tensorflow_rows.traced("gradient of slices")  # zeros, of no known rank where they are read, are set
    assert "ops.set_item(" in port.source
