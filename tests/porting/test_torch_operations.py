"""Each row of the table of ATen's operations: value and gradient against PyTorch, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_rows

import multiop
from multiop import ops, porting

INEXACT = {"functional.hardsigmoid": 1e-7}  # PyTorch's slope there is 1/6 in float32, for float64 too


@pytest.mark.slow_on(multiop_backend="jax")
@pytest.mark.slow_on(multiop_backend="tensorflow")
@pytest.mark.parametrize("case", torch_rows.ROWS)
def test_row(case, backend):
    port, (outputs, gradients, _) = torch_rows.traced(case)
    _, inputs = torch_rows.drawn(case)
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, inputs)
    assert [y.dtype.kind for y in computed] == [y.dtype.kind for y in outputs]
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < INEXACT.get(case, 1e-9)


class Power(torch.nn.Module):
    def __init__(self, exponent):
        super().__init__()
        self.exponent = exponent

    def forward(self, x):
        return x**self.exponent


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_a_power_of_a_half_is_the_root_that_pytorch_takes(exponent, backend):
    x = torch.tensor([-0.0, 0.0, torch.inf, -torch.inf, 4.0])
    port = porting.trace(Power(exponent), x)
    with multiop.use_backend(backend), np.errstate(all="ignore"):
        y = ops.convert_to_numpy(port.function({}, {}, x.numpy())[0])
    np.testing.assert_array_equal(y, (x**exponent).numpy())
    np.testing.assert_array_equal(np.signbit(y[:3]), np.signbit((x**exponent).numpy()[:3]))
