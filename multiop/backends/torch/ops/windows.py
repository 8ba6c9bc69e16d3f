"""Windows for the analysis of signals."""

from __future__ import annotations

import torch


def op_kaiser(triangle, beta):
    beta = torch.as_tensor(beta, dtype=triangle.dtype)
    root = torch.sqrt(triangle * (2 - triangle))
    below = torch.square(1 - triangle) / (1 + root)  # 1 - root without cancellation
    # both functions are scaled by exp(-beta); unscaled, they would overflow
    return torch.exp(-beta * below) * torch.special.i0e(beta * root) / torch.special.i0e(beta)
